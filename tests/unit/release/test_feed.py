"""releases.json: written from the ledger alone, put right by the next run, shared by policies with their own keys."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from funnel.audit.verify.envelope import signed
from funnel.errors import ReleaseError
from funnel.format import schema
from funnel.format.attestation import Envelope
from funnel.format.feed import NAME, FeedFile, inside
from funnel.ledger.journal import Journal
from funnel.release import feed as feeds
from funnel.release.feed import Feed
from funnel.release.publish import Publisher
from funnel.release.sign import SigningKey
from tests.support.ledger import an_entry

from .dying import feed, release
from .test_publish import an_id, assert_tidy, folders, listed

OTHER = SigningKey(bytes([1] * 32))


def lists(to: Path) -> dict[str, Envelope]:
    found = schema.read(FeedFile, NAME, (to / NAME).read_bytes())
    return {inside(one).predicate.policy: one for one in found.lists}


def test_what_is_listed_are_the_hashes_of_the_ledger_whatever_the_old_feed_said(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    signer, (one,) = SigningKey(bytes(32)), lists(to).values()
    lying = json.loads(one.content)
    lying["subject"][0]["digest"]["sha256"] = "f" * 64
    raw = json.dumps(lying, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    (to / NAME).write_bytes(schema.write(FeedFile("funnel-feed/1", (signer.seal(raw),))))
    release(to, private, an_id(2))
    ((policy, new),) = lists(to).items()
    assert inside(new).releases == {entry.release: entry.manifest_sha256 for entry in Journal(private).releases()}
    assert inside(new).predicate.policy == policy == an_entry(1).name
    assert stat.S_IMODE((to / NAME).stat().st_mode) == 0o644


@pytest.mark.parametrize("left", ["nothing", "an earlier one", "something else", "a torn file"])
def test_a_run_that_is_refused_puts_the_feed_right_all_the_same(left: str, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    early = (to / NAME).read_bytes()
    release(to, private, an_id(2))
    whole = (to / NAME).read_bytes()
    (to / NAME).write_bytes({"an earlier one": early, "something else": b"{}\n"}.get(left, whole[:100]))
    if left == "nothing":
        (to / NAME).unlink()
    with pytest.raises(ZeroDivisionError), Publisher(to, private, an_id(3), feed(to, private)):
        raise ZeroDivisionError
    assert (to / NAME).read_bytes() == whole
    assert_tidy(to, private)


@pytest.mark.parametrize("signer", [None, OTHER])
def test_a_refused_run_under_another_key_leaves_the_list_of_those_that_are_there(signer, tmp_path: Path) -> None:
    """A list of the new key, or none, would fit no release that anybody finds; the first one brings it."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    whole, changed = (to / NAME).read_bytes(), replace(feed(to, private), signer=signer)
    with pytest.raises(ZeroDivisionError), Publisher(to, private, an_id(2), changed):
        raise ZeroDivisionError
    assert (to / NAME).read_bytes() == whole
    with Publisher(to, private, an_id(3), changed) as publisher:
        publisher.publish(an_entry(an_id(3)))
    assert [one.signed_by for one in lists(to).values()] == [OTHER.fingerprint] if signer else not (to / NAME).exists()


def test_what_says_the_same_keeps_its_bytes(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    before = (to / NAME).stat()
    feed(to, private).write(to / ".aside")
    assert (to / NAME).stat() == before


def test_two_policies_with_keys_of_their_own_share_a_file(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    own = lists(to)
    entry = replace(an_entry(an_id(2)), name="another")
    elsewhere = tmp_path / "elsewhere"
    with Publisher(to, elsewhere, an_id(2), Feed(to, elsewhere, "another", OTHER)) as publisher:
        publisher.publish(entry)
    both = lists(to)
    assert both.pop("another").signed_by == OTHER.fingerprint
    assert both == own, "what others listed stays as it is, signature and all"
    release(to, private, an_id(3))
    assert {name: one.signed_by for name, one in lists(to).items()} == {
        an_entry(1).name: SigningKey(bytes(32)).fingerprint,
        "another": OTHER.fingerprint,
    }


def test_a_policy_that_stops_signing_has_no_list_any_more(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    with Publisher(to, private, an_id(2), replace(feed(to, private), signer=None)) as publisher:
        publisher.publish(an_entry(an_id(2)))
    assert not (to / NAME).exists()


def test_another_key_signs_the_whole_list_anew(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    replace(feed(to, private), signer=OTHER).write(to / ".aside")
    (one,) = lists(to).values()
    assert inside(one).newest == an_id(1)
    assert signed(NAME, one, OTHER.public)


def test_a_release_that_nobody_saw_is_not_listed_and_one_that_is_missing_is(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    for number in (1, 2, 3):
        release(to, private, an_id(number))
    (to / an_id(1)).rename(tmp_path / "gone")
    (to / an_id(2)).rename(tmp_path / "taken back")
    (private / an_id(2) / "published").unlink()
    feed(to, private).write(to / ".aside")
    assert listed(to) == {an_id(1), an_id(3)}


def test_a_disk_that_fails_at_the_feed_says_that_the_release_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ReleaseError, match="is published, but") as caught, monkeypatch.context() as patch:
        patch.setattr(feeds, "replace_file", full)
        release(to, private, an_id(2))
    assert "releases.json" in (caught.value.advice or "")
    assert listed(to) == {an_id(1)} and (to / "latest").readlink().name == an_id(2)
    release(to, private, an_id(3))
    assert listed(to) == {an_id(1), an_id(2), an_id(3)}
    assert_tidy(to, private)


def test_two_runs_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Another one holds the folder when this one wants to write."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    (to / NAME).unlink()
    descriptor = os.open(to, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    writing = threading.Thread(target=feed(to, private).write, args=(to / ".aside",))
    writing.start()
    replaced = schema.write(FeedFile("funnel-feed/1", (OTHER.seal(_of_another(to, private)),)))
    assert not (to / NAME).exists()
    (to / NAME).write_bytes(replaced)
    os.close(descriptor)
    writing.join()
    assert set(lists(to)) == {"another", an_entry(1).name}


def _of_another(to: Path, private: Path) -> bytes:
    found = feed(to, private)._list(None)
    assert found is not None
    told = inside(found)
    return schema.write(replace(told, predicate=replace(told.predicate, policy="another")))


def test_whoever_holds_the_folder_stops_nobody_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    monkeypatch.setattr(feeds, "_PATIENCE", 0.2)
    descriptor = os.open(to, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (to / NAME).unlink()
    feed(to, private).write(to / ".aside")
    os.close(descriptor)
    assert listed(to) == {an_id(1)}
