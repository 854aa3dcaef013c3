"""A table in folders, one for each value of a column, and in files of bounded size: `data/column=value/part-N`.

Or in such files alone, `data/part-N`: then each is a function of its own rows, and can be written wherever these are.

The names are those of Hive, which DuckDB, pyarrow, pandas and Spark read back: the column is in the folders alone, a
value is escaped as in a URL, a missing one has a name of its own. Folders stand in the order of their names, and rows
inside as they do in a table of one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import PurePosixPath
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa

from funnel.data import Alphabet
from funnel.data.joint import IntArray
from funnel.errors import PlanError

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""The name that stands for a missing value."""
FIRST = "part-0"
LONGEST = 255
"""Bytes of a name that file systems take."""
_FAR = re.compile(r"\d{5,}-\d\d-\d\d|-\d+-\d\d-\d\d|\d+-\d\d-\d\d.*\(BC\)$")
"""Dates that some readers of a folder's name cannot read."""
MOST = 10_000
"""Files of a release: more are slow to read, and to look at."""


def folder(column: str, value: str | None) -> str:
    """The name of the folder of the rows that have this value."""
    return f"{escaped(column)}={MISSING if value is None else escaped(value)}"


def escaped(text: str) -> str:
    """A column or value as folders name it: ASCII without anything that a shell or a glob reads.

    Two dots are escaped as well: some readers of packages refuse every path in which they are. DuckDB takes a column's
    name as it stands here.
    """
    return quote(text, safe="").replace("..", "%2E%2E")


def value_of(file: str, column: str) -> str | None:
    """The value that all rows of such a file have. Raises ValueError where it is a file of another column."""
    named, _, value = PurePosixPath(file).parent.name.partition("=")
    if unquote(named) != column:
        raise ValueError(f"{file!r} is no file of {column!r}")
    return None if value == MISSING else unquote(value)


def in_order(files: Iterable[str]) -> list[str]:
    """Files of a table in the order of its rows."""

    def place(file: str) -> tuple[str, int, str]:
        path = PurePosixPath(file)
        return path.parent.name, len(path.name), path.name  # part-10 comes behind part-9

    return sorted(files, key=place)


def check_folders(column: str | None, most: int, blocks: Iterable[Alphabet], rows: int) -> None:
    """That so many rows, of values in these blocks, make files of `most` rows that can be written and read.

    Raises PlanError.
    """
    if column is None:
        if (files := -(-rows // most)) > MOST:
            said = f"{files:,} files of {most:,} rows"
            raise PlanError("partition", said, advice=f"Give a file more `rows`: {MOST:,} files are the most.")
        return
    own = [(block, block.columns.index(column)) for block in blocks if column in block.columns]
    values = {value[place] for block, place in own for value in block.values}
    files = len(values) + rows // most
    if files > MOST:
        few = "Partition by a column of fewer values" if len(values) > MOST // 2 else "Give a file more `rows`"
        said = f"in folders by {column} the table may have {files:,} files, {len(values):,} values of {rows:,} rows"
        raise PlanError("partition", said, advice=f"{few}: {MOST:,} files are the most.")
    for value in values:
        long = len(folder(column, value)) > LONGEST
        if long or value == MISSING or _FAR.match(value or ""):
            why = "names missing values" if value == MISSING else "is of no year from 1 to 9999, which readers know"
            why = f"needs more than the {LONGEST} bytes that a name may have" if long else why
            said = f"a value of {column} can be no name of a folder: it {why}"
            advice = "Give it another name (`groups`), or take another column."
            raise PlanError("partition", said, advice=advice, values=f"{(value or '')[:40]!r}")


def ranks(column: pa.Array) -> IntArray:
    """For each row the place of its folder, in the order of names, among the folders of the column (n,)."""
    texts, codes = _coded(column)
    names = [folder("", text) for text in texts]
    place = {name: rank for rank, name in enumerate(sorted(names))}
    return np.array([place[name] for name in names], np.int64)[codes]


def parts(batches: Iterable[pa.RecordBatch], column: str, rows: int) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Files without their suffix, and the rows of each: of batches in which rows of one folder stand together."""
    for (name, number), own in groupby(_pieces(batches, column, rows), key=lambda one: one[:2]):
        yield f"{name}/part-{number}", (batch for _, _, batch in own)


def _pieces(batches: Iterable[pa.RecordBatch], column: str, most: int) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Rows, the folder and the number of the file that they stand in."""
    current, number, room = "", 0, 0
    for batch in batches:
        place = batch.schema.get_field_index(column)
        texts, codes = _coded(batch.column(place))
        rest = batch.remove_column(place)
        starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
            if (name := folder(column, texts[codes[start]])) != current:
                current, number, room = name, 0, most
            while start < stop:
                if not room:
                    number, room = number + 1, most
                rows = min(room, stop - start)
                yield name, number, rest.slice(start, rows)
                start, room = start + rows, room - rows  # noqa: PLW2901


def _coded(column: pa.Array) -> tuple[list[str | None], IntArray]:
    """The distinct texts of a column, None at the end, and the place of each row's own (n,)."""
    import pyarrow.compute as pc

    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    own = coded.dictionary  # decimals as people write them: Arrow has the small ones as 1E-7
    plain = pa.types.is_decimal(own.type)
    texts = [*([f"{one:f}" for one in own.to_pylist()] if plain else own.cast(pa.string()).to_pylist()), None]
    return texts, np.asarray(pc.fill_null(coded.indices.cast(pa.int64()), len(texts) - 1).to_numpy(), np.int64)
