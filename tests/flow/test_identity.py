"""Which table, which column, which people: the ledger held against somebody who composes the published protocols."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.ledger.promises import Tonight
from tests.flow.conftest import Outcome
from tests.support.audited import detail, failures
from tests.support.forging import Forged, edit, lines_of, rechain, seal, sha
from tests.support.nights import Night, Steps, real_leakage, steps_of
from tests.support.policies import write_policy

Person = tuple[str, str]
"""Secret and value."""
COUNTS = {("a", "0"): 90, ("a", "1"): 60, ("a", "2"): 50, ("b", "0"): 40, ("b", "1"): 70, ("b", "2"): 90}
TERMS: dict[str, Any] = {
    "sensitive": ["s"],
    "public": ["x"],
    "privacy": {"notion": "lip", "epsilon": 0.3},
    "mechanism": "randomised-response",
}


class Folder:
    """Nights of one private folder, through the command line; what was published, and about whom."""

    def __init__(self, path: Path, command: Callable[..., Outcome]) -> None:
        self.path, self.command = path, command
        self.people: dict[int, tuple[str, list[Night]]] = {}
        self.protocols: list[dict[str, Steps]] = []

    def __call__(
        self, people: Sequence[Person], ids: Sequence[object] | None = None, table: str = "t.parquet", **changes: Any
    ) -> Outcome:
        """One more run; person i has `people[i]` tonight, under `ids[i]`."""
        known = [*range(len(people))] if ids is None else ids
        self.write(people, known, table)
        source = {"table": table} if "draws" in changes else {"table": table, "entity": "id"}
        policy = write_policy(self.path, **(TERMS | {"source": source} | changes))
        done = self.command("run", policy, "--json")
        if done.code == 0:
            for i, ((s, x), number) in enumerate(zip(people, known, strict=True)):
                self.people.setdefault(i, (s, []))[1].append((number, x))
            self.protocols.append(steps_of(Path(done.json["release"]) / "protocol.json"))
        return done

    def write(self, people: Sequence[Person], ids: Sequence[object] | None = None, table: str = "t.parquet") -> None:
        """The table of a night."""
        known = [*range(len(people))] if ids is None else ids
        columns = {"id": known, "s": [s for s, _ in people], "x": [x for _, x in people]}
        pq.write_table(pa.table(columns), self.path / table)

    @property
    def entry(self) -> dict[str, Any]:
        """The last one of the ledger."""
        return json.loads((self.path / "private" / "ledger.jsonl").read_text().splitlines()[-1])["entry"]

    def real(self, *, permanent: bool = True) -> float:
        """What everybody who was there on all nights told."""
        there = [one for one in self.people.values() if len(one[1]) == len(self.protocols)]
        return real_leakage(there, self.protocols, permanent=permanent)

    def audited(self) -> set[str]:
        """The claims that fail, of all releases."""
        done = self.command("audit", self.path / "releases", "--private", self.path / "private", "--json")
        told = [*done.json["findings"], *(one for release in done.json["releases"] for one in release["findings"])]
        return {one["claim"] for one in told if one["status"] == "failed"}


@pytest.fixture
def night(tmp_path: Path, command: Callable[..., Outcome]) -> Folder:
    return Folder(tmp_path, command)


def everybody(counts: dict[tuple[str, str], int] = COUNTS) -> list[Person]:
    return [person for person, many in counts.items() for _ in range(many)]


def said(done: Outcome) -> float:
    """The composed figure; infinite where there is none."""
    figure = done.json["composed"]["figure"]
    return math.inf if figure is None else figure


def _how(night: Folder) -> tuple[str, list[str]]:
    """The word for the figure of the night's own promise, and what it takes for granted."""
    return night.entry["promises"][0]["together"]["how"], night.entry["identity"]["assumes"]


def test_two_columns_of_one_name_in_two_tables(night: Folder) -> None:
    """The secret is which of two grades differ: each table tells nothing, and both tell it whole."""
    halves = [*product("01", "01")] * 30
    budget = {"privacy": {"notion": "lip", "epsilon": 0.05}, "mechanism": "optimal", "budget": 0.5}
    first = night([("same" if a == b else "other", a) for a, b in halves], **budget)
    assert first.code == 0
    second = night([("same" if a == b else "other", b) for a, b in halves], table="u.parquet", **budget)
    assert second.code != 0
    assert "no finite bound" in second.err
    both = [(s, [(0, a), (0, b)]) for (a, b) in halves for s in ["same" if a == b else "other"]]
    assert real_leakage(both, night.protocols * 2) >= math.log(2)
    assert len(night.protocols) == 1


@pytest.mark.long
def test_a_column_relabelled_every_night(night: Folder) -> None:
    """Nobody drew nothing under the values of the night before."""
    usual = {"privacy": {"notion": "ldp-x", "epsilon": 0.2}}
    first = 0.0
    for number in range(4):
        done = night([(s, f"{'pqrs'[number]}{x}") for s, x in everybody()], **usual)
        assert said(done) >= night.real() - 1e-9
        first = night.real() if number == 0 else first
    assert night.real() > 2 * first
    assert len({one for told in night.entry["drawn"] for one in told["since"]} & {night.entry["release"]}) == 1
    assert night.audited() == set()


@pytest.mark.long
def test_a_relabelled_column_that_is_drawn_afresh_and_of_nobody(night: Folder) -> None:
    usual = {"privacy": {"notion": "ldp-x", "epsilon": 0.2}, "draws": {"kind": "fresh"}}
    for number in range(3):
        done = night([(s, f"{'pqr'[number]}{x}") for s, x in everybody()], **usual)
        assert said(done) >= night.real(permanent=False) - 1e-9
    assert night.entry["promises"][0]["together"]["how"] == "sum"


@pytest.mark.long
@pytest.mark.parametrize("anew", ["other numbers", "the same numbers for others"])
def test_identifiers_given_out_anew(night: Folder, anew: str) -> None:
    """Everybody is asked anew: x itself is the bound, no less than what two answers tell, and a budget refuses it."""
    people = everybody()
    assert said(night(people)) == pytest.approx(0.3, abs=1e-3)
    numbers = [i + 9_000 if anew == "other numbers" else (i * 171 + 57) % 400 for i in range(400)]
    refused = night(people, numbers, budget=0.31)
    assert refused.code != 0
    done = night(people, numbers)
    assert said(done) >= night.real() - 1e-9
    assert night.real() > 0.4
    told = done.json["composed"]
    assumes = ["values unchanged", "comings and goings tell nothing"]
    assert (told["how"], done.json["identity"]["assumes"]) == ("ceiling", assumes)
    assert night.entry["identity"]["numbered"] == night.entry["release"]
    assert night.audited() == set()


