"""The data file: an export of protocol.json and released.json, written again; and read back by itself.

Where rows have names, it is one of its own keys, too: released.json tells how often each answer was given, and not to
whom. That the keys stand beside the answers that were drawn for them is what no file can show.
"""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.rows import named
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.cells.columns import Codes as Narrow
from funnel.data.convert import protocols_of
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol, UnaryProtocol
from funnel.errors import FunnelError
from funnel.format.cells import NAME as CELLS
from funnel.format.protocol import Sets, Weights
from funnel.format.released import NAME
from funnel.release.export import export, inside, text_of
from funnel.release.filled import Rows, export_filled, filled
from funnel.release.named import export_named
from funnel.release.weights import row_weights

if TYPE_CHECKING:
    import pyarrow as pa

Codes = Callable[[slice], IntArray]
CLAIM = "data-export"
TITLE = "the data file is what its writer makes of the released labels: those rows, in order, and nothing beside them"
PRIVATE = False
_WRITERS = {"parquet": "pyarrow", "csv": "duckdb"}


def check(opened: Release) -> str | Unchecked:
    """Equal bytes leave no room for anything else; another version of the writer may pack the same rows otherwise.

    Raises Broken.
    """
    manifest, path = opened.manifest, opened.release / opened.manifest.data
    if opened.staged and not manifest.identify:
        return Unchecked("whoever has just written the table has no need to write it again")
    rows = _read_back(opened, path)
    if opened.staged:
        return f"{rows} rows read back, each with a key of its own"
    with tempfile.TemporaryDirectory(prefix="funnel-audit-") as folder:
        again = Path(folder) / path.name
        try:
            _write_again(opened, path, again)
        except (FunnelError, ValueError, IndexError) as error:
            raise Broken(path.name, "the table cannot be written again", "released rows", str(error)) from None
        same = filecmp.cmp(path, again, shallow=False)
    if same:
        named = ", each with a key of its own" if manifest.identify else ""
        return f"{rows} rows read back{named}, and the same bytes when written again"
    from importlib.metadata import version

    writer = _WRITERS[manifest.format_of_data]
    told, own = manifest.versions.get(writer), version(writer)
    if told != own:
        return Unchecked(f"{rows} rows read back; only {writer} {told} can tell what its bytes hold beside them")
    what = "the file is not what its writer makes of its rows, so it may say more than they do"
    raise Broken(path.name, what, f"the bytes that {writer} {own} writes", "other bytes")


def _write_again(opened: Release, path: Path, again: Path) -> None:
    """The table as its writer writes it. Raises FunnelError, ValueError, Broken."""
    protocols, form = protocols_of(opened.protocol), opened.manifest.format_of_data
    keys, locked = opened.manifest.identify, opened.manifest.locked is not None
    if opened.wide:
        rows = _rows(opened, path) if keys else None
        export_filled(protocols, opened.released, opened.wide, form, again, keys, rows, locked=locked)
    elif keys:
        _, batches = _columns(opened, path)
        export_named(protocols, opened.released, keys, named(opened, batches, _labels(opened)), form, again)
    else:
        export(protocols, opened.released, form, again)


def _rows(opened: Release, path: Path) -> Rows:
    """Keys and labels of a table with wide blocks, which say all else of it. Raises Broken."""
    names, batches = _columns(opened, path)
    keys = [key.name for key in opened.manifest.identify]
    told = keys + [name for one in opened.protocol.blocks for name in one.columns]
    labelled = (batch.select([names.index(name) for name in told]) for batch in batches)
    return Rows.of(named(opened, labelled, _labels(opened)), len(keys))


def _columns(opened: Release, path: Path) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The table's columns, which are the keys and those of the protocol, and its batches. Raises Broken."""
    names, batches = read_table(path, opened.manifest.format_of_data)
    protocols, locked = protocols_of(opened.protocol), opened.manifest.locked is not None
    weighed = row_weights(opened.wide, protocols, opened.rows, locked=locked)
    expected = [name for one in protocols for name in _names(one, opened, weighed)]
    keys = [key.name for key in opened.manifest.identify]
    for file, found, right in (
        (NAME, list(opened.released.columns), expected),
        (path.name, names, keys + expected),
    ):
        if found != right:
            raise Broken(file, "these are not the columns of the protocol", right, found)
    return names, batches


