"""Another key is refused until somebody has seen what it costs; a clock that goes back changes no order."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.errors import DrawError, LedgerError, ReleaseError
from funnel.format.journal import Drawn
from funnel.ledger import journal as ledger_module
from funnel.ledger.journal import Journal
from funnel.ledger.rotation import KeyScope
from funnel.plan import prepare
from funnel.release.holding import alone
from funnel.release.naming import last_named, next_time
from tests.support.ledger import an_entry
from tests.support.people import FRESH, MONDAY, SMALL, people
from tests.support.policies import write_policy


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy with one release under the key in `a.key`."""
    people(tmp_path, MONDAY)
    funnel.write_key(tmp_path / "a.key")
    return named(tmp_path, "a")


def named(folder: Path, key: str, **changes: object) -> Path:
    return write_policy(folder, **SMALL | {"draws__key": f"file:{key}.key"} | changes)


def made(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "releases").iterdir() if not path.is_symlink())


def test_another_key_is_refused_until_it_is_accepted(policy: Path, tmp_path: Path) -> None:
    first = funnel.run(policy).as_dict()
    funnel.write_key(tmp_path / "b.key")
    changed = named(tmp_path, "b")
    before = made(tmp_path)
    for dry in (False, True):
        with pytest.raises(DrawError, match="was drawn with key") as caught:
            funnel.run(changed, dry_run=dry)
        assert caught.value.code == "key-changed"
        assert "funnel key rotate" in (caught.value.advice or "")
    assert made(tmp_path) == before
    told = funnel.rotate_key(changed, accept=True)
    second = funnel.run(changed).as_dict()
    assert second["composed"]["figure"] == told.after.figure
    assert told.cost == pytest.approx(second["composed"]["figure"] - first["composed"]["figure"], abs=1e-4)
    assert told.cost > 0
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed
    assert funnel.run(changed).as_dict()["composed"]["figure"] == second["composed"]["figure"]
    with pytest.raises(DrawError, match="was drawn with key"):
        funnel.run(named(tmp_path, "a"))


def test_a_new_key_costs_the_promises_of_other_policies_too(command, policy: Path, tmp_path: Path) -> None:
    """About the same column: what is asked anew for one policy tells more of what the other hides."""
    funnel.run(named(tmp_path, "a", name="other", budget=9))
    funnel.run(named(tmp_path, "a"))
    told = command("key", "rotate", policy, "--json").json
    (cost,) = told["others"]
    assert (cost["policy"], cost["measure"], cost["budget"]) == ("other", "ldp", 9.0)
    assert cost["after"] > cost["now"] > 0
    assert f"nats now, {cost['after']:.4f} nats after that release" in command("key", "rotate", policy).out
    (known,) = [one for one in funnel.read_ledger(policy).promises if one.policy == "other"]
    assert known.together.figure == cost["now"]
    funnel.write_key(tmp_path / "b.key")
    funnel.rotate_key(named(tmp_path, "b"), accept=True)
    funnel.run(named(tmp_path, "b"))
    (known,) = [one for one in funnel.read_ledger(policy).promises if one.policy == "other"]
    assert known.together.figure == cost["after"]


def test_the_key_in_use_is_no_new_one(command, policy: Path, tmp_path: Path) -> None:
    """Called new, with the advice to destroy the old one, it would be lost while the next run needs it."""
    funnel.run(policy)
    told = command("key", "rotate", policy, "--accept")
    assert told.code == 1 and "was drawn with this key" in told.err
    assert [line.entry.kind for line in Journal(tmp_path / "private").lines()] == ["release"]
    funnel.run(policy)
    funnel.write_key(tmp_path / "b.key")
    funnel.rotate_key(named(tmp_path, "b"), accept=True)
    with pytest.raises(DrawError) as caught:
        funnel.rotate_key(named(tmp_path, "a"), accept=True)
    assert caught.value.code == "key-unchanged"
    funnel.run(named(tmp_path, "a"))


def test_consent_waits_for_the_first_release_of_a_policy(policy: Path, tmp_path: Path) -> None:
    """Another one that releases the column every night comes before it."""
    funnel.run(policy)
    funnel.write_key(tmp_path / "b.key")
    with pytest.raises(DrawError, match="was drawn with key"):
        funnel.run(named(tmp_path, "b", name="second"))
    funnel.rotate_key(named(tmp_path, "b", name="second"), accept=True)
    funnel.run(named(tmp_path, "a"))
    second = funnel.run(named(tmp_path, "b", name="second"))
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed, second
    funnel.run(named(tmp_path, "a"))


