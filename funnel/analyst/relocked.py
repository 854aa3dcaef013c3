"""What `funnel lock` and `funnel lock --check` found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.analyst.diff import Difference
from funnel.errors import LedgerError
from funnel.format.journal import Promise
from funnel.lock.lock import Lock


@dataclass(frozen=True)
class PromiseCost:
    """A promise of the private folder as it stands, and after the first release under a lock; nats, None: no bound."""

    promise: Promise
    before: Promise | None

    def text(self) -> str:
        """A line."""
        one = self.promise
        now = "nothing told yet" if self.before is None else f"{_nats(self.before)} now"
        budget = "" if one.budget is None else f", of {one.budget} allowed"
        return (
            f"cost         {one.policy} ({one.together.measure} about {' + '.join(one.together.sensitive)}): {now}, "
            f"{_nats(one)} after the first release under it ({one.together.how}){budget}"
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        one, before = self.promise, None if self.before is None else self.before.together.figure
        return {
            "policy": one.policy, "measure": one.together.measure, "sensitive": list(one.together.sensitive),
            "released": self.before is not None, "now": before, "after": one.together.figure, "budget": one.budget,
            "how": one.together.how,
        }  # fmt: skip


def _nats(one: Promise) -> str:
    return "no finite bound" if one.together.figure is None else f"{one.together.figure:.4f} nats"


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
        lines += [] if self.same else [one.text() for one in self.costs]
        if self.refused is not None:
            lines.append(f"next run     refused: {self.refused.message}; `funnel key rotate --locked` shows whether a "
                         "new key would help, and at what cost")  # fmt: skip
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
