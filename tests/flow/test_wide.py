"""Many columns as one alphabet of cells: from the policy to rows of the source's own columns, night after night."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.audit.extras import partitions
from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.errors import EXITS, FAULT
from funnel.format.canonical import encode
from funnel.ledger.journal import Journal
from tests.flow.conftest import nothing_published
from tests.support.audited import detail
from tests.support.forging import Forged, edit
from tests.support.html import Reader
from tests.support.policies import write_policy
from tests.support.towns import INNER, WIDE, people


def wide(**changes) -> dict:
    """A wide block of the people, with changes of its keys."""
    return {"public": [WIDE["public"][0] | changes]}


@pytest.fixture
def released(command, tmp_path):
    """Run a policy about the people and give the release's folder."""

    def run(*options: str, **changes) -> Path:
        if not (tmp_path / "people.parquet").exists():
            people(tmp_path)
        done = command("run", write_policy(tmp_path, **WIDE | changes), "--json", *options)
        assert done.code == 0, done.err
        return Path(done.json["release"])

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory, key) -> Path:
    """A release that is only read, in its folder of releases, beside the private folder and the table."""
    folder = tmp_path_factory.mktemp("made")
    people(folder)
    with pytest.MonkeyPatch.context() as inside:
        inside.setenv("FUNNEL_KEY", key)
        return Path(funnel.run(write_policy(folder, **WIDE)).release)


