"""What policies of one private folder have promised: every run measures all of it, and ends none that is not named."""

from __future__ import annotations

import html
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import funnel
from funnel import api
from funnel.audit.kernel.check import unbounded, verdict
from funnel.audit.kernel.opened import Opened
from funnel.ledger.journal import Journal
from tests.support.audited import detail, failures
from tests.support.kernel import check
from tests.support.ledger import rechained
from tests.support.policies import write_policy

PEOPLE = {"table": "people.parquet", "entity": "id"}
FIRST: dict[str, Any] = {
    "name": "first", "source": PEOPLE, "sensitive": ["s"], "public": ["x"], "mechanism": "randomised-response",
    "privacy": {"notion": "lip", "epsilon": 0.2}, "budget": 0.5, "draws": {"key": "file:a.key"},
}  # fmt: skip
TELLING = FIRST | {
    "name": "second", "public": ["z"], "privacy": {"notion": "mutual-information", "epsilon": 0.5},
    "mechanism": "greedy-funnel", "budget": None, "draws": {"key": "file:b.key"},
}  # fmt: skip
"""Everybody with z = z2 has s = s0: on average that tells little."""
OTHER = FIRST | {"name": "other", "public": ["z"], "draws": {"key": "file:b.key"}}
SECRET = TELLING | {
    "name": "third", "sensitive": ["w"], "public": ["s"], "privacy": {"notion": "lip", "epsilon": 3.0},
    "mechanism": "optimal",
}  # fmt: skip
"""What the first one hides is published."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """400 people: x leans on s, z on w; and z2 tells s."""
    x = "(i % 2 + CASE WHEN i % 10 < 6 THEN 0 ELSE i % 3 END) % 3"
    w, z = "CASE WHEN i % 16 < 5 THEN i // 3 ELSE i // 7 END % 2", "CASE WHEN i % 5 < 3 THEN i // 7 ELSE i // 3 END % 2"
    duckdb.sql(
        f"""COPY (SELECT i AS id, 's' || (i % 2) AS s, 'x' || ({x}) AS x, 'w' || ({w}) AS w,
                  CASE WHEN i % 20 = 0 THEN 'z2' ELSE 'z' || ({z}) END AS z
            FROM range(400) t(i)) TO '{tmp_path}/people.parquet' (FORMAT parquet)"""
    )
    for name in ("a.key", "b.key"):
        (tmp_path / name).write_text(funnel.new_key() + "\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path


def run(folder: Path, terms: dict[str, Any], **changes: Any) -> Any:
    return funnel.run(write_policy(folder, **(terms | changes)))


def standing(folder: Path) -> tuple[Any, ...]:
    return Journal(folder / "private").releases()[-1].promises


def entries(folder: Path) -> int:
    return len(Journal(folder / "private").releases())


@pytest.mark.parametrize("other", [TELLING, SECRET], ids=["another notion", "another secret"])
def test_a_release_that_would_end_a_promise_is_refused(command, folder: Path, other: dict[str, Any]) -> None:
    """Nothing is drawn and nothing entered; a program sees that a person has to decide."""
    run(folder, FIRST)
    path = write_policy(folder, **other)
    refused = command("run", path, "--json")
    assert refused.code == refused.json["code"] == 4
    assert refused.json["error"]["code"] == "promise-ends"
    assert "what policy first promises about s" in refused.json["error"]["message"]
    assert "accept: [first]" in refused.json["error"]["advice"]
    assert entries(folder) == 1
    assert len(list((folder / "releases").glob("2*"))) == 1
    refused = command("run", write_policy(folder, **(other | {"accept": "unbounded", "budget": None})), "--json")
    assert "accept: [unbounded, first]" in refused.json["error"]["advice"]  # in place of what was accepted before


def test_what_publishes_a_secret_is_refused_before_anything_is_counted(command, folder: Path) -> None:
    run(folder, FIRST)
    path = write_policy(folder, **SECRET)
    for told in (command("check", path, "--json"), command("plan", path, "--json")):
        assert told.code == 4
        assert "promise-ends" in told.out
    assert command("check", write_policy(folder, **SECRET, accept="first")).code == 0


def test_an_end_that_is_accepted_is_told_for_good(command, folder: Path) -> None:
    """It stops no other policy any more; its own goes on only where it has no bound and says so."""
    run(folder, FIRST)
    ahead = funnel.run(write_policy(folder, **TELLING, accept=["first"]), dry_run=True)
    assert "what policy first promises about s (lip, budget 0.5) would end with this release" in ahead.warnings
    assert not any("ended" in one for one in ahead.warnings)
    second = run(folder, TELLING, accept=["first"])
    name = Path(second.release).name
    assert any(f"ended with release {name}" in one for one in second.warnings)
    shown = command("ledger", write_policy(folder, **FIRST))
    assert shown.out.startswith("ENDED      first: by now no finite bound is known on what is told about s (lip)")
    told = command("ledger", folder / "policy.yaml", "--json").json
    assert next(iter(told)) == "ended"
    (first,) = (one for one in told["promises"] if one["policy"] == "first")
    assert (first["bound"], first["used"], first["left"], first["ended"]) == (0.5, None, 0.0, name)
    assert told["left"] == 0.0
    assert failures(funnel.audit_release(second.release, folder / "private")) == set()
    assert run(folder, TELLING).release is not None
    again = command("run", folder / "policy.yaml", "--json")
    assert again.code == 0
    path = write_policy(folder, **FIRST)
    for asked in (command("run", path, "--json"), command("plan", path, "--json")):
        assert (asked.code, asked.json["error"]["code"]) == (4, "promise-ends")
    last = run(folder, FIRST, budget=None, accept="unbounded")
    assert next(iter(last.as_dict())) == "unbounded"
    assert last.text().startswith("No finite bound is known: ")
    assert told_first(command, last.release, folder / "private").startswith("With all releases so far, ")
    assert failures(funnel.audit_release(last.release, folder / "private")) == set()


def test_a_column_that_draws_by_another_secret_cannot_compare_is_not_said_to_be_another(folder: Path) -> None:
    """It is the same one, of the same table; but whether it is, people of one secret tell, and that of another then."""
    duckdb.sql(
        "SELECT i AS id, 'a' || (i % 2) AS a, 'b' || (hash(i) % 2) AS b, 'x' || (hash(i, 1) % 3) AS x "
        "FROM range(900) t(i)"
    ).write_parquet(str(folder / "two.parquet"))
    terms = {"source": {"table": "two.parquet", "entity": "id"}, "public": ["x"], "draws": {"key": "file:a.key"},
             "privacy": {"notion": "lip", "epsilon": 0.15}}  # fmt: skip
    run(folder, terms, name="first", sensitive=["b"], mechanism="randomised-response")
    with pytest.raises(funnel.FunnelError) as refused:
        run(folder, terms, name="second", sensitive=["a"], mechanism="conditional-reporting")
    assert "some look at the secret and some are not known to have the same column" in refused.value.message


def test_what_is_hidden_may_be_released_within_the_budget(command, folder: Path) -> None:
    """The promise ends, and nobody is told that its bound was passed."""
    run(folder, FIRST, budget=2.0)
    noisy = {"privacy": {"notion": "ldp-x", "epsilon": 0.1}, "mechanism": "randomised-response", "accept": ["first"]}
    name = Path(run(folder, SECRET, **noisy).release).name
    told = command("ledger", write_policy(folder, **FIRST), "--json").json
    (first,) = (one for one in told["promises"] if one["policy"] == "first")
    assert first["used"] < first["bound"]
    how = f"by now another policy releases some of s (lip); the promise was ended by release {name}"
    assert told["ended"] == [f"first: {how}"]


def test_an_end_is_told_by_what_is_so_by_now(command, folder: Path) -> None:
    """The release that ended a promise within its bound is not said to have passed it, as a later one did."""
    run(folder, FIRST, budget=2.0)
    noisy = {"privacy": {"notion": "ldp-x", "epsilon": 0.1}, "mechanism": "randomised-response", "accept": ["first"]}
    name = Path(run(folder, SECRET, **noisy).release).name
    run(folder, TELLING, accept=["first", "third", "unbounded"])
    told = command("ledger", write_policy(folder, **FIRST), "--json").json
    (line,) = (one for one in told["ended"] if one.startswith("first: "))
    assert line.startswith(("first: by now no finite bound is known", "first: by now more than was promised"))
    assert line.endswith(f"about s (lip); the promise was ended by release {name}")


def told_first(command: Any, release: str, private: Path) -> str:
    """What page, report.json and audit say before all else of a release that has no bound."""
    for folder in (Path(release), private / Path(release).name):
        content = json.loads((folder / "report.json").read_text())
        said = content["promise"]["unbounded"]
        assert content["headline"][0]["figure"] == "no bound known"
        head = html.unescape((folder / "report.html").read_text().split('<section class="headline"')[1])
        assert head.partition('<p class="promise">')[2].startswith(said)
    for options in ([], ["--private", private]):
        audited = command("audit", release, *options, "--json")
        assert audited.code == 0
        assert next(iter(audited.json)) == "unbounded"
        assert audited.json["verdict"].startswith(f"{audited.json['unbounded']}; every claim")
        assert audited.json["unbounded"].startswith("No finite bound is known: what ")
    whole = command("audit", Path(release).parent, "--private", private, "--json").json
    assert next(iter(whole)) == "unbounded"
    assert whole["verdict"].startswith(whole["unbounded"])
    found = verdict(check(Path(release)), unbounded(Opened(Path(release))))
    assert found.startswith(f"{audited.json['unbounded']}\nevery claim")
    return str(said)


def test_releases_without_a_bound_say_so_before_all_else(command, folder: Path) -> None:
    """A filter that reads the secret: of the first release alone already. With a bound nothing is said."""
    bounded = run(folder, FIRST, release__to="others", release__private="apart")
    assert json.loads((Path(bounded.release) / "report.json").read_text())["promise"]["unbounded"] == ""
    assert "unbounded" not in command("audit", bounded.release, "--json").json
    reads = PEOPLE | {"filter": "s = 's0' OR id % 3 > 0"}
    made = run(folder, FIRST, budget=None, source=reads, accept="unbounded")
    assert told_first(command, made.release, folder / "private").startswith("With what being absent from it tells, ")


def test_what_is_accepted_is_there_and_is_named(command, folder: Path) -> None:
    """Before the first release nobody knows of a name; after it a wrong one is an error, and a right one says what."""
    path = write_policy(folder, **FIRST, accept=["frist"])
    assert "whether there is such a policy is not known" in command("check", path).out
    assert any("names frist" in one for one in run(folder, FIRST, budget=9.0, accept=["frist"]).warnings)
    for way in ("check", "plan", "run"):
        refused = command(way, path)
        assert refused.code == 1
        assert "`accept` names frist" in refused.out + refused.err
        assert "No other policy has one there: leave it out" in refused.out + refused.err
    run(folder, FIRST, budget=9.0, sensitive=["w"])
    path = write_policy(folder, **TELLING, accept="first")
    for way in ("check", "plan"):
        told = command(way, path)
        assert told.code == 0
        for secret in "sw":
            assert f"lets it end what policy first promises about {secret} (lip, budget 9)" in told.out
    advice = command("run", write_policy(folder, **TELLING), "--json").json["error"]["advice"]
    assert "gives up as well what policy first promises about s (lip, budget 9)" in advice


def test_what_has_ended_is_not_given_up_again(command, folder: Path) -> None:
    """Of two promises of one name the one that ended before is no part of what it costs to accept the other's end."""
    run(folder, FIRST, budget=None)
    run(folder, FIRST, budget=None, sensitive=["w"], public=["z"])
    run(folder, SECRET, sensitive=["z"], privacy={"notion": "ldp-x", "epsilon": 0.3}, accept="first",
        mechanism="randomised-response")  # fmt: skip
    assert [one.together.sensitive for one in standing(folder) if one.ended] == [("s",)]
    ends = SECRET | {"name": "fourth", "sensitive": ["x"], "public": ["w"]}
    refused = command("run", write_policy(folder, **ends), "--json").json["error"]
    assert "would end what policy first promises about w" in refused["message"]
    assert "gives up as well" not in refused["advice"]


