"""known.json: the records of counts.json by what somebody may know of their columns, where a promise asks for that.

Private: nobody but the publisher and its auditor may see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Text
from funnel.format.schema import Flaws, Rows

NAME = "known.json"
OWN = "own"
"""The level of a column's own values, before any of them are put together."""
GROUPED = "grouped"
"""The level of bins, steps or groups of which rare ones are merged in what is released."""
RELEASED = "released"
"""The level of what is released of a column whose values are put together: bins, `other`, multiples of a step."""
TONIGHT = "tonight"
"""The level that would be the released one, had a lock not put some of its values under `other`."""
MERGED = "merged"
"""The level of what several values of a column inside cells are released as; one that stands for itself is 0 there."""
BEFORE = "before"
"""The level of what earlier releases called a column's values; it is made of their protocols, and never stands here."""


@dataclass(frozen=True)
class Level:
    """A public column as somebody may know it, and the `values` that enough records share, in the order of codes."""

    column: Text
    level: Text
    values: tuple[str | None, ...]

    def flaws(self) -> Flaws:
        """Values are distinct: two codes of one value would be of two groups that nobody can tell apart."""
        if len(set(self.values)) < len(self.values):
            yield "values", "distinct values", self.values


@dataclass(frozen=True)
class KnownFile:
    """Rows [s, x_1, …, x_k, v_1, …, v_l, count], s and x as in counts.json.

    v_i is 0 for a value that fewer records than the promised minimum share, else the place in `levels[i]`, from 1 on.
    The first level of a column is the finest; one of them is what is released of it, those behind are groups of that,
    or what it is merged to inside cells.
    """

    format: Literal["funnel-known/1"]
    levels: tuple[Level, ...]
    cells: Rows

    def flaws(self) -> Flaws:
        """Each level is there once, and own values of a column, where they are told, before what is released of it."""
        told = [(one.column, one.level) for one in self.levels]
        first = dict(reversed(told))
        if len({*told}) < len(told) or any(level == OWN != first[column] for column, level in told):
            yield "levels", "each once, and the own one of a column first", told
