"""The report's pictures, drawn by hand as SVG: heatmaps of protocols and beliefs, bars and ranges in tables.

Every picture is a function of the report's content alone, so the same report always has the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from funnel.report import figures
from funnel.report.promise import within
from funnel.report.svg import element, shortened, width
from funnel.report.tongue import Tongue
from funnel.text import portion

_INK, _QUIET, _LINE, _WHITE = "#1d2733", "#5d6b7a", "#d9dfe6", "#ffffff"
_BEFORE, _MEASURED, _ALLOWED = "#9aa7b4", "#2f79ad", "#e3ebf3"
_SEQUENTIAL = (_WHITE, "#dbe7f3", "#a9c8e2", "#6aa3cc", "#2f79ad", "#12517f", "#07304f")
_DIVERGING = (
    "#b35806", "#e08214", "#fdb863", "#fee0b6", "#f7f7f7", "#d4e3f1", "#92c0de", "#4a94c4", "#1b5f95",
)  # fmt: skip
_GAMMA = 0.8
_LABEL, _ROOM, _TALL = 11.0, 210.0, 110.0
_APART = 13.0
"""What a turned label needs, so that it does not lie over the next."""
_WIDTH, _STRIP = 860.0, 34.0
_FAR = 0.1
"""A distance that is shown as dark as any larger one."""


@dataclass(frozen=True)
class _Cell:
    colour: str
    text: str
    title: str


def protocol_map(say: Tongue, labels: dict[str, Any], chances: Sequence[Sequence[float]]) -> Markup:
    """Q(y|x) (b, a): one row per true value, one column per released value, darker where a draw is likelier."""
    grid = _Grid.of(labels["inputs"], labels["outputs"], say("true value"), say("released value"))
    cells = [[_chance(say, chance, f"{true} → {released}: ")
              for chance, released in zip(by_input, grid.columns, strict=True)]
             for true, by_input in zip(grid.rows, zip(*chances, strict=True), strict=True)]  # fmt: skip
    legend = [(_blend(_SEQUENTIAL, (step / 4) ** _GAMMA), say.figure(f"{25 * step}%")) for step in range(5)]
    return _heatmap(grid, cells, say("How likely each true value is to be released as each value")) + _legend(
        legend
    )


def _chance(say: Tongue, chance: float, what: str) -> _Cell:
    text = "" if chance < 0.005 else "100" if chance >= 0.9995 else f"{min(100 * chance, 99):.0f}"
    return _Cell(_blend(_SEQUENTIAL, chance**_GAMMA), text, what + say.figure(f"{100 * chance:.1f}%"))


def belief_map(say: Tongue, beliefs: dict[str, Any]) -> Markup:
    """Change of each belief by each released value: orange where it falls, blue where it rises."""
    grid = _Grid.of(beliefs["secret"], beliefs["released"], say("secret"), say("released value"))
    bound = beliefs["bound"]
    rows = zip(grid.rows, beliefs["change"], beliefs["factor"], beliefs["after"], strict=True)
    cells = [[_change(say, change, factor, belief, bound, say("{}, given {}: ").format(secret, released))
              for change, factor, belief, released in zip(changes, factors, after, grid.columns, strict=True)]
             for secret, changes, factors, after in rows]  # fmt: skip
    parts = (-1.0, -0.5, 0.0, 0.5, 1.0)
    legend = [(_diverging(part), _step(say, part, figures.factor(abs(part * bound)))) for part in parts]
    return _heatmap(grid, cells, say("How each released value changes the belief in each secret value")) + _legend(
        legend
    )


def _change(
    say: Tongue, change: float | None, factor: str | None, after: float, bound: float, what: str
) -> _Cell:
    """The change in nats and by which factor, None where it is infinite, and the belief it leads to."""
    if change is None or factor is None:
        certain = after > 0.5
        return _Cell(_diverging(1.0 if certain else -1.0), "", what + say("certain" if certain else "ruled out"))
    text = say.figure(f"{change:+.2f}".replace("-", "−")) if abs(change) >= 0.005 else "≈ 0" if change else "0"
    return _Cell(_diverging(change / bound), text, f"{what}{say.figure(portion(after))}, {_step(say, change, factor)}")


def near_map(say: Tongue, columns: Sequence[str], distances: Sequence[Sequence[float]]) -> Markup:
    """Distances of every two columns (d, d), darker where they are larger; per mille of the records."""
    grid = _Grid.of(columns, columns, say("column"), say("column"))
    cells = [[_Cell(_blend(_SEQUENTIAL, min(one / _FAR, 1.0) ** _GAMMA), f"{1000 * one:.0f}" if one >= 0.0005 else "",
                    f"{row}, {column}: " + say.figure(f"{100 * one:.2f}%"))
              for one, column in zip(line, grid.columns, strict=True)]
             for row, line in zip(grid.rows, distances, strict=True)]  # fmt: skip
    return _heatmap(grid, cells, say("How far each two columns are on average from those of the table"))


def cells(say: Tongue, block: dict[str, Any]) -> Markup:
    """The cells of a wide block side by side, as wide as their shares, with their conditions as titles."""
    total = sum(one["share"] for one in block["cells"]) or 1.0
    parts, left = list[Markup](), 0.0
    for place, one in enumerate(block["cells"]):
        wide = _WIDTH * one["share"] / total
        told = element("title", f"{one['cell']}: {one['words']} ({say.figure(figures.share(one['share']))})")
        colour = _SEQUENTIAL[1 + place % 3]
        parts.append(element("rect", told, x=left, y=0.0, width=wide, height=_STRIP, fill=colour))
        left += wide
    title = element("title", say("The cells of {}").format(block["name"]))
    return element("svg", title, *parts, role="img", class_="strip", **_size(_WIDTH, _STRIP))


def _diverging(part: float) -> str:
    """The colour of a change as a part, -1 to 1, of the bound."""
    return _blend(_DIVERGING, (max(-1.0, min(1.0, part)) + 1) / 2)


def _step(say: Tongue, nats: float, factor: str) -> str:
    return f"{'÷' if nats < 0 else '×'} {say.figure(factor)}" if nats else say("unchanged")


@dataclass(frozen=True)
class _Grid:
    """Where the cells of a heatmap lie; they shrink with their number, so that the picture is as wide as the page."""

    rows: Sequence[str]
    columns: Sequence[str]
    down: str
    left: float
    top: float
    side: float
    tall: float
    across: str

    @classmethod
    def of(
        cls, rows: Sequence[str], columns: Sequence[str], down: str, across: str
    ) -> _Grid:
        """A grid with room for its labels: `down` and `across` name what the rows and the columns are."""
        side = min(38.0, (_WIDTH - _ROOM - 40) / len(columns))
        names = [shortened(name, _LABEL, _ROOM - 16) for name in rows]
        heads = [shortened(name, _LABEL, _TALL) for name in columns]
        left = 1.12 * max([width(name, _LABEL) for name in names] + [width(down, _LABEL) + 14]) + 14
        top = max(width(head, _LABEL) for head in heads) * 0.75 + 34
        return cls(rows, columns, down, left, top, side, max(11.0, min(26.0, side)), across)

    @property
    def right(self) -> float:
        """The right edge of the cells."""
        return self.left + self.side * len(self.columns)

    @property
    def bottom(self) -> float:
        """The bottom edge of the cells."""
        return self.top + self.tall * len(self.rows)


def _heatmap(grid: _Grid, cells: Sequence[Sequence[_Cell]], title: str) -> Markup:
    """A labelled grid of coloured cells. White ones are left out; tooltips too where there are very many."""
    last = width(shortened(grid.columns[-1], _LABEL, _TALL), _LABEL) * 0.72 - grid.side / 2
    wide, high = grid.right + max(0.0, last) + 8, grid.bottom + 6
    tips = len(grid.rows) * len(grid.columns) <= 1200
    squares = [_square(grid, (x, y), cell, tips) for y, row in enumerate(cells) for x, cell in enumerate(row)
               if cell.colour != _WHITE]  # fmt: skip
    return element(
        "svg", element("title", title), *_frame(grid), *_row_labels(grid), *_heads(grid), *squares,
        role="img", class_="map", font_size=_LABEL, **_size(wide, high),
    )  # fmt: skip


def _frame(grid: _Grid) -> list[Markup]:
    wide, high = grid.right - grid.left, grid.bottom - grid.top
    note = {"fill": _QUIET, "font_style": "italic"}
    return [
        element("rect", x=grid.left, y=grid.top, width=wide, height=high, fill=_WHITE, stroke=_LINE),
        element("text", f"{grid.down} ↓", x=grid.left - 8, y=grid.top - 8, text_anchor="end", **note),
        element("text", f"{grid.across} →", x=grid.left, y=12, **note),
    ]


def _row_labels(grid: _Grid) -> list[Markup]:
    labels = []
    for row, name in enumerate(grid.rows):
        short, middle = shortened(name, _LABEL, _ROOM - 16), grid.top + grid.tall * (row + 0.5)
        labels.append(element("text", short, *_tooltip(short, name), x=grid.left - 8, y=middle + 4, fill=_INK,
                              text_anchor="end"))  # fmt: skip
    return labels


def _heads(grid: _Grid) -> list[Markup]:
    """A label over every column, or over as many as can be read beside each other."""
    labels, step = [], math.ceil(_APART / grid.side)
    for column, name in [*enumerate(grid.columns)][::step]:
        short, middle = shortened(name, _LABEL, _TALL), grid.left + grid.side * (column + 0.5)
        turned = f"translate({middle + 3:.1f} {grid.top - 6:.1f}) rotate(-45)"
        labels.append(element("text", short, *_tooltip(short, name), fill=_INK, transform=turned))
    return labels


def _tooltip(short: str, full: str) -> list[Markup]:
    return [] if short == full else [element("title", full[:300])]


def _square(grid: _Grid, place: tuple[int, int], cell: _Cell, tips: bool) -> Markup:
    """One cell at (column, row); its text only where it fits."""
    x, y = grid.left + grid.side * place[0], grid.top + grid.tall * place[1]
    gap = min(1.0, grid.side / 8)
    wide, tall = grid.side - gap, grid.tall - 1
    tip = [element("title", cell.title[:300])] if tips else []
    square = element("rect", *tip, x=x + gap / 2, y=y + 0.5, width=wide, height=tall, fill=cell.colour)
    size = min(10.0, grid.tall - 3)
    if not cell.text or width(cell.text, size) > grid.side - 3:
        return square
    ink = _WHITE if _dark(cell.colour) else _INK
    middle = {"x": x + grid.side / 2, "y": y + grid.tall / 2 + size * 0.36}
    return square + element("text", cell.text, font_size=size, text_anchor="middle", fill=ink, **middle)


def _legend(steps: Sequence[tuple[str, str]]) -> Markup:
    """Coloured squares with a word each."""
    parts, x = [], 1.0
    for colour, text in steps:
        parts.append(element("rect", x=x, y=2, width=14, height=14, fill=colour, stroke=_LINE))
        parts.append(element("text", text, x=x + 20, y=13, fill=_QUIET))
        x += 34 + width(text, _LABEL)
    return element("svg", *parts, class_="legend", aria_hidden="true", font_size=_LABEL, **_size(x, 18))


def belief_range(moves: Sequence[float], allowed: Sequence[float] | None) -> Markup:
    """How far a belief moves, as parts of the width shown; the tick is no change.

    A pale bar shows how far it is `allowed` to; nothing is shown as allowed where nothing bounds it.
    """
    wide, tall = 180.0, 22.0
    bar = {"y": tall / 2 - 4, "height": 8}
    (low, high), *most = ([wide / 2 * (1 + move) for move in ends] for ends in (moves, allowed) if ends is not None)
    return element(
        "svg",
        *(element("rect", x=least, width=up - least, fill=_ALLOWED, **bar) for least, up in most),
        element("rect", x=low, width=max(high - low, 1.5), fill=_MEASURED, **bar),
        element("rect", x=wide / 2 - 0.75, y=3, width=1.5, height=tall - 6, fill=_INK),
        class_="range", aria_hidden="true", **_size(wide, tall),
    )  # fmt: skip


def bars(first: float, second: float | None, longest: float) -> Markup:
    """One or two thin bars, one over the other, on the scale of the longest; nothing for what is below zero."""
    wide = 170.0
    shown = [(first, 3.0, _BEFORE)] + ([] if second is None else [(second, 11.0, _MEASURED)])
    drawn = [element("rect", x=0, y=y, width=max(one * wide / (longest or 1), 0.75), height=6, fill=fill)
             for one, y, fill in shown if one >= 0]  # fmt: skip
    return element("svg", *drawn, class_="bars", aria_hidden="true", **_size(wide, 20))


def reach(say: Tongue, measured: dict[str, Any]) -> Markup:
    """Where a belief may be led, for every belief before: as promised, and as the measured leakage leaves it."""
    side, left, top = 210.0, 44.0, 10.0
    leakage, own = measured["leakage"], measured["measure"]
    falls, rises = (math.inf if measured[name] is None else measured[name] for name in ("falls", "rises"))
    told = leakage["lip" if measured["rises_alone"] else own], leakage[own]
    fell, rose = (math.inf if one is None else one for one in told)
    bands = [(_ALLOWED, falls, rises), ("#7fb0d4", min(fell, falls), min(rose, rises))]
    ticks = [(tick, say.figure(f"{tick:.0%}")) for tick in (0.0, 0.5, 1.0)]
    return element(
        "svg", element("title", say("Where a belief may be led")),
        element("rect", x=left, y=top, width=side, height=side, fill=_WHITE, stroke=_LINE),
        *(element("path", d=_band(measured["kind"], ends, side, (left, top)), fill=fill) for fill, *ends in bands),
        element("path", d=f"M{left:g} {top + side:g}l{side:g} {-side:g}", stroke=_INK, stroke_width=1.2),
        *(element("text", said, x=left - 6, y=top + side * (1 - tick) + 4, text_anchor="end", fill=_QUIET)
          for tick, said in ticks),
        *(element("text", said, x=left + side * tick, y=top + side + 16, text_anchor="middle", fill=_QUIET)
          for tick, said in ticks),
        role="img", class_="reach", font_size=_LABEL, **_size(left + side + 22, top + side + 24),
    )  # fmt: skip


def _band(kind: str, ends: Sequence[float], side: float, corner: tuple[float, float]) -> str:
    """The path around all (belief before, belief after) that are within reach."""
    befores = [step / 40 for step in range(41)]
    lows, highs = zip(*(within(kind, before, *ends) for before in befores), strict=True)
    around = [*zip(befores, highs, strict=True), *reversed([*zip(befores, lows, strict=True)])]
    places = [f"{corner[0] + side * x:.1f} {corner[1] + side * (1 - y):.1f}" for x, y in around]
    return f"M{'L'.join(places)}Z"


def _size(wide: float, tall: float) -> dict[str, str]:
    # What lays pages out on sheets gives a picture no letters of the page's own: a wider face would run over its cells.
    face = {"font_family": "Arial, Liberation Sans, sans-serif"}
    return {"viewBox": f"0 0 {wide:.0f} {tall:.0f}", "width": f"{wide:.0f}", "height": f"{tall:.0f}"} | face


def _blend(stops: Sequence[str], at: float) -> str:
    """The colour at 0..1 along the stops."""
    place = max(0.0, min(1.0, at)) * (len(stops) - 1)
    below = min(int(place), len(stops) - 2)
    pair = zip(_rgb(stops[below]), _rgb(stops[below + 1]), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (place - below)):02x}" for low, high in pair)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _dark(colour: str) -> bool:
    red, green, blue = _rgb(colour)
    return 0.3 * red + 0.59 * green + 0.11 * blue < 140
