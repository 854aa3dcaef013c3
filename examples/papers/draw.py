"""Charts as SVG: a grid of panels with curves, clouds, bands or boxes, one legend for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from findings import Panel, Series
from markupsafe import Markup

from funnel.report.svg import element, width

_INK, _QUIET, _LINE = "#1d2733", "#5d6b7a", "#d9dfe6"
_COLOURS = ("#2f79ad", "#e08214", "#3b8a4f", "#8a5aa8", "#c0392b", "#7a6a4f", "#111111")
_WIDE, _TALL, _LEFT, _TOP, _RIGHT, _BELOW = 300.0, 210.0, 52.0, 34.0, 16.0, 44.0
_SIZE = 11.0
_ACROSS = {1: 1, 2: 2, 3: 3, 4: 2}


@dataclass(frozen=True)
class _Area:
    """A panel's place and its two scales."""

    panel: Panel
    left: float
    top: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + _WIDE * across, self.top + _TALL * (1 - up)


def figure(panels: Sequence[Panel], title: str) -> str:
    """An SVG document: panels in rows of at most three, colours by the order in which series first appear."""
    names = list(dict.fromkeys(one.name for panel in panels for one in panel.series))
    colours = {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(names)}
    kinds = {one.name: one.kind for panel in panels for one in panel.series}
    across = _ACROSS.get(len(panels), 3)
    step_x, step_y = _LEFT + _WIDE + _RIGHT, _TOP + _TALL + _BELOW
    legend, above = _legend(names, colours, kinds, across * step_x)
    parts: list[Markup] = []
    for place, panel in enumerate(panels):
        area = _area(panel, place % across * step_x + _LEFT, above + place // across * step_y + _TOP)
        parts += _axes(area)
        parts += [_series(area, one, colours[one.name], place) for place, one in enumerate(panel.series)]
    wide, tall = across * step_x, above + math.ceil(len(panels) / across) * step_y
    return str(
        element(
            "svg", element("title", title), element("rect", width=wide, height=tall, fill="#ffffff"),
            *legend, *parts, xmlns="http://www.w3.org/2000/svg", role="img",
            viewBox=f"0 0 {wide:.0f} {tall:.0f}", width=f"{wide:.0f}", height=f"{tall:.0f}",
            font_family="Helvetica, Arial, sans-serif", font_size=_SIZE,
        )
    ) + "\n"  # fmt: skip


def _area(panel: Panel, left: float, top: float) -> _Area:
    """Scales that hold everything, the vertical one from zero where that wastes little."""
    if panel.places:
        horizontal = (-0.5, len(panel.places) - 0.5)
    else:
        horizontal = _padded([point[0] for one in panel.series for point in one.points])
    return _Area(
        panel, left, top, horizontal, _padded([y for one in panel.series for y in _heights(one)], zero=True)
    )


def _heights(series: Series) -> list[float]:
    """All vertical positions that a series reaches."""
    if series.kind == "line":
        return [end for _, y, spread in series.points for end in (y - spread, y + spread)]
    return [y for point in series.points for y in point[1:]]


def _padded(values: Sequence[float], *, zero: bool = False) -> tuple[float, float]:
    low, high = min(values), max(values)
    if zero and 0 <= low < 0.6 * high:
        return 0.0, high * 1.05
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _ticks(ends: tuple[float, float], most: int = 6) -> list[float]:
    """Round numbers between two ends."""
    raw = (ends[1] - ends[0]) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= raw)
    first = math.ceil(ends[0] / step)
    return [index * step for index in range(first, math.floor(ends[1] / step) + 1)]


def _axes(area: _Area) -> list[Markup]:
    """Frame, title, ticks and names of the axes."""
    panel, note = area.panel, {"fill": _QUIET}
    parts = [
        element("rect", x=area.left, y=area.top, width=_WIDE, height=_TALL, fill="none", stroke=_LINE),
        element("text", panel.title, x=area.left, y=area.top - 10, fill=_INK, font_weight="bold"),
        element("text", panel.x, x=area.left + _WIDE / 2, y=area.top + _TALL + 34, text_anchor="middle", fill=_INK),
        element("text", panel.y, transform=f"translate({area.left - 40:.0f} {area.top + _TALL / 2:.0f}) rotate(-90)",
                text_anchor="middle", fill=_INK),
    ]  # fmt: skip
    for y in _ticks(area.y):
        _, up = area.at(area.x[0], y)
        parts.append(
            element("line", x1=area.left, x2=area.left + _WIDE, y1=up, y2=up, stroke=_LINE, stroke_width=0.5)
        )
        parts.append(element("text", f"{y:g}", x=area.left - 5, y=up + 4, text_anchor="end", **note))
    named = list(enumerate(panel.places)) or [(x, f"{x:g}") for x in _ticks(area.x)]
    for x, name in named:
        along, _ = area.at(x, area.y[0])
        parts.append(element("text", name, x=along, y=area.top + _TALL + 16, text_anchor="middle", **note))
    return parts


