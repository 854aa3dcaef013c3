"""The stage that reads the columns of wide blocks, so that they can be partitioned into cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funnel.data.alphabet import OTHER
from funnel.engine.sql import identifier, listed, literal
from funnel.plan.columns import ColumnKey, Inner
from funnel.plan.names import Names
from funnel.plan.stages import MakeCells, WideBlock
from funnel.policy import Block, Policy


def cells_stage(policy: Policy, names: Names, lock: str | None) -> MakeCells | None:
    """The stage, None where no block is wide.

    View `read` has every record's raw values, view `told` those that conditions are about: what is put under `other` by
    `top` is so there.
    """
    if not policy.wide:
        return None
    return MakeCells(
        (f"CREATE TEMP VIEW read AS {names.rows}{names.where}", *_tops(policy, names, lock),
         f"CREATE TEMP VIEW told AS {told(names, 'read')}"),
        tuple(_wide(j, block, names.inner[j]) for j, block in enumerate(policy.blocks) if block.cells),
        policy.estimate.minimum,
    )


def _tops(policy: Policy, names: Names, lock: str | None) -> Iterator[str]:
    for block, inner in zip(policy.blocks, names.inner, strict=True):
        for attribute, one in zip(block.attributes, inner, strict=False):
            if attribute.top is not None:
                yield top(one.key, attribute.top, "read", "count(*)", lock)


def top(key: ColumnKey, count: int, table: str, records: str, lock: str | None) -> str:
    """The most frequent values of a key of a table, by a sum that counts records; under a lock, those of the lock."""
    name, kept = identifier(key.name), f"CREATE TEMP TABLE {identifier('top_' + key.name)} AS"
    if lock is not None:
        return f"{kept} SELECT v0 AS value FROM {identifier('lock_' + key.name)}"
    return (
        f"{kept} SELECT value FROM (SELECT {key.text} AS value, {records} AS n FROM {table} "
        f"WHERE {name} IS NOT NULL AND {key.text} <> {literal(OTHER)} GROUP BY ALL) "
        f"ORDER BY n DESC, value LIMIT {count}"
    )


def told(names: Names, rows: str) -> str:
    """SQL of rows with what conditions are about, from a table of them as they were read."""
    plain = [identifier(key.name) for key in names.plain + names.own]
    inner = [f"{one.value} AS {identifier(one.key.name)}" for inner in names.inner for one in inner]
    return f"SELECT {listed(plain + inner + names.whose_names)} FROM {rows}"


def _wide(index: int, block: Block, inner: Sequence[Inner]) -> WideBlock:
    if block.cells is None:
        raise ValueError(f"block {block.name} is not wide")
    keys = [identifier(one.key.name) for one in inner]
    texts = listed(f"CAST({key} AS VARCHAR) AS {key}" for key in keys)
    return WideBlock(
        block.name,
        block.columns,
        tuple(one.type for one in inner),
        tuple(one.ordered for one in inner),
        tuple(one.key.name for one in inner),
        f"cell_{index}",
        f"SELECT {texts}, count(*) AS n FROM told GROUP BY ALL",
        block.cells.most,
        block.cells.minimum,
    )
