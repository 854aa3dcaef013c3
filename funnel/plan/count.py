"""The counting stages: from a source to N[s, x], as counted or with the noise of a private estimate.

Values of public columns lie in groups of several levels, and in the tree of a wide block's cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from funnel.data import Alphabet, Joint
from funnel.data.alphabet import Paths
from funnel.data.population import Population
from funnel.engine import Engine, checks, counting
from funnel.errors import PlanError
from funnel.measure.exact import rational
from funnel.notions import Notion
from funnel.plan.estimate import LOOK, Taking, taken
from funnel.plan.population import count_everybody
from funnel.plan.stages import Count, Plan
from funnel.plan.tabulate import Merged, tabulate
from funnel.policy import Policy
from funnel.policy.columns import Attribute
from funnel.text import number

if TYPE_CHECKING:
    from funnel.cells.cells import Cells
    from funnel.cells.columns import Vocabulary
    from funnel.data.domain import Domain
    from funnel.data.joint import IntArray
    from funnel.draw.histogram import Estimated
    from funnel.ledger.estimates import Spent
    from funnel.lock.lock import Lock
    from funnel.plan.partition import Partition

MOST_SORTED = 100_000_000
"""Rows with names that the process of a Spark job sorts into folders: that takes it minutes, and a disk."""


@dataclass(frozen=True, eq=False)
class Counted:
    """N[s, x] as everything is computed from it; and the true counts beside it, where these are noisy.

    `policy` is the one that was asked for, its notion with an uncertainty set that is as wide as the noise asks for.
    `spent` is what private estimates have cost by now, None where none is asked for; `partitions` are those of the wide
    blocks, `merged` says what became of rare values outside of them. `populations` are everybody in the source by each
    secret that was asked about, the policy's own first; none where nobody is absent, or nobody knows.
    """

    policy: Policy
    joint: Joint
    estimated: Estimated | None = None
    spent: Spent | None = None
    partitions: tuple[Partition, ...] = ()
    merged: tuple[Merged, ...] = ()
    populations: tuple[Population, ...] = ()

    @property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of the wide blocks."""
        return tuple(one.cells for one in self.partitions)

    @property
    def columns(self) -> tuple[Vocabulary, ...]:
        """The columns inside wide blocks."""
        return tuple(column for one in self.cells for column in one.columns)

    @property
    def rows(self) -> int:
        """Number of records."""
        return self.joint.rows if self.estimated is None else self.estimated.rows

    def told(self) -> dict[str, Any] | None:
        """The private estimate by its name, and what all of them have spent (nats); None where there is none."""
        if self.estimated is None or self.spent is None:
            return None
        return {
            "name": self.estimated.name,
            "epsilon": float(self.estimated.epsilon),
            "estimates": self.spent.estimates,
            "spent": float(self.spent.epsilon),
        }

    def words(self) -> list[str]:
        """The same for a person, in a line where there is one."""
        one = self.told()
        if one is None:
            return []
        so_far = f"{one['estimates']:,} so far, {number(one['spent'])} nats spent"
        return [f"{one['name']}, of {number(one['epsilon'])} nats; taken again where it will do ({so_far})"]


@dataclass(frozen=True, eq=False)
class Looked:
    """What is known of a table before its counts are read: the cells of wide blocks, what became of rare values."""

    partitions: tuple[Partition, ...]
    merged: tuple[Merged, ...]


def look(
    policy: Policy,
    plan: Plan,
    engine: Engine,
    progress: Callable[[str], None] = lambda _: None,
    lock: Lock | None = None,
    *,
    people: bool = True,
) -> Looked:
    """Carry out a plan up to the table that is counted, and refuse tables that are not what the policy says.

    Whether somebody is there twice is looked at where `people` are; else it is left to the draws. Raises SourceError,
    PlanError.
    """
    progress(plan.scan.title)
    engine.prepare(plan.scan.statements)
    progress(plan.inspect.title)
    found = engine.row(plan.inspect.statement)
    counts, refused = found[: len(plan.inspect.columns) + 1], found[len(plan.inspect.columns) + 1 :]
    entity = None if plan.identify is None else plan.identify.column
    checks.check_present(counts, plan.inspect.columns, policy.source.missing, entity)
    checks.check_labels(refused, plan.inspect.refused)
    if people and (one := plan.identify) is not None:
        progress(one.title)
        checks.check_entities(
            engine, one.column, counts[0],
            integer=one.integer, spread=one.spread, dense=one.dense, listing=one.listing,
        )  # fmt: skip
    partitions = _partitions(policy, plan, engine, progress, counts[0], lock)
    progress(plan.count.title)
    merged = tabulate(engine, plan.count)
    if plan.naming is not None:
        progress(plan.naming.title)
        checks.check_names(engine, plan.naming.statement, plan.naming.listing, plan.naming.columns)
    return Looked(partitions, merged)


