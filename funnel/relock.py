"""Making a lock, looking at what another one would change, and whether policy and lock agree."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.changes import Difference, compare
from funnel.changes.sides import of_lock
from funnel.errors import DrawError, LockError
from funnel.execute import Limits, Report, execute, silent
from funnel.locking import differing, lock_path, new_lock, refuse_private, with_room
from funnel.policy import Policy
from funnel.release.keys import Key, load_key
from funnel.release.lock import Lock, keep_counts, parse_lock, protocols_digest, read_lock, write_lock

ROOM = 0.05
"""Part of epsilon that a lock leaves to drift, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Relocked:
    """What `funnel lock` found: the lock that the table asks for, the one before it, and what changes for privacy.

    `written` says whether the new one is in place; `same`, that the old one pins the same and stays.
    """

    path: Path
    lock: Lock
    difference: Difference | None
    same: bool
    written: bool

    def text(self) -> str:
        """For a person."""
        lines = [] if self.difference is None or self.same else [self.difference.text()]
        if self.same:
            lines.append(f"{self.path}: up to date, made {self.lock.made}")
        elif self.written:
            blocks = ", ".join("+".join(one.inputs.columns) for one in self.lock.protocols)
            lines.append(
                f"wrote {self.path}: pins {self.lock.mechanism} for {blocks}; review it, then commit it"
            )
        return "\n".join(lines)

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


def relock(
    policy: Policy, *, limits: Limits, room: float = ROOM, force: bool = False, progress: Report = silent
) -> Relocked:
    """Solve the policy's table and write the lock; a different one that is there stays, unless `force`.

    A protocol that uses up epsilon tonight is above it on the first night that differs, so a part `room` of epsilon,
    0 <= room < 1, is left to drift. Nothing is drawn or published. A damaged lock is in the way like any other.
    Raises FunnelError.
    """
    refuse_private(policy)
    path, old = lock_path(policy), _present(policy, force)
    summary = execute(with_room(policy, room), limits=limits, dry_run=True, progress=progress)
    made = new_lock(policy, summary.protection, summary.measured, _key(policy), room)
    text = made.text()
    lock = parse_lock(text)
    if old is not None:
        difference = compare(of_lock(old, f"{path} (before)"), of_lock(lock, f"{path} (now)"))
        if dict(old.terms) == dict(lock.terms) and _pins(old) == _pins(lock):
            return Relocked(path, old, difference, same=True, written=False)
        if not force:
            return Relocked(path, lock, difference, same=False, written=False)
    else:
        difference = None
    keep_counts(policy.path(policy.release.private), lock.checksum, summary.joint)
    write_lock(path, text)
    return Relocked(path, lock, difference, same=False, written=True)


def agreement(policy: Policy) -> Agreement:
    """Compare a policy with its lock; reads no table. Raises LockError where there is none, or it is damaged."""
    path = lock_path(policy)
    lock = read_lock(path)
    return Agreement(path, lock, tuple(differing(policy, lock)))


def _pins(lock: Lock) -> tuple[object, ...]:
    """What a run takes from a lock."""
    return protocols_digest(lock.protocols), lock.mechanism, dict(lock.parameters), lock.shares, lock.budgets


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
