"""The released table as a file: an export of protocol.json and released.json, the same bytes whenever it is written."""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from funnel.cells.cells import Cells
from funnel.data import Label
from funnel.data.convert import grid
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol, Sets
from funnel.engine.sql import identifier, listed, literal, selection
from funnel.errors import PlanError
from funnel.files import write_error
from funnel.format.released import ReleasedFile, with_count
from funnel.release.folders import FIRST, parts, ranks
from funnel.release.weights import WEIGHT_TYPE, row_weights, weight_name
from funnel.text import bare

if TYPE_CHECKING:
    import duckdb

BATCH = 1 << 18
"""Rows of the table that are written at a time."""
LABEL_TYPE = "SMALLINT"
"""Of the number of a cell."""
_REFUSALS = {"no space": errno.ENOSPC, "too large": errno.EFBIG, "quota": errno.EDQUOT}
"""Words in errors that carry no number."""
_PART = 1 << 14
"""Sets whose lists are written at a time."""
Engine: TypeAlias = "Callable[[], duckdb.DuckDBPyConnection]"
"""Opened by whoever asks first: it gives columns their types, and writes CSV."""
Window = tuple[int, int]
"""Rows of a table by their places: the first, and where they end."""


@dataclass(frozen=True)
class Target:
    """Where a table goes, and how: `form` parquet or csv, into one file or, with `folders`, into that folder.

    `folders` are the column whose values they are of, and the rows of a file there at most. `notes` go inside, where a
    form has room for them.
    """

    path: Path
    form: str
    folders: tuple[str, int] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


def released_file(
    protocols: Sequence[AnyProtocol],
    columns: Sequence[str],
    types: Sequence[str],
    codes: IntArray,
    counts: IntArray,
    keys: Sequence[str] = (),
    cells: Sequence[Cells] = (),
    *,
    locked: bool = False,
    form: str = "parquet",
) -> ReleasedFile:
    """released.json: distinct rows of output codes (m, k), in order, with their counts (m,).

    `columns` and `types` are those of the public columns; sets have names of their own, and `cells` tell the columns
    inside wide blocks. `keys` are columns of the table that are not among these; `locked` as in `row_weights`.
    Raises PlanError where two released columns would have the same name to a reader that ignores case, or one a name
    that readers of a file in this `form` lose a part of: only the values in names of bits can come to that.
    """
    filled = {column.name for one in cells for column in one.columns}
    plain = iter([one for one in zip(columns, types, strict=True) if one[0] not in filled])
    rows = np.column_stack([codes, counts])
    weighed = row_weights(cells, protocols, rows, locked=locked)
    found = [one for protocol in protocols for one in _columns(protocol, plain, cells, bool(keys), weighed)]
    outputs = [one.outputs for one in protocols if isinstance(one.outputs, Sets) and one.outputs.form == "bits"]
    bits = {name: f"{'+'.join(one.columns)}=…" for one in outputs for name in one.names}
    _refuse_equal([*keys, *(name for name, _ in found)], bits)
    names, kinds = (tuple(part) for part in zip(*found, strict=True))
    if form == "csv":
        _refuse_unread(names, bits)
    return ReleasedFile("funnel-released/1", names, kinds, grid(rows))


def _columns(
    protocol: AnyProtocol,
    plain: Iterator[tuple[str, str]],
    cells: Sequence[Cells],
    named: bool,
    weighed: Container[str],
) -> Iterator[tuple[str, str]]:
    """Names and types of one block's columns, those that stand for themselves from `plain`."""
    outputs = protocol.outputs
    own = [
        (name, None if isinstance(outputs, Sets) else inside(name, cells, named, weighed))
        for name in outputs.columns
    ]
    told = [one for _, wide in own for one in ([next(plain)] if wide is None else wide)]
    if isinstance(outputs, Sets):
        told = [(name, "VARCHAR" if outputs.form == "set" else "TINYINT") for name in outputs.names]
    yield from told


def inside(
    name: str, cells: Sequence[Cells], named: bool, weighed: Container[str]
) -> list[tuple[str, str]] | None:
    """Names and types of the columns that a wide block's labels stand for, and of a weight where it is `weighed`.

    Where rows are `named` the label itself comes first: without it, nobody could tell that a row was filled in rightly.
    None for a column that stands for itself.
    """
    wide = next((one for one in cells if one.name == name), None)
    if wide is None:
        return None
    label = [(name, LABEL_TYPE)] if named else []
    weight = [(weight_name(name, len(cells)), WEIGHT_TYPE)] if name in weighed else []
    return label + [(column.name, column.type) for column in wide.columns] + weight


