"""Old releases whose data are taken away: what the audit says of them, and what their readers see."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import funnel
from funnel.audit.audit import AuditReport
from funnel.audit.history import HistoryReport
from funnel.errors import ReleaseError
from funnel.failed import as_error
from tests.support.forging import edit, lines_of, rechain
from tests.support.kernel import check
from tests.support.people import MONDAY, SMALL, TUESDAY, people
from tests.support.policies import write_policy
from tests.support.towns import WIDE
from tests.support.towns import people as towns

TERMS = SMALL | {"release__sign": "file:sign.key", "draws__key": "file:draw.key"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four nights, of which the data of two were taken away."""
    folder = tmp_path_factory.mktemp("pruned")
    funnel.write_signing_key(folder / "sign.key")
    (folder / "sign.pub").write_text(funnel.public_key(str(folder / "sign.key")) + "\n")
    funnel.write_key(folder / "draw.key")
    policy = write_policy(folder, **TERMS)
    for night in range(4):
        people(folder, (MONDAY, TUESDAY)[night % 2])
        funnel.run(policy)
    shutil.copytree(folder / "releases" / nights(folder)[0], folder / "copy")
    shutil.copytree(folder / "releases", folder / "copies", symlinks=True)
    funnel.prune(policy, 2)
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """All of it, to be spoilt."""
    shutil.copytree(made, tmp_path / "home", symlinks=True)
    return tmp_path / "home"


def nights(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "releases").iterdir() if path.name[0] == "2")


def audited(home: Path) -> HistoryReport:
    return funnel.audit_history(home / "releases", home / "private", public_key=home / "sign.pub")


def test_no_table_is_counted_again_for_a_pruned_release(command, made: Path, tmp_path: Path) -> None:
    """And it is not said to be: whichever table is given."""
    first = nights(made)[0]
    asked = ("audit", made / "releases" / first, "--private", made / "private", "--table", tmp_path / "no.parquet")
    (found,) = [one for one in command(*asked, "--json").json["findings"] if one["claim"] == "source-counts"]
    assert (found["status"], found["detail"]) == ("not checked", "of a pruned release no table is counted again")
    told = command(*asked)
    assert told.code == 0 and "not checked" in told.out and "--table FILE" not in told.out


def test_the_kernel_by_itself_misses_what_was_pruned(made: Path) -> None:
    first = nights(made)[0]
    found = check(made / "releases" / first, made / "private" / first)
    assert {one.claim for one in found if one.status == "failed"} >= {"file-list", "file-hashes"}


def failing(report: AuditReport) -> set[str]:
    return {one.claim for one in report.of("failed")}


def test_the_audit_of_the_folder_knows_what_was_pruned_and_checks_what_stays(made: Path) -> None:
    found = audited(made)
    assert found.passed, found.text()
    assert [one.pruned for one in found.releases] == [True, True, False, False]
    assert found.verdict.startswith("4 releases (2 pruned) and the ledger: every claim")
    pruned = found.releases[0]
    shown = {one.claim for one in pruned.findings if one.status == "passed"}
    again = {"counts", "leakage-bound", "leakage-stated", "draw-inputs", "draw-support", "draw-fit", "policy-terms",
             "protocol", "stated-bound", "minimum", "mechanism", "policy", "averages-stated",
             "evidence-files"}  # fmt: skip
    entered = {"ledger-chain", "ledger-entry", "ledger-drawn", "ledger-identity", "ledger-composed", "ledger-promises"}
    assert shown == {"pruned", "manifest", "evidence", "signature", "newest"} | again | entered
    assert f"{nights(made)[0]}: pruned 20" in found.text()
    told = next(one.detail for one in found.releases[2].findings if one.claim == "ledger-composed")
    assert told.startswith("ldp 0.7042 nats as told before; now 0.654 nats (")
    alone = funnel.audit_release(made / "releases" / nights(made)[0], made / "private")
    assert alone.passed and alone.pruned and alone.as_dict()["pruned"]


