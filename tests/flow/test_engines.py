"""One policy under both engines: the same protocol and bytes, however Spark divides the table and what it loses."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.audit.audit import audit_release
from funnel.audit.extras.export import Files
from funnel.audit.kernel import check as kernel
from funnel.cells.make import make
from funnel.engine.spark.engine import Spark
from funnel.engine.spark.stored import Stored
from funnel.engine.spark.task import Every, Gathered, Task
from funnel.errors import AuditFailure, FunnelError, PlanError, SourceError
from funnel.format import canonical
from funnel.plan import run
from funnel.plan.compiled import Limits, planned
from funnel.policy import load
from tests.flow.conftest import nothing_published
from tests.support.policies import write_policy

without = "pyspark" if importlib.util.find_spec("pyspark") is None else "" if shutil.which("java") else "Java"
pytestmark = pytest.mark.skipif(bool(without), reason=f"tables are not read by Spark here, for there is no {without}")

PEOPLE = (
    "SELECT i AS id, ['u', 'v'][i % 2 + 1] AS answer, ['red', 'blue', 'green'][(i * i) % 3 + 1] AS colour, "
    "(i % 90 + 0.5)::DOUBLE AS age, if(i % 7 = 0, NULL, 'c' || (i % 4)) AS city FROM range(900) t(i)"
)
PUBLIC: list[Any] = ["colour", {"name": "age", "bins": [0, 30, 60]}, {"name": "city", "top": 2}]
SETTINGS = {"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "2", "spark.sql.files.openCostInBytes": "1"}
SPARK: dict[str, Any] = {"engine": "spark", "spark": SETTINGS}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same people in one file, in five parts, and as texts."""
    folder = tmp_path_factory.mktemp("places")
    duckdb.sql(f"COPY ({PEOPLE}) TO '{folder}/people.parquet'")
    duckdb.sql(f"COPY ({PEOPLE}) TO '{folder}/people.csv.gz' (HEADER, COMPRESSION gzip)")
    duckdb.sql(f"COPY ({PEOPLE}) TO '{folder}/people.jsonl' (FORMAT json)")
    for part in range(5):
        target = folder / f"parts/group={part}"
        target.mkdir(parents=True)
        duckdb.sql(f"COPY (SELECT * FROM ({PEOPLE}) WHERE id % 5 = {part}) TO '{target}/one.parquet'")
    return folder


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNNEL_KEY", funnel.new_key())
        yield


def released(folder: Path, table: Path, **changes: Any) -> Path:
    """A new release of a table, in a folder of its own."""
    folder.mkdir(parents=True)
    source = {"table": str(table), "entity": "id", "missing": "category"}
    asked = {"source": source, "sensitive": ["answer"], "public": PUBLIC} | changes
    return Path(str(funnel.run(write_policy(folder, **asked)).release))


def content(release: Path) -> tuple[bytes, bytes]:
    return (release / "protocol.json").read_bytes(), (release / "data.parquet").read_bytes()