def test_a_value_that_moves_by_the_secret(night: Folder) -> None:
    """x + s: where a permanent answer changes, s is known."""
    people = everybody()
    night(people)
    moved = [(s, str((int(x) + (s == "b")) % 3)) for s, x in people]
    done = night(moved)
    assert done.code != 0 or (said(done) == math.inf and night.real() > 1)


@pytest.mark.long
def test_the_same_people_and_values_are_exact_and_some_changes_are_not(night: Folder, tmp_path: Path) -> None:
    """In the run, the ledger, the manifest and the report: one word, what it takes for granted, what was seen."""
    people = everybody()
    assert said(night(people)) == said(night(people[::-1], [*range(400)][::-1]))
    assert _how(night) == ("exact", [])
    changed = [(s, "1" if i % 50 == 0 else x) for i, (s, x) in enumerate(people)]
    done = night(changed[:-4], [*range(396)])
    assumes = ["identifiers unchanged", "values unchanged", "comings and goings tell nothing"]
    told, ledger = done.json, night.command("ledger", tmp_path / "policy.yaml", "--json").json
    manifest = json.loads((Path(told["release"]) / "release.json").read_text())["composed"]
    assert said(done) < 1
    assert {told["composed"]["how"], ledger["how"], manifest["how"]} == {"unchanged"}
    assert told["identity"]["assumes"] == ledger["identity"]["assumes"] == manifest["assumes"] == assumes
    seen = told["identity"]["seen"]
    assert seen == ledger["identity"]["seen"]
    assert (seen["people"], seen["unchanged"] < 1) == (1.0, True)
    assert "takes for granted" in night.command("ledger", tmp_path / "policy.yaml").out
    page = " ".join((Path(told["release"]) / "report.html").read_text().split())
    granted = "identifiers mean the people that they meant in earlier releases, and that values are what they were"
    assert f"That takes for granted that {granted}" in page
    assert "It is reckoned with how values are distributed in the table of this release" in page
    assert night.audited() == set()


@pytest.mark.parametrize(
    ("people", "moved", "same"), [(19, 10, True), (19, 20, False), (20, 10, True), (20, 11, False)]
)
def test_a_column_whose_small_groups_moved_is_judged_by_all_of_them(
    night: Folder, people: int, moved: int, same: bool
) -> None:
    """Of fewer than twenty with a value and a secret chance may have moved most; of twenty it has not."""
    usual = everybody({("a", "0"): 90, ("a", "1"): 60, ("b", "0"): 60, ("b", "1"): 90})
    few = everybody({("a", "2"): people, ("b", "2"): people})
    before = [(s, "1" if place < moved else x) for place, (s, x) in enumerate(few)]
    assert night([*usual, *before]).code == 0
    first = night.entry["release"]
    assert night([*usual, *few], accept="unbounded").code == 0
    assert night.entry["drawn"][0]["since"] == [first if same else night.entry["release"]]
    assert night.audited() == set()


def test_people_who_come_with_a_new_value_are_new_and_others_are_not(night: Folder) -> None:
    """A value that the last protocol did not know: of newcomers it drew nothing, of others it did."""
    people = everybody()
    night(people)
    newcomers = [*people, *[("a", "3")] * 12, *[("b", "3")] * 13]
    assert said(night(newcomers)) < math.inf
    assert night.entry["drawn"][0]["since"] != [night.entry["release"]]
    moved = [*newcomers[:-25], *[("a", "4")] * 12, *[("b", "4")] * 13]
    night(moved, accept="unbounded")
    assert night.entry["drawn"][0]["since"] == [night.entry["release"]]


@pytest.mark.long
def test_where_nobody_can_be_compared_tables_of_one_name_and_like_counts_are_the_same(night: Folder) -> None:
    """Without an entity that is taken for granted of values; of another table, or other counts, it is not."""
    people, fresh = everybody(), {"draws": {"kind": "fresh"}}
    assert said(night(people, **fresh)) == night.entry["promises"][0]["together"]["figure"]
    night(people, **fresh)
    assert _how(night) == ("unchanged", ["values unchanged", "comings and goings tell nothing"])
    night([(s, "1" if i % 40 == 0 else x) for i, (s, x) in enumerate(people)], **fresh)
    assert _how(night) == ("unchanged", ["values unchanged", "comings and goings tell nothing"])
    since = night.entry["drawn"][0]["since"]
    night([(s, {"0": "1", "1": "2", "2": "0"}[x]) for s, x in people], **fresh)
    assert night.entry["drawn"][0]["since"] == [night.entry["release"]]
    night([(s, "1" if i % 50 == 0 else x) for i, (s, x) in enumerate(people)], **fresh)
    assert night.entry["drawn"][0]["since"] == since
    beside = fresh | {"table": "u.parquet", "accept": "unbounded"}
    night([(s, "1" if i % 30 == 0 else x) for i, (s, x) in enumerate(people)], **beside)
    assert night.entry["drawn"][0]["since"] == [night.entry["release"]]
    assert night.audited() == set()


def test_rows_that_are_nobodys_and_equal_may_have_traded_their_values(night: Folder) -> None:
    """x, then x xor s: the same rows in number, and both answers tell s of a person. No figure of them is exact."""
    fresh = {"draws": {"kind": "fresh"}}
    people = [(s, x) for s in "ab" for x in "01"] * 60
    night(people, **fresh)
    assert _how(night) == ("exact", [])
    night([(s, x if s == "a" else str(1 - int(x))) for s, x in people], **fresh)
    assert _how(night) == ("unchanged", ["values unchanged", "comings and goings tell nothing"])
    assert night.audited() == set()