def _read_back(opened: Release, path: Path) -> int:
    """The number of rows: those released, in order, under their columns. Raises Broken."""
    place = 0
    names, batches = _columns(opened, path)
    keys = len(opened.manifest.identify)
    if keys and not opened.wide:
        return sum(batch.num_rows for batch in named(opened, batches, _labels(opened)))
    shown, rows = _shown(opened, path), opened.manifest.rows
    for batch in batches:
        here = slice(place, place + batch.num_rows)
        place += batch.num_rows
        if place > rows:
            break
        for name, column, (own, codes) in zip(names[keys:], batch.columns[keys:], shown, strict=True):
            if not _equal(column, own, codes(here)):
                raise Broken(path.name, f"{name} holds other values than were released", "those released", "others")
    if place != rows:
        raise Broken(path.name, "the table has another number of rows", rows, place)
    return place


def _names(protocol: AnyProtocol, opened: Release, weighed: Container[str]) -> list[str]:
    """The columns of one block in the table."""
    if isinstance(protocol, UnaryProtocol):
        return list(protocol.outputs.names)
    named, columns = bool(opened.manifest.identify), protocol.inputs.columns
    told = ((column, inside(column, opened.wide, named, weighed)) for column in columns)
    return [name for column, own in told for name in ([column] if own is None else [name for name, _ in own])]


def _shown(opened: Release, path: Path) -> list[tuple[Sequence[str | None], Codes]]:
    """For each column of the table its texts, and which of them some rows have. Raises Broken."""
    if opened.wide:
        try:
            rows = _rows(opened, path) if opened.manifest.identify else None
            locked = opened.manifest.locked is not None
            found = filled(protocols_of(opened.protocol), opened.released, opened.wide, rows, locked=locked)
        except (FunnelError, ValueError, IndexError) as error:
            raise Broken(CELLS, "the labels cannot be filled in", "labels of these cells", str(error)) from None
        return [(one.values, partial(_of_rows, one.codes)) for one in found]
    ends = np.cumsum(opened.rows[:, -1])

    def distinct(rows: slice) -> IntArray:
        return np.searchsorted(ends, np.arange(rows.start, rows.stop), side="right")

    return [(texts, distinct) for texts in _labels(opened)]


def _of_rows(codes: IntArray | Narrow, rows: slice) -> IntArray:
    return np.asarray(codes[rows], np.int64)


def _equal(column: pa.Array, labels: Sequence[str | None], which: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    """Whether a column of a file holds, as text, the label of each of these rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    expected = pa.array(labels, pa.string()).take(pa.array(which))
    found = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if not pa.types.is_string(found.type):
        expected = pc.cast(expected, found.type)
    return bool(found.equals(expected))


def _labels(opened: Release) -> list[list[str | None]]:
    """For each column of the table its texts, one for each distinct released row."""
    found: list[list[str | None]] = []
    for block, codes in zip(opened.protocol.blocks, opened.rows.T[:-1].tolist(), strict=True):
        found += _of_weights(block, codes) if isinstance(block, Weights) else _of_sets(block, codes)
    return found


def _of_weights(block: Weights, codes: list[int]) -> list[list[str | None]]:
    return [[block.outputs[y][part] for y in codes] for part in range(len(block.columns))]


def _of_sets(block: Sets, codes: list[int]) -> list[list[str | None]]:
    """A set has value x at bit a-1-x of its code."""
    a = len(block.inputs)
    held = [[code >> (a - 1 - x) & 1 for x in range(a)] for code in codes]
    if block.form == "bits":
        return [[str(one[x]) for one in held] for x in range(a)]
    texts = [text_of(value) for value in block.inputs]
    return [[f"[{','.join(text for text, has in zip(texts, one, strict=True) if has)}]" for one in held]]


def read_table(path: Path, form: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The columns of a data file, and its rows in order. Raises Broken."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if form == "parquet":
            file = pq.ParquetFile(path)
            if file.metadata.metadata:
                raise Broken(path.name, "the file has metadata of its own", "none", sorted(file.metadata.metadata))
            return list(file.schema_arrow.names), file.iter_batches(1 << 18)
        told = duckdb.connect(":memory:").read_csv(
            str(path),
            header=True,
            all_varchar=True,
            delimiter=",",
            quotechar='"',
            escapechar='"',
            allow_quoted_nulls=False,  # an empty text stands in quotes, a missing value does not
        )
        return list(told.columns), iter(told.to_arrow_table().to_batches(1 << 18))
    except (pa.ArrowException, duckdb.Error, OSError) as error:
        raise Broken(path.name, "the table cannot be read", form, str(error)) from None

