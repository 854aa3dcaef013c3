"""Policy + source schema -> Plan, or every reason why the two do not fit, each at its line of the policy."""

from __future__ import annotations

from collections.abc import Mapping

from funnel.engine.source import Source
from funnel.engine.sql import every, identifier, listed, literal
from funnel.errors import PolicyError
from funnel.plan.columns import NARROW, OTHER, Key, present, public_key, secret_key
from funnel.plan.fit import check_fit, column_of
from funnel.plan.stages import Audit, Count, Draw, Identify, Inspect, Pin, Plan, Publish, Scan, Solve, Write
from funnel.policy import Policy
from funnel.release.export import selection


def compile_plan(policy: Policy, schema: Mapping[str, str], source: Source, lock: str | None = None) -> Plan:
    """Compile a policy for a source whose columns and DuckDB types are `schema`; `lock` is a lock's checksum.

    Under a lock nothing is solved, so values may be rare, and the most frequent ones are those of the lock: the
    engine has them as tables lock_x0_0 and so on.
    Raises PolicyError with every column that is unknown or of a type its use does not allow, and a filter
    that is not one expression.
    """
    problems, predicate = check_fit(policy, schema)
    if problems:
        raise PolicyError(problems)
    texts = _texts(policy, schema) if source.is_text else []
    names = _Names(policy, {**schema, **dict.fromkeys(texts, "VARCHAR")})
    return Plan(
        policy.name,
        policy.sha256,
        _scan(policy, source.reading(texts), predicate),
        _inspect(policy, names),
        None if policy.source.entity is None else _identify(names.entity, names.entity_type),
        _count(policy, names, lock),
        _solve(policy) if lock is None else _pin(policy, lock),
        _draw(policy, names),
        _write(policy, names),
        Audit(),
        Publish(str(policy.path(policy.release.to)), str(policy.path(policy.release.private))),
    )


def _texts(policy: Policy, schema: Mapping[str, str]) -> list[str]:
    """Columns whose values are released or hidden as they are, where a guessed number would rewrite them."""
    plain = [
        attribute.name for block in policy.blocks for attribute in block.attributes if not attribute.is_number
    ]
    columns = [column_of(name, schema) for name in (*policy.sensitive, *plain)]
    return [column for column in dict.fromkeys(columns) if column and schema[column] == "DOUBLE"]


class _Names:
    """The source's own spelling of every column that the policy names, and the keys that read them."""

    def __init__(self, policy: Policy, schema: Mapping[str, str]) -> None:
        def find(name: str) -> str:
            return column_of(name, schema) or name

        self.sensitive = [find(name) for name in policy.sensitive]
        self.secret = [secret_key(i, name, schema[name]) for i, name in enumerate(self.sensitive)]
        self.public = [[find(attribute.name) for attribute in block.attributes] for block in policy.blocks]
        self.blocks = [
            [
                public_key(j, i, attribute.model_copy(update={"name": name}), schema[name])
                for i, (attribute, name) in enumerate(zip(block.attributes, columns, strict=True))
            ]
            for j, (block, columns) in enumerate(zip(policy.blocks, self.public, strict=True))
        ]
        self.entity = find(policy.source.entity or "")
        self.entity_type = schema.get(self.entity, "")
        self.schema = schema

    @property
    def keys(self) -> list[Key]:
        """Secret keys, then public keys block by block."""
        return self.secret + [key for block in self.blocks for key in block]

    @property
    def used(self) -> list[str]:
        """Every source column that is read into the joint distribution."""
        return self.sensitive + [name for block in self.public for name in block]


def _scan(policy: Policy, reader: str, predicate: str | None) -> Scan:
    where = f" WHERE {predicate}" if predicate else ""
    return Scan(policy.source.table, (f"CREATE TEMP VIEW source AS SELECT * FROM {reader}{where}",))


def _inspect(policy: Policy, names: _Names) -> Inspect:
    columns = list(dict.fromkeys(names.used + ([names.entity] if policy.source.entity else [])))
    counts = [f"count({present(name, names.schema[name])})" for name in columns]
    return Inspect(tuple(columns), f"SELECT {listed(['count(*)', *counts])} FROM source")


def _identify(entity: str, kind: str) -> Identify:
    column = identifier(entity)
    distinct = f"bit_count(bitstring_agg(CAST({column} AS BIGINT), getvariable('low'), getvariable('high')))"
    return Identify(
        entity,
        kind in NARROW,
        f"SELECT count({column}), min({column}), max({column}) FROM source",
        f"SELECT count({column}) - {distinct} FROM source",
        f"SELECT count({column}) - count(DISTINCT {column}) FROM source",
    )


