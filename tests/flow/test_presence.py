"""Who is in a release, with the real commands: absence is an answer, and what it tells is in every figure."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.audit.audit import audit_release
from funnel.errors import FunnelError, SourceError
from funnel.plan.recount import recounting
from tests.support.absence import odds_moved, vanished
from tests.support.audited import detail, failures, statuses
from tests.support.forging import Forged, edit, lines_of, rechain, seal
from tests.support.policies import write_policy

CLINIC = {
    "accept": "unbounded",
    "sensitive": ["diagnosis"],
    "public": ["job"],
    "privacy": {"notion": "ldp-x", "epsilon": 2.0},
    "mechanism": "randomised-response",
}
"""2,000 people of whom a few have what nobody should know."""
SOURCE = {"table": "people.parquet", "entity": "id", "missing": "category"}
LIP = {"privacy": {"notion": "lip", "epsilon": 0.2}, "mechanism": "optimal"}


@pytest.fixture
def clinic(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNNEL_KEY", key)
    rng = np.random.default_rng(7)
    diagnosis = np.array(["none", "flu", "hiv"])[rng.choice(3, 2000, p=[0.6, 0.36, 0.04])]
    job = [
        None if rng.random() < (0.3 if one == "hiv" else 0.02) else f"job {rng.integers(4)}" for one in diagnosis
    ]
    ward = rng.choice(["east", "west"], 2000)
    rows = list(zip(range(2000), diagnosis.tolist(), job, ward.tolist(), strict=True))
    names = ("id", "diagnosis", "job", "ward")
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    pq.write_table(table, tmp_path / "people.parquet")
    return tmp_path


def run(folder: Path, **changes: Any) -> Any:
    return funnel.run(write_policy(folder, **(CLINIC | {"source": SOURCE} | changes)))


def entries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["entry"] for line in (folder / "private" / "ledger.jsonl").read_text().splitlines()]


def everything_holds(folder: Path, release: str) -> dict[str, str]:
    """The audit, with the source counted again."""
    found = audit(folder, release, table=True)
    assert failures(found) == set(), found.text()
    return statuses(found)


def audit(folder: Path, release: str, *, table: bool = False) -> Any:
    recount = recounting(folder / "people.parquet") if table else None
    return audit_release(Path(release), folder / "private", recount=recount)


def test_those_absent_now_whose_value_was_other_then_are_not_left_out_of_the_bound(clinic: Path) -> None:
    """Of those in the west tonight leaves out, each who has hiv was `other` then, and answers tell `other` from `a`."""
    groups = [("flu", "a", "east"), ("flu", "b", "east"), ("hiv", "a", "east"), ("hiv", "b", "east")]
    groups += [("flu", "a", "west"), ("flu", "a", "west"), ("hiv", "b", "west")]
    people = [(number, *one) for number, one in enumerate(one for one in groups for _ in range(60))]
    names = ("id", "diagnosis", "job", "ward")
    pq.write_table(pa.table(dict(zip(names, zip(*people, strict=True), strict=True))), clinic / "people.parquet")
    lip = {"privacy": {"notion": "lip", "epsilon": 1.0}, "mechanism": "optimal"}
    first = run(clinic, public=[{"name": "job", "top": 1}], **lip)
    assert first.composed.together.figure < 1
    second = run(clinic, source__filter="ward = 'east'", **lip)
    assert second.composed.together.figure is None
    everything_holds(clinic, str(second.release))


def test_a_second_table_without_those_who_have_it_tells_who_has_it(clinic: Path) -> None:
    """Two published tables alone say of some that they certainly have not what the filter reads: no finite bound."""
    first = run(clinic)
    assert first.composed.together.figure == 2.0
    with pytest.raises(funnel.errors.LedgerError, match="no finite bound"):
        run(clinic, source__filter="diagnosis <> 'hiv'", accept=None)
    second = run(clinic, source__filter="diagnosis <> 'hiv'")
    seen = vanished(Path(first.release), Path(second.release))
    assert seen.odds > 0
    told = second.composed.together
    assert (told.figure, told.how, told.varying) == (None, "sum", None)
    assert entries(clinic)[-1]["present"]["secret"] == ["diagnosis"]
    assert everything_holds(clinic, second.release)["ledger-composed"] == "passed"
    assert funnel.read_ledger(clinic / "policy.yaml").as_dict()["composed"] is None


def test_of_several_rows_of_a_person_of_which_releases_take_one_nothing_is_known(clinic: Path) -> None:
    """Each year's answer tells nothing of s = x xor x', both tell it: rows that are absent are not people who are."""
    people = np.arange(400)
    now, then = people % 2, people // 2 % 2
    columns = {
        "id": np.tile(people, 2),
        "diagnosis": np.tile([f"d{one}" for one in now ^ then], 2),
        "job": [f"job {one}" for one in (*then, *now)],
        "year": np.repeat([2020, 2021], 400),
    }
    pq.write_table(pa.table(columns), clinic / "people.parquet")
    terms = {"privacy": {"notion": "ldp", "epsilon": 0.1}, "mechanism": "optimal"}
    with pytest.raises(SourceError, match="rows repeat the id of another row") as refused:
        run(clinic, **terms)
    assert "Where a filter leaves one of several, no finite bound is known" in (refused.value.advice or "")
    found = [run(clinic, **terms, source__filter=f"year = {year}") for year in (2020, 2021)]
    tables = [duckdb.sql(f"SELECT job FROM '{one.release}/data.parquet' GROUP BY ALL").fetchall() for one in found]
    assert [len(one) for one in tables] == [2, 2], "each job is published as it is"
    assert [one.composed.together.figure for one in found] == [None, None]
    verdict = audit(clinic, found[-1].release, table=True)
    assert failures(verdict) == set()
    assert statuses(verdict)["absent"] == "not checked"


@pytest.mark.long
@pytest.mark.parametrize("other", [{}, {"entity": "row"}], ids=["nobody", "rows"])
@pytest.mark.parametrize("kind", ["permanent", "fresh"])
def test_of_people_whom_earlier_releases_know_by_another_column_rows_do_not_say_who_is_absent(
    clinic: Path, other: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """s = x xor x' again: the first policy promises it of people, the second one takes each row for somebody."""
    people = np.arange(400)
    now, then = people % 2, people // 2 % 2
    secret, row = [f"d{one}" for one in now ^ then], {"id": people, "diagnosis": 0, "job": 0, "row": people}
    years = [row | {"diagnosis": secret, "job": [f"job {one}" for one in year]} for year in (now, then)]
    terms = {"privacy": {"notion": "ldp", "epsilon": 0.1}, "mechanism": "optimal", "draws": {"kind": "fresh"}}
    pq.write_table(pa.table(years[0]), clinic / "people.parquet")
    by_people = {"table": "people.parquet", "entity": "id"}
    draws = {"kind": kind} | ({"key": "env:FUNNEL_KEY"} if kind == "permanent" else {})
    assert run(clinic, **(terms | {"draws": draws}), source=by_people).composed.together.figure < 0.1
    both = [pa.table(one | {"year": [year] * 400, "row": people + 400 * place})
            for place, (one, year) in enumerate(zip(years, (2020, 2021), strict=True))]  # fmt: skip
    pq.write_table(pa.concat_tables(both), clinic / "people.parquet")
    second = terms | {"name": "second", "source": {"table": "people.parquet", "filter": "year = 2021", **other}}
    with pytest.raises(funnel.errors.LedgerError, match="know people by another column"):
        run(clinic, **(second | {"accept": ["test"]}))
    made = run(clinic, **(second | {"accept": ["test", "unbounded"]}))
    assert [one.together.figure for one in made.composed.promises] == [None, None]
    assert failures(audit(clinic, made.release, table=True)) == set()
    monkeypatch.setattr("funnel.plan.protect.by_others", lambda *_: False)
    counted = run(clinic, **(second | {"accept": ["test", "unbounded"]}))
    assert failures(audit(clinic, counted.release)) == {"ledger-composed"}