@pytest.mark.long
def test_over_a_private_estimate_nobody_is_compared(night: Folder) -> None:
    """Not whether all are the same, nor how many: a table of the same name is taken for the same one."""
    values = {"s": ["a", "b"], "x": ["0", "1", "2"]}
    private = {"estimate": {"kind": "private", "epsilon": 1.0, "minimum": 1, "values": values}}
    people = everybody()
    for table in (people, people, people[::-1]):
        done = night(table, **private)
        assert done.json["identity"]["seen"] is None
    assumes = ["identifiers unchanged", "values unchanged", "comings and goings tell nothing"]
    assert (done.json["identity"]["assumes"], done.json["composed"]["how"]) == (assumes, "unchanged")
    assert set(done.json["identity"]) == {"numbered", "assumes", "seen", "lost"}
    assert night.audited() == set()


def test_rows_that_were_the_same_beneath_noise_have_other_counts(night: Folder) -> None:
    values = {"s": ["a", "b"], "x": ["0", "1", "2"]}
    private = {"estimate": {"kind": "private", "epsilon": 1.0, "minimum": 1, "values": values}}
    people, fresh = everybody(), {"draws": {"kind": "fresh"}}
    night(people, **private, **fresh)
    done = night(people, name="plain", estimate__minimum=1, accept=["unbounded", "test"], **fresh)
    assert done.code == 0, done.err
    assert night.audited() == set()


@pytest.mark.long
def test_a_digest_that_was_changed_or_lost(night: Folder) -> None:
    """Changed it fails by name; without the one it was compared with, a release cannot be said to be of the same."""
    people = everybody()
    night(people)
    night(people)
    first, second = sorted((night.path / "private").glob("2*"))
    kept = (first / "people.json").read_bytes()
    (first / "people.json").write_bytes(kept.replace(b'"rows":400', b'"rows":401'))
    assert night.audited() == {"evidence", "ledger-entry", "ledger-identity", "ledger-kept"}
    for folder in (first, second):
        (folder / "people.json").unlink()
    before = night.entry
    assert night(people).code == 0
    again = night.entry
    assert again["identity"]["numbered"] == before["identity"]["numbered"]
    assert again["drawn"][0]["since"] == before["drawn"][0]["since"]
    assert again["promises"][0]["together"]["figure"] == before["promises"][0]["together"]["figure"]
    report = funnel.audit_release(night.path / "releases" / "latest", night.path / "private")
    assert failures(report) == set()
    assert "no digest is kept of" in detail(report, "ledger-identity")
    (max((night.path / "private").glob("2*")) / "people.json").unlink()
    night([(s, "0" if i == 100 else x) for i, (s, x) in enumerate(people)], accept="unbounded")
    assert night.entry["identity"]["numbered"] == night.entry["release"]
    assert night.entry["promises"][0]["together"]["how"] != "exact"


@pytest.mark.long
def test_a_ledger_that_assumes_less_than_it_does_fails(night: Folder) -> None:
    people = everybody()
    night(people)
    night([(s, "0" if i == 100 else x) for i, (s, x) in enumerate(people)])
    lines = lines_of(night.path / "private")
    lines[-1]["entry"]["identity"]["assumes"] = []
    rechain(night.path / "private", lines)
    assert {"ledger-identity", "ledger-entry"} <= night.audited()


@pytest.mark.parametrize("whose", ["people's", "nobody's", "another key's"])
def test_a_hash_of_all_rows_that_the_rest_of_a_digest_gives_the_lie_fails(night: Folder, whose: str) -> None:
    """Rows with other values, said to be those of the night before: by sample, and by counts where there is none.

    By another key no hash is the same.
    """
    fresh: dict[str, Any] = {"draws": {"kind": "fresh"}} if whose == "nobody's" else {}
    changes = {"key": "0" * 16} if whose == "another key's" else {}
    people = everybody()
    night(people, **fresh)
    night([(s, "0" if i % 5 == 0 else x) for i, (s, x) in enumerate(people)], **fresh)
    private = night.path / "private"
    lines = lines_of(private)
    first, second = ({"kept": private / one["entry"]["release"], **one["entry"]["identity"]} for one in lines)
    edit(second["kept"] / "people.json", lambda file: file.update(content=first["content"], **changes))
    told = sha((second["kept"] / "people.json").read_bytes())
    lines[-1]["entry"]["identity"] |= {"content": first["content"], "people_sha256": told, "assumes": []}
    rechain(private, lines)
    seal([Forged(night.path / "releases" / one["kept"].name, one["kept"]) for one in (first, second)])
    report = funnel.audit_release(night.path / "releases" / second["kept"].name, private)
    said = "its hash of all rows is that of" if changes else "its hash says that all rows are those of"
    assert said in detail(report, "ledger-identity")


def said_to_be_the_same(night: Folder, **changes: Any) -> tuple[Path, Path, Path]:
    """The second night's digest, and both nights' as `changes` say, with the hash of the first one's rows.

    Its entry takes all for what it was. The first night's evidence, the second release and the private folder.
    """
    private = night.path / "private"
    both = sorted(private.glob("2*"))
    content, lines = json.loads((both[0] / "people.json").read_text())["content"], lines_of(private)
    entered = [line for line in lines if "release" in line["entry"]]
    for folder, line in zip(both, entered, strict=True):
        edit(folder / "people.json", lambda file: file.update({"content": content, **changes}))
        digest = {"content": content, "people_sha256": sha((folder / "people.json").read_bytes())}
        line["entry"]["identity"] |= digest | {"secret": both[0].name, "numbered": both[0].name}
        for one in line["entry"]["drawn"]:
            one["since"] = [both[0].name] * len(one["columns"])
    rechain(private, lines)
    seal([Forged(night.path / "releases" / one.name, one) for one in both])
    return both[0], night.path / "releases" / both[1].name, private