def test_another_budget_of_one_name_is_told(command, folder: Path) -> None:
    """A promise is known by its policy's name: a second file of that name would change it without a word."""
    run(folder, FIRST)
    assert not any("promised" in one for one in run(folder, FIRST).warnings)
    told = "what policy first promises about s (lip, budget 0.5) is promised within a budget of 3 from"
    path = write_policy(folder, **FIRST | {"budget": 3.0})
    for way in ("check", "plan", "run"):
        assert told in (said := command(way, path)).out + said.err
    told = "what policy first promises about s (lip, budget 3) is promised without a budget from"
    assert any(told in one for one in run(folder, FIRST, budget=None).warnings)
    told = "what policy first promises about s (lip) is promised within a budget of 1 from"
    assert any(told in one for one in run(folder, FIRST, budget=1.0).warnings)


def test_what_is_counted_on_an_earlier_night_is_not_tonight(folder: Path) -> None:
    """Over noisy counts no other promise is measured anew: what was told of it at the counts of before is added to."""
    before = run(folder, FIRST, estimate=NOISY, budget=None).composed.together
    table = folder / "people.parquet"
    more = "SELECT i + 400, 's' || (i % 2), 'x' || (i % 2), 'w' || (i % 3 // 2), 'z' || (i % 5 // 3)"
    duckdb.sql(f"COPY (SELECT * FROM '{table}' UNION ALL {more} FROM range(2000) t(i)) TO '{folder}/more.parquet'")
    (folder / "more.parquet").replace(table)
    values = {"w": ["w0", "w1"], "z": ["z0", "z1", "z2"]}
    noisy = {"kind": "private", "epsilon": 3.0, "values": values, "minimum": 1}
    terms = {"sensitive": ["w"], "estimate": noisy, "privacy": {"notion": "ldp-x", "epsilon": 0.4}, "budget": None}
    _, told = run(folder, OTHER, **terms).composed.promises
    assert told.together.figure == pytest.approx(before.figure + 0.4, abs=3e-4)
    assert everything_holds(folder)


