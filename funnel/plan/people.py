"""The stage that digests who is in a table with which values, by which a later release knows both again."""

from __future__ import annotations

from funnel.engine.sql import identifier, listed
from funnel.plan.columns import NARROW
from funnel.plan.names import Names
from funnel.plan.stages import People
from funnel.policy import Policy

SAMPLE = "sampled_people"
"""The table of a run that holds the entities of the sample."""
_SALT = "getvariable('people')"
VERSION = f"CAST(hash('', {_SALT}) AS VARCHAR)"
"""SQL: what tells one version of the engine's hash from another."""


def people_stage(policy: Policy, names: Names) -> People:
    """The stage: one hash of all rows in the engine, one reading of who they are about, one of a sample's values.

    Rows that are nobody's differ in what was counted of them alone: that is hashed, and no row is read again.
    """
    columns = policy.sensitive, tuple(label for block in policy.blocks for label in block.labels)
    if policy.source.entity is None:
        content = _content("told") if any(names.inner) else _content("raw", "CAST(sum(n) AS BIGINT)")
        return People(None, *columns, content, None, None)
    labels = (f"{key.label} AS {identifier(key.name)}" for key in names.keys)
    shown = listed(f"CAST({identifier(key.name)} AS VARCHAR)" for key in names.keys)
    kind = "BIGINT" if names.entity_type in NARROW else "VARCHAR"
    sampled = f"SELECT * FROM kept SEMI JOIN {SAMPLE} ON kept.entity = CAST({SAMPLE}.v0 AS {kind})"
    return People(
        policy.source.entity,
        *columns,
        _content("told" if any(names.inner) else "kept"),
        "SELECT entity FROM kept",
        f"SELECT entity, {shown} FROM (SELECT entity, {listed(labels)} FROM ({sampled}))",
    )


def named_table(policy: Policy) -> str:
    """What stands for the table that a policy names, and for how it has that read."""
    from funnel.ledger.people import table_name

    read = "" if policy.source.csv is None else policy.source.csv.model_dump_json(exclude_none=True)
    return table_name(policy.source.table, policy.directory, policy.private, read)


def row_hash(view: str) -> str:
    """SQL: the hash of one row of a view."""
    return f"hash({view}, {_SALT})"


def _content(view: str, rows: str = "count(*)") -> str:
    """Rows, a sum that does not go by their order, and what tells one version of the engine's hash from another."""
    return f"SELECT {rows}, CAST(sum({row_hash(view)}) AS VARCHAR), {VERSION} FROM {view}"
