"""Carrying out what reads a table as a whole: a stage that counts and draws at once, or one that draws and checks.

Everything that a run refuses is refused as it is elsewhere, before anything is written: what was drawn by then is
forgotten. A table that holds something else than the lock knows is looked at in the usual readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Alphabet, Joint, Label
from funnel.data.channel import MAX_CELLS
from funnel.data.joint import IntArray
from funnel.draw.once import Reading
from funnel.engine import Engine, Kernel, changed
from funnel.engine.checks import check_entities, refuse_repeated
from funnel.errors import SourceError
from funnel.ledger.people import PeopleKey, people_key
from funnel.lock.lock import Lock
from funnel.lock.pinned import kept_counts
from funnel.plan.count import Counted
from funnel.plan.draw import BATCH, DrawnRows, named, parts_of, provide_codes, recoding
from funnel.plan.passing import Passing
from funnel.plan.prepare import Prepared
from funnel.plan.protect import Protected
from funnel.plan.stages import Draw, Identify
from funnel.plan.tabulate import Merged
from funnel.policy import Policy
from funnel.progress import Report
from funnel.release.named import Aside, Kept
from funnel.release.publish import Publisher

if TYPE_CHECKING:
    from funnel.plan.partition import Partition


@dataclass(frozen=True, eq=False)
class Read:
    """What one reading found: counts, draws, and the digest's part, under the key of the private folder."""

    joint: Joint
    reading: Reading
    key: PeopleKey
    alphabets: tuple[Alphabet, ...]
    rows: Kept | None
    partitions: tuple[Partition, ...] = ()
    merged: tuple[Merged, ...] = ()

    def sample(self) -> tuple[IntArray, list[Label]]:
        """Words (m,) of the people in the sample, and the values of each."""
        rows = self.reading.sample()
        values = zip(*(self._texts(axis, rows[:, axis + 1]) for axis in range(len(self.alphabets))), strict=True)
        return rows[:, 0], [tuple(part for label in one for part in label) for one in values]

    def _texts(self, axis: int, codes: IntArray) -> list[Label]:
        return [self.alphabets[axis].values[code] for code in codes.tolist()]

    def counted(self, policy: Policy) -> Counted:
        """What was counted, before it is known what else there is to know."""
        return Counted(policy, self.joint, partitions=self.partitions, merged=self.merged)

    def drawn(self, run: Prepared, protected: Protected) -> DrawnRows:
        """What was drawn, once it is known that it may be. Raises SourceError, PlanError."""
        tally = self.reading.tally
        tally.check(protected.protection.joint)
        run.source.check_unchanged()
        return DrawnRows(*tally.released, tuple(tally.tables), self.rows)


def read_once(run: Prepared, engine: Engine, publisher: Publisher | None, progress: Report) -> Read | None:
    """Carry out the stage; None where there is none, or the table asks for the usual readings. Raises SourceError."""
    stage, identify, lock = run.plan.once, run.plan.identify, run.lock
    alphabets = None if lock is None else _known(run.policy, lock)
    if stage is None or identify is None or lock is None or alphabets is None or publisher is None:
        return None
    progress(stage.title)
    key, cells = people_key(run.policy.private), run.plan.cells
    engine.prepare(run.plan.scan.statements)
    if cells is not None:
        from funnel.plan.partition import macros  # a table without cells waits for nothing that makes them

        engine.prepare((*cells.statements, *macros(run.policy, cells, lock.cells)))
    for name, alphabet in zip(("s", *(f"x{j}" for j in range(len(lock.protocols)))), alphabets, strict=True):
        engine.provide(f"alphabet_{name}", alphabet)
    engine.prepare(stage.statements)
    engine.variables(people=key.salt)
    reading = Reading(lock.protocols, tuple(map(len, alphabets)), run.key, key, named=bool(run.plan.draw.keys),
                      told=lambda done: progress(stage.title, done))  # fmt: skip
    passing = Passing(run.plan, engine, alphabets[1:], reading)
    sink, joint = Aside(publisher.scratch, run.plan.draw.keys, lock.protocols), None
    with suppress(SourceError):  # whatever is wrong, the usual readings say it
        rows = _carried_out(run.plan.draw, stage.statement, engine, passing, reading, sink)
        if reading.whole and (rows is None or rows.named) and not passing.is_refused(run.plan.inspect.refused):
            partitions = passing.partitions(run.policy, lock.cells)
            joint = _joint(alphabets, reading)
    run.source.check_unchanged()
    if joint is None:
        engine.prepare(stage.undo)
        return None
    _check_people(engine, identify, reading)
    return Read(joint, reading, key, tuple(alphabets), rows, partitions, passing.merged(engine))


