"""Of whom a release is: its digest held against those of the entries before it, for what the ledger says of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from funnel.data import Joint
from funnel.data.alphabet import Label
from funnel.data.convert import joint_of
from funnel.format import counts, protocol, schema
from funnel.format.counts import CountsFile
from funnel.format.journal import Drawn, Identity, ReleaseEntry, Together
from funnel.format.people import PeopleFile
from funnel.ledger.archive import kept_evidence, kept_protocol
from funnel.ledger.identity import UNCHANGED, Identified, identify
from funnel.ledger.nights import Night, Table
from funnel.ledger.people import PeopleKey, kept_people
from funnel.ledger.records import DrawRecord
from funnel.policy import Policy
from funnel.text import portion, some


@dataclass(frozen=True, eq=False)
class Whose:
    """A release by its name, the digest of who is in it, and the key that this was made with."""

    release: str
    people: PeopleFile
    key: PeopleKey


def known_again(
    policy: Policy,
    own: Sequence[DrawRecord],
    joint: Joint,
    whose: Whose,
    entries: Sequence[ReleaseEntry],
) -> tuple[tuple[DrawRecord, ...], Identity, tuple[str, ...]]:
    """A release's draws with the versions of their columns, what the ledger says of its identity, and what is new."""
    people, release = whose.people, whose.release
    permanent = None if own[0].entity is None else own[0].source
    known = [one.protocol for one in own if one.protocol is not None]
    sha256 = hashlib.sha256(schema.write(people)).hexdigest()
    tonight = Night(
        release, [one.told() for one in own], lambda: known, permanent, release, people.table,
        people.content, lambda: people, sha256, partial(by_value, joint), policy.sensitive, release, own[0].present,
    )  # fmt: skip
    blind = policy.estimate.epsilon is not None
    kept = [_Earlier(policy.private, entry) for entry in entries]
    earlier = [_night(policy.private, policy.to, one) for one in kept]
    found = identify(tonight, earlier, blind=blind, finer=policy.privacy.asks_own)
    lost = tuple(one.entry.release for one in kept if one.is_lost)
    own_rows = people.table, people.content, sha256
    identity = Identity(*own_rows, found.numbered, found.secret, found.assumes, found.seen, lost)
    drawn = tuple(replace(one, since=since) for one, since in zip(own, found.since, strict=True))
    anew = _anew(policy, release, own, found, entries)
    gone = f"of {some(lost, 3)} digest and counts are not both kept, as evidence.json lists them: this release"
    return drawn, identity, (*([f"{gone} goes by neither"] if lost else []), *anew)


def granted(
    identity: Identity, found: Sequence[Together], drawn: Sequence[Drawn], before: Sequence[ReleaseEntry]
) -> Identity:
    """What figures take for granted, the policy's own first: with one of a night before, that rows are what they were.

    So do those about another secret than its own, and those that count draws of other columns than the ones `drawn`:
    neither is in a digest of this release, nor is who was there then.
    """
    named = [one for one in identity.assumes if one not in UNCHANGED]
    own = _versions(drawn)
    unseen = any(one.sensitive != found[0].sensitive for one in found)
    then = unseen or any(_versions(one.drawn) - own for one in before)
    return replace(identity, assumes=(*named, *UNCHANGED)) if then else identity


def _versions(drawn: Sequence[Drawn]) -> set[tuple[str, str]]:
    """The columns of some draws, each with the version that it is of."""
    return {column for one in drawn for column in zip(one.columns, one.since, strict=True)}


def assuming(found: Together, identity: Identity) -> Together:
    """A figure is measured exactly only where nothing is taken for granted."""
    return replace(found, how="unchanged") if found.how == "exact" and identity.assumes else found


def told(identity: Identity) -> dict[str, Any]:
    """What commands print of it as JSON."""
    return {key: schema.as_json(getattr(identity, key)) for key in ("numbered", "assumes", "seen", "lost")}


