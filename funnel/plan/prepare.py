"""What a run settles before it reads a row: its plan, key, name, signer, and folders that it may write to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from funnel.data.alphabet import folded
from funnel.draw.keys import Key, one_time_key
from funnel.engine import Engine, Source, open_engine
from funnel.errors import DrawError
from funnel.files import writing
from funnel.format.journal import ReleaseEntry
from funnel.ledger.budget import accepted, check_known, rebudgeted
from funnel.ledger.journal import Journal
from funnel.ledger.promises import others
from funnel.ledger.rotation import KeyScope, check_key, key_due
from funnel.lock.lock import Lock
from funnel.lock.pin import kept_values
from funnel.plan.also import check_also
from funnel.plan.compiled import Limits, check_apart, compiled, located
from funnel.plan.estimate import Taking
from funnel.plan.population import Wanted
from funnel.plan.stages import Plan
from funnel.policy import Policy
from funnel.release.feed import Feed
from funnel.release.keys import load_key
from funnel.release.naming import last_named, new_release_id, next_time
from funnel.release.publish import Publisher
from funnel.release.recover import check_visible, releases
from funnel.release.sign import SigningKey, load_signing_key


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run before it begins.

    `columns` are those of the source that the plan reads, `release` is the name of what is to be released, `dry` says
    that nothing is; `taking` which private estimate will do. `told` is for the one who runs it. `randomness` is what
    that of the draws comes from: the fingerprint of a permanent key, or the release itself.
    """

    policy: Policy
    plan: Plan
    source: Source
    columns: tuple[str, ...]
    lock: Lock | None
    key: Key
    randomness: str
    release: str
    signer: SigningKey | None
    dry: bool
    taking: Taking
    limits: Limits
    told: tuple[str, ...]


def prepare(
    policy: Policy, limits: Limits, lock: Lock | None, key: Key | None, taking: Taking, *, dry: bool
) -> Prepared:
    """Everything that can be refused before a row is read, is refused here. Raises FunnelError."""
    entries = Journal(policy.private).releases()
    plan, source, columns = compiled(policy, limits, lock, wanted_of(policy, entries))
    found = key or (key_at_hand(policy) if dry else key_of(policy))
    key = found or one_time_key()
    release, told = name_release(policy)
    due = None if found else key_due(Journal(policy.private), asked_by(policy))
    randomness = release if policy.draws.kind == "fresh" else due or key.fingerprint
    signer = None if dry else signer_of(policy)
    if not dry:
        check_also(policy)
    check_apart(policy, source)
    check_known(policy, entries)
    told += rebudgeted(policy, entries) if entries else accepted(policy, entries)
    return Prepared(
        policy, plan, source, columns, lock, key, randomness, release, signer, dry, taking, limits, tuple(told)
    )


def wanted_of(policy: Policy, entries: Sequence[ReleaseEntry]) -> Wanted:
    """What earlier releases of the policy's folder ask of everybody in its source."""
    present = [one.present.predicate for one in entries if one.present is not None]
    secrets = dict.fromkeys(one.together.sensitive for one in others(policy, entries))
    return Wanted(
        tuple(dict.fromkeys(one for one in present if one is not None)),
        tuple(one for one in secrets if one != policy.sensitive),
    )


@contextmanager
def opened(run: Prepared) -> Iterator[tuple[Engine, Publisher | None]]:
    """The engine of a run, with what its lock knows of values; and where it publishes, None where it is dry."""
    with located(run.source), _published(run) as publisher:
        scratch = None if publisher is None else publisher.scratch
        limits = run.limits
        with open_engine(run.source, memory=limits.memory, threads=limits.threads, scratch=scratch) as engine:
            engine.fetch(run.columns)
            for name, values in kept_values(run.policy, run.lock).items():
                engine.provide(name, values)
            yield engine, publisher


@contextmanager
def _published(run: Prepared) -> Iterator[Publisher | None]:
    """Where the release is staged until it is whole; the private folder is held until then."""
    if run.dry:
        yield None
        return
    feed = Feed(run.policy.to, run.policy.private, run.policy.name, run.signer)
    with Publisher(run.policy.to, run.policy.private, run.release, feed) as publisher:
        yield publisher


def key_of(policy: Policy) -> Key:
    """The policy's key for permanent draws, or one that is never used again. Raises DrawError."""
    if policy.draws.kind == "fresh" or policy.draws.key is None:
        return one_time_key()
    key = load_key(policy.draws.key, policy.directory)
    check_key(Journal(policy.private), asked_by(policy), key.fingerprint)
    return key


def asked_by(policy: Policy) -> KeyScope:
    """What a policy asks people, by which an earlier release with a key is known to have asked the same."""
    public = (column for block in policy.blocks for column in (*block.labels, *block.columns))
    return KeyScope(policy.name, frozenset(map(folded, public)))


def key_at_hand(policy: Policy) -> Key | None:
    """The policy's key, None where it is not at hand: a dry run, which draws nothing, looks back by its name alone."""
    try:
        return key_of(policy)
    except DrawError as error:
        if error.code == "key-changed":
            raise
        return None


def name_release(policy: Policy) -> tuple[str, list[str]]:
    """The name of a release that begins now, after all before it, and what to tell of the clock. Raises LedgerError."""
    # Before the ledger is read: a rival's release is visible only when its entry is there.
    with writing(policy.to):
        seen = releases(policy.to)
    entries = Journal(policy.private).releases()
    check_visible(policy.to, policy.name, seen, entries)
    time, told = next_time(datetime.now(UTC), last_named(policy.to, entries))
    return new_release_id(time), [] if told is None else [told]


def signer_of(policy: Policy) -> SigningKey | None:
    """The key that signs the release, if one is named: better missed now than later. Raises DrawError."""
    named = policy.release.sign
    return None if named is None else load_signing_key(named, policy.directory)