@pytest.fixture(scope="module")
def by_duckdb(places: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    return content(released(tmp_path_factory.mktemp("duckdb") / "a", places / "people.parquet"))


@pytest.mark.long
@pytest.mark.parametrize("table", ["people.parquet", "parts", "people.csv.gz", "people.jsonl"])
def test_spark_releases_the_same_bytes(places: Path, by_duckdb, tmp_path: Path, table: str) -> None:
    """One part or five, with types or without."""
    assert content(released(tmp_path / "a", places / table, **SPARK)) == by_duckdb


@pytest.mark.long
def test_an_auditor_needs_no_spark(places: Path, tmp_path: Path) -> None:
    release = released(tmp_path / "a", places / "parts", **SPARK)
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from pathlib import Path\nfrom funnel.audit.audit import audit_release\n"
        "from funnel.plan.recount import recounting\n"
        "found = audit_release(Path(sys.argv[1]), Path(sys.argv[2]), recount=recounting(Path(sys.argv[3])))\n"
        "assert not found.of('failed'), found.of('failed')\n"
    )
    private = tmp_path / "a" / "private" / release.name
    command = [sys.executable, "-c", code, str(release), str(private), str(places / "people.parquet")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert not audit_release(release, private).of("failed")


class Lost(Task):
    """A task whose process fails, or is killed, once it has an answer to the first trial of a part."""

    fault = ""

    def __call__(self, batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            next(super().__call__(batches))
            if self.fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("lost")
        yield from super().__call__(batches)


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("fault", ["killed", "fails"])
def test_what_is_lost_is_done_again_the_same(
    places: Path, by_duckdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """In the middle of a part, at every reading of it, the drawing one too."""
    from pyspark import cloudpickle

    lost = type("Lost", (Lost,), {"fault": fault})
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr("funnel.engine.spark.engine.Task", lost)
    assert content(released(tmp_path / "a", places / "parts", **SPARK)) == by_duckdb


WRONG = {
    "entity-repeated": (PEOPLE.replace("i AS id", "i // 2 AS id"), {}),
    "entity-null": (PEOPLE.replace("i AS id", "nullif(i, 5) AS id"), {}),
    "source-nulls": (PEOPLE, {"missing": "error"}),
    "source-empty": (PEOPLE, {"filter": "age > 1000"}),
    "source-unreadable": (PEOPLE, {"filter": "CAST(colour AS INTEGER) = 1"}),
}


@pytest.mark.parametrize("code", WRONG)
def test_the_same_is_refused_in_the_same_words(tmp_path: Path, code: str) -> None:
    query, source = WRONG[code]
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/people.parquet'")
    said = []
    for engine in ({}, SPARK):
        with pytest.raises(FunnelError) as caught:
            told = {"table": str(tmp_path / "people.parquet"), "entity": "id", "missing": "category"} | source
            funnel.run(write_policy(tmp_path, source=told, sensitive=["answer"], public=PUBLIC, **engine))
        said.append(str(caught.value))
        nothing_published(tmp_path)
    assert code in said[0]
    assert said[0] == said[1]


@pytest.mark.long
def test_values_that_a_lock_does_not_know_are_refused_in_the_same_words(places: Path, tmp_path: Path) -> None:
    said = []
    for engine in ({}, SPARK):
        folder = tmp_path / ("b" if engine else "a")
        folder.mkdir()
        duckdb.sql(f"COPY ({PEOPLE}) TO '{folder}/people.parquet'")
        source = {"table": "people.parquet", "entity": "id", "missing": "category"}
        policy = write_policy(folder, source=source, sensitive=["answer"], public=["colour"], **engine)
        funnel.make_lock(policy)
        first = content(Path(str(funnel.run(policy, locked=True).release)))
        duckdb.sql(f"COPY ({PEOPLE.replace('blue', 'pink')}) TO '{folder}/people.parquet'")
        with pytest.raises(FunnelError) as caught:
            funnel.run(policy, locked=True)
        said.append((first, str(caught.value).replace(str(folder), "")))
    assert said[0] == said[1]


def test_a_table_that_changes_between_readings_is_refused(places: Path, tmp_path: Path, monkeypatch) -> None:
    table = tmp_path / "people.parquet"
    shutil.copy(places / "people.parquet", table)
    whole = Spark.map

    def moved(self: Spark, statement: str, *rest: Any) -> Any:
        duckdb.sql(f"COPY ({PEOPLE.replace('blue', 'pink')}) TO '{table}'")
        return whole(self, statement, *rest)

    monkeypatch.setattr(Spark, "map", moved)
    with pytest.raises(SourceError, match="source-changed"):
        released(tmp_path / "a", table, **SPARK)
    nothing_published(tmp_path / "a")


NAMED: dict[str, Any] = {"release__identify": "id", "release__partition": {"rows": 300}}
CELLS: dict[str, Any] = {"name": "person", "columns": ["colour", "age", "city"], "cells": {"most": 6, "minimum": 50}}


def files(release: Path) -> dict[str, str]:
    """The files of the table with their hashes, as the manifest has them: in whatever order they were made."""
    listed = json.loads((release / "release.json").read_text())["files"]
    return {name: one["sha256"] for name, one in listed.items() if name.startswith("data/")}


def written_again(release: Path) -> bool:
    """Whether an auditor of what is published alone finds nothing wrong, and has written every file again."""
    found = audit_release(release, None)
    assert not found.of("failed")
    (told,) = (one.detail for one in found.findings if one.claim == "data-export")
    return "the same bytes when written again" in told


@pytest.fixture(scope="module")
def named_by_duckdb(places: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    found = files(released(tmp_path_factory.mktemp("named") / "a", places / "people.parquet", **NAMED))
    assert set(found) == {f"data/part-{number}.parquet" for number in range(3)}
    return found


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("parts", [1, 3, 7])
def test_rows_with_names_are_the_same_files_however_they_are_divided(
    places: Path, named_by_duckdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Each file is written where its rows came together, and an auditor writes it again from what is published."""
    cut = [f"SELECT * FROM '{places}/people.parquet' WHERE id % {parts} = {part}" for part in range(parts)]
    monkeypatch.setattr("funnel.engine.spark.table.Parted.pieces", lambda *_: tuple(cut))
    release = released(tmp_path / "a", places / "people.parquet", **NAMED, **SPARK)
    assert files(release) == named_by_duckdb
    assert written_again(release)
    assert sorted(path.name for path in (release / "data").iterdir()) == [f"part-{part}.parquet" for part in range(3)]


class LostSink(Gathered):
    """A process that fails, or is killed, once it has told of the first file of its first trial."""

    fault = ""

    def __call__(self, batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.attemptNumber() == 0:
            for _ in super().__call__(batches):
                if self.fault == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("lost")
        yield from super().__call__(batches)


class LostWork(Every):
    """A process that fails, or is killed, when it has done its work for an item the first time."""

    fault = ""

    def __call__(self, batches):
        from pyspark import TaskContext

        context, found = TaskContext.get(), list(super().__call__(batches))
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            if self.fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("lost")
        yield from found


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("fault", ["killed", "fails"])
def test_a_file_that_is_written_twice_is_there_once(
    places: Path, named_by_duckdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Where rows are put aside, where files of the table are written, and audited; what lost processes left is gone."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr("funnel.engine.spark.engine.Gathered", type("LostSink", (LostSink,), {"fault": fault}))
    monkeypatch.setattr("funnel.engine.spark.engine.Every", type("LostWork", (LostWork,), {"fault": fault}))
    release = released(tmp_path / "a", places / "parts", **NAMED, **SPARK)
    assert files(release) == named_by_duckdb
    assert not audit_release(release, release.parent.parent / "private" / release.name).of("failed")
    assert {path.relative_to(release).as_posix() for path in release.glob("data/**/*")} == set(named_by_duckdb)


def read_here(*_: Any) -> Any:
    raise AssertionError("this process has no need to read the rows")


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("wide", [{}, {"public": [CELLS]}])
def test_rows_with_names_are_audited_where_they_are(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wide: dict[str, Any]
) -> None:
    """The process of the job reads none of them before it publishes; an auditor, who has no Spark, reads them all."""
    with monkeypatch.context() as patch:
        patch.setattr(Files, "at", read_here)
        release = released(tmp_path / "a", places / "parts", **NAMED, **wide, **SPARK)
    assert written_again(release)
    monkeypatch.setattr(Files, "at", read_here)
    failed = audit_release(release, None).of("failed")
    assert failed
    assert all("no need" in one.detail for one in failed)


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("lie", ["changed_row", "doubled_row", "moved_row", "other bytes"])
def test_files_that_are_not_what_was_released_are_refused_in_the_same_words(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """Before anybody can see them, whichever process looked."""
    whole, said = run.audit, []

    def audit(publisher: Any, *told: Any) -> Any:
        part = publisher.public / "data/part-1.parquet"
        part.write_bytes(b"PAR1") if lie == "other bytes" else again(part, globals()[lie])
        return whole(publisher, *told)

    monkeypatch.setattr(run, "audit", audit)
    monkeypatch.setattr(kernel, "PUBLISHED", {})
    monkeypatch.setattr(kernel.findings, "__defaults__", ({},))
    for engine in ({}, SPARK):
        folder = tmp_path / ("b" if engine else "a")
        with pytest.raises(AuditFailure) as caught:
            released(folder, places / "people.parquet", **NAMED, **engine)
        said.append(str(caught.value))
        nothing_published(folder)
    assert "data-export" in said[0]
    assert said[0] == said[1]


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("names", [{}, {"release__identify": "id"}])
def test_filled_rows_are_the_same_by_both_engines(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, Any]
) -> None:
    """Under one seed; that of a release is drawn for it."""
    monkeypatch.setattr("funnel.plan.partition.make", partial(make, seed=bytes(32)))
    asked = {"public": [CELLS], "release__partition": {"rows": 400}} | names
    here = released(tmp_path / "a", places / "people.parquet", **asked)
    there = released(tmp_path / "b", places / "parts", **asked, **SPARK)
    for name in ("protocol.json", "released.json", "cells.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    assert files(here) == files(there)
    assert len(files(here)) == 3
    assert written_again(there)


UNTIED = (
    "SELECT i AS id, ['u', 'v'][i % 2 + 1] AS answer, 'c' || (hash(i) % 3) AS colour, "
    "(hash(3 * i) % 90 + 0.5)::DOUBLE AS age, 'c' || (hash(7 * i) % 5) AS city FROM range(9000) t(i)"
)
"""Whose columns have nothing to do with one another, so that splits are those of the records that are looked at."""


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("parts", [1, 3])
def test_cells_are_the_same_however_a_table_is_divided_of_which_a_part_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Its rows then come in another order."""
    monkeypatch.setattr("funnel.cells.tree.SAMPLE", 256)
    monkeypatch.setattr("funnel.plan.partition.make", partial(make, seed=bytes(32)))
    duckdb.sql(f"COPY ({UNTIED}) TO '{tmp_path}/people.parquet'")
    here = released(tmp_path / "a", tmp_path / "people.parquet", public=[CELLS], release__partition={"rows": 5000})
    cut = [f"SELECT * FROM '{tmp_path}/people.parquet' WHERE id % {parts} = {part}" for part in range(parts)]
    monkeypatch.setattr("funnel.engine.spark.table.Parted.pieces", lambda *_: tuple(cut[::-1]))
    there = released(tmp_path / "b", tmp_path / "people.parquet", public=[CELLS], **SPARK)
    assert (here / "cells.json").read_bytes() == (there / "cells.json").read_bytes()
    private = there.parent.parent / "private"
    found = funnel.audit_release(there, private, table=tmp_path / "people.parquet")
    assert found.passed, found.text()


@pytest.mark.parametrize("ask", [funnel.explain, funnel.run])
def test_a_wide_block_of_too_many_combinations_is_refused_with_their_number(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    """Counted by the engine, and nothing of them is held: by both in the same words."""
    monkeypatch.setattr("funnel.engine.wide.MOST_CODES", 300)
    monkeypatch.setattr("funnel.plan.partition.read_columns", read_here)
    said = []
    for engine in ({}, SPARK):
        source = {"table": str(places / "parts"), "entity": "id", "missing": "category"}
        policy = write_policy(tmp_path, source=source, sensitive=["answer"], public=[CELLS], **engine)
        with pytest.raises(PlanError, match="cells-size") as caught:
            ask(policy)
        said.append(str(caught.value))
        nothing_published(tmp_path)
    combinations = duckdb.sql(f"SELECT count(*) FROM (SELECT DISTINCT colour, age, city FROM ({PEOPLE}))").fetchall()
    assert f"take {combinations[0][0]} combinations; cells are made of 100 at most" in said[0]
    assert said[0] == said[1]


TOGETHER: dict[str, tuple[dict[str, Any], str, str]] = {
    "cells": ({"public": [CELLS]}, "funnel.engine.wide.MOST_CODES", "900 rows of 3 columns would be filled in"),
    "folders": ({"release__identify": "id", "release__partition": "colour", **SPARK}, "funnel.plan.count.MOST_SORTED",
                "900 rows with names would be sorted"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("ask", [funnel.explain, funnel.run])
@pytest.mark.parametrize("case", TOGETHER)
def test_what_one_process_would_write_is_refused_where_it_is_too_large(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any, case: str
) -> None:
    """With what is too large, and what to do, which then goes."""
    asked, limit, said = TOGETHER[case]
    monkeypatch.setattr(limit, 899)
    source = {"table": str(places / "people.parquet"), "entity": "id", "missing": "category"}
    asked = {"source": source, "sensitive": ["answer"], "public": PUBLIC} | asked
    with pytest.raises(PlanError, match=said):
        ask(write_policy(tmp_path, **asked))
    nothing_published(tmp_path)
    ask(write_policy(tmp_path, **asked | {"release__partition": {"rows": 300}}))


def changed_row(rows: pa.Table) -> pa.Table:
    other = pa.array([{"red": "blue"}.get(value, "red") for value in rows["colour"].to_pylist()])
    return rows.set_column(rows.column_names.index("colour"), "colour", other)


def doubled_row(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows.slice(0, 1), rows])


def moved_row(rows: pa.Table) -> pa.Table:
    """A key that belongs to another file."""
    return rows.set_column(0, "id", pc.add(rows["id"], 1))


def again(part: Path, change: Any) -> None:
    """A file with other rows, written as the writer writes."""
    rows, metadata = pq.read_table(part), pq.read_metadata(part).metadata
    with pq.ParquetWriter(part, rows.schema.remove_metadata(), compression="zstd", store_schema=False) as writer:
        writer.add_key_value_metadata(metadata)
        writer.write_table(change(rows.replace_schema_metadata(None)))


LIES = {"a row changed": changed_row, "a row doubled": doubled_row, "rows moved": moved_row, "a file left out": None}


@pytest.fixture(scope="module")
def in_files(places: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("lies") / "a", places / "people.parquet", **NAMED)


@pytest.mark.parametrize("lie", LIES)
def test_a_table_in_files_that_was_changed_is_refused_from_what_is_published(
    in_files: Path, tmp_path: Path, lie: str
) -> None:
    """Also by whoever states the hashes anew."""
    release = tmp_path / in_files.name
    shutil.copytree(in_files, release)
    told, part = json.loads((release / "release.json").read_text()), release / "data/part-1.parquet"
    if (change := LIES[lie]) is None:
        part.unlink()
        del told["files"]["data/part-1.parquet"]
    else:
        again(part, change)
        raw = part.read_bytes()
        told["files"]["data/part-1.parquet"] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (release / "release.json").write_bytes(canonical.encode(told))
    assert "data-export" in [one.claim for one in audit_release(release, None).of("failed")]


@pytest.mark.long
def test_fresh_draws_of_sets_differ_and_are_audited(places: Path, tmp_path: Path) -> None:
    """Without an entity a row is known by its place, under a number that no other run has."""
    asked: dict[str, Any] = {
        "source": {"table": str(places / "parts")}, "draws": None, "public": ["colour"],
        "mechanism": "unary-encoding", "privacy": {"notion": "ldp-x", "epsilon": 1.0}, **SPARK,
    }  # fmt: skip
    a, b = (content(released(tmp_path / name, places, **asked)) for name in "ab")
    assert a[0] == b[0]
    assert a[1] != b[1]


def test_a_plan_says_what_spark_will_be_asked(places: Path, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source={"table": str(places / "parts"), "entity": "id"}, sensitive=["answer"],
                          public=["colour"], **SPARK)  # fmt: skip
    shown = funnel.explain(policy).text()
    assert "FROM arrived" in shown
    assert "bitstring_agg" not in shown
    with planned(load(policy), Limits()) as (_, engine, _):
        assert isinstance(engine, Spark)


def as_database(folder: Path) -> str:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS {PEOPLE}")
    return "people.duckdb#people"


def as_delta(folder: Path) -> str:
    library = pytest.importorskip("deltalake")
    library.write_deltalake(str(folder / "people"), duckdb.sql(PEOPLE).to_arrow_table())
    return "people"


def as_iceberg(folder: Path) -> str:
    made = pytest.importorskip("pyiceberg.catalog.memory").InMemoryCatalog("made", warehouse=f"file://{folder}")
    made.create_namespace("city")
    rows = duckdb.sql(PEOPLE).to_arrow_table()
    made.create_table("city.people", rows.schema, location=f"file://{folder}/people").append(rows)
    return "people"


NOT_READ = {
    "a database": as_database,
    "Delta": as_delta,
    "Iceberg": as_iceberg,
    "PostgreSQL": lambda _: "postgresql://reader@host.invalid/people#public.people",
}


@pytest.mark.parametrize("kind", NOT_READ)
@pytest.mark.parametrize("ask", [funnel.explain, funnel.run])
def test_tables_that_spark_does_not_read_are_refused_with_what_to_do(tmp_path: Path, kind: str, ask: Any) -> None:
    """In the same words, before Spark begins, and before anybody else is asked for rows."""
    source = {"table": NOT_READ[kind](tmp_path)}
    policy = write_policy(tmp_path, source=source, draws=None, sensitive=["answer"], public=["colour"], **SPARK)
    with pytest.raises(SourceError, match=r"(?s)tables are Parquet, CSV or JSON lines in files.*Write the table as"):
        ask(policy)


BUCKET = """
import sys
import funnel
try:
    print(funnel.run(sys.argv[1]).release)
except funnel.FunnelError as error:
    print(error)
"""


@pytest.mark.long
def test_a_store_is_read_through_a_file_system_that_the_policy_names(places: Path, by_duckdb, tmp_path: Path) -> None:
    """Folders of partitions in Parquet: the same bytes as from files. Hadoop lets a folder here pass for a bucket."""
    settings = SETTINGS | {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "spark.hadoop.fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "spark.hadoop.fs.viewfs.mounttable.bucket.link./people": f"file://{places}/parts",
    }

    def told(folder: Path, table: str) -> str:
        """What a process of its own says of a release from there."""
        folder.mkdir()
        source = {"table": table, "entity": "id", "missing": "category"}
        policy = write_policy(
            folder, source=source, sensitive=["answer"], public=PUBLIC, engine="spark", spark=settings
        )
        command = [sys.executable, "-c", BUCKET, str(policy)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    assert content(Path(told(tmp_path / "there", "s3://bucket/people"))) == by_duckdb
    assert "[source-missing]" in told(tmp_path / "not", "s3://bucket/people/nobody")
    nothing_published(tmp_path / "not")


def test_a_store_that_spark_has_no_file_system_for_is_refused_with_what_to_do(tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source={"table": "s3://bucket.invalid/people/"}, draws=None, sensitive=["answer"],
                          public=["colour"], **SPARK)  # fmt: skip
    with pytest.raises(SourceError, match=r"(?s)UnsupportedFileSystemException.*hadoop-aws") as caught:
        funnel.run(policy)
    assert caught.value.code == "source-unreachable"
    nothing_published(tmp_path)


def test_a_store_that_changes_between_readings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what its file system says of its files."""
    stored, listed = Stored("s3://bucket/people", {}), [("s3://bucket/people/a.parquet", 10, 1)]
    monkeypatch.setattr(Stored, "_listed", lambda _: tuple(listed))
    assert stored._found
    stored.check_unchanged()
    listed[0] = ("s3://bucket/people/a.parquet", 10, 2)
    with pytest.raises(SourceError, match="source-changed"):
        stored.check_unchanged()


def test_without_java_it_says_what_to_install(places: Path, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source={"table": str(places / "parts"), "entity": "id"}, sensitive=["answer"],
                          public=["colour"], **SPARK)  # fmt: skip
    environment = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}
    command = [sys.executable, "-m", "funnel", "run", str(policy)]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 1
    assert "openjdk-17-jre-headless" in found.stderr
