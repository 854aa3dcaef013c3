"""Released sets as columns: a list of values in one text, or 0 and 1 for each value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from funnel.data import Label
from funnel.data.joint import IntArray
from funnel.data.unary import Sets
from funnel.engine.base import Released
from funnel.engine.sql import identifier, listed
from funnel.errors import PlanError

_PART = 1 << 14
"""Sets whose lists are written at a time."""


def columns_of(sets: Sets, codes: IntArray) -> list[pa.Array]:
    """The columns of `sets.names` for sets with these codes (m,)."""
    if sets.form == "bits":
        return [pa.array(sets.holds(codes, x).astype(np.int8)) for x in range(len(sets.inputs))]
    texts = [text_of(value) for value in sets.inputs.values]
    parts = [codes[start : start + _PART] for start in range(0, len(codes), _PART)]
    lists = [_lists(texts, [sets.holds(part, x) for x in range(len(texts))]) for part in parts]
    return [pa.concat_arrays(lists) if lists else pa.array([], pa.string())]


def text_of(value: Label) -> str:
    """A value as JSON: a text or null; a list of them where the block has several columns."""
    return json.dumps(value[0] if len(value) == 1 else list(value), ensure_ascii=False, separators=(",", ":"))


def _lists(texts: Sequence[str], bits: Sequence[IntArray]) -> pa.Array:
    """JSON lists (m,) of the values whose bits (m,) are 1, in the order of the values."""
    import pyarrow.compute as pc

    opening, closing, nothing = map(pa.scalar, ("[", "]", ""))
    # Every part brings its comma: Arrow's join would drop rows of which it skips all parts.
    parts = [
        pc.if_else(pa.array(held.astype(bool)), pa.scalar(f",{text}"), nothing)
        for text, held in zip(texts, bits, strict=True)
    ]
    joined = pc.utf8_ltrim(pc.binary_join_element_wise(*parts, nothing), ",")
    return pc.binary_join_element_wise(opening, joined, closing, nothing)


def selection(columns: Sequence[str], types: Sequence[str], released: Released) -> str:
    """SQL: the columns of `distinct_rows` under the names and types that they are released with.

    `columns` and `types` are those of the public columns, in order; sets have names of their own.
    Raises PlanError where two released columns would have the same name to a reader that ignores case.
    """
    parts, place, first = list[str](), 0, 0
    names = list[str]()
    for alphabet in released.outputs:
        own = range(first, first + len(alphabet.columns))
        named = alphabet.names if isinstance(alphabet, Sets) else [columns[i] for i in own]
        kinds = [None] * len(named) if isinstance(alphabet, Sets) else [types[i] for i in own]
        for name, kind in zip(named, kinds, strict=True):
            parts.append(f"{f'CAST(v{place} AS {kind})' if kind else f'v{place}'} AS {identifier(name)}")
            place += 1
        names.extend(named)
        first += len(alphabet.columns)
    _refuse_equal(names)
    return f"SELECT {listed(parts)} FROM released"


def quoting(released: Released) -> str:
    """SQL: quotes around every list. Readers that guess a file's form look at its first rows, which may all be []."""
    lists = [
        name
        for sets in released.outputs
        if isinstance(sets, Sets) and sets.form == "set"
        for name in sets.names
    ]
    return f", FORCE_QUOTE ({listed(map(identifier, lists))})" if lists else ""


def _refuse_equal(names: Sequence[str]) -> None:
    repeated = [name for name, times in Counter(map(str.casefold, names)).items() if times > 1]
    if repeated:
        shown = next(name for name in names if name.casefold() == repeated[0])
        raise PlanError(
            "duplicate-column",
            f"two released columns would be named {shown!r}",
            advice="Write `release: set` under `mechanism`: then a block's values share one column.",
        )