def _series(area: _Area, series: Series, colour: str, place: int) -> Markup:
    """One series in its own way; spreads of several curves stand beside each other."""
    draw = {"line": _line, "dots": _dots, "band": _band, "box": _boxes, "rule": _rule}[series.kind]
    if series.kind == "line" and any(point[2] for point in series.points):
        area = replace(area, left=area.left + 2.0 * place)
    return element("g", *draw(area, series.points, colour))


def _line(area: _Area, points: Sequence[Sequence[float]], colour: str) -> list[Markup]:
    """Means joined by lines, with a bar for the spread."""
    parts = [_path([area.at(x, y) for x, y, _ in points], colour)]
    for x, y, spread in points:
        (along, low), (_, high) = area.at(x, y - spread), area.at(x, y + spread)
        parts.append(element("line", x1=along, x2=along, y1=low, y2=high, stroke=colour, stroke_width=1.2))
        parts.append(element("circle", cx=along, cy=area.at(x, y)[1], r=2.4, fill=colour))
    return parts


def _dots(area: _Area, points: Sequence[Sequence[float]], colour: str) -> list[Markup]:
    places = [area.at(x, y) for x, y in points]
    return [element("circle", cx=x, cy=y, r=2.6, fill=colour, fill_opacity=0.7) for x, y in places]


def _band(area: _Area, points: Sequence[Sequence[float]], colour: str) -> list[Markup]:
    """The area between two curves."""
    low, high = ([area.at(point[0], point[end]) for point in points] for end in (1, 2))
    ring = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*low, *reversed(high)])
    edges = [_path(side, colour, 1.0) for side in (low, high)]
    return [element("polygon", points=ring, fill=colour, fill_opacity=0.25), *edges]


def _rule(area: _Area, points: Sequence[Sequence[float]], colour: str) -> list[Markup]:
    """A curve without marks."""
    return [_path([area.at(x, y) for x, y in points], colour)]


def _boxes(area: _Area, points: Sequence[Sequence[float]], colour: str) -> list[Markup]:
    """Boxes of the middle half with a line at the median, whiskers to the extremes."""
    parts: list[Markup] = []
    for place, *ends in points:
        along = area.at(place, 0)[0]
        least, lower, middle, upper, most = (area.at(place, end)[1] for end in ends)
        stroke = {"stroke": colour, "stroke_width": 1.4}
        parts += [
            element("line", x1=along, x2=along, y1=a, y2=b, **stroke)
            for a, b in ((least, lower), (upper, most))
        ]
        parts.append(element("rect", x=along - 14, y=upper, width=28, height=max(lower - upper, 0.5), fill=colour,
                             fill_opacity=0.25, **stroke))  # fmt: skip
        parts.append(element("line", x1=along - 14, x2=along + 14, y1=middle, y2=middle, **stroke))
    return parts


def _path(points: Sequence[tuple[float, float]], colour: str, thick: float = 1.6) -> Markup:
    track = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=track, fill="none", stroke=colour, stroke_width=thick)


def _legend(
    names: Sequence[str], colours: dict[str, str], kinds: dict[str, str], wide: float
) -> tuple[list[Markup], float]:
    """A mark and a name for each series, in lines above everything; the pixels that they take."""
    parts, x, y = [], _LEFT, 14.0
    for name in names:
        if x > _LEFT and x + 22 + width(name, _SIZE) > wide:
            x, y = _LEFT, y + 17
        thick = {"dots": 6.0, "band": 10.0, "box": 10.0}.get(kinds[name], 2.5)
        parts.append(element("rect", x=x, y=y - 4 - thick / 2, width=16, height=thick, fill=colours[name]))
        parts.append(element("text", name, x=x + 22, y=y, fill=_INK))
        x += 44 + width(name, _SIZE)
    return parts, y + 8
