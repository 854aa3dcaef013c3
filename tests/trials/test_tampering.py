"""A small slice of what `python -m tests.trials tampering` tries, every kind of it, and that it would notice a miss."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.trials import tampering
from tests.trials.tampered import folders, judge, newest, pruned
from tests.trials.tampered.ground import CASES, FEW, Ground, make
from tests.trials.tampered.moves import (
    AS_IT_IS,
    EVIDENCE,
    FOLDER,
    KEY,
    LATEST,
    LATEST_LEDGER,
    LISTED,
    MOVES,
    SEALED,
    Change,
    Move,
)
from tests.trials.tampered.place import Place, edit

TRIED = 60


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return make(tmp_path_factory.mktemp("ground"), FEW)


@pytest.fixture
def place(ground: Ground, tmp_path: Path) -> Place:
    """The middle one of three nights, to be spoilt."""
    shutil.copytree(ground.home / "lip", tmp_path / "case", symlinks=True)
    return Place(tmp_path / "case", ground.releases("lip")[1], True, ground.home)


def test_honest_releases_pass_and_the_forger_s_tools_change_none(ground: Ground) -> None:
    assert list(judge.controls(ground)) == []


def test_a_slice_of_the_trial_is_caught_of_every_kind(ground: Ground) -> None:
    found = judge.trial(ground, range(TRIED))
    assert [one.text() for one in found if one.wrong] == []
    assert {one.kind for one in found} == set(judge.KINDS)
    assert {one.seal for one in found} == {AS_IT_IS, LISTED, SEALED}
    assert {one.view for one in found} == {EVIDENCE, KEY, FOLDER, LATEST, LATEST_LEDGER}
    told = tampering.summary(found)
    assert all(kind in told for kind in judge.KINDS)
    assert f"{TRIED} tamperings tried" in told and "0 not" in told


def test_the_same_seed_on_the_same_releases_is_the_same_tampering(ground: Ground) -> None:
    one, two = (judge.trial(ground, range(900, 904)) for _ in range(2))
    assert one == two
    assert len({(tried.kind, tried.what) for tried in one}) > 2


def test_what_changes_nothing_does_not_count(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = Move("idle", lambda place, rng: "nothing at all", (AS_IT_IS,), (EVIDENCE,))
    monkeypatch.setattr(judge, "MOVES", [idle])
    monkeypatch.setattr(judge, "KINDS", ("idle",))
    monkeypatch.setattr(judge, "_TRIES", 3)
    with pytest.raises(LookupError):
        judge.tamper(ground, 1, tmp_path)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([], "NOT CAUGHT"),
        (ValueError("x"), "TRACEBACK: ValueError"),
        (MemoryError(), "TRACEBACK: MemoryError"),
    ],
)
def test_an_audit_that_passes_or_breaks_is_a_finding(
    answer: object, told: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited(*_: object) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(judge, "audited", audited)
    (found,) = judge.trial(ground, [5])
    assert (found.wrong or "").startswith(told)
    assert "1 not" in tampering.summary([found])


@pytest.mark.parametrize(
    ("change", "view", "claims"),
    [
        (newest.list_edited, FOLDER, {"history-feed"}),
        (newest.list_edited, LATEST, {"newest"}),
        (newest.list_of_another_signer, LATEST, {"newest"}),
        (newest.list_put_back, LATEST, {"newest"}),
        (newest.older_as_latest, LATEST, {"newest"}),
        (newest.older_as_latest, LATEST_LEDGER, {"newest"}),
        (newest.older_as_latest, FOLDER, {"history-latest"}),
        (folders.signature_of_another, KEY, {"signature"}),
        (pruned.mark_gone, FOLDER, {"history-pruned"}),
        (pruned.data_gone, FOLDER, {"history-pruned"}),
        (pruned.rest_kept_spoilt, FOLDER, {"evidence"}),
    ],
)
def test_a_move_is_caught_by_the_claim_that_is_about_it(
    change: Change, view: str, claims: set[str], ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "MOVES", [Move("one", change, (AS_IT_IS,), (view,))])
    monkeypatch.setattr(judge, "KINDS", ("one",))
    found = judge.trial(ground, range(3))
    assert [one.text() for one in found if one.wrong or not claims <= set(one.claims)] == []


def test_a_forger_who_forgot_a_hash_is_no_proof_of_anything(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all hashes were to fit, it is not enough that one of them does not."""
    sealed = Move("sealed", lambda place, rng: place.claim("rows", 1) or "rows", (SEALED,), (EVIDENCE,))
    monkeypatch.setattr(judge, "MOVES", [sealed])
    monkeypatch.setattr(judge, "KINDS", ("sealed",))
    (found,) = judge.trial(ground, [1])
    assert found.wrong is None
    monkeypatch.setattr(Place, "seal", lambda place, reports: place.relist())
    monkeypatch.setattr(judge, "HASHES", set(found.claims) | {"evidence", "ledger-entry", "report"})
    (found,) = judge.trial(ground, [1])
    assert found.wrong == "CAUGHT BY A HASH THAT THE FORGER LEFT AS IT WAS"


