"""What a new key costs: the composed leakage now, and after one more release under it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from funnel.draw.keys import Key, one_time_key
from funnel.errors import DrawError, LedgerError
from funnel.format import schema
from funnel.format.journal import Together
from funnel.ledger.journal import Journal
from funnel.ledger.promises import over_counts, untold
from funnel.ledger.rotation import agree, last_asked
from funnel.ledger.view import LedgerView, PromiseCost, ledger_view, promise_costs
from funnel.lock.lock import Lock
from funnel.measure.figures import spelt
from funnel.plan.compiled import Limits
from funnel.plan.count import Counted
from funnel.plan.estimate import Taking
from funnel.plan.prepare import asked_by
from funnel.plan.run import execute
from funnel.policy import Policy
from funnel.progress import Report, silent
from funnel.release.holding import alone
from funnel.release.keys import load_key, write_key
from funnel.text import argument, number

KEEP = (
    "Keep the old key, as closed as before, until the first release under the new one is published and audited: while "
    "none is in the ledger, giving it back costs nothing. After that this policy needs it no more, but others that "
    "name it do; what chance drew with it, whoever has it could undo, so destroy it where none does, or keep it as "
    "safe as the table itself for as long as those releases can be read."
)
_ANEW = "           by the protocol found now: a run searches anew, and may find another where time ends its search"


@dataclass(frozen=True, eq=False)
class Rotation:
    """A policy's composed leakage now (`before`), and `after` one release under a new key; nats, None: infinite.

    `old` and `new` are fingerprints, None where there is no such key yet; `written` is the new key's file. `refused` is
    what the policies of the folder would say to the next run, None where they let it pass. `others` are what the same
    release costs the other promises of the private folder. `certain`: its protocol leaves nothing to chance.
    `keeps`: the policy goes on with its own key, and `old` is that of another one, whose columns it comes to draw.
    `searched`: it was found by a search that may end with its time, of which another may find another one. `counted`
    are the counts that it was measured at.
    """

    before: LedgerView
    after: Together
    old: str | None
    new: str | None
    written: Path | None
    refused: LedgerError | None = None
    others: tuple[PromiseCost, ...] = ()
    certain: bool = False
    searched: bool = False
    keeps: bool = False
    counted: Counted | None = None

    @property
    def noisy(self) -> bool:
        """Whether the next release is measured over noisy counts."""
        return self.before.policy.estimate.epsilon is not None

    @property
    def now(self) -> float | None:
        """The composed leakage so far; 0 where nothing was released, None where infinite or not `measured`."""
        latest = self.before.latest
        if latest is None:
            return None if self.before.releases else 0.0
        return latest.figure

    @property
    def measured(self) -> bool:
        """False where no release so far was measured in the policy's own terms: another secret, or an old ledger."""
        return self.before.latest is not None or not self.before.releases

    @property
    def cost(self) -> float | None:
        """What one release under the new key adds, in nats; None where that has no finite bound."""
        if self.now is None or self.after.figure is None:
            return None
        return max(0.0, round(self.after.figure - self.now, 4))

    def as_dict(self) -> dict[str, Any]:
        """The object that `key rotate --json` prints."""
        policy = self.before.policy
        return {
            "name": policy.name,
            "ledger": str(self.before.path),
            "releases": len(self.before.releases),
            "measure": self.after.measure,
            "composed": self.now,
            "measured": self.measured,
            "after": schema.as_json(self.after) | {"how": self.after.found},
            "cost": self.cost,
            "estimate": None if self.counted is None else self.counted.told(),
            "others": [one.as_dict() for one in self.others],
            "budget": policy.budget,
            "refused": None if self.refused is None else self.refused.as_dict(),
            "old_key": self.old,
            "new_key": self.new,
            "written": None if self.written is None else str(self.written),
            "keep": KEEP if self.gives_up else None,
        }

    @property
    def gives_up(self) -> bool:
        """Whether the policy had a key that it needs no more under the new one."""
        return self.old is not None and not self.keeps

    def text(self) -> str:
        """A few lines for a person."""
        many = len(self.before.releases)
        now = (
            self.nats(self.now, noisy=self.before.noisy)
            if self.measured
            else f"not measured for this policy in {self.after.measure}"
        )
        after, cost = (self.nats(one, noisy=self.noisy) for one in (self.after.figure, self.cost))
        lines = [
            f"old key    {self.old or 'none: nothing was drawn with one from these columns'}",
            f"now        {now}, {many:,} release{'s' * (many != 1)} in {self.before.path} together",
            f"after one  {after} ({self.after.found}), once a release is drawn with a new key",
            *(f"           {one}" for one in untold(self.before.policy.privacy, self.after)),
            *([_ANEW] if self.searched else []),
            f"cost       {cost if self.measured else 'not known'}"
            + (self._asked() if self.old else ""),
            *(f"also       {one.text('that release')}" for one in self.others),
        ]
        lines += [] if self.counted is None else [f"estimate   {one}" for one in self.counted.words()]
        if self.before.policy.budget is not None:
            lines.append(f"budget     {number(self.before.policy.budget)}")
        if self.refused is not None:
            lines.append(f"next run   refused: {self.refused.message}\n  {self.refused.advice}")
        return "\n".join([*lines, *self._done()])

    def _asked(self) -> str:
        """What a new key means for answers, behind what it costs."""
        if self.certain:
            return ": nothing is left to chance here, and no answer follows from the key"
        return ": everybody may give another answer"

    def nats(self, figure: float | None, *, noisy: bool) -> str:
        """A figure in words; `noisy`: it is over noisy counts."""
        counts = over_counts(noisy)
        return "no finite bound known" if figure is None else f"{spelt(figure)} nats of {self.after.measure}{counts}"

    def _done(self) -> list[str]:
        if self.new is None:
            return [
                "No key was made or agreed to. `--to FILE` makes the new one; `--accept` takes the policy's own."
            ]
        scheme, _, name = (self.before.policy.draws.key or "").partition(":")
        use, made = "name it as draws.key of the policy", list[str]()
        if self.written is not None:
            use = f"`export {name}=$(cat {argument(self.written)})`" if scheme == "env" else use
            made = [f"wrote      {self.written}: {use}"]
        return [f"new key    {self.new}", *made, *([KEEP] if self.gives_up else [])]


