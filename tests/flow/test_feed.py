"""Whether a release is the newest: what readers see by the publisher's list, and auditors by the ledger."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from securesystemslib import dsse
from securesystemslib.signer import SSlibKey

import funnel
from funnel.audit.audit import AuditReport
from funnel.audit.history import holds_releases
from funnel.audit.publisher import read_public_key
from funnel.audit.verify.__main__ import main
from funnel.audit.verify.verify import Verified
from funnel.format import schema
from funnel.format.attestation import sealed
from funnel.format.feed import FeedFile, feed, inside
from funnel.format.journal import Line
from funnel.release.sign import load_signing_key
from tests.support.forging import Forged, edit, seal
from tests.support.kernel import check
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

SIGNED = SMALL | {"release__sign": "file:sign.key"}
FEED = "releases.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `releases` of three nights, `private`, and what releases.json was after each night."""
    folder = tmp_path_factory.mktemp("feed")
    people(folder, MONDAY)
    for name in ("sign", "other"):
        funnel.write_signing_key(folder / f"{name}.key")
        (folder / f"{name}.pub").write_text(funnel.public_key(str(folder / f"{name}.key")) + "\n")
    (folder / "draw.key").write_text(funnel.new_key())
    (folder / "draw.key").chmod(0o600)
    for night in range(3):
        funnel.run(write_policy(folder, **SIGNED | {"draws__key": "file:draw.key"}))
        shutil.copy(folder / "releases" / FEED, folder / f"{night}.json")
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """All of it, to be spoilt."""
    shutil.copytree(made, tmp_path / "home", symlinks=True)
    return tmp_path / "home"


def nights(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "releases").iterdir() if path.name[0] == "2")


def verified(home: Path, what: str = "latest", key: str = "sign.pub", feed: str | None = None) -> str | None:
    """What `funnel verify` says of the newest; None where it does not hold."""
    found = funnel.verify(home / "releases" / what, home / key, None if feed is None else home / feed)
    one = next(one for one in found.findings if one.claim == "newest")
    return None if one.status == "failed" else one.detail


def audited(home: Path) -> set[str]:
    """What fails in the audit of the whole folder."""
    found = funnel.audit_history(home / "releases", home / "private", public_key=home / "sign.pub")
    return {one.claim for one in found.failed} | {one.claim for each in found.releases for one in each.of("failed")}


def put(home: Path, name: str) -> None:
    """Let `latest` point at another release."""
    (home / "releases" / "latest").unlink()
    (home / "releases" / "latest").symlink_to(name)


def test_the_newest_release_is_taken_back_as_it_is_written(home: Path) -> None:
    """The audit of the folder holds; readers are told until the next run that `latest` is not the newest listed."""
    _, middle, last = nights(home)
    (home / "releases" / last).rename(home / "away")
    (home / "private" / last / "published").unlink()
    put(home, middle)
    assert audited(home) == set()
    assert verified(home) is None


def test_latest_in_another_folder_is_no_newest_release_whatever_its_name(home: Path) -> None:
    first, _, last = nights(home)
    shutil.copytree(home / "releases" / first, home / "elsewhere" / last)
    put(home, f"../elsewhere/{last}")
    assert verified(home) is None and verified(home, ".") is None
    assert "history-latest" in audited(home)
    (home / "elsewhere" / last).rename(home / "elsewhere" / first)
    (home / "elsewhere" / "latest").symlink_to(first)
    put(home, f"../elsewhere/{first}")
    for what in ("latest", "."):
        found = funnel.audit_release(home / "releases" / what, home / "private")
        assert "newest" in {one.claim for one in found.of("failed")}
    put(home, "99991231T000000Z-000000")
    assert "history-latest" in audited(home)


def test_the_newest_is_known_as_that_and_an_older_one_by_its_name_as_what_it_is(made: Path) -> None:
    first, _, last = nights(made)
    for what in ("latest", ".", last):
        assert verified(made, what) == "3 of 3 releases of test"
    assert verified(made, first) == f"1 of 3 releases of test; {last} is newer"
    assert audited(made) == set()
    assert funnel.audit_release(made / "releases", made / "private").passed


