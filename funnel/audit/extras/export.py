"""The data file: an export of protocol.json and released.json, written again; and read back by itself.

Where rows have names, it is one of its own keys, too: released.json tells how often each answer was given, and not to
whom. That the keys stand beside the answers that were drawn for them is what no file can show.

A table in several files without folders is looked at file by file: each shows by itself that its rows belong there, and
what they are. So they may be looked at by several processes, which tell what was given how often, and of which bytes.
"""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.audit.extras.base import Release
from funnel.audit.extras.reading import Answers, parts_of, read_file, read_table
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.cells.cells import Cells
from funnel.cells.columns import Codes as Narrow
from funnel.data.convert import protocols_of
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol, UnaryProtocol
from funnel.errors import FunnelError
from funnel.files import sha256_file
from funnel.format.cells import NAME as CELLS
from funnel.format.manifest import Partition
from funnel.format.released import NAME, with_count
from funnel.format.reported import Published
from funnel.release.export import Target, Window, connected, inside, shown_columns, typed
from funnel.release.filled import Filled, Rows, filled
from funnel.release.folders import ranks
from funnel.release.weights import row_weights
from funnel.release.written import in_table, of_part, window, write_data

Codes = Callable[[slice], IntArray]
File = tuple[int, str, str | None]
"""A file of the table: its number, its name, and the SHA-256 that is stated of it."""
Told = tuple[int, IntArray, IntArray]
"""How many rows a file has; and of the distinct released rows which ones were given there, and how often."""
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
    rows = _answered(opened, path) if stated.identify else None
    write_data(shown, protocols_of(opened.protocol), opened.wide, target, rows)


def answered(opened: Release, path: Path) -> Iterator[pa.RecordBatch]:
    """Rows of a table that have names: their keys k0, k1, … and the codes y0, y1, … of answers. Raises Broken."""
    return chain.from_iterable(batches for _, batches in _answered(opened, path))


def _answered(opened: Release, path: Path) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """These rows by the files of a table without folders, else all of them. Raises Broken."""
    files, seen = _files(opened, path), np.zeros(len(opened.rows), np.int64)
    if parts_of(opened.manifest) is None:
        names, batches = read_table(opened)
        files.check_columns(path.name, names)
        yield 0, files.answered(names, batches, seen)
    else:
        for number, name, _ in _listed(opened):
            yield number, files.answered(*files.read(name), seen, number)
    files.answers.check_given(seen)


def _read_back(opened: Release, path: Path) -> int:
    """The number of rows: those released, in order, under their columns. Raises Broken."""
    files, stated = _files(opened, path), opened.manifest
    keys = len(stated.identify)
    if (keys or opened.wide) and parts_of(stated) is not None:
        return _by_file(opened, files)
    if keys and not opened.wide:
        return sum(batch.num_rows for batch in answered(opened, path))
    names, batches = read_table(opened, by_file=True)
    files.check_columns(path.name, names)
    rows, told = in_table(opened.published), (batch.select(range(keys, len(names))) for batch in batches)
    _compare(path, names[keys:], told, _shown(opened, path), rows)
    return rows


def _by_file(opened: Release, files: Files) -> int:
    """As `_read_back`, file by file. Raises Broken."""
    several, rows, seen = _listed(opened), 0, np.zeros(len(opened.rows), np.int64)
    for one, told in zip(several, opened.each(files, several), strict=True):
        own, which, times = told or files.at(one)
        rows += own
        seen[which] += times
    if opened.manifest.identify:
        files.answers.check_given(seen)
    elif rows != opened.manifest.rows:
        raise Broken(opened.manifest.data, "the table has another number of rows", opened.manifest.rows, rows)
    return rows


