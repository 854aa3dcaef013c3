"""The stage that counts and draws in one reading, where a lock says beforehand which values there are."""

from __future__ import annotations

from funnel.engine.sql import every, identifier, listed
from funnel.plan.names import Names
from funnel.plan.people import CONTENT
from funnel.plan.stages import Count, Once


def once_stage(names: Names, count: Count) -> Once | None:
    """The stage of a plan with permanent draws under a lock; None where values become others by what is counted."""
    if count.rare:
        return None
    kept, _, *tops = count.statements
    axes = [names.secret, *names.blocks]
    known = [f"known_{name}" for name in ("s", *(f"x{block}" for block in range(len(names.blocks))))]
    tables = [f"CREATE TEMP TABLE {name} AS SELECT * FROM {name.replace('known', 'alphabet')}" for name in known]
    labels = [f"{key.label} AS {identifier(f'label_{key.name}')}" for keys in axes for key in keys]
    joins = [
        f"LEFT JOIN {name} ON "
        + every(f"{identifier(f'label_{key.name}')} IS NOT DISTINCT FROM {name}.v{i}" for i, key in enumerate(keys))
        for name, keys in zip(known, axes, strict=True)
    ]
    codes = [f"{name}.code AS {name.removeprefix('known_')}" for name in known]
    return Once(
        (kept, *tops, *tables),
        f"SELECT {listed(['entity', 'content', *codes])} FROM "
        f"(SELECT {listed(['entity', f'{CONTENT} AS content', *labels])} FROM kept) {' '.join(joins)}",
        ("DROP VIEW kept", *(f"DROP TABLE {one.split()[3]}" for one in (*tops, *tables)), "DROP VIEW source"),
    )
