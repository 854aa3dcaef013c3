"""The records of a joint distribution by what somebody may know of their columns, read in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from funnel.cells.columns import Vocabulary
from funnel.data import Alphabet, Joint
from funnel.data.finer import RARE, added_up, finer
from funnel.data.joint import IntArray
from funnel.engine.base import Engine
from funnel.format.known import MERGED, OWN, RELEASED, Level

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 17


def with_known(
    engine: Engine,
    statement: str,
    levels: Sequence[tuple[str, str, str]],
    joint: Joint,
    minimum: int,
    inside: Sequence[Vocabulary] = (),
) -> Joint:
    """The joint distribution, with the same records by what may be known of them.

    The statement gives texts under the plan's names s0, x0_0 and so on, and a count n. A level is a column, the level's
    name, and the text that it is. Values that fewer than `minimum` records share are no knowledge. Columns `inside`
    cells have one more level where these merge values: somebody may know the bin of an income that nobody else has.
    """
    read = _read(engine, statement)
    counts = read.pop("n")[1]
    names = [[f"s{i}" for i in range(len(joint.secret.columns))]]
    names += [[f"x{j}_{i}" for i in range(len(block.columns))] for j, block in enumerate(joint.blocks)]
    alphabets = (joint.secret, *joint.blocks)
    placed = [_placed([read[name] for name in own], one) for own, one in zip(names, alphabets, strict=True)]
    told = list(_levels(read, levels, {column.name: column for column in inside}))
    codes = [own for _, own in told]
    rows, counts = added_up(np.column_stack([*placed, *codes]), counts)
    there = (rows[:, : len(placed)] >= 0).all(axis=1)
    named = [level for level, _ in told]
    seen = finer(rows[there, : len(placed)], counts[there], named, rows[there, len(placed) :], minimum)
    return replace(joint, finer=seen)


Texts = tuple[tuple[str | None, ...], IntArray]
"""The distinct texts of a column in their natural order, and the place (m,) of each record's among them."""


def _levels(
    read: Mapping[str, Texts], levels: Sequence[tuple[str, str, str]], inside: Mapping[str, Vocabulary]
) -> Iterator[tuple[Level, IntArray]]:
    """Every level with the code (m,) of each record; what cells merge a column's values to, behind these."""
    shown = {column: text for column, level, text in levels if level in (OWN, RELEASED)}
    for column, level, text in levels:
        values, codes = read[text]
        yield Level(column, level, values), codes
        if column in inside and text == shown[column]:
            merged = _merged(inside[column], values)
            if (merged != RARE).any():
                yield Level(column, MERGED, inside[column].values), merged[codes]


def _merged(column: Vocabulary, texts: Sequence[str | None]) -> IntArray:
    """The code of what each text (v,) is released as, RARE where nothing else is released as that."""
    places = column.places(texts).astype(np.int64)
    several = np.bincount(places[places >= 0], minlength=len(column)) > 1
    return np.where((places >= 0) & several[places], places, RARE)


def _read(engine: Engine, statement: str) -> dict[str, Texts]:
    """Every column of a query by its name; of n, which is a number, the numbers themselves."""
    import pyarrow as pa

    batches = list(engine.stream(statement, _BATCH))
    whole = pa.Table.from_batches(batches).combine_chunks()
    numbers = np.asarray(whole.column("n").to_numpy(), np.int64)
    return {name: _texts(whole.column(name)) for name in whole.column_names if name != "n"} | {"n": ((), numbers)}


def _texts(column: pa.ChunkedArray) -> Texts:
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    found = encoded.dictionary.to_pylist()
    texts = tuple(value for (value,) in Alphabet.of(("text",), [(text,) for text in found]).values)
    place = {text: code for code, text in enumerate(texts)}
    return texts, np.array([place[text] for text in found], np.int64)[encoded.indices.to_numpy()]


def _placed(columns: Sequence[Texts], alphabet: Alphabet) -> IntArray:
    """The code (m,) of each record's value in an alphabet, -1 where it is not one of them."""
    known = {value: code for code, value in enumerate(alphabet.values)}
    rows, place = np.unique(np.column_stack([codes for _, codes in columns]), axis=0, return_inverse=True)
    values = [tuple(texts[code] for (texts, _), code in zip(columns, row, strict=True)) for row in rows.tolist()]
    return np.array([known.get(value, -1) for value in values], np.int64)[place.ravel()]