@pytest.mark.parametrize("notion", ["lip", "ldp", "mutual-information"])
def test_what_a_missing_value_tells_when_it_is_dropped_is_stated(clinic: Path, notion: str) -> None:
    """Missing as a category, then dropped: a job is missing more often for those who have it, and its absence shows."""
    epsilon = 0.05 if notion == "mutual-information" else 1.0
    terms = {"privacy": {"notion": notion, "epsilon": epsilon}, "mechanism": "optimal"}
    if notion == "mutual-information":
        terms["mechanism"] = "greedy-funnel"
    first = run(clinic, **terms)
    second = run(clinic, **terms, source__missing="drop")
    told = second.composed.together
    assert told.how in ("exact", "unchanged")
    assert told.figure >= first.composed.together.figure
    if notion == "ldp":
        rows = duckdb.sql(f"SELECT diagnosis, job FROM '{clinic}/people.parquet'").fetchall()
        (block,) = json.loads((Path(first.release) / "protocol.json").read_text())["blocks"]
        chances = {
            x: {y: Fraction(row[place], 1 << block["bits"]) for y, row in enumerate(block["weights"])}
            for place, (x,) in enumerate(block["inputs"])
        }
        real = odds_moved(((s, x, x is not None) for s, x in rows), chances)
        assert first.composed.together.figure < real <= told.figure
    assert everything_holds(clinic, second.release)["ledger-composed"] == "passed"
    again = run(clinic, **terms, source__missing="drop").composed.together
    assert again.figure == told.figure, "the same people, absent once more, tell nothing more"