def table(release: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.sql(f"FROM '{next(release.glob('data.*'))}'")


def test_rows_have_the_columns_and_types_of_the_source(released, command, tmp_path):
    release = released()
    source = duckdb.sql(f"SELECT {', '.join(INNER)} FROM '{tmp_path}/people.parquet'")
    rows = table(release)
    assert (rows.columns, rows.types) == (source.columns, source.types)
    assert len(rows) == 1500
    # Sorted by what is released alone: a place in the file says nothing.
    assert rows.fetchall() == rows.order(", ".join(INNER)).fetchall()
    audit = command(
        "audit", release, "--private", tmp_path / "private", "--table", tmp_path / "people.parquet"
    )
    assert audit.code == 0, audit.out
    assert "1500 rows read back, and the same bytes when written again" in audit.out


def test_whatever_is_released_is_shared_by_the_minimum_of_records(made):
    """Oslo has too few people here; days and ages of few are joined."""
    cells = json.loads((made / "cells.json").read_text())
    (block,) = cells["blocks"]
    for column in block["columns"]:
        query = f"SELECT {column['name']}::VARCHAR, count(*) FROM '{made.parents[1]}/people.parquet' GROUP BY ALL"
        records = dict(duckdb.sql(query).fetchall())
        for value in set(column["values"]) - {"other"}:
            # A number or a date may stand for its neighbours, too.
            assert records[value] >= (1 if column["cuts"] else 10)


def test_of_several_wide_blocks_each_has_a_weight_that_the_report_names(released):
    parts = {"first_half": INNER[:2], "b": INNER[2:]}
    half = [{"name": name, "columns": columns, "cells": 6} for name, columns in parts.items()]
    release = released(public=half, mechanism="randomised-response", privacy__epsilon=0.1)
    assert {"first_half_weight", "b_weight"} < {*table(release).columns}
    told = json.loads((release / "report.json").read_text())["wide"]
    assert all(f"by the column “{name}_weight”" in one["said"] for name, one in zip(parts, told, strict=True))


def test_a_report_calls_totals_those_of_the_table_only_where_the_draws_leave_them(released):
    """Weights near one are not worth a column, and yet the totals are others."""
    near = released(privacy={"notion": "ldp-x", "epsilon": 8}, accept=["unbounded"])
    assert "weight" not in table(near).columns
    (told,) = json.loads((near / "report.json").read_text())["wide"]
    assert "nearly at face value: the draws move the totals" in told["said"]


def test_cells_that_are_merged_are_not_said_to_be_drawn(released):
    """Nor is a mechanism named that does not keep an average."""
    average = {"notion": "mutual-information", "epsilon": 0.01}
    shown = json.loads((released(privacy=average, mechanism="greedy-funnel") / "report.json").read_text())
    told = shown["wide"][0]["said"]
    assert "its cells were merged" in told and "the draws move" not in told and "invariant" not in told
    assert "The cell is drawn for" not in str(shown) and "the one that its group is named after" in str(shown)


@pytest.mark.long
def test_of_cells_drawn_together_with_other_columns_totals_may_be_kept_as_well(released):
    promised = {"notion": "srlip", "epsilon": 1, "knows": 1}
    release = released(public=[wide(cells=3)["public"][0], "votes"], mechanism="invariant", privacy=promised)
    assert len(json.loads((release / "protocol.json").read_text())["blocks"]) == 1
    shown = json.loads((release / "report.json").read_text())
    assert "at face value: the draws leave the total of every cell" in shown["wide"][0]["said"]
    assert any("may be read as they stand" in one for one in shown["utility"]["sentences"])


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_wide_block_stands_beside_others(released, command, tmp_path, form):
    release = released(public=[*WIDE["public"], "votes"], release__format=form, mechanism="optimal")
    assert table(release).columns[:4] == INNER
    assert table(release).columns[-1] == "votes"
    assert command("audit", release, "--private", tmp_path / "private").code == 0


def test_totals_come_back_by_weight_where_the_mechanism_moves_them(released, tmp_path):
    """Randomised response flattens the cells; a weight says what each row stands for."""
    release = released(public=[*WIDE["public"]], privacy__epsilon=0.3)
    rows = table(release)
    assert rows.columns == [*INNER, "weight"]
    weighed, plain = duckdb.sql("SELECT avg(age * weight) / avg(weight), avg(age) FROM rows").fetchall()[0]
    (true,) = duckdb.sql(f"SELECT avg(age) FROM '{tmp_path}/people.parquet'").fetchall()[0]
    assert abs(float(weighed) - true) < 1.5
    assert plain > 0


@pytest.mark.long
def test_under_a_lock_nobody_answers_otherwise(released, command, tmp_path):
    people(tmp_path)
    path = write_policy(tmp_path, **WIDE)
    assert command("lock", path).code == 0
    first, second = released("--locked"), released("--locked")
    for name in ("released.json", "cells.json", "data.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert command("lock", path).code == 0  # the same but for a seed, so that it stays as it is
    audit = command("audit", second, "--private", tmp_path / "private")
    assert audit.code == 0, audit.out
    assert "the lock of" in audit.out
    shares = "each as wide as its share of the records on the night that the protocol was fixed; point at one"
    assert shares in " ".join((second / "report.html").read_text().split())


def test_under_a_lock_there_are_no_weights_where_no_totals_follow(released, command, tmp_path):
    """Everybody answers by chance alone: the shares of the lock's night are none of tonight's."""
    people(tmp_path)
    terms = wide(cells=4) | {"mechanism": "randomised-response", "privacy": {"notion": "perfect"}}
    assert command("lock", write_policy(tmp_path, **WIDE | terms)).code == 0
    people(tmp_path, change="* REPLACE (CASE WHEN hash(id, 11) % 3 = 0 THEN 20 ELSE age END AS age)")
    release = released("--locked", **terms)
    assert "weight" not in table(release).columns
    (told,) = json.loads((release / "report.json").read_text())["wide"]
    assert "Do not count rows of person at face value" in told["said"]
    assert "totals of cells do not follow from what is released" in told["said"]
    with pytest.raises(funnel.ReleaseError, match="no weight of its own undoes that"):
        funnel.open_release(release).weights()
    assert command("audit", release, "--private", tmp_path / "private").code == 0


def test_under_a_lock_weights_undo_what_a_moving_table_hides(released, command, tmp_path):
    """A protocol that keeps the totals of the lock's night shows a part of what moves; weighted rows show it all."""
    people(tmp_path, rows=20_000)
    terms = {"mechanism": "invariant", "privacy__epsilon": 0.5, "release__identify": ["id"]}
    assert command("lock", write_policy(tmp_path, **WIDE | terms), "--room", "0.5").code == 0
    people(tmp_path, rows=20_000, change="* REPLACE (CASE WHEN hash(id, 11) % 3 = 0 THEN 20 ELSE age END AS age)")
    release = released("--locked", **terms)
    rows = table(release)
    assert rows.columns == ["id", "person", *INNER, "weight"]
    counts = json.loads((tmp_path / "private" / release.name / "counts.json").read_text())
    labels = [int(value) for (value,) in counts["blocks"][0]["values"]]
    true = {label: sum(n for _, x, n in counts["cells"] if labels[x] == label) for label in labels}
    found = duckdb.sql("SELECT person, count(*), sum(weight) FROM rows GROUP BY person").fetchall()
    plain = sum(abs(shown - true[label]) for label, shown, _ in found)
    weighed = sum(abs(float(total) - true[label]) for label, _, total in found)
    assert weighed < plain / 2
    audit = command("audit", release, "--private", tmp_path / "private")
    assert audit.code == 0, audit.out
    assert "their counts are those that the lock was made from" in audit.out
    edit(release / "cells.json", lambda cells: exchange([one for one in cells["blocks"][0]["nodes"] if "share" in one]))
    with pytest.raises(Broken, match="the shares of person are not those of the counts"):
        partitions.check(Release(release, tmp_path / "private"))
    terms["privacy__epsilon"] = 0.6
    assert command("lock", write_policy(tmp_path, **WIDE | terms), "--keep").code == 0
    release = released("--locked", **terms)
    assert isinstance(told := partitions.check(Release(release, tmp_path / "private")), Unchecked)
    assert told.reason == "the counts that the cells were made from are not kept with this release"


def exchange(cells: list[dict]) -> None:
    """Give the largest cell the share of the smallest, and that the other's."""
    least, *_, most = sorted(cells, key=lambda one: one["share"])
    least["share"], most["share"] = most["share"], least["share"]


def test_permanent_draws_repeat_cells_and_not_what_is_filled_in(released, command, tmp_path):
    """Columns of a row follow from all cells that were drawn: other rows move them, and a true cell is no true row."""
    people(tmp_path)
    terms = {"mechanism": "invariant", "privacy__epsilon": 0.5, "release__identify": ["id"]}
    assert command("lock", write_policy(tmp_path, **WIDE | terms), "--room", "0.5").code == 0
    first = released("--locked", **terms)
    people(tmp_path, rows=1540)
    second = released("--locked", **terms)
    one, two = (table(release).order("id").limit(1500).fetchnumpy() for release in (first, second))
    assert (one["person"] == two["person"]).all()
    assert (one["age"] != two["age"]).any()
    (shown, page), _ = reports(second, tmp_path / "private")
    assert "gets the same cell every time" in " ".join(shown["drawing"]["sentences"])
    assert "Its filled-in columns may change whenever any other record does." in page.text
    assert "The cell of a record, and whatever else is drawn for it, is true to it with a chance" in page.text
    assert "All of a record’s released values" not in page.text


def test_what_stays_of_a_record_of_cells_is_said_to_be_its_cell(released, tmp_path):
    """What is filled in from a true cell is another person's as likely as not."""
    release = released(mechanism="invariant", privacy__epsilon=0.1)
    told = html.unescape((tmp_path / "private" / release.name / "report.html").read_text())
    assert "of records the cell, and whatever else is drawn, is expected to be the true one" in " ".join(told.split())
    assert "all released values are expected to be" not in told


def test_rounded_columns_inside_cells_are_named_with_what_becomes_of_rare_ones(released, tmp_path):
    columns = [{"name": one, "round": 5} if one == "age" else one for one in INNER]
    release = released(**wide(columns=columns))
    stated = json.loads((release / "release.json").read_text())["coarsened"]
    assert stated == [{"name": "age", "step": 5, "clip": None, "rare": True, "other": False}]
    told = html.unescape((release / "report.html").read_text())
    said = "to a multiple of 5 and told as one that cells.json lists where it is none of these itself"
    assert said in told
    assert funnel.audit_release(release, tmp_path / "private").passed


def test_rare_months_inside_cells_are_other_and_said_to_be(command, tmp_path):
    """A month has no neighbours that it could be joined with: it is a text, and rare ones are one value."""
    rows = "(DATE '2020-01-01' + INTERVAL ((i % 40) * 31) DAY)::DATE AS day"
    rare = "CASE WHEN i < 3 THEN DATE '2031-05-05' WHEN i < 20 THEN DATE '2031-06-06' ELSE day END"
    duckdb.sql(f"COPY (SELECT * REPLACE ({rare} AS day) FROM (SELECT i, {rows}, i % 3 AS job, i % 2 AS ill "
               f"FROM range(4000) AS t(i))) TO '{tmp_path}/t.parquet'")  # fmt: skip
    columns = [{"name": "day", "round": "month"}, "job"]
    block = {"name": "person", "columns": columns, "cells": {"most": 6, "minimum": 100}}
    asked = {"source": {"table": "t.parquet"}, "sensitive": ["ill"], "public": [block], "estimate__minimum": 10}
    done = command("run", write_policy(tmp_path, **asked, draws={"kind": "fresh"}), "--json")
    release = Path(done.json["release"])
    cells = json.loads((release / "cells.json").read_text())["blocks"][0]
    assert "other" in cells["columns"][0]["values"]
    (stated,) = json.loads((release / "release.json").read_text())["coarsened"]
    assert (stated["rare"], stated["other"]) == (False, True)
    told = " ".join(html.unescape((release / "report.html").read_text()).split())
    assert "rounded to the month that it lies in and “other” where that was rare" in told
    notes = command("estimate", release, "--where", "day < '2020-03'", "--json").json["notes"]
    assert any("rare ones “other”, a value of its own" in one for one in notes)
    assert funnel.audit_release(release, tmp_path / "private").passed


def test_what_becomes_of_rare_values_inside_cells_is_said_of_every_type(command, tmp_path):
    """Missing numbers, truth values and intervals, too: none of them is joined with neighbours."""
    duckdb.sql(f"COPY (SELECT i < 5 AS flag, CASE WHEN i % 100 = 0 THEN NULL ELSE i % 4 END AS number, "
               f"CASE WHEN i % 80 = 1 THEN 35 ELSE i % 20 END AS age, i % 2 AS ill FROM range(600) AS t(i)) "
               f"TO '{tmp_path}/t.parquet'")  # fmt: skip
    columns = ["flag", "number", {"name": "age", "bins": [0, 10, 20, 30]}]
    asked = {
        "source": {"table": "t.parquet", "missing": "category"}, "sensitive": ["ill"], "estimate__minimum": 10,
        "public": [{"name": "person", "columns": columns, "cells": {"most": 4, "minimum": 60}}],
    }  # fmt: skip
    done = command("run", write_policy(tmp_path, **asked, draws={"kind": "fresh"}), "--json")
    release = Path(done.json["release"])
    flag, number, age = json.loads((release / "cells.json").read_text())["blocks"][0]["columns"]
    assert flag["values"] == ["false"] and None not in number["values"] and "other" in age["values"]
    told = " ".join(html.unescape((release / "report.html").read_text()).split())
    assert (
        "A rarer value, and of columns with many values some that were not rarer, is told as one of them: a text as "
        "“other”, a number or a date as one near it where any is left, anything else as another of its column." in told
    )
    full = " ".join(html.unescape((tmp_path / "private" / release.name / "report.html").read_text()).split())
    assert "A missing value counts as a value of its own, but for rare ones inside cells." in full
    columns[0] = {"name": "flag", "rare": "other"}
    refused = command("run", write_policy(tmp_path, **asked, draws={"kind": "fresh"}))
    assert refused.code == FAULT and "flag is no text, and has no value `other`" in refused.err


def test_rare_numbers_inside_cells_have_no_value_other(command, tmp_path):
    """They stay numbers, and so do truth values: `other` made what is made without it."""
    people(tmp_path)
    columns = [{"name": one, "rare": "other"} if one == "age" else one for one in INNER]
    refused = command("run", write_policy(tmp_path, **WIDE | wide(columns=columns)))
    assert refused.code == FAULT and "inside cells age is no text, and has no value `other`" in refused.err
    assert nothing_published(tmp_path)


def test_what_is_proven_of_a_wide_block_is_about_draws_from_its_cells(released, tmp_path):
    """Who draws from the columns inside may tell single values apart where a cell does not, and may keep more of it."""
    release = released(mechanism="optimal", privacy={"notion": "lip", "epsilon": 0.1})
    (_, page), _ = reports(release, tmp_path / "private")
    assert json.loads((release / "release.json").read_text())["utility"]["upper_bound"] < 1
    assert re.search(r"no more than [\d.]+% is possible by drawing from cells of", page.text)
    assert "that draws from the true cells of" in page.text
    assert "to keep information about the true cells within the promise" in page.text


def test_true_cells_are_not_called_true_rows(released, tmp_path):
    release = released(privacy={"notion": "pml", "epsilon": 9.0})
    (shown, page), _ = reports(release, tmp_path / "private")
    assert shown["scope"]["as_is"]
    assert "the true cells are released as they are" in page.text
    assert "what is filled in from it need not be true" in page.text
    assert "released values are the true ones" not in page.text
    assert "The true cell is released; the columns of a row are filled in" in page.text
    assert "the total of every cell of person is the true one." in page.text
    for drawn in ("The cell is drawn for", "the draws leave the total", "lies on its bounds"):
        assert drawn not in page.text


COMMON = "replace(town, 'Oslo', 'Bergen') AS town"
"""Without the rare town, no town is `other`."""
TONIGHT = "* REPLACE (CASE WHEN id < 30 THEN 'Paris' ELSE replace(town, 'Oslo', 'Bergen') END AS town)"
MISSING = f"* REPLACE (CASE WHEN id < 30 THEN NULL ELSE wage END AS wage, {COMMON})"
OLDER = f"* REPLACE (CASE WHEN id < 30 THEN 99 ELSE age END AS age, {COMMON})"


@pytest.mark.long
@pytest.mark.parametrize(
    ("column", "tonight", "code"),
    [
        ("town", TONIGHT, "unseen-value"),
        ({"name": "town", "unseen": "drop"}, TONIGHT, None),
        ("wage", MISSING, "unseen-value"),
        ({"name": "wage", "unseen": "drop"}, MISSING, None),
        ("age", OLDER, None),
    ],
)
def test_a_value_that_appears_only_tonight(command, tmp_path, column, tonight, code):
    """An unknown text or gap is refused or left out; a number lies in some cell whatever it is."""
    name = column if isinstance(column, str) else column["name"]
    columns = [column if one == name else one for one in INNER]
    people(tmp_path, change=f"* REPLACE ({COMMON})")
    path = write_policy(tmp_path, **WIDE | wide(columns=columns) | {"source__missing": "category"})
    assert command("lock", path).code == 0
    people(tmp_path, change=tonight)
    run = command("run", "--locked", path, "--json")
    if code is not None:
        assert (run.code, f"[{code}]" in run.err) == (EXITS.get(code, FAULT), True)
        assert "the lock does not know 1 value of" in run.err and "Paris" not in run.err
        assert nothing_published(tmp_path)
        # What is advised helps, as nothing was released under the lock yet.
        assert "Where nothing was released under the lock yet, write `unseen: drop`" in " ".join(run.err.split())
        columns = [{"name": name, "unseen": "drop"} if one == name else one for one in INNER]
        path = write_policy(tmp_path, **WIDE | wide(columns=columns) | {"source__missing": "category"})
        assert command("lock", "--force", path).code == 0
        assert command("run", "--locked", path).code == 0
        return
    assert run.code == 0, run.err
    assert run.json["rows"] == (1500 if name == "age" else 1470)
    assert command("audit", tmp_path / "releases", "--private", tmp_path / "private").code == 0


def test_a_new_text_is_other_where_rare_ones_are(command, tmp_path):
    people(tmp_path)
    path = write_policy(tmp_path, **WIDE)
    assert command("lock", path).code == 0
    people(tmp_path, change=TONIGHT)
    run = command("run", "--locked", path, "--json")
    assert run.code == 0, run.err
    assert run.json["rows"] == 1500


def test_a_second_partition_of_the_same_people_is_refused(released, command, tmp_path):
    first = released()
    people(tmp_path, rows=1400)
    run = command("run", write_policy(tmp_path, **WIDE))
    assert run.code == 4
    assert "[cells-changed]" in run.err
    assert first.name in run.err


def test_cells_of_other_groups_that_are_called_alike_are_other_cells(command, tmp_path):
    """Each group has half of its towns from the other one's, so that most people seem to have what they had."""
    query = """SELECT i AS id, 'h' || (i % 2) AS health, 'u' || (i // 2 % 2) AS u,
                      ['a', 'b', 'c', 'd'][1 + i // 4 % 4] AS town FROM range(640) t(i)"""
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/people.parquet'")
    for groups in ({"north": ["a", "b"], "south": ["c", "d"]}, {"north": ["a", "c"], "south": ["b", "d"]}):
        terms = wide(columns=[{"name": "town", "groups": groups}, "u"], cells=2)
        run = command("run", write_policy(tmp_path, **WIDE | terms))
    assert (run.code, "[cells-changed]" in run.err) == (4, True), run.err
    assert len(Journal(tmp_path / "private").releases()) == 1


@pytest.mark.parametrize("changes", [{"estimate__minimum": 4}, {"source__filter": "id % 40 <> 7"}])
def test_the_same_cells_are_not_filled_from_other_counts(released, command, tmp_path, changes):
    """What fills a cell are sums of enough records: sums of other records, or larger ones, would tell single ones."""
    fill = WIDE | wide(columns=["age", "wage", "votes"], cells={"most": 2, "minimum": 400})
    first = released(**fill)
    assert told(released(**fill)) == told(first)  # from the very counts
    run = command("run", write_policy(tmp_path, **fill | {"name": "another"} | changes))
    assert (run.code, "[cells-changed]" in run.err) == (4, True), run.err
    elsewhere = released(**fill | changes | {"release__private": "apart", "release__to": "elsewhere"})
    assert told(elsewhere)["columns"] == told(first)["columns"]
    assert told(elsewhere)["profiles"] != told(first)["profiles"]


def told(release: Path) -> dict:
    """What cells.json says of the only wide block, but for the seed."""
    (block,) = json.loads((release / "cells.json").read_bytes())["blocks"]
    return {key: value for key, value in block.items() if key != "seed"}


def test_where_a_lock_of_cells_leaks_only_what_is_let_in_is_advised(command, tmp_path):
    people(tmp_path)
    path = write_policy(tmp_path, **WIDE)
    assert command("lock", path).code == command("run", "--locked", path).code == 0
    ill = "CASE WHEN town = 'Bergen' AND id % 2 = 0 THEN 'ill' ELSE health END AS health"
    people(tmp_path, rows=1490, change=f"* REPLACE ({ill})")
    run = command("run", "--locked", path)
    assert (run.code, "[lock-leaks]" in run.err) == (4, True), run.err
    assert "funnel lock --keep" in run.err and "then let the last release stand" in " ".join(run.err.split())
    assert "--room" not in run.err and "rotate" not in run.err
    assert "[cells-changed]" in command("lock", "--force", path).err
    changed = command("run", "--locked", write_policy(tmp_path, **WIDE | {"estimate__minimum": 4}))
    assert "the new one is refused if those come out otherwise" in " ".join(changed.err.split())


def test_a_wide_block_of_one_cell_has_no_values_that_are_all_the_same(released):
    page = (released(**wide(cells={"most": 2, "minimum": 1200})) / "report.html").read_text()
    assert "The true values, of wide blocks the cells, are all the same" in " ".join(page.split())


def test_mechanisms_that_no_wide_block_takes_are_not_said_to_fit(command, tmp_path):
    changes = {"privacy": {"notion": "mutual-information", "epsilon": 0.1}, "mechanism": "invariant"}
    checked = command("check", write_policy(tmp_path, **WIDE | changes))
    assert "Mechanisms that fit here: randomised-response" in checked.err + checked.out
    assert "gaussian-funnel" not in checked.err + checked.out


def test_a_column_beside_both_partitions_lets_neither_through(released, command, tmp_path):
    """Where notions make one alphabet of blocks, what is plain of it means the same in both."""
    joint = {"privacy": {"notion": "srlip", "epsilon": 0.4, "knows": 1, "solve": "joint"}, "draws": {"kind": "fresh"}}
    both = {"public": [WIDE["public"][0] | {"cells": {"most": 4, "minimum": 60}}, "votes"]}
    first = released(**joint | both)
    both["public"][0] |= {"cells": {"most": 6, "minimum": 60}}
    run = command("run", write_policy(tmp_path, **WIDE | joint | both))
    assert (run.code, "[cells-changed]" in run.err, first.name in run.err) == (4, True, True), run.err


@pytest.mark.parametrize(
    ("code", "rows", "changes"),
    [
        ("cells-support", 55, {}),
        ("source-nulls", 1500, {"change": MISSING}),
        ("unknown-column", 1500, {"columns": ["age", "twon"]}),
        ("below-bins", 1500, {"columns": ["town", {"name": "age", "bins": [30, 40]}]}),
        ("rare-values", 1500, {"columns": ["age", {"name": "town", "rare": "error"}]}),
        ("column-type", 1500, {"columns": ["age", {"name": "town", "rare": "bin"}]}),
    ],
)
def test_what_cannot_be_is_said(command, tmp_path, code, rows, changes):
    people(tmp_path, rows, changes.get("change", "*"))
    run = command(
        "run", write_policy(tmp_path, **WIDE | wide(**{k: v for k, v in changes.items() if k == "columns"}))
    )
    assert (run.code, f"[{code}]" in run.err) == (1, True), run.err
    assert nothing_published(tmp_path)
    # The plan says so before.
    planned = command("plan", tmp_path / "policy.yaml")
    assert (planned.code, f"[{code}]" in planned.err) == (1, True)


def test_a_constant_column_and_missing_values_are_no_trouble(released, command, tmp_path):
    people(tmp_path, change="* REPLACE (1 AS wage, CASE WHEN id % 3 = 0 THEN NULL ELSE town END AS town)")
    release = released(source__missing="category")
    assert (
        duckdb.sql(f"SELECT count(*) FROM '{release}/data.parquet' WHERE town IS NULL").fetchall()[0][0] > 0
    )
    assert command("audit", release, "--private", tmp_path / "private").code == 0


def test_a_column_that_determines_the_secret_is_kept_in_bounds(released, command, tmp_path):
    people(tmp_path, change="* REPLACE (health AS town)")
    release = released(mechanism="optimal", privacy__epsilon=0.5)
    assert json.loads((release / "release.json").read_text())["leakage"]["lip"] <= 0.5
    assert command("audit", release, "--private", tmp_path / "private").code == 0


def forged(release: Path, change) -> None:
    """Another cells.json, and a manifest that names its hash."""
    content = json.loads((release / "cells.json").read_text())
    change(content["blocks"][0])
    raw = encode(content)
    (release / "cells.json").write_bytes(raw)
    manifest = json.loads((release / "release.json").read_text())
    manifest["files"]["cells.json"] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (release / "release.json").write_bytes(encode(manifest))


FORGERIES = {
    "another seed": lambda block: block.update(seed="0" * 64),
    "a cell less": lambda block: block["nodes"].pop(),
    "a split of nothing": lambda block: block["nodes"][0].update(column=99),
    "values out of reach": lambda block: block["columns"][0]["values"].pop(),
    "cuts out of order": lambda block: block["columns"][0]["cuts"].reverse(),
    "weights of another sum": lambda block: block["profiles"][0]["values"][0].append(7),
    "another name": lambda block: block.update(name="somebody"),
}


def test_shares_of_cells_are_those_of_the_counts(made, command, tmp_path):
    """Weights rest on them; the evidence shows it, whatever hashes say."""
    release = shutil.copytree(made, tmp_path / "forged")

    def moved(block) -> None:
        first, second = [node for node in block["nodes"] if node["kind"] == "cell"][:2]
        first["share"], second["share"] = first["share"] - 100, second["share"] + 100

    forged(release, moved)
    audit = command("audit", release, "--private", made.parents[1] / "private", "--json")
    failed = {one["claim"]: one["detail"] for one in audit.json["findings"] if one["status"] == "failed"}
    assert "the shares of person are not those of the counts" in failed["cells"]


@pytest.mark.parametrize("how", FORGERIES)
def test_a_table_that_does_not_follow_from_its_cells_is_found(made, command, tmp_path, how):
    """A changed byte fails its hash; whoever makes the hashes anew fails at the table, which follows from the cells."""
    release = shutil.copytree(made, tmp_path / "forged")
    forged(release, FORGERIES[how])
    audit = command("audit", release, "--json")
    assert audit.code == 1
    failed = {one["claim"]: one["detail"] for one in audit.json["findings"] if one["status"] == "failed"}
    assert "data-export" in failed
    assert not any("came to no end" in detail for detail in failed.values())


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_rows_have_names_beside_their_labels(released, command, tmp_path, form):
    """A row keeps its name, and its label says all that its columns can: they are filled in from it."""
    release = released(release__identify=["id"], release__format=form, public=[*WIDE["public"], "votes"])
    rows = table(release)
    assert rows.columns[:6] == ["id", "person", *INNER]
    assert [row[0] for row in rows.fetchall()] == list(range(1500))
    audit = command("audit", release, "--private", tmp_path / "private")
    assert audit.code == 0, audit.out
    assert "1500 rows read back, each with a key of its own, and the same bytes" in audit.out


def test_a_row_whose_columns_are_not_those_of_its_label_is_found(released, command, tmp_path):
    """Its hash made anew, too: the columns follow from keys, labels and cells.json."""
    release = released(release__identify=["id"])
    path = release / "data.parquet"
    swapped = "* REPLACE (CASE WHEN id = 7 THEN 18 WHEN id = 8 THEN 50 ELSE age END AS age)"
    duckdb.sql(f"COPY (SELECT {swapped} FROM '{path}' ORDER BY id) TO '{path}.new'")
    path.with_name("data.parquet.new").replace(path)
    Forged(release, tmp_path / "private" / release.name).list_files()
    audit = command("audit", release, "--json")
    assert [one["claim"] for one in audit.json["findings"] if one["status"] == "failed"] == ["data-export"]


def reports(release: Path, private: Path) -> list[tuple[dict, Reader]]:
    """The published report and the full one: content, and the page as it is read."""
    folders = (release, private / release.name)
    return [
        (json.loads((one / "report.json").read_text()), Reader((one / "report.html").read_text()))
        for one in folders
    ]


@pytest.mark.parametrize("mechanism", ["randomised-response", "invariant", "optimal"])
def test_a_report_tells_of_columns_cells_and_how_to_count(released, command, tmp_path, mechanism):
    release = released(mechanism=mechanism, privacy__epsilon=0.1)
    (shown, page), (full, whole) = reports(release, tmp_path / "private")
    first = "What follows bounds what the row tells someone who knows nothing else that is true of the person"
    for content, read in ((shown, page), (full, whole)):
        assert read.open == []
        assert read.text.index(first) < read.text.index(content["promise"]["sentence"])
        assert "age < " in read.text
        assert "“other”" in read.text
        assert "The conditions of all cells, and their shares" in read.text
    assert "<details>" in (release / "report.html").read_text()
    said = {
        "face": "at face value: the draws leave",
        "weight": "by the column “weight”",
        "estimate": "Do not count",
    }
    assert said[shown["wide"][0]["totals"]] in page.text
    # What is kept is kept of cells: columns are not as true as that.
    assert "The true values, of wide blocks the cells, hold H(X)" in page.text
    assert "what stays the same where draws are permanent" in page.text
    assert "the truth may often lie outside an interval" in page.text
    assert "every cell had to have at least" in page.text and "every true value of" not in page.text
    assert ("pooled and rounded, were the truth" in page.text) == bool(shown["wide"][0]["accuracy"])
    assert (shown["wide"][0]["totals"] == "face") == (mechanism == "invariant")
    # What takes the records stands in the full report alone.
    assert "How far each two columns are" not in page.text
    assert "How far each two columns are" in whole.text
    (near,) = full["evidence"]["wide"]
    assert near["figures"]["release"]["pair_most"] < 0.3
    assert [one["name"] for one in near["merged"]][:1] == ["town"]
    assert all(one["own"] >= one["at_zero"] - 1e-9 for one in near["accuracy"])
    rebuilt = command("report", release, "--private", tmp_path / "private", "--to", tmp_path / "again")
    assert rebuilt.code == 0, rebuilt.err
    kept = tmp_path / "private" / release.name / "report.html"
    assert (tmp_path / "again" / "report.html").read_bytes() == kept.read_bytes()


def test_srlip_over_cells_says_what_may_be_known(command, tmp_path):
    """Of columns inside cells nothing would be measured, and the promise would speak of them."""
    people(tmp_path)
    run = command(
        "check", write_policy(tmp_path, **(WIDE | {"privacy__notion": "srlip", "mechanism": "optimal"}))
    )
    assert (run.code, "[unsupported]" in run.err, "knows: 2" in run.err) == (1, True, True)


@pytest.mark.long
def test_who_knows_columns_is_not_covered_but_by_the_notions_that_say_so(released, tmp_path):
    """Under srlip the first sentence would be wrong."""
    release = released(privacy__notion="srlip", privacy__knows=1, mechanism="optimal")
    shown = json.loads((release / "report.json").read_text())
    assert shown["promise"]["alone"] == ""


def test_columns_come_as_people_have_them(released, command, tmp_path):
    """Groups, bins, rounded numbers and dates, the most frequent values: inside a wide block as outside."""
    columns = [
        {"name": "age", "bins": [0, 30, 50]},
        {"name": "town", "groups": {"Norway": ["Oslo", "Bergen"], "Italy": ["Rome0", "Rome1", "Rome2"]}},
        {"name": "since", "round": "month"},
        {"name": "wage", "round": 1},
        {"name": "votes", "top": 1},
    ]
    release = released(**wide(columns=columns))
    rows = table(release)
    assert [str(kind) for kind in rows.types] == ["VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "VARCHAR"]
    shown = [{row[place] for row in rows.fetchall()} for place in range(5)]
    assert shown[0] <= {"[0, 30)", "[30, 50)", "[50, ∞)"}
    assert shown[1] == {"Norway", "Italy"}
    assert all(len(month) == 7 for month in shown[2])
    assert shown[4] == {"no", "other"}
    assert command("audit", release, "--private", tmp_path / "private").code == 0
    path = tmp_path / "policy.yaml"
    assert command("lock", path).code == 0
    assert command("run", "--locked", path).code == 0


def test_what_changes_in_a_wide_block_is_told_column_by_column(made, command, tmp_path):
    release = made
    (tmp_path / "before.yaml").write_text((made.parents[1] / "policy.yaml").read_text())
    coarser = write_policy(tmp_path, **WIDE | wide(columns=INNER[:3], cells={"most": 5, "minimum": 60}))
    for old in (tmp_path / "before.yaml", release):
        found = command("diff", old, coarser, "--json")
        told = {one["term"]: one["verdict"] for one in found.json["findings"]}
        assert (found.code, found.json["verdict"]) == (1, "incomparable")
        assert (told["public.wage"], told["public.person.cells"]) == ("stronger", "incomparable")
    back = command("diff", coarser, tmp_path / "before.yaml", "--json")
    assert back.code == 1
    verdicts = {one["term"]: one["verdict"] for one in back.json["findings"]}
    assert {term for term, verdict in verdicts.items() if verdict == "weaker"} == {"public.wage"}
    assert verdicts["public.person.cells.most"] == "incomparable"


def test_another_lock_pins_other_cells_and_says_so(command, tmp_path):
    people(tmp_path)
    path = write_policy(tmp_path, **WIDE)
    assert command("lock", path).code == 0
    old = (tmp_path / "policy.lock.yaml").read_text()
    people(tmp_path, rows=1400)
    made = command("lock", path, "--json")
    assert made.code == 1
    told = {one["term"]: one["verdict"] for one in made.json["difference"]["findings"]}
    assert told["cells.person"] == "weaker"
    assert (tmp_path / "policy.lock.yaml").read_text() == old


@pytest.mark.parametrize(
    ("changes", "label", "filled"),
    [
        (
            {"privacy": {"notion": "pml", "epsilon": 9.0}},
            "The number of the true cell.",
            "Filled in from the true cell.",
        ),
        (
            {"privacy": {"notion": "pml", "epsilon": 0.05}},
            "The number of the cell that was drawn with the chances in protocol.json.",
            "Filled in from the cell that was drawn with the chances in protocol.json.",
        ),
        (
            {"privacy": {"notion": "mutual-information", "epsilon": 0.001}, "mechanism": "greedy-funnel"},
            "The number of the cell that protocol.json names for the true one.",
            "Filled in from the cell that protocol.json names for the true one.",
        ),
    ],
    ids=["same", "drawn", "merged"],
)
def test_catalogues_say_of_cells_that_they_are_drawn_where_they_are(changes, label, filled, released):
    release = released(**changes, release__identify=["id"])
    fields = json.loads((release / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    told = {one["name"]: one["description"] for one in fields}
    assert told.pop("person") == label
    assert {told[name] for name in INNER} == {filled}


def test_estimates_are_of_cells_and_say_so(made, command):
    found = command("estimate", made)
    assert found.code == 0
    assert "values are cells" in found.out


def test_mechanisms_are_compared_on_cells_and_sets_are_not_among_them(command, tmp_path):
    people(tmp_path)
    found = command("compare", write_policy(tmp_path, **WIDE), "--epsilon", "0.3", "--json")
    assert found.code == 0, found.err
    assert found.json["public"] == [["person"]]
    names = {one["mechanism"] for one in found.json["lines"]}
    assert {"optimal", "invariant", "randomised-response"} <= names
    assert "unary-encoding" not in names


def test_catalogues_and_parquet_tell_the_columns_inside_cells(made):
    package = json.loads((made / "datapackage.json").read_text())
    fields = package["resources"][0]["schema"]["fields"]
    assert [one["name"] for one in fields] == table(made).columns
    assert {one["description"] for one in fields} <= {
        "Filled in from the true cell.",
        "What the row counts for where totals are taken.",
    }
    assert {one["path"] for one in package["resources"]} >= {"data.parquet", "cells.json"}
    assert funnel.audit_release(made).passed


def test_whether_draws_of_cells_repeat_is_said_not_to_be_compared_where_the_table_changed(released, command, tmp_path):
    """Who has which cell stands in no list of people; what stands beside the wide block is compared by itself."""
    terms = {"public": [*WIDE["public"], "votes"], "privacy": {"notion": "ldp-x", "epsilon": 1.0}}
    people(tmp_path)
    assert command("lock", write_policy(tmp_path, **WIDE | terms), "--room", "0.5").code == 0
    released("--locked", **terms)
    found = []
    for change in ("*", "* REPLACE (CASE WHEN id = 3 THEN 44 ELSE age END AS age)"):
        people(tmp_path, change=change)
        release = released("--locked", **terms)
        audit = funnel.audit_release(release, tmp_path / "private")
        assert audit.passed, audit.text()
        found.append(detail(audit, "draws-repeat"))
    assert found == [
        "as 1 earlier release that can be compared",
        "as 2 earlier releases that can be compared, but for person",
    ]
