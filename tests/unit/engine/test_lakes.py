"""Delta and Iceberg tables, and Parquet in an object store: the version that was found is the one that is read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import Source, find
from funnel.errors import SourceError

deltalake = pytest.importorskip("deltalake")
catalogue = pytest.importorskip("pyiceberg.catalog.memory")
manifest = pytest.importorskip("pyiceberg.manifest")
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


def iced(tmp_path: Path) -> tuple[Any, Path]:
    """An Iceberg table of the rows, and its folder."""
    made = catalogue.InMemoryCatalog("made", warehouse=f"file://{tmp_path}")
    made.create_namespace("city")
    table = made.create_table("city.people", ROWS.schema)
    table.append(ROWS)
    return table, Path(table.location().removeprefix("file://"))


def test_an_iceberg_table_is_read_at_the_snapshot_found(tmp_path: Path) -> None:
    table, folder = iced(tmp_path)
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


def test_an_iceberg_table_is_read_by_the_names_that_its_columns_have_now(tmp_path: Path) -> None:
    """A change of its schema is no snapshot, and the last snapshot knows other names."""
    from pyiceberg.types import StringType

    table, folder = iced(tmp_path)
    for before, after in (("colour", "aside"), ("region", "colour"), ("aside", "region")):
        with table.update_schema() as change:
            change.rename_column(before, after)
    assert read(find(folder), "id, region, colour") == EXPECTED
    with table.update_schema() as change:
        change.delete_column("region")
    with table.update_schema() as change:
        change.add_column("region", StringType())
    assert read(find(folder), "id, region") == [(1, None), (2, None), (3, None)]


def test_rows_that_were_deleted_by_their_values_are_told_as_that(tmp_path: Path, monkeypatch) -> None:
    """A table that is whole is not called broken; the library reads no such deletes."""
    _, folder = iced(tmp_path)
    deletes = SimpleNamespace(data_file=SimpleNamespace(content=manifest.DataFileContent.EQUALITY_DELETES))
    monkeypatch.setattr("pyiceberg.table.ManifestGroupPlanner.plan_manifest_entries", lambda *_: [[deletes]])
    source = find(folder)
    with pytest.raises(SourceError, match="does not yet support equality deletes") as caught:
        read(source)
    assert "Compact the table" in str(caught.value)


def test_a_lake_whose_files_are_broken_is_one_error(tmp_path: Path) -> None:
    _, place = iced(tmp_path)
    deltalake.write_deltalake(tmp_path / "delta", ROWS)
    for folder, pattern in ((tmp_path / "delta", "*.parquet"), (place, "data/*.parquet"), (place, "metadata/*.avro")):
        for file in folder.glob(pattern):
            file.write_bytes(file.read_bytes()[:40])
        with pytest.raises(SourceError) as caught:
            read(find(folder))
        assert caught.value.code == "source-unreadable"


def test_what_a_lake_keeps_of_its_past_is_not_counted(tmp_path: Path) -> None:
    """Neither by a folder above it, nor by a pattern into it; nor where no such table is read at all."""
    table, ice = iced(tmp_path)
    table.overwrite(MORE)
    delta = tmp_path / "delta"
    for _ in range(2):
        deltalake.write_deltalake(delta, ROWS, mode="overwrite")
    assert [len(read(find(one))) for one in (ice, delta)] == [1, 3]
    (hudi := tmp_path / "old" / "hudi" / ".hoodie").mkdir(parents=True)
    pq.write_table(ROWS, hudi.parent / "1.parquet")
    for kind, folder in (("an Iceberg", ice), ("a Delta", delta), ("a Hudi", hudi.parent)):
        for name in (folder.parent, folder / "**" / "*.parquet"):
            with pytest.raises(SourceError, match="table is there, and not every file of it"):
                find(name)
        with pytest.raises(SourceError, match=f"{kind} table is there"):
            find(folder / "**" / "*.parquet")
    with pytest.raises(SourceError, match="No such table is read"):
        find(hudi.parent)


def test_a_delta_table_whose_files_call_its_columns_otherwise_is_refused(tmp_path: Path) -> None:
    """After RENAME COLUMN the library reads the column that was called so when files were written: the secret's."""
    deltalake.write_deltalake(tmp_path / "people", ROWS)
    assert read(find(tmp_path / "people")) == EXPECTED
    log = next((tmp_path / "people" / "_delta_log").glob("*.json"))
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    for step in steps:
        if "metaData" in step:
            mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
            step["metaData"]["configuration"] |= mapped
            schema = json.loads(step["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], 1):
                field["metadata"] = {
                    "delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"{field['name']}-before",
                }  # fmt: skip
            step["metaData"]["schemaString"] = json.dumps(schema)
        if "protocol" in step:
            step["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    log.write_text("\n".join(map(json.dumps, steps)))
    with pytest.raises(SourceError, match="calls its columns otherwise than its files do"):
        find(tmp_path / "people")


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


@pytest.fixture
def system(store: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What writes into a bucket `towns` of the store."""
    from pyarrow import fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    found, _ = fs.FileSystem.from_uri(f"s3://towns/people?{store}")
    found.create_dir("towns")
    return found


def test_parquet_in_an_object_store_is_read_and_moves_are_noticed(store: str, system: Any) -> None:
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
    assert (caught.value.code, caught.value.message) == ("source-missing", "no Parquet object is there")


def test_objects_that_are_no_part_of_the_table_are_not_counted(store: str, system: Any) -> None:
    pq.write_table(ROWS, "towns/spark/part-0.parquet", filesystem=system)
    pq.write_table(ROWS, "towns/spark/_temporary/0/part-0.parquet", filesystem=system)
    pq.write_table(ROWS, "towns/delta/part-0.parquet", filesystem=system)
    with system.open_output_stream("towns/delta/_delta_log/0.json") as log:
        log.write(b"{}")
    pq.write_table(ROWS, "towns/ice/data/part-0.parquet", filesystem=system)
    with system.open_output_stream("towns/ice/metadata/1.metadata.json") as log:
        log.write(b"{}")
    pq.write_table(ROWS, "towns/flat/part-0.parquet", filesystem=system)
    pq.write_table(ROWS, "towns/flat/_part-1.parquet", filesystem=system)
    pq.write_table(ROWS, "towns/trino/part-0.parquet", filesystem=system)
    pq.write_table(ROWS, "towns/trino/20261126_0001_x", filesystem=system)
    places = (("spark", "_temporary/0/part-0"), ("flat", "_part-1"), ("trino", "0001_x is a Parquet object"))
    for name, said in (*places, ("delta", "a Delta table is there"), ("ice", "an Iceberg table is there")):
        with pytest.raises(SourceError, match=said) as caught:
            find(f"s3://towns/{name}?{store}")
        assert caught.value.code == "source-unreadable"


@pytest.mark.parametrize(
    ("values", "expected"),
    [(("01", "1"), ["01", "1"]), (("2", "10"), [2, 10]), (("a%20b", "1"), ["a b", "1"]),
     (("7", "__HIVE_DEFAULT_PARTITION__"), [7, None])],
)  # fmt: skip
def test_values_of_folders_in_a_store_are_as_they_are_spelt(
    store: str, system: Any, values: tuple[str, str], expected: list[object]
) -> None:
    name, key = "-".join(values).replace("%", ""), "re%67ion"  # Arrow takes it for `region`
    for place, value in enumerate(values):
        rows = ROWS.slice(place, 1).drop_columns(["region"])
        pq.write_table(rows, f"towns/{name}/{key}={value}/part-0.parquet", filesystem=system)
    assert [region for _, region in sorted(read(find(f"s3://towns/{name}?{store}"), "id, region"))] == expected


def test_objects_have_the_columns_of_any_and_one_type_for_each(store: str, system: Any) -> None:
    """The types of the first object would change the values of the others."""
    pq.write_table(ROWS.drop_columns(["colour"]), "towns/some/part-0.parquet", filesystem=system)
    pq.write_table(MORE, "towns/some/part-1.parquet", filesystem=system)
    assert read(find(f"s3://towns/some?{store}"), "id, colour")[-1] == (4, "green")
    others = {
        "types": MORE.set_column(0, "id", pa.array([4.5])),
        "region=north": MORE,
        "broken": None,
    }
    for name, rows in others.items():
        pq.write_table(ROWS, f"towns/odd-{name}/{name}/part-0.parquet", filesystem=system)
        if rows is None:
            with system.open_output_stream(f"towns/odd-{name}/{name}/part-1.parquet") as file:
                file.write(b"PAR1 and no more")
        else:
            pq.write_table(rows, f"towns/odd-{name}/{name}/part-1.parquet", filesystem=system)
        with pytest.raises(SourceError) as caught:
            read(find(f"s3://towns/odd-{name}?{store}"))
        assert caught.value.code == ("source-header" if "=" in name else "source-unreadable"), name


@pytest.mark.long
def test_a_store_that_does_not_answer_says_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(SourceError) as caught:
        find("s3://towns/people?endpoint_override=127.0.0.1%3A9&scheme=http&region=us-east-1")
    assert caught.value.code == "source-unreachable"
    assert "testing" not in str(caught.value)