def test_the_command_says_the_same(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    assert tampering.commands(ground, [3]) == []
    assert tampering.show(ground, 3) == 0
    assert capsys.readouterr().out.endswith("caught\n")


def test_every_case_is_made_of_terms_and_nights() -> None:
    assert set(FEW) < set(CASES)
    assert all(nights > 0 for nights, _, _ in CASES.values())
    assert len({move.change for move in MOVES}) == len(MOVES)


# --- what it found, at its smallest


def failing(place: Place, folder: bool = True) -> set[str]:
    return {one.claim for one in judge.audited(
        place.home / "releases" if folder else place.folder, place.private, None)}  # fmt: skip


def test_two_nights_may_not_bear_each_other_s_names(place: Place) -> None:
    assert failing(place) == set()
    other, aside = place.at(place.releases[0]).folder, place.home / "aside"
    place.folder.rename(aside)
    other.rename(place.folder)
    aside.rename(other)
    assert failing(place) == {"history-names"}


def test_a_night_copied_over_another_is_seen(place: Place) -> None:
    shutil.rmtree(place.folder)
    shutil.copytree(place.at(place.releases[0]).folder, place.folder)
    assert failing(place) == {"history-names"}


def test_a_release_that_was_visible_and_is_gone_fails(place: Place) -> None:
    shutil.rmtree(place.folder)
    assert failing(place) == {"history-released"}
    (place.kept / "published").unlink()
    assert failing(place) == set(), "it may never have been visible"


@pytest.mark.parametrize("name", ["evidence.json", "solution.json", "proof.bin", "policy.yaml", "report.html"])
def test_evidence_that_means_the_same_in_other_bytes_is_not_what_was_entered(name: str, place: Place) -> None:
    path = place.kept / name
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"{", b"{ ", 1) if name.endswith(".json") else raw + b"\n")
    assert "evidence" in failing(place, folder=False)
    path.unlink()
    assert "evidence" in failing(place, folder=False)


@pytest.mark.parametrize("key", ["promises", "evidence_sha256", "drawn", "entity"])
def test_an_entry_that_lost_a_part_fails(key: str, place: Place) -> None:
    place.enter(lambda entry: entry.pop(key))
    assert "ledger-chain" in failing(place, folder=False)


def test_the_protocol_kept_of_the_newest_release_is_looked_at_too(place: Place) -> None:
    newest = place.at(place.releases[-1])
    path = place.private / "protocols" / f"{newest.entry['protocol_sha256']}.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert failing(newest, folder=False) == {"ledger-composed"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("name", "another"), ("steps", [{"step": "draw", "kind": "fresh"}]), ("steps", [{"step": "count"}])],
)
def test_a_plan_for_something_else_fails(key: str, value: object, place: Place) -> None:
    edit(place.kept / "plan.json", lambda plan: plan.update({key: value}))
    place.seal()
    assert failing(place, folder=False) == {"policy"}


@pytest.mark.parametrize(
    ("key", "value", "claim"),
    [("description", "nothing is hidden", "policy-terms"), ("created", "2020-01-01T00:00:00Z", "manifest")],
)
def test_what_a_release_is_about_and_when_it_was_made(key: str, value: str, claim: str, place: Place) -> None:
    place.claim(key, value)
    place.seal()
    assert claim in failing(place, folder=False)


def test_terms_that_the_policy_does_not_have_fail(place: Place) -> None:
    edit(place.kept / "terms.json", lambda terms: terms.update(filter="s <> 's0'"))
    place.seal()
    assert failing(place, folder=False) == {"policy", "absent", "ledger-composed"}


@pytest.mark.parametrize("name", ["report.json", "report.html"])
@pytest.mark.parametrize("where", ["folder", "kept"])
def test_a_report_that_its_files_do_not_make_fails(name: str, where: str, place: Place) -> None:
    path = getattr(place, where) / name
    text = path.read_text()
    digit = next(at for at, letter in enumerate(text) if letter.isdigit())
    path.write_text(text[:digit] + ("1" if text[digit] != "1" else "2") + text[digit + 1 :])
    place.seal(reports=False)
    assert failing(place, folder=False) == {"report"}


def test_a_table_with_something_beside_its_rows_fails(place: Place) -> None:
    """The same rows, packed otherwise; and a word in the footer of the file."""
    honest = pq.read_table(place.data)
    for table in (honest, honest.replace_schema_metadata({"told": "everything"})):
        pq.write_table(table, place.data, compression="gzip")
        place.seal()
        assert failing(place, folder=False) == {"data-export"}
