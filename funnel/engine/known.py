"""The records of a joint distribution by what somebody may know of their columns, read in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Alphabet, Joint
from funnel.data.finer import added_up, finer
from funnel.data.joint import IntArray
from funnel.engine.base import Engine
from funnel.format.known import Level

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 17


def with_known(
    engine: Engine, statement: str, levels: Sequence[tuple[str, str, str]], joint: Joint, minimum: int
) -> Joint:
    """The joint distribution, with the same records by what may be known of them.

    The statement gives texts under the plan's names s0, x0_0 and so on, and a count n. A level is a column, the level's
    name, and the text that it is. Values that fewer than `minimum` records share are no knowledge.
    """
    read = _read(engine, statement)
    counts = read.pop("n")[1]
    names = [[f"s{i}" for i in range(len(joint.secret.columns))]]
    names += [[f"x{j}_{i}" for i in range(len(block.columns))] for j, block in enumerate(joint.blocks)]
    alphabets = (joint.secret, *joint.blocks)
    placed = [_placed([read[name] for name in own], one) for own, one in zip(names, alphabets, strict=True)]
    codes = [read[text][1] for _, _, text in levels]
    rows, counts = added_up(np.column_stack([*placed, *codes]), counts)
    there = (rows[:, : len(placed)] >= 0).all(axis=1)
    named = [Level(column, level, read[text][0]) for column, level, text in levels]
    seen = finer(rows[there, : len(placed)], counts[there], named, rows[there, len(placed) :], minimum)
    return replace(joint, finer=seen)


Texts = tuple[tuple[str | None, ...], IntArray]
"""The distinct texts of a column in their natural order, and the place (m,) of each record's among them."""


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
