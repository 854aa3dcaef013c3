"""The columns of the released table, as catalogues and the table's own file describe them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from funnel.data.alphabet import Alphabet
from funnel.data.convert import protocols_of
from funnel.data.unary import AnyProtocol, Sets
from funnel.format.cells import Wide
from funnel.format.released import COUNT
from funnel.format.reported import Published
from funnel.release.weights import weight_name
from funnel.report.facts import unchanged
from funnel.report.words import blocks

MOST = 1_000
"""Values of a column that are listed; of more, none are."""
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_KINDS = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "number"),
    **dict.fromkeys(("DATE", "TIME", "BOOLEAN"), ""),
    **dict.fromkeys(("TIMESTAMP", "DATETIME"), "datetime"),
}


@dataclass(frozen=True)
class Column:
    """A column: its kind (string, integer, number, date, time, datetime, boolean, array), what is said of it.

    `values` are those that it can hold, as texts, missing ones left out; none where they are not listed.
    """

    name: str
    kind: str
    words: str
    values: tuple[str, ...] = ()


def columns(shown: Published) -> tuple[Column, ...]:
    """The table's columns in their order. Raises ValueError where the files do not fit together."""
    stated, said = shown.manifest, blocks("catalogue.txt", language=shown.manifest.language)
    given = {} if stated.metadata is None else stated.metadata.columns
    keys = (_Part(key.name, "key", type=key.type) for key in stated.identify)
    counts = [_Part(COUNT, "count", type="BIGINT")] if stated.rows_of_data == "counts" else []
    found = [one.column(given, said) for one in (*keys, *_drawn(shown), *counts)]
    folders = stated.folders
    return tuple(replace(one, words=f"{one.words} {said['folder']}") if one.name == folders else one for one in found)


def notes(shown: Published) -> dict[str, str]:
    """What a file of the table tells of itself: what its columns are (JSON).

    Not which release it is of: the same rows have the same bytes, whichever night they are published in.
    """
    told = {one.name: one.words for one in columns(shown)}
    return {"columns": json.dumps(told, ensure_ascii=False)}


@dataclass(frozen=True)
class _Part:
    """A column, which of the sentences tells of it, and the policy's columns that it comes of."""

    name: str
    role: str
    of: tuple[str, ...] = ()
    values: Iterable[str | None] = ()
    type: str = ""

    def column(self, given: dict[str, str], said: dict[str, str]) -> Column:
        kind = "array" if self.role == "listed" else _kind(self.type)
        own = [" ".join(given[name].split()) for name in self.of or (self.name,) if name in given]
        words = [*(one if one[-1] in ".!?" else f"{one}." for one in own), said[self.role]]
        values = tuple(dict.fromkeys(value for value in self.values if value is not None))
        listed = values if len(values) <= MOST and kind in ("string", "integer") else ()
        return Column(self.name, kind, " ".join(words), listed)


def _kind(sql: str) -> str:
    """The kind of a type in SQL."""
    name = sql.partition("(")[0]
    return _KINDS.get(name, "string") or name.lower()


def _drawn(shown: Published) -> Iterator[_Part]:
    """The columns of released.json, block by block."""
    rest = list(zip(shown.released.columns, shown.released.types, strict=True))[::-1]
    wide = {one.name: one for one in (shown.cells.blocks if shown.cells else ())}
    for protocol in protocols_of(shown.protocol):
        outputs = protocol.outputs
        parts = _of_sets(outputs) if isinstance(outputs, Sets) else _of_labels(outputs, wide, shown)
        for part in parts:
            name, sql = rest.pop() if rest else ("", "")
            if name != part.name:
                raise ValueError(f"{part.name} is no column of the table")
            yield _Part(part.name, _role(part.role, protocol), part.of, part.values, sql)
    if rest:
        raise ValueError(f"{rest[-1][0]} is no column of the protocol")


def _role(role: str, protocol: AnyProtocol) -> str:
    """Which of the sentences tells of a column in this role: another one where nothing is drawn."""
    if role == "weight" or not protocol.certain:
        return role
    return f"{role}_{'same' if unchanged(protocol) else 'named'}"


def _of_sets(sets: Sets) -> list[_Part]:
    """One column of lists, or one of 0 and 1 for each value."""
    if sets.form == "set":
        return [_Part(name, "listed", sets.columns) for name in sets.names]
    return [_Part(name, "holds", sets.columns, ("0", "1")) for name in sets.names]


def _of_labels(outputs: Alphabet, wide: dict[str, Wide], shown: Published) -> Iterator[_Part]:
    """A column for each of the labels' own, and those that a wide block's label stands for."""
    for place, name in enumerate(outputs.columns):
        values = [label[place] for label in outputs.values]
        if name not in wide:
            yield _Part(name, "drawn", (name,), values)
            continue
        if shown.manifest.identify:
            yield _Part(name, "label", (name,), values)
        yield from (_Part(one.name, "filled", (one.name,), one.values) for one in wide[name].columns)
        weight = weight_name(name, len(wide))
        if weight in shown.released.columns:
            yield _Part(weight, "weight")
