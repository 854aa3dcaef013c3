"""What a run needs before any work begins: its key, its name, its signer, and folders that it may write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from funnel.data.alphabet import folded
from funnel.draw.keys import Key, one_time_key
from funnel.engine import Source
from funnel.errors import DrawError, SourceError
from funnel.files import writing
from funnel.ledger.journal import Journal
from funnel.ledger.rotation import Asked, check_key
from funnel.policy import Policy
from funnel.release.keys import load_key
from funnel.release.naming import last_named, new_release_id, next_time
from funnel.release.publish import Publisher
from funnel.release.recover import check_visible, releases
from funnel.release.sign import SigningKey, load_signing_key


def key_of(policy: Policy) -> Key:
    """The policy's key for permanent draws, or one that is never used again. Raises DrawError."""
    if policy.draws.kind == "fresh" or policy.draws.key is None:
        return one_time_key()
    key = load_key(policy.draws.key, policy.directory)
    check_key(Journal(policy.path(policy.release.private)), asked_by(policy), key.fingerprint)
    return key


def asked_by(policy: Policy) -> Asked:
    """What a policy asks people, by which an earlier release with a key is known to have asked the same."""
    public = (column for block in policy.blocks for column in block.columns)
    return Asked(policy.name, frozenset(map(folded, public)))


def any_key(policy: Policy) -> Key:
    """The policy's key where it is at hand; a dry run draws nothing, and else looks back as under a new key."""
    try:
        return key_of(policy)
    except DrawError as error:
        if error.code == "key-changed":
            raise
        return one_time_key()


def name_release(policy: Policy) -> tuple[str, list[str]]:
    """The name of a release that begins now, after all before it, and what to tell of the clock. Raises LedgerError."""
    to = policy.path(policy.release.to)
    # Before the ledger is read: a rival's release is visible only when its entry is there.
    with writing(to):
        seen = releases(to)
    entries = Journal(policy.path(policy.release.private)).releases()
    check_visible(to, policy.name, seen, entries)
    time, told = next_time(datetime.now(UTC), last_named(to, entries))
    return new_release_id(time), [] if told is None else [told]


def signer_of(policy: Policy) -> SigningKey | None:
    """The key that signs the release, if one is named: better missed now than later. Raises DrawError."""
    named = policy.release.sign
    return None if named is None else load_signing_key(named, policy.directory)


def check_apart(policy: Policy, source: Source) -> None:
    """A pattern that reaches into the release folders would read yesterday's release as tonight's people.

    Raises SourceError.
    """
    for folder in (policy.release.to, policy.release.private):
        inside = policy.path(folder).resolve()
        if any(file.resolve().is_relative_to(inside) for file in source.files):
            raise SourceError(
                "release-path",
                "the pattern of the source also matches files in a release folder",
                where=source.pattern,
                advice="Narrow `source.table`, or release somewhere else.",
            )


@contextmanager
def located(source: Source) -> Iterator[None]:
    """Errors about the table say which one it is, where they know no better place."""
    try:
        yield
    except SourceError as error:
        if error.where is None:
            error.where = source.pattern
            error.args = (error.text(),)
        raise


def publisher_of(policy: Policy, release_id: str) -> Publisher:
    """Where the release is staged until it is whole."""
    return Publisher(policy.path(policy.release.to), policy.path(policy.release.private), release_id)
