"""What an unquoted YAML scalar means: YAML 1.2's core schema, so that `no` is text and `1e-3` a number."""

from __future__ import annotations

import math
import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NOT_A_NUMBER = re.compile(r"\.(nan|NaN|NAN)")
_PADDED = re.compile(r"[-+]?0[0-9]+")
_LONGEST_WHOLE = 30
"""Longer runs of digits become floats: nobody counts so far, and Python refuses to print long integers."""


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError where YAML 1.1 and 1.2 would read another number."""
    if text in _WORDS:
        return _WORDS[text]
    if _PADDED.fullmatch(text):
        raise ValueError("a number with leading zeros is octal to some readers and decimal to others")
    if _WHOLE.fullmatch(text) and len(text) <= _LONGEST_WHOLE:
        return int(text)
    if is_number(text):
        return float(text)
    if infinite := _INFINITE.fullmatch(text):
        return -math.inf if infinite[1] == "-" else math.inf
    return math.nan if _NOT_A_NUMBER.fullmatch(text) else text


def is_number(text: str) -> bool:
    """Whether a text would be a finite decimal number without quotes."""
    return _NUMBER.fullmatch(text) is not None