def _partitions(
    policy: Policy, plan: Plan, engine: Engine, progress: Callable[[str], None], records: int, lock: Lock | None
) -> tuple[Partition, ...]:
    """Those of the wide blocks of so many records; a table without any waits for nothing that makes cells."""
    if plan.cells is None:
        return ()
    from funnel.plan.partition import partition

    return partition(policy, plan.cells, engine, progress, records, () if lock is None else lock.cells)


def count(
    policy: Policy,
    plan: Plan,
    engine: Engine,
    progress: Callable[[str], None] = lambda _: None,
    *,
    lock: Lock | None = None,
    taking: Taking = LOOK,
    people: bool = True,
) -> Counted:
    """Carry out a plan up to its count: the joint distribution N[s, x], fit to be protected.

    `taking` says which private estimate will do; where none is kept one is entered in the ledger, then drawn. A `lock`
    names its own; `people` as in `look`. Raises SourceError and PlanError for tables that no protocol can serve,
    LedgerError (`budget`) where an estimate is one too many.
    """
    looked = look(policy, plan, engine, progress, lock, people=people)
    counted = _counted(policy, plan, engine, lock, taking)
    counted = replace(counted, partitions=looked.partitions, merged=looked.merged)
    return fit(beside(counted, plan, engine, progress), plan)


def beside(counted: Counted, plan: Plan, engine: Engine, progress: Callable[[str], None]) -> Counted:
    """With what somebody may know of the records, and with everybody in the source, where the plan asks for them."""
    if (know := plan.know) is not None:
        from funnel.engine.known import with_known

        progress(know.title)
        joint = with_known(engine, know.statement, know.levels, counted.joint, know.minimum, counted.columns)
        counted = replace(counted, joint=joint)
    if plan.everybody is not None:
        progress(plan.everybody.title)
        counted = replace(counted, populations=count_everybody(engine, plan.everybody, counted.joint))
    return counted


def fit(counted: Counted, plan: Plan) -> Counted:
    """With what holds its values, once it is fit to be protected. Raises SourceError, PlanError."""
    policy = counted.policy
    counted = replace(counted, joint=placed(policy, counted.cells, counted.joint))
    reads_secret, noisy = policy.mechanism.reads_secret, policy.estimate.kind == "private"
    counting.check_minimum(counted.joint, plan.count.minimum, secret_published=reads_secret, noisy=noisy)
    _check_written(policy, [*counted.joint.blocks, *map(vocabulary, counted.columns)], counted.joint.rows)
    return counted


def _counted(policy: Policy, plan: Plan, engine: Engine, lock: Lock | None, taking: Taking) -> Counted:
    stage, epsilon = plan.count, policy.estimate.epsilon
    if epsilon is None:
        joint = counting.joint_distribution(engine, stage.cells, stage.secret, stage.blocks)
        return Counted(policy, joint)
    from funnel.draw.histogram import Estimated
    from funnel.ledger.estimates import charged
    from funnel.ledger.journal import Journal
    from funnel.lock.pinned import kept_estimate

    declared, found = declared_table(policy, stage, engine)
    if lock is None:
        kept, spent = taken(policy, plan, declared, found, taking)
    else:
        spent = charged(Journal(policy.private), lock.estimated or "")
        kept = kept_estimate(policy.private, lock, declared)
    over = Estimated(declared, rational(epsilon), found, kept.true, kept.noisy, kept.name)
    notion, estimated = _settled(policy.privacy, over) if lock is None else _pinned(policy, lock, over)
    return Counted(policy.model_copy(update={"privacy": notion}), estimated.joint, estimated, spent)


