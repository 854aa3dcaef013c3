"""CSV files, sniffed, or as the policy says where sniffing is wrong."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, islice
from pathlib import Path
from typing import IO

import duckdb

from funnel.engine.sources.base import HEADED, TROUBLE, check_names, empty, is_empty, refused, unreadable
from funnel.engine.sources.files import Files, check_folders, read_of
from funnel.engine.sql import listed, literal
from funnel.errors import SourceError

ENDINGS = tuple(f"{name}{packed}" for name in (".csv", ".tsv") for packed in ("", ".gz", ".zst"))
_LINE = 1 << 20
"""Characters of a line that are looked at."""
_DELIMITERS = ",;\t|"
"""Of which one most likely separates the fields."""
_QUOTE = '"'
"""What fields stand in that hold what separates them."""
_APOSTROPHE = "'"
_COMMENT = "#"
"""What lines begin with that may be none of the table."""
_LOOKED = 100
"""Lines that tell whether the first one holds names."""


@dataclass(frozen=True)
class Dialect:
    """How a CSV is written where it is not for the engine to find out; None: it is."""

    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    names: tuple[str, ...] | None = None

    @property
    def has_header(self) -> bool:
        """Whether the first line holds names; where names are given and nothing is said, it does not."""
        return self.names is None if self.header is None else self.header

    def options(self) -> list[str]:
        """What DuckDB is told."""
        found = [f"header = {str(self.has_header).lower()}"]
        if self.names is not None:
            found.append(f"names = [{listed(map(literal, self.names))}]")
        if self.delimiter is not None:
            found.append(f"delim = {literal(self.delimiter)}")
        if self.decimal is not None:
            found.append(f"decimal_separator = {literal(self.decimal)}")
        return found


@dataclass(frozen=True)
class Text(Files):
    """Tables of texts, whose types are a guess."""

    dialect: Dialect = Dialect()

    @property
    def is_text(self) -> bool:
        """They are."""
        return True

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The SQL that reads the table, with the columns `texts` as the text that stands there."""
        # The whole file decides the types: a sample would let the first odd value break a nightly run. Only
        # numbers are guessed; dates and booleans would be rewritten into another spelling.
        options = ["sample_size = -1", "auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR']"]
        if texts:
            kept = listed(f"{literal(name)}: 'VARCHAR'" for name in texts)
            options.append(f"types = {{{kept}}}")
        return self._call("read_csv", [*self._told, *options])

    @property
    def as_texts(self) -> str:
        """The SQL that reads it in one pass: every column as the text that stands there."""
        return self._call("read_csv", [*self._told, "all_varchar = true"])

    @cached_property
    def _told(self) -> list[str]:
        """What DuckDB is told of the dialect: also that apostrophes are no quotes, and that no record is a comment.

        Left to find out, it may take an apostrophe that a field begins with for a quote, so that all lines up to the
        next one are one record, and leave out records that begin with `#`.
        """
        told, quotes, commented = self.dialect.options(), set[str](), True
        with duckdb.connect() as connection:
            for file in self.files:
                if is_empty(file):
                    raise empty(file)
                asked = listed([literal(str(file)), *told, "sample_size = -1"])
                found = connection.execute(f"SELECT Quote, Comment, Delimiter, len(Columns) FROM sniff_csv({asked})")
                quote, comment, delimiter, width = found.fetchall()[0]
                quotes.add(quote if quote in (_QUOTE, _APOSTROPHE) else "")
                commented &= comment != _COMMENT or not self._has_record(file, delimiter, width)
        if quotes != {_QUOTE, ""}:  # else quotes are letters in some files, and each is for DuckDB to find out
            told.append(f"quote = {literal('' if quotes == {''} else _QUOTE)}")
        return told if commented else [*told, "comment = ''"]

    def _has_record(self, file: Path, delimiter: str, width: int) -> bool:
        """Whether a line that seems to be a comment, and does not stand above the names, has the table's fields."""
        with opened(file) as handle:
            lines = iter(lambda: handle.readline(_LINE), "")
            records = dropwhile(_is_comment, lines) if self.dialect.has_header else lines
            return any(_is_comment(line) and line.count(delimiter) + 1 >= width for line in records)

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise SourceError for names that cannot be used, a first line that holds none, and lines of other widths."""
        if self.dialect.names is not None:
            check_names(self.dialect.names, self.name, HEADED)
            self._check_widths(connection)
            self._check_skipped(connection)
            check_folders(connection, dict.fromkeys(self.files, self.dialect.names), self._texts_of)
            return
        widths, known = set[int](), dict[Path, list[str]]()
        for file in self.files:
            if not (names := self._header(connection, file)):
                raise empty(file)
            if self.dialect.header is None:
                _check_headed(names, file)
            check_names(names, file, HEADED)
            known[file] = names
            widths.add(len(names))
        check_folders(connection, known, self._texts_of)
        found = len(connection.execute(f"DESCRIBE SELECT * FROM {self.as_texts}").fetchall())
        if found == 1 or 1 in widths:  # sniffed by something else than what separates the names
            self._check_fields()
        self._check_skipped(connection)

    def _texts_of(self, file: Path, option: str) -> str:
        """The SQL that reads one file, every column as the text that stands there."""
        return read_of("read_csv", file, *self._told, "all_varchar = true", option)

    def is_headed(self) -> bool:
        """Whether the first line holds words over numbers, or nothing at all. Raises SourceError."""
        try:
            with duckdb.connect() as connection:
                first, *others = self._lines(connection, self.files[0], _LOOKED) or [[]]
        except TROUBLE as error:
            raise unreadable(self, error) from None
        below = [[one[place] for one in others if place < len(one) and one[place]] for place in range(len(first))]
        words = (name and not _is_number(name) for name in first)
        return not any(first) or any(
            word and under and all(map(_is_number, under)) for word, under in zip(words, below, strict=True)
        )

    def _header(self, connection: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
        """The names in the first line, as they stand there."""
        return next(iter(self._lines(connection, file, 1)), [])

    def _lines(self, connection: duckdb.DuckDBPyConnection, file: Path, most: int) -> list[list[str]]:
        """The fields of the first lines as they stand there; empty lines are none."""
        told = [one for one in self._told if one.startswith(("delim ", "quote "))]
        asked = f"SELECT Delimiter, Quote FROM sniff_csv({listed([literal(str(file)), *told])})"
        delimiter, quote = connection.execute(asked).fetchone() or (",", '"')
        quote = quote if len(quote or "") == 1 and quote.isprintable() else '"'
        with opened(file) as handle:
            lines = (line for line in iter(lambda: handle.readline(_LINE), "") if line.strip("\r\n"))
            return list(islice(csv.reader(lines, delimiter=delimiter or ",", quotechar=quote), most))

    def _check_widths(self, connection: duckdb.DuckDBPyConnection) -> None:
        """As many names as the first line has fields."""
        names = self.dialect.names or ()
        for file in self.files:
            row = self._header(connection, file)
            if row and len(row) != len(names):
                said = f"{len(names):,} names are given (`source.csv.names`) and the first line has {len(row):,} fields"
                raise SourceError("source-header", said, where=str(file), advice="Name every column, in order.")

    def _check_skipped(self, connection: duckdb.DuckDBPyConnection) -> None:
        """DuckDB begins where the lines that fit together do: what it leaves out above may be a title, not records."""
        for file in self.files:
            asked = listed([literal(str(file)), *self._told])
            (skipped,) = connection.execute(f"SELECT SkipRows FROM sniff_csv({asked})").fetchone() or (0,)
            if not skipped:
                continue
            with opened(file) as handle:
                lines = list(islice(iter(lambda: handle.readline(_LINE), ""), skipped))
            if any(set(line) & set(_DELIMITERS) and not _is_comment(line) for line in lines):
                said = f"the first {skipped:,} lines have other fields than those below, and would be left out"
                advice = "Give every line the same number of fields, and take out what stands above the columns' names."
                raise refused(said, file, advice)

    def _check_fields(self) -> None:
        """A CSV that reads as one column while its header holds several: say which line breaks the table."""
        for file in self.files:
            with opened(file) as handle:
                header = handle.readline(_LINE)
                delimiter = max(_DELIMITERS, key=header.count)
                width = header.count(delimiter) + 1
                rows = csv.reader(handle, delimiter=delimiter)
                for row in rows if width > 1 else ():
                    if row and len(row) != width:
                        said = f"line {rows.line_num + 1} has {len(row)} fields, the header has {width}"
                        advice = "Give every line the same number of fields, and quote values that hold a delimiter."
                        raise refused(said, file, advice)


def _check_headed(names: Sequence[str], file: Path) -> None:
    """Nobody names a column by a number: a first line with one holds a record. Raises SourceError."""
    number = next((name for name in names if _is_number(name)), None)
    if number is not None:
        raise SourceError(
            "source-header",
            "the first line holds a number, so that it seems to be a record and not the columns' names",
            where=str(file),
            advice="Name the columns: `csv: {header: false, names: [...]}` under `source`, or `--names` of `funnel "
            "init`; or, where a column is named by a number, say `csv: {header: true}`.",
        )


def _is_comment(line: str) -> bool:
    return line.startswith(_COMMENT)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def opened(file: Path) -> IO[str]:
    """A CSV file as text, unpacked."""
    import pyarrow as pa

    packed = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower())
    return io.TextIOWrapper(pa.input_stream(str(file), compression=packed), encoding="utf-8-sig", newline="")
