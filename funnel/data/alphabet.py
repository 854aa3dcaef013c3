"""The values that one or several columns take together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Paths = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By column, and by value there, names of the groups that hold it, outermost first."""
Label = tuple[str | None, ...]
"""One value: a text per column, None where the column is missing."""
OTHER = "other"
"""What values are called of which none has a name of its own."""


@dataclass(frozen=True)
class Alphabet:
    """Column names and the distinct values they take, in a fixed order; a value's index is its code.

    `paths` say of columns whose values are held by others, groups in groups, what holds each of them, outermost first.
    It is no part of what an alphabet is.
    """

    columns: tuple[str, ...]
    values: tuple[Label, ...]
    paths: Paths = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values):
            raise ValueError(f"alphabet of {self.columns} names a value twice")
        if any(len(value) != len(self.columns) for value in self.values):
            raise ValueError(f"alphabet of {self.columns} has a value of another length")

    def __len__(self) -> int:
        return len(self.values)

    def names(self) -> list[str]:
        """Each value as one readable text."""
        return [readable(value) for value in self.values]

    def ranks(self, place: int) -> list[int | None]:
        """Of each value's part at a place, how many others come before it among those that begin with a number.

        None for a part that does not: it stands in no order with the others.
        """
        numbers = {part for value in self.values if (part := value[place]) and _LEADING_NUMBER.match(part)}
        rank = {part: index for index, part in enumerate(sorted(numbers, key=_natural))}
        return [rank.get(value[place] or "") for value in self.values]

    @classmethod
    def of(cls, columns: Sequence[str], values: Sequence[Label]) -> Alphabet:
        """The distinct values in natural order: numbers and bins by size, then text, missing last."""
        ordered = sorted(set(values), key=lambda value: [_natural(part) for part in value])
        return cls(tuple(columns), tuple(ordered))


_LEADING_NUMBER = re.compile(r"\[?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def _natural(part: str | None) -> tuple[int, float, str]:
    """Sort key of one part; a text that begins with a number goes by that number."""
    if part is None:
        return 2, 0.0, ""
    number = _LEADING_NUMBER.match(part)
    return (0, float(number[1]), part) if number else (1, 0.0, part)


def readable(value: Label) -> str:
    """One text for a value: its parts joined by a comma, a missing part in words."""
    return ", ".join("(missing)" if part is None else part for part in value)


def folded(column: str) -> str:
    """DuckDB's identity of a column name: ASCII letters match in either case, no others do."""
    return column.translate(_LOWER)


_LOWER = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