def test_an_older_release_in_the_place_of_latest_is_noticed(home: Path) -> None:
    put(home, nights(home)[0])
    assert verified(home) is None and verified(home, ".") is None
    assert "history-latest" in audited(home)
    by_ledger = funnel.audit_release(home / "releases" / "latest", home / "private")
    assert [one.claim for one in by_ledger.of("failed")] == ["newest"]
    by_key = funnel.audit_release(home / "releases" / "latest", public_key=home / "sign.pub")
    assert [one.claim for one in by_key.of("failed")] == ["newest"]


def test_newer_releases_taken_away_with_their_feed_are_noticed_by_whoever_remembers(home: Path) -> None:
    """Everything that lies there was signed once; only a later list, or the ledger, tells."""
    first, *rest = nights(home)
    for name in rest:
        shutil.rmtree(home / "releases" / name)
    put(home, first)
    shutil.copy(home / "0.json", home / "releases" / FEED)
    assert verified(home) == "1 of 1 release of test", "nobody can know who has nothing else"
    assert verified(home, feed="2.json") is None
    assert {"history-released", "history-feed"} <= audited(home)


def test_a_feed_from_elsewhere_may_be_older_than_the_one_beside_but_not_newer(home: Path) -> None:
    assert verified(home, feed="0.json") == "3 of 3 releases of test"
    others = {"format": "funnel-feed/1", "lists": []}
    (home / "others.json").write_text(json.dumps(others, separators=(",", ":")) + "\n")
    told = "3 of 3 releases of test; others.json that was given lists none under this key"
    assert verified(home, feed="others.json") == told, "nothing was compared"
    (home / "releases" / FEED).unlink()
    assert verified(home, feed="2.json") == "3 of 3 releases of test; no releases.json lies beside the release"
    assert verified(home, feed="1.json") is None, "it does not list the newest"


def test_a_ledger_that_was_begun_anew_has_later_lists_though_of_fewer_lines(home: Path) -> None:
    while f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}" <= nights(home)[-1]:
        time.sleep(0.1)  # names of nights that follow at once run ahead of the clock, which a new ledger begins by
    (home / "releases").rename(home / "old")
    (home / "private").rename(home / "lost")
    funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:draw.key"}))
    assert verified(home, feed="2.json") == "1 of 1 release of test; 3 releases of 2.json not listed any more"
    shutil.copy(home / "releases" / FEED, home / "newer.json")
    shutil.rmtree(home / "releases")
    (home / "old").rename(home / "releases")
    assert verified(home) == "3 of 3 releases of test"
    assert verified(home, feed="newer.json") is None, "what was there before was put back"


def test_a_release_that_was_taken_back_is_missed_by_whoever_remembers_it(home: Path) -> None:
    _, middle, last = nights(home)
    (home / "releases" / last).rename(home / "away")
    (home / "private" / last / "published").unlink()
    put(home, middle)
    policy = write_policy(home, **SIGNED | {"draws__key": "file:draw.key", "estimate__minimum": 10_000})
    with pytest.raises(funnel.FunnelError):
        funnel.run(policy)  # brings the list up to date
    assert verified(home) == "2 of 2 releases of test"
    assert verified(home, feed="2.json") is None
    funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:draw.key"}))
    assert verified(home, feed="2.json") == "3 of 3 releases of test; 1 release of 2.json not listed any more"


@pytest.mark.parametrize("night", [0, 1])
def test_a_feed_that_was_put_back_is_noticed(night: int, home: Path) -> None:
    shutil.copy(home / f"{night}.json", home / "releases" / FEED)
    assert verified(home) is None
    assert audited(home) == {"history-feed", "newest"}


def test_a_feed_that_misses_is_told_and_one_that_is_spoilt_fails(home: Path) -> None:
    path = home / "releases" / FEED
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert verified(home) is None, place
    path.unlink()
    assert "nobody knows" in (verified(home) or "")
    assert audited(home) == {"history-feed"}


def test_a_list_under_another_key_is_none(home: Path) -> None:
    assert verified(home, key="other.pub") is None
    by_name = funnel.verify(home / "releases" / nights(home)[0], home / "other.pub")
    assert [one.claim for one in by_name.findings if one.status == "failed"] == ["signature"]
    raw = json.loads((home / "releases" / FEED).read_bytes())
    raw["lists"][0]["signatures"][0]["keyid"] = "0" * 32
    (home / "releases" / FEED).write_text(json.dumps(raw, sort_keys=True, separators=(",", ":")) + "\n")
    assert verified(home) is None


