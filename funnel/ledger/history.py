"""A release looked at together with all that the ledger tells of: what was drawn from what, and what it adds up to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from funnel.cells.cells import Cells
from funnel.cells.record import meaning
from funnel.data import AnyProtocol
from funnel.data.alphabet import folded
from funnel.data.population import Population
from funnel.format import manifest
from funnel.format.journal import Identity, Present, Promise, ReleaseEntry, Together
from funnel.ledger.archive import kept_protocols
from funnel.ledger.partitions import check_cells
from funnel.ledger.presence import seen_from, who_is_in
from funnel.ledger.promises import Tonight, measured
from funnel.ledger.records import DrawRecord, versioned
from funnel.ledger.stated import own_figure
from funnel.ledger.whose import Whose, known_again
from funnel.measure.figures import round_up
from funnel.mechanisms.product import Protection
from funnel.policy import Policy
from funnel.policy.columns import Attribute

Kept = Mapping[str, tuple[AnyProtocol, ...] | None]
"""The blocks of protocols, by the hash of their file."""
MOST_PROTOCOLS = 400
"""Different protocols in a ledger that are composed exactly; beyond, nothing is read and the ceiling is stated."""


@dataclass(frozen=True, eq=False)
class Composed:
    """What the ledger will say of a release: its draws, every promise after it, its own first, and it `alone`.

    `alone` is about the records that are in it, the promises are about everybody.

    Nats, rounded up; None where infinite.
    """

    drawn: tuple[DrawRecord, ...]
    promises: tuple[Promise, ...]
    alone: float | None
    identity: Identity
    whose: Whose
    told: tuple[str, ...]

    @property
    def together(self) -> Together:
        """What all releases together tell in the policy's own measure."""
        return self.promises[0].together

    @property
    def present(self) -> Present | None:
        """Who is in it, None where that is everybody."""
        return self.drawn[0].present

    def stated(self, decimals: int) -> manifest.Composed | None:
        """What the manifest says; None of the first release where nobody is absent: it is all there is."""
        found = self.together
        if found.releases == 1 and self.present is None:
            return None
        figure = None if found.figure is None else round_up(found.figure, decimals)
        return manifest.Composed(figure, found.how, found.releases, self.identity.assumes)


def compose(
    policy: Policy,
    protection: Protection,
    release: str,
    source: str,
    entries: Sequence[ReleaseEntry],
    whose: Whose,
    cells: Sequence[Cells] = (),
    present: Present | None = None,
    everybody: Sequence[Population] = (),
) -> Composed:
    """Measure a release together with those that the ledger's `entries` tell of, in terms of every promise.

    `source` is what the draws' randomness comes from: the key's fingerprint, or the release where they are fresh.
    `cells` are those of its wide blocks, `whose` says of whom it is; `present` says who is in it, None where that is
    everybody, and `everybody` is the whole source by every secret that is promised about, the policy's own first, as
    far as it was counted. Raises LedgerError where a protocol that was kept is damaged, or the same columns were
    released by other cells.
    """
    entity = policy.source.entity if policy.draws.kind == "permanent" else None
    records = (_record(policy, protocol, source, entity, cells) for protocol in protection.protocols)
    own = tuple(replace(one, present=present) for one in records)
    check_cells(policy, own, entries)
    own, identity, told = known_again(policy, own, protection.joint, whose, entries)
    drawn, kept = [versioned(one, identity.numbered) for one in own], _kept(policy, entries)
    earlier, again = _earlier(entries, kept, identity.table), _repeated(own, entries, kept, identity)
    promises, identity = measured(
        Tonight(policy, protection, release, drawn, earlier, everybody, identity, again), entries
    )
    return Composed(own, promises, own_figure(protection.leakage, protection.notion), identity, whose, told)


