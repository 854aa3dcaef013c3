"""Policy + schema -> plan: what is quoted, what is refused, and that a plan holds no data."""

from __future__ import annotations

import duckdb
import pytest

import funnel
from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import find
from funnel.errors import PolicyError
from funnel.plan.build import compile_plan
from funnel.plan.columns import bin_labels
from funnel.plan.explain import explain as explained
from funnel.plan.stages import Count, Draw, Plan, Scan
from tests.support.policies import write_policy


def compiled(path) -> Plan:
    policy = funnel.load(path)
    source = find(policy.path(policy.source.table))
    with DuckDB(source) as engine:
        return compile_plan(policy, engine.schema(), source)


def codes(path) -> list[tuple[str, int]]:
    with pytest.raises(PolicyError) as caught:
        compiled(path)
    return [(problem.code, problem.line) for problem in caught.value.problems]


def test_steps_come_in_the_order_of_the_work(tmp_path):
    titles = [stage.title for stage in compiled(write_policy(tmp_path)).stages]
    assert titles == [
        "scan", "inspect", "count", "solve", "draw", "identify", "people", "write", "audit", "publish",
    ]  # fmt: skip
    named = [stage.title for stage in compiled(write_policy(tmp_path, release__identify=["person_id"])).stages]
    assert named == [
        "scan", "inspect", "count", "name", "solve", "draw", "identify", "people", "write", "audit", "publish",
    ]  # fmt: skip
    fresh = write_policy(tmp_path, source__entity=None, draws={"kind": "fresh"})
    assert compiled(fresh).identify is None


def test_a_run_carries_out_the_stages_of_its_plan_in_their_order(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    path, told = write_policy(tmp_path), list[str]()
    funnel.run(path, progress=lambda stage, *_: told.append(stage))
    titles = [stage.title for stage in compiled(path).stages]
    assert list(dict.fromkeys(one for one in told if one in titles)) == titles


def test_every_misfit_is_reported_at_its_line(tmp_path):
    path = write_policy(
        tmp_path,
        sensitive=["maritalstatus"],
        public=["education", {"name": "sex", "bins": [0, 1]}],
        source__filter="agee > 3",
    )
    text = path.read_text().splitlines()
    at = {
        word: next(i for i, line in enumerate(text, 1) if word in line)
        for word in ("agee", "maritalst", "sex")
    }
    assert codes(path) == [
        ("unknown-column", at["agee"]),
        ("unknown-column", at["maritalst"]),
        ("column-type", at["sex"]),
    ]


@pytest.mark.parametrize(
    "text", ["age > 18; DROP TABLE source", "age", "random() < 1", "1) OR (1=1", "age > (SELECT 1)"]
)
def test_a_filter_that_is_not_a_condition_is_refused(tmp_path, text):
    assert [code for code, _ in codes(write_policy(tmp_path, source__filter=text))] == ["filter"]


@pytest.mark.parametrize("text", ["x = 37", "x <> 37", "x >= 37", "n = 'x'"])
@pytest.mark.parametrize("table", ["people.csv", "people.parquet"])
def test_a_filter_that_would_round_texts_or_reads_none_is_told_to_be_at_fault(tmp_path, table, text):
    """A column of numbers that a CSV gives and a release holds is the texts that stand there."""
    people = "SELECT 's' || i % 2 AS s, CAST([36.6, 37, 37.4][i % 3 + 1] AS VARCHAR) AS x, i AS n FROM range(60) t(i)"
    duckdb.sql(f"COPY ({people}) TO '{tmp_path / table}'")
    source = {"table": table, "entity": "n", "filter": text}
    path = write_policy(tmp_path, source=source, sensitive=["s"], public=["x"])
    assert [code for code, _ in codes(path)] == ["filter"]
    terms = source | {"filter": "CAST(x AS DOUBLE) = 37"}
    right = write_policy(tmp_path, source=terms, sensitive=["s"], public=["x"], accept=["unbounded"])
    assert funnel.run(right, dry_run=True).joint.counts.sum() == 20


def test_column_names_ignore_case_but_the_release_keeps_the_policys_spelling(tmp_path):
    plan = compiled(write_policy(tmp_path, public=["Education"]))
    count = plan.count
    assert count.blocks == (("Education",),)


def test_roles_are_found_in_whatever_case_a_policy_names_them(tmp_path):
    query = "SELECT i AS id, 's' || (i % 2) AS s, 'x' || (i % 3) AS x FROM range(90) t(i)"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path}/people.parquet'")
    source = {"table": "people.parquet", "entity": "ID", "filter": "Id >= 0"}
    path = write_policy(tmp_path, source=source, sensitive=["S"], public=["X"], release__identify=["iD"])
    assert funnel.run(path, dry_run=True).as_dict()["rows"] == 90