@pytest.mark.parametrize("locks", [0, 1, 2], ids=["no lock at first", "one lock", "two"])
@pytest.mark.parametrize("unseen", ["drop", "other"])
def test_rows_of_a_lock_that_are_said_to_be_those_of_another_night_have_its_counts(
    night: Folder, unseen: str, locks: int
) -> None:
    """But for those that one of both leaves out. The night that tells may have lost its counts: that is said, too."""
    people, fresh = [*everybody(), *[("a", "other")] * 20], {"draws": {"kind": "fresh"}}
    columns = {"public": [{"name": "x", "unseen": unseen}], "estimate": {"minimum": 1}}
    terms = TERMS | fresh | columns | {"source": {"table": "t.parquet"}, "accept": "unbounded"}
    if not locks:
        terms["public"] = ["x"]
    policy, new = write_policy(night.path, **terms), [("a", "9")] * 50
    night.write(people)
    if locks:
        funnel.make_lock(policy, room=0.5)
    night.write([*people, *new])
    funnel.run(policy, locked=bool(locks))
    turned = [(s, x if x == "other" else str((int(x) + 1) % 3)) for s, x in people]
    night.write(turned)
    if locks != 1:
        policy = write_policy(night.path, **terms | columns)
        funnel.make_lock(policy, room=0.5, force=bool(locks))
    night.write([*turned, *new])
    funnel.run(policy, locked=True)
    assert night.audited() == set()
    first, release, private = said_to_be_the_same(night)
    said = f"its hash says that all rows are those of {first.name}: x of them are not"
    assert said in detail(funnel.audit_release(release, private), "ledger-identity")
    (first / "counts.json").unlink()
    found = detail(funnel.audit_release(release, private), "ledger-identity")
    gone = f"no counts are kept, with the list that names them, of {first.name}, whose rows these are said to be"
    assert found.endswith(gone)


def test_a_night_over_noise_has_a_digest_of_its_rows(night: Folder) -> None:
    """Its counts are of none, and are not compared; who had which value is."""
    people, terms = everybody(), {"accept": "unbounded"}
    values = {"s": sorted({s for s, _ in people}), "x": sorted({x or "" for _, x in people})}
    night(people, **terms, estimate={"kind": "private", "epsilon": 1.0, "minimum": 1, "values": values})
    night([(s, str((int(x) + (i % 5 == 0)) % 3)) for i, (s, x) in enumerate(people)], **terms)
    assert night.audited() == set()
    first, release, private = said_to_be_the_same(night)
    found = detail(funnel.audit_release(release, private), "ledger-identity")
    assert f"its hash says that all rows are those of {first.name}: x of them are not" in found


@pytest.mark.parametrize("kept", ["the one before", "all by now", "counts", "a lie between"])
def test_a_hash_of_all_rows_is_held_to_whatever_is_kept_of_nights_that_have_it(night: Folder, kept: str) -> None:
    """Digests of nights before are lost, or were by the ledger when the release was made; or the last one lies, too."""
    source = {"table": "t.parquet", "entity": "id"}
    people = everybody()
    turned = [(s, str((int(x) + 1) % 3)) for s, x in people]
    if kept == "all by now":  # as many have each value, and only digests show that they are others
        turned = sorted(people, key=lambda one: (one[0], one[1] == "0"))
        assert turned != people
    terms = TERMS | {"source": source, "draws": {"kind": "fresh"}, "accept": "unbounded"}
    for rows in (people, turned if kept == "a lie between" else people, turned):
        night.write(rows)
        funnel.run(write_policy(night.path, **terms))
    assert night.audited() == set()
    private = night.path / "private"
    first, second, third = sorted(private.glob("2*"))
    content, lines = json.loads((first / "people.json").read_text())["content"], lines_of(private)
    for folder, line in zip((second, third), lines[1:], strict=True):
        edit(folder / "people.json", lambda file: file.update(content=content))
        whole = {"content": content, "people_sha256": sha((folder / "people.json").read_bytes())}
        line["entry"]["identity"] |= whole | {"secret": first.name, "numbered": first.name}
        for one in line["entry"]["drawn"]:
            one["since"] = [first.name] * len(one["columns"])
    if kept == "all by now":
        lines[2]["entry"]["identity"]["lost"] = [first.name, second.name]
    rechain(private, lines)
    seal([Forged(night.path / "releases" / one.name, one) for one in (second, third)])
    if kept in ("the one before", "counts"):
        (second / "people.json").unlink()
    if kept == "counts":
        (first / "people.json").unlink()
    if kept == "the one before":
        (second / "counts.json").unlink()
    found = detail(funnel.audit_release(night.path / "releases" / third.name, private), "ledger-identity")
    said = first if kept in ("the one before", "a lie between") else second
    assert f"its hash says that all rows are those of {said.name}" in found


