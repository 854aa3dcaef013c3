"""Policy + source schema -> Plan, or every reason why the two do not fit, each at its line of the policy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from funnel.engine.sources import Source
from funnel.engine.sql import every, identifier, listed, selection
from funnel.errors import PolicyError
from funnel.format.released import with_count
from funnel.plan.columns import NARROW, ColumnKey
from funnel.plan.fit import check_fit, column_of
from funnel.plan.know import know_stage
from funnel.plan.names import Names
from funnel.plan.once import once_stage
from funnel.plan.people import people_stage, row_hash
from funnel.plan.population import NOTHING, WHOLE, Wanted, everybody_stage, own_class
from funnel.plan.stages import (
    Audit,
    Count,
    Draw,
    Identify,
    Inspect,
    Name,
    Pin,
    Plan,
    Publish,
    Rare,
    Scan,
    Solve,
    Write,
)
from funnel.plan.wide import cells_stage, top
from funnel.policy import Attribute, Policy


def compile_plan(
    policy: Policy,
    schema: Mapping[str, str],
    source: Source,
    lock: str | None = None,
    wanted: Wanted = NOTHING,
) -> Plan:
    """Compile a policy for a source whose columns and DuckDB types are `schema`; `lock` is a lock's checksum.

    `wanted` is what other releases of the folder ask of everybody.

    Under a lock nothing is solved, so values may be rare, and the most frequent ones are those of the lock: the
    engine has them as tables lock_x0_0 and so on.
    Raises PolicyError with every column that is unknown or of a type its use does not allow, and a filter
    that is not one expression.
    """
    texts = _texts(policy, schema) if source.is_text else []
    problems, predicate = check_fit(policy, schema, texts)
    if problems:
        raise PolicyError(problems)
    names = Names(policy, {**schema, **dict.fromkeys(texts, "VARCHAR")})
    who = own_class(policy, names, predicate)
    everybody = everybody_stage(policy, names, who, lock, wanted, guessed=source.is_text)
    know = know_stage(policy, names)
    cells, count = cells_stage(policy, names, lock), _count(policy, names, lock)
    permanent, private = policy.draws.kind == "permanent", policy.estimate.epsilon is not None
    parted = policy.engine == "spark"  # rows lie in parts then, which are never all in one process
    one = lock is not None and permanent and not (private or parted)
    return Plan(
        policy.name,
        policy.sha256,
        _scan(policy, source.reading(texts), predicate, whole=everybody is not None),
        once_stage(names, cells, count, whole=everybody is not None) if one else None,
        _inspect(policy, names),
        None if policy.source.entity is None else _identify(names.entity, names.entity_type, parted=parted),
        cells,
        count,
        _name(policy, names) if names.key else None,
        know,
        everybody,
        people_stage(policy, names),
        _solve(policy) if lock is None else _pin(policy, lock),
        _draw(policy, names, whose=permanent and lock is None and not any((cells, private, parted))),
        _write(policy, names),
        Audit(),
        _publish(policy),
    )


def _texts(policy: Policy, schema: Mapping[str, str]) -> list[str]:
    """Columns whose values are released, hidden or published as they are, where a guessed number would rewrite them."""
    plain = [
        attribute.name
        for block in policy.blocks
        for attribute in block.attributes
        if not attribute.is_number and (block.cells is None or attribute.top is not None)
    ]
    columns = [column_of(name, schema) for name in (*policy.sensitive, *plain, *policy.release.identify)]
    return [column for column in dict.fromkeys(columns) if column and schema[column] == "DOUBLE"]


def _scan(policy: Policy, reader: str, predicate: str | None, *, whole: bool) -> Scan:
    where = f" WHERE {predicate}" if predicate else ""
    source = f"CREATE TEMP VIEW source AS SELECT * FROM {reader}{where}"
    everyone = f"CREATE TEMP VIEW {WHOLE} AS SELECT * FROM {reader}"
    return Scan(policy.source.table, (source, everyone) if whole else (source,))


def _inspect(policy: Policy, names: Names) -> Inspect:
    columns = list(dict.fromkeys(names.used + ([names.entity] if policy.source.entity else [])))
    counts = [f"count({names.present(name)})" for name in columns]
    where = [one for one in (names.present_only,) if one]
    wrong = [f"count_if({every([condition, *where])})" for _, condition, _ in names.refused]
    refused = tuple((name, label) for name, _, label in names.refused)
    return Inspect(tuple(columns), f"SELECT {listed(['count(*)', *counts, *wrong])} FROM source", refused)


def _identify(entity: str, kind: str, *, parted: bool) -> Identify:
    column = identifier(entity)
    distinct = f"bit_count(bitstring_agg(CAST({column} AS BIGINT), getvariable('low'), getvariable('high')))"
    return Identify(
        entity,
        kind in NARROW and not parted,
        f"SELECT count({column}), min({column}), max({column}) FROM source",
        f"SELECT count({column}) - {distinct} FROM source",
        f"SELECT {column} FROM source",
    )


def _count(policy: Policy, names: Names, lock: str | None) -> Count:
    keys = [identifier(key.name) for key in names.keys]
    tops = [
        top(key, attribute.top, "raw", "sum(n)", lock)
        for block, chosen in zip(policy.blocks, names.blocks, strict=True)
        for attribute, key in zip(block.attributes, chosen, strict=False)
        if attribute.top is not None and block.cells is None
    ]
    labels = listed(f"{key.label} AS {identifier(key.name)}" for key in names.keys)
    return Count(
        (
            _kept(policy, names),
            f"CREATE TEMP TABLE raw AS SELECT {listed([*keys, 'count(*) AS n'])} FROM kept GROUP BY ALL",
            *tops,
        ),
        tuple(_rare(*one, lock) for one in names.rare),
        f"CREATE TEMP TABLE cells AS SELECT {listed(keys)}, CAST(sum(n) AS BIGINT) AS n "
        f"FROM (SELECT {labels}, n FROM raw) GROUP BY ALL",
        f"SELECT {listed([*keys, 'n'])} FROM cells ORDER BY ALL",
        tuple(policy.sensitive),
        tuple(block.labels for block in policy.blocks),
        policy.estimate.minimum if lock is None else 1,
        policy.estimate.epsilon if lock is None else None,
    )


def _rare(attribute: Attribute, key: ColumnKey, kind: str, lock: str | None) -> Rare:
    """What a merged key needs to know of all its values; `kind` is the type of the source's column."""
    statement = f"SELECT {key.text} AS v, CAST(sum(n) AS BIGINT) AS n FROM raw GROUP BY ALL ORDER BY ALL"
    known = None if lock is None else f"lock_{key.name}"
    rule: Literal["other", "bin"] = "bin" if attribute.rare == "bin" else "other"
    kind = key.released_type if attribute.is_measured else kind
    return Rare(attribute.name, rule, kind, statement, f"rare_{key.name}", known)