def test_hostile_names_are_quoted(tmp_path):
    evil = 'x"; DROP TABLE source; --'
    quoted = evil.replace('"', '""')
    duckdb.execute(f"""COPY (SELECT (i % 2)::VARCHAR AS s, (i % 3)::VARCHAR AS "{quoted}" FROM range(90) t(i))
                       TO '{tmp_path}/evil.parquet'""")
    path = write_policy(
        tmp_path, source={"table": "evil.parquet"}, sensitive=["s"], public=[evil], draws={"kind": "fresh"}
    )
    summary = funnel.run(path, dry_run=True)
    assert summary.as_dict()["rows"] == 90


def test_the_plan_is_the_same_whatever_the_data_says(tmp_path):
    for name, values in (
        ("one", "('a', 'x'), ('b', 'y')"),
        ("two", "('zebra', 'q'), ('yak', 'r'), ('b', 'y')"),
    ):
        duckdb.execute(f"COPY (SELECT * FROM (VALUES {values}) t(s, x)) TO '{tmp_path}/{name}.parquet'")
    plans = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.parquet").replace(tmp_path / "table.parquet")
        path = write_policy(
            tmp_path,
            source={"table": "table.parquet"},
            sensitive=["s"],
            public=[{"name": "x", "top": 2}],
            draws={"kind": "fresh"},
        )
        plans.append(compiled(path))
    assert plans[0] == plans[1]
    assert plans[0].sha256 == plans[1].sha256
    assert not any(value in plans[0].text() for value in ("zebra", "yak"))


def test_another_policy_is_another_plan(tmp_path):
    first = compiled(write_policy(tmp_path))
    second = compiled(write_policy(tmp_path, privacy={"notion": "lip", "epsilon": 1.5}))
    assert first.sha256 != second.sha256


def test_explain_shows_every_statement_that_runs_and_the_solver(tmp_path):
    explained = funnel.explain(write_policy(tmp_path))
    text = explained.text()
    for step in explained.plan.stages:
        for statement in (
            *(step.statements if isinstance(step, Scan | Count) else ()),
            *((step.statement,) if isinstance(step, Draw) else ()),
        ):
            assert statement in text
    times = "inspect 1, count 1, draw 1, identify 2"
    assert f"the table is read 5 times at most ({times}); under a lock once" in text
    told = explained.sizes.as_dict()
    assert (told["sensitive"], told["public"]) == (7, [16])
    assert told["solver"][0] in text
    assert "Bachelors" not in text


@pytest.mark.parametrize(
    ("changes", "rung", "words"),
    [
        ({"sensitive": ["sex"]}, "planar", "closed form"),
        ({}, "columns", "rows priced"),
        ({"sensitive": ["occupation"]}, "columns", "priced"),
        (
            {"privacy": {"notion": "ldp-x", "epsilon": 1}, "public": ["relationship"]},
            "known",
            "known from theory",
        ),
        (
            {"sensitive": ["income"], "public": [["income", "sex"]], "privacy__notion": "rldp"},
            "columns",
            "auxiliary",
        ),
    ],
)
def test_the_plan_says_how_large_the_search_will_be(tmp_path, changes, rung, words):
    mechanism = {"kind": "optimal", "time_limit": 7.0, "gap": 0.001}
    explained = funnel.explain(write_policy(tmp_path, mechanism=mechanism, estimate__minimum=1, **changes))
    (search,), (solver,) = explained.sizes.as_dict()["search"], explained.sizes.solvers
    assert search["rung"] == rung
    assert (search["time_limit"], search["gap"]) == (7.0, 0.001)
    assert {"dimension", "constraints", "rays", "seconds"} <= set(search)
    assert words in solver
    assert "ends after 7 s or within 0.001 of H(X)" in solver
    assert solver in explained.text()


