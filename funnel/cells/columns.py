"""A column of a wide block: the values that it may be released with, and which of them every source value becomes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.cells.counts import tallied
from funnel.data.joint import FloatArray, IntArray
from funnel.errors import PlanError

Codes = npt.NDArray[np.int32]
_DIGITS = 500
"""More than any number of a table has, before and behind its point together."""
_ROUNDED = 1e-12
"""Relative; far more than floats lose."""
_TEMPORAL = ("DATE", "TIMESTAMP", "TIME")


@dataclass(frozen=True, eq=False)
class SourceColumn:
    """A column as the table has it: `codes` (n,) into `values`, texts as SQL casts them, each once; None is missing.

    `type` is the SQL type. An `ordered` column holds numbers, dates or times; its values may come in any order. Rows
    stand for so many `records` (n,); None: for one each.
    """

    name: str
    type: str
    ordered: bool
    values: tuple[str | None, ...]
    codes: Codes
    records: IntArray | None = None

    @property
    def counts(self) -> IntArray:
        """The records of each value (v,)."""
        return tallied(self.codes, len(self.values), self.records)


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of a column: `values` can be released; the place of a value is its code, None (missing) is last.

    Ordered: value i stands for every x with cuts[i-1] <= x < cuts[i], open at both ends. Otherwise `cuts` is None
    and a value stands for itself. `other` is the code of all texts that are not listed, None where such a text is
    unknown. `missing` is the code of a missing value, None where none was ever seen.
    """

    name: str
    type: str
    values: tuple[str | None, ...]
    cuts: tuple[str, ...] | None
    other: int | None
    missing: int | None

    @property
    def ordered(self) -> bool:
        """Whether conditions compare the column with a threshold."""
        return self.cuts is not None

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> FloatArray:
        """The values (v,) as numbers, NaN for the missing one; the code where the column is not ordered."""
        if self.cuts is None:
            return np.arange(len(self.values), dtype=float)
        return np.array([np.nan if one is None else number(one, self.type) for one in self.values], float)

    def places(self, texts: Sequence[str | None]) -> Codes:
        """The code of what each of the source's values is released as, -1 for none.

        Raises PlanError for what has no place among numbers, dates or times.
        """
        other = -1 if self.other is None else self.other
        missing = -1 if self.missing is None else self.missing
        if self.cuts is None:
            known = {value: code for code, value in enumerate(self.values) if value is not None}
            return np.array([missing if one is None else known.get(one, other) for one in texts], np.int32)
        try:
            cuts, told = np.split(numbers([*self.cuts, *texts], self.type), [len(self.cuts)])
        except ValueError as error:
            raise unordered(self.name, str(error)) from None
        gone = np.array([one is None for one in texts], bool)
        return np.where(gone, missing, np.searchsorted(cuts, told, side="right")).astype(np.int32)


def unordered(column: str, value: str) -> PlanError:
    """The error of a value without a place among others."""
    return PlanError(
        "column-type",
        f"column {column!r} holds what is neither a finite number nor a date from the year 1 to 9999",
        values=value,
        advice="Leave such records out of the source, or the column out of the policy.",
    )


def number(text: str, kind: str) -> float:
    """A number, date or time as SQL writes it, as a number that orders; dates and times in seconds.

    Raises ValueError for what is no finite number.
    """
    if kind.startswith(_TEMPORAL):
        return float(_seconds(text))
    found = float(np.float32(text)) if kind in {"FLOAT", "REAL"} else float(text)
    if not np.isfinite(found):
        raise ValueError(f"{text} is no finite number")
    return found


def numbers(texts: Sequence[str | None], kind: str) -> npt.NDArray[Any]:
    """The same of several (v,), 0 for a missing one: exact where floats do not tell all of them apart."""
    found = np.array([0.0 if one is None else number(one, kind) for one in texts], float)
    told = {one: place for place, one in enumerate(texts) if one is not None}
    if len(set(found[[*told.values()]].tolist())) == len(told):
        return found
    return np.array([Decimal(0) if one is None else _exact(one, kind) for one in texts], object)


def order(values: Sequence[str | None], kind: str) -> list[int]:
    """Places of the values from the least to the greatest, exactly; the missing value last."""
    told = [(_exact(one, kind), i) for i, one in enumerate(values) if one is not None]
    return [i for _, i in sorted(told)] + [i for i, one in enumerate(values) if one is None]


def between(left: str, right: str, kind: str) -> str:
    """The roundest c with left < c <= right, as text: a threshold need not tell whose value is next to it."""
    if kind.startswith(_TEMPORAL):
        return _round_time(left, right)
    low, high = Decimal(left), Decimal(right)
    with localcontext(prec=_DIGITS):
        for exponent in range(high.adjusted() + 1, _last_place(high) - 1, -1):
            unit = Decimal(1).scaleb(exponent)
            candidate = (high / unit).to_integral_value("ROUND_FLOOR") * unit
            if candidate > low and number(str(candidate), kind) > number(left, kind):
                return f"{candidate:f}"
    return right


def nearest(texts: Sequence[str | None], kept: Sequence[str], kind: str) -> IntArray:
    """The places (v,) of the nearest of the numbers kept, which are in order; of two the lower one. Exactly.

    Raises ValueError for what is no finite number.
    """
    ends, told = (np.array([0.0 if one is None else number(one, kind) for one in side]) for side in (kept, texts))
    middles = (ends[1:] + ends[:-1]) / 2
    found = np.searchsorted(middles, told, side="left").astype(np.int64)
    with localcontext(prec=_DIGITS):
        halves = [(_exact(low, kind) + _exact(high, kind)) / 2 for low, high in pairwise(kept)]
    room = _ROUNDED * (np.abs(told) + np.abs(ends).max(initial=0.0))
    away = np.abs(np.pad(middles, 1, constant_values=np.inf)[np.stack([found, found + 1])] - told).min(axis=0)
    for place in np.flatnonzero(away <= room).tolist():  # where floats are not to be relied on
        if (text := texts[place]) is not None:
            found[place] = bisect_left(halves, _exact(text, kind))
    return found


def cuts_between(values: Sequence[tuple[str, str]], kind: str) -> tuple[str, ...]:
    """Thresholds between neighbouring ranges of values, each (least, greatest)."""
    return tuple(between(left[1], right[0], kind) for left, right in pairwise(values))


def _exact(text: str, kind: str) -> Decimal:
    found = _seconds(text) if kind.startswith(_TEMPORAL) else Decimal(text)
    if not found.is_finite():
        raise ValueError(f"{text} is no finite number")
    return found


def _last_place(value: Decimal) -> int:
    """The exponent of the last digit that is not zero, 0 for zero."""
    return int(value.normalize().as_tuple().exponent) if value else 0


def _seconds(text: str) -> Decimal:
    if ":" in text and "-" not in text.split(":", maxsplit=1)[0]:
        text = f"1970-01-01 {text}"
    moment = datetime.fromisoformat(text)
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    return Decimal(since // timedelta(microseconds=1)) / 10**6


def _round_time(left: str, right: str) -> str:
    """The beginning of right's year, month, day, hour or minute, the roundest that is after left; else right."""
    for kept, rest in (
        (4, "-01-01 00:00:00"),
        (7, "-01 00:00:00"),
        (10, " 00:00:00"),
        (13, ":00:00"),
        (16, ":00"),
    ):
        candidate = (right[:kept] + rest)[: len(right)]
        if len(candidate) == len(right) and _valid(candidate) and left < candidate <= right:
            return candidate
    return right


def _valid(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
