"""The stage that counts the whole source, those too whom the policy leaves out: being absent is an answer as well."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Alphabet, Joint, Label
from funnel.data.alphabet import OTHER
from funnel.data.channel import MAX_CELLS
from funnel.data.population import MOST_CLASSES, NO_LABEL, Population
from funnel.engine import Engine
from funnel.engine.checks import BELOW, NO_DATE
from funnel.engine.expressions import Expression, ExpressionError, check_condition, parse
from funnel.engine.sql import every, identifier, listed, literal
from funnel.errors import SourceError
from funnel.plan.columns import FLOATS, ColumnKey, secret_key
from funnel.plan.fit import column_of
from funnel.plan.names import Names
from funnel.plan.stages import Everybody
from funnel.policy import Policy

if TYPE_CHECKING:
    from funnel.format.journal import Present
    from funnel.lock.lock import Lock

WHOLE = "whole"
"""The view of all rows of the source, whatever the policy's filter says."""
_NONE = "(no label)"
"""Stands for a value that tonight's rules have no label for, where labels are numbers."""


@dataclass(frozen=True)
class Wanted:
    """What is to be known of everybody beside the policy's own release.

    `classes` are predicates of who is in other releases of the folder, `secrets` sensitive columns of other promises.
    """

    classes: tuple[str, ...] = ()
    secrets: tuple[tuple[str, ...], ...] = ()


NOTHING = Wanted()
"""Of a folder without other releases."""


def own_class(policy: Policy, names: Names, predicate: str | None) -> Expression | None:
    """Who is in the policy's releases: the filter holds, and with `missing: drop` no used column is missing.

    One canonical text for all that say the same of the same columns, read as the same types; None where nobody is left
    out.
    """
    parts = [] if predicate is None else [f"({predicate})"]
    if policy.source.missing == "drop":
        parts += sorted({names.there(name) for name in names.used})
    if not parts:
        return None
    found = parse(every(parts))
    return Expression(found.sql + _read_as(found, names.schema), found.columns)


def _read_as(expression: Expression, schema: Mapping[str, str]) -> str:
    """A comment that names the types of the columns that an expression reads: '2' is 2.0 for numbers, not for texts.

    The types of a CSV follow from its rows, and from what a policy does with its columns.
    """
    kinds = (schema[column_of(name, schema) or name] for name in expression.columns)
    return f" /* {re.sub(r'[^A-Za-z0-9(), ]', '_', ', '.join(kinds))} */"


def everybody_stage(
    policy: Policy, names: Names, own: Expression | None, lock: str | None, wanted: Wanted, *, guessed: bool
) -> Everybody | None:
    """The stage, None where nobody can be absent from any release and no other secret is asked about.

    Predicates that no longer fit the source are left out, and with more than MOST_CLASSES all of them: of those nothing
    is known. Nor are secrets counted whose numbers are `guessed`: who hides them reads the texts. Over a private
    estimate nobody is counted, for these counts would have no noise.
    """
    if own is None and lock is None and wanted == NOTHING:
        return None
    from funnel.policy.terms import filtering_secret, leaves_out, terms_file

    asked, private = terms_file(policy), policy.estimate.epsilon is not None
    drops, hidden = leaves_out(asked, locked=lock is not None), filtering_secret(asked)
    if drops is None and (private or not (wanted.classes or wanted.secrets)):
        return None
    mine = () if own is None else (own.sql,)
    predicate, reads = (None, ()) if own is None else (own.sql, own.columns)
    if private:
        return Everybody(predicate, reads, hidden, mine, (), None, (), ())
    others = tuple(one for one in dict.fromkeys(wanted.classes) if one not in mine and _usable(one, names.schema))
    classes = (*mine, *others) if len(mine) + len(others) <= MOST_CLASSES else mine
    secrets = _secrets(policy, names, wanted, guessed=guessed)
    flags = [f"coalesce(({one}), false) AS {_flag(place)}" for place, one in enumerate(classes)]
    keys = [key for own_keys in secrets.values() for key in own_keys]
    return Everybody(
        predicate,
        reads,
        hidden,
        classes,
        tuple(secrets),
        _once(names),
        (_everyone(names, keys, flags),),
        tuple(_counting(policy, names, own_keys, len(classes), lock) for own_keys in secrets.values()),
    )


def _once(names: Names) -> str | None:
    """Whom each row is about; None where rows are nobody's."""
    whose = identifier(names.entity)
    return f"SELECT {whose} FROM {WHOLE} WHERE {whose} IS NOT NULL" if names.entity else None


