"""Making a lock, looking at what another one would change, and whether policy and lock agree.

What `funnel lock` and `funnel lock --check` found is a record for people and for programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from funnel.analyst import ROOM
from funnel.analyst.diff import Difference, compare
from funnel.analyst.diff.sides import of_lock, of_policy
from funnel.draw.keys import Key
from funnel.errors import DrawError, LedgerError, LockError
from funnel.ledger.journal import Journal
from funnel.ledger.view import PromiseCost, promise_costs
from funnel.lock.lock import Lock, cells_digest, parse_lock, protocols_digest, read_lock, write_lock
from funnel.lock.pin import (
    KEEPING,
    changed_terms,
    differing,
    lock_path,
    new_lock,
    unmeasured_bound,
    with_room,
)
from funnel.lock.pinned import keep_counts, keep_names, kept_estimate
from funnel.plan.compiled import Limits, planned
from funnel.plan.domain import domain
from funnel.plan.draw import BATCH
from funnel.plan.estimate import Taking
from funnel.plan.run import execute
from funnel.plan.summary import Summary
from funnel.policy import Policy
from funnel.policy.terms import terms
from funnel.progress import Report, silent
from funnel.release.holding import alone
from funnel.release.keys import load_key


def relock(
    policy: Policy,
    *,
    limits: Limits,
    room: float | None = None,
    force: bool = False,
    progress: Report = silent,
) -> Relocked:
    """Solve the policy's table and write the lock; a different one that is there stays, unless `force`.

    A protocol that uses up epsilon tonight is above it on the first night that differs, so a part `room` of epsilon,
    0 <= room < 1, is left to drift. Nothing is drawn or published. A damaged lock is in the way like any other.
    A private estimate is taken, or entered and drawn, only where it becomes the lock. Raises FunnelError.
    """
    path, old = lock_path(policy), _present(policy, force)
    private, noisy = policy.private, policy.estimate.kind == "private"
    if noisy and old is not None and not force:
        return _as_it_is(policy, path, old, room)
    if room is None:
        room = 0.0 if noisy else ROOM
    with alone(private) if noisy else nullcontext():
        found = execute(
            with_room(policy, room), limits=limits, dry_run=True, judged=False,
            taking=Taking(fresh=True, held=noisy), progress=progress,
        )  # fmt: skip
        return _settled(policy, found, old, room, limits, force=force)


def keep_lock(policy: Policy, *, limits: Limits, progress: Report = silent) -> Relocked:
    """Pin the protocol of the lock that is there once more, under the policy as it stands now.

    Only how much may be told may have changed: nothing is solved, everybody answers as before, and releases state what
    the protocol leaks at the current counts. Raises LockError where it leaks more than the policy allows there.
    """
    old = read_lock(lock_path(policy))
    other = sorted(set(changed_terms(policy, old)) - set(KEEPING))
    said, advice = "", "`funnel lock --force` makes another."
    if old.noisy is not None:
        said = "one over a private estimate never drifts"
    elif other:
        said = f"{', '.join(other)} changed, so its protocol is not of this policy"
        advice = f"A protocol is kept where only {', '.join(KEEPING)} change; else {advice}"
    elif unmeasured_bound(policy, old):
        said = "its bound is for all tables whose beliefs round alike, and a smaller one for tonight's counts alone"
    if said:
        raise LockError("lock-policy", f"the lock cannot be kept: {said}", where=str(lock_path(policy)), advice=advice)
    lock = replace(old, terms=terms(policy))
    found = execute(policy, limits=limits, dry_run=True, judged=False, lock=lock, progress=progress)
    epsilon = policy.privacy.epsilon
    left = 1 - found.measured.own.nats / epsilon if epsilon else 0.0
    room = min(math.floor(max(left, 0) * 1e4), 9_999) / 1e4  # all of it is no room that a new lock could have
    return _settled(policy, found, old, room, limits, force=True, fixed=old.fixed or old.made)


def _settled(
    policy: Policy, found: Summary, old: Lock | None, room: float, limits: Limits, *, force: bool,
    fixed: str | None = None,
) -> Relocked:  # fmt: skip
    """The lock of what was measured, what it changes and costs; written unless another one stays in its place."""
    path, private = lock_path(policy), policy.private
    made = new_lock(policy, found.protection, found.measured, found.estimated, _key(policy), room, found.counted.cells)
    text = replace(made, fixed=fixed).text()
    lock = parse_lock(text)
    refused = found.refused
    costs = promise_costs(policy, Journal(private).releases(), found.composed.promises)
    difference = None
    if old is not None:
        difference = compare(of_lock(old, f"{path} (before)"), of_lock(lock, f"{path} (now)"))
        if dict(old.terms) == dict(lock.terms) and _pins(old) == _pins(lock):
            return Relocked(path, old, difference, same=True, written=False, costs=costs, refused=refused)
    if old is not None and not force:
        return Relocked(path, lock, difference, same=False, written=False, costs=costs, refused=refused)
    if found.estimated is None:
        keep_counts(private, lock.checksum, found.joint)
    _keep_names(policy, private, lock.checksum, limits)
    found.run.source.check_unchanged()  # keys are those of the rows that were counted
    write_lock(path, text)
    return Relocked(path, lock, difference, same=False, written=True, costs=costs, refused=refused)


def _keep_names(policy: Policy, private: Path, checksum: str, limits: Limits) -> None:
    """The keys of the rows that the lock was made from, where rows have any: what came and went is told by them."""
    with planned(policy, limits) as (plan, engine, _):
        if plan.naming is not None:
            engine.prepare(plan.scan.statements)
            keep_names(private, checksum, engine.stream(plan.naming.listing, BATCH))


def _as_it_is(policy: Policy, path: Path, old: Lock, room: float | None) -> Relocked:
    """A lock over a private estimate stays as it is: what another one would pin can only be seen by spending.

    Raises LockError where its noisy counts are not kept, so that no run can use it.
    """
    same = not differing(policy, old) and room in (None, old.room)
    if same:
        kept_estimate(policy.private, old, domain(policy))
    difference = compare(of_lock(old, str(path)), of_policy(policy, policy.file))
    return Relocked(path, old, difference, same=same, written=False)


def agreement(policy: Policy) -> Agreement:
    """Compare a policy with its lock; reads no table. Raises LockError where there is none, or it is damaged."""
    path = lock_path(policy)
    lock = read_lock(path)
    return Agreement(path, lock, tuple(differing(policy, lock)))


def _pins(lock: Lock) -> tuple[object, ...]:
    """What a run takes from a lock."""
    cells = [replace(one, seed=b"") for one in lock.cells]  # another seed alone is no reason to begin anew
    pinned = protocols_digest(lock.protocols), cells_digest(cells), lock.noisy
    return *pinned, lock.mechanism, dict(lock.parameters), lock.shares, lock.budgets


def _present(policy: Policy, force: bool) -> Lock | None:
    """The lock that is there; with `force` a damaged one is as good as none. Raises LockError."""
    try:
        return read_lock(lock_path(policy))
    except LockError as error:
        if error.code != "lock-missing" and not force:
            raise
        return None


def _key(policy: Policy) -> Key | None:
    """The policy's key, for the hash of the counts; None where there is none, or it is not at hand."""
    if policy.draws.kind == "permanent" and policy.draws.key is not None:
        with suppress(DrawError):
            return load_key(policy.draws.key, policy.directory)
    return None


