"""The ledger as a person reads it: what was released, what it gives away together, what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from funnel.format import schema
from funnel.format.journal import Identity, Promise, ReleaseEntry, Together
from funnel.format.manifest import DECIMALS
from funnel.ledger.archive import kept_protocols
from funnel.ledger.estimates import Spent, spent
from funnel.ledger.journal import Journal, releases
from funnel.ledger.promises import (
    averaged,
    breaks,
    in_terms_of,
    is_own,
    notion_of,
    over_counts,
    standing,
    untold,
)
from funnel.ledger.whose import assumed, told
from funnel.measure.exact import rational
from funnel.measure.figures import spelt
from funnel.notions import NOTIONS
from funnel.policy import Policy
from funnel.text import counted, number, some, table

_HEAD = ("#", "release", "notion", "epsilon", "leakage", "composed", "added", "how", "draws", "key", "lock")
_NUMBERS = [_HEAD.index(name) for name in ("#", "epsilon", "leakage", "composed", "added")]


@dataclass(frozen=True)
class Row:
    """One release: leakage in nats, None where infinite.

    `added` is by how much the composed bound is above that of the release before it, None where that one was not
    measured in the same terms; `lock` the checksum of the lock that it was made under,
    None where it was solved for; `noisy` whether its figures are about the noisy counts of a private estimate.
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
    how: str
    varying: float | None
    draws: str
    key: str | None
    lock: str | None
    noisy: bool
    present: dict[str, Any] | None
    protocol_kept: bool

    def cells(self) -> list[str]:
        """As columns of text."""
        return [
            str(self.number), self.release, self.notion, f"{number(self.epsilon)}", _nats(self.leakage),
            _known(self.composed), "" if self.added is None else _known(self.added), self.how, self.draws,
            (self.key or "")[:8], (self.lock or "")[:8],
        ]  # fmt: skip


_PROMISES = ("promise", "secret", "measure", "bound", "used", "left", "since", "ended by")
_STEPS = 10**DECIMALS
"""Of which figures are whole numbers."""
_BOUNDS = [_PROMISES.index(name) for name in ("bound", "used", "left")]


def allowed(one: Promise) -> float | None:
    """The budget of a promise in nats, None where it has none."""
    return None if one.budget is None else float(Fraction(one.budget))


def left(one: Promise) -> float | None:
    """What is left of a promise's budget, in nats; None where it has none."""
    return None if one.budget is None else _rest(Fraction(one.budget), one.together.figure)


def _rest(budget: Fraction, used: float | None) -> float:
    """What a figure leaves of a budget, to the step of figures below: a release that adds so much keeps the budget."""
    return 0.0 if used is None else max(0, math.floor((budget - rational(used)) * _STEPS)) / _STEPS


def ended(promises: Sequence[Promise]) -> list[str]:
    """Which promises have ended, what is so by now, and which release ended each: perhaps for what was so by then."""
    return [
        f"{one.policy}: by now {_why(one)} {' + '.join(one.together.sensitive)} ({one.together.measure}); the promise "
        f"was ended by release {one.ended}"
        for one in promises
        if one.ended
    ]


def _why(one: Promise) -> str:
    if one.together.figure is None:
        return "no finite bound is known on what is told about"
    return "more than was promised may be told about" if breaks(one) else "another policy releases some of"


def promise_cells(one: Promise) -> list[str]:
    """A promise as columns of text."""
    told, bound, rest = one.together, allowed(one), left(one)
    return [
        one.policy, " + ".join(told.sensitive), told.measure, "finite" if bound is None else f"{number(bound)}",
        _known(told.figure), "" if rest is None else f"{rest:.4f}", one.since, one.ended or "",
    ]  # fmt: skip


def promise_dict(one: Promise) -> dict[str, Any]:
    """A promise as JSON: `bound`, `used` and `left` in nats, None where there is no such number."""
    told = one.together
    return {
        "policy": one.policy,
        "sensitive": list(told.sensitive),
        "notion": one.notion,
        "measure": told.measure,
        "bound": allowed(one),
        "used": told.figure,
        "left": left(one),
        "how": told.found,
        "since": one.since,
        "ended": one.ended,
    }


