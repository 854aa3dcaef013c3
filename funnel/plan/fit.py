"""Do the policy and the source's schema fit together?"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from funnel.data.alphabet import folded
from funnel.engine.expressions import ExpressionError, check_condition, parse
from funnel.errors import Problem
from funnel.policy import Policy
from funnel.policy.document import Path

_NUMERIC = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)
_OPAQUE = ("STRUCT", "MAP", "UNION", "BLOB", "BIT", "JSON", "VARIANT", "GEOMETRY")
_INEXACT = ("FLOAT", "DOUBLE", "BOOLEAN")


def column_of(name: str, schema: Mapping[str, str]) -> str | None:
    """The source's spelling of a column; DuckDB's names, and the policy's roles, ignore the case of ASCII letters."""
    if name in schema:
        return name
    return next((column for column in schema if folded(column) == folded(name)), None)


def check_fit(policy: Policy, schema: Mapping[str, str]) -> tuple[list[Problem], str | None]:
    """Problems of columns, types and filter, and the filter's checked SQL (None without one)."""
    problems: list[Problem] = []
    for name in policy.sensitive:
        _check_plain(policy, schema, problems, name)
    for block in policy.blocks:
        for attribute in block.attributes:
            if policy.mechanism.needs_numbers and attribute.round is None:
                problems.append(_unrounded(policy, attribute.name))
            if not attribute.is_number:
                _check_plain(policy, schema, problems, attribute.name)
            else:
                _check_number(policy, schema, problems, attribute.name)
    if policy.source.entity is not None:
        _check_entity(policy, schema, problems, policy.source.entity)
    return problems, _check_filter(policy, schema, problems)


def _known(
    policy: Policy, schema: Mapping[str, str], problems: list[Problem], path: Path, name: str
) -> str | None:
    """The type of a column, or a problem with the nearest name."""
    column = column_of(name, schema)
    if column is None:
        problems.append(
            policy.problem(path, "unknown-column", f"the source has no column {name}", _nearest(name, schema))
        )
        return None
    return schema[column]


def _check_plain(policy: Policy, schema: Mapping[str, str], problems: list[Problem], name: str) -> None:
    kind = _known(policy, schema, problems, policy.place(name), name)
    if kind is not None and _opaque(kind):
        problems.append(
            policy.problem(
                policy.place(name),
                "column-type",
                f"column {name} is {kind}; only plain values can be used",
                None,
            )
        )


def _check_number(policy: Policy, schema: Mapping[str, str], problems: list[Problem], name: str) -> None:
    kind = _known(policy, schema, problems, policy.place(name), name)
    if kind is not None and not kind.startswith(_NUMERIC):
        problems.append(
            policy.problem(
                policy.place(name), "column-type", f"column {name} is {kind}; bins need a number", None
            )
        )


def _unrounded(policy: Policy, name: str) -> Problem:
    """A mechanism that releases numbers needs to know how precise they are to be."""
    said = f"{policy.mechanism.kind} releases numbers, so {name} needs `round`, the precision of what is released"
    return policy.problem(policy.place(name), "missing-key", said, f"Write `{{name: {name}, round: 1}}`.")


def _check_entity(policy: Policy, schema: Mapping[str, str], problems: list[Problem], name: str) -> None:
    path = ("source", "entity")
    kind = _known(policy, schema, problems, path, name)
    if kind is not None and (_opaque(kind) or kind.startswith(_INEXACT)):
        problems.append(
            policy.problem(
                path,
                "entity",
                f"column {name} is {kind}, which cannot identify a person",
                "Use a column of integers or text.",
            )
        )


def _opaque(kind: str) -> bool:
    """Whether values of a type have no plain text form that can be released."""
    return kind.startswith(_OPAQUE) or kind.endswith("]")


def _check_filter(policy: Policy, schema: Mapping[str, str], problems: list[Problem]) -> str | None:
    if policy.source.filter is None:
        return None
    path, found = ("source", "filter"), len(problems)
    try:
        expression = parse(policy.source.filter)
        for column in expression.columns:
            _known(policy, schema, problems, path, column)
        if len(problems) == found:
            check_condition(expression, schema)
    except ExpressionError as error:
        problems.append(
            policy.problem(
                path,
                "filter",
                f"the filter is not usable: {error}",
                "Write one condition over source columns, such as `age >= 18 AND income IS NOT NULL`.",
            )
        )
        return None
    return expression.sql


def _nearest(name: str, schema: Mapping[str, str]) -> str:
    """A suggestion: the closest column, or all of them when few."""
    close = difflib.get_close_matches(name, list(schema), 1, 0.6)
    if close:
        return f"Did you mean {close[0]}?"
    return "Its columns are " + ", ".join(list(schema)[:20]) + (", …" if len(schema) > 20 else ".")