def export(
    protocols: Sequence[AnyProtocol],
    released: ReleasedFile,
    target: Target,
    *,
    counted: bool = False,
    window: Window | None = None,
) -> None:
    """Write the table of a release, or the rows of it that are in a window. Raises ReleaseError.

    Each distinct row stands as often as it was drawn, or (`counted`) once, with that number behind it. Arrow writes
    Parquet, because it repeats a dictionary's code without unpacking the value; DuckDB gives the columns their types,
    and writes CSV.
    """
    rows = np.array(released.rows, np.int64)
    shown, times = shown_columns(protocols, rows[:, :-1]), rows[:, -1]
    columns, types = with_count(released.columns, released.types, counted=counted)
    if counted:
        shown, times = [*shown, pa.array(times)], np.ones_like(times)
    texts = pa.table({f"v{i}": column for i, column in enumerate(shown)})
    with connected(target.path) as engine:
        distinct = typed(engine, texts, columns, types)
        if target.folders is not None:
            order = ranks(distinct[columns.index(target.folders[0])]).argsort(kind="stable")
            distinct, times = [column.take(pa.array(order)) for column in distinct], times[order]
        schema = pa.schema([(name, one.type) for name, one in zip(columns, distinct, strict=True)])
        batches = _batches(distinct, schema, np.cumsum(times), window)
        write_table(engine, protocols, schema, batches, target, statistics=counted)


def write_table(
    engine: Engine,
    protocols: Sequence[AnyProtocol],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    target: Target,
    *,
    statistics: bool = True,
) -> None:
    """Write batches as they come: the bytes depend on where they are cut. Rows of one folder come together.

    Least and largest values help a reader to pass over parts of a Parquet file. Of equal rows one after another they
    take Arrow as long to find as all else, and the file is small. Parquet has room for notes by key, too.
    """
    if target.folders is None:
        _write_file(engine, protocols, schema, batches, target, statistics=statistics)
        return
    own = schema.remove(schema.get_field_index(target.folders[0]))
    for name, rows in parts(batches, *target.folders):
        path = target.path / f"{name}.{target.form}"
        if path.stem == FIRST:  # a folder that is there already, under a name in other letters, is an error
            path.parent.mkdir(parents=True)
        _write_file(engine, protocols, own, rows, replace(target, path=path), statistics=statistics)


def _write_file(
    engine: Engine,
    protocols: Sequence[AnyProtocol],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    target: Target,
    *,
    statistics: bool,
) -> None:
    import pyarrow.parquet as pq

    if target.form == "parquet":
        with pq.ParquetWriter(
            target.path, schema, compression="zstd", store_schema=False, write_statistics=statistics
        ) as writer:
            writer.add_key_value_metadata(dict(target.notes))
            for batch in batches:
                writer.write_batch(batch)
        return
    connection = engine()
    connection.register("rows", pa.RecordBatchReader.from_batches(schema, batches))
    options = f"FORMAT csv, HEADER{_quoting(protocols)}"
    connection.execute(f"COPY (SELECT * FROM rows) TO {literal(str(target.path))} ({options})")


def typed(
    engine: Engine, texts: pa.Table, columns: Sequence[str], types: Sequence[str]
) -> list[pa.Array]:
    """Texts v0, v1, … (m,) in the types of the table, or what has a type as text; texts are dictionary-encoded."""
    found = texts.columns
    if {*types} != {"VARCHAR"} or not all(map(pa.types.is_string, texts.schema.types)):
        engine().register("released", texts)
        found = engine().sql(selection(columns, types)).to_arrow_table().columns
    whole = [column.combine_chunks() for column in found]
    return [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in whole]