def rotate(
    policy: Policy,
    to: Path | None = None,
    *,
    accept: bool = False,
    lock: Lock | None = None,
    limits: Limits,
    progress: Report = silent,
) -> Rotation:
    """Measure what a new key costs a policy; then make one in `to`, or accept the one that the policy names now.

    Without either there is no new key, nor is there one that the next run would refuse. The table is counted and the
    protocol solved (or taken from `lock`), and nothing is drawn; but where a private estimate is asked for and none of
    the last twelve hours is kept, which the next run would take, one is entered and spent. Raises FunnelError, and then
    neither a key nor a record of it is made.
    """
    if policy.draws.kind != "permanent" or policy.draws.key is None:
        raise DrawError(
            "key-missing",
            "this policy draws anew in every release, and so has no key to rotate",
            where=policy.file,
            advice="Permanent draws need `source.entity` and `draws.key`.",
        )
    before = ledger_view(policy)
    named = load_key(policy.draws.key, policy.directory) if accept else None
    if named is not None:
        _check_other(policy, named)
    if to is not None:
        _check_place(policy, to)
    key = named or one_time_key()
    summary = execute(
        policy, limits=limits, dry_run=True, lock=lock, key=key, judged=False,
        taking=Taking(fresh=True, held=False), progress=progress,
    )  # fmt: skip
    entries, asked = Journal(policy.private).releases(), asked_by(policy)
    last = own = last_asked(asked, entries)
    if last is not None and last.key_fingerprint == key.fingerprint:
        last = asked.unasked(entries, key.fingerprint)  # the policy keeps its key for what another one answered so far
    old, keeps = None if last is None else last.key_fingerprint, last is not own
    _, *others = promise_costs(policy, entries, summary.composed.promises)
    certain = all(one.certain for one in summary.protection.protocols)
    searched = lock is None and "time_limit" in type(policy.mechanism).model_fields
    found = Rotation(before, summary.together, old, None, to, summary.refused, tuple(others), certain, searched,
                     keeps, summary.counted)  # fmt: skip
    if accept or to is not None:
        _check_next(found)
        # Before the first release there is nothing to enter, and perhaps no folder to enter it in.
        with nullcontext() if last is None else alone(policy.private):
            return replace(found, new=_agreed(policy, named, to))
    return found


def _check_other(policy: Policy, named: Key) -> None:
    """The next run would not take the key anyway. Raises DrawError, LedgerError where the ledger is damaged."""
    entries, asked = Journal(policy.private).releases(), asked_by(policy)
    last = last_asked(asked, entries)
    if last is not None and last.key_fingerprint == named.fingerprint and not asked.changed(entries, named.fingerprint):
        raise DrawError(
            "key-unchanged",
            f"the last release, {last.release}, was drawn with this key, {named.fingerprint}: the next run takes it",
            where=policy.file,
            advice="Nothing was agreed to. `--to FILE` makes another key; without it this shows what one would cost.",
        )


def _check_next(found: Rotation) -> None:
    """The next run, under the new key, would not be refused. Raises LedgerError, with the cost."""
    error = found.refused
    if error is None:
        return
    now = found.nats(found.now, noisy=found.before.noisy) if found.measured else "what was not measured"
    then = found.nats(found.after.figure, noisy=found.noisy)
    raise LedgerError(
        error.code,
        f"{error.message}; a new key takes all releases together from {now} to {then}",
        where=error.where,
        advice=f"No key was made or agreed to. The next run needs what this command needs first. {error.advice}",
    )


def _agreed(policy: Policy, named: Key | None, to: Path | None) -> str | None:
    """The fingerprint of the new key, made in `to` unless it is the one `named` already, and entered as meant."""
    new = named or (None if to is None else write_key(to))
    if new is None:
        return None
    try:
        agree(Journal(policy.private), asked_by(policy), new.fingerprint)
    except BaseException:
        if named is None and to is not None:
            to.unlink(missing_ok=True)
        raise
    return new.fingerprint


def _check_place(policy: Policy, to: Path) -> None:
    """Refuse before the work what would be refused after it, and a key among what is published. Raises DrawError."""
    if os.path.lexists(to):
        write_key(to)
    if Path(os.path.realpath(to)).is_relative_to(os.path.realpath(policy.to)):
        raise DrawError(
            "key-write",
            "the key would lie in the published folder",
            where=str(to),
            advice="Name a file that the readers of the releases cannot reach.",
        )