def test_what_nobody_can_look_at_any_more_is_named(made: Path) -> None:
    found = audited(made)
    (first, *_) = found.releases
    gone = {one.claim for one in first.findings if one.status == "not checked" and "taken away" in one.detail}
    assert gone == {"file-hashes", "released", "draw-outputs", "draw-independence", "data-export", "report",
                    "catalogue", "whole-table", "draw-chances"}  # fmt: skip
    assert first.verdict.startswith("every claim that can be checked holds; ")
    told = [line.split("not checked ")[1] for line in found.text().splitlines() if line.startswith("  not checked ")]
    assert told == [", ".join(each.claim for each in one.unchecked) for one in found.releases if one.unchecked]
    assert gone <= set(told[0].split(", "))


def test_that_no_bound_is_known_is_said_first_of_a_pruned_release_too(command, tmp_path: Path) -> None:
    funnel.write_key(tmp_path / "draw.key")
    asked = {"draws__key": "file:draw.key", "source__filter": "s = 's0' OR x = 'x0'", "accept": ["unbounded"]}
    policy = write_policy(tmp_path, **SMALL | asked | {"privacy": {"notion": "rldp", "epsilon": 1.0}})
    people(tmp_path, MONDAY)
    whole, _ = (Path(funnel.run(policy).release or "") for _ in range(2))
    before = funnel.audit_release(whole, tmp_path / "private")
    funnel.prune(policy, 1)
    after = funnel.audit_release(whole, tmp_path / "private")
    assert after.pruned and after.passed
    assert before.unbounded == after.unbounded == after.as_dict()["unbounded"]
    assert after.verdict.startswith("No finite bound is known: ")


@pytest.mark.parametrize(
    ("file", "change", "claims"),
    [
        ("release.json", lambda old: old["estimate"].update(minimum=100),
         {"minimum", "policy-terms", "averages-stated"}),
        ("release.json", lambda old: old["utility"].update(normalised=1.0), {"averages-stated"}),
        ("release.json", lambda old: old["leakage"].update(ldp=0.1), {"leakage-stated"}),
        ("release.json", lambda old: old.update(mechanism="greedy-funnel"), {"mechanism", "policy-terms"}),
        ("terms.json", lambda old: old.update(epsilon=3.0), {"policy", "policy-terms"}),
    ],
)  # fmt: skip
def test_what_stays_is_held_to_counts_and_policy(file, change, claims, home: Path) -> None:
    """Each lie shows in what it is about, whatever mark, evidence and ledger say of its hash."""
    first = nights(home)[0]
    folder = home / "releases" if file == "release.json" else home / "private"
    edit(folder / first / file, change)
    hashes = {"pruned", "evidence", "manifest", "ledger-entry", "signature", "ledger-composed", "newest"}
    assert failing(audited(home).releases[0]) - hashes == claims


def test_readers_are_told_by_name(made: Path, command) -> None:
    gone = made / "releases" / nights(made)[0]
    for work in (
        lambda: funnel.audit_release(gone),
        lambda: funnel.verify(gone, made / "sign.pub"),
        lambda: funnel.open_release(gone),
        lambda: funnel.estimate_counts(gone),
        lambda: funnel.rebuild_report(gone, to=made / "again"),
        lambda: funnel.diff(gone, made / "releases" / "latest"),
    ):
        with pytest.raises(ReleaseError) as caught:
            work()
        assert caught.value.code == "release-pruned"
    assert command("verify", gone, "--key", made / "sign.pub").code == 1


def test_whoever_kept_a_copy_can_still_check_it_and_the_list_has_all(made: Path) -> None:
    copy = funnel.verify(made / "copy", made / "sign.pub")
    assert copy.passed
    kept, gone = made / "copy" / "release.json", made / "releases" / nights(made)[0] / "release.json"
    assert kept.read_bytes() == gone.read_bytes()
    newest = funnel.verify(made / "releases", made / "sign.pub")
    assert next(one.detail for one in newest.findings if one.claim == "newest") == "4 of 4 releases of test"


