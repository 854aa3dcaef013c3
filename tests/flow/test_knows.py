"""srlip with `knows`, from a policy to its audit: levels of columns, wide blocks, locks, earlier releases, lies."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.audit.extras import policy as policy_claim
from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken
from funnel.errors import LockError, PolicyError
from funnel.format.canonical import encode
from funnel.policy import load
from tests.support.audited import detail, failures
from tests.support.forging import Forged, edit, seal
from tests.support.nights import real_leakage, steps_of
from tests.support.policies import write_policy

TOWNS = {"north": ["Arden", "Brook"], "south": ["Calder", "Dale"], "far": ["Eton"]}
AGE = {"name": "age", "bins": [20, 40, 60]}
TOWN = {"name": "town", "groups": [TOWNS, {"here": ["north", "south"]}]}
BASE: dict[str, Any] = {
    "source": {"table": "people.parquet"},
    "sensitive": ["ill"],
    "public": [AGE, TOWN, "job"],
    "privacy": {"notion": "srlip", "epsilon": 0.8, "knows": 2},
    "mechanism": "randomised-response",
    "draws": {"kind": "fresh"},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 900 people: their illness goes with age and town, and a job with both."""
    tmp_path = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(3)
    names = [name for group in TOWNS.values() for name in group]
    rows = []
    for person in range(900):
        age, town = int(rng.integers(20, 70)), int(rng.integers(5))
        job = "abc"[int((age // 25 + town + rng.integers(2)) % 3)]
        ill = rng.random() < 0.25 + 0.2 * (age > 45) + 0.1 * (town == 2)
        rows.append((person, age, names[town], job, "yes" if ill else "no"))
    values = ", ".join(map(str, rows))
    query = f"COPY (SELECT * FROM (VALUES {values}) t(id, age, town, job, ill)) TO '{tmp_path / 'people.parquet'}'"
    duckdb.sql(query)
    return tmp_path


@pytest.fixture
def folder(table: Path, tmp_path: Path) -> Path:
    """The table in a folder of its own."""
    shutil.copy(table / "people.parquet", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def once(table: Path) -> tuple[Path, str]:
    """The folder of one release of it, and the release's name: to be looked at, or copied and changed."""
    return table, Path(funnel.run(written(table)).release).name


def written(folder: Path, **changes: Any) -> Path:
    return write_policy(folder, **deepcopy(BASE | changes))


def released(folder: Path, **changes: Any) -> tuple[Any, Path, dict[str, Any]]:
    """A release, its folder, and known.json."""
    made = funnel.run(written(folder, **changes))
    release = Path(made.release)
    return made, release, json.loads((folder / "private" / release.name / "known.json").read_text())


def audit(folder: Path, release: Path) -> set[str]:
    return failures(funnel.audit_release(release, folder / "private", table=folder / "people.parquet"))


@pytest.mark.parametrize("way", [None, "auto", "zz"])
def test_by_which_way_was_solved_is_the_publishers_word_and_said_to_be(way, once: tuple[Path, str], tmp_path) -> None:
    """But there is one, where the notion has any."""
    folder, name = once
    shutil.copytree(folder, tmp_path / "home", symlinks=True)
    made = Forged(tmp_path / "home" / "releases" / name, tmp_path / "home" / "private" / name)
    told = detail(funnel.audit_release(made.folder, made.kept), "policy-terms")
    assert told.endswith("; by which way it was solved, which the policy leaves open, is the publisher’s word")
    edit(made.folder / "release.json", lambda old: old["parameters"].update(solve=way))
    seal([made], reports=False)
    assert {"policy-terms", "manifest"} & failures(funnel.audit_release(made.folder, made.kept))


def test_every_level_of_every_column_may_be_known(once: tuple[Path, str]) -> None:
    folder, name = once
    release = folder / "releases" / name
    known = json.loads((folder / "private" / name / "known.json").read_text())
    levels = {(one["column"], one["level"]): one["values"] for one in known["levels"]}
    assert [*levels] == [
        ("age", "own"), ("age", "released"), ("town", "own"), ("town", "released"), ("town", "groups 2"),
        ("job", "own"),
    ]  # fmt: skip
    assert levels["age", "released"] == ["[20, 40)", "[40, 60)", "[60, ∞)"]
    assert levels["town", "own"] == [name for group in TOWNS.values() for name in group]
    assert levels["town", "groups 2"] == ["far", "here"]
    assert audit(folder, release) == set()
    stated = json.loads((release / "release.json").read_text())
    assert stated["leakage"]["srlip"] >= stated["leakage"]["lip"]
    assert stated["parameters"]["knows"] == 2
    assert not (release / "known.json").exists()


def test_a_group_is_known_that_is_merged_as_rare_ones_are(tmp_path: Path) -> None:
    """Two towns in a group: whoever knew the group was told more than was promised, and the group of it was another."""
    kinds = {"pg": (16, 2), "qg": (2, 16), "pr": (1, 8), "qr": (8, 1), "pz": (50, 50), "qz": (50, 50)}
    towns = {"g": ("Arden", "Brook"), "r": ("Eton", "Fen"), "z": ("Calder", "Calder")}
    rows = [
        f"{ill},{kind[0]},{towns[kind[1]][i % 2]}"
        for kind, both in kinds.items() for ill, number in zip(("no", "yes"), both, strict=True) for i in range(number)
    ]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["ill,job,town", *rows]))
    groups = [{"north": ["Arden", "Brook"]}, {"up": ["north"]}]
    changes = {
        "source": {"table": "t.csv"}, "public": ["job", {"name": "town", "groups": groups, "rare": "other"}],
        "privacy": {"notion": "srlip", "epsilon": 0.5, "knows": ["town"]}, "estimate__minimum": 20,
    }  # fmt: skip
    _, release, known = released(tmp_path, **changes)
    levels = {one["level"]: one["values"] for one in known["levels"] if one["column"] == "town"}
    assert [*levels] == ["own", "grouped", "released", "groups 2"]
    assert levels == {"own": ["Calder"], "grouped": ["Calder", "north"], "released": ["Calder", "other"],
                      "groups 2": ["Calder", "up"]}  # fmt: skip
    (block,) = json.loads((release / "protocol.json").read_text())["blocks"]
    chances = {tuple(x): [row[i] for row in block["weights"]] for i, x in enumerate(block["inputs"])}
    told = [
        [Fraction(a * p + b * q, a + b) for p, q in zip(chances["p", "other"], chances["q", "other"], strict=True)]
        for a, b in ((16, 2), (2, 16))
    ]  # fmt: skip
    moved = [Fraction(2 * one, no + yes) for no, yes in zip(*told, strict=True) for one in (no, yes) if no + yes]
    real = max(math.log(max(one, 1 / one)) if one else math.inf for one in moved)
    assert real <= json.loads((release / "release.json").read_text())["leakage"]["srlip"] <= 0.5
    assert failures(funnel.audit_release(release, tmp_path / "private", table=tmp_path / "t.csv")) == set()
    forged = without(known, [one["level"] for one in known["levels"]].index("grouped"))
    (tmp_path / "private" / release.name / "known.json").write_bytes(encode(forged))
    with pytest.raises(Broken, match="a level of town that may be known is not told; expected grouped"):
        policy_claim.check(Release(release, tmp_path / "private"))


def test_the_report_says_against_whom_and_who_is_not_covered(once: tuple[Path, str]) -> None:
    folder, name = once
    release = folder / "releases" / name
    shown = json.loads((release / "report.json").read_text())
    assert "the true values of at most 2 of the released columns" in shown["promise"]["sentence"]
    assert "at least 10 records share" in shown["promise"]["condition"]
    whole = json.loads((folder / "private" / release.name / "report.json").read_text())
    told = whole["evidence"]["uncovered"]
    assert 0 < told["people"] <= 900 and told["people"] <= told["pairs"] and told["sets"] == 7
    assert f"{told['people']:,} people of 900" in whole["evidence"]["known"]
    assert "Who is not covered" in (folder / "private" / release.name / "report.html").read_text()
    assert "evidence" not in shown and "Who is not covered" not in (release / "report.html").read_text()


def test_columns_inside_a_wide_block_may_be_known(folder: Path) -> None:
    wide = {"name": "person", "columns": [AGE, TOWN], "cells": {"most": 8, "minimum": 20}}
    privacy = {"notion": "srlip", "epsilon": 1.0, "knows": 1}
    _, release, known = released(folder, public=[wide], privacy=privacy, mechanism="invariant")
    assert [(one["column"], one["level"]) for one in known["levels"]][1:4] == [
        ("age", "released"), ("town", "own"), ("town", "released"),
    ]  # fmt: skip
    assert audit(folder, release) == set()
    assert json.loads((release / "release.json").read_text())["leakage"]["srlip"] <= 1.0


def test_what_cells_merge_may_be_known(table: Path, tmp_path: Path) -> None:
    """Nobody shares an income with anybody, but some share what is released of it, and they have a bound."""
    query = "SELECT *, 1000 + id + 500 * (ill = 'yes')::INT + 0.5 AS income"
    duckdb.sql(f"COPY ({query} FROM '{table}/people.parquet') TO '{tmp_path}/people.parquet'")
    wide = {"name": "person", "columns": ["income", "job"], "cells": {"most": 8, "minimum": 20}}
    privacy = {"notion": "srlip", "epsilon": 1.0, "knows": 1}
    _, release, known = released(tmp_path, public=[wide], privacy=privacy, mechanism="invariant")
    levels = {(one["column"], one["level"]): one["values"] for one in known["levels"]}
    assert [*levels] == [("income", "own"), ("income", "merged"), ("job", "own")]
    cells = json.loads((release / "cells.json").read_text())["blocks"][0]
    assert levels["income", "own"] == [] and levels["income", "merged"] == cells["columns"][0]["values"]
    assert audit(tmp_path, release) == set()
    edit(tmp_path / "private" / release.name / "known.json", hide_incomes)
    found = funnel.audit_release(release, tmp_path / "private")
    assert "cells" in failures(found)


def test_a_lock_leaves_out_what_its_cells_do_not_know(folder: Path) -> None:
    """A job that is new tonight has no value that is released; ages of few people have one still."""
    table = folder / "people.parquet"
    duckdb.sql(f"CREATE OR REPLACE TABLE tonight AS SELECT * REPLACE (age + (id < 40)::INT * id AS age) FROM '{table}'")
    duckdb.sql(f"COPY tonight TO '{table}'")
    columns = ["age", {"name": "job", "unseen": "drop"}]
    wide = {"name": "person", "columns": columns, "cells": {"most": 4, "minimum": 20}}
    policy = written(folder, public=[wide], privacy={"notion": "srlip", "epsilon": 1.0, "knows": 1},
                     mechanism="invariant", accept="unbounded")  # fmt: skip
    funnel.make_lock(policy, room=0.5)
    duckdb.sql(f"COPY (SELECT * REPLACE (CASE WHEN id = 200 THEN 'z' ELSE job END AS job) FROM tonight) TO '{table}'")
    release = Path(funnel.run(policy, locked=True).release)
    known = json.loads((folder / "private" / release.name / "known.json").read_text())
    assert [(one["column"], one["level"]) for one in known["levels"]][:2] == [
        ("age", "own"), ("age", "merged"),
    ]  # fmt: skip
    assert sum(row[-1] for row in known["cells"]) == 899
    assert audit(folder, release) == set()
    told = folder / "private" / release.name / "known.json"
    for lie in (without(known, 1), hidden(known, 1), hidden(known, 0)):
        told.write_bytes(encode(lie))
        assert "known.json: what is released of a column is not what cells make of it" in detail(
            funnel.audit_release(release, folder / "private"), "cells"
        )


def hidden(known: dict[str, Any], place: int) -> dict[str, Any]:
    """known.json with the values of one of its levels told of nobody."""
    rows, at = Counter[tuple[int, ...]](), len(known["cells"][0]) - 1 - len(known["levels"]) + place
    for *row, count in known["cells"]:
        rows[*row[:at], 0, *row[at + 1 :]] += count
    levels = [one | {"values": []} if i == place else one for i, one in enumerate(known["levels"])]
    return known | {"levels": levels, "cells": [[*row, count] for row, count in sorted(rows.items())]}


def test_what_a_lock_pools_of_tonights_rare_values_may_be_known_as_such(tmp_path: Path) -> None:
    """A combination that the lock does not know goes under `other`, a larger group than that of tonight's own."""
    def write(more: Sequence[tuple[str, str]]) -> None:
        rows = [(a, b) for a in ("a0", "a1") for b in ("b0", "b1") for _ in range(100)]
        rows += [(f"x{i}", b) for i in range(8) for b in ("b0", "b1") for _ in range(4)]
        rows += more
        columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows], "ill": ["yes", "no"] * (len(rows) // 2)}
        pq.write_table(pa.table({"id": [*range(len(rows))]} | columns), tmp_path / "people.parquet")

    write([(f"x{i + 8}", f"y{i}") for i in range(8) for _ in range(8)])
    block = [{"name": name, "rare": "other", "unseen": "other"} for name in ("a", "b")]
    policy = written(tmp_path, public=[block], privacy={"notion": "srlip", "epsilon": 1.0, "knows": 1},
                     mechanism="randomised-response", accept="unbounded", estimate={"minimum": 10})  # fmt: skip
    funnel.make_lock(policy, room=0.5)
    write([("a0", f"y{i}") for i in range(8) for _ in range(8)] + [("a0", "b2")] * 300)
    release = Path(funnel.run(policy, locked=True).release)
    known = tmp_path / "private" / release.name / "known.json"
    told = json.loads(known.read_text())
    levels = [(one["column"], one["level"]) for one in told["levels"]]
    assert levels == [(name, level) for name in ("a", "b") for level in ("own", "tonight", "released")]
    assert audit(tmp_path, release) == set()
    known.write_bytes(encode(without(told, 1)))
    said = "a level of a that may be known is not told; expected tonight"
    assert said in detail(funnel.audit_release(release, tmp_path / "private"), "policy")


def test_a_new_value_that_a_lock_puts_under_other_may_be_known_as_such(tmp_path: Path) -> None:
    """Town says nothing within each job, and much to who knows only that the job is released as `other`."""
    def write(counts: dict[str, tuple[int, ...]]) -> None:
        kinds = list(product("ns", ("yes", "no")))
        rows = [(job, *one) for job, many in counts.items() for k, one in enumerate(kinds) for _ in range(many[k])]
        columns = dict(zip(("job", "town", "ill"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table({"id": [*range(len(rows))]} | columns), tmp_path / "people.parquet")

    write({"a": (135, 315, 135, 315), "other": (150, 325, 100, 325)})
    public = [{"name": "job", "unseen": "other"}, "town"]
    policy = written(tmp_path, public=public, privacy={"notion": "srlip", "epsilon": 1.0, "knows": 1},
                     mechanism="optimal", accept="unbounded")  # fmt: skip
    funnel.make_lock(policy, room=0.1)
    write({"a": (135, 315, 135, 315), "other": (72, 8, 8, 2), "z": (10, 80, 80, 640)})
    release = Path(funnel.run(policy, locked=True).release)
    weights = steps_of(release / "protocol.json")
    assert all(Fraction(0) in {b - a for a, b in pairwise((0, *ends))} for ends in weights.values())  # nothing is noise
    real = math.log(Fraction(82, 170) / Fraction(172, 900))  # a belief in yes, who knows `other` and sees n
    stated = json.loads((release / "release.json").read_text())["leakage"]["srlip"]
    assert stated >= real > 0.9
    assert audit(tmp_path, release) == set()
    known = tmp_path / "private" / release.name / "known.json"
    told = json.loads(known.read_text())
    places = [i for i, one in enumerate(told["levels"]) if (one["column"], one["level"]) == ("job", "released")]
    known.write_bytes(encode(without(told, places[0])))
    said = "a level of job that may be known is not told; expected released"
    assert said in detail(funnel.audit_release(release, tmp_path / "private"), "policy")


def hide_incomes(known: dict[str, Any]) -> None:
    """As if nobody shared an income, or a bin of them, with anybody."""
    rows = Counter[tuple[int, ...]]()
    for s, x, own, _, job, count in known["cells"]:
        rows[s, x, own, 0, job] += count
    known["levels"][1]["values"] = []
    known["cells"] = [[*row, count] for row, count in sorted(rows.items())]


@pytest.mark.long
def test_a_lock_pins_what_may_be_known(folder: Path) -> None:
    policy = written(folder)
    funnel.make_lock(policy)
    assert audit(folder, Path(funnel.run(policy, locked=True).release)) == set()
    with pytest.raises(LockError, match=r"privacy\.knows is 1, the lock has 2"):
        funnel.run(written(folder, privacy=BASE["privacy"] | {"knows": 1}), locked=True)


def test_columns_of_earlier_releases_may_be_known_too(folder: Path) -> None:
    """What draws tell between any two values bounds it, where that is finite and nobody is absent."""
    privacy = {"notion": "srlip", "epsilon": 0.05, "knows": 1}
    first, *_ = released(folder, public=["job"], privacy=privacy)
    second, release, _ = released(folder, public=[AGE], privacy=privacy)
    told = second.composed.together
    assert (told.how, told.figure) == ("sum", told.varying)
    assert told.figure > first.composed.together.figure
    assert audit(folder, release) == set()
    source = BASE["source"] | {"filter": "job <> 'a'"}
    third, release, _ = released(folder, public=[AGE], privacy=privacy, source=source, accept="unbounded")
    assert third.composed.together.figure is None
    assert audit(folder, release) == set()


def test_values_that_may_be_known_and_moved_inside_a_group_are_not_called_unchanged(folder: Path) -> None:
    """Who knew the town of the first night may learn more than is measured by those of tonight: so it is not exact."""
    changes = {"public": [TOWN, "job"], "source": BASE["source"] | {"entity": "id"}, "privacy__knows": ["town"],
               "draws": {"kind": "permanent", "key": "file:draw.key"}}  # fmt: skip
    funnel.write_key(folder / "draw.key")
    first, *_ = released(folder, **changes)
    again, *_ = released(folder, **changes)
    assert again.composed.together.how == "exact" and again.composed.identity.assumes == ()
    moved = folder / "moved.parquet"
    swapped = "CASE town WHEN 'Arden' THEN 'Brook' WHEN 'Brook' THEN 'Arden' ELSE town END"
    swap = f"CASE WHEN id % 2 = 0 THEN {swapped} ELSE town END AS town"
    duckdb.sql(f"SELECT * REPLACE ({swap}) FROM '{folder / 'people.parquet'}'").write_parquet(str(moved))
    moved.rename(folder / "people.parquet")
    found, release, _ = released(folder, **changes)
    assert "values unchanged" in found.composed.identity.assumes
    assert found.composed.together.how != "exact"
    assert first.composed.together.how == "exact"
    assert "was drawn from at the same counts" not in found.protection.solved[0].how, "known.json has others"
    assert audit(folder, release) == set()


def test_columns_that_are_named_are_those_of_tonight(folder: Path) -> None:
    privacy = {"notion": "srlip", "epsilon": 0.8, "knows": ["job"]}
    released(folder, public=["job"], privacy=privacy)
    second, release, _ = released(
        folder, public=[AGE], privacy=privacy | {"knows": ["age"]}, mechanism="randomised-response", accept="unbounded"
    )  # fmt: skip
    assert second.composed.together.figure is not None or second.composed.together.how == "sum"
    assert audit(folder, release) == set()


@pytest.mark.parametrize(("changes", "code"), [
    ({"privacy__knows": ["age", "height"]}, "unknown-column"),
    ({"privacy__knows": ["age", "age"]}, "duplicate-column"),
    ({"privacy__knows": 0}, "wrong-value"),
    ({"privacy": {"notion": "lip", "epsilon": 1, "knows": 2}}, "unknown-key"),
    ({"estimate": {"kind": "private", "epsilon": 1, "values": {"ill": ["no", "yes"], "town": ["north"], "job": ["a"]}}},
     "unsupported"),
])  # fmt: skip
def test_what_a_policy_cannot_mean_is_said_at_its_line(folder: Path, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(PolicyError) as refused:
        load(written(folder, **changes))
    assert code in {one.code for one in refused.value.problems}


def another_age(known: dict[str, Any]) -> None:
    """Two people swap what may be known of them."""
    one, other = next((a, b) for a in known["cells"] for b in known["cells"] if a[-1] == b[-1] and a[4] != b[4])
    one[4], other[4] = other[4], one[4]


@pytest.mark.long
@pytest.mark.parametrize("change", [
    lambda known: known["cells"].pop(),
    lambda known: known["levels"].pop(),
    lambda known: known["levels"][0]["values"].reverse(),
    another_age,
])  # fmt: skip
def test_what_may_be_known_is_counted_again(once: tuple[Path, str], tmp_path: Path, change: Any) -> None:
    folder, name = once
    shutil.copytree(folder, tmp_path / "copy")
    edit(tmp_path / "copy" / "private" / name / "known.json", change)
    assert audit(tmp_path / "copy", tmp_path / "copy" / "releases" / name) != set()


def test_no_value_that_may_be_known_has_several_codes(once: tuple[Path, str], tmp_path: Path) -> None:
    """One for each secret would make groups in which all have one secret: there nothing is left to be told."""
    folder, name = once
    shutil.copytree(folder, tmp_path / "copy")

    def split(known: dict[str, Any]) -> None:
        sizes = [len(one["values"]) for one in known["levels"]]
        for one in known["levels"]:
            one["values"] = one["values"] * 2
        for row in known["cells"]:
            told = len(row) - 1 - len(sizes)
            row[told:-1] = [code and code + row[0] * size for code, size in zip(row[told:-1], sizes, strict=True)]
        known["cells"].sort()

    edit(tmp_path / "copy" / "private" / name / "known.json", split)
    report = funnel.audit_release(tmp_path / "copy" / "releases" / name, tmp_path / "copy" / "private")
    assert "levels[0].values is not as its format says; expected distinct values" in detail(report, "known")


def without(whole: dict[str, Any], place: int) -> dict[str, Any]:
    """known.json without one of its levels, as if nobody could know that."""
    rows, at = Counter[tuple[int, ...]](), len(whole["cells"][0]) - 1 - len(whole["levels"]) + place
    for *row, count in whole["cells"]:
        rows[*row[:at], *row[at + 1 :]] += count
    levels = [one for i, one in enumerate(whole["levels"]) if i != place]
    return whole | {"levels": levels, "cells": [[*row, count] for row, count in sorted(rows.items())]}


def test_no_level_that_may_be_known_can_be_left_out(once: tuple[Path, str], tmp_path: Path) -> None:
    """Of a column whose values are put together the coarser ones alone would tell less of the secret."""
    folder, name = once
    shutil.copytree(folder / "private" / name, tmp_path / "private" / name)
    shutil.copy(folder / "private" / "ledger.jsonl", tmp_path / "private")
    told = tmp_path / "private" / name / "known.json"
    whole = json.loads(told.read_text())
    for place, level in enumerate(whole["levels"]):
        told.write_bytes(encode(without(whole, place)))
        with pytest.raises(Broken, match=f"a level of {level['column']} that may be known is not told"):
            policy_claim.check(Release(folder / "releases" / name, tmp_path / "private"))


@pytest.mark.parametrize("forged", ["untold", "another", "own"])
def test_what_group_a_value_is_in_is_what_the_policy_says(once: tuple[Path, str], tmp_path: Path, forged: str) -> None:
    """Whoever knew only the wrong group of a town would be told less."""
    folder, name = once
    shutil.copytree(folder / "private" / name, tmp_path / "private" / name)
    shutil.copy(folder / "private" / "ledger.jsonl", tmp_path / "private")

    def change(known: dict[str, Any]) -> None:
        levels = [(one["column"], one["level"]) for one in known["levels"]]
        own, above = (levels.index(("town", one)) - len(levels) - 1 for one in ("own", "groups 2"))
        for row in known["cells"]:
            if forged == "own":
                row[own] = 1 + row[own] % 5
            else:
                row[above] = 0 if forged == "untold" else 3 - row[above]

    edit(tmp_path / "private" / name / "known.json", change)
    said = "town, groups 2: a group is not told" if forged == "untold" else "a value of town is in another group"
    with pytest.raises(Broken, match=said):
        policy_claim.check(Release(folder / "releases" / name, tmp_path / "private"))


def test_what_one_policy_lets_others_know_is_not_what_another_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same columns and secret: a figure for who knows a says nothing for who knows b, to whom more is told."""
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    counts = dict(zip(product("01", "01", "01"), (80, 20, 20, 5, 5, 80, 20, 40), strict=True))
    rows = [one for one, many in counts.items() for _ in range(many)]
    columns = {"id": [*range(len(rows))]} | dict(zip("abs", map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    terms: dict[str, Any] = {
        "source": {"table": "t.parquet", "entity": "id"}, "sensitive": ["s"], "public": [["a", "b"]],
        "mechanism": "randomised-response",
    }  # fmt: skip
    for column, more in (("b", {}), ("a", {"accept": ["knows-b"]})):
        privacy = {"notion": "srlip", "epsilon": 0.5, "knows": [column]}
        run = funnel.run(write_policy(tmp_path, **terms, **more, name=f"knows-{column}", privacy=privacy))
    entry = json.loads((tmp_path / "private" / "ledger.jsonl").read_text().splitlines()[-1])["entry"]
    told = {one["policy"]: one["together"]["figure"] for one in entry["promises"]}
    protocols = [steps_of(path / "protocol.json") for path in sorted((tmp_path / "releases").glob("2*"))]
    real = {}
    for place, column in enumerate("ab"):
        groups = [[(row[2], [(0, row[:2])] * 2) for row in rows if row[place] == value] for value in "01"]
        real[column] = max(real_leakage(group, protocols) for group in groups)
    assert real["b"] > 2 > told["knows-a"] >= real["a"] - 1e-9
    for column in "ab":
        assert told[f"knows-{column}"] is None or told[f"knows-{column}"] >= real[column] - 1e-9
    assert failures(funnel.audit_release(run.release, tmp_path / "private")) == set()


IN_STEPS = {"name": "age", "bins": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    "other",
    [{"name": "w", "columns": [IN_STEPS, "job"], "cells": {"most": 20, "minimum": 10}},
     [IN_STEPS | {"name": "AGE"}, "job"]],
    ids=["in cells", "in capitals"],
)  # fmt: skip
def test_a_column_that_may_be_known_is_the_same_within_cells_and_in_capitals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any
) -> None:
    """One policy has ages in two bins, another one in four: of who knows these, z tells the secret nearly."""
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    kinds = product((0, 1), range(4), (0, 1))
    rows = [(s, age, z) for s, age, z in kinds for _ in range((95 if z == s ^ age % 2 else 5) + 14 * (z == s))]
    pq.write_table(pa.table({
        "id": [*range(len(rows))], "s": [str(s) for s, _, _ in rows], "z": [str(z) for _, _, z in rows],
        "age": [age + place / 1e4 for place, (_, age, _) in enumerate(rows)],
        "job": [str((place % 9 < 2) ^ s) for place, (s, _, _) in enumerate(rows)],
    }), tmp_path / "t.parquet")  # fmt: skip
    terms: dict[str, Any] = {
        "source": {"table": "t.parquet", "entity": "id"}, "sensitive": ["s"], "mechanism": "randomised-response",
    }  # fmt: skip
    knows = {"notion": "srlip", "epsilon": 0.11, "knows": ["age"]}
    two = {"name": "age", "bins": [0, 2]}
    first = funnel.run(write_policy(tmp_path, **terms, name="first", public=[[two, "z"]], privacy=knows))
    nights, real = [steps_of(Path(first.release) / "protocol.json")], 0.0
    bins = sorted({label[0] for label in nights[0]})
    for known in range(4):
        people = [(str(s), [(0, (bins[age // 2], str(z)))]) for s, age, z in rows if age == known]
        real = max(real, real_leakage(people, nights))
    assert real > 1
    privacy = {"notion": "lip", "epsilon": 0.05}
    run = funnel.run(write_policy(tmp_path, **terms, name="second", public=[other], privacy=privacy))
    entry = json.loads((tmp_path / "private" / "ledger.jsonl").read_text().splitlines()[-1])["entry"]
    told = {one["policy"]: one["together"]["figure"] for one in entry["promises"]}
    assert told["first"] >= real
    assert failures(funnel.audit_release(run.release, tmp_path / "private")) == set()
    again = funnel.run(write_policy(tmp_path, **terms, name="first", public=[[two, "z"]], privacy=knows))
    assert again.composed.together.figure >= real
    assert failures(funnel.audit_release(again.release, tmp_path / "private")) == set()