def test_a_single_release_that_filters_on_the_secret_tells_it_of_all_who_are_absent(clinic: Path) -> None:
    made = run(clinic, **LIP, source__filter="diagnosis <> 'flu'")
    together, alone = made.composed.together, made.composed.alone
    assert (together.figure, together.releases, alone) == (None, 1, pytest.approx(0.2, abs=0.05))
    stated = json.loads((Path(made.release) / "release.json").read_text())
    assert stated["absent"] == {"by": ["filter"], "secret": ["diagnosis"]}
    assert stated["composed"] == {"assumes": [], "how": "exact", "leakage": None, "releases": 1}
    found = everything_holds(clinic, made.release)
    assert (found["absent"], found["ledger-composed"]) == ("passed", "passed")
    assert entries(clinic)[-1]["present"]["predicate"].count("diagnosis") == 1


def test_a_filter_that_reads_the_secret_is_told_everywhere(clinic: Path, command: Any) -> None:
    """By check, plan, run, the ledger, both reports and the audit, in plain words."""
    source = {"table": "people.parquet", "entity": "id", "missing": "category", "filter": "Diagnosis <> 'flu'"}
    path = write_policy(clinic, **(CLINIC | LIP | {"source": source}))
    said = (
        "the filter reads diagnosis, which is sensitive: that somebody is absent from a release tells of their secret, "
        "and epsilon does not bound that"
    )
    assert said in command("check", path).out
    assert said in command("check", path, "--json").json["policies"][0]["note"]
    plan = command("plan", path).out
    assert said in plan
    assert "CREATE TEMP TABLE everyone" in plan
    made = command("run", path, "--json").json
    assert any(said in one for one in made["warnings"])
    assert made["unbounded"].startswith("No finite bound is known: ")
    assert "by its filter on diagnosis" in command("ledger", path).out
    release, private = Path(made["release"]), clinic / "private" / Path(made["release"]).name
    for folder in (release, private):
        head = (folder / "report.html").read_text().split("<nav")[0]
        assert "The filter reads diagnosis, which is what the table hides" in head
        assert "which ε does not bound, and no finite bound is known of what all releases so far tell together" in head
    assert " of the source are in no row." in (private / "report.html").read_text()
    assert " of the source are in no row." not in (release / "report.html").read_text()
    audited = command("audit", release, "--private", clinic / "private", "--table", clinic / "people.parquet")
    assert audited.code == 0
    assert "of 2000 absent, 1 predicate; the filter reads diagnosis, which is sensitive" in audited.out


def test_a_filter_on_something_else_tells_what_it_goes_with(clinic: Path) -> None:
    """A ward has to do with nothing here but by chance: the figure is a little above the release's own."""
    made = run(clinic, **LIP, source__filter="ward = 'east'")
    own, together = made.composed.alone, made.composed.together
    assert own < together.figure < own + 0.5
    assert everything_holds(clinic, made.release)["ledger-composed"] == "passed"
    kept = json.loads((clinic / "private" / Path(made.release).name / "population.json").read_text())
    assert sum(row[-1] for row in kept["people"][0]["cells"]) == 2000
    assert kept["predicates"] == [kept["own"]]


def test_what_people_had_who_were_absent_is_taken_for_granted(clinic: Path) -> None:
    """The same rows show that the same people are in it again; of those who are not, no digest says who they are."""
    first, again = (run(clinic, **LIP, source__filter="ward = 'east'") for _ in range(2))
    assert (first.composed.together.how, again.composed.together.how) == ("exact", "unchanged")
    assert first.composed.together.figure == again.composed.together.figure
    assert again.composed.identity.assumes[-2] == "values unchanged"
    assert everything_holds(clinic, again.release)["ledger-identity"] == "passed"


def test_many_releases_of_some_are_measured_again_and_one_that_says_less_is_found(clinic: Path) -> None:
    """Their weights together are longer than a machine's integers."""
    kinds = {("flu", "a", "east"): 630, ("flu", "b", "east"): 70, ("none", "a", "east"): 60,
             ("none", "b", "east"): 540, ("flu", "a", "west"): 300, ("none", "b", "west"): 400}  # fmt: skip
    rows = [kind for kind, many in kinds.items() for _ in range(many)]
    diagnosis, job, ward = map(list, zip(*rows, strict=True))
    table = {"id": list(range(len(rows))), "diagnosis": diagnosis, "job": job, "ward": ward}
    pq.write_table(pa.table(table), clinic / "people.parquet")
    for night in range(5):
        made = run(clinic, **LIP, draws={"kind": "fresh"}, source__filter="ward = 'east'")
        assert everything_holds(clinic, made.release)["ledger-composed"] == "passed", night
    lines = lines_of(clinic / "private")
    last, before = (one["entry"]["promises"][0]["together"] for one in (lines[-1], lines[-2]))
    assert before["figure"] < last["figure"]
    last.update(figure=before["figure"], measured=before["measured"])
    rechain(clinic / "private", lines)
    assert "ledger-composed" in failures(audit(clinic, made.release))


