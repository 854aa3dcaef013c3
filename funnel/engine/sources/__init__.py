"""Where tables are. A source is found by what the policy calls it; what kind it is, nobody else asks."""

from __future__ import annotations

import glob
from pathlib import Path

import duckdb

from funnel.engine.sources import database, lines, parquet, text
from funnel.engine.sources.base import TROUBLE, Source, changed, missing, refused, unreadable
from funnel.engine.sources.database import Database
from funnel.engine.sources.files import Files, matches, stamp_of
from funnel.engine.sources.folders import pattern_of
from funnel.engine.sources.lake import delta, iceberg, is_delta, is_iceberg
from funnel.engine.sources.lines import Lines
from funnel.engine.sources.parquet import Parquet
from funnel.engine.sources.text import Dialect, Text
from funnel.text import is_text

_KINDS: tuple[tuple[tuple[str, ...], type[Files]], ...] = (
    (parquet.ENDINGS, Parquet), (lines.ENDINGS, Lines), (text.ENDINGS, Text),
)  # fmt: skip
ENDINGS = tuple(ending for endings, _ in _KINDS for ending in endings)


def find(table: str | Path, directory: Path = Path(), dialect: Dialect | None = None) -> Source:
    """The table that a policy in `directory` names. Raises SourceError when it is not there, or of no known kind."""
    table = str(table)
    if table.partition("://")[2]:
        return _remote(table)
    stem, _, inside = table.rpartition("#")
    if inside and stem.lower().endswith(database.ENDINGS):
        return _database(table, directory / stem, inside)
    path = directory / table
    if not is_text(str(path.absolute())):
        said = "the path of the table holds bytes that are no text, and the engine takes none"
        raise refused(said, table, "Rename the folder or the file that is not named in UTF-8.")
    if is_delta(path):
        return delta(path)
    if is_iceberg(path):
        return iceberg(path)
    if path.is_dir():
        pattern = pattern_of(path, ENDINGS)
    elif path.is_file():
        pattern = glob.escape(str(path)) if glob.has_magic(str(path)) else str(path)
    else:
        pattern = str(Path(glob.escape(str(directory))) / table)
    files = matches(pattern)
    if not files:
        raise missing(str(path))
    kind = next((kind for endings, kind in _KINDS if pattern.lower().endswith(endings)), None)
    if kind is Text:
        return Text(str(path), pattern, files, stamp_of(files), dialect or Dialect())
    if kind is None:
        said = "the source is neither Parquet nor CSV nor JSON lines, nor a table in a DuckDB file"
        advice = f"Its name must end in one of {', '.join(ENDINGS)}, or be that of a database with #table."
        raise refused(said, path, advice)
    return kind(str(path), pattern, files, stamp_of(files))


def _remote(address: str) -> Source:
    """The table at an address. Raises SourceError."""
    from funnel.engine.postgres import SCHEME
    from funnel.engine.sources.objects import objects
    from funnel.engine.sources.postgres import Postgres

    return Postgres.at(address) if address.startswith(f"{SCHEME}://") else objects(address)


def _database(table: str, file: Path, inside: str) -> Source:
    if not file.is_file():
        raise missing(str(file))
    return Database(f"{file}#{inside}", file, inside, stamp_of((file,)))


def describe(connection: duckdb.DuckDBPyConnection, source: Source, *, texts: bool = False) -> dict[str, str]:
    """Column names and DuckDB types; with `texts` a CSV is not read as a whole to find them, and all are texts.

    Raises SourceError when the table cannot be read or its header is unusable.
    """
    try:
        reader = source.as_texts if texts else source.reading()
        source.check_header(connection)
        rows = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    except TROUBLE as error:
        raise unreadable(source, error) from None
    return {str(row[0]): str(row[1]) for row in rows}


__all__ = ["TROUBLE", "Dialect", "Source", "changed", "describe", "find", "unreadable"]
