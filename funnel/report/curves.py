"""Utility against epsilon as a picture: a line per mechanism with its name at the end, drawn by hand as SVG.

A picture is a function of the figures alone, so the same figures always have the same bytes. It stands by itself,
as a file or in a page, and follows the reader's choice of a light or a dark screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from funnel.report.svg import element, width

_WIDE, _TALL, _SIZE = 760.0, 440.0, 13.0
_LEFT, _TOP, _BOTTOM = 62.0, 64.0, 56.0
_ROW = 15.0
"""Pixels below the axis for the crosses of each curve that lacks a figure."""
_LINE = 17.0
"""Pixels between two names, at least."""
_STYLE = (
    ".paper{fill:#fff}.ink{fill:#1d2733}.quiet{fill:#5d6b7a}.grid{stroke:#d9dfe6}"
    ".m0{--c:#12517f}.m1{--c:#c2570c}.m2{--c:#3f7d3a}.m3{--c:#8a3a9b}.m4{--c:#a3283c}.m5{--c:#6b5b12}.m6{--c:#1f7f86}"
    ".curve{stroke:var(--c)}.dot,.name{fill:var(--c)}.hole{stroke:var(--c)}"
    "@media (prefers-color-scheme:dark){.paper{fill:#14191f}.ink{fill:#e6ebf0}.quiet{fill:#9aa7b4}"
    ".grid{stroke:#333d48}.m0{--c:#6fb3e3}.m1{--c:#f2a05c}.m2{--c:#8ccb85}.m3{--c:#d197e0}.m4{--c:#ef8a9b}"
    ".m5{--c:#d2bf63}.m6{--c:#6fcdd4}}"
)
_COLOURS = 7
_PAGE = (
    "body{margin:24px auto;max-width:820px;padding:0 20px;background:#fff;color:#1d2733}"
    "svg{display:block;max-width:100%;height:auto}"
    "pre{font:12.5px/1.6 Menlo,Consolas,'Liberation Mono',monospace;overflow-x:auto}"
    "@media (prefers-color-scheme:dark){body{background:#14191f;color:#e6ebf0}}"
)
_FACE = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True)
class Spot:
    """A share of information at one epsilon; None with the reason where there is none. `most` bounds it."""

    epsilon: float
    share: float | None
    reason: str | None = None
    most: float | None = None


@dataclass(frozen=True)
class Curve:
    """One line; dashed for what does not keep the promise."""

    name: str
    spots: tuple[Spot, ...]
    dashed: bool = False


@dataclass(frozen=True)
class _Axes:
    """Where an epsilon and a share lie on the paper."""

    epsilons: tuple[float, ...]
    right: float
    top: float
    lacking: tuple[Curve, ...]

    @property
    def bottom(self) -> float:
        """Where no information is kept."""
        return _TALL - _BOTTOM - _ROW * len(self.lacking)

    def row(self, curve: Curve) -> float:
        """Pixels from the top of the crosses of a curve that lacks a figure."""
        return self.bottom + _ROW * (self.lacking.index(curve) + 0.8)

    def x(self, epsilon: float) -> float:
        """Pixels from the left; a single epsilon stands in the middle."""
        first, last = self.epsilons[0], self.epsilons[-1]
        if first == last:
            return (_LEFT + self.right) / 2
        return _LEFT + 14 + (self.right - _LEFT - 28) * (epsilon - first) / (last - first)

    def y(self, share: float) -> float:
        """Pixels from the top."""
        return self.bottom - (self.bottom - _TOP) * share / self.top


def picture(title: str, note: str, curves: Sequence[Curve]) -> Markup:
    """An SVG of shares of information kept against epsilon in nats, under a title and a note."""
    axes = _axes(curves)
    drawn = [part for place, curve in enumerate(curves) for part in _curve(axes, place, curve)]
    return element(
        "svg",
        element("title", title),
        element("style", Markup(_STYLE)),  # noqa: S704  our own constant
        element("rect", class_="paper", width=_WIDE, height=_TALL),
        element("text", title, class_="ink", x=16, y=26, font_size=15, font_weight=600),
        element("text", note, class_="quiet", x=16, y=45, font_size=12),
        *_frame(axes),
        *drawn,
        *_names(axes, curves),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {_WIDE:g} {_TALL:g}",
        width=f"{_WIDE:g}",
        height=f"{_TALL:g}",
        font_family=_FACE,
        font_size=_SIZE,
    )


def page(drawn: Markup, title: str, text: str) -> str:
    """The picture over its figures as text: one page without script or network."""
    policy = element(
        "meta",
        http_equiv="Content-Security-Policy",
        content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        policy,
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(_PAGE)),  # noqa: S704  our own constant
    )
    body = element("body", drawn, element("pre", text))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _axes(curves: Sequence[Curve]) -> _Axes:
    """Room for the longest name at the right; the scale of shares ends at the next step above the highest."""
    names = max((width(curve.name, _SIZE) for curve in curves), default=0.0)
    shares = [spot.share for curve in curves for spot in curve.spots if spot.share is not None]
    step = _step(max(shares, default=1.0))
    top = min(1.0, step * -(-max(shares, default=1.0) // step)) or 1.0
    epsilons = sorted({spot.epsilon for curve in curves for spot in curve.spots})
    lacking = tuple(curve for curve in curves if any(spot.share is None for spot in curve.spots))
    return _Axes(tuple(epsilons), _WIDE - min(names, _WIDE / 2.6) - 34, top, lacking)


def _step(highest: float) -> float:
    """Distance of the lines across, so that there are four to eight."""
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
    return next((step for step in steps if highest / step <= 6), 0.2)


def _frame(axes: _Axes) -> list[Markup]:
    """Lines across with their shares, epsilons below, and what the axes are."""
    parts, step, line = [], _step(axes.top), 0
    while line * step <= axes.top * (1 + 1e-9):
        y = axes.y(line * step)
        parts.append(element("line", class_="grid", x1=_LEFT, x2=axes.right, y1=y, y2=y))
        text = f"{100 * line * step:.3g}%"
        parts.append(
            element("text", text, class_="quiet", x=_LEFT - 8, y=y + 4, text_anchor="end", font_size=12)
        )
        line += 1
    for curve in axes.lacking:
        y = axes.row(curve) + 4
        parts.append(
            element("text", "none", class_="quiet", x=_LEFT - 8, y=y, text_anchor="end", font_size=12)
        )
    parts += _ticks(axes)
    below = "epsilon, nats (smaller is more private)"
    middle, y = (_LEFT + axes.right) / 2, _TALL - 14
    parts.append(element("text", below, class_="quiet", x=middle, y=y, text_anchor="middle", font_size=12))
    return parts


def _ticks(axes: _Axes) -> list[Markup]:
    """Epsilons below the axis, where there is room for them."""
    parts, last, y = [], -100.0, _TALL - _BOTTOM + 20
    for epsilon in axes.epsilons:
        x = axes.x(epsilon)
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=axes.bottom, y2=axes.bottom + 5))
        if x - last >= 34:
            text = f"{epsilon:g}"
            parts.append(element("text", text, class_="quiet", x=x, y=y, text_anchor="middle", font_size=12))
            last = x
    return parts


def _curve(axes: _Axes, place: int, curve: Curve) -> list[Markup]:
    """Pieces of line between neighbours that both have a figure, a dot at each, a cross where none is."""
    colour, dash = f"m{place % _COLOURS}", "7 5" if curve.dashed else None
    parts = []
    for before, after in zip(curve.spots, curve.spots[1:], strict=False):
        if before.share is not None and after.share is not None:
            ends = {"x1": axes.x(before.epsilon), "y1": axes.y(before.share),
                    "x2": axes.x(after.epsilon), "y2": axes.y(after.share)}  # fmt: skip
            parts.append(
                element("line", class_=f"{colour} curve", stroke_width=2.2, stroke_dasharray=dash, **ends)
            )
    for spot in curve.spots:
        parts.append(_dot(axes, place, curve, spot))
    return parts


def _dot(axes: _Axes, place: int, curve: Curve, spot: Spot) -> Markup:
    """A figure, with its numbers as a tooltip; or a cross below the axis, since no figure is not zero."""
    x, where = axes.x(spot.epsilon), f"{curve.name}, epsilon {spot.epsilon:g}: "
    if spot.share is None:
        tip = element("title", f"{where}{spot.reason or 'no figure'}")
        cross = f"M{x - 4:.1f} {axes.row(curve) - 4:.1f}l8 8m0 -8l-8 8"
        return element(
            "path", tip, class_=f"m{place % _COLOURS} hole", d=cross, stroke_width=1.8, fill="none"
        )
    most = "" if spot.most is None else f", proven at most {spot.most:.2%}"
    tip = element("title", f"{where}{spot.share:.2%}{most}")
    return element("circle", tip, class_=f"m{place % _COLOURS} dot", cx=x, cy=axes.y(spot.share), r=3.6)


def _names(axes: _Axes, curves: Sequence[Curve]) -> list[Markup]:
    """Each curve's name beside its last figure, moved apart where they would lie on each other."""
    wanted = sorted((_end(axes, curve), place) for place, curve in enumerate(curves))
    heights: list[float] = []
    for y, _ in wanted:
        heights.append(max(y, heights[-1] + _LINE) if heights else y)
    over = max(0.0, heights[-1] - (_TALL - 14)) if heights else 0.0
    for index in range(len(heights) - 1, -1, -1):
        most = heights[index + 1] - _LINE if index + 1 < len(heights) else heights[index] - over
        heights[index] = min(heights[index], most)
    return [
        element(
            "text", curves[place].name, class_=f"m{place % _COLOURS} name", x=axes.right + 8, y=height + 4.5
        )
        for height, (_, place) in zip(heights, wanted, strict=True)
    ]


def _end(axes: _Axes, curve: Curve) -> float:
    """Where a curve ends, in pixels from the top: below the axis if it has no figure at all."""
    shares = [spot.share for spot in curve.spots if spot.share is not None]
    return axes.y(shares[-1]) if shares else axes.row(curve)