def test_a_list_that_another_publisher_signed_is_not_that_of_these_releases(home: Path) -> None:
    """The key in release.json is the one that has to stand under the list; whoever has it sees whether it signed."""
    path, other = home / "releases" / FEED, load_signing_key("file:other.key", home)
    (own,) = schema.read(FeedFile, FEED, path.read_bytes()).lists
    path.write_bytes(feed({"test": other.seal(own.content)}))
    without = funnel.audit_history(home / "releases", home / "private")
    assert [one.claim for one in without.failed] == ["history-feed"]
    path.write_bytes(feed({"test": sealed(own.content, own.signed_by, other.seal(own.content).signature)}))
    assert funnel.audit_history(home / "releases", home / "private").passed, "nobody can know without the key"
    assert audited(home) == {"newest"}


def test_a_release_that_is_a_link_is_one_of_the_folder(home: Path) -> None:
    """Readers open it like any other: one of another ledger is named, one that moved to another disk is there."""
    first = nights(home)[0]
    (home / "releases" / first).rename(home / first)
    (home / "releases" / first).symlink_to(home / first)
    (home / "releases" / "stable").symlink_to(first)
    assert funnel.audit_history(home / "releases", home / "private").passed
    foreign = first[:-6] + "0f0f0f"
    (home / "releases" / foreign).symlink_to(home / first)
    found = funnel.audit_history(home / "releases", home / "private")
    assert "history-entered" in {one.claim for one in found.failed}


def test_a_release_under_any_name_is_one_of_the_folder(home: Path) -> None:
    """Also where `latest` leads to it: by its name it would be newer than all."""
    first = nights(home)[0]
    shutil.copytree(home / "releases" / first, home / "releases" / "march")
    found = funnel.audit_history(home / "releases", home / "private")
    assert {one.claim for one in found.failed} == {"history-entered", "history-names"}
    put(home, "march")
    found = funnel.audit_history(home / "releases", home / "private")
    assert {one.claim for one in found.failed} == {"history-entered", "history-names", "history-latest"}


def test_of_a_policy_that_signs_elsewhere_nothing_is_said_of_this_folder(home: Path, command) -> None:
    """One ledger may be of several folders; lists are of policies whose releases lie in the one that is looked at."""
    other = write_policy(home, **SMALL, name="other", release__to="b", draws={"kind": "fresh"})
    assert command("run", other).code == 0
    found = funnel.audit_history(home / "b", home / "private").findings
    (told,) = [one for one in found if one.claim == "history-feed"]
    assert told.detail.endswith("no policy signs whose newest release of this ledger lies here")


def test_a_policy_that_publishes_elsewhere_by_now_has_the_list_that_it_had(home: Path) -> None:
    """The releases that came after lie in another folder, as their plans say: the list here went as far as it could."""
    funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:draw.key"}, release__to="new"))
    for folder in ("releases", "new"):
        found = {one.claim: one for one in funnel.audit_history(home / folder, home / "private").findings}
        assert found["history-feed"].status == "passed"
        latest = funnel.audit_release(home / folder / "latest", home / "private", public_key=home / "sign.pub")
        assert latest.passed, latest.text()
    put(home, nights(home)[1])
    (home / "releases" / FEED).write_bytes((home / "1.json").read_bytes())
    assert "history-feed" in {one.claim for one in funnel.audit_history(home / "releases", home / "private").failed}


def test_a_run_after_a_kill_between_release_and_feed_lists_both(home: Path) -> None:
    shutil.copy(home / "1.json", home / "releases" / FEED)
    funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:draw.key"}))
    assert verified(home) == "4 of 4 releases of test"
    assert audited(home) == set()


def test_a_run_that_is_stopped_before_its_table_lists_nothing(home: Path) -> None:
    """As its key is another: the list waits for a run that gets further, though that be refused for what it reads."""
    shutil.copy(home / "1.json", home / "releases" / FEED)
    (home / "third.key").write_text(funnel.new_key())
    (home / "third.key").chmod(0o600)
    with pytest.raises(funnel.FunnelError) as refused:
        funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:third.key"}))
    assert refused.value.code == "key-changed"
    assert (home / "releases" / FEED).read_bytes() == (home / "1.json").read_bytes()
    with pytest.raises(funnel.FunnelError) as refused:
        funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:draw.key", "estimate__minimum": 10_000}))
    assert refused.value.code == "below-minimum"
    assert (home / "releases" / FEED).read_bytes() != (home / "1.json").read_bytes()