@dataclass(frozen=True)
class PromiseCost:
    """A promise of the private folder as it stands, and after one more release; nats, None: no bound.

    `was_noisy`: so far it is over noisy counts; `noisy`: after that release.
    """

    promise: Promise
    before: Promise | None
    was_noisy: bool
    noisy: bool

    def text(self, release: str) -> str:
        """In words, with what that release is called."""
        one = self.promise
        now = "no release of its own yet" if self.before is None else f"{_stated(self.before, self.was_noisy)} now"
        most = allowed(one)
        budget = "" if most is None else f", of {number(most)} allowed"
        return (
            f"{one.policy} ({one.together.measure} about {' + '.join(one.together.sensitive)}): {now}, "
            f"{_stated(one, self.noisy)} after {release} ({one.together.found}){budget}"
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        one, before = self.promise, None if self.before is None else self.before.together.figure
        return {
            "policy": one.policy, "measure": one.together.measure, "sensitive": list(one.together.sensitive),
            "released": self.before is not None, "now": before, "after": one.together.figure, "budget": allowed(one),
            "how": one.together.found,
        }  # fmt: skip


def _stated(one: Promise, noisy: bool) -> str:
    told = one.together.figure
    return "no finite bound known" if told is None else f"{spelt(told)} nats{over_counts(noisy)}"


def promise_costs(
    policy: Policy, entries: Sequence[ReleaseEntry], after: Sequence[Promise]
) -> tuple[PromiseCost, ...]:
    """Every promise of a private folder, before and after one more release of a policy, its own first."""
    known, noisy = {one.name: one for one in standing(entries)}, policy.estimate.epsilon is not None
    was = any(one.noisy for one in entries)
    return tuple(PromiseCost(one, known.get(one.name), was, noisy) for one in after)


@dataclass(frozen=True, eq=False)
class LedgerView:
    """All releases of one ledger and every promise in it, seen from a policy."""

    policy: Policy
    path: Path
    releases: tuple[Row, ...]
    promises: tuple[Promise, ...]
    estimates: Spent
    identity: Identity | None
    noisy: bool

    @property
    def own(self) -> Promise | None:
        """The policy's own promise as the last release left it, None before its first."""
        return next((one for one in self.promises if is_own(one, self.policy)), None)

    @property
    def latest(self) -> Together | None:
        """What all releases tell together, in the policy's own measure about the same secret; None: not measured."""
        if self.own is not None or not self.policy.privacy.of_one_table:
            same = self.own is not None and in_terms_of(self.own, self.policy.privacy)
            return self.own.together if self.own is not None and same else None
        if self.releases and self.noisy != (self.policy.estimate.epsilon is not None):
            return None  # with a release of its own no promise has a bound
        asked = self.policy.privacy.measure, self.policy.sensitive
        return next((one.together for one in self.promises if one.together.asked == asked), None)

    @property
    def left(self) -> float | None:
        """What is left of the budget, in nats; None where nobody measured what was released so far by it."""
        if self.policy.budget is None:
            return None
        if self.latest is None:
            return None if self.releases else _rest(rational(self.policy.budget), 0.0)
        return _rest(rational(self.policy.budget), self.latest.figure)

    @property
    def first(self) -> list[str]:
        """What is to be said before all else."""
        return ended(self.promises)

    def as_dict(self) -> dict[str, Any]:
        """The object that `ledger --json` prints."""
        latest = self.latest
        return ({"ended": self.first} if self.first else {}) | {
            "ledger": str(self.path),
            "name": self.policy.name,
            "measure": self.policy.privacy.measure,
            "promises": [promise_dict(one) for one in self.promises],
            "releases": [vars(one) for one in self.releases],
            "composed": None if latest is None else latest.figure,
            "how": None if latest is None else latest.found,
            "varying": None if latest is None else latest.varying,
            "identity": None if self.identity is None else told(self.identity),
            "budget": self.policy.budget,
            "left": self.left,
            "estimates": {"number": self.estimates.estimates, "spent": float(self.estimates.epsilon)},
        }

    def text(self) -> str:
        """A table, and what it comes to."""
        told = [f"no release yet in {self.path}"] if not self.releases else self._table()
        first = [f"ENDED      {one}" for one in self.first]
        told += [*self._promises(), *self._noisy(), *self._composed()]
        figures = [*self._absent(), *self._left(), *self._spent(), *self._lost()]
        return "\n".join([*first, *told, *figures])

    def _table(self) -> list[str]:
        """A line for each release, and how many there are."""
        rows = table([_HEAD, *(one.cells() for one in self.releases)], _NUMBERS)
        return [*rows, f"ledger     {len(self.releases):,} in {self.path}, an unbroken chain"]

    def _promises(self) -> list[str]:
        """A line for each promise."""
        return table([_PROMISES, *map(promise_cells, self.promises)], _BOUNDS) if self.promises else []

    def _noisy(self) -> list[str]:
        """That figures of leakage are over noisy counts, where any are; beside others no promise has a finite one."""
        found = [one.release for one in self.releases if one.noisy]
        if not found:
            return []
        whose = "" if len(found) == len(self.releases) else f" of {counted(len(found), 'release')}: {some(found, 3)}"
        return [f"noisy      all figures of leakage are over the noisy counts of private estimates{whose}"]

    def _composed(self) -> list[str]:
        """Two lines: a record whose values stay, and one whose values change."""
        latest = self.latest
        if latest is None:
            return []
        varying = (
            "no finite bound known for a person whose values change"
            if latest.varying is None
            else f"at most {spelt(latest.varying)} nats for each value, to who knows in which releases it was the same"
        )
        counts = over_counts(self.noisy)
        known = "no finite bound known" if latest.figure is None else f"{spelt(latest.figure)} nats"
        return [
            f"composed   {known} of {latest.measure} ({latest.found}{counts}) about a person whose "
            f"values stay the same{averaged(latest)}",
            *(f"           {one}" for one in untold(self.policy.privacy, latest)),
            f"changing   {varying}",
            *([] if self.identity is None else [f"people     {assumed(self.identity)}"]),
        ]

    def _absent(self) -> list[str]:
        """How many releases leave people out, and which by what is to be hidden."""
        found = [one for one in self.releases if one.present]
        if not found:
            return []
        reads = [f"{one.release} by its filter on {', '.join(one.present['secret'])}"
                 for one in found if one.present and one.present["secret"]]  # fmt: skip
        told = f", and those who are absent tell of their secret in {some(reads, 3)}" if reads else ""
        number = counted(len(found), "release")
        return [f"absent     {number} with people left out; to be absent is an answer, too{told}"]

    def _left(self) -> list[str]:
        if self.policy.budget is None:
            return []
        if self.left is None:
            rest = "; what the releases so far take of it is measured by a run"
        else:
            rest = f", of which {self.left:.4f} are left"
        return [f"budget     {number(self.policy.budget)} nats{rest}"]

    def _spent(self) -> list[str]:
        """What private estimates took, those of runs that published nothing among them."""
        found, budget = self.estimates, self.policy.estimate.budget
        if not found.estimates:
            return []
        allowed = "" if budget is None else f" of {number(budget)}"
        many, spent = counted(found.estimates, "private one"), float(found.epsilon)
        return [f"estimates  {many}, {number(spent)} nats spent{allowed}"]

    def _lost(self) -> list[str]:
        lost = [one.release for one in self.releases if not one.protocol_kept]
        if not lost:
            return []
        what = "the protocol" if len(lost) == 1 else "the protocols"
        return [f"missing    {what} of {counted(len(lost), 'release')}: {some(lost, 3)}"]


def ledger_view(policy: Policy) -> LedgerView:
    """Read and verify a policy's ledger and the protocols that it names. Raises LedgerError."""
    journal = Journal(policy.private)
    lines, rows = journal.lines(), list[Row]()
    entries = releases(lines)
    protocols = kept_protocols(policy.private, policy.to, entries)
    last = next((one.identity for one in reversed(entries)), None)
    noisy = any(one.noisy for one in entries)
    for line in lines:
        if isinstance(line.entry, ReleaseEntry):
            kept = protocols[line.entry.protocol_sha256] is not None
            rows.append(_row(line.written, line.entry, entries[: len(rows)], kept))
    return LedgerView(policy, journal.path, tuple(rows), standing(entries), spent(lines), last, noisy)


def _row(written: str, entry: ReleaseEntry, before: Sequence[ReleaseEntry], kept: bool) -> Row:
    composed = entry.own.together
    same = [one for one in standing(before) if one.together.asked == composed.asked]
    own, table = entry.name, NOTIONS[entry.notion].of_one_table
    mine = [one.together for one in same if one.policy == own and in_terms_of(one, notion_of(entry.own))]
    alike = mine or [one.together for one in same if table]
    known = alike[0].figure if alike else None if before else 0.0
    return Row(
        number=len(before) + 1,
        release=entry.release,
        written=written,
        name=entry.name,
        notion=entry.notion,
        measure=composed.measure,
        sensitive=composed.sensitive,
        epsilon=entry.epsilon,
        leakage=entry.leakage.get(composed.measure),
        composed=composed.figure,
        added=None if composed.figure is None or known is None else round(composed.figure - known, 12),
        how=composed.found,
        varying=composed.varying,
        draws=entry.draws,
        key=entry.key_fingerprint,
        lock=entry.lock,
        noisy=entry.noisy,
        present=schema.as_json(entry.present),
        protocol_kept=kept,
    )


def _nats(figure: float | None) -> str:
    return "infinite" if figure is None else f"{number(figure)}"


def _known(figure: float | None) -> str:
    """Of several releases: where nothing bounds them as far as is known, something may."""
    return "none known" if figure is None else spelt(figure)