def test_a_sum_that_says_more_than_its_parts_is_found(clinic: Path) -> None:
    """Looser bounds than the one that is stated are known of each part."""
    made = run(clinic, source__filter="ward = 'east'", privacy={"notion": "srlip", "epsilon": 0.5}, mechanism="optimal")
    assert everything_holds(clinic, made.release)["ledger-composed"] == "passed"
    for times in (0.99, 1.01, 1.2):
        lines = lines_of(clinic / "private")
        told = lines[-1]["entry"]["promises"][0]["together"]
        assert told["how"] == "sum"
        told.update({name: round(told[name] * times, 4) for name in ("figure", "measured")})
        rechain(clinic / "private", lines)
        assert "ledger-composed" in failures(audit(clinic, made.release))
        told.update(dict.fromkeys(("figure", "measured"), made.composed.together.figure))
        rechain(clinic / "private", lines)


def test_who_is_absent_may_be_told_apart_inside_a_cell(clinic: Path) -> None:
    """The usual LDP is about any two values of the columns, and nobody counted those of one cell by absence."""
    wide = {"name": "about", "columns": ["job", "ward"], "cells": {"most": 3}}
    made = run(clinic, public=[wide], source__filter="ward = 'east' OR id % 3 = 0")
    assert made.composed.together.figure is None
    assert everything_holds(clinic, made.release)["ledger-composed"] == "passed"


def test_without_identifiers_a_row_may_be_dropped_as_well(clinic: Path) -> None:
    source = {"table": "people.parquet", "missing": "drop"}
    made = run(clinic, **LIP, source=source, draws={"kind": "fresh"})
    assert made.composed.present.absent > 0
    assert everything_holds(clinic, made.release)["ledger-identity"] == "passed"


def test_a_column_that_is_gone_leaves_nobody_known(clinic: Path) -> None:
    """Who was in an earlier release cannot be told any more: no finite bound."""
    terms = {"privacy": {"notion": "lip", "epsilon": 0.5}, "mechanism": "optimal"}
    run(clinic, **terms, source__filter="ward = 'east'")
    table = clinic / "people.parquet"
    duckdb.sql(f"COPY (SELECT id, diagnosis, job FROM '{table}') TO '{clinic}/next.parquet' (FORMAT parquet)")
    (clinic / "next.parquet").rename(table)
    made = run(clinic, **terms)
    assert made.composed.together.figure is None
    assert everything_holds(clinic, made.release)["ledger-composed"] == "passed"


def test_without_a_filter_nobody_is_counted(clinic: Path) -> None:
    made = run(clinic, privacy={"notion": "lip", "epsilon": 0.5}, mechanism="optimal")
    private = clinic / "private" / Path(made.release).name
    assert not (private / "population.json").exists()
    assert entries(clinic)[-1]["present"] is None
    assert made.composed.together.how == "exact"
    assert statuses(audit(clinic, made.release))["absent"] == "not checked"


def test_a_private_estimate_counts_nobody_and_states_no_finite_bound(clinic: Path) -> None:
    values = {"diagnosis": ["none", "flu", "hiv"], "job": [f"job {one}" for one in range(4)]}
    estimate = {"kind": "private", "epsilon": 1.0, "values": values}
    made = run(clinic, estimate=estimate, source__filter="ward = 'east'", privacy={"notion": "lip", "epsilon": 1.0},
               mechanism="optimal")  # fmt: skip
    assert made.composed.together.figure is None
    assert not (clinic / "private" / Path(made.release).name / "population.json").exists()
    assert failures(audit(clinic, made.release)) == set()
    assert entries(clinic)[-1]["present"]["absent"] is None
    later = run(clinic, estimate=estimate, privacy={"notion": "lip", "epsilon": 1.0}, mechanism="optimal")
    assert "those whom releases before left out are not counted" in detail(audit(clinic, later.release), "absent")