@pytest.mark.parametrize("public", [["x"], [["x", "z"]]], ids=["alone", "in a block of two"])
def test_people_of_rows_that_are_said_to_be_the_same_have_the_values_that_both_nights_name(
    night: Folder, public: list[Any], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One night has rare values under `other`, and so other names: as many have each value, and they are others."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    terms = {"accept": "unbounded", "estimate": {"minimum": 5}, "source": {"table": "t.parquet", "entity": "id"}}
    few = {"name": "x", "top": 2, "unseen": "other"}
    top: list[Any] = [[few, "z"]] if len(public[0]) > 1 else [few]
    rows = [(i, "ab"[i % 2], str(min(i % 7, 2)), "uv"[i % 3 > 0]) for i in range(420)]
    swapped, halves = list(rows), {s: [[], []] for s in "ab"}
    for place, (_, s, x, z) in enumerate(rows):
        if x in "01" and z == "v":
            halves[s][int(x)].append(place)
    for ones, others in halves.values():
        for one, other in zip(ones[:20], others[:20], strict=True):
            for place, x in ((one, "1"), (other, "0")):
                swapped[place] = (rows[place][0], rows[place][1], x, rows[place][3])
    for people, blocks in ((rows, top), (swapped, public)):
        table = ", ".join(str(row) for row in people)
        duckdb.sql(f"COPY (SELECT * FROM (VALUES {table}) t(id, s, x, z)) TO '{night.path}/t.parquet' (FORMAT parquet)")
        funnel.run(write_policy(night.path, **TERMS | terms | {"public": blocks}))
    assert night.audited() == set()
    first, release, private = said_to_be_the_same(night)
    found = detail(funnel.audit_release(release, private), "ledger-identity")
    assert f"its hash says that all rows are those of {first.name}: x of them are not" in found


def test_a_digest_that_is_lost_excuses_nothing_that_another_one_shows(night: Folder) -> None:
    """Tonight's entry takes nothing for granted, and values are others than last night, whose digest is here."""
    people = everybody()
    some = [(s, str((int(x) + (i % 10 == 0)) % 3)) for i, (s, x) in enumerate(people)]
    for rows in (people, people, some):
        night(rows, accept="unbounded")
    assert night.audited() == set()
    private = night.path / "private"
    first, _, third = sorted(private.glob("2*"))
    lines = lines_of(private)
    assert lines[2]["entry"]["identity"]["assumes"]
    lines[2]["entry"]["identity"]["assumes"] = []
    rechain(private, lines)
    (first / "people.json").unlink()
    found = detail(funnel.audit_release(night.path / "releases" / third.name, private), "ledger-identity")
    assert "identity.assumes" in found


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_rows_that_are_nobodys_are_those_counted_and_those_left_out(night: Folder, missing: str) -> None:
    """More of them would excuse other counts, as if they had been left out."""
    terms = {"source": {"table": "t.parquet", "missing": missing}, "draws": {"kind": "fresh"}, "accept": "unbounded"}
    people = everybody()
    turned = [(s, str((int(x) + 1) % 3)) for s, x in people]
    for one in (people, turned):
        night.write(one if missing == "error" else [*one, ("a", None)])
        funnel.run(write_policy(night.path, **TERMS | terms))
    assert night.audited() == set()
    _, release, private = said_to_be_the_same(night, rows=3 * len(people))
    between = missing == "drop"
    said = "there are not as many rows; expected 400 to 401" if between else "rows is not the same in both files"
    assert said in detail(funnel.audit_release(release, private), "ledger-identity")


@pytest.mark.parametrize("lost", ["people.json", "counts.json", "evidence.json"])
@pytest.mark.parametrize("terms", [{}, {"draws": {"kind": "fresh"}}], ids=["people's", "nobody's"])
def test_what_was_not_at_hand_for_a_night_may_come_back(
    night: Folder, lost: str, terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its columns are others then, and stay so. A file that cannot be read is not lost: nothing is released."""
    people = everybody()
    night(people, **terms)
    (first,) = (night.path / "private").glob("2*")
    raw = (first / lost).read_bytes()
    (first / lost).unlink()
    done = night([(s, "0" if i % 40 == 0 else x) for i, (s, x) in enumerate(people)], **terms, accept="unbounded")
    assert done.code == 0 and night.entry["identity"]["lost"] == [first.name]
    assert f"of {first.name} digest and counts are not both kept, as evidence.json lists them" in done.err
    ledger = night.command("ledger", night.path / "policy.yaml")
    assert f"; there was no digest and counts of {first.name} to go by" in ledger.out
    assert night.entry["drawn"][0]["since"] == [night.entry["release"]]
    second = night.path / "releases" / night.entry["release"]
    for _ in range(2):
        report = funnel.audit_release(second, night.path / "private")
        assert report.passed
        assert detail(report, "ledger-identity").endswith(f"that run went by no digest and counts of {first.name}")
        (first / lost).write_bytes(raw)
    assert night.audited() == set()
    entries = len(lines_of(night.path / "private"))
    kept = night.path / "private" / second.name / lost
    kept.unlink()
    kept.mkdir()  # which cannot be read, as on a share that is gone
    done = night(people, **terms, accept="unbounded")
    assert done.code == 1 and f"{second.name}/{lost}: a private file of an earlier release cannot be read" in done.err
    assert len(lines_of(night.path / "private")) == entries


def test_a_run_goes_by_no_counts_but_those_that_were_entered(night: Folder) -> None:
    """Of rows that are nobody's like counts show that a column is the same: changed ones show nothing."""
    people, fresh = everybody(), {"draws": {"kind": "fresh"}, "accept": "unbounded"}
    turned = [(s, str((int(x) + 1) % 3)) for s, x in people]
    night(people, **fresh)
    (first,) = (night.path / "private").glob("2*")

    def as_turned(file: dict[str, Any]) -> None:
        (block,) = file["blocks"]
        values = [one[0] for one in block["values"]]
        moved = [[s, values.index(str((int(values[x]) + 1) % 3)), n] for s, x, n in file["cells"]]
        file["cells"] = sorted(moved)

    edit(first / "counts.json", as_turned)
    assert night(turned, **fresh).code == 0
    assert night.entry["drawn"][0]["since"] == [night.entry["release"]]


def test_a_sample_is_of_as_many_as_there_are_and_equal_rows_have_equal_counts(night: Folder) -> None:
    """Of more people than a sample holds just those who stayed as they were, and for all rows the hash of the night
    before: that there are more, or other counts, tells otherwise."""
    people = everybody({cell: 25 * many for cell, many in COUNTS.items()})
    night(people)
    night([(s, "0" if i % 200 == 0 else x) for i, (s, x) in enumerate(people)])
    private = night.path / "private"
    both = sorted(private.glob("2*"))
    kept, after = (json.loads((one / "people.json").read_text()) for one in both)
    same = {*map(tuple, kept["sample"])} & {*map(tuple, after["sample"])}
    assert kept["labels"] == after["labels"] and (kept["bits"], after["bits"]) == (1, 1)
    assert len(same) < len(kept["sample"])

    def told(bits: int, most: int = 10_000) -> str:
        few = sorted(row for row in same if row[0] < 1 << (63 - bits))[:most]
        lines = lines_of(private)
        for folder, line in zip(both, lines, strict=True):
            change = {"bits": bits, "sample": few, "content": kept["content"]}
            edit(folder / "people.json", lambda file, change=change: file.update(change))
            digest = {"people_sha256": sha((folder / "people.json").read_bytes()), "content": kept["content"]}
            line["entry"]["identity"].update(digest)
        rechain(private, lines)
        seal([Forged(night.path / "releases" / one.name, one) for one in both])
        report = funnel.audit_release(night.path / "releases" / both[1].name, private)
        return detail(report, "ledger-identity")

    assert "how many people are in the sample" in told(2)
    assert "its hash says that all rows are those of" in told(1)
    assert "there are not as many people in the sample as chance has in one" in told(1, 4500)


@pytest.mark.parametrize("how", ["plain", "in small cells", "under a lock"])
def test_a_sample_has_of_each_value_as_many_as_chance_has(night: Folder, how: str) -> None:
    """Too many people of one value, and so fewer of others: as many altogether, and as many as there are of each."""
    many = 25 * sum(COUNTS.values())
    people = [*everybody({cell: 25 * number for cell, number in COUNTS.items()})]
    columns: list[Any] = [{"name": "x", "unseen": "drop"}, *(["z"] if how == "in small cells" else [])]
    source = {"source": {"table": "t.parquet", "entity": "id"}}
    fresh = {"draws": {"kind": "fresh"}, "accept": "unbounded"}
    policy = write_policy(night.path, **TERMS | source | fresh | {"public": columns, "estimate": {"minimum": 1}})

    def write(people: Sequence[Person]) -> None:
        told = {"id": [*range(len(people))], "s": [s for s, _ in people], "x": [x for _, x in people]}
        pq.write_table(pa.table(told | {"z": [str(i % 500) for i in told["id"]]}), night.path / "t.parquet")

    write(people)
    if how == "under a lock":
        funnel.make_lock(policy, room=0.5)
        write([*people, *[("a", "9")] * 40])
    release, private = Path(funnel.run(policy, locked=how == "under a lock").release), night.path / "private"
    assert night.audited() == set()
    kept = private / release.name
    file = json.loads((kept / "people.json").read_text())
    zero = file["labels"][1].index("0")
    every = Counter((s, x, str(i % 500)) if how == "in small cells" else (s, x) for i, (s, x) in enumerate(people))
    told = [tuple(map(list.__getitem__, file["labels"], row[1:])) for row in file["sample"]]
    sampled, moved = Counter(told), 0
    for row, (s, x, *rest) in zip(file["sample"], told, strict=True):
        if x == "1" and moved < many // 40 and sampled[s, "0", *rest] < every[s, "0", *rest]:
            sampled[s, "0", *rest] += 1
            moved, row[2] = moved + 1, zero
    assert moved > 200
    edit(kept / "people.json", lambda old: old.update(sample=file["sample"]))
    lines = lines_of(private)
    lines[-1]["entry"]["identity"]["people_sha256"] = sha((kept / "people.json").read_bytes())
    rechain(private, lines)
    seal([Forged(release, kept)])
    said = "there are not as many with each value in the sample as chance has"
    assert said in detail(funnel.audit_release(release, private), "ledger-identity")


def test_of_more_rows_than_a_sample_holds_that_are_nobodys_there_is_none(night: Folder) -> None:
    night(everybody({cell: 25 * many for cell, many in COUNTS.items()}), draws={"kind": "fresh"})
    assert night.audited() == set()


@pytest.mark.parametrize("public", [["x", "z"], [["x", "z"]]], ids=["two blocks", "one"])
def test_a_hash_of_all_rows_is_held_to_the_counts_of_columns_together(night: Folder, public: list[Any]) -> None:
    """As many have each value of each column with a secret, but not with one of the other column."""
    terms = {"source": {"table": "t.parquet"}, "draws": {"kind": "fresh"}, "public": public, "accept": "unbounded"}
    policy = write_policy(night.path, **TERMS | terms)
    for turn in (0, 1):
        rows = [(s, x, (x + z + turn * (s == "a")) % 2) for s in "ab" for x in (0, 1) for z in (0, 0, 0, 1)] * 20
        columns = {name: [str(row[place]) for row in rows] for place, name in enumerate("sxz")}
        pq.write_table(pa.table(columns), night.path / "t.parquet")
        funnel.run(policy)
    assert night.audited() == set()
    first, release, private = said_to_be_the_same(night)
    said = f"its hash says that all rows are those of {first.name}: x, z of them are not"
    assert said in detail(funnel.audit_release(release, private), "ledger-identity")


@pytest.mark.parametrize("change", [False, True])
def test_rows_that_are_the_same_may_be_released_in_other_blocks(night: Folder, *, change: bool) -> None:
    """One hash is of all columns as they are read; a forged one is held to their counts in whatever blocks they are."""
    rows = [(s, x, (x + z + (s == "a")) % 2) for s in "ab" for x in (0, 1) for z in (0, 0, 0, 1)] * 2
    for minimum in (10, 1):
        other = [(s, x, 1 - z if change and minimum == 1 and s == "b" else z) for s, x, z in rows]
        columns = {name: [str(row[place]) for row in other] for place, name in enumerate("sxz")}
        pq.write_table(pa.table(columns), night.path / "t.parquet")
        terms = {"source": {"table": "t.parquet"}, "draws": {"kind": "fresh"}, "public": ["x", "z"]}
        about = {"estimate": {"minimum": minimum}, "privacy": {"notion": "srlip", "epsilon": 0.3}}
        funnel.run(write_policy(night.path, **TERMS | terms | about, accept="unbounded"))
    private = night.path / "private"
    told = [line["entry"] for line in lines_of(private)]
    assert [[one["columns"] for one in entry["drawn"]] for entry in told] == [[["x"], ["z"]], [["x", "z"]]]
    assert night.audited() == set() and len({entry["identity"]["content"] for entry in told}) == 1 + change
    if change:
        first, release, private = said_to_be_the_same(night)
        said = f"its hash says that all rows are those of {first.name}: x, z of them are not"
        assert said in detail(funnel.audit_release(release, private), "ledger-identity")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("u.parquet", "whose policy names another; expected t.parquet, found u.parquet"),
        ("u/../t.parquet", "; that t.parquet and u/../t.parquet are one table is the publisher’s word"),
        ("t.parquet", ""),
        ("u.parquet", "; no policy is kept of {first}, said to be of that table"),
    ],
)
def test_tables_that_are_said_to_be_one_have_one_name_in_their_policies(
    night: Folder, table: str, told: str
) -> None:
    """A digest with the hash of another table's name: like counts of nobody would be of the same column."""
    (night.path / "u").mkdir()
    terms = TERMS | {"draws": {"kind": "fresh"}, "accept": "unbounded"}
    for name, description in (("t.parquet", "first"), (table, "second")):
        night.write(everybody(), table=name)
        funnel.run(write_policy(night.path, **terms, source={"table": name}, description=description))
    assert night.audited() == set()
    private = night.path / "private"
    first, second = sorted(private.glob("2*"))
    name, lines = json.loads((first / "people.json").read_text())["table"], lines_of(private)
    edit(second / "people.json", lambda file: file.update(table=name))
    digest = {"table": name, "people_sha256": sha((second / "people.json").read_bytes())}
    lines[-1]["entry"]["identity"] |= digest | {"secret": first.name}
    lines[-1]["entry"]["drawn"][0]["since"] = [first.name]
    rechain(private, lines)
    seal([Forged(night.path / "releases" / one.name, one) for one in (first, second)])
    if "no policy" in told:
        (first / "policy.yaml").unlink()
    found = detail(funnel.audit_release(night.path / "releases" / second.name, private), "ledger-identity")
    assert found.endswith(told.format(first=first.name)) and ("word" in found) == ("word" in told)