def _usable(predicate: str, schema: Mapping[str, str]) -> bool:
    """Whether a predicate of an earlier release is a condition over tonight's columns, of the types that they had."""
    try:
        expression = parse(predicate)
        check_condition(expression, schema)
    except ExpressionError:
        return False
    return predicate.endswith(_read_as(expression, schema))


def _secrets(
    policy: Policy, names: Names, wanted: Wanted, *, guessed: bool
) -> dict[tuple[str, ...], list[ColumnKey]]:
    """The keys of each secret whose columns are here, the policy's own first; a column has one key."""
    found = {tuple(policy.sensitive): names.secret}
    known = dict(zip(names.sensitive, names.secret, strict=True))
    for secret in wanted.secrets:
        columns = [column_of(one, names.schema) for one in secret]
        rewritten = any(guessed and names.schema.get(column or "") in FLOATS for column in columns)
        if secret not in found and not rewritten and all(column is not None for column in columns):
            for column in (one for one in columns if one is not None and one not in known):
                known[column] = secret_key(len(known), column, names.schema[column])
            found[secret] = [known[column] for column in columns if column is not None]
    return found


def _flag(place: int) -> str:
    return identifier(f"p{place}")


def _everyone(names: Names, secrets: Sequence[ColumnKey], flags: Sequence[str]) -> str:
    """The table of everybody's raw keys, of the predicates that hold, and of how many records share them."""
    hidden = list({key.name: key for key in secrets}.values())
    public = [key for key in names.plain if key not in names.secret]
    inner = [one.key for columns in names.inner for one in columns]
    read = [f"{key.raw} AS {identifier(key.name)}" for key in [*hidden, *public, *inner]]
    rows = f"SELECT {listed([*read, *flags])} FROM {WHOLE}"
    kept = [identifier(key.name) for key in [*hidden, *public]]
    marks = [_flag(place) for place in range(len(flags))]
    if inner:
        told = [f"{one.value} AS {identifier(one.key.name)}" for columns in names.inner for one in columns]
        cells = [f"{key.raw} AS {identifier(key.name)}" for key in names.cells]
        rows = f"SELECT {listed([*kept, *marks, *cells])} FROM (SELECT {listed([*kept, *marks, *told])} FROM ({rows}))"
    return f"CREATE TEMP TABLE everyone AS SELECT *, count(*) AS n FROM ({rows}) GROUP BY ALL"


def _counting(policy: Policy, names: Names, secret: Sequence[ColumnKey], classes: int, lock: str | None) -> str:
    """Rows [s, x_1, …, x_k as labels, which predicates hold, n] of everybody."""
    merged = {key.name: (attribute.rare, key) for attribute, key, _ in names.rare}
    hidden = [f"{key.label} AS {identifier(f'h{place}')}" for place, key in enumerate(secret)]
    public = [
        f"{_merged(key, str(merged[key.name][0]), lock) if key.name in merged else key.label} "
        f"AS {identifier(key.name)}"
        for keys in names.blocks
        for key in keys
    ]
    marks = [_flag(place) for place in range(classes)]
    rows = f"SELECT {listed([*hidden, *public, *marks])}, n FROM everyone"
    return f"SELECT * EXCLUDE (n), CAST(sum(n) AS BIGINT) AS n FROM ({rows}) GROUP BY ALL ORDER BY ALL"


def _merged(key: ColumnKey, rule: str, lock: str | None) -> str:
    """The label of a key whose rare values are merged, of values too that nobody has who is in the release."""
    table, text = identifier(f"rare_{key.name}"), key.text
    own = "" if lock is None else f"WHEN {text} IN (SELECT v0 FROM {identifier(f'lock_{key.name}')}) THEN {text} "
    known = f"WHEN {text} IS NULL OR {text} IN (SELECT v0 FROM {table} WHERE v0 IS NOT NULL)"
    label = f"CAST({key.label} AS VARCHAR)"
    return f"CASE {known} THEN {label} {own}ELSE {literal(_NONE if rule == 'bin' else OTHER)} END"


def count_everybody(engine: Engine, stage: Everybody | None, joint: Joint) -> tuple[Population, ...]:
    """Everybody by each secret of the stage, the policy's own first; none where it cannot be known.

    `joint` is of those who are in the release. Where a person has several rows, of which releases take one each, no
    row tells in which of them somebody is, or with which values. Raises nothing: what cannot be counted is not known.
    """
    if stage is None or not stage.counts:
        return ()
    try:
        if stage.once is not None and _several(engine, stage.once):
            return ()
        engine.prepare(stage.statements)
        tables = [_rows(engine, statement) for statement in stage.counts]
    except SourceError:
        return ()
    found = (
        _population(stage, secret, joint, table)
        for secret, table in zip(stage.secrets, tables, strict=True)
        if table is not None
    )
    return tuple(found)