def _count(policy: Policy, names: _Names, lock: str | None) -> Count:
    raw = [f"{key.raw} AS {identifier(key.name)}" for key in names.keys]
    entity = [f"{_entity(names)} AS entity"] if policy.source.entity else []
    present_only = every(f"{present(name, names.schema[name])} IS NOT NULL" for name in names.used)
    where = f" WHERE {present_only}" if policy.source.missing == "drop" else ""
    keys = [identifier(key.name) for key in names.keys]
    tops = [
        _top(key, attribute.top) if lock is None else _kept(key)
        for block, chosen in zip(policy.blocks, names.blocks, strict=True)
        for attribute, key in zip(block.attributes, chosen, strict=True)
        if attribute.top is not None
    ]
    labels = listed(f"{key.label} AS {identifier(key.name)}" for key in names.keys)
    return Count(
        (
            f"CREATE TEMP VIEW kept AS SELECT {listed(raw + entity)} FROM source{where}",
            f"CREATE TEMP TABLE raw AS SELECT {listed([*keys, 'count(*) AS n'])} FROM kept GROUP BY ALL",
            *tops,
            f"CREATE TEMP TABLE cells AS SELECT {listed(keys)}, CAST(sum(n) AS BIGINT) AS n "
            f"FROM (SELECT {labels}, n FROM raw) GROUP BY ALL",
        ),
        f"SELECT {listed([*keys, 'n'])} FROM cells ORDER BY ALL",
        tuple(policy.sensitive),
        tuple(block.columns for block in policy.blocks),
        policy.estimate.minimum if lock is None else 1,
        policy.estimate.epsilon if lock is None else None,
    )


def _top(key: Key, count: int) -> str:
    name = identifier(key.name)
    value = key.text
    return (
        f"CREATE TEMP TABLE {identifier('top_' + key.name)} AS SELECT {value} AS value FROM raw "
        f"WHERE {name} IS NOT NULL AND {value} <> {literal(OTHER)} "
        f"GROUP BY ALL ORDER BY sum(n) DESC, value LIMIT {count}"
    )


def _kept(key: Key) -> str:
    return (
        f"CREATE TEMP TABLE {identifier('top_' + key.name)} AS "
        f"SELECT v0 AS value FROM {identifier('lock_' + key.name)}"
    )


def _entity(names: _Names) -> str:
    kind = "BIGINT" if names.entity_type in NARROW else "VARCHAR"
    return f"CAST({identifier(names.entity)} AS {kind})"


def _solve(policy: Policy) -> Solve:
    notion = policy.privacy
    choice = policy.mechanism.choice(notion.notion, secret_public=policy.secret_public)
    named = () if choice is None else choice.ready
    search = notion.split == "optimal" and len(policy.blocks) > 1
    return Solve(notion.notion, notion.epsilon, policy.mechanism.kind, policy.shares(), tuple(named), search)


def _pin(policy: Policy, lock: str) -> Pin:
    notion, noise = policy.privacy, policy.estimate.epsilon
    return Pin(lock, notion.notion, notion.epsilon, policy.mechanism.kind, noise)


def _draw(policy: Policy, names: _Names) -> Draw:
    notion = policy.privacy.notion
    reads_secret = policy.mechanism.may_read_secret(notion, secret_public=policy.secret_public)
    permanent = policy.draws.kind == "permanent"
    parts = [(f"x{j}", keys) for j, keys in enumerate(names.blocks)] + (
        [("s", names.secret)] if reads_secret else []
    )
    same = "IS NOT DISTINCT FROM" if policy.source.missing == "category" else "="
    codes = tuple(_codes(name, keys) for name, keys in parts)
    columns = (["kept.entity"] if permanent else []) + [f"codes_{name}.code AS {name}" for name, _ in parts]
    joins = [
        f"JOIN codes_{name} ON "
        + every(f"kept.{identifier(k.name)} {same} codes_{name}.{identifier(k.name)}" for k in keys)
        for name, keys in parts
    ]
    return Draw(policy.draws.kind, codes, f"SELECT {listed(columns)} FROM kept {' '.join(joins)}")


def _codes(name: str, keys: list[Key]) -> str:
    """Raw keys to codes, through the labels of the alphabet that the engine provides as a table."""
    raw = listed(identifier(key.name) for key in keys)
    labelled = listed(f"{key.label} AS l{i}" for i, key in enumerate(keys))
    match = every(f"l{i} IS NOT DISTINCT FROM v{i}" for i in range(len(keys)))
    return (
        f"CREATE TEMP TABLE codes_{name} AS SELECT DISTINCT {raw}, code "
        f"FROM (SELECT {raw}, {labelled} FROM raw) JOIN alphabet_{name} ON {match}"
    )


def _write(policy: Policy, names: _Names) -> Write:
    keys = [key for block in names.blocks for key in block]
    columns = [name for block in policy.blocks for name in block.columns]
    types = [key.released_type for key in keys]
    form = policy.mechanism.form_of_sets()
    statement = selection(columns, types) if form is None else None
    return Write(tuple(columns), tuple(types), policy.release.format, statement, form)