def test_what_all_tell_is_measured_at_tonights_table_though_nothing_new_is_drawn(folder: Path) -> None:
    """What another policy's release told of more people says nothing of these: it was less, and is not stated again."""
    first = FIRST | {"privacy": {"notion": "lip", "epsilon": 0.4}, "budget": None}
    other = OTHER | {"privacy": {"notion": "ldp-x", "epsilon": 0.2}, "budget": None}
    table, more = folder / "people.parquet", folder / "more.parquet"
    run(folder, first)
    own = table.read_bytes()
    many = "SELECT i + 400, 's' || (i % 2), 'x' || (i // 2 % 3), 'w0', 'z' || (i // 2 % 3) FROM range(4000) t(i)"
    duckdb.sql(f"COPY (SELECT * FROM '{table}' UNION ALL {many}) TO '{more}' (FORMAT parquet)")
    table.write_bytes(more.read_bytes())
    run(folder, other)
    table.write_bytes(own)
    told = run(folder, first).composed
    assert told.together.how == "sum"
    assert told.together.figure >= told.alone + 0.1999
    assert everything_holds(folder)


def test_a_figure_of_an_earlier_release_is_not_called_measured(command, folder: Path) -> None:
    """The sum for two columns stays the figure once both are drawn from again, and what is measured then is less."""
    run(folder, FIRST, budget=None)
    summed = run(folder, OTHER, budget=None).composed.together
    little = {"privacy": {"notion": "lip", "epsilon": 0.05}, "draws": {"kind": "fresh"}, "budget": None}
    made = run(folder, FIRST, name="both", public=["x", "z"], **little)
    told = made.composed.together
    assert (summed.found, told.figure, told.how) == ("sum", summed.figure, "unchanged")
    assert told.measured < told.figure
    assert told.found == "before"
    assert f"nats of lip, over 3 releases ({told.found})" in made.text()
    stated = json.loads((Path(made.release) / "release.json").read_text())["composed"]
    assert stated["how"] == "before"
    assert "as an earlier release stated" in html.unescape((Path(made.release) / "report.html").read_text())
    shown = command("ledger", folder / "policy.yaml", "--json").json
    assert {shown["how"], shown["promises"][0]["how"], shown["releases"][-1]["how"]} == {"before"}
    assert everything_holds(folder)


def test_what_is_drawn_again_is_measured_in_its_own_terms(folder: Path) -> None:
    """What one distribution tells says nothing of all those near it, though not an answer is new."""
    robust = FIRST | {
        "privacy": {"notion": "rldp", "epsilon": 9.0, "radius": 0}, "mechanism": "optimal", "budget": None,
    }  # fmt: skip
    run(folder, OTHER | {"privacy": {"notion": "ldp", "epsilon": 0.1}, "budget": None})
    before = run(folder, robust).composed.together
    wider = robust | {"privacy": {"notion": "rldp", "epsilon": 9.0, "radius": 0.01}}
    made = run(folder, wider | {"name": "wider"})
    told = made.composed.together
    assert told.how == "sum"
    assert told.figure >= made.composed.alone + 0.0999 > before.figure + 0.01
    assert run(folder, wider | {"name": "wider"}).composed.together.figure == told.figure