def test_consent_is_for_one_change_only(policy: Path, tmp_path: Path) -> None:
    """From a to b and back to a, each agreed to; b once more was not."""
    funnel.run(policy)
    funnel.write_key(tmp_path / "b.key")
    for key in ("b", "a"):
        funnel.rotate_key(named(tmp_path, key), accept=True)
        funnel.run(named(tmp_path, key))
    with pytest.raises(DrawError, match="was drawn with key"):
        funnel.run(named(tmp_path, "b"))


@pytest.mark.long
def test_a_policy_under_another_name_asks_the_same_people_the_same(policy: Path, tmp_path: Path) -> None:
    """Renamed, or a second one about the same column: with the key that answered before, or with consent."""
    funnel.run(policy)
    funnel.write_key(tmp_path / "b.key")
    funnel.run(named(tmp_path, "a", name="renamed"))
    for name in ("test", "renamed", "another"):
        with pytest.raises(DrawError) as caught:
            funnel.run(named(tmp_path, "b", name=name))
        assert caught.value.code == "key-changed"
    assert "the release of policy renamed about them" in caught.value.message
    assert len(made(tmp_path)) == 2
    funnel.rotate_key(named(tmp_path, "b", name="another"), accept=True)
    with pytest.raises(DrawError):
        funnel.run(named(tmp_path, "b", name="third"))
    for key, name in (("b", "another"), ("a", "test"), ("b", "another"), ("a", "renamed")):
        funnel.run(named(tmp_path, key, name=name))
    funnel.run(named(tmp_path, "a", **FRESH))
    funnel.run(named(tmp_path, "a"))
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_a_column_that_another_key_answered_is_what_a_refusal_speaks_of(policy: Path, tmp_path: Path) -> None:
    """The policy's own key is the one it had; to give back another would be refused as well."""
    table, more = tmp_path / "people.parquet", tmp_path / "more.parquet"
    duckdb.sql(f"COPY (SELECT *, 'z' || (id % 2) AS z FROM '{table}') TO '{more}' (FORMAT parquet)")
    more.replace(table)
    funnel.run(policy)
    funnel.write_key(tmp_path / "b.key")
    other = funnel.run(named(tmp_path, "b", name="other", public=["z"]))
    with pytest.raises(DrawError) as caught:
        funnel.run(named(tmp_path, "a", public=["x", "z"]))
    keys = re.findall("[0-9a-f]{16}", caught.value.message)
    assert Path(other.release).name in caught.value.message and len({*keys}) == 2
    assert "Columns that another key answered belong in another policy" in (caught.value.advice or "")
    meant = funnel.rotate_key(named(tmp_path, "a", public=["x", "z"]), accept=True)
    assert [meant.old, meant.new] == keys  # that key, and not its own, which it goes on drawing with
    assert "Keep the old key" not in meant.text() and meant.as_dict()["keep"] is None


def test_a_policy_about_other_columns_has_a_key_of_its_own() -> None:
    """What it asks was not asked before, so no key makes it tell more; columns are the same in either case."""
    x = Drawn(("X", "y"), ("m", "m"), ("m", "m"), None, (), ())
    z = replace(x, columns=("z",))
    entries = [
        an_entry(1, name="one", key_fingerprint="a", drawn=(x,)),
        an_entry(2, name="one", draws="fresh", key_fingerprint=None, drawn=(z,)),
        an_entry(3, name="old", key_fingerprint="b", drawn=()),
    ]
    cases = {
        ("two", "x"): {"a"}, ("two", "z"): {"a", "b", "c"}, ("one", "z"): {"a"}, ("old", "z"): {"b"},
        ("old", "y"): set(),
    }  # fmt: skip
    for (name, column), allowed in cases.items():
        asked = KeyScope(name, frozenset({column}))
        assert {key for key in "abc" if not asked.changed(entries, key)} == allowed


def test_without_to_or_accept_nothing_changes(policy: Path, tmp_path: Path) -> None:
    funnel.run(policy)
    files = sorted(str(path) for path in tmp_path.rglob("*"))
    told = funnel.rotate_key(policy)
    assert "No key was made or agreed to" in told.text()
    assert sorted(str(path) for path in tmp_path.rglob("*")) == files
    assert told.as_dict()["new_key"] is None


