"""Values that a spreadsheet would take for formulas: a CSV file has no way to say that they are texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from funnel.data import Alphabet
from funnel.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a formula begins with for the usual programs, in full width too (OWASP, CSV Injection)."""

_PLAIN = re.compile(r"[+-]?([0-9]+([.,][0-9]+)*|[.,][0-9]+)?([eE][+-]?[0-9]+)?%?")
"""A number, or a lone sign: nothing to be worked out, and common among codes and categories."""

_LONGEST = 40

_ADVICE = (
    "Release as Parquet, or map these values in the source. Where no reader opens the file in a spreadsheet, write "
    "`formulas: keep` under `release`: then values stay as they are. They are never changed."
)


def is_formula(text: str) -> bool:
    """Whether a program that opens a CSV file may work this text out instead of showing it."""
    return text.lstrip(" ").startswith(_STARTS) and not _PLAIN.fullmatch(text.strip(" "))


def formulas_among(texts: pa.Array) -> int:
    """How many of these texts are formulas; of values that are no texts, none are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(texts.type):
        return 0
    near = texts.filter(pc.match_substring_regex(texts, f"^ *[{re.escape(''.join(_STARTS))}]"))
    return sum(map(is_formula, near.to_pylist()))


def check_formulas(blocks: Iterable[Alphabet]) -> None:
    """No value that may be released, and no column's name, is a formula. Raises SourceError (formula)."""
    for alphabet in blocks:
        for place, column in enumerate(alphabet.columns):
            texts = (column, *(value[place] for value in alphabet.values))
            found = [text for text in texts if text is not None and is_formula(text)]
            if found:
                raise _refused(column, found)


def check_keys(columns: Sequence[str], found: int) -> None:
    """No key is a formula, of which so many were found, and no key column's name. Raises SourceError (formula)."""
    for column in filter(is_formula, columns):
        raise _refused(column, [column])
    if found:
        raise SourceError(
            "formula",
            f"{found:,} values of {' + '.join(columns)} would stand in a CSV file as formulas, which spreadsheets "
            "carry out",
            advice=_ADVICE,
        )


def _refused(column: str, found: list[str]) -> SourceError:
    first = found[0] if len(found[0]) <= _LONGEST else f"{found[0][:_LONGEST]}…"
    others = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return SourceError(
        "formula",
        f"{column!r} would put texts into a CSV file that spreadsheets take for formulas and carry out",
        values=f"{first!r}{others}",
        advice=_ADVICE,
    )