def test_a_repeat_is_measured_where_those_whom_it_leaves_out_are_others(folder: Path) -> None:
    """What was told before is of whom the source had then; to be absent tells as much as it does tonight."""
    terms = FIRST | {"budget": None, "source": PEOPLE | {"filter": "id % 3 > 0"}}
    before = run(folder, terms).composed.together.figure
    people = f"{folder}/people.parquet"
    duckdb.sql(f"""COPY (SELECT * REPLACE (CASE WHEN id % 3 > 0 THEN s WHEN id % 30 > 0 THEN 's0' ELSE 's1' END AS s)
                   FROM '{people}') TO '{folder}/changed.parquet' (FORMAT parquet)""")
    (folder / "changed.parquet").replace(people)
    told = run(folder, terms).composed.together
    absent, whole = duckdb.sql(f"""SELECT count(*) FILTER (s = 's1' AND id % 3 = 0) / count(*) FILTER (s = 's1'),
                                   count(*) FILTER (id % 3 = 0) / count(*) FROM '{people}'""").fetchall()[0]
    assert told.how == "unchanged"
    assert told.figure >= math.log(whole / absent) > before


def test_what_was_told_at_other_counts_does_not_stand_for_a_repeat(folder: Path) -> None:
    """A stronger protocol of a night on which x told less of s tells more of s as x is again now."""

    def people(flipped: int) -> None:
        leaning = f"CASE WHEN i // 2 % 10 < {1 + flipped} THEN 1 - i % 2 ELSE i % 2 END"
        query = f"SELECT i AS id, 's' || (i % 2) AS s, 'x' || ({leaning}) AS x, 'w' || (i // 7 % 2) AS w"
        duckdb.sql(f"COPY ({query} FROM range(400) t(i)) TO '{folder}/next.parquet' (FORMAT parquet)")
        (folder / "next.parquet").replace(folder / "people.parquet")

    terms = FIRST | {"privacy": {"notion": "ldp", "epsilon": 1.2}, "budget": None, "accept": ["third"]}
    third = {"name": "third", "public": ["w"], "privacy": {"notion": "ldp-x", "epsilon": 0.05}, "accept": None}
    people(0)
    run(folder, terms | {"accept": None})
    run(folder, terms | third)
    people(1)
    keeps = json.loads((Path(run(folder, terms).release) / "protocol.json").read_text())["blocks"][0]
    people(0)
    told = run(folder, terms).composed.together
    keep = max(map(max, keeps["weights"])) / 2 ** keeps["bits"]
    real = math.log((0.9 * keep + 0.1 * (1 - keep)) / (0.1 * keep + 0.9 * (1 - keep)))
    assert real <= told.figure
    assert told.how == "sum"
    assert everything_holds(folder)


def test_whether_those_who_are_left_out_now_were_there_before_is_taken_for_granted(folder: Path) -> None:
    """They are in no digest of tonight: that nobody came or went for what they have is not shown."""
    terms = FIRST | {"budget": None, "accept": "unbounded"}
    run(folder, terms)
    table = folder / "people.parquet"
    duckdb.sql(f"SELECT * FROM '{table}' UNION ALL SELECT * REPLACE (id + 400 AS id) FROM '{table}' WHERE id < 200"
               ).write_parquet(str(folder / "more.parquet"))  # fmt: skip
    (folder / "more.parquet").rename(table)
    left = run(folder, terms | {"source": PEOPLE | {"filter": "id < 400"}})
    assert left.composed.present is not None
    assert "comings and goings tell nothing" in left.composed.identity.assumes
    assert left.composed.together.how != "exact"


def test_two_budgets_about_one_secret_are_kept_both(folder: Path) -> None:
    """The tighter of two refuses what the other one would let pass; both have one figure."""
    run(folder, FIRST, budget=0.21)
    with pytest.raises(funnel.errors.LedgerError, match="what policy first promises about s") as refused:
        run(folder, OTHER, budget=5.0)
    assert refused.value.exit_code == 4
    with pytest.raises(funnel.errors.LedgerError, match=r"the budget is 0\.21"):
        run(folder, OTHER, budget=0.21, accept=["first"])
    made = run(folder, OTHER, budget=5.0, accept="first")
    own, first = made.composed.promises
    assert own.together == first.together
    assert (own.ended, first.ended) == (None, Path(made.release).name)


def test_a_promise_about_a_column_that_the_table_has_not_adds_up(folder: Path) -> None:
    """What is told of w is what was told, and the usual LDP of what is drawn from other columns of another table."""
    hidden = FIRST | {"name": "hidden", "sensitive": ["w"], "privacy": {"notion": "ldp", "epsilon": 0.2}}
    before = run(folder, hidden, budget=2.0)
    duckdb.sql(f"COPY (SELECT * EXCLUDE (w) FROM '{folder}/people.parquet') TO '{folder}/other.parquet'")
    usual = {"public": ["z"], "privacy": {"notion": "ldp-x", "epsilon": 0.4}, "draws": {"key": "file:b.key"}}
    made = run(folder, FIRST, **usual, source=PEOPLE | {"table": "other.parquet"}, budget=None)
    _, told = made.composed.promises
    assert told.together.how == "sum"
    assert told.together.figure == pytest.approx(before.composed.together.figure + 0.4, abs=3e-4)
    assert failures(funnel.audit_release(made.release, folder / "private")) == set()