def _kept(policy: Policy, names: Names) -> str:
    """The view of every record's raw keys; those of wide blocks from their columns in the view `told`."""
    if not any(names.inner):
        return f"CREATE TEMP VIEW kept AS {names.rows}{names.where}"
    known = [*names.own, *(one.key for inner in names.inner for one in inner if policy.privacy.asks_own)]
    told = [identifier(key.name) for key in [*names.plain, *known]] + names.whose_names
    cells = [f"{key.raw} AS {identifier(key.name)}" for key in names.cells]
    return f"CREATE TEMP VIEW kept AS SELECT {listed(told + cells)} FROM told"


def _name(policy: Policy, names: Names) -> Name:
    """Rows, those without a part of their key, and how many keys there are."""
    keys = _keys(policy)
    absent = " OR ".join(f"{key} IS NULL" for key in keys)
    listing = f"SELECT {listed(expression for expression, _ in names.key)} FROM source{names.where}"
    counts = f"count(*), count(*) FILTER (WHERE {absent})"
    return Name(policy.release.identify, listing, f"SELECT {counts} FROM ({listing})")


def _keys(policy: Policy) -> list[str]:
    return [f"k{index}" for index in range(len(policy.release.identify))]


def _solve(policy: Policy) -> Solve:
    notion = policy.privacy
    choice = policy.mechanism.choice(notion.notion, secret_public=policy.secret_public)
    named = () if choice is None else choice.ready
    search = notion.split == "optimal" and len(policy.blocks) > 1
    shares, beliefs = policy.shares(), policy.estimate.beliefs
    return Solve(notion.notion, notion.epsilon, policy.mechanism.kind, shares, tuple(named), search, beliefs)