def assumed(identity: Identity) -> str:
    """What the figures of an entry take for granted, what a sample shows of it, and which nights it does not go by."""
    without = f"; there was no digest and counts of {some(identity.lost, 3)} to go by" if identity.lost else ""
    return f"{_assumed(identity)}{without}"


def _assumed(identity: Identity) -> str:
    if not identity.assumes:
        return "nothing is taken for granted of people or values that digests do not show"
    told = f"takes for granted: {', '.join(identity.assumes)}"
    if (seen := identity.seen) is None:
        return told
    coarse = "of these with the same values, as drawn for, in the columns of both"
    same = "" if seen.unchanged is None else f", {portion(seen.unchanged)} {coarse}"
    return f"{told}; of a sample {portion(seen.people)} were among those read for {seen.since}{same}"


def _anew(
    policy: Policy, release: str, own: Sequence[DrawRecord], found: Identified, entries: Sequence[ReleaseEntry]
) -> Iterator[str]:
    """What a run has to know of people or columns that are not taken for those of earlier releases."""
    again = own[0].entity is not None and any(one.key_fingerprint == own[0].source for one in entries)
    if again and found.numbered == release:
        yield "identifiers are not known to mean the people of earlier releases: all of them may be asked anew"
    known = {column for one in entries for block in one.drawn for column in zip(block.columns, block.base, strict=True)}
    for one, versions in zip(own, found.since, strict=True):
        for name, base, since in zip(one.columns, one.base, versions, strict=True):
            if since == release and (name, base) in known:
                yield f"column {name} is not known to be that of earlier releases: it is taken for another one"
    hidden = hidden_versions(policy.sensitive, entries)
    if hidden and found.secret not in hidden:
        secret = " + ".join(policy.sensitive)
        yield f"the secret {secret} is not known to be that of earlier releases: it is taken for another one"


def hidden_versions(secret: Sequence[str], entries: Sequence[ReleaseEntry]) -> set[str]:
    """The versions of a secret that releases hid, as far as digests show them."""
    return {one.identity.secret for one in entries if one.own.together.sensitive == tuple(secret)}


class _Earlier:
    """What is kept of an earlier release, for what is asked of it: its digest and its counts, or neither."""

    def __init__(self, private: Path, entry: ReleaseEntry) -> None:
        self.entry, self.is_lost, self._private = entry, False, private

    @cached_property
    def _both(self) -> tuple[PeopleFile, bytes] | None:
        people, raw = kept_people(self._private, self.entry), kept_evidence(self._private, self.entry, counts.NAME)
        self.is_lost = people is None or raw is None
        return None if people is None or raw is None else (people, raw)

    def people(self) -> PeopleFile | None:
        """The digest. Raises LedgerError where it cannot be read."""
        return None if self._both is None else self._both[0]

    def counts(self, name: str) -> Table | None:
        """Records by secret and value of a column. Raises LedgerError where they cannot be read."""
        if self._both is None:
            return None
        file = schema.read(CountsFile, counts.NAME, self._both[1])
        return by_value(joint_of(file.secret, file.blocks, file.cells), name)


def _night(private: Path, to: Path, kept: _Earlier) -> Night:
    entry = kept.entry
    told, published = entry.identity, to / entry.release / protocol.NAME
    return Night(
        entry.release, entry.drawn, partial(kept_protocol, private, entry.protocol_sha256, published),
        entry.key_fingerprint, told.numbered, told.table,
        told.content, kept.people, told.people_sha256, kept.counts, entry.own.together.sensitive, told.secret,
        entry.present,
    )  # fmt: skip


def by_value(joint: Joint, name: str) -> Table | None:
    """Records by secret and value of a column; None where no block has it."""
    for index, block in enumerate(joint.blocks):
        if name in block.columns:
            place, found = block.columns.index(name), Counter[tuple[Label, str | None]]()
            for s, x in zip(*joint.table(index).nonzero(), strict=True):
                found[joint.secret.values[s], block.values[x][place]] += int(joint.table(index)[s, x])
            return found
    return None
