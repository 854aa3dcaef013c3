"""The data file: an export of protocol.json and released.json, written again; and read back by itself.

Where rows have names, it is one of its own keys, too: released.json tells how often each answer was given, and not to
whom. That the keys stand beside the answers that were drawn for them is what no file can show.
"""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.audit.extras.base import Release
from funnel.audit.extras.reading import named, parts_of, read_file, read_table
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.cells.cells import Cells
from funnel.cells.columns import Codes as Narrow
from funnel.data.convert import protocols_of
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol, UnaryProtocol
from funnel.engine.parts import by_part
from funnel.errors import FunnelError
from funnel.format.cells import NAME as CELLS
from funnel.format.manifest import Partition
from funnel.format.released import NAME, with_count
from funnel.release.export import Target, Window, inside, shown_columns
from funnel.release.filled import Filled, Rows, filled
from funnel.release.folders import ranks
from funnel.release.weights import row_weights
from funnel.release.written import in_table, of_part, window, write_data

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
    _tells(opened)
    if opened.staged:
        return f"{rows} rows read back, each with a key of its own"
    with tempfile.TemporaryDirectory(prefix="funnel-audit-") as folder:
        try:
            _write_again(opened, path, Path(folder) / path.name)
        except (FunnelError, ValueError, IndexError) as error:
            raise Broken(path.name, "the table cannot be written again", "released rows", str(error)) from None
        written = {one.relative_to(folder).as_posix() for one in Path(folder).rglob("*") if one.is_file()}
        same = written == {*manifest.tables} and all(
            filecmp.cmp(opened.release / one, Path(folder, one), shallow=False) for one in written
        )
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
    from funnel.report.catalogue import notes  # with all that sentences need

    shown, stated = opened.published, opened.manifest
    target = Target(again, stated.format_of_data, notes=notes(shown))
    rows = by_part(answered(opened, path)) if stated.identify else None
    write_data(shown, protocols_of(opened.protocol), opened.wide, target, rows)


def answered(opened: Release, path: Path) -> Iterator[pa.RecordBatch]:
    """Rows of a table that have names: their keys k0, k1, … and the codes y0, y1, … of answers. Raises Broken."""
    names, batches = _columns(opened, path)
    if opened.wide:  # labels say all else of a row
        keys = [key.name for key in opened.manifest.identify]
        told = keys + [name for one in opened.protocol.blocks for name in one.columns]
        batches = (batch.select([names.index(name) for name in told]) for batch in batches)
    return named(opened, batches, _labels(opened))


def _rows(opened: Release, path: Path) -> Rows:
    """Keys and labels of a table with wide blocks. Raises Broken."""
    return Rows.of(answered(opened, path), len(opened.manifest.identify))


def _columns(opened: Release, path: Path) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The table's columns, which are the keys and those of the protocol, and its batches. Raises Broken."""
    names, batches = read_table(opened, by_file=True)
    protocols, locked = protocols_of(opened.protocol), opened.manifest.locked is not None
    weighed = row_weights(opened.wide, protocols, opened.rows, locked=locked)
    expected = [name for one in protocols for name in _names(one, opened, weighed)]
    keys = [key.name for key in opened.manifest.identify]
    for file, found, right in (
        (NAME, list(opened.released.columns), expected),
        (path.name, names, [*keys, *with_count(expected, (), counted=_counted(opened))[0]]),
    ):
        if found != right:
            raise Broken(file, "these are not the columns of the protocol", right, found)
    return names, batches


def _read_back(opened: Release, path: Path) -> int:
    """The number of rows: those released, in order, under their columns. Raises Broken."""
    names, batches = _columns(opened, path)
    keys = len(opened.manifest.identify)
    if keys and not opened.wide:
        return sum(batch.num_rows for batch in named(opened, batches, _labels(opened)))
    if opened.wide and parts_of(opened.manifest) is not None:
        return _by_file(opened, path, names[keys:])
    rows, told = in_table(opened.published), (batch.select(range(keys, len(names))) for batch in batches)
    _compare(path, names[keys:], told, _shown(opened, path), rows)
    return rows


def _by_file(opened: Release, path: Path, names: Sequence[str]) -> int:
    """As `_read_back`, of rows that are filled in file by file."""
    stated, rows = opened.manifest, 0
    keys, own = len(stated.identify), stated.partition or Partition(None, 1)
    parts = by_part(answered(opened, path)) if keys else ((part, None) for part in range(own.parts(stated.rows)))
    for part, batches in parts:
        named = None if batches is None else Rows.of(batches, keys)
        among = window(stated, part, stated.rows)
        size = among[1] - among[0] if named is None else len(named.codes)
        found = [(pa.array(one.values, pa.string()), partial(_of_rows, one.codes, None))
                 for one in _filled(opened, of_part(opened.wide, part), named, among)]  # fmt: skip
        _, told = read_file(opened, f"{stated.data}/part-{part}.{stated.format_of_data}")
        shown = (batch.select(range(keys, keys + len(names))) for batch in told)
        _compare(path, names, shown, found, size)
        rows += size
    return rows


