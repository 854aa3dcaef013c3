"""From a plan's counting steps to the joint distribution: as counted, or with the noise of a private estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from funnel.data import Alphabet, Joint
from funnel.data.domain import Domain
from funnel.data.joint import IntArray
from funnel.draw.histogram import SENSITIVITY, Estimated, estimate
from funnel.engine import Engine, checks, counting
from funnel.engine.declared import declared_counts
from funnel.errors import InternalError, LedgerError
from funnel.ledger.journal import Ledger
from funnel.ledger.spending import Spent, charge, charged, record, spent
from funnel.lock.lock import Lock
from funnel.lock.pinned import kept_estimate
from funnel.measure.exact import rational
from funnel.notions import Notion
from funnel.plan import Plan
from funnel.plan import stages as steps
from funnel.plan.domain import domain
from funnel.policy import Policy
from funnel.release.formulas import check_formulas

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Counted:
    """N[s, x] as everything is computed from it; and the true counts beside it, where these are noisy.

    `notion` is the policy's, with an uncertainty set that is as wide as the noise asks for.
    """

    joint: Joint
    notion: Notion
    estimated: Estimated | None = None


def counts(
    policy: Policy,
    plan: Plan,
    engine: Engine,
    progress: Progress,
    before_noise: Callable[[], None] = lambda: None,
    lock: Lock | None = None,
) -> Counted:
    """Carry out a plan up to its count: the joint distribution N[s, x], fit to be protected.

    `before_noise` is called when a table is read and before any noise is drawn; or taken from a `lock`, whose noisy
    counts stand for tonight's. Raises SourceError and PlanError for tables that no protocol can serve.
    """
    for step in plan.counting:
        progress(step.title)
        match step:
            case steps.Scan():
                engine.prepare(step.statements)
            case steps.Inspect():
                found = engine.row(step.statement)
                checks.check_present(found, step.columns, policy.source.missing, policy.source.entity)
            case steps.Identify():
                checks.check_entities(
                    engine,
                    step.column,
                    integer=step.integer,
                    spread=step.spread,
                    dense=step.dense,
                    general=step.general,
                )
            case steps.Count():
                return _count(policy, step, engine, before_noise, lock)
    raise InternalError("the plan counts nothing")


def _count(
    policy: Policy, step: steps.Count, engine: Engine, before_noise: Callable[[], None], lock: Lock | None
) -> Counted:
    engine.prepare(step.statements)
    if policy.estimate.epsilon is None:
        joint = counting.joint_distribution(engine, step.cells, step.secret, step.blocks)
        counted = Counted(joint, policy.privacy)
        counting.check_bins(counted.joint)
    else:
        declared = domain(policy)
        _check_formulas(policy, declared.blocks)
        found = declared_counts(engine, step.cells, declared)
        before_noise()
        epsilon = rational(policy.estimate.epsilon)
        if lock is None:
            counted = _settled(policy.privacy, estimate(declared, found, epsilon))
        else:
            counted = _pinned(policy, lock, declared, found, epsilon)
    counting.check_minimum(counted.joint, step.minimum, secret_published=policy.mechanism.reads_secret)
    _check_formulas(policy, counted.joint.blocks)
    return counted


def _check_formulas(policy: Policy, blocks: Sequence[Alphabet]) -> None:
    if policy.release.format == "csv" and policy.release.formulas == "refuse":
        check_formulas(blocks)


def _settled(notion: Notion, noisy: Estimated) -> Counted:
    """The counts to go by, and a notion whose promise holds for the true ones in spite of the noise where it can."""
    width = notion.noise_width(noisy.epsilon / SENSITIVITY, len(noisy.noisy))
    found = replace(noisy, width=width)
    joint = found.joint
    return Counted(joint, notion.over_noise(found.noisy, width, found.rows), found)


def _pinned(policy: Policy, lock: Lock, declared: Domain, tonight: IntArray, epsilon: Fraction) -> Counted:
    """Tonight's records beside the lock's noisy counts, and its uncertainty set: nothing is estimated."""
    true, noisy = kept_estimate(policy.path(policy.release.private), lock, declared)
    notion = policy.privacy.over_kept_noise(lock.parameters)
    width = notion.noise_width(epsilon / SENSITIVITY, len(noisy))
    found = Estimated(declared, epsilon, tonight, noisy, width, true)
    return Counted(found.joint, notion, found)


class Charging:
    """Enters a private estimate before its noise is drawn, or finds that of a lock entered.

    A dry run has no `private` folder here: it publishes nothing, so it spends nothing. `name` is that of the release.
    """

    def __init__(self, policy: Policy, private: Path | None, name: str, lock: Lock | None = None) -> None:
        self._policy, self._private, self._name, self._lock = policy, private, name, lock
        self.spent: Spent | None = None

    def before(self) -> None:
        """Charge this run. Raises LedgerError."""
        wanted, private = self._policy.estimate, self._private
        if private is None or wanted.epsilon is None:
            return
        _check_whole(private)
        if self._lock is None:
            budget = None if wanted.budget is None else rational(wanted.budget)
            self.spent = charge(private, self._name, rational(wanted.epsilon), budget)
        else:
            self.spent = charged(private, self._lock.estimated or "")


def _check_whole(private: Path) -> None:
    """The record of estimates knows of all that the ledger knows of. Raises LedgerError."""
    told = [entry["estimate"]["spent"] for entry in Ledger(private).entries() if "estimate" in entry]
    if told and spent(private).epsilon < rational(max(told)):
        raise LedgerError(
            "ledger",
            f"the ledger tells of {max(told):g} nats spent on private estimates, {record(private).what} of less",
            where=str(record(private).path),
            advice=record(private).restore,
        )
