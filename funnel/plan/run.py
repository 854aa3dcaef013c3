"""Carry out a plan: count, solve, draw, write, audit, publish. All of it, or nothing that anyone can see."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from funnel.audit.audit import audit_release
from funnel.data import Joint
from funnel.data.arrange import Recoder
from funnel.draw.draw import Drawer, regrouped
from funnel.draw.histogram import Estimated
from funnel.draw.keys import Key
from funnel.draw.tally import Tally
from funnel.engine import Engine, Source, counting, find, open_engine
from funnel.errors import AuditFailure, InternalError
from funnel.format.journal import ReleaseEntry
from funnel.ledger.budget import check_budget, warnings
from funnel.ledger.estimates import Spent
from funnel.ledger.history import Composed, compose
from funnel.ledger.journal import Journal
from funnel.lock.lock import Lock
from funnel.lock.pin import Pinned, kept_values, pin, pin_estimate
from funnel.lock.summary import Measured, Summary, measure
from funnel.mechanisms.choice import choose
from funnel.mechanisms.product import Protection
from funnel.plan import Plan, compile_plan
from funnel.plan import stages as steps
from funnel.plan.count import Charging, counts
from funnel.plan.prepare import any_key, check_apart, key_of, located, name_release, publisher_of, signer_of
from funnel.plan.writing import Facts, write_release
from funnel.policy import Policy
from funnel.release.publish import Publisher
from funnel.release.sign import SigningKey

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 18
"""Rows per batch of the drawing kernel: large enough for NumPy, small enough for the cache."""


class Report(Protocol):
    """Told how far a step has come: `done` of `total` (rows, or unknown)."""

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Report."""


def silent(stage: str, done: int = 0, total: int | None = None) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class Limits:
    """What the engine may use: memory as DuckDB writes it, threads (None: all cores)."""

    memory: str = "2GB"
    threads: int | None = None


def execute(
    policy: Policy,
    *,
    limits: Limits = Limits(),
    dry_run: bool = False,
    lock: Lock | None = None,
    key: Key | None = None,
    charging: Charging | None = None,
    progress: Report = silent,
) -> Summary:
    """Make one audited release of a policy; with `dry_run`, stop before anything is drawn or written.

    With a lock nothing is solved: its protocol is measured at tonight's counts, or at the noisy ones that it pins, and
    drawn from where it keeps the bound. `key`: instead of the policy's own, whatever the last release was drawn with.
    `charging` enters a private estimate that is for no release.
    Raises FunnelError, and then nothing is visible in the published folder; unless the message says so, the disk having
    failed after the release was shown.
    """
    source = find(policy.path(policy.source.table))
    with open_engine(source, memory=limits.memory, threads=limits.threads) as engine:
        plan = compile_plan(policy, engine.schema(), source, lock.checksum if lock else None)
    key = key or (any_key(policy) if dry_run else key_of(policy))
    release_id, told = name_release(policy)
    signer = None if dry_run else signer_of(policy)
    check_apart(policy, source)
    with ExitStack() as stack:
        stack.enter_context(located(source))
        publisher = None if dry_run else stack.enter_context(publisher_of(policy, release_id))
        scratch = None if publisher is None else publisher.scratch
        engine = stack.enter_context(
            open_engine(source, memory=limits.memory, threads=limits.threads, scratch=scratch)
        )
        for name, values in (kept_values(policy, lock) if lock else {}).items():
            engine.provide(name, values)
        folder = None if publisher is None else publisher.private_root
        charged = charging or Charging(policy, folder, release_id, lock)
        counted = counts(policy, plan, engine, progress, charged.before, lock)
        policy = policy.model_copy(update={"privacy": counted.notion})
        work = _Work(policy, plan, source, engine, key, publisher, progress, counted.joint, lock, signer)
        work.estimated, work.spent = counted.estimated, charged.spent
        for step in plan.releasing:
            if dry_run and isinstance(step, steps.Draw):
                break
            work.carry_out(step)
        return work.summary([*told, *(publisher.told if publisher else ())])


