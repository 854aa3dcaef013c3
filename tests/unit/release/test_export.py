"""The table of a release: those rows, under those names and types, and the same bytes whenever it is written."""

from __future__ import annotations

import os
from dataclasses import replace
from errno import EDQUOT, EFBIG, ENOSPC

import duckdb
import numpy as np
import pytest

from funnel.data import Alphabet, Protocol, UnaryProtocol
from funnel.errors import PlanError, ReleaseError
from funnel.format import schema
from funnel.format.canonical import FormatError
from funnel.format.released import ReleasedFile
from funnel.release.export import Target, export, refused, released_file

X = Alphabet(("x",), (("a",), ('b,"c"',), (None,)))
N = Alphabet(("n",), (("-3",), ("20",)))
PLAIN = Protocol(X, X, 1, np.array([[[2, 1, 0]], [[0, 1, 0]], [[0, 0, 2]]]))
NUMBERS = Protocol(N, N, 0, np.array([[[1, 0]], [[0, 1]]]))
ROWS = np.array([[0, 1], [1, 0], [2, 1]]), np.array([2, 1, 3])


def written(protocols, table, form, folder, **options):
    path = folder / f"data.{form}"
    export(protocols, table, Target(path, form), **options)
    return path


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_each_row_stands_as_often_as_it_was_drawn_in_order(form, tmp_path):
    protocols = (PLAIN, NUMBERS)
    table = released_file(protocols, ("x", "n"), ("VARCHAR", "BIGINT"), *ROWS)
    path = written(protocols, table, form, tmp_path)
    rows = duckdb.sql(f"FROM '{path}'").fetchall()
    assert rows == [("a", 20)] * 2 + [('b,"c"', -3)] + [(None, 20)] * 3
    again = tmp_path / "again"
    again.mkdir()
    read = schema.read(ReleasedFile, "released.json", schema.write(table))
    assert written(protocols, read, form, again).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_distinct_rows_have_their_counts_behind_them(form, tmp_path):
    protocols = (PLAIN, NUMBERS)
    table = released_file(protocols, ("x", "n"), ("VARCHAR", "BIGINT"), *ROWS)
    path = written(protocols, table, form, tmp_path, counted=True)
    told = duckdb.sql(f"FROM '{path}'")
    assert (told.columns, told.types[2]) == (["x", "n", "count"], "BIGINT")
    assert told.fetchall() == [("a", 20, 2), ('b,"c"', -3, 1), (None, 20, 3)]


@pytest.mark.parametrize(
    ("form", "names", "first"),
    [("set", ("x",), ("[]",)), ("bits", ("x=a", 'x=b,"c"', "x is missing"), (0, 0, 0))],
)
def test_sets_have_names_of_their_own(form, names, first, tmp_path):
    protocol = UnaryProtocol(X, 4, 8, 3, form)
    table = released_file((protocol,), ("x",), ("VARCHAR",), np.array([[0], [5]]), np.array([1, 2]))
    assert table.columns == names
    rows = duckdb.sql(f"FROM '{written((protocol,), table, 'parquet', tmp_path)}'").fetchall()
    assert (rows[0], len(rows)) == (first, 3)
    assert rows[1] == (('["a",null]',) if form == "set" else (1, 0, 1))


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(PlanError, match="two released columns"):
        released_file((PLAIN, NUMBERS), ("x", "X"), ("VARCHAR", "BIGINT"), *ROWS)


@pytest.mark.parametrize("value", ["a ", "a\u00a0", "a\rb", "\u2003"])
def test_bits_whose_names_readers_of_csv_cut_are_refused_as_csv_alone(value):
    bits = UnaryProtocol(Alphabet(("x",), (("b",), (value,))), 4, 8, 3, "bits")
    told = ("x",), ("VARCHAR",), np.array([[0]]), np.array([1])
    with pytest.raises(PlanError, match="readers of CSV lose") as caught:
        released_file((bits,), *told, form="csv")
    assert all(word in caught.value.advice for word in ("release: set", "format: parquet"))
    assert released_file((bits,), *told).columns == ("x=b", f"x={value}")
    assert released_file((replace(bits, form="set"),), *told, form="csv").columns == ("x",)


@pytest.mark.parametrize("kind", ["VARCHAR) FROM read_text('/etc/passwd') --", "bigint", ""])
def test_a_type_is_a_word_and_no_sql(kind):
    table = released_file((PLAIN, NUMBERS), ("x", "n"), ("VARCHAR", "BIGINT"), *ROWS)
    with pytest.raises(FormatError):
        schema.read(ReleasedFile, "released.json", schema.write(replace(table, types=("VARCHAR", kind))))


def test_an_export_reaches_no_file_but_its_own(tmp_path):
    """Names and types may be others' work."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "out").mkdir()
    table = released_file((PLAIN, NUMBERS), ("x", "n"), ("VARCHAR", "BIGINT"), *ROWS)
    hostile = f"VARCHAR) AS n, (SELECT content FROM read_text('{tmp_path}/secret.txt')) AS z FROM released --"
    with pytest.raises(ReleaseError, match="Permission"):
        target = Target(tmp_path / "out" / "data.csv", "csv")
        export((PLAIN, NUMBERS), replace(table, types=("VARCHAR", hostile)), target)


def test_a_full_disk_is_told_in_words_whatever_object_duckdb_makes_of_it() -> None:
    told = (
        'IO Error: Async write failed for range [offset=10, size=304976]: {"exception_type":"IO","exception_message":'
        '"Could not write file \\"data.csv\\": No space left on device","errno":"28"}'
    )
    for words, meant in ((told, ENOSPC), (told.replace("28", "27"), EFBIG), ("IO Error: Disk quota exceeded", EDQUOT)):
        assert (refused(words).errno, refused(words).strerror) == (meant, os.strerror(meant))
    assert refused("IO Error: something else\nand more").strerror == "IO Error: something else"