def _listed(opened: Release) -> list[File]:
    """The files of a table without folders: those of rows with names may lack a number, which no key has."""
    stated, one = opened.manifest, opened.manifest.partition or Partition(None, 1)
    stem, form, files = f"{stated.data}/part-", f".{stated.format_of_data}", stated.files
    told = (int(name.removeprefix(stem).removesuffix(form)) for name in stated.tables)
    numbers = sorted(told) if stated.identify else range(one.parts(stated.rows))
    names = [f"{stem}{number}{form}" for number in numbers]
    return [(number, name, files[name].sha256 if name in files else None)
            for number, name in zip(numbers, names, strict=True)]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Files:
    """What every file of a table has to be; it can be sent to the processes that look at them. `names`: its columns."""

    folder: Path
    shown: Published
    wide: tuple[Cells, ...]
    names: list[str]
    answers: Answers

    def __call__(self, file: File) -> Told | None:
        """As `at`, of the bytes that are stated; None where anything is wrong, which whoever asks then looks at."""
        with suppress(Exception):
            return self.at(file) if sha256_file(self.folder / file[1]) == file[2] else None
        return None

    def at(self, file: File) -> Told:
        """What a file holds. Raises Broken."""
        (part, name, _), stated, seen = file, self.shown.manifest, np.zeros(len(self.answers.rows), np.int64)
        keys, rows, own, among = len(stated.identify), 0, None, window(stated, part, stated.rows)
        if keys:
            batches = self.answered(*self.read(name), seen, part)
            if self.wide:
                own = Rows.of(batches, keys)
            else:
                rows = sum(batch.num_rows for batch in batches)
        if self.wide:
            rows = among[1] - among[0] if own is None else len(own.codes)
            columns = _filled(self.shown, of_part(self.wide, part), own, among)
            values = _values(self.folder / name, stated.format_of_data, columns)
            found = [(own, partial(_of_rows, one.codes, None)) for own, one in zip(values, columns, strict=True)]
            told = (batch.select(range(keys, len(self.names))) for batch in self.read(name)[1])
            _compare(Path(name), self.names[keys:], told, found, rows)
        which = np.flatnonzero(seen)
        return rows, which, seen[which]

    def read(self, name: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
        """The columns of a file, which are those of the table, and its rows in order. Raises Broken."""
        names, batches = read_file(self.folder / name, self.shown.manifest.format_of_data)
        self.check_columns(name, names)
        return names, batches

    def check_columns(self, file: str, names: list[str]) -> None:
        """These are the columns of the table: keys and those of the protocol. Raises Broken."""
        if names != self.names:
            raise Broken(file, "these are not the columns of the protocol", self.names, names)

    def answered(
        self, names: list[str], batches: Iterable[pa.RecordBatch], seen: IntArray, part: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Keys and codes of rows in the table's columns, as `Answers.read`. Raises Broken."""
        if self.wide:  # labels say all else of a row
            keys = [key.name for key in self.shown.manifest.identify]
            told = keys + [name for one in self.shown.protocol.blocks for name in one.columns]
            batches = (batch.select([names.index(name) for name in told]) for batch in batches)
        return self.answers.read(batches, seen, part)


def _files(opened: Release, path: Path) -> Files:
    """What is known of the table's files from the other ones. Raises Broken."""
    protocols, locked = protocols_of(opened.protocol), opened.manifest.locked is not None
    weighed = row_weights(opened.wide, protocols, opened.rows, locked=locked)
    expected = [name for one in protocols for name in _names(one, opened, weighed)]
    if (found := list(opened.released.columns)) != expected:
        raise Broken(NAME, "these are not the columns of the protocol", expected, found)
    names = [key.name for key in opened.manifest.identify]
    names += with_count(expected, (), counted=_counted(opened))[0]
    stated, labels = opened.manifest.without_files(), _labels(opened)
    shown = replace(opened.published, manifest=stated)
    return Files(path.parent, shown, opened.wide, names, Answers(stated, distinct_rows(opened), labels))


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
    named = bool(opened.manifest.identify)
    told = ((column, inside(column, opened.wide, named, weighed)) for column in _own_names(protocol))
    return [name for column, own in told for name in ([column] if own is None else [name for name, _ in own])]


def _own_names(protocol: AnyProtocol) -> Sequence[str]:
    """The columns of its answers: of sets as they are released, of cells one for all that stands for it."""
    return protocol.outputs.names if isinstance(protocol, UnaryProtocol) else protocol.inputs.columns


def _shown(opened: Release, path: Path) -> list[tuple[pa.Array, Codes]]:
    """For each column of the table its values, and which of them some rows have. Raises Broken."""
    if opened.wide:
        keys = len(opened.manifest.identify)
        rows = Rows.of(answered(opened, path), keys) if keys else None
        found = _filled(opened.published, opened.wide, rows)
        order, values = _order(opened, found), _values(path, opened.manifest.format_of_data, found)
        return [(own, partial(_of_rows, one.codes, order)) for own, one in zip(values, found, strict=True)]
    labels, times = _labels(opened), distinct_rows(opened)[:, -1]
    if _counted(opened):
        return [(one, _each) for one in (*labels, pa.array(times))]
    ends = np.cumsum(times)

    def distinct(rows: slice) -> IntArray:
        return np.searchsorted(ends, np.arange(rows.start, rows.stop), side="right")

    return [(one, distinct) for one in labels]


def _filled(
    shown: Published, wide: Sequence[Cells], rows: Rows | None, among: Window | None = None
) -> tuple[Filled, ...]:
    """Columns of filled rows. Raises Broken."""
    locked = shown.manifest.locked is not None
    try:
        return filled(protocols_of(shown.protocol), shown.released, wide, rows, locked=locked, window=among)
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
    """The columns of the table, a value for each distinct released row, in the order of the table. Raises Broken."""
    stated, protocols = opened.manifest, protocols_of(opened.protocol)
    kinds = dict(zip(opened.released.columns, opened.released.types, strict=True))
    names = [name for one in protocols for name in _own_names(one)]
    texts = shown_columns(protocols, distinct_rows(opened)[:, :-1])
    asked = [(name, kinds[name], own) for name, own in zip(names, texts, strict=True) if name in kinds]
    there = _in_table(opened.release / stated.data, stated.format_of_data, asked)
    # Cells of rows without names are in no column of the table.
    return [there.get(name, own) for name, own in zip(names, texts, strict=True)]


def _values(path: Path, form: str, columns: Sequence[Filled]) -> list[pa.Array]:
    """What stands in each filled column, by its codes. Raises Broken."""
    asked = [(one.name, one.type, pa.array(one.values, pa.string())) for one in columns]
    return list(_in_table(path, form, asked).values())


def _in_table(path: Path, form: str, columns: Sequence[tuple[str, str, pa.Array]]) -> dict[str, pa.Array]:
    """Labels of columns (name, type) as a table has them: in its type, and in a text file as what is written of that.

    A label has one spelling whatever the type: of 0.10 with two decimals it is 0.1, and no other reader of dates
    knows those before the year 1 or after 9999. Texts are what they are. Raises Broken.
    """
    found, name = dict[str, pa.Array](), ""
    try:
        with connected(path) as engine:
            for name, kind, labels in columns:
                found[name] = labels
                for asked in dict.fromkeys((kind, "VARCHAR")[: 1 + (form == "csv")]):
                    (found[name],) = typed(engine, pa.table({"v0": found[name]}), [name], [asked])
    except FunnelError as error:
        raise Broken(NAME, f"{name} is of a type that does not hold its labels", "another", str(error)) from None
    return found


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