@contextmanager
def connected(target: Path) -> Iterator[Engine]:
    """A connection that reaches the target's folder alone: names and types are from files, which may be others' work.

    To open one takes longer than to write most tables. What goes wrong inside is raised as a ReleaseError.
    """
    import duckdb

    with ExitStack() as stack:

        @cache
        def engine() -> duckdb.DuckDBPyConnection:
            connection = stack.enter_context(duckdb.connect(":memory:"))
            connection.execute(f"SET allowed_directories = [{literal(str(target.parent))}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            return connection

        try:
            yield engine
        except (duckdb.Error, OSError) as error:
            raise write_error(refused(str(error)), target.parent) from None


def refused(told: str) -> OSError:
    """What the disk said, by the words of DuckDB or of Python: its error number, and what that means."""
    number = re.search(r'"errno":"([0-9]+)"', told)
    named = (code for word, code in _REFUSALS.items() if word in told.lower())
    code = int(number[1]) if number else next(named, 0)
    return OSError(code, os.strerror(code) if code else told.splitlines()[0])


def text_of(value: Label) -> str:
    """A value in a list, as JSON: a text or null; a list of them where the block has several columns."""
    return json.dumps(value[0] if len(value) == 1 else list(value), ensure_ascii=False, separators=(",", ":"))


def shown_columns(protocols: Sequence[AnyProtocol], codes: IntArray) -> list[pa.Array]:
    """The columns of rows with these output codes (m, k), as texts; 0/1 columns for sets that are released as bits."""
    columns = list[pa.Array]()
    for protocol, code in zip(protocols, codes.T, strict=True):
        outputs = protocol.outputs
        if isinstance(outputs, Sets):
            columns += set_columns(outputs, code)
        else:
            columns += [values.take(pa.array(code)) for values in text_columns(outputs.values)]
    return columns


def text_columns(values: Sequence[Label]) -> list[pa.Array]:
    """The parts of values (m,), column by column."""
    return [pa.array(part, pa.string()) for part in zip(*values, strict=True)]


def set_columns(sets: Sets, codes: IntArray) -> list[pa.Array]:
    """The columns of `sets.names` for sets with these codes (m,)."""
    if sets.form == "bits":
        return [pa.array(sets.holds(codes, x).astype(np.int8)) for x in range(len(sets.inputs))]
    texts = [text_of(value) for value in sets.inputs.values]
    parts = [codes[start : start + _PART] for start in range(0, len(codes), _PART)]
    lists = [_lists(texts, [sets.holds(part, x) for x in range(len(texts))]) for part in parts]
    return [pa.concat_arrays(lists) if lists else pa.array([], pa.string())]


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


def _quoting(protocols: Sequence[AnyProtocol]) -> str:
    """SQL: quotes around every list. Readers that guess a file's form look at its first rows, which may all be []."""
    sets = [one.outputs for one in protocols if isinstance(one.outputs, Sets) and one.outputs.form == "set"]
    lists = [identifier(name) for one in sets for name in one.names]
    return f", FORCE_QUOTE ({listed(lists)})" if lists else ""


def _batches(
    columns: Sequence[pa.Array], schema: pa.Schema, ends: IntArray, window: Window | None
) -> Iterator[pa.RecordBatch]:
    """Row i of the columns (m,) once for each place below ends[i]; those of places in a window."""
    first, last = window or (0, int(ends[-1]))
    for start in range(first, last, BATCH):
        index = pa.array(places(ends, start, min(start + BATCH, last)))
        yield pa.record_batch([column.take(index) for column in columns], schema=schema)


def places(ends: IntArray, start: int, stop: int) -> IntArray:
    """Which row stands at each of the places start … stop-1, where row i ends before place ends[i]."""
    first, last = np.searchsorted(ends, [start, stop - 1], side="right")
    inside = np.clip(ends[first : last + 1], start, stop)
    return np.repeat(np.arange(first, last + 1), np.diff(inside, prepend=start))


def _refuse_equal(names: Sequence[str], bits: Mapping[str, str]) -> None:
    """Raises PlanError; it tells those of `bits` without people's values."""
    repeated = [name for name, times in Counter(map(str.casefold, names)).items() if times > 1]
    if repeated:
        shown = next(name for name in names if name.casefold() == repeated[0])
        raise PlanError(
            "duplicate-column",
            f"two released columns would be named {bits.get(shown, shown)!r}",
            advice="Write `release: set` under `mechanism`: then a block's values share one column.",
            values=repr(shown) if shown in bits else None,
        )


def _refuse_unread(names: Sequence[str], bits: Mapping[str, str]) -> None:
    """As `_refuse_equal`."""
    lost = next((name for name in names if name != bare(name)), None)
    if lost is not None:
        raise PlanError(
            "wrong-value",
            f"a released column would be named {bits.get(lost, lost)!r}: readers of CSV lose blanks around a name, and "
            "a carriage return in it",
            advice="Write `release: set` under `mechanism`, or `format: parquet` under `release`.",
            values=repr(lost) if lost in bits else None,
        )
