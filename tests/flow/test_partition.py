"""A table in folders by the values of a column: the same table to every reader, nothing more to anybody."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.audit.kernel.opened import Opened
from funnel.errors import PolicyError
from funnel.format.manifest import CATALOGUES
from funnel.plan.also import _table
from funnel.release.export import connected
from funnel.release.folders import MISSING, folder, in_order, parts, ranks, value_of
from funnel.release.publish import Publisher
from funnel.release.recover import staged_for
from tests.flow.conftest import evidence_left, nothing_published
from tests.support.audited import failures
from tests.support.policies import write_policy
from tests.support.towns import WIDE, people

TOWNS = ["a/b=c", "Ü x", None, "007", "%41", "..", "NULL", ""]
ROWS = 40
PLAIN = {
    "source__table": "towns.parquet",
    "source__entity": None,
    "source__missing": "category",
    "draws": {"kind": "fresh"},
    "sensitive": ["s"],
    "public": ["age", "town"],
    "mechanism": "randomised-response",
    "release__partition": {"column": "town", "rows": ROWS},
}
CASES = {
    "parquet": {},
    "csv": {"release__format": "csv"},
    "counts": {"release__rows": "counts"},
    "named": {"release__identify": ["name"]},
    "named csv": {"release__identify": ["name"], "release__format": "csv"},
}


def towns(target: Path) -> None:
    rows = range(600)
    told = {
        "name": pa.array([f"n{i * 7919 % 10007}" for i in rows]),
        "town": pa.array([TOWNS[i * i % 8 if i % 3 else i % 8] for i in rows]),
        "age": pa.array([i % 5 for i in rows], pa.int16()),
        "s": pa.array([f"s{i % 7 % 2}" for i in rows]),
    }
    pq.write_table(pa.table(told), target)


@pytest.fixture(scope="module")
def made(tmp_path_factory, key) -> dict[str, Path]:
    """Releases that are only read."""
    found = {}
    with pytest.MonkeyPatch.context() as inside:
        inside.setenv("FUNNEL_KEY", key)
        for name, changes in CASES.items():
            root = tmp_path_factory.mktemp("parted")
            towns(root / "towns.parquet")
            found[name] = Path(str(funnel.run(write_policy(root, **PLAIN | changes)).release))
        root = tmp_path_factory.mktemp("wide")
        people(root)
        for name, changes in {"wide": {}, "wide named": {"release__identify": ["id"]}}.items():
            asked = {"release__partition": "town", "release__private": name, "release__to": f"to {name}"}
            found[name] = Path(str(funnel.run(write_policy(root, **WIDE | asked | changes)).release))
    return found


@pytest.mark.parametrize("values", ["[0, 1.1e-7, 1]", "[0, 1e-7, 2e-7]"])
def test_small_decimals_name_folders_as_they_are_told(tmp_path, key, monkeypatch, values):
    monkeypatch.setenv("FUNNEL_KEY", key)
    rows = f"SELECT i // 3 % 2 AS w, ({values})[i % 3 + 1]::DOUBLE AS v, 's' || (hash(i) % 2) AS s FROM range(600) t(i)"
    duckdb.sql(rows).write_parquet(str(tmp_path / "towns.parquet"))
    asked = {"public": [{"name": "v", "round": 1e-7}, "w"], "release__partition": "v"}
    release = Path(funnel.run(write_policy(tmp_path, **PLAIN | asked)).release)
    assert all("E" not in one.name for one in (release / "data").iterdir())
    assert failures(funnel.audit_release(release, tmp_path / "private")) == set()


@pytest.mark.parametrize("day", ["DATE '10000-01-01'", "DATE '0044-03-15 (BC)'"])
def test_days_that_readers_cannot_read_are_no_names_of_folders(tmp_path, key, monkeypatch, day):
    monkeypatch.setenv("FUNNEL_KEY", key)
    days = f"[DATE '2020-01-01', {day}][i % 2 + 1] AS v"
    rows = f"SELECT i // 2 % 2 AS w, {days}, 's' || (hash(i) % 2) AS s FROM range(600) t(i)"
    duckdb.sql(rows).write_parquet(str(tmp_path / "towns.parquet"))
    with pytest.raises(funnel.FunnelError, match="of no year from 1 to 9999"):
        funnel.run(write_policy(tmp_path, **PLAIN | {"public": ["v", "w"], "release__partition": "v"}))


def told(release: Path) -> Counter:
    """The released rows as released.json has them."""
    shown = json.loads((release / "released.json").read_text())
    blocks = json.loads((release / "protocol.json").read_text())["blocks"]
    found = Counter()
    for *codes, times in shown["rows"]:
        age, town = (block["outputs"][y][0] for block, y in zip(blocks, codes, strict=True))
        found[int(age), town] += times
    return found


@pytest.mark.long
@pytest.mark.parametrize("case", ["parquet", "csv"])
def test_every_reader_has_the_released_rows(made, case):
    release = made[case]
    reader = f"read_{case}('{release}/data/*/*.{case}', hive_partitioning = true)"
    rows = duckdb.sql(f"SELECT age, town FROM {reader}").fetchall()
    assert Counter(rows) == told(release)
    dataset = ds.dataset(release / "data", format=case, partitioning="hive")
    table = dataset.to_table(["age", "town"])
    assert Counter(zip(*(column.to_pylist() for column in table.columns), strict=True)) == told(release)


@pytest.mark.parametrize("case", ["parquet", "named", "wide", "counts"])
def test_files_are_listed_bounded_and_sorted_as_one_file_is(made, case):
    """Nothing is in a folder's name but a released value, and the place of a row in its file says nothing."""
    release = made[case]
    stated = json.loads((release / "release.json").read_text())
    files = sorted(path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file())
    assert files == sorted([*stated["files"], "release.json"])
    tables = [release / name for name in files if name.startswith("data/")]
    sizes = Counter()
    for path in tables:
        table = pq.read_table(path, partitioning=None)
        assert 0 < table.num_rows <= stated["partition"]["rows"]
        assert "town" not in table.column_names
        sizes[path.parent] += table.num_rows
    if case == "parquet":
        assert len(sizes) == len(TOWNS) < len(tables)
        for place, rows in sizes.items():
            assert len(list(place.iterdir())) == -(-rows // ROWS)  # all but the last are full
            own = duckdb.sql(f"SELECT age FROM read_parquet({sorted(map(str, place.iterdir()), key=_number)})")
            ages = [age for (age,) in own.fetchall()]
            assert ages == sorted(ages)
    assert {path.stat().st_mode & 0o777 for path in [release, release / "data", *sizes]} == {
        release.parent.stat().st_mode & 0o777
    }


def _number(path: str) -> int:
    return int(Path(path).stem.rpartition("-")[2])


@pytest.mark.long
@pytest.mark.parametrize("case", [*CASES, "wide", "wide named"])
def test_the_audit_writes_every_file_again(made, case):
    release = made[case]
    private = release.parent.parent / (case if case.startswith("wide") else "private")
    found = funnel.audit_release(release, private)
    assert not failures(found)
    detail = next(one.detail for one in found.findings if one.claim == "data-export")
    assert "the same bytes when written again" in detail
    with connected(release / "data") as engine:
        sent, columns = _table(engine(), Opened(release))
        rows = len(sent)
    opened = funnel.open_release(release)
    assert opened.table().num_rows == rows
    assert opened.table().column_names == [name for name, _ in columns]


@pytest.mark.parametrize("case", ["parquet", "csv", "wide"])
def test_catalogues_list_every_file_of_the_table(made, case):
    release = made[case]
    stated = Opened(release).manifest
    files = in_order(stated.tables)
    package, bread, data = (json.loads((release / name).read_text()) for name in CATALOGUES)
    table = package["resources"][0]
    columns = funnel.open_release(release).table().column_names
    assert table["path"] == files and not {"bytes", "hash"} & {*table}
    assert [one["name"] for one in table["schema"]["fields"]] == [name for name in columns if name != "town"]
    assert table["partition"]["name"] == "town" and table["partition"]["description"].endswith("escaped as in a URL.")
    assert {name: one["sha256"] for name, one in _listed(bread).items()} == {
        name: one.sha256 for name, one in stated.files.items() if name not in CATALOGUES
    }
    (rows,) = bread["recordSet"]
    assert [one["name"] for one in rows["field"]] == [f"rows/{name}" for name in columns]
    own = next(one["source"]["transform"]["regex"] for one in rows["field"] if one["name"] == "rows/town")
    names = {unquote(re.search(own, name)[1]) for name in files}
    assert names == {MISSING if (value := value_of(name, "town")) is None else value for name in files}
    assert [unquote(one["dcat:downloadURL"]["@id"]) for one in data["dcat:distribution"]] == files
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import frictionless
        import mlcroissant

        assert not mlcroissant.Dataset(jsonld=str(release / "croissant.json")).metadata.issues.errors
        found = frictionless.validate(str(release / "datapackage.json"))
    assert found.valid, found.flatten(["type", "note"])


def _listed(bread: dict) -> dict[str, dict]:
    return {one["@id"]: one for one in bread["distribution"] if one["@type"] == "cr:FileObject"}


def test_what_one_of_the_files_tells_of_itself_is_compared(made, tmp_path):
    release = tmp_path / "releases" / made["parquet"].name
    shutil.copytree(made["parquet"], release)
    file = sorted((release / "data").glob("*/part-1.parquet"))[0]
    shown = pq.ParquetFile(file)
    with pq.ParquetWriter(file.with_name("new"), shown.schema_arrow, compression="zstd", store_schema=False) as writer:
        writer.add_key_value_metadata({"release": release.name, "columns": "{}"})
        for batch in shown.iter_batches():
            writer.write_batch(batch)
    file.with_name("new").rename(file)
    _fit(release)
    (said,) = [one.detail for one in funnel.audit_release(release).findings if one.claim == "data-export"]
    assert "the file tells something else of itself" in said


def test_estimates_and_weights_are_those_of_the_released_rows(made):
    for case in ("parquet", "counts"):
        opened = funnel.open_release(made[case])
        assert sum(opened.weights().to_pylist()) == pytest.approx(600)
        table = opened.table().append_column("w", opened.weights())
        seen = {}
        for row in zip(*(table.column(name).to_pylist() for name in ("age", "town", "w")), strict=True):
            times = told(made[case])[row[:2]] if case == "counts" else 1
            assert seen.setdefault(row[:2], row[2] / times) == pytest.approx(row[2] / times)
    assert funnel.estimate_counts(made["parquet"]).blocks


def _fit(release: Path) -> None:
    path = release / "release.json"
    stated = json.loads(path.read_text())
    for name, entry in funnel.plan.write._entries(release).items():
        if name in stated["files"]:
            stated["files"][name] = {"sha256": entry.sha256, "bytes": entry.bytes}
    path.write_bytes(funnel.format.canonical.encode(stated))


def _moved(data: Path) -> None:
    first, second = sorted(data.glob("*/part-0.parquet"))[:2]
    raw = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(raw)


def _linked(data: Path) -> None:
    place = sorted(data.iterdir())[0]
    place.rename(data.parent.parent / "elsewhere")
    place.symlink_to(data.parent.parent / "elsewhere")


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (_moved, "file-hashes"),
        (_linked, "file-list"),
        (lambda data: (data / "town=more").mkdir(), "file-list"),
        (lambda data: (data / "note").write_text("s0"), "file-list"),
        (lambda data: next(data.glob("*/part-1.parquet")).unlink(), "file-list"),
    ],
)
def test_whatever_is_changed_in_a_folder_fails_the_audit(made, change, claim, tmp_path):
    release = tmp_path / "releases" / made["parquet"].name
    shutil.copytree(made["parquet"], release)
    assert not failures(funnel.audit_release(release))
    change(release / "data")
    assert claim in failures(funnel.audit_release(release))