def _record(
    policy: Policy, protocol: AnyProtocol, source: str, entity: str | None, cells: Sequence[Cells]
) -> DrawRecord:
    reads = protocol.secret.columns if protocol.secret else None
    columns = protocol.inputs.columns
    known = {folded(one.name): one for block in policy.blocks for one in block.attributes}
    wide = {one.name: one for one in cells}
    told = [
        (meaning(wide[column]),) * 2
        if column in wide
        else _hashes(known[folded(column)], {value[place] for value in protocol.inputs.values})
        for place, column in enumerate(columns)
    ]
    inside = tuple(one.name for column in columns if column in wide for one in wide[column].columns)
    hashes = (tuple(means for means, _ in told), tuple(base for _, base in told))
    return DrawRecord(columns, *hashes, reads, source, entity, protocol, inside)


def _hashes(attribute: Attribute, values: set[str | None]) -> tuple[str, str]:
    """What a column's values stand for, and the same but for which are named."""
    return _meaning(attribute, values), _base(attribute)


def _meaning(attribute: Attribute, values: set[str | None]) -> str:
    """A short hash of what a column's values stand for: the same text may mean other people elsewhere.

    Bins, rounding, clipping, groups; and where rare or unseen values are one, which ones are not.
    """
    told = attribute.model_dump(mode="json", exclude={"name", "unseen"}, exclude_defaults=True)
    if attribute.follows_table or attribute.unseen == "other":
        told["values"] = sorted(json.dumps(value) for value in values)
    return _short(told)


def _base(attribute: Attribute) -> str:
    """The same but for which values are not put under `other`."""
    without = {"name", "unseen", "top", "rare"}
    return _short(attribute.model_dump(mode="json", exclude=without, exclude_defaults=True))


def _short(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _kept(policy: Policy, entries: Sequence[ReleaseEntry]) -> Kept:
    """The protocols of a ledger by their hash, as far as they are left; none where there are too many."""
    private, to = policy.path(policy.release.private), policy.path(policy.release.to)
    few = len({entry.protocol_sha256 for entry in entries}) <= MOST_PROTOCOLS
    return kept_protocols(private, to, entries) if few else {}


def _repeated(
    own: Sequence[DrawRecord], entries: Sequence[ReleaseEntry], protocols: Kept, identity: Identity
) -> bool:
    """Whether an earlier release drew all of it, by one key, of the same rows: then the answers are that one's."""

    def drew(entry: ReleaseEntry) -> bool:
        there = entry.identity
        if (there.content, there.numbered) != (identity.content, identity.numbered):
            return False
        blocks = protocols.get(entry.protocol_sha256) or ()
        return len(blocks) == len(own) and all(
            (one.told(), one.present, one.source, one.entity)
            == (told, entry.present, entry.key_fingerprint, entry.entity)
            and one.protocol is not None
            and one.protocol.fingerprint == block.fingerprint
            for one, told, block in zip(own, entry.drawn, blocks, strict=True)
        )

    return own[0].entity is not None and any(entry.draws == "permanent" and drew(entry) for entry in entries)


def _earlier(entries: Sequence[ReleaseEntry], protocols: Kept, table: str) -> list[DrawRecord]:
    """Every block that a ledger tells of, but once where permanent draws only repeat it; seen from a table."""
    found: dict[object, DrawRecord] = {}
    for entry in entries:
        source = entry.key_fingerprint if entry.draws == "permanent" else entry.release
        parts = protocols.get(entry.protocol_sha256) or (None,) * len(entry.drawn)
        for place, (told, protocol) in enumerate(zip(entry.drawn, parts, strict=True)):
            one = DrawRecord(
                told.columns, told.meaning, told.base, told.reads, str(source), entry.entity, protocol, told.inside,
                seen_from(table, entry), told.since,
            )  # fmt: skip
            one = versioned(one, entry.identity.numbered)
            key = (
                entry.protocol_sha256,
                place,
                one.source,
                one.entity,
                one.meaning,
                one.columns,
                who_is_in(one),
            )
            found.setdefault(key, one)
    return list(found.values())