def test_whoever_changes_who_is_absent_is_found(clinic: Path) -> None:
    made = run(clinic, source__filter="ward = 'east'", privacy={"notion": "lip", "epsilon": 0.5}, mechanism="optimal")
    release = Path(made.release)
    forged = Forged(release, clinic / "private" / release.name)
    path = forged.kept / "population.json"
    whole = path.read_bytes()

    def moved(present: bool) -> None:
        """A few who have it among those who are in the release, or are not, have it no more."""
        cells = json.loads(whole)["people"][0]["cells"]
        place = {tuple(row[:-1]): number for number, row in enumerate(cells)}
        one, two = ((s, 1, int(present)) for s in (1, 0))
        cells[place[one]][-1] -= 5
        cells[place[two]][-1] += 5
        edit(path, lambda old: old["people"][0].update(cells=cells))

    for present, claims in ((True, {"absent", "ledger-composed"}), (False, {"ledger-composed"})):
        moved(present)
        assert "evidence" in failures(audit(clinic, made.release))
        seal([forged])
        assert failures(audit(clinic, made.release)) & claims
        assert "source-counts" in failures(audit(clinic, made.release, table=True))
        path.write_bytes(whole)
    for lie in ("columns", "secret"):
        people = json.loads(whole)["people"]
        for alphabet in people[0]["blocks"] if lie == "columns" else [people[0]["secret"]]:
            alphabet.update(columns=["another"])
        edit(path, lambda old, people=people: old.update(people=people))
        seal([forged])
        assert "absent" in failures(audit(clinic, made.release))
        path.write_bytes(whole)
    seal([forged])
    assert failures(audit(clinic, made.release)) == set()
    for lie in (None, entries(clinic)[-1]["present"] | {"absent": 3},
                entries(clinic)[-1]["present"] | {"secret": ["diagnosis"]}):  # fmt: skip
        lines = lines_of(clinic / "private")
        lines[-1]["entry"]["present"] = lie
        rechain(clinic / "private", lines)
        assert "ledger-composed" in failures(audit(clinic, made.release))


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_a_predicate_that_is_not_the_policys_is_found(clinic: Path, missing: str) -> None:
    """In plan, population and ledger alike; terms and policy tell the filter."""
    terms = {"privacy": {"notion": "lip", "epsilon": 0.5}, "source__missing": missing}
    made = run(clinic, source__filter="ward = 'east' AND job <> 'nothing'", **terms)
    release = Path(made.release)
    forged = Forged(release, clinic / "private" / release.name)
    assert failures(audit(clinic, made.release)) == set()
    own = json.loads((forged.kept / "population.json").read_text())["own"]
    others = [own.replace("east", "west"), own.replace("ward", "job"), f"(id > 5) OR {own}"]
    if missing == "drop":  # nobody is left out but whom a value misses, and of no column is one taken for there
        others.append(own.replace("(diagnosis IS NOT NULL)", "(diagnosis IS NOT NULL) AND (diagnosis <> 'hiv')"))
        others.append(own.replace("(diagnosis IS NOT NULL)", "(job IS NOT NULL)"))
    for other in others:
        assert other != own
        edit(forged.kept / "population.json", lambda old, other=other: old.update(own=other, predicates=[other]))
        edit(forged.kept / "plan.json", lambda old, other=other: [
            step.update(own=other) for step in old["steps"] if step["step"] == "everybody"])  # fmt: skip
        lines = lines_of(clinic / "private")
        lines[-1]["entry"]["present"]["predicate"] = other
        rechain(clinic / "private", lines)
        seal([forged])
        report = audit(clinic, made.release)
        assert {"absent", "ledger-composed"} <= failures(report)
        assert "the predicate of who is in the release is not the policy's" in detail(report, "absent")


@pytest.mark.parametrize("wide", [False, True])
def test_whom_missing_values_leave_out_is_found_whatever_columns_are_called(tmp_path: Path, *, wide: bool) -> None:
    """Texts that are trimmed, numbers that are none, and cells, whose block is no column of the source."""
    secret, text, real = 'S "x"', "a AND b", "isnan"
    rows = [(("p", "q", None)[i % 3], (" u", "v ", None, "  ", "u")[i % 5], (1.5, math.nan, 2.5, None)[i % 4])
            for i in range(600)]  # fmt: skip
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate((secret, text, real))})
    pq.write_table(table, tmp_path / "people.parquet")
    columns: list[Any] = [{"name": text, "trim": True}, {"name": real, "bins": [0, 2, 4]}]
    public = [{"name": "w", "columns": [text, real], "cells": {"most": 4, "minimum": 20}}] if wide else columns
    source = {"table": "people.parquet", "missing": "drop", "filter": f'"{real}" < 9 OR "{text}" = \'v \''}
    made = run(tmp_path, sensitive=[secret], public=public, source=source, draws={"kind": "fresh"}, **LIP)
    assert failures(audit(tmp_path, made.release, table=True)) == set()


def test_people_by_the_secret_of_another_promise_are_the_same_people(clinic: Path) -> None:
    """What absence tells of that secret is reckoned with them, whom no count of this release holds."""
    run(clinic, name="first", sensitive=["ward"], **LIP, budget=None, source__missing="category")
    made = run(clinic, source__filter="id < 1500", source__missing="category", **LIP)
    release = Path(made.release)
    forged = Forged(release, clinic / "private" / release.name)
    assert failures(audit(clinic, made.release)) == set()
    path = forged.kept / "population.json"
    assert [one["secret"]["columns"] for one in json.loads(path.read_text())["people"]] == [["diagnosis"], ["ward"]]

    def twice(old: dict[str, Any]) -> None:
        for cell in old["people"][1]["cells"]:
            cell[-1] *= 2

    edit(path, twice)
    seal([forged])
    assert "absent" in failures(audit(clinic, made.release))