NOISE = "estimate.kind: private, with values declared"


@pytest.mark.parametrize(
    ("changes", "ways"),
    [
        ({}, f"estimate.beliefs, rldp, {NOISE}"),
        ({"mechanism": "conditional-reporting"}, NOISE),
        ({"privacy__split": "optimal", "public": ["education", "sex"]}, f"rldp, {NOISE}"),
        (
            {"public": [{"name": "person", "columns": ["education", "sex"], "cells": {"most": 4, "minimum": 1}}]},
            "estimate.beliefs, rldp",
        ),
        ({"privacy": {"notion": "perfect"}}, f"rldp, {NOISE}"),
        ({"sensitive": ["income"], "public": [["income", "sex"]], "privacy__notion": "rldp"}, NOISE),
    ],
)
def test_the_plan_names_ways_out_that_are_open(tmp_path, changes, ways):
    """Each is refused under some notion, mechanism, split or block."""
    told = funnel.explain(write_policy(tmp_path, estimate__minimum=1, **changes)).text()
    assert f"ways out, where the table allows them: {ways}\n" in told


def test_chances_that_no_count_bears_on_are_not_said_to_tell_any(tmp_path):
    robust = {"sensitive": ["income"], "public": [["income", "sex"]], "privacy__notion": "rldp", "estimate__minimum": 1}
    for mechanism, tells in (("optimal", True), ("secret-randomised-response", False)):
        told = funnel.explain(write_policy(tmp_path, mechanism=mechanism, **robust)).text()
        assert ("chances made from these counts tell beliefs" in told) is tells


def test_no_split_is_searched_for_where_all_blocks_are_one(tmp_path):
    robust = {"sensitive": ["income"], "public": ["income", "sex"], "privacy__notion": "rldp", "estimate__minimum": 1}
    assert "searched for" not in funnel.explain(write_policy(tmp_path, privacy__split="optimal", **robust)).text()


def test_a_mechanism_that_searches_no_cone_foretells_none(tmp_path):
    explained = funnel.explain(write_policy(tmp_path, mechanism="randomised-response"))
    assert explained.sizes.as_dict()["search"] == [None]
    assert explained.sizes.solvers == ("bisection on the measured leakage",)


def test_bins_are_half_open_and_the_last_one_is_open():
    assert bin_labels((0, 25, 35.5)) == ["[0, 25)", "[25, 35.5)", "[35.5, ∞)"]