def _several(engine: Engine, listing: str) -> bool:
    """Whether a listing has a row twice."""
    (rows,) = engine.row(f"SELECT count(*) FROM ({listing})")
    return bool(engine.distinct(listing) < rows)


def _rows(engine: Engine, statement: str) -> list[tuple[object, ...]] | None:
    """The rows of a count; None where they are too many to be measured."""
    (number,) = engine.row(f"SELECT count(*) FROM ({statement})")
    return engine.rows(statement) if number <= MAX_CELLS else None


def _population(
    stage: Everybody, secret: Sequence[str], joint: Joint, rows: Sequence[tuple[object, ...]]
) -> Population:
    """A population over the blocks that were counted, tonight's values first."""
    classes, width = len(stage.classes), len(secret)
    hidden = [_label(row[:width]) for row in rows]
    alphabet = Alphabet.of(secret, hidden)
    place = {value: code for code, value in enumerate(alphabet.values)}
    ends = np.cumsum([width, *(len(block.columns) for block in joint.blocks)]).tolist()
    values = [[_told(row[start:end]) for row in rows] for start, end in pairwise(ends)]
    present = np.array([row[ends[-1] : ends[-1] + classes] for row in rows], bool).reshape(len(rows), classes)
    cells = np.full((len(rows), 1 + len(joint.blocks)), NO_LABEL, np.int64)
    cells[:, 0] = [place[value] for value in hidden]
    counts = np.array([row[-1] for row in rows], np.int64)
    whole = Population(alphabet, joint.blocks, stage.classes, cells, present, counts)
    return whole.over(joint.blocks, values)


def _label(parts: Sequence[object]) -> Label:
    return tuple(None if part is None else str(part) for part in parts)


def _told(parts: Sequence[object]) -> Label | None:
    """A label that a release may hold; None where some part has none."""
    return None if any(part in (_NONE, BELOW, NO_DATE) for part in parts) else _label(parts)


def settled(
    policy: Policy, lock: Lock | None, found: Sequence[Population], joint: Joint
) -> tuple[Population, ...]:
    """Everybody in the blocks that are sanitised (those of `joint`), in the lock's values where there is one."""
    return tuple(_settled(policy, lock, one, joint) for one in found)


def _settled(policy: Policy, lock: Lock | None, found: Population, joint: Joint) -> Population:
    from funnel.lock.pin import rules_of
    from funnel.lock.relabel import in_terms

    ends = np.cumsum([0, *(len(block.columns) for block in joint.blocks)]).tolist()
    rules = {} if lock is None else rules_of(policy)
    values: list[list[Label | None]] = [[] for _ in joint.blocks]
    for _, *public in found.labels():
        parts = _flat(found.blocks, public)
        for place, block in enumerate(joint.blocks):
            own = _told(parts[ends[place] : ends[place + 1]])
            values[place].append(None if own is None else in_terms(own, block, rules))
    return found.over(joint.blocks, values)


def _flat(blocks: Sequence[Alphabet], labels: Sequence[Label | None]) -> Label:
    """The parts of all labels one after the other."""
    parts = (
        (_NONE,) * len(block.columns) if label is None else label
        for block, label in zip(blocks, labels, strict=True)
    )
    return tuple(chain.from_iterable(parts))


def present_of(
    stage: Everybody | None, everybody: Sequence[Population], joint: Joint, unseen: int
) -> Present | None:
    """Who is in a release of the records `joint`, of which a lock left out `unseen`; None where it is everybody."""
    if stage is None:
        return None
    from funnel.format.journal import Present

    absent = everybody[0].rows - joint.rows if everybody else None
    nobody = absent == 0 if absent is not None else stage.own is None and not unseen
    return None if nobody else Present(stage.own, stage.reads, stage.filtered, unseen, absent)


def warning(stage: Everybody | None) -> list[str]:
    """What the one who runs a policy should know of a filter that reads what is to be hidden."""
    if stage is None or not stage.filtered:
        return []
    return [
        f"the filter reads {', '.join(stage.filtered)}, which is sensitive: that somebody is absent from a release "
        "tells of their secret, and epsilon does not bound that"
    ]
