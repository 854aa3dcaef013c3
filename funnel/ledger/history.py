"""A release looked at together with all that the ledger tells of: what was drawn from what, and what it adds up to.

In wide blocks the same columns of the same people are told by the same cells, release after release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from funnel.cells.cells import Cells
from funnel.data import AnyProtocol
from funnel.data.alphabet import folded
from funnel.data.population import Population
from funnel.errors import LedgerError
from funnel.format import manifest
from funnel.format.journal import Drawn, Identity, Present, Promise, ReleaseEntry, Together
from funnel.format.terms import Attribute
from funnel.ledger.archive import kept_protocols
from funnel.ledger.presence import who_is_in
from funnel.ledger.promises import Tonight, measured
from funnel.ledger.records import DrawRecord, by_name, drawn, of_cells, of_one_release, versioned
from funnel.ledger.stated import own_figure
from funnel.ledger.unlike import Frame
from funnel.ledger.whose import Whose, known_again
from funnel.measure.figures import round_up
from funnel.mechanisms.product import Protection
from funnel.policy import Policy
from funnel.policy.terms import terms_file

Kept = Mapping[str, tuple[AnyProtocol, ...] | None]
"""The blocks of protocols, by the hash of their file."""
MOST_PROTOCOLS = 400
"""Different protocols in a ledger that are composed exactly; beyond, nothing is read and the ceiling is stated."""


@dataclass(frozen=True, eq=False)
class Composed:
    """What the ledger will say of a release: its draws, every promise after it, its own first, and it `alone`.

    `alone` is about the records that are in it, the promises are about everybody; `frames` say in what all releases
    so far are unlike, its own last.

    Nats, rounded up; None where infinite.
    """

    drawn: tuple[DrawRecord, ...]
    promises: tuple[Promise, ...]
    alone: float | None
    identity: Identity
    whose: Whose
    told: tuple[str, ...]
    frames: tuple[Frame, ...]

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
        how = found.stated(Fraction(1, 10**decimals))
        return manifest.Composed(figure, how, found.releases, self.identity.assumes)


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
    known = by_name(terms_file(policy))
    own = tuple(_record(one, known, cells, source, entity, present) for one in protection.protocols)
    check_cells(policy, cells, entries, known)
    own, identity, told = known_again(policy, own, protection.joint, whose, entries)
    drawn = [versioned(one, identity.numbered) for one in own]
    earlier = _earlier(entries, _kept(policy, entries))
    noisy, blocks = policy.estimate.epsilon is not None, tuple(one.told() for one in own)
    mine = Frame(policy.sensitive, identity, entity, present, noisy, blocks, policy.release.identify)
    frames = *map(Frame.of, entries), mine
    promises, identity = measured(
        Tonight(policy, protection, release, drawn, earlier, everybody, identity, frames), entries
    )
    return Composed(own, promises, own_figure(protection.leakage, protection.notion), identity, whose, told, frames)


def _record(
    protocol: AnyProtocol, known: Mapping[str, Attribute], cells: Sequence[Cells], source: str, entity: str | None,
    present: Present | None,
) -> DrawRecord:  # fmt: skip
    secret = protocol.secret.columns if protocol.secret else None
    told = drawn(protocol.inputs.columns, protocol.inputs.values, secret, known, cells)
    return DrawRecord.of(told, source, entity, protocol, present)


def _kept(policy: Policy, entries: Sequence[ReleaseEntry]) -> Kept:
    """The protocols of a ledger by their hash, as far as they are left; none where there are too many."""
    few = len({entry.protocol_sha256 for entry in entries}) <= MOST_PROTOCOLS
    return kept_protocols(policy.private, policy.to, entries) if few else {}


def _earlier(entries: Sequence[ReleaseEntry], protocols: Kept) -> list[DrawRecord]:
    """Every block that a ledger tells of, but once where permanent draws only repeat it."""
    found: dict[object, DrawRecord] = {}
    for entry in entries:
        source = entry.key_fingerprint if entry.draws == "permanent" else entry.release
        parts = protocols.get(entry.protocol_sha256) or (None,) * len(entry.drawn)
        draws = [
            versioned(DrawRecord.of(told, str(source), entry.entity, protocol, entry.present), entry.identity.numbered)
            for told, protocol in zip(entry.drawn, parts, strict=True)
        ]
        for place, one in enumerate(of_one_release(draws)):
            key = entry.protocol_sha256, place, one.source, one.entity, one.meaning, one.columns, who_is_in(one)
            found.setdefault(key, one)
    return list(found.values())


def check_cells(
    policy: Policy, cells: Sequence[Cells], entries: Sequence[ReleaseEntry], known: Mapping[str, Attribute]
) -> None:
    """No earlier release of the ledger told columns of these wide blocks by other cells. Raises LedgerError.

    Two partitions of the same columns tell where they overlap, which no bound on either counts; and two fillings of one
    partition tell counts that each has put together with others.
    """
    for one in cells:
        for entry in entries:
            if any(_other_cells(one, told, known) for told in entry.drawn):
                raise LedgerError(
                    "cells-changed",
                    f"release {entry.release} of {entry.name} told some of these columns by other cells, or filled "
                    "those otherwise, and both together tell more of the same people than either says",
                    where=policy.file,
                    advice="Nothing was published. Wide blocks are released again under the lock of their first "
                    "release (`funnel lock` before it, and `run --locked`); where that had none, from the same counts "
                    "and with the same `estimate.minimum` alone. Other people's are released in another private "
                    "folder.",
                )


def _other_cells(one: Cells, told: Drawn, known: Mapping[str, Attribute]) -> bool:
    """Whether a draw told a column of a wide block, and not by its cells, whatever columns were drawn beside it."""
    shared = {folded(column.name) for column in one.columns} & set(map(folded, told.inside))
    return bool(shared) and of_cells(one, known) not in told.meaning
