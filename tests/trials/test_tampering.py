"""A small slice of what `python -m tests.trials tampering` tries, every kind of it, and that it would notice a miss."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.trials import tampering
from tests.trials.tampered import judge
from tests.trials.tampered.ground import CASES, FEW, Ground, make
from tests.trials.tampered.moves import AS_IT_IS, EVIDENCE, FOLDER, KEY, LISTED, MOVES, SEALED, Move
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
    assert {one.view for one in found} == {EVIDENCE, KEY, FOLDER}
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


def test_a_forger_who_forgot_a_hash_is_no_proof_of_anything(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all hashes were to fit, it is not enough that one of them does not."""
    sealed = Move("sealed", lambda place, rng: place.claim("rows", 1) or "rows", (SEALED,), (EVIDENCE,))
    monkeypatch.setattr(judge, "MOVES", [sealed])
    monkeypatch.setattr(judge, "KINDS", ("sealed",))
    (found,) = judge.trial(ground, [1])
    assert found.wrong is None
    monkeypatch.setattr(Place, "seal", Place.relist)
    monkeypatch.setattr(judge, "HASHES", set(found.claims) | {"manifest-hash", "ledger-entry"})
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


@pytest.mark.parametrize("name", ["evidence.json", "solution.json", "proof.bin", "policy.yaml", "plan.json"])
def test_evidence_that_means_the_same_in_other_bytes_is_not_what_was_entered(name: str, place: Place) -> None:
    path = place.kept / name
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"{", b"{ ", 1) if name.endswith(".json") else raw + b"\n")
    assert "ledger-kept" in failing(place, folder=False)
    path.unlink()
    assert "ledger-kept" in failing(place, folder=False)


def test_an_entry_that_lost_the_hashes_of_its_evidence_fails(place: Place) -> None:
    place.enter(lambda entry: entry.pop("kept"))
    assert "ledger-kept" in failing(place, folder=False)
    place.enter(lambda entry: entry.update(kept={"policy.yaml": "0" * 64}))
    assert "ledger-kept" in failing(place, folder=False)
    place.enter(lambda entry: entry.update(kept={}))
    assert "ledger-kept" in failing(place, folder=False)


@pytest.mark.parametrize("key", ["composed", "kept", "drawn", "entity"])
def test_an_only_entry_cannot_pass_for_one_of_the_first_version(
    key: str, ground: Ground, tmp_path: Path
) -> None:
    shutil.copytree(ground.home / "ldp", tmp_path / "case", symlinks=True)
    place = Place(tmp_path / "case", ground.releases("ldp")[0], False, ground.home)
    place.enter(lambda entry: entry.pop(key))
    claim = "ledger-kept" if key == "kept" else "ledger-composed"
    assert claim in failing(place, folder=False)


def test_the_protocol_kept_of_the_newest_release_is_looked_at_too(place: Place) -> None:
    newest = place.at(place.releases[-1])
    sha = newest.entries[-1]["protocol_sha256"]
    path = place.private / "protocols" / f"{sha}.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert failing(newest, folder=False) == {"ledger-composed"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("name", "another"), ("policy_sha256", "0" * 64), ("steps", [{"step": "draw", "kind": "fresh"}])],
)
def test_a_plan_for_something_else_fails(key: str, value: object, place: Place) -> None:
    edit(place.kept / "plan.json", lambda plan: plan.update({key: value}))
    seal_but_the_plan(place)
    assert failing(place, folder=False) == {"plan-hash"}


def seal_but_the_plan(place: Place) -> None:
    """All hashes, where the plan itself stays as it is."""
    plan = (place.kept / "plan.json").read_bytes()
    said = json.loads(plan)["policy_sha256"]
    if said != "0" * 64:
        place.seal()
        return
    place.seal()
    edit(place.kept / "plan.json", lambda told: told.update(policy_sha256=said))
    from tests.trials.tampered.place import sha

    hashed = sha((place.kept / "plan.json").read_bytes())
    edit(place.folder / "release.json", lambda told: told.update(plan_sha256=hashed))
    edit(place.kept / "evidence.json", lambda told: told.update(plan_sha256=hashed))
    place._seal_report()
    edit(place.folder / "report.json", lambda told: [one.update(value=hashed) for one in told["provenance"]
                                                     if one["what"] == "Plan, SHA-256"])  # fmt: skip
    place.relist()
    place._seal_evidence()
    entries = place.entries
    for entry in entries:
        if entry["release"] == place.release:
            place._seal_entry(entry)
    place.rechain(entries)


@pytest.mark.parametrize(
    ("key", "value", "claim"),
    [("description", "nothing is hidden", "policy-terms"), ("created", "2020-01-01T00:00:00Z", "manifest")],
)
def test_what_a_release_is_about_and_when_it_was_made(key: str, value: str, claim: str, place: Place) -> None:
    place.claim(key, value)
    place.seal()
    assert claim in failing(place, folder=False)


FIGURES = {
    "a share before": ("blocks", 0, "shares", 0, "before"),
    "a share after": ("blocks", 0, "shares", 1, "after"),
    "how often a value is kept": ("blocks", 0, "shares", 2, "kept"),
    "how often it is true": ("blocks", 0, "shares", 0, "true"),
    "what a block keeps": ("blocks", 0, "kept"),
    "the information of a block": ("blocks", 0, "utility", "mutual_information"),
    "a belief before": ("measured", "secrets", 0, "before"),
    "the lowest belief": ("measured", "secrets", 1, "lowest"),
    "the highest belief": ("measured", "secrets", 1, "highest"),
    "the best guess": ("measured", "guess", "after"),
    "a band": ("blocks", 0, "beliefs", "change", 0, 1),
    "the step": ("step",),
}


@pytest.mark.parametrize("what", FIGURES)
def test_a_share_or_belief_that_the_counts_do_not_say_fails(what: str, place: Place) -> None:
    def change(report: object) -> None:
        *path, last = FIGURES[what]
        for key in path:
            report = report[key]  # type: ignore[index]
        report[last] += 2 if what == "a band" else 0.03  # type: ignore[index]

    edit(place.folder / "report.json", change)
    place.seal()
    assert failing(place, folder=False) == {"report-shown"}
