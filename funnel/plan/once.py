"""The stage that counts and draws in one reading, where a lock says beforehand which values there are.

What somebody may know, and who is absent, is counted behind it, in readings of their own. Rows that are left out for
want of a value come by as well: of those, too, it is asked whose they are. Of blocks with rare values the labels come
by, each to become what the lock says.
"""

from __future__ import annotations

from funnel.engine.sql import every, identifier, listed
from funnel.plan.names import THERE, Names
from funnel.plan.people import row_hash
from funnel.plan.population import WHOLE
from funnel.plan.stages import Count, MakeCells, Once
from funnel.plan.wide import told


def label_of(key: str) -> str:
    """The column with the label of a key."""
    return f"label_{key}"


def once_stage(names: Names, cells: MakeCells | None, count: Count, *, whole: bool) -> Once:
    """The stage of a plan with permanent draws under a lock. `whole`: everybody in the source is counted, too."""
    kept, _, *tops = count.statements
    read, blocks = ((), ()) if cells is None else (cells.statements, cells.blocks)
    view, rows = ("kept", names.rows) if cells is None else ("told", told(names, f"({names.rows})"))
    axes = {"s": names.secret} | {f"x{block}": keys for block, keys in enumerate(names.blocks)}
    merged = {key.name for _, key, _ in names.rare}
    joined = {name: keys for name, keys in axes.items() if merged.isdisjoint(key.name for key in keys)}
    tables = [f"CREATE TEMP TABLE known_{name} AS SELECT * FROM alphabet_{name}" for name in joined]
    labels = [
        f"{key.text if key.name in merged else key.label} AS {label_of(key.name)}"
        for keys in axes.values()
        for key in keys
    ]
    joins = [
        f"LEFT JOIN known_{name} ON "
        + every(f"{label_of(key.name)} IS NOT DISTINCT FROM known_{name}.v{i}" for i, key in enumerate(keys))
        for name, keys in joined.items()
    ]
    codes = [f"known_{name}.code AS {name}" for name in joined]
    codes += [label_of(key.name) for name, keys in axes.items() if name not in joined for key in keys]
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
