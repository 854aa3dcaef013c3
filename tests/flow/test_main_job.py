"""One command makes an audited release of the census; another re-checks it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import funnel
from tests.flow.conftest import nothing_published
from tests.support.policies import write_policy
from tests.support.withheld import NARROWED, withheld

POLICIES = sorted((Path(__file__).parents[2] / "policies").glob("*.yaml"))


@pytest.mark.long
def test_the_census_release_keeps_what_the_optimum_keeps(cli, tmp_path):
    path = write_policy(tmp_path)
    run = cli("run", path, "--json")
    assert run.code == 0, run.err
    summary = run.json
    assert summary["rows"] == 32_561
    assert summary["leakage"]["lip"] <= 1
    assert summary["utility"]["normalised"] >= 0.9397
    assert summary["utility"]["normalised"] <= summary["utility"]["upper_bound"] <= 0.93981
    assert summary["alphabet"]["sensitive"] == 7
    assert summary["alphabet"]["public"] == 16
    assert summary["alphabet"]["released"] <= 16

    release = Path(summary["release"])
    assert sorted(file.name for file in release.iterdir()) == [
        "croissant.json",
        "data.parquet",
        "datapackage.json",
        "dcat.jsonld",
        "protocol.json",
        "release.json",
        "released.json",
        "report.html",
        "report.json",
    ]
    assert (tmp_path / "releases" / "latest").resolve() == release.resolve()
    audit = cli("audit", release, "--private", tmp_path / "private", "--json")
    assert audit.code == 0, audit.out
    assert audit.json["passed"] is True


@pytest.fixture
def released(tmp_path, key, monkeypatch):
    """A release made in this process."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def make(**changes) -> tuple[funnel.Summary, Path]:
        summary = funnel.run(write_policy(tmp_path, **changes))
        return summary, Path(summary.release)

    return make


def test_rows_leave_sorted_and_typed_and_nothing_else_leaves(released):
    summary, release = released(public=["education_num"], privacy__epsilon=2.0)
    rows = duckdb.sql(f"SELECT * FROM '{release}/data.parquet'")
    assert rows.columns == ["education_num"]
    assert str(rows.types[0]) == "SMALLINT"
    values = [row[0] for row in rows.fetchall()]
    assert values == sorted(values)
    assert len(values) == summary.joint.rows
    published = b"".join(file.read_bytes() for file in release.iterdir() if file.suffix == ".json")
    assert b"cells" not in published
    assert b"funnel-key-1" not in published


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_of_counts_says_what_one_of_records_does(released, command, form, tmp_path):
    """Permanent draws: the same answers, in as many rows as are distinct; nobody can add to a count unseen."""
    _, records = released(release__format=form)
    _, counts = released(release__format=form, release__rows="counts")
    asked = "SELECT education, {} AS n FROM '{}' GROUP BY 1 ORDER BY 1"
    one = duckdb.sql(asked.format("count(*)", records / f"data.{form}")).fetchall()
    assert duckdb.sql(asked.format("sum(count)", counts / f"data.{form}")).fetchall() == one
    assert sorted(duckdb.sql(f"FROM '{counts}/data.{form}'").fetchall()) == one
    told = [funnel.estimate_counts(folder).blocks for folder in (records, counts)]
    assert told[0] == told[1]
    stated = json.loads((counts / "release.json").read_text())
    assert (stated["rows_of_data"], stated["rows"]) == ("counts", 32_561)
    assert "column “count”" in json.loads((counts / "report.json").read_text())["scope"]["records"]
    assert command("audit", counts, "--private", tmp_path / "private").code == 0
    moved = f"SELECT * REPLACE (count + (education = '{one[0][0]}')::BIGINT AS count) FROM '{counts}/data.{form}'"
    duckdb.sql(f"COPY ({moved}) TO '{counts}/forged' (FORMAT {form})")
    (counts / "forged").replace(counts / f"data.{form}")
    found = {one.claim: one.detail for one in funnel.audit_release(counts).of("failed")}
    assert "count holds other values than were released" in found["data-export"]


def test_csv_and_parquet_hold_the_same_rows(released, tmp_path):
    _, parquet = released()
    _, csv = released(release__format="csv")
    tables = [
        Counter(duckdb.sql(f"SELECT education FROM '{path}'").fetchall())
        for path in (parquet / "data.parquet", csv / "data.csv")
    ]
    assert tables[0] == tables[1]


@pytest.mark.long
def test_permanent_draws_answer_the_same_every_night_and_fresh_ones_do_not(released):
    def counts(release: Path) -> Counter:
        return Counter(duckdb.sql(f"SELECT education FROM '{release}/data.parquet'").fetchall())

    same = [counts(released()[1]) for _ in range(2)]
    assert same[0] == same[1]
    fresh = [counts(released(source__entity=None, draws={"kind": "fresh"}, accept="unbounded")[1]) for _ in range(2)]
    assert fresh[0] != fresh[1]


