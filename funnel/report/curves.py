"""Utility against epsilon as a picture: a line per mechanism with its name at the end.

A picture is a function of the figures alone, so the same figures always have the same bytes. It stands by itself, as a
file or in a page, follows the reader's choice of a light or a dark screen, and tells its numbers where one points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from funnel.report.svg import width
from funnel.report.words import template

_TOP, _BOTTOM = 64.0, 56.0
_ROW = 15.0
"""Pixels below the axis for the crosses of each curve that lacks a figure."""
_LINE = 17.0
"""Pixels between two names, at least."""
_TICK = 34.0
"""Pixels between two labelled epsilons, at least."""
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Distances of the lines across."""


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
    """Where an epsilon and a share lie on the paper, in pixels from the left and from the top."""

    epsilons: tuple[float, ...]
    right: float
    step: float
    top: float
    lacking: tuple[Curve, ...]
    wide: int = 760
    tall: int = 440
    size: int = 13
    left: float = 62.0

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> _Axes:
        """Room for the longest name at the right; the scale of shares ends at the next line above the highest."""
        names = max((width(curve.name, cls.size) for curve in curves), default=0.0)
        shares = [spot.share for curve in curves for spot in curve.spots if spot.share is not None]
        highest = max(shares, default=1.0)
        step = next((step for step in _STEPS if highest / step <= 6), _STEPS[-1])
        epsilons = sorted({spot.epsilon for curve in curves for spot in curve.spots})
        lacking = tuple(curve for curve in curves if any(spot.share is None for spot in curve.spots))
        top = min(1.0, step * -(-highest // step)) or 1.0
        return cls(tuple(epsilons), cls.wide - min(names, cls.wide / 2.6) - 34, step, top, lacking)

    @property
    def bottom(self) -> float:
        """Where no information is kept."""
        return self.tall - _BOTTOM - _ROW * len(self.lacking)

    @property
    def shares(self) -> list[float]:
        """The shares that have a line across, from 0 on."""
        return [line * self.step for line in range(int(self.top / self.step * (1 + 1e-9)) + 1)]

    @property
    def labelled(self) -> list[float]:
        """The epsilons that there is room to name."""
        named = list[float]()
        for epsilon in self.epsilons:
            if not named or self.x(epsilon) - self.x(named[-1]) >= _TICK:
                named.append(epsilon)
        return named

    def row(self, curve: Curve) -> float:
        """The height of the crosses of a curve that lacks a figure."""
        return self.bottom + _ROW * (self.lacking.index(curve) + 0.8)

    def x(self, epsilon: float) -> float:
        """The place of an epsilon; a single one stands in the middle."""
        first, last = self.epsilons[0], self.epsilons[-1]
        if first == last:
            return (self.left + self.right) / 2
        return self.left + 14 + (self.right - self.left - 28) * (epsilon - first) / (last - first)

    def y(self, share: float) -> float:
        """The height of a share."""
        return self.bottom - (self.bottom - _TOP) * share / self.top

    def pieces(self, curve: Curve) -> list[tuple[Spot, Spot]]:
        """Neighbours that both have a figure: a gap is not bridged."""
        return [pair for pair in pairwise(curve.spots) if None not in (pair[0].share, pair[1].share)]

    def end(self, curve: Curve) -> float:
        """The height at which a curve ends: below the axis if it has no figure at all."""
        shares = [spot.share for spot in curve.spots if spot.share is not None]
        return self.y(shares[-1]) if shares else self.row(curve)


def picture(title: str, note: str, curves: Sequence[Curve]) -> Markup:
    """An SVG of shares of information kept against epsilon in nats, under a title and a note."""
    axes = _Axes.of(curves)
    heights = _apart([axes.end(curve) for curve in curves], axes.tall - 14)
    given = {"title": title, "note": note, "curves": curves, "axes": axes, "heights": heights}
    drawn = template("curves.svg").render(given)
    return Markup(drawn)  # noqa: S704  the template escapes


def page(drawn: Markup, title: str, text: str) -> str:
    """The picture over its figures as text: one page without script or network."""
    return template("curves.html").render(drawn=drawn, title=title, text=text)


def _apart(wanted: Sequence[float], most: float) -> list[float]:
    """The heights wanted for names, moved apart where they would lie on each other, and none below `most`."""
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    heights = list[float]()
    for place in order:
        heights.append(max(wanted[place], heights[-1] + _LINE) if heights else wanted[place])
    limit = most
    for index in range(len(heights) - 1, -1, -1):
        heights[index] = min(heights[index], limit)
        limit = heights[index] - _LINE
    return [height for _, height in sorted(zip(order, heights, strict=True))]
