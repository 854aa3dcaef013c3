"""Names, values, lists and numbers of things as a reader says them; nothing in them can disturb what shows them."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Sequence
from decimal import Decimal
from os import PathLike
from shlex import quote

SIZE = r"[1-9][0-9]*(\.[0-9]+)? ?[KMGT]i?B"
"""How an amount of memory is written, such as 2GB."""


def human(column: str) -> str:
    """A column's name as a reader says it: `marital_status` becomes `marital status`."""
    return printable(" ".join(column.replace("_", " ").split()) or column)


def label(value: Sequence[str | None]) -> str:
    """A value as one text: missing and empty parts in words, nothing invisible."""
    return ", ".join("(missing)" if part is None else printable(part) for part in value)


def printable(text: str) -> str:
    """The text with control, format and unpaired characters spelt out."""
    spelt = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    return spelt if spelt.strip() else "(blank)" if spelt else "(empty)"


_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What Unicode calls spaces (Zs)."""


def bare(name: str) -> str:
    """A column's name as readers of a CSV file may have it: without blanks around it, and carriage returns in it."""
    return name.strip("\ufeff").strip(_SPACES).replace("\r", "")


def argument(path: str | PathLike[str]) -> str:
    """A path as a word of a command, as a shell reads it; none is taken for an option."""
    told = os.fspath(path)
    return quote(f"./{told}" if told.startswith("-") else told)


def shown(value: object, longest: int = 160) -> str:
    """Any value as printable text of at most `longest` characters."""
    plain = printable((value if isinstance(value, str) else repr(value))[: 2 * longest])
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def is_text(path: str) -> bool:
    """Whether a path is named in UTF-8: bytes that are not stand in it as lone surrogates, which no engine takes."""
    return re.search(r"[\ud800-\udfff]", path) is None


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; nothing for no words."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def some(words: Sequence[str], most: int) -> str:
    """`a, b, c`, and a sign that there are more than `most` where there are."""
    return ", ".join(words[:most]) + (", …" if len(words) > most else "")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 value`, `16 values`, `1,200 boxes`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows of cells (m, n) as m lines with aligned columns: those in `right` end together, others begin so."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number(value: float) -> str:
    """All digits of it, and no exponent: `20`, `0.1`, `1609459200001`."""
    written = format(Decimal(repr(float(value))), "f")
    return written.removesuffix(".0")


def portion(share: float) -> str:
    """`46.12%`, but never 0 or 100 for what is not quite that."""
    if 0 < share < 0.00005 or 0.99995 <= share < 1:
        return "below 0.01%" if share < 0.5 else "above 99.99%"
    return f"{100 * share:.2f}%"


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