def test_another_reader_verifies_the_list(made: Path) -> None:
    (raw,) = json.loads((made / "releases" / FEED).read_bytes())["lists"]
    public = read_public_key(str(made / "sign.pub"))
    key = SSlibKey(raw["signatures"][0]["keyid"], "ed25519", "ed25519", {"public": public.hex()})
    found = dsse.Envelope.from_dict(raw)
    assert found.verify([key], 1) == {key.keyid: key}
    assert [one["name"] for one in json.loads(found.payload)["subject"]] == nights(made)


def test_without_a_signature_there_is_no_feed_and_the_ledger_tells(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(tmp_path, MONDAY)
    monkeypatch.setenv("FUNNEL_KEY", key)
    for _ in range(2):
        funnel.run(write_policy(tmp_path, **SMALL))
    assert not (tmp_path / "releases" / FEED).exists()
    put(tmp_path, nights(tmp_path)[0])
    found = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert [one.claim for one in found.failed] == ["history-latest"]


def test_the_command_takes_a_feed(command, home: Path) -> None:
    put(home, nights(home)[1])
    shutil.copy(home / "1.json", home / "releases" / FEED)
    arguments = ("verify", home / "releases", "--key", home / "sign.pub")
    assert command(*arguments).code == 0
    found = command(*arguments, "--feed", home / "2.json", "--json")
    assert (found.code, found.json["verdict"]) == (1, "1 claim FAILS: newest")
    assert command(*arguments, "--feed", home / "nowhere.json").code == 1


def spoilt(folder: Path) -> None:
    """Its table and page are others."""
    (folder / "data.parquet").write_bytes(b"forged")
    (folder / "report.html").write_text("<p>All is well.</p>")


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "gone"])
@pytest.mark.parametrize("inside", ["moved", "named", "linked"])
@pytest.mark.parametrize("place", [0, 2], ids=["older", "newest"])
def test_nothing_in_a_releases_own_folder_leads_to_other_files(
    home: Path, place: int, inside: str, keep: bool, tmp_path: Path
) -> None:
    """Whole files in it, or those of another release: by `latest` these were looked at, and readers find the others."""
    releases, mine = home / "releases", nights(home)[place]
    own, other = releases / mine, releases / nights(home)[1]
    if inside == "linked":
        (own / "latest").symlink_to(f"../{other.name}")
    else:
        shutil.copytree(own, tmp_path / "whole")
        shutil.move(tmp_path / "whole", own / ("latest" if inside == "moved" else mine))
        if inside == "named":
            (own / "latest").symlink_to(mine)
    shutil.copy(releases / FEED, own / FEED)
    spoilt(own)
    if not keep:
        (own / "release.json").unlink()
    for what in (releases / mine, *([releases / "latest", releases] if place == 2 else [])):
        assert not funnel.verify(what, home / "sign.pub").passed
        assert main([str(what), "--key", str(home / "sign.pub")]) == 1
        assert not funnel.audit_release(what).passed
        assert not funnel.audit_release(what, home / "private").passed
        assert any(one.status == "failed" for one in check(what, home / "private"))
    assert not funnel.audit_history(releases, home / "private").passed


def holds(look: Callable[[], AuditReport | Verified]) -> bool:
    """Whether something is found there, and no claim of it fails."""
    try:
        return look().passed
    except funnel.ReleaseError:
        return False


@pytest.mark.parametrize("forged", ["data/x=1/part-0.csv", "people.csv"])
@pytest.mark.parametrize("inside", ["linked", "moved"])
def test_what_is_asked_for_as_latest_leads_no_further(home: Path, forged: str, inside: str) -> None:
    """In place of the link a folder of other files, in which `latest` leads on to the newest, whole and signed."""
    releases, mine = home / "releases", nights(home)[-1]
    latest = releases / "latest"
    latest.unlink()
    (latest / forged).parent.mkdir(parents=True)
    (latest / forged).write_text("forged")
    if inside == "moved":
        shutil.copytree(releases / mine, latest / mine)
    (latest / "latest").symlink_to(mine if inside == "moved" else f"../{mine}")
    for what in (latest, releases):
        assert not holds(lambda what=what: funnel.verify(what, home / "sign.pub"))
        assert not holds(lambda what=what: funnel.audit_release(what, home / "private"))
        assert main([str(what), "--key", str(home / "sign.pub")]) == 1
        assert any(one.status == "failed" for one in check(what, home / "private"))
    assert not holds_releases(latest)
    assert "history-latest" in audited(home)


