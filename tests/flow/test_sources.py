"""One policy over every kind of source: the same protocol and the same table, byte for byte."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog

import funnel
from funnel.errors import SourceError
from tests.support.policies import write_policy

PEOPLE = (
    "SELECT i AS id, ['u', 'v'][i % 2 + 1] AS answer, ['red', 'blue', 'green'][(i * i) % 3 + 1] AS colour, "
    "(i % 90 + 0.5)::DOUBLE AS age FROM range(600) t(i)"
)
PLACES = {
    "people.parquet": "",
    "people.csv.gz": "(HEADER, COMPRESSION gzip)",
    "people.tsv.zst": "(FORMAT csv, DELIMITER '\t', HEADER, COMPRESSION zstd)",
    "people.jsonl": "(FORMAT json)",
    "people": "(FORMAT parquet, PARTITION_BY (colour))",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same people in every place."""
    folder = tmp_path_factory.mktemp("places")
    for name, options in PLACES.items():
        duckdb.sql(f"COPY ({PEOPLE}) TO '{folder / name}' {options}")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(f"CREATE VIEW people AS {PEOPLE}")
    rows = duckdb.sql(PEOPLE).to_arrow_table()
    write_deltalake(folder / "delta", rows, partition_by=["colour"])
    made = InMemoryCatalog("made", warehouse=f"file://{folder}")
    made.create_namespace("city")
    made.create_table("city.people", rows.schema, location=f"file://{folder}/iceberg").append(rows)
    return folder


def released(table: str, folder: Path, target: Path) -> tuple[bytes, bytes]:
    """The protocol and the data of a release of a table."""
    source = {"table": str(folder / table), "entity": "id"}
    public = ["colour", {"name": "age", "bins": [0, 30, 60]}]
    target.mkdir()
    policy = write_policy(target, source=source, sensitive=["answer"], public=public)
    release = Path(funnel.run(policy).release)
    return (release / "protocol.json").read_bytes(), (release / "data.parquet").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("table", [*list(PLACES)[1:], "people.duckdb#people", "delta", "iceberg"])
def test_every_kind_gives_the_same_release(folder: Path, tmp_path: Path, monkeypatch, table: str) -> None:
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    assert released(table, folder, tmp_path / "a") == released("people.parquet", folder, tmp_path / "b")


@pytest.mark.parametrize("name", ["none.csv", "none.csv.gz", "none.parquet", "none.jsonl", "none.ndjson.gz"])
def test_a_file_in_which_nothing_stands_is_called_empty(tmp_path: Path, name: str) -> None:
    """It has no values, no columns and no filter that advice could be about; nor has one of blank lines, or a mark."""
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    other = [b"\n\n", b"\xef\xbb\xbf"] if name == "none.csv" else [b"\n"] if name == "none.jsonl" else []
    for content in (None, *other):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError) as refused:
            funnel.explain(write_policy(tmp_path, source={"table": str(tmp_path / name)}, draws={"kind": "fresh"}))
        assert (refused.value.code, refused.value.values) == ("source-empty", None)


def test_an_empty_part_is_not_said_to_be_what_is_wrong_with_another(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "ill": "no"}\n{"id": 2, "ill"\n')
    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(SourceError) as refused:
        funnel.starter_policy(tmp_path / "*.jsonl", tmp_path)
    assert refused.value.code == "source-unreadable"


def test_a_file_that_is_no_parquet_is_not_said_to_hold_values_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("id,ill\n" * 30)
    with pytest.raises(SourceError) as refused:
        funnel.starter_policy(tmp_path / "a.parquet", tmp_path)
    assert (refused.value.code, refused.value.values) == ("source-unreadable", None)


def test_init_starts_from_a_table_in_a_database(folder: Path) -> None:
    command = [sys.executable, "-m", "funnel", "init", str(folder / "people.duckdb#people"), "--to", "-"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, "people.duckdb#people" in found.stdout) == (0, True), found.stderr