def test_a_filter_is_no_predicate_of_another_table(clinic: Path) -> None:
    """Who is in a release by `ward` of one table, `ward` of another does not say: here all of it are in the east."""
    leaning = "CASE WHEN id % (CASE diagnosis WHEN 'flu' THEN 2 ELSE 9 END) = 0 THEN 'west' ELSE 'east' END"
    for name, ward in (("wards", leaning), ("moved", "'east'")):
        query = f"SELECT * REPLACE ({ward} AS ward) FROM '{clinic}/people.parquet'"
        duckdb.sql(f"COPY ({query}) TO '{clinic}/{name}.parquet' (FORMAT parquet)")
    source = {"entity": "id", "missing": "category"}
    inside = run(clinic, **LIP, source=source | {"table": "wards.parquet", "filter": "ward = 'east'"})
    later = run(clinic, **LIP, source=source | {"table": "moved.parquet"})
    assert inside.composed.together.figure is not None
    assert later.composed.together.figure is None
    assert failures(audit(clinic, str(later.release))) == set()


def test_a_filter_is_no_predicate_of_a_table_whose_columns_are_named_otherwise(clinic: Path) -> None:
    """`ward` of one release is `wing` of the other: alone neither tells anything, and together they tell who has it."""
    wing = "CASE WHEN (diagnosis = 'flu') = (ward = 'east') THEN 'east' ELSE 'west' END"
    query = f"SELECT id, diagnosis, 'job' AS job, ward, {wing} AS wing FROM '{clinic}/people.parquet'"
    duckdb.sql(f"COPY ({query}) TO '{clinic}/people.csv' (FORMAT csv)")
    for names, bounded in (("ward", "wing"), True), (("wing", "ward"), False):
        csv = {"header": True, "names": ["id", "diagnosis", "job", *names]}
        source = {"table": "people.csv", "entity": "id", "filter": "ward = 'east'", "csv": csv}
        made = run(clinic, **LIP, source=source)
        assert (entries(clinic)[-1]["promises"][0]["together"]["figure"] is not None) == bounded
        assert failures(audit(clinic, made.release)) == set()


def test_a_filter_is_no_predicate_of_columns_that_are_read_as_other_types(clinic: Path) -> None:
    """Nobody with hiv is absent from the first release, as '2.0' is the number 2; as a text it is not '2'."""
    score = (
        "CASE WHEN id % 2 = 0 THEN '2' WHEN diagnosis = 'hiv' OR id % 4 = 1 THEN '2.0' ELSE '3.5' END AS score, "
        "CASE WHEN id % 3 = 0 THEN 'x' ELSE 'y' END AS job"
    )
    query = f"SELECT id, diagnosis, {score} FROM '{clinic}/people.parquet'"
    duckdb.sql(f"COPY ({query}) TO '{clinic}/people.csv' (FORMAT csv)")
    source = {"table": "people.csv", "entity": "id"}
    first = run(clinic, **LIP, source=source | {"filter": "score = '2'"})
    assert first.composed.together.figure is None
    assert entries(clinic)[-1]["present"]["predicate"].endswith("/* DOUBLE */")
    ldp = {"privacy": {"notion": "ldp", "epsilon": 1.0}, "name": "other", "public": ["job", "score"]}
    second = run(clinic, **ldp, source=source)
    assert second.composed.together.figure is None
    assert failures(audit(clinic, second.release)) == set()


def test_a_secret_that_this_policy_reads_as_numbers_is_counted_by_nobody(clinic: Path) -> None:
    """A town tells who has 42.0 and who 42.00, which are one number."""
    told = (
        "CASE diagnosis WHEN 'hiv' THEN '42.0' WHEN 'flu' THEN '42.00' ELSE '40.5' END AS code, "
        "CASE WHEN diagnosis = 'flu' OR diagnosis = 'none' AND id % 2 = 0 THEN 'x' ELSE 'y' END AS job, "
        "CASE WHEN diagnosis = 'hiv' OR diagnosis = 'none' AND id % 2 = 0 THEN 'a' ELSE 'b' END AS town"
    )
    duckdb.sql(f"COPY (SELECT id, ward, {told} FROM '{clinic}/people.parquet') TO '{clinic}/people.csv' (FORMAT csv)")
    source = {"table": "people.csv", "entity": "id"}
    run(clinic, **LIP, source=source, name="first", sensitive=["code"])
    ward = {"sensitive": ["ward"], "public": ["town"], "privacy": {"notion": "lip", "epsilon": 3.0}}
    wide = {"mechanism": "optimal", "accept": ["first", "unbounded"]}
    second = run(clinic, **ward, **wide, source=source, name="second")
    assert entries(clinic)[-1]["promises"][1]["together"]["figure"] is None
    assert failures(audit(clinic, second.release)) == set()