@pytest.mark.parametrize("kind", ["INTEGER", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(9,2)"])
def test_a_number_has_one_label_whatever_its_type(tmp_path, kind):
    """Permanent draws go by the label: one missing value must not turn 1 into 1.0 and redraw everybody."""
    query = f"SELECT i AS id, 's' || (i % 2) AS s, CAST(i % 3 AS {kind}) AS x FROM range(90) t(i)"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path}/t.parquet'")
    path = write_policy(
        tmp_path, source={"table": "t.parquet", "entity": "id"}, sensitive=["s"], public=["x"]
    )
    joint = funnel.run(path, dry_run=True).joint
    assert joint.blocks[0].values == (("0",), ("1",), ("2",))


def test_fractions_keep_what_they_say(tmp_path):
    duckdb.execute(f"""COPY (SELECT 's' || (i % 2) AS s, CAST((i % 3) / 4.0 AS DECIMAL(9,3)) AS d,
                       (i % 3) / 4.0::DOUBLE AS f FROM range(90) t(i)) TO '{tmp_path}/t.parquet'""")
    path = write_policy(tmp_path, source={"table": "t.parquet"}, sensitive=["s"], public=[["d", "f"]],
                        draws={"kind": "fresh"})  # fmt: skip
    values = funnel.run(path, dry_run=True).joint.blocks[0].values
    assert {value[0] for value in values} == {value[1] for value in values} == {"0", "0.25", "0.5"}


def test_letters_beyond_ascii_are_different_columns_as_duckdb_has_it(tmp_path):
    duckdb.execute(f"""COPY (SELECT 's' || (i % 2) AS "État", 'x' || (i % 3) AS x FROM range(90) t(i))
                       TO '{tmp_path}/t.parquet'""")
    path = write_policy(tmp_path, source={"table": "t.parquet"}, sensitive=["État"], public=["état"],
                        draws={"kind": "fresh"})  # fmt: skip
    assert [code for code, _ in codes(path)] == ["unknown-column"]


def test_a_pattern_that_reaches_into_the_release_folder_is_refused(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    (tmp_path / "data").mkdir()
    duckdb.execute(f"""COPY (SELECT i AS id, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(900) t(i))
                       TO '{tmp_path}/data/t.parquet'""")
    path = write_policy(tmp_path, source={"table": "data/**/*.parquet"}, sensitive=["s"], public=["x"],
                        draws={"kind": "fresh"}, release__to="data/out")  # fmt: skip
    assert funnel.run(path).release is not None
    with pytest.raises(funnel.SourceError) as caught:
        funnel.run(path)
    assert caught.value.code == "release-path"


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "DECIMAL(9,3)"])
def test_numbers_are_clipped_then_rounded_to_the_nearest_multiple(tmp_path, kind):
    query = f"SELECT i AS id, 's' || (i % 2) AS s, CAST(i % 12 AS {kind}) AS x FROM range(240) t(i)"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path}/t.parquet'")

    def values(**options):
        path = write_policy(
            tmp_path,
            source={"table": "t.parquet", "entity": "id"},
            sensitive=["s"],
            public=[{"name": "x"} | options],
        )
        return [value for (value,) in funnel.run(path, dry_run=True).joint.blocks[0].values]

    assert values(round=5) == ["0", "5", "10"]
    assert values(round=5, clip=[3, 8]) == ["5", "10"]
    assert values(round=2.5) == ["0.0", "2.5", "5.0", "7.5", "10.0"]
    assert values(round=0.5, clip=[1, 2.2]) == ["1.0", "2.0"]


def test_a_missing_number_stays_missing_when_rounded(tmp_path):
    query = "SELECT i AS id, 's' || (i % 2) AS s, nullif(i % 6, 5) AS x FROM range(240) t(i)"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path}/t.parquet'")
    path = write_policy(
        tmp_path,
        source={"table": "t.parquet", "entity": "id", "missing": "category"},
        sensitive=["s"],
        public=[{"name": "x", "round": 2, "clip": [0, 10]}],
    )
    assert funnel.run(path, dry_run=True).joint.blocks[0].values == (("0",), ("2",), ("4",), (None,))


def test_a_wide_block_is_planned_without_its_cells_and_the_secret(tmp_path):
    """Its columns are read once, and a macro stands for conditions that only the table will give."""
    inner = [
        "age",
        "education",
        {"name": "hours_per_week", "bins": [0, 35, 41]},
        {"name": "native_country", "top": 3},
    ]
    public = [{"name": "person", "columns": inner, "cells": {"most": 30, "minimum": 100}}, "sex"]
    path = write_policy(tmp_path, public=public)
    plan = compiled(path)
    assert [stage.title for stage in plan.stages][2:5] == ["identify", "cells", "count"]
    (wide,) = plan.cells.blocks
    assert wide.columns == ("age", "education", "hours_per_week", "native_country")
    assert (wide.types, wide.ordered) == (("SMALLINT", *["VARCHAR"] * 3), (True, False, False, False))
    assert (wide.most, wide.minimum, plan.cells.support) == (30, 100, 10)
    assert plan.count.blocks == (("person",), ("sex",))
    assert plan.write.columns == (*wide.columns, "sex")
    assert plan.write.types == (*wide.types, "VARCHAR")
    assert 'cell_0("w0_0", "w0_1", "w0_2", "w0_3") AS "x0_0"' in plan.count.statements[0]
    assert not any(
        "marital" in statement or "s0" in statement
        for statement in (wide.statement, *plan.cells.statements[1:-1])
    )
    assert "Bachelors" not in plan.text()
    assert "TEMP MACRO cell_0" in explained(plan)
