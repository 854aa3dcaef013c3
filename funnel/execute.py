"""Carry out a plan: count, solve, draw, write, audit, publish. All of it, or nothing that anyone can see."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from funnel.audit import audit_release
from funnel.engines import Engine, Released, Source, checks, counting, find, open_engine
from funnel.engines.sets import selection
from funnel.errors import AuditFailure, InternalError, SourceError
from funnel.history import warnings
from funnel.mechanisms.choice import choose
from funnel.mechanisms.product import Protection
from funnel.model import Joint
from funnel.model.arrange import Recoder
from funnel.planner import Plan, compile_plan
from funnel.planner import plan as steps
from funnel.policy import Policy
from funnel.release.check import check_draws
from funnel.release.draw import Drawer, regrouped
from funnel.release.keys import Key, load_key, one_time_key
from funnel.release.ledger import Ledger
from funnel.release.publish import Publisher, new_release_id
from funnel.release.tally import Tally
from funnel.summary import Measured, Summary, measure
from funnel.writing import Facts, write_release

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
    policy: Policy, *, limits: Limits = Limits(), dry_run: bool = False, progress: Report = silent
) -> Summary:
    """Make one audited release of a policy; with `dry_run`, stop before anything is drawn or written.

    Raises FunnelError; whatever is raised, nothing becomes visible in the published folder.
    """
    source = find(policy.path(policy.source.table))
    with open_engine(source, memory=limits.memory, threads=limits.threads) as engine:
        plan = compile_plan(policy, engine.schema(), source)
    key = one_time_key() if dry_run else _key(policy)
    _check_apart(policy, source)
    with ExitStack() as stack:
        publisher = None if dry_run else stack.enter_context(_publisher(policy))
        folders = [] if publisher is None else [publisher.public]
        scratch = None if publisher is None else publisher.scratch
        engine = stack.enter_context(
            open_engine(
                source, memory=limits.memory, threads=limits.threads, scratch=scratch, folders=folders
            )
        )
        joint = count_table(policy, plan, engine, progress)
        work = _Work(policy, plan, source, engine, key, publisher, progress, joint)
        for step in plan.releasing:
            if dry_run and isinstance(step, steps.Draw):
                break
            work.carry_out(step)
        return work.summary()


def count_table(policy: Policy, plan: Plan, engine: Engine, progress: Report = silent) -> Joint:
    """Carry out a plan up to its count: the joint distribution N[s, x], fit to be protected.

    Raises SourceError and PlanError for tables that no protocol can serve.
    """
    for step in plan.counting:
        progress(step.title)
        match step:
            case steps.Scan():
                engine.prepare(step.statements)
            case steps.Inspect():
                counts = engine.row(step.statement)
                checks.check_present(counts, step.columns, policy.source.missing, policy.source.entity)
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
                return _count(policy, step, engine)
    raise InternalError("the plan counts nothing")


def _count(policy: Policy, step: steps.Count, engine: Engine) -> Joint:
    engine.prepare(step.statements)
    joint = counting.joint_distribution(engine, step.cells, step.secret, step.blocks)
    counting.check_bins(joint)
    counting.check_minimum(joint, step.minimum, secret_published=policy.mechanism.reads_secret)
    return joint


def _key(policy: Policy) -> Key:
    """The policy's key for permanent draws, or one that is never used again."""
    if policy.draws.kind == "fresh" or policy.draws.key is None:
        return one_time_key()
    return load_key(policy.draws.key, policy.directory)


def _check_apart(policy: Policy, source: Source) -> None:
    """A pattern that reaches into the release folders would read yesterday's release as tonight's people."""
    for folder in (policy.release.to, policy.release.private):
        inside = policy.path(folder).resolve()
        if any(file.resolve().is_relative_to(inside) for file in source.files):
            raise SourceError(
                "release-path",
                "the pattern of the source also matches files in a release folder",
                where=source.pattern,
                advice="Narrow `source.table`, or release somewhere else.",
            )


def _publisher(policy: Policy) -> Publisher:
    return Publisher(
        policy.path(policy.release.to), policy.path(policy.release.private), new_release_id(datetime.now(UTC))
    )


class _Work:
    """The state of one run: what each step leaves for the next."""

    protection: Protection
    measured: Measured
    warnings: tuple[str, ...] = ()
    tally: Tally

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
    ) -> None:
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
            case steps.Draw():
                self._draw(step)
            case steps.Write():
                self._write(step)
            case steps.Audit():
                self._audit()
            case steps.Publish():
                self.publisher.publish()

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

    def _draw(self, step: steps.Draw) -> None:
        """Map the protocol over the source's second reading, and check what came out."""
        protocols, joint = self.protection.protocols, self.protection.joint
        for index, block in enumerate(self.joint.blocks):
            self.engine.provide(f"alphabet_x{index}", block)
        self.engine.provide("alphabet_s", self.joint.secret)
        self.engine.prepare(step.codes)
        regroup = None if len(joint.blocks) == len(self.joint.blocks) else Recoder(self.joint)
        drawer = Drawer(protocols, self.key, permanent=step.kind == "permanent")
        self.tally = Tally(protocols)
        done = 0
        for read in self.engine.stream(step.statement, BATCH):
            batch = regrouped(read, regroup) if regroup else read
            self.tally.add(batch, drawer.draw(batch))
            done += batch.num_rows
            self.progress(step.title, done, self.joint.rows)
        check_draws(self.tally, protocols, joint)
        self.source.check_unchanged()

    def _write(self, step: steps.Write) -> None:
        codes, counts = self.tally.released
        released = Released(tuple(p.outputs for p in self.protection.protocols), codes, counts)
        statement = step.statement if step.sets is None else selection(step.columns, step.types, released)
        data = self.publisher.public / f"data.{step.format}"
        self.engine.write(statement, released, data, step.format)
        entry = write_release(
            Facts(
                self.publisher.release_id,
                self.policy,
                self.plan,
                self.protection,
                self.measured,
                self.tally,
                self.key,
            ),
            self.publisher.public,
            self.publisher.private,
        )
        self.publisher.entry = entry
        self.warnings = tuple(warnings(Ledger(self.publisher.private_root).entries(), entry))

    def _audit(self) -> None:
        """The auditor's own word on the staged files, before anyone can see them."""
        found = audit_release(self.publisher.public, self.publisher.private, staged=True)
        failed = [finding for finding in found.findings if finding.status == "failed"]
        if failed:
            first = failed[0]
            raise AuditFailure(
                f"it is not so that {first.title}: {first.detail}",
                bound=first.title,
                achieved=first.detail,
                where=first.claim,
            )

    def summary(self) -> Summary:
        """What `run --json` prints."""
        release = None if self._publisher is None else str(self.publisher.target.resolve())
        return Summary(self.policy, self.protection, self.measured, release, self.warnings)
