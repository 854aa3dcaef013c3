"""Strict JSON, taken apart field by field; what is not as it should be is an AuditFailure with its place."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from funnel.audit.findings import broken
from funnel.errors import AuditFailure

Label = tuple[str | None, ...]
IntArray = npt.NDArray[np.int64]
BIGGEST = (1 << 63) - 1
MOST_VALUES = 4_000_000
_DIGITS = 40
_LONG = re.compile(rb"[0-9]{%d}" % (_DIGITS + 1))
"""What a number that is too long has; without it, numbers need no second look."""


@dataclass(frozen=True)
class Field:
    """A JSON value together with the file and the path where it stands."""

    file: str
    path: str
    value: Any

    def wrong(self, expected: str) -> AuditFailure:
        """This field is not what the format says."""
        return broken(
            self.file, f"{self.path or 'the content'} is wrong", expected=expected, found=self.value
        )

    def keys(self, *required: str, optional: tuple[str, ...] = ()) -> None:
        """The mapping has these keys, perhaps the optional ones: what nobody expects, nobody has looked at."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        missing = [key for key in required if key not in self.value]
        extra = [key for key in self.value if key not in (*required, *optional)]
        if missing or extra:
            found = [f"no {key}" for key in missing] + [f"also {key}" for key in extra]
            raise broken(
                self.file,
                f"{self.path or 'the file'} has other keys than its format",
                expected=", ".join(required),
                found="; ".join(found),
            )

    def __getitem__(self, key: str) -> Field:
        if not isinstance(self.value, dict) or key not in self.value:
            raise broken(self.file, f"{self.path or 'the file'} lacks {key}", expected=key, found=self.value)
        return Field(self.file, f"{self.path}.{key}" if self.path else key, self.value[key])

    def items(self) -> list[Field]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [Field(self.file, f"{self.path}[{index}]", value) for index, value in enumerate(self.value)]

    def members(self) -> Iterator[tuple[str, Field]]:
        """The members of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return ((key, self[key]) for key in self.value)

    def text(self, pattern: str = r"(?s).*") -> str:
        """A text that can be written as UTF-8 and matches a pattern as a whole."""
        if not isinstance(self.value, str) or not _encodable(self.value):
            raise self.wrong("a text")
        if not re.fullmatch(pattern, self.value):
            raise self.wrong(f"a text like {pattern}")
        return self.value

    def among(self, *choices: str) -> str:
        """One of a few words."""
        if not isinstance(self.value, str) or self.value not in choices:
            raise self.wrong(" | ".join(choices))
        return self.value

    def whole(self, low: int = 0, high: int = BIGGEST) -> int:
        """A whole number; neither true nor 1.0 is one."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.wrong(f"a whole number from {low} to {high}")
        return self.value

    def number(self, low: float = 0.0, high: float = 1e9) -> Fraction:
        """A finite number, as the decimal that is written."""
        if type(self.value) not in (int, float) or not low <= self.value <= high:
            raise self.wrong(f"a number from {low:g} to {high:g}")
        return Fraction(repr(self.value))

    def rounded(self, high: float = 1e9) -> Fraction:
        """A number with at most four decimals: published figures are coarse on purpose."""
        number = self.number(high=high)
        if (number * 10_000).denominator != 1:
            raise self.wrong("a number with at most four decimals")
        return number

    def names(self) -> tuple[str, ...]:
        """One or several distinct column names."""
        found = tuple(item.text(r"(?s).+") for item in self.items())
        if not found or len(set(found)) != len(found):
            raise self.wrong("a list of distinct column names")
        return found

    def labels(self, width: int) -> tuple[Label, ...]:
        """Distinct values, each a list of `width` texts or nulls."""
        if not isinstance(self.value, list) or not 0 < len(self.value) <= MOST_VALUES:
            raise self.wrong(f"a list of 1 to {MOST_VALUES} values")
        found = tuple(self._label(value, width) for value in self.value)
        if len(set(found)) != len(found):
            raise broken(
                self.file, f"{self.path} is no alphabet", expected="distinct values", found=_repeated(found)
            )
        return found

    def _label(self, value: Any, width: int) -> Label:
        """One value: a text or null per column."""
        right = isinstance(value, list) and len(value) == width
        if not right or not all(
            part is None or (isinstance(part, str) and _encodable(part)) for part in value
        ):
            raise broken(
                self.file,
                f"{self.path} has an ill-formed value",
                expected=f"a list of {width} texts or nulls",
                found=value,
            )
        return tuple(value)

    def whole_grid(self, *shape: int, high: int = BIGGEST) -> IntArray:
        """Nested lists of whole numbers from 0 to `high`; -1 leaves the length of the first axis open."""
        level = [self.value]
        for size in shape:
            if not all(isinstance(part, list) for part in level):
                raise self.wrong(f"lists nested {len(shape)} deep")
            lengths = {len(part) for part in level} - {size}
            if lengths and size >= 0:
                raise broken(
                    self.file, f"{self.path} has a list of the wrong length", expected=size, found=lengths
                )
            level = list(chain.from_iterable(level))
        self._all_whole(level, high)
        return np.array(level, np.int64).reshape(shape)

    def _all_whole(self, numbers: list[Any], high: int) -> None:
        """Whole numbers, none of them true or 1.0, from 0 to `high`."""
        if set(map(type, numbers)) - {int}:
            raise self.wrong("whole numbers and nothing else")
        if numbers and not 0 <= min(numbers) <= max(numbers) <= high:
            ends = f"{min(numbers)} to {max(numbers)}"
            raise broken(
                self.file, f"{self.path} has a number out of range", expected=f"0 to {high}", found=ends
            )


def parse(file: str, raw: bytes) -> Field:
    """Strict JSON in UTF-8: no key twice, no NaN, no number of more than 40 digits. Raises AuditFailure."""
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_int=_integer if _LONG.search(raw) else None,
            parse_float=_float,
            parse_constant=_constant,
            object_pairs_hook=_distinct,
        )
    except (ValueError, RecursionError) as error:
        raise broken(
            file, "this is not the JSON of a release", expected="strict JSON in UTF-8", found=str(error)
        ) from error
    return Field(file, "", value)


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > 10 * _DIGITS or not math.isfinite(float(text)):
        raise ValueError("a number that is not finite")
    return float(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return found


def _encodable(text: str) -> bool:
    return not any("\ud800" <= ch <= "\udfff" for ch in text)


def _repeated(values: tuple[Label, ...]) -> str:
    return f"{Counter(values).most_common(1)[0][0]} more than once"