def test_rows_moved_to_another_folder_fail_though_every_hash_is_made_to_fit(made, tmp_path):
    release = tmp_path / "releases" / made["named"].name
    shutil.copytree(made["named"], release)
    _moved(release / "data")
    _fit(release)
    assert "data-export" in failures(funnel.audit_release(release))


def test_a_run_that_is_killed_leaves_no_folder(tmp_path, monkeypatch):
    towns(tmp_path / "towns.parquet")
    policy = write_policy(tmp_path, **PLAIN)

    def killed(self, entry):
        assert next(self.public.glob("data/*/part-0.parquet"))
        raise KeyboardInterrupt

    with monkeypatch.context() as inside:
        inside.setattr(Publisher, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            funnel.run(policy)
    assert nothing_published(tmp_path)
    assert [one for one in evidence_left(tmp_path) if one.startswith("2")] == []
    releases, first = tmp_path / "releases", Path(str(funnel.run(policy).release))
    first.rename(releases / f".staging-{first.name}")  # as a power cut leaves it, before anybody could see it
    (tmp_path / "private" / first.name / "published").unlink()
    (tmp_path / "private" / staged_for(first.name)).symlink_to(releases.resolve())
    second = Path(str(funnel.run(policy).release))
    assert sorted(path.name for path in releases.iterdir()) == sorted([second.name, "latest"])
    assert (releases / "latest").resolve() == second


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"release__partition": "twon"}, "unknown-column", "Did you mean `town`?"),
        ({"release__partition": "s"}, "unknown-column", "`s` is no public column"),
        ({"public": ["town"]}, "unsupported", "all that is released"),
        ({"public": ["town"], "release__partition": "s"}, "unknown-column", "Leave `partition` out."),
        ({"release__partition": {"column": "town", "rows": 0}}, "wrong-value", "rows"),
        ({"mechanism": "unary-encoding", "privacy__notion": "ldp"}, "unsupported", "sets of values"),
    ],
)
def test_a_column_that_can_have_no_folders_is_refused(tmp_path, changes, code, said):
    towns(tmp_path / "towns.parquet")
    with pytest.raises(PolicyError) as refused:
        funnel.load(write_policy(tmp_path, **PLAIN | changes))
    (problem,) = refused.value.problems
    assert problem.code == code
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"release__partition": {"column": "town", "rows": 1}, "table": 12_000}, "12,008 files, 8 values of 12,000"),
        ({"town": "ü" * 50}, "needs more than the 255 bytes"),
        ({"town": MISSING}, "names missing values"),
    ],
)
def test_the_plan_refuses_folders_that_nobody_could_have(tmp_path, command, changes, said):
    towns(tmp_path / "towns.parquet")
    source = pq.read_table(tmp_path / "towns.parquet")
    if times := changes.pop("table", 0) // 600:
        source = pa.concat_tables([source] * times)
    if town := changes.pop("town", None):
        source = source.set_column(1, "town", [[town if one == "007" else one for one in source["town"].to_pylist()]])
    pq.write_table(source, tmp_path / "towns.parquet")
    refused = command("plan", write_policy(tmp_path, **PLAIN | changes))
    assert refused.code == 1
    assert said in refused.err
    assert town is None or town[:9] not in refused.err  # a value is a person's, whoever reads the log
    assert nothing_published(tmp_path)