def test_what_it_costs_is_said_to_be_of_one_search(policy: Path, tmp_path: Path) -> None:
    """A search that ends with its time may end elsewhere the next time; a closed form and a lock's protocol stay."""
    assert "a run searches anew" not in funnel.rotate_key(policy).text()
    searching = named(tmp_path, "a", mechanism="optimal")
    assert "a run searches anew" in funnel.rotate_key(searching).text()
    funnel.make_lock(searching)
    assert "a run searches anew" not in funnel.rotate_key(searching, locked=True).text()


@pytest.mark.parametrize("agreed", [False, True], ids=["the old key", "a key agreed to"])
def test_where_no_key_is_at_hand_it_is_looked_back_as_the_next_run_will(
    policy: Path, tmp_path: Path, *, agreed: bool
) -> None:
    """Nobody may run under any other key: what is foretold without it is what a run finds."""
    funnel.run(policy)
    if agreed:
        funnel.rotate_key(policy, tmp_path / "b.key")
    key = tmp_path / ("b.key" if agreed else "a.key")
    policy = named(tmp_path, key.stem, privacy={"notion": "ldp", "epsilon": 0.3})
    key.rename(tmp_path / "away")
    ahead = funnel.run(policy, dry_run=True).as_dict()["composed"]
    made = funnel.make_lock(policy, room=0.0)
    (tmp_path / "away").rename(key)
    found = funnel.run(policy, locked=True).as_dict()["composed"]
    assert ahead == found
    assert [one.promise.together.figure for one in made.costs] == [found["figure"]]


def test_a_key_is_never_overwritten_and_never_published(policy: Path, tmp_path: Path) -> None:
    funnel.run(policy)
    whole = (tmp_path / "a.key").read_bytes()
    for place in (
        tmp_path / "a.key",
        tmp_path / "releases" / "new.key",
        tmp_path / "releases" / "latest" / "k",
    ):
        with pytest.raises(DrawError) as caught:
            funnel.rotate_key(policy, place)
        assert caught.value.code == "key-write"
    assert (tmp_path / "a.key").read_bytes() == whole
    assert len(Journal(tmp_path / "private").lines()) == 1, "the release alone"


def test_a_key_that_could_not_be_entered_is_not_made(policy: Path, tmp_path: Path, monkeypatch) -> None:
    """Else the same command, once there is room on the disk, is refused because its key is there."""
    funnel.run(policy)

    def full(*_: object) -> None:
        raise ReleaseError("disk-full", "it could not be written", where=str(tmp_path))

    with monkeypatch.context() as patched:
        patched.setattr("funnel.plan.rotate.agree", full)
        with pytest.raises(ReleaseError):
            funnel.rotate_key(policy, tmp_path / "b.key")
    assert not (tmp_path / "b.key").exists()
    funnel.rotate_key(policy, tmp_path / "b.key")


def test_a_budget_that_a_new_key_would_break_refuses_the_rotation(policy: Path, tmp_path: Path) -> None:
    first = funnel.run(policy).as_dict()
    tight = named(tmp_path, "a", budget=first["composed"]["figure"] + 1e-3)
    with pytest.raises(LedgerError, match=r"the budget is.*a new key takes all releases together from"):
        funnel.rotate_key(tight, tmp_path / "b.key")
    assert not (tmp_path / "b.key").exists()
    assert "the budget is" in funnel.rotate_key(tight).text()
    funnel.run(tight)