def test_a_copy_from_before_is_audited_as_any_release(made: Path, home: Path) -> None:
    """By whatever name; what is neither whole nor just what stays was cut off."""
    first = nights(made)[0]
    for one in (made / "copies" / first, made / "copy"):
        found = funnel.audit_release(one, made / "private", public_key=made / "sign.pub")
        assert found.passed and not found.pruned
        assert not [each for each in found.findings if each.status == "not checked" and "taken away" in each.detail]
    history = funnel.audit_history(made / "copies", made / "private", public_key=made / "sign.pub")
    assert history.passed and "history-pruned]: 0 releases; 2 marks of a release of which all is here" in history.text()
    (home / "copies" / first / "protocol.json").unlink()
    history = funnel.audit_history(home / "copies", home / "private")
    assert "history-pruned" in {one.claim for one in history.failed}
    assert "pruning it was cut off" in history.text()


@pytest.mark.parametrize("linked", [False, True])
def test_what_was_put_back_whole_is_pruned_like_any_other(home: Path, *, linked: bool) -> None:
    """It counts among those that are kept; what `latest` points at and what lies behind a link stays."""
    first, second, *_, last = nights(home)
    (home / "archive").mkdir()
    for name in (first, second):
        shutil.rmtree(home / "releases" / name)
        place = (home / "archive" if linked else home / "releases") / name
        shutil.copytree(home / "copies" / name, place)
        if linked:
            (home / "releases" / name).symlink_to(place)
    assert not funnel.prune(home / "policy.yaml", 4).releases
    assert [*funnel.prune(home / "policy.yaml", 3).releases] == ([] if linked else [first])
    (home / "releases" / "latest").unlink()
    (home / "releases" / "latest").symlink_to(second)
    gone = funnel.prune(home / "policy.yaml", 1).releases
    assert second not in gone and last not in gone and (home / "releases" / second / "data.parquet").exists()


def test_a_ledger_that_was_written_anew_is_noticed_by_what_stays_signed(home: Path) -> None:
    """Nothing whole is signed after it: of a pruned release the hash of its line is held to the ledger all the same."""
    lines = lines_of(home / "private")
    told = next(one for one in audited(home).releases[0].findings if one.claim == "signature").detail
    assert told.endswith("; promise and limits in words not compared")
    lines[0]["blind"] = "0" * 32
    rechain(home / "private", lines)
    found = audited(home)
    assert all("signature" in failing(one) for one in found.releases)
    assert "line of the ledger" in found.releases[0].text()


def test_what_was_signed_is_looked_at_where_nothing_can_be_measured_any_more(tmp_path: Path) -> None:
    """Of wide blocks the cells are gone, here with their copy too, and the signature needs none."""
    towns(tmp_path)
    funnel.write_signing_key(tmp_path / "sign.key")
    (tmp_path / "sign.pub").write_text(funnel.public_key(str(tmp_path / "sign.key")) + "\n")
    funnel.write_key(tmp_path / "draw.key")
    policy = write_policy(tmp_path, **WIDE | {"release__sign": "file:sign.key", "draws__key": "file:draw.key"})
    funnel.make_lock(policy)
    for _ in range(2):
        funnel.run(policy, locked=True)
    funnel.prune(policy, 1)
    first = tmp_path / "releases" / nights(tmp_path)[0]
    whole = {one.claim: one for one in audited(tmp_path).releases[0].findings}
    for claim in ("leakage-stated", "draw-fit", "ledger-drawn", "ledger-composed", "lock", "cells"):
        assert whole[claim].status == "passed", whole[claim]
    sha256 = json.loads((first / "release.json").read_text())["files"]["cells.json"]["sha256"]
    copy = tmp_path / "private" / "protocols" / f"{sha256}.json"
    raw = copy.read_bytes()
    copy.write_bytes(raw + b" ")
    assert failing(audited(tmp_path).releases[0])
    copy.unlink()
    assert audited(tmp_path).passed
    why = {one.detail for one in audited(tmp_path).releases[0].of("not checked")}
    assert "it was made of cells, of which the private folder keeps no copy" in why
    (tmp_path / "releases" / nights(tmp_path)[0] / "attestation.json").write_text("signed by nobody")
    assert failing(audited(tmp_path).releases[0]) == {"signature"}