def declared_table(policy: Policy, stage: Count, engine: Engine) -> tuple[Domain, IntArray]:
    """The declared domain of a private estimate and the records of each of its cells. Raises SourceError, PlanError."""
    from funnel.engine.declared import declared_counts
    from funnel.plan.domain import domain

    declared = domain(policy)
    for block in _held(policy, (), declared.blocks):
        policy.mechanism.check_values(block)
    counts = declared_counts(engine, stage.cells, declared)
    _check_written(policy, declared.blocks, int(counts.sum()))
    return declared, counts


def _check_written(policy: Policy, blocks: Sequence[Alphabet], rows: int) -> None:
    """That so many rows of these values can be written as the policy asks. Raises SourceError, PlanError."""
    if policy.release.refuses_formulas:
        from funnel.release.formulas import check_formulas

        check_formulas(blocks)
    if (folders := policy.parted) is not None:
        from funnel.release.folders import check_folders

        check_folders(folders.column, folders.rows, blocks, rows)
    if folders is None or folders.column is not None:
        _check_together(policy, rows)


def _check_together(policy: Policy, rows: int) -> None:
    """That one process can write so many rows which are not written file by file. Raises PlanError."""
    columns = sum(len(block.columns) for block in policy.wide)
    if columns:
        from funnel.engine.wide import MOST_CODES

        if rows > (most := MOST_CODES // columns):
            said = f"{rows:,} rows of {columns} columns would be filled in from cells at once; {most:,} are the most"
            advice = "Write `partition: {rows: 1000000}` under `release`: such files are filled in one by one."
            raise PlanError("cells-size", said, advice=advice)
    if policy.engine == "spark" and policy.parted and policy.release.identify and rows > MOST_SORTED:
        said = f"{rows:,} rows with names would be sorted into folders by one process; {MOST_SORTED:,} are the most"
        advice = "Write `partition: {rows: 1000000}` under `release`: such files are written wherever their rows are."
        raise PlanError("partition", said, advice=advice)


def vocabulary(column: Vocabulary) -> Alphabet:
    """The values that a column inside a wide block may be released with."""
    return Alphabet((column.name,), tuple((value,) for value in column.values))


def _settled(notion: Notion, noisy: Estimated) -> tuple[Notion, Estimated]:
    """The counts to go by, and a notion whose promise holds for the true ones in spite of the noise where it can."""
    from funnel.draw.histogram import SENSITIVITY

    width = notion.noise_width(noisy.epsilon / SENSITIVITY, len(noisy.noisy))
    found = replace(noisy, width=width)
    _left = found.joint  # refuses values of which the noise leaves nothing, before anything is widened
    return notion.over_noise(found.noisy, width, int(found.estimated.sum())), found


def _pinned(policy: Policy, lock: Lock, kept: Estimated) -> tuple[Notion, Estimated]:
    """The current records beside the lock's noisy counts, and its uncertainty set: nothing is estimated."""
    from funnel.draw.histogram import SENSITIVITY

    notion = policy.privacy.over_kept_noise(lock.parameters)
    return notion, replace(kept, width=notion.noise_width(kept.epsilon / SENSITIVITY, len(kept.noisy)))


def placed(policy: Policy, cells: Sequence[Cells], joint: Joint) -> Joint:
    """The joint distribution, its blocks told what holds their values."""
    return replace(joint, blocks=_held(policy, cells, joint.blocks))


def _held(policy: Policy, cells: Sequence[Cells], blocks: Sequence[Alphabet]) -> tuple[Alphabet, ...]:
    """Blocks, told in which groups of groups and in which parts of a partition their values lie."""
    grouped = {one.name: one for block in policy.blocks if block.cells is None for one in block.attributes
               if len(one.groups or ()) > 1}  # fmt: skip
    paths: Paths = {one.name: one.ways() for one in cells}
    return tuple(
        replace(block, paths={
            **{name: paths[name] for name in block.columns if name in paths},
            **{name: _of_groups(grouped[name], {value[place] for value in block.values})
               for place, name in enumerate(block.columns) if name in grouped},
        })
        for block in blocks
    )  # fmt: skip


def _of_groups(attribute: Attribute, values: set[str | None]) -> dict[str, tuple[str, ...]]:
    return {value: tuple(reversed(attribute.above(value))) for value in values if value is not None}