def test_releases_that_are_unlike_in_two_respects_have_no_bound(clinic: Path) -> None:
    """Some leave people out, and one calls jobs otherwise: either is measured, and no proof is about both."""
    east = run(clinic, **LIP, source__filter="ward = 'east'")
    everybody = run(clinic, **LIP)
    assert None not in (east.composed.together.figure, everybody.composed.together.figure)
    other = [{"name": "job", "groups": {"a": ["job 0", "job 1"], "b": ["job 2", "job 3"]}}]
    what = "no proof is about releases of which not all have the same people and some call values otherwise"
    with pytest.raises(funnel.errors.LedgerError, match=what) as refused:
        run(clinic, **LIP, public=other, accept=None)
    assert refused.value.exit_code == 4
    made = run(clinic, **LIP, public=other)
    told = made.composed.together
    assert (told.figure, told.measured, told.varying) == (None, None, None)
    assert everything_holds(clinic, made.release)["ledger-composed"] == "passed"


def test_a_promise_on_average_is_not_held_to_what_another_policy_lets_single_records_tell(clinic: Path) -> None:
    """Its figure may be less than what a release tells of its own secret in the worst case."""
    average = {"privacy": {"notion": "mutual-information", "epsilon": 0.01}}
    run(clinic, public=[["job", "ward"]], source__filter="ward = 'east' OR id % 2 = 0", **average)
    table = pq.read_table(clinic / "people.parquet")
    shift = pa.array(["night" if number % 20 == 0 else "day" for number in range(2000)])
    place = pa.array(["gate" if number % 20 < 2 else "hall" for number in range(2000)])
    pq.write_table(table.append_column("shift", shift).append_column("place", place), clinic / "people.parquet")
    worst = {"name": "worst", "sensitive": ["shift"], "privacy": {"notion": "pml", "epsilon": 2.0}}
    second = run(clinic, public=["job", "ward", "place"], source__filter="id > 3", mechanism="optimal", **worst)
    (figure,) = [one["used"] for one in second.as_dict()["promises"] if one["policy"] == "test"]
    assert figure < second.as_dict()["leakage"]["pml"]
    everything_holds(clinic, second.release)


def test_who_was_left_out_under_a_lock_has_no_usual_ldp_for_later_policies(clinic: Path) -> None:
    """A job that the lock did not know is that of those who are absent, whatever noise is in the others' answers."""
    jobs = "CASE WHEN job IS NULL THEN 'job 1' WHEN {} THEN 'new' ELSE job END"
    for name, told in (("old", "false"), ("people", "id % 10 = 0")):
        query = f"SELECT * REPLACE ({jobs.format(told)} AS job) FROM '{clinic}/people.parquet'"
        duckdb.sql(f"COPY ({query}) TO '{clinic}/{name}.next' (FORMAT parquet)")
    (clinic / "old.next").rename(clinic / "people.parquet")
    fresh = {"draws": {"kind": "fresh"}, "accept": ["test", "wards"]}
    run(clinic, name="wards", sensitive=["ward"], public=["diagnosis"], accept=None)
    terms = {"public": [{"name": "job", "unseen": "drop"}], "privacy": {"notion": "lip", "epsilon": 0.01}}
    terms |= {"accept": ["wards"], "estimate": {"minimum": 1}}
    funnel.make_lock(write_policy(clinic, **(CLINIC | {"source": {"table": "people.parquet", "entity": "id"}} | terms)))
    (clinic / "people.next").rename(clinic / "people.parquet")
    source = {"table": "people.parquet", "entity": "id"}
    left = funnel.run(write_policy(clinic, **(CLINIC | {"source": source} | terms)), locked=True)
    assert left.composed.present.unseen > 100
    with pytest.raises(funnel.errors.LedgerError, match="no finite bound"):
        run(clinic, name="usual", **fresh)
    made = run(clinic, name="usual", **(fresh | {"accept": ["test", "wards", "unbounded"]}))
    assert failures(audit(clinic, str(made.release))) == set()


