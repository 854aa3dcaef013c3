"""The stage that finds what to draw with: protocols solved for, or taken from a lock, and what they leak and keep.

Where the counts and the terms are those of the last release, its protocol is taken once more. A search that the clock
ends may find another protocol at the same counts. Drawn from, it would tell more about the same people than the first
one again, and gain nothing that anybody needs: so the first one is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from funnel.data import AnyProtocol, Joint, Protocol
from funnel.data.convert import alphabet_record, cells_of, grid, known_file
from funnel.data.joint import IntArray
from funnel.engine.counting import rare_secrets
from funnel.errors import InternalError, LedgerError
from funnel.files import read_plain
from funnel.format import counts, known, manifest, schema, terms
from funnel.format.canonical import FormatError
from funnel.format.journal import ReleaseEntry
from funnel.ledger.archive import kept_evidence, kept_protocol
from funnel.ledger.history import Composed, compose
from funnel.ledger.journal import Journal
from funnel.ledger.people import by_others
from funnel.ledger.whose import Whose
from funnel.lock.lock import Lock
from funnel.lock.pin import Pinned, pin, pin_estimate
from funnel.mechanisms.base import Totals
from funnel.mechanisms.choice import choose
from funnel.mechanisms.product import Protection
from funnel.plan.count import Counted
from funnel.plan.population import present_of, settled
from funnel.plan.prepare import Prepared
from funnel.plan.stages import Pin, Solve
from funnel.policy import Policy
from funnel.policy.terms import terms_file
from funnel.release.measured import Measured, measure

_OF_THE_PROMISE = (
    "entity", "filter", "missing", "sensitive", "public", "wide", "notion", "epsilon", "parameters", "split",
    "estimate",
)  # fmt: skip
"""The terms by which a protocol is made; what is left out changes nothing of it."""
_OF_THE_SEARCH = ("time_limit", "gap")
"""Options of a mechanism that say when to stop."""


@dataclass(frozen=True, eq=False)
class Protected:
    """The protocols of a release, and what it leaks and keeps; where they are a lock's, also what it pins."""

    protection: Protection
    measured: Measured
    pinned: Pinned | None = None


def protect(
    stage: Solve | Pin, counted: Counted, lock: Lock | None, progress: Callable[[str], None]
) -> Protected:
    """Solve for protocols that keep the policy's promise, or measure those of a lock. Raises FunnelError."""
    progress(stage.title)
    if isinstance(stage, Solve):
        found = as_last(counted.policy, _solved(stage, counted, progress))
        return Protected(found, measure(found))
    if lock is None:
        raise InternalError("a run without a lock is to take its protocol")
    pinned = _pinned(counted, lock)
    return Protected(pinned.protection, measure(pinned.protection), pinned)


def _solved(stage: Solve, counted: Counted, progress: Callable[[str], None]) -> Protection:
    policy, joint = counted.policy, counted.joint
    minimum = policy.estimate.minimum
    return choose(
        joint,
        policy.privacy,
        policy.mechanism,
        stage.shares,
        lambda what: progress(f"{stage.title}: {what}"),
        minimum=minimum,
        secret_rare=rare_secrets(joint, minimum) > 0,
        beliefs=stage.beliefs,
    )


def _pinned(counted: Counted, lock: Lock) -> Pinned:
    if counted.estimated is None:
        return pin(counted.policy, lock, counted.joint)
    return pin_estimate(counted.policy, lock, counted.estimated)


@dataclass(frozen=True, eq=False)
class Settled:
    """What is known of a release before it is drawn: the results of the stages so far."""

    run: Prepared
    counted: Counted
    protected: Protected
    composed: Composed

    @property
    def protection(self) -> Protection:
        """The protocols."""
        return self.protected.protection

    @property
    def joint(self) -> Joint:
        """The counts that the protocols were made for, in the blocks that are sanitised."""
        return self.protection.joint

    @property
    def rows(self) -> int:
        """Number of records; under a lock, of those that its protocols have values for."""
        return self.joint.rows if self.counted.estimated is None else self.counted.rows


def with_everybody(run: Prepared, counted: Counted, protected: Protected) -> Counted:
    """With everybody in the blocks that are sanitised, and in the values of a lock.

    Not where earlier releases know people by another column: who of them is absent is then not told by rows.
    """
    policy, joint = counted.policy, protected.protection.joint
    found = settled(policy, run.lock, counted.populations, joint)
    if found and by_others(policy.private, Journal(policy.private).releases(), policy.source.entity):
        found = ()
    return replace(counted, populations=found)


def look_back(
    run: Prepared, counted: Counted, protection: Protection, whose: Whose, progress: Callable[[str], None]
) -> Composed:
    """What this release and all before it give away together, before anything is drawn; `whose` says of whom it is."""
    progress("measure all releases together")
    policy = counted.policy
    entries = Journal(policy.private).releases()
    unseen = 0 if counted.estimated else counted.joint.rows - protection.joint.rows
    present = present_of(run.plan.everybody, counted.populations, protection.joint, unseen)
    everybody, source = counted.populations, run.randomness
    return compose(policy, protection, run.release, source, entries, whose, counted.cells, present, everybody)