@pytest.mark.long
def test_a_new_key_that_ends_the_bound_says_what_the_next_run_needs(command, tmp_path: Path) -> None:
    """Two answers to one question tell apart who one of them does not: seen before a key is made or agreed to."""
    people(tmp_path, [[60, 40, 10, 0], [0, 50, 45, 45], [20, 0, 30, 40]])
    for key in "ab":
        funnel.write_key(tmp_path / f"{key}.key")
    terms = {"privacy": {"notion": "lip", "epsilon": 1.0}, "mechanism": "optimal", "estimate__minimum": 1}
    funnel.run(named(tmp_path, "a", **terms))
    policy = named(tmp_path, "b", **terms)
    shown = command("key", "rotate", policy)
    assert shown.code == 0
    assert "cost       no finite bound" in shown.out
    assert "next run   refused" in shown.out
    assert "`accept: unbounded`" in shown.out
    lines = len(Journal(tmp_path / "private").lines())
    for way in (["--accept"], ["--to", tmp_path / "c.key"]):
        refused = command("key", "rotate", policy, *way, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (4, "promise-ends")
        assert "to no finite bound" in refused.json["error"]["message"]
        assert "`accept: unbounded`" in refused.json["error"]["advice"]
    assert not (tmp_path / "c.key").exists()
    assert len(Journal(tmp_path / "private").lines()) == lines
    policy = named(tmp_path, "b", **terms, accept="unbounded")
    assert command("key", "rotate", policy, "--accept").code == 0
    assert command("run", policy).code == 0


def test_before_the_first_release_a_new_key_costs_what_that_release_does(
    policy: Path, tmp_path: Path
) -> None:
    told = funnel.rotate_key(policy, tmp_path / "b.key")
    assert told.now == 0
    assert told.old is None
    assert not (tmp_path / "private").exists()
    assert funnel.run(named(tmp_path, "b")).as_dict()["composed"]["figure"] == told.after.figure


def test_a_ledger_that_measured_another_secret_has_no_figure_to_begin_with(
    policy: Path, tmp_path: Path
) -> None:
    """Not 0: something was released, and nobody knows what it tells about this secret."""
    funnel.run(named(tmp_path, "a", sensitive=["x"], public=["s"]))
    told = funnel.rotate_key(named(tmp_path, "a", accept="test"))
    assert (told.now, told.cost, told.measured) == (None, None, False)
    assert "not measured" in told.text()


def test_draws_without_a_key_have_none_to_rotate(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    with pytest.raises(DrawError, match="no key to rotate"):
        funnel.rotate_key(write_policy(tmp_path, **SMALL | FRESH))


def test_who_holds_the_ledger_is_waited_for(policy: Path, tmp_path: Path) -> None:
    """A key is made and agreed to at once, or neither."""
    funnel.run(policy)
    with alone(tmp_path / "private"), pytest.raises(ReleaseError) as busy:
        funnel.rotate_key(policy, tmp_path / "b.key")
    assert busy.value.code == "release-busy"
    assert not (tmp_path / "b.key").exists()


def test_the_command(command, policy: Path, tmp_path: Path) -> None:
    funnel.run(policy)
    told = command("key", "rotate", policy, "--to", tmp_path / "b.key", "--json")
    assert (told.code, told.err) == (0, "")
    assert told.json["cost"] > 0
    assert told.json["written"] == str(tmp_path / "b.key")
    assert (tmp_path / "b.key").read_text().strip() not in told.out
    assert (tmp_path / "b.key").stat().st_mode & 0o777 == 0o600
    assert command("run", named(tmp_path, "b")).code == 0
    wrong = command("run", named(tmp_path, "a"), "--json")
    assert wrong.code == wrong.json["code"] == 4
    assert wrong.json["error"]["code"] == "key-changed"
    assert command("key", "rotate", policy, "--to", tmp_path / "c.key", "--accept").code == 2
    shown = command("key", "rotate", "--help")
    assert "Keep the old key until" in " ".join(shown.out.split())


def test_the_command_that_takes_a_new_key_works_as_it_is_told(command, tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    path = write_policy(tmp_path, **SMALL | {"draws__key": "env:FUNNEL_KEY"})
    told = command("key", "rotate", path, "--to", tmp_path / "new $key", env={"FUNNEL_KEY": funnel.new_key()}).out
    assert f"`export FUNNEL_KEY=$(cat '{tmp_path / 'new $key'}')`" in told


def test_a_lock_stays_under_a_key_of_another_name(command, policy: Path, tmp_path: Path) -> None:
    """As `--to` says: a lock pins chances, and which key drew by them before is for the ledger to know."""
    assert command("lock", policy).code == 0
    assert command("run", "--locked", policy).code == 0
    told = command("key", "rotate", "--locked", policy, "--to", tmp_path / "b.key", "--json")
    changed = named(tmp_path, "b")
    assert command("diff", policy.with_suffix(".lock.yaml"), changed).code == 0
    night = command("run", "--locked", changed, "--json")
    assert night.code == 0, night.err
    assert night.json["composed"]["figure"] == told.json["after"]["figure"] > night.json["leakage"]["lip"]
    assert command("audit", tmp_path / "releases", "--private", tmp_path / "private").code == 0


def test_before_the_first_release_nobody_is_asked_anew(command, policy: Path) -> None:
    """Nor is there an old key to keep."""
    told, shown = command("key", "rotate", policy, "--json"), command("key", "rotate", policy)
    assert told.json["old_key"] is told.json["keep"] is None
    assert "none: nothing was drawn with one from these columns" in shown.out
    assert "anew" not in shown.out
    funnel.run(policy)
    assert "everybody may give another answer" in command("key", "rotate", policy).out
    assert "Keep the old key" in command("key", "rotate", policy, "--json").json["keep"]


def test_where_nothing_is_left_to_chance_a_new_key_asks_nobody_anew(command, policy: Path, tmp_path: Path) -> None:
    average = {"privacy": {"notion": "mutual-information", "epsilon": 0.2}, "mechanism": "greedy-funnel"}
    funnel.run(named(tmp_path, "a", **average))
    told = command("key", "rotate", policy).out
    assert "no answer follows from the key" in told and "another answer" not in told


def test_the_old_key_is_not_called_useless_where_other_policies_name_it(command, policy: Path, tmp_path: Path) -> None:
    funnel.run(policy)
    other = {"name": "other", "public": ["x"], "release__to": "other"}
    funnel.run(named(tmp_path, "a", **other))
    keep = command("key", "rotate", named(tmp_path, "a"), "--to", tmp_path / "b.key", "--json").json["keep"]
    assert "others that name it do" in keep
    funnel.run(named(tmp_path, "b"))
    funnel.run(named(tmp_path, "a", **other))


class Clock(datetime):
    """A clock that shows what it is told."""

    shown = datetime(2030, 1, 1, tzinfo=UTC)

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        return cls.shown


@pytest.mark.long
def test_a_clock_that_goes_back_changes_no_order(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Years back, hours back, the same second: names, entries and `latest` only ever go forward."""
    monkeypatch.setattr(prepare, "datetime", Clock)
    monkeypatch.setattr(ledger_module, "datetime", Clock)
    warned = []
    for back in (timedelta(0), timedelta(days=2000), timedelta(hours=3), timedelta(0)):
        Clock.shown = datetime(2030, 1, 1, tzinfo=UTC) - back
        warned.append(funnel.run(policy).as_dict()["warnings"])
        assert (tmp_path / "releases" / "latest").readlink().name == made(tmp_path)[-1]
    assert [len(one) for one in warned] == [0, 1, 1, 0]
    assert "check the clock" in warned[1][0] and "2024" in warned[1][0]
    lines = Journal(tmp_path / "private").lines()
    assert [line.entry.release for line in lines] == made(tmp_path)
    assert [line.written for line in lines] == sorted(line.written for line in lines)
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_a_ledger_of_another_policy_in_the_same_folder_counts_too(policy: Path, tmp_path: Path) -> None:
    """`latest` is one link for all that publish into a folder."""
    (tmp_path / "releases" / "20990101T000000Z-abcdef").mkdir(parents=True)
    (tmp_path / "releases" / "latest").symlink_to("20990101T000000Z-abcdef")
    summary = funnel.run(policy).as_dict()
    assert Path(summary["release"]).name.startswith("20990101T000001Z")
    assert "check the clock" in summary["warnings"][0]


def test_next_time_is_after_the_last_and_else_the_clocks() -> None:
    last = datetime(2026, 1, 1, tzinfo=UTC)
    for seconds in (-(10**8), -61, -1, 0, 0.5, 1, 100):
        now = last + timedelta(seconds=seconds)
        time, told = next_time(now, last)
        assert time >= last + timedelta(seconds=1)
        assert time == max(now, last + timedelta(seconds=1))
        assert (told is not None) == (seconds < -60)
    assert next_time(last, None) == (last, None)


def test_names_that_are_no_times_are_passed_over(tmp_path: Path) -> None:
    there = {"99991231T235959Z-abcdef", "99981231T235959Z-abcdef"}
    for name in ("20269999T999999Z-abcdef", *there, "20991231T235959Z-abcdef", "../elsewhere"):
        (tmp_path / "latest").unlink(missing_ok=True)
        if name in there:
            (tmp_path / name).mkdir()
        (tmp_path / "latest").symlink_to(name)
        assert last_named(tmp_path, []) is None
    entries = [an_entry("20260102T000000Z-abcdef"), an_entry("20250102T000000Z-abcdef")]
    assert last_named(tmp_path, entries) == datetime(2026, 1, 2, tzinfo=UTC)