@pytest.mark.parametrize("changed", ["another key", "no key", "there and back"])
def test_a_run_that_is_refused_breaks_nothing_that_was_published(home: Path, changed: str) -> None:
    """Whatever its policy says by now; and a release that never stood in a folder is none of those listed there."""
    terms = SIGNED | {"draws__key": "file:draw.key"}
    if changed == "there and back":
        funnel.run(write_policy(home, **terms, release__to="b"))
    if changed == "another key":
        terms["release__sign"] = "file:other.key"
    if changed == "no key":
        del terms["release__sign"]
    table = (home / "people.parquet").read_bytes()
    again = f"SELECT * FROM '{home}/people.parquet'"
    duckdb.sql(f"CREATE OR REPLACE TABLE twice AS {again} UNION ALL ({again} LIMIT 1)")
    duckdb.sql(f"COPY twice TO '{home}/people.parquet'")
    with pytest.raises(funnel.FunnelError):
        funnel.run(write_policy(home, **terms))
    (home / "people.parquet").write_bytes(table)
    assert verified(home) == "3 of 3 releases of test" and not audited(home)
    if changed == "there and back":
        funnel.run(write_policy(home, **terms))
        assert verified(home) == "4 of 4 releases of test" and not audited(home)


def test_a_release_that_is_missing_from_its_own_folder_is_in_no_other(home: Path) -> None:
    """What lies there by now is a copy of another folder, whose plans say so."""
    other = write_policy(home, **SMALL, name="other", release__to="b", draws={"kind": "fresh"}, accept=["unbounded"])
    gone = Path(funnel.run(other).release).name
    shutil.rmtree(home / "b")
    shutil.copytree(home / "releases", home / "b", symlinks=True)
    for folder, status in (("releases", "not checked"), ("b", "failed")):
        found = funnel.audit_history(home / folder, home / "private")
        (told,) = [one for one in found.findings if one.claim == "history-released"]
        assert told.status == status and gone in told.detail


def test_a_copy_beside_those_of_another_folder_moves_none_of_them(home: Path) -> None:
    """The newest one was taken along where a policy publishes in another folder by now; the older ones still stand."""
    newest = nights(home)[-1]
    shutil.copytree(home / "releases" / newest, home / "b" / newest)
    (home / "b" / "latest").symlink_to(newest)
    here = Path(funnel.run(write_policy(home, **SIGNED, draws__key="file:draw.key", release__to="b")).release).name
    assert {*inside(schema.read(FeedFile, FEED, (home / "b" / FEED).read_bytes()).lists[0]).releases} == {newest, here}
    for folder in ("b", "releases"):
        found = funnel.audit_history(home / folder, home / "private", public_key=home / "sign.pub")
        assert found.passed, found.text()


def test_a_mark_of_a_release_that_is_whole_prunes_nothing(home: Path) -> None:
    """Nor one of a release elsewhere, of which this folder's audit says no more than that there is one."""
    other = write_policy(home, **SMALL, name="other", release__to="b", draws={"kind": "fresh"}, accept=["unbounded"])
    elsewhere = Path(funnel.run(other).release).name
    (home / "private" / "pruned").mkdir()
    (home / "private" / "pruned" / elsewhere).write_text("garbage")
    found = funnel.audit_history(home / "releases", home / "private")
    (told,) = [one for one in found.findings if one.claim == "history-pruned"]
    assert (told.status, told.detail) == ("passed", "0 releases; 1 mark of a release that is not here")
    (home / "private" / "pruned" / nights(home)[0]).write_text("garbage")
    assert {"history-pruned", "pruned"} <= audited(home)


def test_a_plan_that_its_evidence_does_not_list_moves_no_release_elsewhere(home: Path) -> None:
    """The folder it names would have an audit of its own, and there is none."""
    first = nights(home)[0]
    shutil.rmtree(home / "releases" / first)
    plan = home / "private" / first / "plan.json"
    told = json.loads(plan.read_text())
    told["steps"][-1]["to"] += "-elsewhere"
    plan.write_text(json.dumps(told))
    assert "history-released" in audited(home)