def test_a_ledger_that_lies_about_another_policys_promise_fails(folder: Path) -> None:
    """Each figure of it, and that it is there at all, by name."""
    run(folder, FIRST, budget=5.0)
    wide = FIRST | {"name": "third", "public": ["z"], "draws": {"key": "file:b.key"}, "sensitive": ["w"]}
    made = run(folder, wide, budget=5.0)
    counted = api.audit(made.release, folder / "private", table=folder / "people.parquet")
    assert failures(counted) == set()
    private, whole = folder / "private", list(Journal(folder / "private").releases())
    own, first = whole[-1].promises
    lower = replace(first, together=replace(first.together, figure=0.01, measured=0.01))
    for lies, claim in (
        ((own, lower), "ledger-composed"),
        ((own, replace(first, together=replace(first.together, figure=9.0))), "ledger-promises"),
        ((own, replace(first, together=replace(first.together, varying=0.01))), "ledger-composed"),
        ((own, replace(first, together=replace(first.together, varying=None))), "ledger-composed"),
        ((own, replace(first, together=replace(first.together, releases=9))), "ledger-composed"),
        ((own, replace(first, budget="9")), "ledger-promises"),
        ((own, replace(first, ended=whole[-1].release)), "ledger-promises"),
        ((own, replace(first, since=whole[-1].release)), "ledger-promises"),
        ((own,), "ledger-promises"),
    ):
        rechained(private, [*whole[:-1], replace(whole[-1], promises=lies)])
        assert claim in failures(funnel.audit_release(made.release, private))
    rechained(private, whole)
    assert failures(funnel.audit_release(made.release, private)) == set()
    last, (one, *others) = run(folder, wide, budget=5.0), Journal(private).releases()
    lost = [replace(each, promises=tuple(own for own in each.promises if own.policy != "first")) for each in others]
    rechained(private, [one, *lost])  # that of a release in between nobody audits where it was taken away
    found = funnel.audit_release(last.release, private)
    assert "promises of other policies is not the same" in detail(found, "ledger-promises")


def test_a_lower_budget_than_was_told_is_refused_before_anything_is_counted(command, folder: Path) -> None:
    """What was told stays told, so check and plan know what a run would say; what it would add nobody knows."""
    run(folder, FIRST)
    used = Journal(folder / "private").releases()[-1].own.together
    path = write_policy(folder, **FIRST | {"budget": 0.01, "privacy": {"notion": "lip", "epsilon": 3}})
    for told in (command("check", path), command("plan", path, "--json"), command("run", "--dry-run", path)):
        assert told.code == 4
        assert f"earlier releases told up to {used.figure:.4f} nats of {used.measure} ({used.found})" in told.err
        assert "would leak" not in told.err
        assert "epsilon" not in told.err  # No epsilon helps: what was told stays told.


def test_a_policy_that_never_ran_is_not_told_that_all_of_its_budget_is_left(command, folder: Path) -> None:
    """What the others' releases tell of its secret is measured by a run alone."""
    run(folder, FIRST)
    path = write_policy(folder, **OTHER | {"sensitive": ["w"], "budget": 0.7})
    shown = command("ledger", path, "--json").json
    assert (shown["budget"], shown["left"]) == (0.7, None)
    assert "is measured by a run" in command("ledger", path).out


def test_what_a_release_added_is_not_what_others_added_before_it(command, folder: Path) -> None:
    """Each line is compared with the release before it; one of another measure has nothing to be compared with."""
    run(folder, FIRST, budget=None)
    run(folder, OTHER, budget=None, draws={"key": "file:a.key"}, privacy={"notion": "pml", "epsilon": 0.2})
    run(folder, FIRST, budget=None)
    path = write_policy(folder, **FIRST | {"budget": None})
    first, second, third = command("ledger", path, "--json").json["releases"]
    standing = Journal(folder / "private").releases()[1].promises[1].together.figure
    assert first["added"] == first["composed"]
    assert second["added"] is None
    assert standing is not None
    assert third["added"] == pytest.approx(third["composed"] - standing, abs=1e-9)


def test_no_policy_is_called_what_stands_for_a_bound_given_up(command, folder: Path) -> None:
    """Else a policy that gives up its own bound would end that one's promise without naming it."""
    refused = command("check", write_policy(folder, **FIRST | {"name": "unbounded"}))
    assert refused.code == 1
    assert "choose another name" in refused.err + refused.out


def test_who_is_gone_from_the_table_is_taken_for_granted(command, folder: Path) -> None:
    """A table that leaves people out by what they hide is no filter that anybody was told of: the figure says so."""
    run(folder, FIRST, budget=None)
    duckdb.sql(
        f"""COPY (FROM '{folder}/people.parquet' WHERE s = 's0' OR id % 4 = 1) TO '{folder}/left.parquet'
            (FORMAT parquet)"""
    )
    found = run(folder, FIRST, budget=None, source=PEOPLE | {"table": "left.parquet"}, accept=["unbounded"])
    assert found.composed.together.how != "exact"
    assert "comings and goings tell nothing" in command("ledger", folder / "policy.yaml").out
    release, said = Path(found.release), "comings and goings tell nothing"
    assert "that nobody came or went" in (release / "report.html").read_text()
    assert said in json.loads((release / "release.json").read_text())["composed"]["assumes"]
    assert said in found.as_dict()["identity"]["assumes"]
    audited = funnel.audit_release(release, folder / "private").findings
    assert said in next(one.detail for one in audited if one.claim == "ledger-identity")


@pytest.mark.parametrize(
    "privacy",
    [{"notion": "rldp", "epsilon": 1.5}, {"notion": "srlip", "epsilon": 0.5, "knows": 1}],
    ids=["set", "knows"],
)
def test_why_nothing_bounds_absence_is_said_before_a_run(command, folder: Path, privacy: dict[str, Any]) -> None:
    """Why there is none, and the run that is refused says it too."""
    terms = FIRST | {"source": PEOPLE | {"filter": "id % 3 > 0"}, "privacy": privacy, "budget": None}
    terms |= {"mechanism": "optimal", "public": [["x", "z"]] if "knows" in privacy else ["x"]}
    path = write_policy(folder, **terms)
    why = "what others may know of them" if "knows" in privacy else "is not measured over those who are absent"
    for way in ("check", "plan"):
        told = command(way, path)
        assert told.code == 0
        assert "no finite bound is known of what that tells" in told.out
        assert why in told.out
    refused = command("run", path)
    assert refused.code == 4
    assert f"`{privacy['notion']}` " in refused.err
    assert why in refused.err


def told_of(folder: Path, name: str) -> Any:
    """What the last release states of a policy's promise."""
    return next(one.together for one in Journal(folder / "private").releases()[-1].promises if one.policy == name)