@pytest.mark.parametrize("value", [*TOWNS, "+", "a b", "*", "é" * 20, "2026-01-31", "\n"])
def test_a_value_comes_back_from_its_folder(value):
    name = folder("tö wn", value)
    assert name.isascii()
    assert not {"/", "*", "?", " ", "\n", '"'} & set(name)
    assert value_of(f"data/{name}/part-12.csv", "tö wn") == value
    with pytest.raises(ValueError, match="is no file of"):
        value_of(f"data/{name}/part-12.csv", "town")


def test_files_are_cut_by_rows_wherever_batches_end():
    values = pa.array([None] * 3 + ["b"] * 5 + ["a"] * 2)
    order = ranks(values).argsort(kind="stable")
    table = pa.table({"x": range(10), "v": values}).take(pa.array(order))
    found = {
        size: [(name, [x for batch in own for x in batch.column(0).to_pylist()])
               for name, own in parts(table.to_batches(size), "v", 2)]
        for size in (1, 3, 10)
    }  # fmt: skip
    assert found[1] == found[3] == found[10] == [
        (f"v={MISSING}/part-0", [0, 1]), (f"v={MISSING}/part-1", [2]), ("v=a/part-0", [8, 9]),
        ("v=b/part-0", [3, 4]), ("v=b/part-1", [5, 6]), ("v=b/part-2", [7]),
    ]  # fmt: skip