@pytest.mark.long
def test_another_key_draws_otherwise(released, tmp_path, monkeypatch):
    first = json.loads((released(accept="unbounded")[1] / "release.json").read_text())
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    funnel.rotate_key(tmp_path / "policy.yaml", accept=True)
    second = json.loads((released(accept="unbounded")[1] / "release.json").read_text())
    assert first["draws"]["key_fingerprint"] != second["draws"]["key_fingerprint"]
    assert first["files"]["data.parquet"]["sha256"] != second["files"]["data.parquet"]["sha256"]


def test_missing_values_can_be_a_category_or_be_dropped(released, tmp_path):
    duckdb.sql(
        f"""COPY (SELECT i AS id, CASE i % 4 WHEN 0 THEN NULL ELSE 'v' || (i % 4) END AS x,
                  CASE WHEN i % 7 < 3 THEN 'a' ELSE 'b' END AS s FROM range(4000) t(i))
            TO '{tmp_path}/t.parquet'"""
    )
    base = {"source": {"table": "t.parquet", "entity": "id"}, "sensitive": ["s"], "public": ["x"]}
    summary, release = released(**base, source__missing="category")
    assert summary.joint.rows == 4000
    assert duckdb.sql(f"SELECT count(*) FROM '{release}/data.parquet' WHERE x IS NULL").fetchall()[0][0] > 0
    summary, release = released(**base, source__missing="drop")
    assert summary.joint.rows == 3000
    assert duckdb.sql(f"SELECT count(*) FROM '{release}/data.parquet' WHERE x IS NULL").fetchall()[0][0] == 0


def test_bins_top_and_filter_shape_the_alphabet(released):
    summary, _ = released(public=[{"name": "age", "bins": [0, 25, 45, 65]}], source__filter="sex = 'Female'")
    assert summary.joint.rows == 10_771
    assert [value[0] for value in summary.joint.blocks[0].values] == [
        "[0, 25)",
        "[25, 45)",
        "[45, 65)",
        "[65, ∞)",
    ]
    summary, _ = released(public=[{"name": "native_country", "top": 3}], accept="unbounded")
    assert len(summary.joint.blocks[0]) == 4
    assert ("other",) in summary.joint.blocks[0].values
    assert ("United-States",) in summary.joint.blocks[0].values


def test_a_dry_run_draws_and_writes_nothing(command, tmp_path):
    run = command("run", write_policy(tmp_path), "--dry-run", "--json", env={"FUNNEL_KEY": funnel.new_key()})
    assert run.code == 0
    assert run.json["release"] is None
    assert run.json["utility"]["normalised"] >= 0.9397
    assert nothing_published(tmp_path)
    assert not (tmp_path / "private").exists()


@pytest.mark.long
@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_every_ready_policy_runs_and_passes_its_audit(path, tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    text = path.read_text().replace("../examples", str(path.parents[1] / "examples")).replace("../", "")
    (tmp_path / path.name).write_text(text)
    for groups in path.parent.glob("*.csv"):
        shutil.copy(groups, tmp_path)
    summary = funnel.run(tmp_path / path.name)
    assert summary.measured.kept_information > 0
    report = funnel.audit_release(summary.release, tmp_path / "private" / path.stem)
    assert report.passed, report.text()
    # A release that is asked for by its own name need not be the newest, and nothing is before a first one.
    unproven = {"utility-bound", "lock", "drift", "signature", "newest", "source-counts", "draws-repeat", "ledger-kept"}
    estimated = {"estimate-spent", "estimate-noise", "estimate-declared"}
    unproven |= {"leakage-true"} | (set() if path.stem == "private-estimate" else estimated)
    unproven |= set() if "\n  beliefs:" in text else {"rounded-beliefs"}
    unproven |= set() if summary.protection.mechanism.kind == "invariant" else {"totals"}
    unproven |= set() if "\n    cells:" in text else {"cells"}
    unproven |= set() if summary.measured.measure == "rldp" else {"uncertainty"}  # not claimed elsewhere
    unproven |= set() if "\n  knows:" in text else {"known"}
    unproven |= set() if "\n  filter:" in text else {"absent"}
    assert {finding.claim for finding in report.findings if finding.status == "not checked"} <= unproven
    html = Path(summary.release, "report.html").read_text()
    assert "<script" not in html
    assert "http://" not in html.replace("http://www.w3.org/", "")
    withheld(Path(summary.release))
    told = funnel.run(tmp_path / path.name, dry_run=True).narrowed
    found = (told.narrowed, told.cells) if told else None
    expected = NARROWED.get(path.stem, (0, told.cells) if told else ...)
    assert found == expected, "and SECURITY.md"


def test_security_names_every_policy_of_which_nobody_reckons_what_weights_tell():
    text = " ".join((Path(__file__).parents[2] / "SECURITY.md").read_text().split())
    told = text.partition("Not computed for ")[2].partition(", nor where counts are noisy.")[0]
    named = {one.strip("`").removesuffix(".yaml") for one in told.replace(" and ", ", ").split(", ")}
    assert named == {name for name, found in NARROWED.items() if found is None} - {"private-estimate"}
