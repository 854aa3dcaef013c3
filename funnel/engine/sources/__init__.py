"""Where tables are. A source is found by what the policy calls it; what kind it is, nobody else asks."""

from __future__ import annotations

import glob
import re
from pathlib import Path

import duckdb

from funnel.engine.sources import database, lines, parquet, text
from funnel.engine.sources.base import TROUBLE, Source, changed, missing, refused, unreadable
from funnel.engine.sources.database import Database
from funnel.engine.sources.files import Files, matches, stamp_of
from funnel.engine.sources.lake import delta, iceberg, is_delta, is_iceberg
from funnel.engine.sources.lines import Lines
from funnel.engine.sources.parquet import Parquet
from funnel.engine.sources.text import Dialect, Text

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
    if re.search(r"[\ud800-\udfff]", str(path.absolute())):
        said = "the path of the table holds bytes that are no text, and the engine takes none"
        raise refused(said, table, "Rename the folder or the file that is not named in UTF-8.")
    if is_delta(path):
        return delta(path)
    if is_iceberg(path):
        return iceberg(path)
    pattern = _inside(path) if path.is_dir() else str(path)
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


def _inside(folder: Path) -> str:
    """The pattern of the one kind of files that a folder of partitions holds. Raises SourceError."""
    every = [*folder.rglob("*")]
    names = {one.name.lower() for one in every if one.is_file() and not _aside(one, folder)}
    found = {ending for ending in ENDINGS if any(name.endswith(ending) for name in names)}
    if len(found) != 1:
        held = f"files of several kinds: {', '.join(sorted(found))}" if found else "no table"
        raise refused(f"the folder holds {held}", folder, "Name a pattern, such as folder/**/*.parquet.")
    (ending,) = found
    for one in every:
        _check_inside(one, folder, ending)
    return f"{glob.escape(str(folder))}/**/*{ending}"


def _check_inside(one: Path, folder: Path, ending: str) -> None:
    """Refuse what the pattern reads and is none of the table, or leaves out and may be some. Raises SourceError."""
    said = f"the folder holds {one.relative_to(folder)}"
    if _aside(one, folder):
        if one.name.endswith(ending):
            advice = "Run again when it is done, or name a pattern that leaves it out."
            raise refused(f"{said}, such as writers leave while they are at work", folder, advice)
    elif one.is_dir():
        if one.is_symlink():
            advice = f"Have the folder itself there, or name a pattern: folder/**/*{ending} goes through no links."
            raise refused(f"{said}, a link to a folder, and what lies there would be left out", folder, advice)
    elif one.name.lower().endswith(ending) and not one.name.endswith(ending):
        raise refused(f"{said}, and files are read whose names end in {ending}", folder, "Rename it.")


def _aside(file: Path, folder: Path) -> bool:
    """Whether writers of lakes left this for themselves: names in _ and . are not part of a table."""
    return any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)


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