def everything_holds(folder: Path) -> bool:
    return api.audit_history(folder / "releases", folder / "private").passed


def test_two_promises_with_the_same_terms_each_go_by_what_was_told_of_it(folder: Path) -> None:
    """Robust ones, about sets around what each releases: what a third policy tells is added to the figure of each."""
    robust = {"privacy": {"notion": "rldp", "epsilon": 0.2, "radius": 0.001}, "budget": None}
    third = FIRST | {
        "name": "third", "public": ["w"], "privacy": {"notion": "ldp-x", "epsilon": 0.1}, "budget": None,
    }  # fmt: skip
    for terms in (FIRST, OTHER, FIRST):
        run(folder, terms | robust)
    before = {name: told_of(folder, name).figure for name in ("first", "other")}
    assert before["first"] != before["other"]
    run(folder, third)
    for name, figure in before.items():
        assert told_of(folder, name).figure == pytest.approx(figure + 0.1, abs=2e-4)
    assert everything_holds(folder)


@pytest.mark.parametrize("keyed", [["id", "x"], ["id", "s"]], ids=["what it draws from", "what it hides"])
@pytest.mark.parametrize("order", [1, -1], ids=["named later", "named before"])
def test_a_key_that_others_draw_from_or_hide_leaves_them_no_bound(folder: Path, keyed: list[str], order: int) -> None:
    """It is published as it is, and no channel of draws has it."""
    named = OTHER | {"sensitive": ["w"], "release": {"to": "releases", "private": "private", "identify": keyed}}
    early, late = [FIRST, named][::order]
    run(folder, early)
    hidden = order == 1 and keyed[1] == "s"
    why = "it publishes what that policy hides" if hidden else f"{keyed[1]}, drawn for or hidden, is a key"
    with pytest.raises(funnel.errors.LedgerError, match=why):
        run(folder, late)
    made = run(folder, late, budget=None, accept=[early["name"], "unbounded"])
    about = {one["policy"]: one["used"] for one in made.as_dict()["promises"]}
    assert about["first"] is None
    for one in (folder / "releases").glob("2*"):
        assert failures(funnel.audit_release(one, folder / "private")) == set()
    journal = Journal(folder / "private")
    assert [list(one.identify) for one in journal.releases()] == [[], keyed][::order]


def test_a_key_that_nobody_draws_from_ends_nothing(folder: Path) -> None:
    run(folder, FIRST)
    keyed = {"to": "releases", "private": "private", "identify": ["id"]}
    made = run(folder, OTHER, budget=None, accept=["first"], release=keyed)
    assert made.as_dict()["promises"][0]["used"] is not None


def test_a_secret_that_another_table_calls_alike_is_not_counted_by_it(folder: Path) -> None:
    """A policy that hides something else in another table now has promised nothing about a column there."""
    duckdb.sql(
        f"""COPY (SELECT id, w, s AS z, CASE id // 2 % 2 WHEN 0 THEN 's0' ELSE 's1' END AS s
            FROM '{folder}/people.parquet') TO '{folder}/second.parquet' (FORMAT parquet)"""
    )
    second = FIRST | {"source": PEOPLE | {"table": "second.parquet"}, "sensitive": ["w"], "public": ["z"]}
    second |= {"budget": None, "privacy": {"notion": "ldp-x", "epsilon": 0.1}}
    run(folder, FIRST, budget=None)
    run(folder, second)
    made = run(
        folder, second, name="second", privacy={"notion": "ldp-x", "epsilon": 1.5}, draws={"kind": "fresh"}
    )
    told = next(one.together for one in made.composed.promises if one.together.sensitive == ("s",))
    assert told.measured is not None
    assert told.measured > 1.6
    assert failures(funnel.audit_release(made.release, folder / "private")) == set()


def test_who_was_there_for_other_columns_is_taken_for_granted(folder: Path) -> None:
    """No digest of this release says so: those who came since may all have one secret, and the page of z names it."""
    run(folder, FIRST, budget=None)
    duckdb.sql(
        f"""COPY (FROM '{folder}/people.parquet' UNION ALL SELECT id + 400, 's1', x, w, z
            FROM '{folder}/people.parquet' WHERE id < 100) TO '{folder}/more.parquet' (FORMAT parquet)"""
    )
    (folder / "more.parquet").rename(folder / "people.parquet")
    made = run(folder, OTHER, budget=None)
    assert made.composed.together.how == "sum"
    assert made.composed.identity.assumes == ("values unchanged", "comings and goings tell nothing")
    assert failures(funnel.audit_release(made.release, folder / "private")) == set()


def test_an_ended_promise_is_made_anew_only_where_all_releases_keep_it(command, folder: Path) -> None:
    """Not by a budget that is given up: the ledger named another release then, which had ended nothing."""
    run(folder, FIRST)
    name = Path(run(folder, TELLING, accept=["first"]).release).name
    run(folder, FIRST, budget=None, accept="unbounded")
    (line,) = command("ledger", write_policy(folder, **FIRST), "--json").json["ended"]
    assert line.endswith(f"ended by release {name}")
    assert everything_holds(folder)


@pytest.mark.parametrize("budget", [1.0, 4.0])
def test_a_promise_whose_secret_is_published_stays_ended(command, folder: Path, budget: float) -> None:
    run(folder, FIRST, budget=2.0)
    noisy = {"privacy": {"notion": "ldp-x", "epsilon": 0.1}, "mechanism": "randomised-response", "accept": ["first"]}
    name = Path(run(folder, SECRET, **noisy).release).name
    run(folder, FIRST, budget=budget)
    told = command("ledger", write_policy(folder, **FIRST), "--json").json
    how = f"by now another policy releases some of s (lip); the promise was ended by release {name}"
    assert told["ended"] == [f"first: {how}"]
    found = funnel.audit_history(folder / "releases", folder / "private")
    assert found.passed and list(found.ended) == told["ended"]
    assert found.text().startswith(f"ENDED      {told['ended'][0]}")
    assert found.as_dict()["ended"] == told["ended"]


