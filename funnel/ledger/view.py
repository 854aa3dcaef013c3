"""The ledger as a person reads it: what was released, what it gives away together, what is left of the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funnel.ledger.archive import kept_protocol
from funnel.ledger.journal import Ledger
from funnel.ledger.spending import Spent, spent
from funnel.notions import NOTIONS
from funnel.policy import Policy

_HEAD = ("#", "release", "notion", "epsilon", "leakage", "composed", "added", "how", "draws", "key", "lock")
_NUMBERS = {"#", "epsilon", "leakage", "composed", "added"}


@dataclass(frozen=True)
class Line:
    """One release: leakage in nats, None where infinite or (composed, of the first ledgers) not measured.

    `how` is None where the composed leakage was not measured; `added` is what the release added to it. `lock` is the
    checksum of the lock that it was made under, None where it was solved for, or entered by an earlier version.
    """

    number: int
    release: str
    written: str
    name: str
    notion: str
    measure: str
    sensitive: tuple[str, ...]
    epsilon: float
    leakage: float | None
    composed: float | None
    added: float | None
    how: str | None
    varying: float | None
    draws: str
    key: str | None
    lock: str | None
    protocol_kept: bool

    def cells(self) -> list[str]:
        """As columns of text."""
        measured = self.how is not None
        return [
            str(self.number), self.release, self.notion, f"{self.epsilon:g}", _nats(self.leakage),
            _nats(self.composed) if measured else "not measured",
            "" if self.added is None else _nats(self.added), self.how or "", self.draws, (self.key or "")[:8],
            (self.lock or "")[:8],
        ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Account:
    """All releases of one ledger, seen from a policy: `left` nats of its `budget`, None where it has none."""

    policy: Policy
    path: Path
    lines: tuple[Line, ...]
    estimates: Spent = field(default_factory=Spent.nothing)

    @property
    def latest(self) -> Line | None:
        """The latest release whose composed leakage is in the policy's own measure, about the same secret."""
        asked = (self.policy.privacy.measure, self.policy.sensitive)
        return _latest(self.lines, *asked)

    @property
    def left(self) -> float | None:
        """What is left of the budget, in nats."""
        if self.policy.budget is None:
            return None
        if self.latest is None:
            return self.policy.budget
        if self.latest.composed is None:
            return 0.0
        return max(0.0, round(self.policy.budget - self.latest.composed, 4))

    def as_dict(self) -> dict[str, Any]:
        """The object that `ledger --json` prints."""
        latest = self.latest
        return {
            "ledger": str(self.path),
            "name": self.policy.name,
            "measure": self.policy.privacy.measure,
            "releases": [vars(one) for one in self.lines],
            "composed": None if latest is None else latest.composed,
            "how": None if latest is None else latest.how,
            "varying": None if latest is None else latest.varying,
            "budget": self.policy.budget,
            "left": self.left,
            "estimates": {"number": self.estimates.estimates, "spent": float(self.estimates.epsilon)},
        }

    def text(self) -> str:
        """A table, and what it comes to."""
        if not self.lines:
            return f"no release yet in {self.path}" + self._of_budget("\n") + self._spent()
        table = [list(_HEAD), *(one.cells() for one in self.lines)]
        wide = [max(map(len, column)) for column in zip(*table, strict=True)]
        rows = [
            "  ".join(
                cell.rjust(size) if name in _NUMBERS else cell.ljust(size)
                for name, cell, size in zip(_HEAD, row, wide, strict=True)
            ).rstrip()
            for row in table
        ]
        whole = f"ledger     {len(self.lines):,} in {self.path}, an unbroken chain"
        return (
            "\n".join([*rows, whole, *self._composed()])
            + self._of_budget("\n")
            + self._spent()
            + self._lost()
        )

    def _composed(self) -> list[str]:
        """Two lines: a record whose values stay, and one whose values change."""
        latest = self.latest
        if latest is None:
            return []
        varying = (
            "no finite bound for a person whose values change"
            if latest.varying is None
            else f"at most {latest.varying:.4f} nats for each value, to who knows when they changed"
        )
        return [
            f"composed   {_nats(latest.composed)} nats of {latest.measure} ({latest.how}) about a person whose values "
            "stay the same",
            f"changing   {varying}",
        ]

    def _of_budget(self, start: str) -> str:
        if self.policy.budget is None:
            return ""
        return f"{start}budget     {self.policy.budget:g} nats, of which {self.left:.4f} are left"

    def _spent(self) -> str:
        """What private estimates took, those of runs that published nothing among them."""
        found, budget = self.estimates, self.policy.estimate.budget
        if not found.estimates:
            return ""
        allowed = "" if budget is None else f" of {budget:g}"
        return f"\nestimates  {found.estimates:,} private ones, {float(found.epsilon):g} nats spent{allowed}"

    def _lost(self) -> str:
        lost = [one.release for one in self.lines if not one.protocol_kept]
        if not lost:
            return ""
        return f"\nmissing    the protocols of {len(lost):,} releases: {', '.join(lost[:3])}{', …' * (len(lost) > 3)}"


def account(policy: Policy) -> Account:
    """Read and verify a policy's ledger and the protocols that it names. Raises LedgerError."""
    private, to = policy.path(policy.release.private), policy.path(policy.release.to)
    ledger = Ledger(private)
    known: dict[str, bool] = {}
    lines: list[Line] = []
    for entry in ledger.entries():
        sha256 = entry["protocol_sha256"]
        if sha256 not in known:
            published = to / entry["release"] / "protocol.json"
            known[sha256] = kept_protocol(private, sha256, published) is not None
        lines.append(_line(entry, lines, known[sha256]))
    return Account(policy, ledger.path, tuple(lines), spent(private))


def _latest(lines: Sequence[Line], measure: str, sensitive: tuple[str, ...]) -> Line | None:
    """The last line whose composed leakage is in a measure and about a secret."""
    alike = (one for one in reversed(lines) if (one.measure, one.sensitive) == (measure, sensitive))
    return next((one for one in alike if one.how is not None), None)


def _line(entry: Mapping[str, Any], lines: Sequence[Line], kept: bool) -> Line:
    composed = entry.get("composed") or {}
    measure = composed.get("measure", NOTIONS[entry["notion"]].measure)
    figure, sensitive = composed.get("figure"), tuple(composed.get("sensitive", ()))
    before = _latest(lines, measure, sensitive)
    known = 0.0 if before is None else before.composed
    return Line(
        number=entry["sequence"],
        release=entry["release"],
        written=entry["written"],
        name=entry["name"],
        notion=entry["notion"],
        measure=measure,
        sensitive=sensitive,
        epsilon=entry["epsilon"] or 0.0,
        leakage=entry["leakage"].get(measure),
        composed=figure,
        added=None if figure is None or known is None else round(figure - known, 4),
        how=composed.get("how"),
        varying=composed.get("varying"),
        draws=entry["draws"],
        key=entry["key_fingerprint"],
        lock=entry.get("lock"),
        protocol_kept=kept,
    )


def _nats(figure: float | None) -> str:
    return "infinite" if figure is None else f"{figure:.4f}"
