"""Names and values as a reader says them, with nothing in them that could disturb a page."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from funnel.data import Label


def human(column: str) -> str:
    """A column's name as a reader says it: `marital_status` becomes `marital status`."""
    return printable(" ".join(column.replace("_", " ").split()) or column)


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def label(value: Label) -> str:
    """A value as one text: missing and empty parts in words, nothing invisible."""
    return ", ".join("(missing)" if part is None else printable(part) for part in value)


def printable(text: str) -> str:
    """The text with control, format and unpaired characters spelt out, so that none can disturb a page."""
    spelt = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    return spelt if spelt.strip() else "(blank)" if spelt else "(empty)"


_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