def test_a_promise_that_was_passed_is_made_anew_by_a_budget_that_all_keep(command, folder: Path) -> None:
    run(folder, FIRST, budget=0.3)
    run(folder, OTHER, privacy={"notion": "ldp-x", "epsilon": 0.3}, accept=["first"], budget=None)
    ended = command("ledger", write_policy(folder, **FIRST), "--json").json["ended"]
    assert ended and ended[0].startswith("first: by now more than was promised may be told about s (lip)")
    made = run(folder, FIRST, budget=2.0)
    told = command("ledger", write_policy(folder, **FIRST), "--json").json
    assert "ended" not in told
    assert told["promises"][0]["since"] == Path(made.release).name
    assert everything_holds(folder)


ROBUST = {"privacy": {"notion": "rldp", "epsilon": 0.2, "radius": 0.01}}
KNOWS = {"public": [["x", "w"]], "privacy": {"notion": "srlip", "epsilon": 0.5, "knows": ["x"]}}
NOISY = {"kind": "private", "epsilon": 9.0, "minimum": 1, "values": {"s": ["s0", "s1"], "x": ["x0", "x1", "x2"]}}


@pytest.mark.parametrize(
    ("terms", "edit"),
    [
        (ROBUST, {"privacy": ROBUST["privacy"] | {"radius": 0.0}}),
        (KNOWS, {"privacy": KNOWS["privacy"] | {"knows": ["w"]}}),
    ],
    ids=["a smaller set", "other columns known"],
)
def test_a_promise_is_not_replaced_by_another_under_its_name(folder: Path, terms: Any, edit: Any) -> None:
    """Its figure would be about others than those it was made to, and its budget would hold for them no more."""
    one = FIRST | {"mechanism": "randomised-response", "budget": 5.0} | terms
    run(folder, one)
    with pytest.raises(funnel.errors.LedgerError, match="until now the policy promised it in other terms") as no:
        run(folder, one | edit)
    assert "Another promise is that of a policy by another name" in (no.value.advice or "")
    made = run(folder, one | edit | {"budget": None, "accept": "unbounded"})
    assert made.composed.together.figure is None
    assert failures(funnel.audit_release(made.release, folder / "private")) == set()
    assert everything_holds(folder)


PLAIN = {"estimate": {"minimum": 1}}


@pytest.mark.parametrize("terms", [PLAIN, {"estimate": NOISY}], ids=["noisy from now on", "noisy until now"])
@pytest.mark.parametrize("name", ["first", "second"])
def test_noisy_counts_beside_plain_ones_leave_no_promise_a_bound(command, folder: Path, terms: Any, name: str) -> None:
    """Whosever they are: the figure of one would be over counts that no record has. No estimate is spent to say so."""
    edit = PLAIN if terms is not PLAIN else {"estimate": NOISY}
    one = FIRST | {"mechanism": "randomised-response", "budget": 5.0}
    run(folder, one | terms)
    before = (folder / "private" / "ledger.jsonl").read_bytes()
    with pytest.raises(funnel.errors.LedgerError, match="of which some are of noisy counts") as no:
        run(folder, one | edit | {"name": name})
    assert "Make it like the releases before it in this" in (no.value.advice or "")
    assert (folder / "private" / "ledger.jsonl").read_bytes() == before
    accepts = ["unbounded", *(["first"] if name != "first" else [])]
    made = run(folder, one | edit | {"name": name, "budget": None, "accept": accepts})
    assert {promise.together.figure for promise in made.composed.promises} == {None}
    assert everything_holds(folder)
    with pytest.raises(funnel.errors.LedgerError, match="no finite bound") as no:
        run(folder, one | terms)
    assert "What was told stays told" in (no.value.advice or "")


TOO_MUCH = {"privacy": {"notion": "ldp-x", "epsilon": 3.0}, "budget": None, "accept": ["first"]}


def test_an_ended_promise_over_noisy_counts_stays_ended(command, folder: Path) -> None:
    """What others added is no less by the next release of its own, which measures other things at its own counts."""
    run(folder, FIRST, estimate=NOISY, budget=1.0)
    noisy = NOISY | {"values": {"w": ["w0", "w1"], "z": ["z0", "z1", "z2"]}}
    run(folder, OTHER | TOO_MUCH, sensitive=["w"], estimate=noisy)
    used = told_of(folder, "first").figure
    assert command("ledger", write_policy(folder, **FIRST), "--json").json["ended"] and used > 3
    with pytest.raises(funnel.errors.LedgerError, match="over noisy counts") as no:
        run(folder, FIRST, estimate=NOISY, budget=1.0)
    assert no.value.code == "budget"
    made = run(folder, FIRST, estimate=NOISY, budget=None)
    assert made.composed.together.figure >= used
    assert everything_holds(folder)


def test_a_figure_over_noisy_counts_is_called_one_after_other_policies_released(folder: Path) -> None:
    run(folder, FIRST, estimate=NOISY, budget=None)
    noisy = NOISY | {"values": {"w": ["w0", "w1"], "z": ["z0", "z1", "z2"]}}
    run(folder, OTHER, privacy=TOO_MUCH["privacy"], sensitive=["w"], estimate=noisy, budget=None)
    path = write_policy(folder, **FIRST | {"estimate": NOISY, "budget": None})
    told = funnel.read_ledger(path).text().splitlines()
    (line,) = (one for one in told if one.startswith("composed"))
    assert ", over noisy counts) about a person" in line
    assert "noisy      all figures of leakage are over the noisy counts of private estimates" in told
    for cost in funnel.make_lock(path).costs:
        assert cost.text("it").count("nats, over noisy counts") == 2