def _compare(
    path: Path, names: Sequence[str], batches: Iterable[pa.RecordBatch], shown: Sequence[tuple[pa.Array, Codes]],
    rows: int,
) -> None:  # fmt: skip
    """Batches of columns with these names are so many rows, and hold what is `shown`. Raises Broken."""
    place = 0
    for batch in batches:
        here = slice(place, place + batch.num_rows)
        place += batch.num_rows
        if place > rows:
            break
        for name, column, (own, codes) in zip(names, batch.columns, shown, strict=True):
            if not _equal(column, own, codes(here)):
                raise Broken(path.name, f"{name} holds other values than were released", "those released", "others")
    if place != rows:
        raise Broken(path.name, "the table has another number of rows", rows, place)


def _names(protocol: AnyProtocol, opened: Release, weighed: Container[str]) -> list[str]:
    """The columns of one block in the table."""
    if isinstance(protocol, UnaryProtocol):
        return list(protocol.outputs.names)
    named, columns = bool(opened.manifest.identify), protocol.inputs.columns
    told = ((column, inside(column, opened.wide, named, weighed)) for column in columns)
    return [name for column, own in told for name in ([column] if own is None else [name for name, _ in own])]


def _shown(opened: Release, path: Path) -> list[tuple[pa.Array, Codes]]:
    """For each column of the table its values, and which of them some rows have. Raises Broken."""
    if opened.wide:
        found = _filled(opened, opened.wide, _rows(opened, path) if opened.manifest.identify else None)
        order = _order(opened, found)
        return [(pa.array(one.values, pa.string()), partial(_of_rows, one.codes, order)) for one in found]
    labels, times = _labels(opened), distinct_rows(opened)[:, -1]
    if _counted(opened):
        return [(one, _each) for one in (*labels, pa.array(times))]
    ends = np.cumsum(times)

    def distinct(rows: slice) -> IntArray:
        return np.searchsorted(ends, np.arange(rows.start, rows.stop), side="right")

    return [(one, distinct) for one in labels]


def _filled(
    opened: Release, wide: Sequence[Cells], rows: Rows | None, among: Window | None = None
) -> tuple[Filled, ...]:
    """Columns of filled rows. Raises Broken."""
    locked = opened.manifest.locked is not None
    try:
        return filled(protocols_of(opened.protocol), opened.released, wide, rows, locked=locked, window=among)
    except (FunnelError, ValueError, IndexError) as error:
        raise Broken(CELLS, "the labels cannot be filled in", "labels of these cells", str(error)) from None


def distinct_rows(opened: Release) -> IntArray:
    """The distinct rows of released.json, in the order of a table that is made of them alone. Raises Broken."""
    folders, rows = opened.manifest.folders, opened.rows
    if folders is None or opened.manifest.identify or opened.wide:
        return rows
    shown = shown_columns(protocols_of(opened.protocol), rows[:, :-1])
    return rows[ranks(shown[opened.released.columns.index(folders)]).argsort(kind="stable")]


def _order(opened: Release, columns: Sequence[Filled]) -> IntArray | None:
    """The order of filled rows in folders; None where it is as they are."""
    folders = opened.manifest.folders
    if folders is None or opened.manifest.identify:
        return None
    one = columns[opened.released.columns.index(folders)]
    return ranks(pa.array(one.values, pa.string()))[one.codes].argsort(kind="stable")


def _counted(opened: Release) -> bool:
    """Whether the table has each distinct row once, and its count behind it."""
    return opened.manifest.rows_of_data == "counts"


def _each(rows: slice) -> IntArray:
    return np.arange(rows.start, rows.stop)


def _of_rows(codes: IntArray | Narrow, order: IntArray | None, rows: slice) -> IntArray:
    return np.asarray(codes[rows] if order is None else codes[order[rows]], np.int64)


def _equal(column: pa.Array, labels: pa.Array, which: IntArray) -> bool:
    """Whether a column of a file holds the label of each of these rows, in the type that it has there."""
    found = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return bool(found.equals(labels.take(pa.array(which)).cast(found.type)))


def _labels(opened: Release) -> list[pa.Array]:
    """The columns of the table, a value for each distinct released row, in the order of the table."""
    return shown_columns(protocols_of(opened.protocol), distinct_rows(opened)[:, :-1])


def _tells(opened: Release) -> None:
    """What each Parquet file of the table tells of itself are its columns. Raises Broken."""
    import pyarrow.parquet as pq

    if opened.manifest.format_of_data == "parquet":
        from funnel.report.catalogue import notes  # with all that sentences need

        told = notes(opened.published)
        expected = {key.encode(): value.encode() for key, value in told.items()}
        for file in opened.manifest.tables:
            found = pq.read_metadata(opened.release / file).metadata or {}
            if found != expected:
                raise Broken(file, "the file tells something else of itself", told, found)