def _carried_out(
    stage: Draw, statement: str, engine: Engine, kernel: Kernel, reading: Reading, sink: Aside
) -> Kept | None:
    """Let a table be read by a kernel that is a reading, or brings rows to it; rows with a key are put aside."""
    if stage.keys:
        parts = parts_of(stage, lambda: reading.rows)
        return named(engine, statement, kernel, sink, reading.tally, parts)
    for _ in engine.map(statement, BATCH, kernel):
        pass
    return None


def read_drawing(
    run: Prepared,
    engine: Engine,
    publisher: Publisher | None,
    counted: Counted,
    protected: Protected,
    progress: Report,
) -> Read | None:
    """Draw for a table that was counted, and see who is in it; None where that is done apart. Raises SourceError."""
    stage, identify, joint = run.plan.draw, run.plan.identify, counted.joint
    if not stage.whose or stage.statement is None or identify is None or publisher is None:
        return None
    progress(stage.title)
    provide_codes(stage, engine, counted)
    key, alphabets = people_key(run.policy.path(run.policy.release.private)), (joint.secret, *joint.blocks)
    engine.variables(people=key.salt)
    protocols = protected.protection.protocols
    reading = Reading(protocols, tuple(map(len, alphabets)), run.key, key, recode=recoding(counted, protected),
                      named=bool(stage.keys), told=lambda done: progress(stage.title, done, joint.rows))  # fmt: skip
    sink = Aside(publisher.scratch, stage.keys, tuple(protocols))
    rows = _carried_out(stage, stage.statement, engine, reading, reading, sink)
    if not reading.whole:
        raise changed(run.source.name)
    if rows is not None:
        rows.check()
    run.source.check_unchanged()
    progress(identify.title)
    _check_people(engine, identify, None if run.policy.source.missing == "drop" else reading)
    progress(run.plan.people.title)
    return Read(joint, reading, key, alphabets, rows)


def _check_people(engine: Engine, stage: Identify, reading: Reading | None) -> None:
    """Refuse people with two rows; by other readings of their column, where one did not have all rows or flags."""
    repeated = None if reading is None else reading.repeated()
    if repeated is None:
        rows = engine.row(stage.spread)[0] if reading is None else reading.rows + reading.left_out
        check_entities(
            engine, stage.column, rows,
            integer=stage.integer, spread=stage.spread, dense=stage.dense, listing=stage.listing,
        )  # fmt: skip
    else:
        refuse_repeated(stage.column, repeated)


def _known(policy: Policy, lock: Lock) -> list[Alphabet] | None:
    """The values of the secret and of each block as the lock knows them; None where it made one block of several."""
    inputs = [one.inputs for one in lock.protocols]
    if [one.columns for one in inputs] != [block.labels for block in policy.blocks]:
        return None
    read = next((one.secret for one in lock.protocols if one.secret is not None), None)
    counts = kept_counts(policy.private, lock) if read is None else None
    secret = read or (counts.secret if counts is not None else Alphabet(policy.sensitive, lock.secret))
    return [secret, *inputs]


def _joint(alphabets: Sequence[Alphabet], reading: Reading) -> Joint | None:
    """The counts over the values that occur; None where the usual stages have something to refuse."""
    cells, counts = reading.cells()
    if not 0 < len(counts) <= MAX_CELLS:
        return None
    found, codes = [], []
    for alphabet, column in zip(alphabets, cells.T, strict=True):
        there = np.unique(column)
        values = [alphabet.values[code] for code in there.tolist()]
        ordered = Alphabet.of(alphabet.columns, values)
        if any(all(part is None for part in parts) for parts in zip(*values, strict=True)):
            return None
        place = {value: code for code, value in enumerate(ordered.values)}
        found.append(ordered)
        codes.append(np.array([place[value] for value in values], np.int64)[np.searchsorted(there, column)])
    if len(found[0]) < 2:
        return None
    rows = np.column_stack(codes)
    order = np.lexsort(rows.T[::-1])
    return Joint(found[0], tuple(found[1:]), rows[order], counts[order])