class _Work:
    """The state of one run: what each step leaves for the next."""

    protection: Protection
    measured: Measured
    composed: Composed
    entry: ReleaseEntry
    tally: Tally
    pinned: Pinned | None
    estimated: Estimated | None = None
    spent: Spent | None = None

    def __init__(
        self,
        policy: Policy,
        plan: Plan,
        source: Source,
        engine: Engine,
        key: Key,
        publisher: Publisher | None,
        progress: Report,
        joint: Joint,
        lock: Lock | None = None,
        signer: SigningKey | None = None,
    ) -> None:
        self.lock, self.pinned, self.signer = lock, None, signer
        self.policy, self.plan, self.source, self.engine, self.joint = policy, plan, source, engine, joint
        self.key, self._publisher, self.progress = key, publisher, progress

    @property
    def publisher(self) -> Publisher:
        """The publisher of a run that is not dry."""
        if self._publisher is None:
            raise InternalError("a dry run reached a step that writes")
        return self._publisher

    def carry_out(self, step: steps.Step) -> None:
        """One step of the plan, after the count."""
        self.progress(step.title)
        match step:
            case steps.Solve():
                self._solve(step)
            case steps.Pin():
                self._pin()
            case steps.Draw():
                self._draw(step)
            case steps.Write():
                self._write(step)
            case steps.Audit():
                self._audit()
            case steps.Publish():
                self.publisher.publish(self.entry)

    def _solve(self, step: steps.Solve) -> None:
        minimum = self.policy.estimate.minimum
        self.protection = choose(
            self.joint,
            self.policy.privacy,
            self.policy.mechanism,
            step.shares,
            lambda what: self.progress(f"{step.title}: {what}"),
            minimum=minimum,
            secret_rare=counting.rare_secrets(self.joint, minimum) > 0,
        )
        self.measured = measure(self.protection)
        self._look_back()

    def _pin(self) -> None:
        if self.lock is None:
            raise InternalError("a run without a lock reached a step that takes its protocol")
        if self.estimated is None:
            private = self.policy.path(self.policy.release.private)
            self.pinned = pin(self.policy, self.lock, self.joint, private)
        else:
            self.pinned = pin_estimate(self.policy, self.lock, self.estimated)
        self.protection = self.pinned.protection
        self.measured = measure(self.protection)
        self._look_back()

    def _look_back(self) -> None:
        """What this release and all before it give away together, before anything is drawn. Raises LedgerError."""
        self.progress("measure all releases together")
        permanent = self.policy.draws.kind == "permanent"
        release = "tonight" if self._publisher is None else self._publisher.release_id
        source = self.key.fingerprint if permanent else release
        entries = Journal(self.policy.path(self.policy.release.private)).releases()
        self.composed = compose(self.policy, self.protection, source, entries)
        check_budget(self.policy, self.composed.together)

    def _draw(self, step: steps.Draw) -> None:
        """Map the protocol over the source's second reading, and check what came out."""
        protocols, joint = self.protection.protocols, self.protection.joint
        for index, block in enumerate(self.joint.blocks):
            self.engine.provide(f"alphabet_x{index}", block)
        self.engine.provide("alphabet_s", self.joint.secret)
        self.engine.prepare(step.codes)
        recode = self._recode()
        drawer = Drawer(protocols, self.key, permanent=step.kind == "permanent")
        self.tally = Tally(protocols)
        done = 0
        for read in self.engine.stream(step.statement, BATCH):
            batch = recode(read)
            self.tally.add(batch, drawer.draw(batch))
            done += batch.num_rows
            self.progress(step.title, done, self.joint.rows)
        self.tally.check(self._truth(joint))
        self.source.check_unchanged()

    def _truth(self, joint: Joint) -> Joint:
        """The records that were drawn for, in the blocks of the joint distribution that the protocol was made for."""
        return joint if self.estimated is None else self.estimated.truth(joint)

    def _recode(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """From a batch in the codes that were counted to one in the codes of the protocols."""
        if self.pinned is not None and self.estimated is None:
            return self.pinned.tonight.batch
        if len(self.protection.joint.blocks) == len(self.joint.blocks):
            return lambda batch: batch
        regroup = Recoder(self.joint)
        return lambda batch: regrouped(batch, regroup)

    def _write(self, step: steps.Write) -> None:
        self.entry = write_release(
            Facts(
                self.publisher.release_id,
                self.policy,
                self.plan,
                self.protection,
                self.measured,
                self.tally,
                self.key,
                self.composed,
                self.pinned,
                self.signer,
                self.estimated,
                self.spent,
            ),
            step,
            self.publisher.public,
            self.publisher.private,
        )

    def _audit(self) -> None:
        """The auditor's own word on the staged files, before anyone can see them. Raises AuditFailure."""
        key = None if self.signer is None else self.signer.public_text
        found = audit_release(self.publisher.public, self.publisher.private, staged=True, public_key=key)
        for one in found.of("failed")[:1]:
            what = f"it is not so that {one.title}: {one.detail}"
            raise AuditFailure(what, bound=one.title, achieved=one.detail, where=one.claim)

    def summary(self, also: list[str]) -> Summary:
        """What `run --json` prints; `also` are warnings from before the work began."""
        release = None if self._publisher is None else str(self.publisher.target.resolve())
        told = (*also, *warnings(self.composed))
        drift = None if self.pinned is None else self.pinned.told
        return Summary(
            self.policy,
            self.protection,
            self.measured,
            release,
            self.composed.together,
            told,
            drift,
            self.estimated,
        )