def knowing(night: Folder, *, moved: bool = False) -> Path:
    """The policy of a table in which own values may be known; some have `moved` inside a bin."""
    rows = [(s, x, n) for s in "ab" for x in "01" for n in (10, 20, 60) for _ in range(30)]
    own = [10 if moved and (x, n) == ("0", 20) and i % 3 else n for i, (_, x, n) in enumerate(rows)]
    table = {"id": [*range(len(rows))], "s": [s for s, *_ in rows], "x": [x for _, x, _ in rows], "n": own}
    pq.write_table(pa.table(table), night.path / "t.parquet")
    columns = ["x", {"name": "n", "bins": [10, 50, 90]}]
    terms = {"privacy": {"notion": "srlip", "epsilon": 0.4, "knows": 1}, "public": columns, "mechanism": "optimal"}
    fresh = {"draws": {"kind": "fresh"}, "accept": "unbounded", "source": {"table": "t.parquet", "entity": "id"}}
    return write_policy(night.path, **TERMS | terms | fresh)


@pytest.mark.parametrize("dodge", [False, True])
def test_what_may_be_known_of_the_same_rows_is_the_same(night: Folder, *, dodge: bool) -> None:
    """Own values that move inside a bin, or that have no name any more, with the hash of the night before."""
    funnel.run(knowing(night))
    funnel.run(knowing(night, moved=True))
    assert night.audited() == set()
    first, second = sorted((night.path / "private").glob("2*"))
    if dodge:
        edit(second / "known.json", unnamed)
    digest = json.loads((second / "people.json").read_text())
    digest["sample"] = json.loads((first / "people.json").read_text())["sample"]
    (second / "people.json").write_text(json.dumps(digest))
    first, release, private = said_to_be_the_same(night)
    said = f"its hash says that all rows are those of {first.name}: known.json of them are not"
    assert said in detail(funnel.audit_release(release, private), "ledger-identity")


