"""The stage that finds what to draw with: protocols solved for, or taken from a lock, and what they leak and keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from funnel.data import Joint
from funnel.engine.counting import rare_secrets
from funnel.errors import InternalError
from funnel.ledger.history import Composed, compose
from funnel.ledger.journal import Journal
from funnel.ledger.whose import Whose
from funnel.lock.lock import Lock
from funnel.lock.pin import Pinned, pin, pin_estimate
from funnel.mechanisms.choice import choose
from funnel.mechanisms.product import Protection
from funnel.plan.again import as_last
from funnel.plan.count import Counted
from funnel.plan.population import present_of, settled
from funnel.plan.prepare import Prepared
from funnel.plan.stages import Pin, Solve
from funnel.release.measured import Measured, measure


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
    """With everybody in the blocks that are sanitised, and in the values of a lock."""
    joint = protected.protection.joint
    return replace(counted, populations=settled(counted.policy, run.lock, counted.populations, joint))


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