def test_an_older_release_in_the_place_of_the_newest_fails_though_it_was_pruned(home: Path) -> None:
    first, *_, last = nights(home)
    latest = home / "releases" / "latest"
    for name, failed in ((last, set()), (first, {"newest"})):
        latest.unlink()
        latest.symlink_to(name)
        for key in (None, str(home / "sign.pub")):
            assert failing(funnel.audit_release(latest, home / "private", public_key=key)) == failed


def test_what_may_not_be_removed_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is removed by a name within a folder, which a system's error repeats without the folder."""
    third = home / "releases" / nights(home)[2]

    unlink = os.unlink

    def refused(name: str, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None:
            raise PermissionError(13, "Permission denied", name)
        unlink(name)

    monkeypatch.setattr("os.unlink", refused)
    with pytest.raises(ReleaseError) as caught:
        funnel.prune(home / "policy.yaml", 1)
    told = as_error(caught.value)
    assert told.code == "permission" and str(told.where).startswith(str(third))


def test_what_was_put_back_and_changed_is_not_pruned(home: Path) -> None:
    """What was changed shows that while it is there."""
    first = nights(home)[0]
    shutil.rmtree(home / "releases" / first)
    shutil.copytree(home / "copies" / first, home / "releases" / first)
    edit(home / "releases" / first / "release.json", lambda old: old.update(description="x"))
    with pytest.raises(ReleaseError, match="nothing was removed"):
        funnel.prune(home / "policy.yaml", 1)
    assert len(nights(home)) == 4 and (home / "releases" / first / "data.parquet").exists()


def test_what_lost_its_mark_or_its_data_fails_by_name(home: Path) -> None:
    first, second, third, _ = nights(home)
    (home / "private" / "pruned" / first).unlink()
    for path in (home / "releases" / third).iterdir():
        if path.name not in ("release.json", "attestation.json"):
            path.unlink()
    found = audited(home)
    (one,) = [one for one in found.failed if one.claim == "history-pruned"]
    assert first in one.detail and third in one.detail and second not in one.detail


def test_a_lost_protocol_is_that_of_whatever_release_was_drawn_by_it(home: Path) -> None:
    """The first night's data are gone, and those of the third are there, whose table was the same."""
    shutil.rmtree(home / "private" / "protocols")
    assert audited(home).passed, audited(home).text()


def test_what_only_a_lost_protocol_tells_is_not_called_another_figure(tmp_path: Path) -> None:
    """Nothing is left of what the first night drew by: its protocol is named, and a release after that is sound."""
    funnel.write_key(tmp_path / "draw.key")
    policy = write_policy(tmp_path, **SMALL | {"mechanism": "optimal", "draws__key": "file:draw.key"})
    for counts in (MONDAY, TUESDAY):
        people(tmp_path, counts)
        funnel.run(policy)
    funnel.prune(policy, 1)
    first = min(path.name for path in (tmp_path / "releases").iterdir() if path.name[0] == "2")
    lost = json.loads((tmp_path / "releases" / first / "release.json").read_text())["files"]["protocol.json"]["sha256"]
    (tmp_path / "private" / "protocols" / f"{lost}.json").rename(tmp_path / "kept.json")
    people(tmp_path, [[60, 44, 30], [30, 50, 45]])
    funnel.run(policy)
    found = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    (one,) = (one for release in found.releases for one in release.of("failed"))
    assert one.claim == "ledger-composed" and lost in one.detail and f"the protocol of {first}" in one.detail
    assert "not what the releases tell" not in found.text()
    (tmp_path / "kept.json").rename(tmp_path / "private" / "protocols" / f"{lost}.json")
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_a_mark_of_what_was_never_released_fails(home: Path) -> None:
    shutil.copy(home / "private" / "pruned" / nights(home)[0], home / "private" / "pruned" / "20200101T000000Z-000000")
    assert [one.claim for one in audited(home).failed] == ["history-pruned"]


@pytest.mark.parametrize(
    ("spoil", "claims"),
    [
        (lambda to, _: edit(to / "release.json", lambda old: old.update(description="x")),
         {"pruned", "evidence", "ledger-entry", "signature", "policy-terms", "newest"}),
        (lambda to, _: (to / "attestation.json").unlink(), {"pruned", "signature"}),
        (lambda to, _: (to / "data.parquet").write_text("left over"), {"pruned"}),
        (lambda _, kept: (kept / "counts.json").write_text("{}"), {"evidence", "counts"}),
        (lambda _, kept: (kept / "draws.json").unlink(), {"evidence", "draw-inputs"}),
    ],
)  # fmt: skip
def test_what_stays_is_held_to_mark_ledger_and_evidence(spoil, claims, home: Path) -> None:
    first = nights(home)[0]
    spoil(home / "releases" / first, home / "private" / first)
    found = audited(home)
    assert failing(found.releases[0]) == claims
    # Later nights rest on its people and counts; one has the same rows, by their hash.
    later = {"ledger-identity", "ledger-kept"} if "counts" in claims else set()
    assert {claim for one in found.releases[1:] for claim in failing(one)} == later
    assert found.verdict.startswith("4 releases of 4 FAIL" if later else "1 release of 4 FAILS")


def test_what_lies_elsewhere_behind_a_link_is_not_pruned(home: Path) -> None:
    """It was moved to be kept. One that was moved when it was pruned is known by the name that it has among others."""
    old, *_, kept, _ = nights(home)
    (home / "archive").mkdir()
    for name in (old, kept):
        (home / "releases" / name).rename(home / "archive" / f"of-{name}")
        (home / "releases" / name).symlink_to(home / "archive" / f"of-{name}")
    people(home, MONDAY)
    funnel.run(home / "policy.yaml")
    assert audited(home).passed, audited(home).text()
    done = funnel.prune(home / "policy.yaml", 1)
    assert len(done.releases) == 1 and kept not in done.releases
    assert (home / "archive" / f"of-{kept}" / "data.parquet").exists()
    found = audited(home)
    assert found.passed, found.text()
    assert [one.pruned for one in found.releases] == [True, True, False, True, False]


def test_a_pruning_that_was_cut_off_is_ended_behind_a_link_too(home: Path) -> None:
    """The advice of the audit is to prune again."""
    old = home / "releases" / nights(home)[0]
    (old / "data.parquet").write_text("left over")
    old.rename(home / "moved")
    old.symlink_to(home / "moved")
    assert not audited(home).passed
    assert [*funnel.prune(home / "policy.yaml", 2).releases] == [old.name]
    assert audited(home).passed


def test_a_path_that_ends_above_names_no_mark(home: Path) -> None:
    (home / "releases" / "latest" / "inside").mkdir()
    asked = home / "releases" / "latest" / "inside" / ".."
    found = funnel.audit_release(asked, home / "private")
    assert not found.pruned and {one.claim for one in found.of("failed")} == {"file-list"}


def test_a_link_to_another_release_is_not_what_was_pruned(home: Path) -> None:
    old, *_, new = nights(home)
    shutil.rmtree(home / "releases" / old)
    (home / "releases" / old).symlink_to(new)
    found = audited(home)
    assert not found.passed
    assert {"history-names", "history-pruned"} <= {one.claim for one in found.failed}


def test_nights_go_on(home: Path) -> None:
    before = audited(home)
    funnel.run(write_policy(home, **TERMS))
    after = audited(home)
    assert before.passed and after.passed
    assert [one.pruned for one in after.releases] == [True, True, False, False, False]


def test_the_command(command, home: Path) -> None:
    policy = write_policy(home, **TERMS)
    shown = command("prune", policy, "--keep", 1, "--dry-run")
    assert (shown.code, shown.out.count("would be pruned")) == (0, 2)
    done = command("prune", policy, "--keep", 1, "--json")
    assert (done.code, [one["release"] for one in done.json["pruned"]]) == (0, nights(home)[2:3])
    assert done.json["kept"] == 1 and done.json["pruned"][0]["bytes"] > 10_000
    assert command("audit", home / "releases", "--private", home / "private").code == 0
    assert command("prune", policy).code == 2
    (home / "wrong.yaml").write_text("version: 2\n")
    lines = command("prune", home / "wrong.yaml", policy, "--keep", 1, "--json").out.splitlines()
    assert ["error" in json.loads(line) for line in lines] == [True, False]
    several = command("prune", home / "wrong.yaml", policy, "--keep", 1)
    assert (several.code, "0 pruned, 1 kept" in several.out, "wrong.yaml" in several.err) == (1, True, True)
    assert command("prune", policy, "--keep", 0).code == 2


def test_a_dry_pruning_changes_nothing_and_a_ledger_that_is_gone_is_said_to_be(command, home: Path) -> None:
    policy = write_policy(home, **TERMS)
    shutil.rmtree(home / "private")
    for dry in ([], ["--dry-run"]):
        lost = command("prune", policy, "--keep", 1, *dry)
        assert (lost.code, "the ledger does not know of release" in lost.err) == (1, True)
    shutil.rmtree(home / "private")
    shutil.rmtree(home / "releases")
    none = command("prune", policy, "--keep", 1, "--dry-run")
    assert (none.code, "0 would be pruned, 0 kept" in none.out) == (0, True)
    assert not (home / "private").exists()


def test_a_release_without_its_manifest_is_not_pruned_and_the_way_out_works(command, home: Path) -> None:
    policy = write_policy(home, **TERMS)
    old = home / "releases" / nights(home)[2]
    (old / "release.json").unlink()
    refused = command("prune", policy, "--keep", 1)
    assert (refused.code, "release.json is not the one that was entered" in refused.err) == (1, True)
    shutil.move(old, home / "away")
    assert command("prune", policy, "--keep", 1).code == 0


def test_what_a_pruned_release_was_entered_with_is_worked_out_again(home: Path) -> None:
    """A lower figure in its entry would be what later releases have told before, and theirs lower with it."""
    lines = lines_of(home / "private")
    for line in lines:
        together = line["entry"]["promises"][0]["together"]
        together["figure"] = together["measured"] = min(together["measured"], 0.654)
    rechain(home / "private", lines)
    found = audited(home)
    assert [failing(one) & {"ledger-composed", "ledger-promises"} for one in found.releases[:2]] != [set(), set()]


def test_a_mark_that_was_cut_off_while_it_was_written_marks_nothing(home: Path) -> None:
    (home / "private" / "pruned" / f".{nights(home)[-1]}.new").write_text("")
    assert audited(home).passed


@pytest.mark.parametrize("left", [{"release.json"}, set()])
def test_what_lost_its_data_is_not_among_those_that_stay_whole(home: Path, left: set[str]) -> None:
    """It would be kept in the place of a whole one, the last of which would go."""
    releases, (*_, whole, newest) = home / "releases", nights(home)
    for path in (releases / newest).iterdir():
        if path.name not in left:
            path.unlink()
    done = funnel.prune(home / "policy.yaml", 1)
    assert whole not in done.releases and newest not in done.releases and done.kept == 1
    assert (releases / whole / "data.parquet").exists()
    assert {path.name for path in (releases / newest).iterdir()} == left


@pytest.mark.parametrize("left", ["nothing", "part", "folder", "link"])
def test_what_is_not_a_file_of_its_size_is_no_data(home: Path, left: str) -> None:
    releases, (*_, whole, newest) = home / "releases", nights(home)
    data = releases / newest / "data.parquet"
    raw = data.read_bytes()
    data.unlink()
    if left == "folder":
        data.mkdir()
    elif left == "link":
        data.symlink_to("nowhere")
    else:
        data.write_bytes(raw[: len(raw) // 2] if left == "part" else b"")
    done = funnel.prune(home / "policy.yaml", 1)
    assert whole not in done.releases and done.kept == 1


def test_what_latest_leads_to_over_several_links_stays_whole(home: Path) -> None:
    releases, whole = home / "releases", nights(home)[-2]
    (releases / "stable").symlink_to(whole)
    (releases / "latest").unlink()
    (releases / "latest").symlink_to("stable")
    assert whole not in funnel.prune(home / "policy.yaml", 1).releases
    assert (releases / "latest" / "data.parquet").exists()


def test_a_link_to_itself_points_at_no_release(home: Path) -> None:
    latest = home / "releases" / "latest"
    latest.unlink()
    latest.symlink_to("latest")
    found = audited(home)
    assert [one.claim for one in found.failed] == ["history-latest"]
    with pytest.raises(ReleaseError, match=r"no release in this folder|does not exist"):
        funnel.audit_release(latest, home / "private")
