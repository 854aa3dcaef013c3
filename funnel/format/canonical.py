"""Canonical JSON: for every content exactly one sequence of bytes, so that a changed byte cannot go unnoticed.

Keys are sorted, separators have no blanks, text is UTF-8 as it is, numbers are written as Python's `repr` writes them,
and one newline ends the file. Reading parses, encodes again and compares.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


class FormatError(ValueError):
    """A file is not of its format: `file`, the `path` of the value in it, what was `expected` and what was `found`."""

    def __init__(self, file: str, path: str, expected: str, found: object) -> None:
        super().__init__(f"{file}: {path or 'the content'} should be {expected}, not {_short(found)}")
        self.file, self.path, self.expected, self.found = file, path, expected, _short(found)


def encode(value: Any) -> bytes:
    """The canonical bytes of a JSON value. Raises ValueError for NaN, infinities and text that is no Unicode."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def decode(file: str, raw: bytes) -> Any:
    """The value in canonical bytes. Raises FormatError where they are not JSON, or not in the canonical form."""
    try:
        value = json.loads(raw, parse_constant=_refuse)
        same = encode(value) == raw
    except (ValueError, RecursionError) as error:
        raise FormatError(file, "", "canonical JSON", error) from None
    if not same:
        raise FormatError(file, "", "canonical JSON", "another spelling of its content")
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _short(found: object) -> str:
    text = found if isinstance(found, str) else repr(found)
    return text if len(text) <= 80 else f"{text[:77]}…"