def _pin(policy: Policy, lock: str) -> Pin:
    notion, estimate = policy.privacy, policy.estimate
    return Pin(lock, notion.notion, notion.epsilon, policy.mechanism.kind, estimate.epsilon, estimate.beliefs)


def _draw(policy: Policy, names: Names, *, whose: bool) -> Draw:
    notion = policy.privacy.notion
    reads_secret = policy.mechanism.may_read_secret(notion, secret_public=policy.secret_public)
    permanent = policy.draws.kind == "permanent"
    parts = [(f"x{j}", keys) for j, keys in enumerate(names.blocks)] + (
        [("s", names.secret)] if reads_secret or whose else []
    )
    same = "IS NOT DISTINCT FROM" if policy.source.missing == "category" else "="
    codes = tuple(_codes(name, keys) for name, keys in parts)
    hashed = [f"{row_hash('kept')} AS content"] if whose else []
    columns = (["kept.entity"] if permanent else []) + hashed + [f"codes_{name}.code AS {name}" for name, _ in parts]
    joins = [
        f"JOIN codes_{name} ON "
        + every(f"kept.{identifier(k.name)} {same} codes_{name}.{identifier(k.name)}" for k in keys)
        for name, keys in parts
    ]
    keys = _keys(policy)
    if not (permanent or keys or policy.mechanism.form_of_sets()):
        return Draw(policy.draws.kind, (), None)
    parted = policy.parted
    rows = parted.rows if keys and parted is not None and parted.column is None else None
    statement = f"SELECT {listed([*columns, *keys])} FROM kept {' '.join(joins)}"
    return Draw(policy.draws.kind, codes, statement, tuple(keys), whose, rows)


def _codes(name: str, keys: list[ColumnKey]) -> str:
    """Raw keys to codes, through the labels of the alphabet that the engine provides as a table."""
    raw = listed(identifier(key.name) for key in keys)
    labelled = listed(f"{key.label} AS l{i}" for i, key in enumerate(keys))
    match = every(f"l{i} IS NOT DISTINCT FROM v{i}" for i in range(len(keys)))
    return (
        f"CREATE TEMP TABLE codes_{name} AS SELECT DISTINCT {raw}, code "
        f"FROM (SELECT {raw}, {labelled} FROM raw) JOIN alphabet_{name} ON {match}"
    )


def _write(policy: Policy, names: Names) -> Write:
    columns = [name for block in policy.blocks for name in block.columns]
    types = [
        kind
        for keys, inner in zip(names.blocks, names.inner, strict=True)
        for kind in ([one.type for one in inner] if inner else [key.released_type for key in keys])
    ]
    form = policy.mechanism.form_of_sets()
    known = form is None and not names.key
    counted = policy.release.rows == "counts"
    statement = selection(*with_count(columns, types, counted=counted)) if known else None
    shown = policy.release.identify, tuple(kind for _, kind in names.key)
    parted = policy.parted
    folders = None if parted is None else (parted.column, parted.rows)
    return Write(tuple(columns), tuple(types), policy.release.format, statement, form, *shown, counted, folders)


def _publish(policy: Policy) -> Publish:
    also = policy.release.also
    beside = () if also is None else (also.table, also.old)
    return Publish(os.path.realpath(policy.to), os.path.realpath(policy.private), *beside)