@dataclass(frozen=True, eq=False)
class Relocked:
    """What `funnel lock` found: the lock that the table asks for, the one before it, and what changes for privacy.

    `written` says whether the new one is in place; `same`, that the old one pins the same and stays. `costs` are what
    every promise of the private folder comes to, `refused` what the next run under it would be told, None where it
    would pass.
    """

    path: Path
    lock: Lock
    difference: Difference | None
    same: bool
    written: bool
    costs: tuple[PromiseCost, ...] = ()
    refused: LedgerError | None = None

    def text(self) -> str:
        """For a person."""
        lines = [] if self.difference is None or self.same else [self.difference.text()]
        lines += [] if self.same else [f"cost         {one.text('the first release under it')}" for one in self.costs]
        if self.refused is not None:
            lines.append("; ".join([f"next run     refused: {self.refused.message}", *self._ways()]))
        if self.same:
            lines.append(f"{self.path}: up to date, made {self.lock.made}")
        elif self.written:
            blocks = ", ".join("+".join(one.inputs.columns) for one in self.lock.protocols)
            lines.append(
                f"wrote {self.path}: pins {self.lock.mechanism} for {blocks}; review it, then commit it"
            )
        elif self.lock.noisy is not None:
            lines.append("nothing was estimated: a new lock spends `estimate.epsilon`, unless an estimate stands")
        return "\n".join(lines)

    def _ways(self) -> Iterator[str]:
        """What may help against a refusal: fresh draws have no key, and only the same counts make the same protocol."""
        if self.lock.terms["draws.kind"] == "permanent":
            yield "`funnel key rotate --locked` shows whether a new key would help, and at what cost"
            if self.difference is None and self.lock.room:
                yield (
                    "`funnel lock --force --room 0` pins the protocol of releases made without a lock, where it was "
                    "made for the same counts"
                )

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "lock": str(self.path),
            "checksum": self.lock.checksum,
            "made": self.lock.made,
            "written": self.written,
            "same": self.same,
            "leakage": dict(self.lock.leakage),
            "utility": dict(self.lock.utility),
            "difference": None if self.difference is None else self.difference.as_dict(),
            "costs": [one.as_dict() for one in self.costs],
            "refused": None if self.refused is None else self.refused.as_dict(),
        }


@dataclass(frozen=True, eq=False)
class Agreement:
    """Whether a policy and its lock agree; `differs` are the terms that do not, in words."""

    path: Path
    lock: Lock
    differs: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the lock is of the policy as it stands."""
        return not self.differs

    def text(self) -> str:
        """For a person."""
        if self.ok:
            return f"{self.path}: ok, made {self.lock.made}"
        return "\n".join(
            [f"{self.path}: not of this policy as it stands", *(f"  {one}" for one in self.differs)]
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "lock": str(self.path),
            "ok": self.ok,
            "checksum": self.lock.checksum,
            "made": self.lock.made,
            "differs": list(self.differs),
        }