def test_a_plan_that_cannot_be_read_moves_no_release_elsewhere_and_stops_no_audit(home: Path) -> None:
    """A text too deep for the reader is one more that is none."""
    first = nights(home)[0]
    shutil.rmtree(home / "releases" / first)
    plan = b"[" * 200_000
    (home / "private" / first / "plan.json").write_bytes(plan)
    listed = {"sha256": hashlib.sha256(plan).hexdigest(), "bytes": len(plan)}
    edit(home / "private" / first / "evidence.json", lambda old: old["files"].update({"plan.json": listed}))
    assert "history-released" in audited(home)


def test_whoever_has_the_old_key_alone_is_told_that_there_is_no_list_under_it_any_more(home: Path) -> None:
    """A policy that signs with another key has a list under that: the old one is neither older nor taken back."""
    funnel.run(write_policy(home, **SIGNED | {"draws__key": "file:draw.key", "release__sign": "file:other.key"}))
    found = funnel.verify(home / "releases" / nights(home)[0], home / "sign.pub", home / "2.json")
    (told,) = [one for one in found.findings if one.claim == "newest"]
    assert told.status == "failed" and "it has no list of test under this key, as the one given has" in told.detail
    assert verified(home, key="other.pub") is not None


def test_where_the_list_of_the_publisher_is_one_that_was_given_it_is_named(home: Path) -> None:
    (home / "releases" / FEED).unlink()
    found = funnel.verify(home / "releases" / nights(home)[-1], home / "sign.pub", home / "1.json")
    (told,) = [one for one in found.findings if one.claim == "newest"]
    assert told.status == "failed" and told.detail.startswith("1.json: it does not list this release")


def test_a_signature_that_was_taken_away_is_missed_where_the_policy_asks_for_one(home: Path) -> None:
    """With it went every word of release.json that there was one."""
    folder = home / "releases" / nights(home)[-1]
    made = Forged(folder, home / "private" / folder.name)
    (folder / "attestation.json").unlink()
    edit(folder / "release.json", lambda old: old.update(signed=None))
    seal([made])
    found = funnel.audit_release(folder, home / "private")
    assert {one.claim for one in found.of("failed")} == {"policy"}


def test_the_newest_of_a_policy_that_does_not_sign_is_in_no_list(home: Path) -> None:
    """Another one signs beside it, and has a list of its own."""
    other = write_policy(home, **SMALL, name="other", draws={"kind": "fresh"}, accept=["unbounded"])
    newest = Path(funnel.run(other).release)
    found = funnel.audit_release(newest.parent / "latest", home / "private")
    assert found.passed and found.release.name == newest.name
    (told,) = [one.detail for one in found.findings if one.claim == "newest"]
    assert told == "the last of its ledger that is here; its policy does not sign; of others 1 list, of 3 releases"


def test_a_newer_release_of_the_ledger_that_is_not_here_is_named(home: Path) -> None:
    """Where it was taken away, the audit of the folder fails; by the list, that of the older one does."""
    *_, second, third = nights(home)
    shutil.rmtree(home / "releases" / third)
    latest = home / "releases" / "latest"
    latest.unlink()
    latest.symlink_to(second)
    found = funnel.audit_release(latest, home / "private")
    (told,) = [one.detail for one in found.findings if one.claim == "newest"]
    assert told.startswith(f"the last of its ledger that is here (not here: {third}); ")
    found = funnel.audit_release(latest, home / "private", public_key=home / "sign.pub")
    assert {one.claim for one in found.of("failed")} == {"newest"}


