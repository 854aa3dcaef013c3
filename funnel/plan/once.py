"""The stage that counts and draws in one reading, where a lock says beforehand which values there are.

What somebody may know, and who is absent, is counted behind it, in readings of their own. Rows that are left out for
want of a value come by as well: of those, too, it is asked whose they are. Several readings are taken where rare values
become others by what is counted.
"""

from __future__ import annotations

from funnel.engine.sql import every, identifier, listed
from funnel.plan.names import THERE, Names
from funnel.plan.people import row_hash
from funnel.plan.population import WHOLE
from funnel.plan.stages import Count, MakeCells, Once
from funnel.plan.wide import told
from funnel.policy import Policy


def once_stage(policy: Policy, names: Names, cells: MakeCells | None, count: Count, *, whole: bool) -> Once | None:
    """The stage of a plan with permanent draws under a lock, None where it takes several readings.

    `whole`: everybody in the source is counted, too.
    """
    if count.rare:
        return None
    kept, _, *tops = count.statements
    read, blocks = ((), ()) if cells is None else (cells.statements, cells.blocks)
    view, rows = ("kept", names.rows) if cells is None else ("told", told(names, f"({names.rows})"))
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
    keys = [identifier(key) for block in blocks for key in block.keys]
    texts = [f"CAST({key} AS VARCHAR) AS {key}" for key in keys]
    cell = [f"{key.raw} AS {identifier(key.name)}" for key in names.cells]
    there = [f"{names.is_there} AS {THERE}"] if names.is_there else []
    passed = [*names.whose_names, "content", *(THERE for _ in there)]
    rows = f"SELECT {listed(['*', f'{row_hash(view)} AS content', *there, *cell])} FROM ({rows}) {view}"
    made = [*read, kept, *tops, *tables]
    return Once(
        (kept, *tops, *tables),
        f"SELECT {listed([*passed, *codes, *keys])} FROM "
        f"(SELECT {listed([*passed, *labels, *texts])} FROM ({rows})) {' '.join(joins)}",
        (*(f"DROP {' '.join(one.split()[2:4])}" for one in made), *(f"DROP MACRO {one.macro}" for one in blocks),
         "DROP VIEW source", *((f"DROP VIEW {WHOLE}",) if whole else ())),
    )