def test_where_nothing_is_left_of_what_may_be_known_of_the_same_rows_that_is_said(night: Folder) -> None:
    policy = knowing(night)
    funnel.run(policy)
    release = funnel.run(policy).release
    first = min((night.path / "private").glob("2*"))
    (first / "known.json").unlink()
    gone = f"; no known.json is kept, with the list that names them, of {first.name}, whose rows these are said to be"
    assert detail(funnel.audit_release(release, night.path / "private"), "ledger-identity").endswith(gone)


def unnamed(known: Any) -> None:
    """Own values below fifty that are told of nobody."""
    place = next(place for place, one in enumerate(known["levels"]) if one["level"] == "own")
    known["levels"][place]["values"] = ["60"]
    cells = Counter[tuple[int, ...]]()
    for *codes, number in known["cells"]:
        codes[3 + place] = int(codes[3 + place] == 3)
        cells[tuple(codes)] += number
    known["cells"] = [[*codes, number] for codes, number in sorted(cells.items())]


@pytest.mark.parametrize("rule", ["error", "drop"])
def test_a_digest_under_a_lock_is_of_those_who_were_drawn_for(night: Folder, rule: str) -> None:
    """That of the night before, kept once more: by it all would be as they were, and counts show that they are not."""
    source, columns = {"table": "t.parquet", "entity": "id"}, [{"name": "x", "unseen": rule}]
    terms = TERMS | {"source": source, "public": columns, "draws": {"kind": "fresh"}, "accept": "unbounded"}
    people, policy = everybody(), write_policy(night.path, **terms)
    new = [("a", "9")] * 3 if rule == "drop" else []
    night.write(people)
    funnel.make_lock(policy, room=0.5)
    for tonight in (people, [(s, "0" if i % 20 == 0 else x) for i, (s, x) in enumerate(people)]):
        night.write([*tonight, *new])
        funnel.run(policy, locked=True)
    assert night.audited() == set()
    first, second = sorted((night.path / "private").glob("2*"))
    shutil.copy(first / "people.json", second)
    lines = lines_of(night.path / "private")
    lines[-1]["entry"]["identity"]["people_sha256"] = sha((second / "people.json").read_bytes())
    rechain(night.path / "private", lines)
    seal([Forged(night.path / "releases" / one.name, one) for one in (first, second)])
    report = funnel.audit_release(night.path / "releases" / second.name, night.path / "private")
    assert "the sample is not of the records counted" in detail(report, "ledger-identity")
    for change, said in (
        (lambda file: file["sample"].pop(), "people in the sample"),
        (lambda file: file.update(rows=len(file["sample"])), "rows"),
    ):
        edit(second / "people.json", change)
        lines[-1]["entry"]["identity"]["people_sha256"] = sha((second / "people.json").read_bytes())
        rechain(night.path / "private", lines)
        seal([Forged(night.path / "releases" / one.name, one) for one in (first, second)])
        report = funnel.audit_release(night.path / "releases" / second.name, night.path / "private")
        assert detail(report, "ledger-identity").startswith(f"people.json: {said} is not the same in both files")


def test_an_audit_with_the_table_says_what_of_a_digest_it_compared(night: Folder) -> None:
    """Of rows that are nobody's the hash is of their table's name, too, which an auditor may keep elsewhere."""
    private, table = night.path / "private", night.path / "t.parquet"
    whole, fresh = ", and the digest of people but for the table's name", {"draws": {"kind": "fresh"}}
    for terms, said in (({}, whole), (fresh, f"{whole} and its hash of all rows")):
        release = night(everybody(), name=f"p{len(said)}", accept="unbounded", **terms).json["release"]
        found = funnel.audit_release(release, private, table=table)
        assert found.passed and detail(found, "source-counts").endswith(said), found.text()
    (private / "people.key").write_text("0" * 64)
    found = funnel.audit_release(release, private, table=table)
    assert found.passed and "; of the digest of people columns and numbers alone" in detail(found, "source-counts")


