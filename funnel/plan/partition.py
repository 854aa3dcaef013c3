"""The stage that partitions: one reading of a wide block's columns, its cells, and the macro that finds a row's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from funnel.cells.cells import Cells
from funnel.cells.columns import SourceColumn, Vocabulary
from funnel.cells.condition import sql
from funnel.cells.make import Made, make
from funnel.engine import Engine
from funnel.engine.checks import check_identifier
from funnel.engine.sql import identifier, listed, literal
from funnel.engine.wide import check_size, read_columns
from funnel.errors import InternalError
from funnel.plan import stages
from funnel.plan.columns import NARROW
from funnel.policy import Block, Policy


@dataclass(frozen=True, eq=False)
class Partition:
    """A wide block's cells: as they were `made`, or those of a lock, and then its columns as they were read."""

    cells: Cells
    sources: tuple[SourceColumn, ...]
    made: Made | None


def partition(
    policy: Policy,
    stage: stages.MakeCells | None,
    engine: Engine,
    progress: Callable[[str], None],
    records: int,
    pinned: Sequence[Cells] = (),
) -> tuple[Partition, ...]:
    """Make the cells of every wide block, or take the `pinned` ones; either way the engine learns their macros.

    There are so many `records` at most. Raises PlanError where the table cannot have such cells, SourceError for values
    that pinned cells do not know.
    """

    if stage is None:
        return ()
    progress(stage.title)
    engine.prepare(stage.statements)
    kept = {one.name: one for one in pinned}
    found = []
    for block, wide in zip(policy.wide, stage.blocks, strict=True):
        check_size(engine, wide.name, wide.statement, len(wide.columns), records)
        sources = read_columns(engine, wide.statement, wide.columns, wide.types, wide.ordered)
        if kept:
            found.append(in_cells(block, wide, kept[wide.name], sources))
            continue
        _check_texts(block, sources)
        made = _made(block, wide, sources, stage.support)
        found.append(Partition(made.cells, (), made))
    engine.prepare(macros(policy, stage, [one.cells for one in found]))
    return tuple(found)


def in_cells(
    block: Block, wide: stages.WideBlock, cells: Cells, sources: tuple[SourceColumn, ...]
) -> Partition:
    """A wide block's columns in the cells of a lock. Raises SourceError for values that these do not know."""
    from funnel.lock.unseen import check_seen

    _check_texts(block, sources)
    check_seen(block, cells, sources)
    return Partition(cells, sources, None)


def _check_texts(block: Block, sources: Sequence[SourceColumn]) -> None:
    """Refuse texts and whole numbers that tell who somebody is; fractions are measured, and binned.

    Months and quarters of dates have no order here, and are no texts of people. Raises SourceError.
    """
    measured = {one.name for one in block.attributes if one.is_measured}
    for one in sources:
        if not one.ordered or one.type in NARROW:
            text = not one.ordered and one.name not in measured
            check_identifier(one.name, len(one.values), int(one.counts.sum()), text=text)


def _made(block: Block, wide: stages.WideBlock, sources: Sequence[SourceColumn], support: int) -> Made:
    if block.cells is None:
        raise InternalError(f"block {block.name} is not wide")
    rare = {one.name: one.rare for one in block.attributes if one.rare is not None}
    return make(wide.name, sources, most=wide.most, minimum=wide.minimum, support=support, rare=rare)


def macros(policy: Policy, stage: stages.MakeCells, cells: Sequence[Cells]) -> tuple[str, ...]:
    """The statements by which an engine learns in which cell a row lies."""
    return tuple(map(_macro, policy.wide, stage.blocks, cells))


def _macro(block: Block, wide: stages.WideBlock, cells: Cells) -> str:
    """SQL: the macro from a row's columns to the number of its cell; 0 where the row is to be left out."""
    from funnel.lock.unseen import LEFT_OUT

    keys = [identifier(key) for key in wide.keys]
    left_out = [
        _unknown(column, key)
        for column, key, attribute in zip(cells.columns, keys, block.attributes, strict=True)
        if attribute.unseen == "drop"
    ]
    cell = sql(cells, keys, literal)
    tests = [test for test in left_out if test is not None]
    body = f"CASE WHEN {' OR '.join(tests)} THEN {LEFT_OUT} ELSE {cell} END" if tests else cell
    return f"CREATE TEMP MACRO {identifier(wide.macro)}({listed(keys)}) AS {body}"


def _unknown(column: Vocabulary, key: str) -> str | None:
    """The condition that a value is none that the column knows; None where it knows all."""
    parts = [f"{key} IS NULL"] if column.missing is None else []
    if column.cuts is None and column.other is None:
        known = listed(literal(value) for value in column.values if value is not None)
        parts.append(f"CAST({key} AS VARCHAR) NOT IN ({known})")
    return " OR ".join(parts) or None