def test_a_line_that_an_older_version_wrote_is_signed_as_it_stands(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has fewer keys than are written now."""
    write = schema.write

    def older(record: object) -> bytes:
        raw = write(record)
        return raw.replace(b',"lost":[]', b"") if isinstance(record, Line) else raw

    monkeypatch.setattr(schema, "write", older)
    funnel.run(home / "policy.yaml")
    last = (home / "private" / "ledger.jsonl").read_bytes().splitlines()[-1]
    assert b'"lost"' not in last and b'"identity"' in last
    monkeypatch.undo()
    assert audited(home) == set()
    newest = funnel.audit_release(home / "releases" / "latest", home / "private", public_key=home / "sign.pub")
    assert newest.passed, newest.text()
    (home / "releases" / FEED).unlink()
    funnel.run(home / "policy.yaml")
    assert audited(home) == set()


def test_what_points_at_the_newest_may_lead_on_from_there_and_a_folder_points_at_none(home: Path) -> None:
    """A release that was moved with a link in its place is the newest still; of a copy that says what it is."""
    newest = home / "releases" / nights(home)[-1]
    newest.rename(home / "moved")
    newest.symlink_to(home / "moved")
    assert audited(home) == set()
    (home / "releases" / "latest").unlink()
    shutil.copytree(newest, home / "releases" / "latest")
    found = funnel.audit_history(home / "releases", home / "private", public_key=home / "sign.pub")
    (told,) = found.failed
    assert told.claim == "history-latest" and "it is a folder of its own and points at none" in told.detail
    assert funnel.audit_release(home / "releases" / "latest", home / "private").passed


def test_a_folder_of_releases_by_the_name_of_one_is_asked_for_as_one(home: Path, command) -> None:
    """And whoever asks is told that the name is what is wrong."""
    (home / "releases").rename(home / "latest")
    for told in (["audit", "--private", home / "private"], ["verify", "--key", home / "sign.pub"], ["estimate"]):
        refused = command(told[0], home / "latest", *told[1:])
        assert refused.code == 1
        assert "give a folder of several another one" in refused.err
    (home / "latest").rename(home / "releases")
    assert command("audit", home / "releases", "--private", home / "private").code == 0


def test_a_path_that_is_no_text_breaks_no_claim(home: Path, command) -> None:
    """The engine of an audit takes none; whoever verifies reads bytes."""
    folder = home / "z\udce9"
    (home / "releases").rename(folder)
    refused = command("audit", folder / "latest")
    assert refused.code == 1
    assert "its path holds bytes that are no text" in refused.err
    assert command("verify", folder / "latest", "--key", home / "sign.pub").code == 0


@pytest.mark.parametrize("name", ["report.html", "data.csv", "release.json"])
def test_a_file_of_a_release_beside_releases_is_refused_and_hides_none_of_them(
    home: Path, name: str, command
) -> None:
    """With an index page of that name the folder passed for one release, its newest, and the others for nothing."""
    spoilt(home / "releases" / nights(home)[0])
    assert command("audit", home / "releases", "--private", home / "private").code == 1
    (home / "releases" / name).write_text("<p>Index</p>")
    for told in (["audit", "--private", home / "private"], ["verify", "--key", home / "sign.pub"], ["estimate"]):
        refused = command(told[0], home / "releases", *told[1:])
        assert refused.code == 1
        assert f"{name} lies beside `latest`, as if this folder of releases were one itself" in refused.err
    by_name = command("verify", home / "releases" / "latest", "--key", home / "sign.pub")
    assert by_name.code == 0, by_name.out


@pytest.mark.parametrize("how", ["its files", "a link"])
def test_an_old_release_in_the_place_of_all_is_refused(home: Path, how: str, command) -> None:
    """Whoever may write there alone could have an audit of the folder look at one release, and miss the others."""
    releases, (old, *others) = home / "releases", nights(home)
    for name in others:
        shutil.rmtree(releases / name)
    for name in ("latest", FEED):
        (releases / name).unlink()
    moved = (releases / old).rename(home / old)
    releases.rmdir()
    moved.rename(releases) if how == "its files" else releases.symlink_to(old)
    for private in (home / "private", home / "private" / old):
        refused = command("audit", releases, "--private", private)
        assert refused.code == 1, refused.out
        assert "lies where releases are published, as if this folder of releases were one itself" in refused.err
    shutil.copytree(releases, home / "copy")
    assert funnel.audit_release(home / "copy", home / "private").passed


@pytest.mark.parametrize("left", [["index.html"], ["croissant.json", "datapackage.json"], ["people.csv"], []])
def test_a_release_whose_files_are_gone_is_missed_whatever_else_lies_in_its_folder(home: Path, left: list[str]) -> None:
    own = home / "releases" / nights(home)[0]
    for path in own.iterdir():
        if path.name not in left:
            path.unlink()
    for name in left:
        (own / name).touch()
    found = funnel.audit_history(home / "releases", home / "private")
    assert {one.claim for one in found.failed} == {"history-pruned"}


def test_a_copy_in_which_latest_is_a_folder_is_read_like_any_other(home: Path) -> None:
    """Tools that follow links make such copies."""
    shutil.copytree(home / "releases", home / "copy")
    for what in (home / "copy", home / "copy" / "latest"):
        assert funnel.verify(what, home / "sign.pub").passed
        assert funnel.audit_release(what, home / "private").release == home / "copy" / "latest"
