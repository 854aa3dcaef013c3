"""Delta and Iceberg tables, and Parquet in an object store: the version that was found is the one that is read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import Source, find
from funnel.errors import SourceError

deltalake = pytest.importorskip("deltalake")
catalogue = pytest.importorskip("pyiceberg.catalog.memory")
moto = pytest.importorskip("moto.server")

ROWS = pa.table({"id": [1, 2, 3], "colour": ["red", "blue", None], "region": ["north", "south", "north"]})
MORE = pa.table({"id": [4], "colour": ["green"], "region": ["south"]})


def read(source: Source, columns: str = "id, colour, region") -> list[tuple[object, ...]]:
    with DuckDB(source) as engine:
        assert set(engine.schema()) == {"id", "colour", "region"}
        assert engine.row(f"SELECT count(*) FROM {source.reading()}") == (0,)
        engine.fetch(tuple(columns.split(", ")))
        found = engine.rows(f"SELECT {columns} FROM {source.reading()} ORDER BY ALL")
        source.check_unchanged()
        return found


EXPECTED = [(1, "red", "north"), (2, "blue", "south"), (3, None, "north")]


def test_a_delta_table_is_read_at_the_version_found(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "people", ROWS, partition_by=["region"])
    source = find("people", tmp_path)
    deltalake.write_deltalake(tmp_path / "people", MORE, mode="append")
    assert (source.version, read(source)) == ("Delta version 0", EXPECTED)
    later = find("people", tmp_path)
    assert (later.version, read(later, "id")) == ("Delta version 1", [(1,), (2,), (3,), (4,)])
    deltalake.DeltaTable(tmp_path / "people").delete("id < 3")
    assert read(find("people", tmp_path), "id") == [(3,), (4,)]


def test_an_iceberg_table_is_read_at_the_snapshot_found(tmp_path: Path) -> None:
    made = catalogue.InMemoryCatalog("made", warehouse=f"file://{tmp_path}")
    made.create_namespace("city")
    table = made.create_table("city.people", ROWS.schema)
    table.append(ROWS)
    folder = Path(table.location().removeprefix("file://"))
    source = find(folder)
    table.append(MORE)
    assert read(source) == EXPECTED
    assert read(find(folder), "id") == [(1,), (2,), (3,), (4,)]
    assert source.version != find(folder).version
    (first, second), metadata = (source.version, find(folder).version), folder / "metadata"
    for file in metadata.glob("00001-*.json"):  # copied after the others
        os.utime(file, (4e9, 4e9))
    assert find(folder).version == second != first
    for aside in ("00002-of-a-commit-that-failed.metadata.json", "old.metadata.json"):
        shutil.copy(next(metadata.glob("00002-*.json")), metadata / aside)
        with pytest.raises(SourceError, match=f"current version, its names do not say: .*{aside}"):
            find(folder)
        (metadata / aside).unlink()


def test_a_damaged_lake_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "delta" / "_delta_log" / "00000000000000000000.json").write_text("{")
    (tmp_path / "ice" / "metadata").mkdir(parents=True)
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    for name in ("delta", "ice"):
        with pytest.raises(SourceError) as caught:
            find(name, tmp_path)
        assert caught.value.code == "source-unreadable"


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The address of an object store on this machine."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"endpoint_override={host}%3A{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    server.stop()


def test_parquet_in_an_object_store_is_read_and_moves_are_noticed(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    system, _ = fs.FileSystem.from_uri(f"s3://towns/people?{store}")
    system.create_dir("towns")
    for region in ("north", "south"):
        part = ROWS.filter(pa.compute.equal(ROWS["region"], region)).drop_columns(["region"])
        pq.write_table(part, f"towns/people/region={region}/part-0.parquet", filesystem=system)
    source = find(f"s3://towns/people?{store}")
    assert read(source) == EXPECTED
    pq.write_table(
        MORE.drop_columns(["region"]), "towns/people/region=south/part-1.parquet", filesystem=system
    )
    with pytest.raises(SourceError) as caught:
        source.check_unchanged()
    assert caught.value.code == "source-changed"
    with pytest.raises(SourceError) as caught:
        find(f"s3://towns/nobody?{store}")
    assert caught.value.code == "source-missing"


@pytest.mark.long
def test_a_store_that_does_not_answer_says_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(SourceError) as caught:
        find("s3://towns/people?endpoint_override=127.0.0.1%3A9&scheme=http&region=us-east-1")
    assert caught.value.code == "source-unreachable"
    assert "testing" not in str(caught.value)