def test_where_people_are_known_under_another_key_like_counts_show_nothing(night: Folder) -> None:
    """Everybody has another value, and there are as many of each: with the key that is seen, and without it no less."""
    people, fresh = everybody(), {"draws": {"kind": "fresh"}}
    source = {"table": "t.parquet", "entity": "id"}
    policy = write_policy(night.path, **TERMS | fresh | {"source": source, "accept": "unbounded"})

    def at_night(people: Sequence[Person]) -> dict[str, Any]:
        night.write(people)
        funnel.run(policy)
        return night.entry

    first = at_night(people)
    (night.path / "private" / "people.key").unlink()
    again = at_night([one for s in "ab" for one in reversed([each for each in people if each[0] == s])])
    assert first["drawn"][0]["since"] != again["drawn"][0]["since"] == [again["release"]]
    assert night.audited() == set()


def test_counts_and_columns_of_an_earlier_night_are_those_that_were_entered(night: Folder) -> None:
    """Counts decide whether a column is the same where rows are nobody's; a hash of all rows is of the columns read."""
    fresh: dict[str, Any] = {"draws": {"kind": "fresh"}}
    people = everybody()
    night(people, **fresh)
    night([(s, "1" if i % 40 == 0 else x) for i, (s, x) in enumerate(people)], **fresh)
    private = night.path / "private"
    first, second = sorted(private.glob("2*"))
    kept = (first / "counts.json").read_bytes()
    edit(first / "counts.json", lambda file: file["cells"][0].__setitem__(-1, file["cells"][0][-1] + 1))
    report = funnel.audit_release(night.path / "releases" / second.name, private)
    assert f"counts.json: this is not the file of {first.name} that was entered" in detail(report, "ledger-identity")
    (first / "counts.json").write_bytes(kept)
    other = {"name": "other", "sensitive": ["x"], "public": ["s"], "accept": ["unbounded", "test"]}
    assert night(people, **fresh | other).code == 0
    content = json.loads((first / "people.json").read_text())["content"]
    third = max(private.glob("2*"))
    edit(third / "people.json", lambda file: file.update(content=content))
    lines = lines_of(private)
    digest = sha((third / "people.json").read_bytes())
    lines[-1]["entry"]["identity"].update(content=content, people_sha256=digest)
    rechain(private, lines)
    seal([Forged(night.path / "releases" / one.name, one) for one in (first, second, third)])
    report = funnel.audit_release(night.path / "releases" / third.name, private)
    assert f"that of {first.name}, which read other columns" in detail(report, "ledger-identity")


def test_the_key_of_digests_is_private_and_its_own(night: Folder) -> None:
    night(everybody())
    path = night.path / "private" / "people.key"
    assert path.stat().st_mode & 0o077 == 0
    sample = json.loads(next((night.path / "private").glob("2*/people.json")).read_text())
    assert not {row[0] for row in sample["sample"]} & set(range(400))
    assert path.read_text() not in json.dumps(sample)


def _unlike(people: Sequence[Person]) -> list[Person]:
    """The same values beside a secret that has nothing to do with them, nor with the one before."""
    return [("ab"[i // 7 % 2], x) for i, (_, x) in enumerate(people)]


def test_a_secret_that_is_another_column_tonight(night: Folder) -> None:
    """Counts by tonight's secret say nothing of what both releases tell about the one that was called so before."""
    people = everybody()
    assert said(night(people, budget=0.5)) == pytest.approx(0.3, abs=1e-3)
    other = {"privacy": {"notion": "lip", "epsilon": 2.0}}
    refused = night(_unlike(people), budget=0.5, **other)
    assert refused.code == 4
    done = night(_unlike(people), **other, accept="unbounded")
    assert "the secret s is not known to be that of earlier releases: it is taken for another one" in done.err
    assert said(done) >= night.real() - 1e-9
    assert night.real() > 0.45
    assert done.json["identity"]["seen"]["unchanged"] < 0.9
    assert _how(night)[0] == "sum"
    assert night.entry["identity"]["secret"] == night.entry["release"]
    again = night(_unlike(people), **other, accept="unbounded")
    assert said(again) >= night.real() - 1e-9
    assert night.entry["identity"]["secret"] != night.entry["release"]
    assert night.audited() == set()


def test_a_secret_of_the_same_name_in_another_table(night: Folder) -> None:
    """The first policy's promise is about its own table's column, whatever is called alike elsewhere."""
    people = everybody()
    assert night(people, name="first").code == 0
    other = {"name": "second", "mechanism": "optimal", "privacy": {"notion": "lip", "epsilon": 2.0}}
    copied = [(s, "01"[was == "a"]) for (s, _), (was, _) in zip(_unlike(people), people, strict=True)]
    assert night(copied, table="u.parquet", **other).code == 4
    assert night(copied, table="u.parquet", accept=["first", "unbounded"], **other).code == 0
    assert [one["together"]["figure"] for one in night.entry["promises"]] == [None, None]
    assert night.audited() == set()


def test_a_figure_about_a_secret_that_no_digest_of_the_release_has_takes_it_for_unchanged(night: Folder) -> None:
    """Another policy hides another column: whether people still have the first one's secret nobody compares."""
    people = everybody()
    assert night(people, name="first").code == 0
    columns = {"id": [*range(400)], "s": [s for s, _ in _unlike(people)], "x": [x for _, x in people]}
    pq.write_table(pa.table(columns | {"w": ["cd"[i % 2] for i in range(400)]}), night.path / "t.parquet")
    source = {"table": "t.parquet", "entity": "id"}
    policy = write_policy(night.path, **(TERMS | {"name": "second", "sensitive": ["w"], "source": source}))
    assert night.command("run", policy).code == 0
    assert {one["together"]["how"] for one in night.entry["promises"]} == {"unchanged"}
    assert night.entry["identity"]["assumes"] == ["values unchanged", "comings and goings tell nothing"]
    assert night.audited() == set()


def test_a_ledger_that_measures_another_secret_by_tonights_counts_fails(
    night: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its figures are right but that they are of tonight's secret alone."""
    people = everybody()
    night(people)
    monkeypatch.setattr(Tonight, "every", lambda _, notion, found, entries: found)
    assert night(_unlike(people)).code == 0
    assert _how(night)[0] != "sum"
    assert night.audited() == {"ledger-composed"}