def as_last(policy: Policy, found: Protection) -> Protection:
    """`found`, with the protocols of the policy's last release where that was at the same counts and terms.

    Those of its lock too, which left room to drift and may keep less: to ask everybody anew would tell more of them.
    But not where something is said of a protocol that holds of one for these counts only, and not of this one.
    What bounds every protocol of the notion at these counts stays as it was found, prices of totals among it.
    """
    last = next((one for one in reversed(Journal(policy.private).releases()) if one.name == policy.name), None)
    if last is None or not _alike(policy, found, last):
        return found
    kept = _kept(policy.private, last)
    if kept is None or len(kept) != len(found.solved):
        return found
    if [one.fingerprint for one in kept] == [one.fingerprint for one in found.protocols]:
        return found
    # What it was made for nobody knows: that release may itself have taken a lock's once more.
    under = "" if last.lock is None else ", under its lock,"
    how = f"the protocol of {last.release}, which was drawn from{under} at the same counts"
    single, tables = len(kept) == 1, [found.joint.table(index).sum(axis=0) for index in range(len(kept))]
    solved = tuple(
        replace(
            one if single else one.unproven(),
            protocol=protocol,
            how=how,
            totals=_off(one.totals, protocol, counted),
        )
        for one, protocol, counted in zip(found.solved, kept, tables, strict=True)
    )
    again = replace(found, solved=solved)
    return _told(again) if again.holds and _as_claimed(policy, again, last) else found


def _as_claimed(policy: Policy, again: Protection, last: ReleaseEntry) -> bool:
    """Whether all holds of it that is said of a protocol which was made for these counts, beside what is measured.

    That of a lock was made for others, perhaps of another epsilon; what `auto` chose then may be another mechanism.
    """
    from funnel.optimise.rounding.totals import NEAR

    totals = (one.totals.deviation for one in again.solved if one.totals is not None)
    if any(off is not None and off > NEAR for off in totals):
        return False
    if last.lock is not None:
        return again.mechanism.any_form and again.candidates is None and policy.estimate.beliefs is None
    return again.candidates is None or (_made_by(policy, last) == again.mechanism.kind and _keeps_most(again))


def _made_by(policy: Policy, last: ReleaseEntry) -> str | None:
    """The mechanism of a release; None where that is not there any more, or is another one than was entered."""
    try:
        raw = read_plain(policy.to / last.release / manifest.NAME)
        if hashlib.sha256(raw).hexdigest() != last.manifest_sha256:
            return None
        return schema.read(manifest.Manifest, manifest.NAME, raw).mechanism
    except (OSError, FormatError):
        return None


def _keeps_most(again: Protection) -> bool:
    """Whether none of the other candidates keeps more."""
    kept = (one.normalised for one in again.candidates or () if one.mechanism != again.mechanism.kind)
    return all(one is None or one <= again.normalised for one in kept)


def _off(told: Totals | None, protocol: AnyProtocol, counts: IntArray) -> Totals | None:
    """What is told of totals, with the largest deviation by this protocol at these counts (a,)."""
    if told is None or told.deviation is None or not isinstance(protocol, Protocol):
        return told
    sums = protocol.weights[:, 0, :].astype(object) @ counts.astype(object)
    expected, whole = dict(zip(protocol.outputs.values, sums, strict=True)), 1 << protocol.bits
    off = (
        abs(Fraction(int(expected.get(x, 0)), whole) - int(n))
        for x, n in zip(protocol.inputs.values, counts, strict=True)
    )
    return replace(told, deviation=float(max(off)))


def _told(again: Protection) -> Protection:
    """With what the candidate that was chosen keeps by these protocols."""
    if again.candidates is None:
        return again
    used = again.mechanism.kind
    told = tuple(
        replace(one, normalised=again.normalised, faithful=again.faithful) if one.mechanism == used else one
        for one in again.candidates
    )
    return replace(again, candidates=told)


def _kept(private: Path, last: ReleaseEntry) -> tuple[Any, ...] | None:
    """The protocols of an entry; None where they are lost or damaged."""
    try:
        return kept_protocol(private, last.protocol_sha256)
    except LedgerError:
        return None


def _alike(policy: Policy, found: Protection, last: ReleaseEntry) -> bool:
    """Whether a release was made for the same counts, by the same terms and mechanism; not where nobody knows."""
    finer = found.joint.finer
    then = {name: kept_evidence(policy.private, last, name) for name in (terms.NAME, counts.NAME, known.NAME)}
    if finer is not None and then[known.NAME] != schema.write(known_file(finer)):
        return False
    try:
        asked = schema.read(terms.TermsFile, terms.NAME, then[terms.NAME] or b"")
        counted = schema.read(counts.CountsFile, counts.NAME, then[counts.NAME] or b"")
    except FormatError:
        return False
    return _terms(asked) == _terms(terms_file(policy)) and _same(counted, found.joint)


def _terms(asked: terms.TermsFile) -> dict[str, Any]:
    """What of the terms a protocol follows from."""
    told = asdict(asked)
    mechanism = {key: value for key, value in asked.mechanism.items() if key not in _OF_THE_SEARCH}
    return {name: told[name] for name in _OF_THE_PROMISE} | {"mechanism": mechanism}


def _same(counted: counts.CountsFile, joint: Joint) -> bool:
    alphabets = alphabet_record(joint.secret), tuple(map(alphabet_record, joint.blocks))
    return (counted.secret, counted.blocks) == alphabets and counted.cells == grid(cells_of(joint))