def test_a_promise_is_the_same_however_its_columns_are_ordered(folder: Path) -> None:
    both = {**KNOWS, "privacy": KNOWS["privacy"] | {"knows": ["x", "w"]}}
    run(folder, FIRST | both, mechanism="randomised-response", budget=5.0)
    turned = {**KNOWS, "privacy": KNOWS["privacy"] | {"knows": ["w", "x"], "solve": "joint"}}
    assert run(folder, FIRST | turned, mechanism="randomised-response", budget=5.0).composed.together.figure is not None
    assert everything_holds(folder)


def test_whoever_a_promise_does_not_cover_any_more_is_spoken_of(command, folder: Path) -> None:
    made = run(folder, FIRST | KNOWS, mechanism="randomised-response", budget=5.0)
    left = "not measured against who knows values that enough records shared in an earlier release"
    assert not any(left in one for one in made.warnings)
    made = run(folder, FIRST | KNOWS, mechanism="randomised-response", budget=5.0)
    assert any(left in one for one in made.warnings)
    assert left in command("ledger", folder / "policy.yaml").out
    told = html.unescape((Path(made.release) / "report.html").read_text())
    assert "whoever knows values that enough records shared in an earlier release, and fewer share in this one" in told


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_wider_set_of_an_earlier_night_is_spoken_of(command, folder: Path, language: str) -> None:
    """By a confidence the set shrinks as people come; what is told together is about tonight's."""
    asked = {"privacy": {"notion": "rldp", "epsilon": 0.5, "confidence": 0.9}, "budget": None}
    to = {"release": {"to": "releases", "private": "private", "language": language}}
    people = folder / "people.parquet"
    table = folder.joinpath("all.parquet")
    people.rename(table)
    duckdb.sql(f"COPY (SELECT * FROM '{table}' WHERE id % 4 > 0) TO '{people}' (FORMAT parquet)")
    left = "under a distribution that only an earlier and wider set holds, they may tell more"
    made = run(folder, FIRST | asked | to)
    assert not any(left in one for one in made.warnings)
    people.unlink()
    table.rename(people)
    made = run(folder, FIRST | asked | to)
    sets = [one.own.parameters.radius for one in Journal(folder / "private").releases()]
    assert sets[0] > sets[1]
    assert any(left in one for one in made.warnings)
    assert left in command("ledger", folder / "policy.yaml").out
    told = " ".join(html.unescape((Path(made.release) / "report.html").read_text()).split())
    page = {
        "en": "is about every distribution in the set of this one; under one that only an earlier and wider set holds",
        "de": "handelt von jeder Verteilung in der Menge dieser einen; unter einer, die nur eine frühere, weitere",
    }
    assert page[language] in told
    assert everything_holds(folder)


def test_a_radius_that_is_asked_for_is_that_of_every_night(command, folder: Path) -> None:
    asked = {"privacy": {"notion": "rldp", "epsilon": 0.5, "radius": 0.01}, "budget": None}
    run(folder, FIRST | asked)
    made = run(folder, FIRST | asked, mechanism="optimal")
    assert not any("wider set" in one for one in made.warnings)
    assert "wider set" not in command("ledger", folder / "policy.yaml").out
    assert "wider" not in html.unescape((Path(made.release) / "report.html").read_text())


def test_an_average_over_several_releases_is_called_one(command, folder: Path) -> None:
    """Two answers together may move one person's belief by far more."""
    terms = FIRST | {"privacy": {"notion": "mutual-information", "epsilon": 0.02}, "budget": None}
    run(folder, terms)
    made = run(folder, terms, draws={"kind": "fresh"})
    assert any("values stay the same on average over all records is up to" in one for one in made.warnings)
    assert "about a person whose values stay the same on average over all records" in command(
        "ledger", folder / "policy.yaml"
    ).out
    told = html.unescape((Path(made.release) / "report.html").read_text())
    assert "about a person whose values stay the same on average over all records is at most" in told


def test_noisy_figures_are_not_the_ledgers_answer_for_plain_counts(command, folder: Path) -> None:
    run(folder, FIRST, estimate=NOISY)
    told = command("ledger", write_policy(folder, **FIRST | {"name": "plain"}), "--json").json
    assert (told["composed"], told["left"]) == (None, None)


def test_advice_to_be_like_earlier_releases_is_for_folders_whose_releases_are_alike(folder: Path) -> None:
    reading = FIRST | {"name": "reads", "mechanism": "conditional-reporting", "public": ["z"], "budget": None,
                       "source": PEOPLE | {"filter": "id % 3 > 0"}, "accept": ["unbounded", "first"]}  # fmt: skip
    run(folder, FIRST, budget=None)
    with pytest.raises(funnel.errors.LedgerError, match="no proof is about") as unlike:
        run(folder, reading | {"accept": None})
    assert "Make it like the releases before it" in (unlike.value.advice or "")
    run(folder, reading)
    with pytest.raises(funnel.errors.LedgerError, match="no proof is about") as unlike:
        run(folder, FIRST | {"name": "third", "budget": None})
    assert "What was told stays told" in (unlike.value.advice or "")


def test_what_was_told_in_other_terms_is_not_the_ledgers_answer(command, folder: Path) -> None:
    """What who knows one column learns is not what those learn who may know more; a run measures it."""
    knows = FIRST | {"public": [["x", "w"]], "privacy": {"notion": "srlip", "epsilon": 0.5, "knows": ["x"]}}
    run(folder, knows, mechanism="randomised-response", budget=5.0)
    asked = command("ledger", write_policy(folder, **knows), "--json").json
    assert asked["composed"] is not None
    other = knows | {"privacy": {"notion": "srlip", "epsilon": 0.5}, "budget": 5.0}
    path = write_policy(folder, **other)
    told = command("ledger", path, "--json").json
    assert (told["composed"], told["left"]) == (None, None)
    assert "measured by a run" in command("ledger", path).out
    run(folder, other | {"budget": None, "accept": "unbounded"})
    assert command("ledger", path, "--json").json["releases"][-1]["added"] is None