@pytest.mark.parametrize("kind", ["permanent", "fresh"])
def test_who_has_an_unknown_value_in_one_block_answered_in_none(clinic: Path, kind: str) -> None:
    """Of people with the new job the ward tells all: they were left out of the whole release, so no ward was told."""
    known = [(i, "hf"[i % 2], f"job {i // 2 % 2}", "ew"[i % 2 if i % 5 == 0 else i // 4 % 2]) for i in range(400)]
    new = [(1000 + i, "hf"[i % 2], "new", "ew"[i % 2]) for i in range(40)]
    terms = CLINIC | {
        "source": {"table": "people.parquet", "entity": "id"}, "draws__kind": kind, "accept": None,
        "public": [{"name": name, "unseen": "drop"} for name in ("job", "ward")],
        "privacy": {"notion": "lip", "epsilon": 0.1},
    }  # fmt: skip
    path, figures = write_policy(clinic, **terms), list[float]()
    for rows in (known, known + new):
        columns = zip(("id", "diagnosis", "job", "ward"), zip(*rows, strict=True), strict=True)
        pq.write_table(pa.table({name: list(one) for name, one in columns}), clinic / "people.parquet")
        if rows is known:
            funnel.make_lock(path)
    for how in ("exact", "unchanged"):
        found = funnel.run(path, locked=True).composed
        assert (found.together.how, found.present.unseen) == (how, 40)
        figures.append(found.together.figure)
    x_tells = 0.2232  # Of 200 with each diagnosis 120 and 80 are in the east: ln (100 / 80).
    assert figures[0] == figures[1] if kind == "permanent" else figures[0] < figures[1] < x_tells
    assert funnel.audit_history(clinic / "releases", clinic / "private").passed


def test_nobody_is_present_for_that_nobody_counted_who_is_absent(clinic: Path) -> None:
    """Without population.json the entry cannot say that a filter lets everybody in: the bound would lack absence."""
    made = run(clinic, source__filter="ward = 'east'")
    forged = Forged(Path(made.release), clinic / "private" / Path(made.release).name)
    (forged.kept / "population.json").unlink()
    lines = lines_of(forged.private)
    lines[-1]["entry"]["present"] = None
    rechain(forged.private, lines)
    edit(forged.folder / "release.json", lambda told: told.update(composed=None))
    seal([forged])
    found = audit(clinic, made.release)
    assert "ledger-composed" in failures(found)
    assert next(one.detail for one in found.findings if one.claim == "absent").endswith(
        "that there are none is the ledger's word, by which a bound is stated of all releases together"
    )


def test_between_public_values_nothing_bounds_what_absence_tells_of_columns_drawn_before(clinic: Path) -> None:
    """Whoever is absent tonight has this job: certain of a column that only the release before drew from."""
    first = run(clinic, accept=None)
    with pytest.raises(FunnelError, match="no finite bound"):
        run(clinic, public=["ward"], source=SOURCE | {"filter": "job <> 'job 0'"}, accept=None)
    made = run(clinic, public=["ward"], source=SOURCE | {"filter": "job <> 'job 0'"})
    assert (first.composed.together.figure, made.composed.together.figure) == (2.0, None)
    assert failures(funnel.audit_release(made.release, clinic / "private")) == set()
    assert funnel.audit_history(clinic / "releases", clinic / "private").passed
    merged = {"name": "job", "groups": {"some": ["job 0", "job 1"]}}
    run(clinic, name="other", source=SOURCE | {"filter": "ward = 'east'"}, release__private="apart")
    with pytest.raises(FunnelError, match="no finite bound"):
        run(clinic, name="other", public=[merged], source=SOURCE | {"filter": "ward = 'east'"}, accept=None,
            release__private="apart")  # fmt: skip


@pytest.mark.parametrize("notion", ["ldp", "lip", "pml"])
@pytest.mark.parametrize("released", ["set", "bits"])
@pytest.mark.parametrize("public", [["job"], ["job", "ward"]])
def test_what_sets_tell_beside_absence_is_worked_out_again(
    clinic: Path, notion: str, released: str, public: list[str]
) -> None:
    """Of one block the bounds of absence and of sets are added; sets of several are listed, and measured with it."""
    terms = {"public": public, "mechanism": {"kind": "unary-encoding", "release": released}}
    made = run(clinic, **terms, source__filter="id % 3 > 0", privacy={"notion": notion, "epsilon": 0.5})
    assert made.composed.together.how == ("sum" if len(public) == 1 else "exact")
    assert made.composed.together.figure is not None
    assert failures(audit(clinic, made.release)) == set()
    forged = Forged(Path(made.release), clinic / "private" / Path(made.release).name)
    lines = lines_of(forged.private)
    (promise,) = lines[-1]["entry"]["promises"]
    promise["together"] |= dict.fromkeys(("figure", "measured"), promise["together"]["figure"] / 2)
    rechain(forged.private, lines)
    seal([forged])
    assert "ledger-composed" in failures(audit(clinic, made.release))


def test_sets_of_nights_that_are_too_many_to_be_measured_together_are_held_to_their_sum(clinic: Path) -> None:
    """Beside absence, and with answers of each block that can still be listed: an honest release was failed."""
    people = clinic / "people.parquet"
    table = pq.read_table(people)
    shift = ["early", "day", "evening", "night", "split", "none"] * len(table)
    pq.write_table(table.append_column("shift", pa.array(shift[: len(table)])), people)
    terms = {"public": ["job", "shift"], "mechanism": {"kind": "unary-encoding", "release": "bits"},
             "draws": {"kind": "fresh"}, "source__filter": "id % 4 > 0"}  # fmt: skip
    nights = [run(clinic, **terms, privacy={"notion": "ldp", "epsilon": epsilon}) for epsilon in (0.5, 0.6)]
    assert nights[-1].composed.together.how == "sum"
    assert [failures(audit(clinic, one.release)) for one in nights] == [set()] * 2
