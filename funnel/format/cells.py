"""cells.json: the cells of every wide block, and how their rows are filled in; published.

With released.json and protocol.json it gives the table again, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from funnel.format.fields import Count, Sha256, Text
from funnel.format.released import Type
from funnel.format.schema import Grid, InRange

NAME = "cells.json"
BITS = 16
"""Weights of a profile, and shares of cells, add up to 2^BITS."""


@dataclass(frozen=True)
class Values:
    """A column: the values that it is released with, None (missing) last; the place of a value is its code.

    Of a column with an order, value i stands for every x with cuts[i-1] <= x < cuts[i]. `other` is the code of every
    text that is not listed, `missing` that of a missing value; None where nothing stands for it.
    """

    name: Text
    type: Type
    values: tuple[str | None, ...]
    cuts: tuple[Text, ...] | None
    other: Count | None
    missing: Count | None


@dataclass(frozen=True)
class Below:
    """A split: records whose code in `column` is below `below` go to the next node, the others behind its cells."""

    kind: Literal["below"]
    column: Count
    below: Count


@dataclass(frozen=True)
class Among:
    """A split: records whose code in `column` is listed go to the next node, the others behind its cells."""

    kind: Literal["among"]
    column: Count
    codes: Grid


@dataclass(frozen=True)
class Cell:
    """A cell, the next in order; `share` / 2^BITS of the records it was made from are in it."""

    kind: Literal["cell"]
    share: Annotated[int, InRange(0, 1 << BITS)]


@dataclass(frozen=True)
class ColumnProfile:
    """How a column is drawn: first the group of its value, then the value; groups[v] is the group of value v.

    links[cell][group of the parent] are the weights of its groups, values[cell] those of its values, which add up to
    2^BITS in each group that is possible there: lists [code, weight, code, weight, …] in the order of codes, those of
    no weight left out. Without a `parent` column links[cell] has one list.
    """

    parent: Count | None
    groups: Grid
    links: Grid
    values: Grid


@dataclass(frozen=True)
class Wide:
    """One wide block: its columns, the nodes of its tree in the order of a walk, one profile for each column.

    `seed` is what its rows are filled from, in hexadecimal digits.
    """

    name: Text
    columns: tuple[Values, ...]
    nodes: tuple[Below | Among | Cell, ...]
    profiles: tuple[ColumnProfile, ...]
    seed: Sha256


@dataclass(frozen=True)
class CellsFile:
    """cells.json; `rule` says in words how rows are filled in."""

    format: Literal["funnel-cells/1"]
    rule: str
    blocks: tuple[Wide, ...]
