"""One plain expression over a row's columns, parsed by DuckDB's own parser and rebuilt from its tree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from funnel.engine.sql import identifier

_FORBIDDEN = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "a star",
    "PARAMETER": "a parameter",
    "LAMBDA": "a lambda",
    "DEFAULT": "DEFAULT",
    "POSITIONAL_REFERENCE": "a positional reference",
}
_TIMED = ("age", "current_localtime", "current_localtimestamp")
"""Functions that go by the clock, `age` of one date, though DuckDB says that they do not."""
_COMPARING = ("COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL")
"""Operators beside comparisons that do nothing with a value but compare it."""

_TEXTS = ("VARCHAR", "ENUM", '"NULL"')
"""How types begin that texts are compared with as they are."""
_WHOLE = re.compile(r"'\s*[+-]?\d+\s*'")
"""A text that is a whole number."""
_AS_THEY_ARE = ("DATE", "TIME", "BOOLEAN")
"""How types begin that a text is cast to as they are; numbers are read with their fraction."""


class ExpressionError(ValueError):
    """The text is not one plain expression; the message says why."""


@dataclass(frozen=True)
class Expression:
    """SQL rebuilt from the parsed tree (so that what was checked is what runs) and the columns it reads."""

    sql: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Use:
    """A column as an expression reads it: compared with `constants`, as texts, by an operator of DuckDB's tree.

    None where it is read otherwise; none of them where it is asked whether the column is missing. `types` are theirs.
    """

    column: str
    operator: str
    constants: tuple[str | None, ...] | None
    types: tuple[str, ...] = ()


@cache
def parse(text: str) -> Expression:
    """Parse a predicate. Raises ExpressionError for anything but one expression of columns and pure functions."""
    with duckdb.connect() as connection:
        tree, node = _parsed(connection, text)
        columns = [_column(part) for part in _expressions(node) if part["class"] == "COLUMN_REF"]
        return Expression(_sql(connection, tree), tuple(dict.fromkeys(columns)))


@cache
def uses(text: str) -> tuple[Use, ...]:
    """How each column is read, wherever it stands. Raises as `parse` does."""
    with duckdb.connect() as connection:
        tree, node = _parsed(connection, text)
        return tuple(_uses(connection, tree, node))


def check_condition(expression: Expression, schema: Mapping[str, str]) -> None:
    """Bind an expression to columns and their types. Raises ExpressionError unless it is a condition."""
    if (kind := kind_of(expression, schema)) != "BOOLEAN":
        raise ExpressionError(f"it is a {kind}, not a condition")


def check_compared(text: str, schema: Mapping[str, str]) -> None:
    """See that texts of columns are compared with texts alone, and whole numbers with none that is a fraction.

    DuckDB makes them what they are compared with, and whole numbers of them by rounding: to it '36.6' is 37. Raises
    ExpressionError.
    """
    with duckdb.connect() as connection:
        _create(connection, schema)
        tree, node = _parsed(connection, text)
        for part in _expressions(node):
            sides = [(_reads(one), *_told(connection, tree, one)) for one in _sides(part)]
            texts = [sql for reads, sql, kind in sides if reads and kind == "VARCHAR"]
            others = [(sql, kind) for _, sql, kind in sides if not kind.startswith(_TEXTS)]
            if texts and others:
                own, (other, kind) = texts[0], others[0]
                cast = f"CAST({own} AS {kind if kind.startswith(_AS_THEY_ARE) else 'DOUBLE'})"
                raise ExpressionError(
                    f"{own} is a text, which would be rounded to be compared with {other} ({kind}): compare it "
                    f"with a text, or write {cast} where all its texts can be read so"
                )
            quoted = [sql for reads, sql, kind in sides if not (reads or kind != "VARCHAR" or _WHOLE.fullmatch(sql))]
            whole = [sql for reads, sql, kind in sides if reads and kind.endswith(("INT", "INTEGER"))]
            if quoted and whole:
                raise ExpressionError(
                    f"{quoted[0]} is not written as a whole number, as {whole[0]} is, with which it is compared: "
                    "write numbers without quotes"
                )


def kind_of(expression: Expression, schema: Mapping[str, str]) -> str:
    """The SQL type of an expression of columns of these types. Raises ExpressionError where it has none."""
    with duckdb.connect() as connection:
        try:
            _create(connection, schema)
            rows = connection.execute(f"DESCRIBE SELECT {expression.sql} FROM source").fetchall()
            # Constants that are nothing of the type that they are compared with fail with any row, and only there.
            connection.execute("INSERT INTO source DEFAULT VALUES")
            connection.execute(f"SELECT {expression.sql} FROM source").fetchall()
        except duckdb.Error as error:
            raise ExpressionError(str(error).splitlines()[0]) from None
    return str(rows[0][1])


def _create(connection: duckdb.DuckDBPyConnection, schema: Mapping[str, str]) -> None:
    """An empty table of such columns, for expressions to be bound to."""
    columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in schema.items())
    connection.execute(f"CREATE TABLE source ({columns or 'nothing INTEGER'})")


def _parsed(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """DuckDB's tree of a query for the one expression, and the expression in it, of which every part is allowed."""
    if not text.strip():
        raise ExpressionError("it is empty")
    # Alone and without brackets: inside a pair of them, `1) OR (1=1` would balance.
    _serialise(connection, f"SELECT\n{text}")
    # The newline ends a trailing comment, which would otherwise swallow the bracket.
    tree = _serialise(connection, f"SELECT (\n{text}\n)")
    node: dict[str, Any] = _single(tree)["select_list"][0]
    nodes = list(_expressions(node))
    if node.get("function_name") == "row":
        raise ExpressionError("it is empty, or a list of expressions")
    for part in nodes:
        _refuse(part)
    _check_functions(connection, {part["function_name"] for part in nodes if part["class"] == "FUNCTION"})
    return tree, node


def _sql(connection: duckdb.DuckDBPyConnection, tree: dict[str, Any]) -> str:
    """The expression of a tree as DuckDB writes it."""
    (sql,) = _row(connection, "SELECT json_deserialize_sql($1::JSON)", json.dumps(tree))
    return str(sql).removeprefix("SELECT ")


def _uses(connection: duckdb.DuckDBPyConnection, tree: dict[str, Any], node: Any) -> Iterator[Use]:
    """Columns that are compared with constants, and those that are not."""
    if isinstance(node, list):
        for one in node:
            yield from _uses(connection, tree, one)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield Use(_column(node), "", None)
            return
        columns, others = _operands(node)
        if len(columns) == 1:
            found = [_constant(connection, tree, other) for other in others]
            constants, types = tuple(text for text, _ in found), tuple(kind for _, kind in found)
            yield Use(_column(columns[0]), str(node["type"]), constants, types)
            return
        for one in node.values():
            yield from _uses(connection, tree, one)


def _operands(node: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The columns that a comparison stands between, and its other sides; nothing where these read columns, too."""
    sides = _sides(node)
    columns = [one for one in sides if one.get("class") == "COLUMN_REF"]
    others = [one for one in sides if one.get("class") != "COLUMN_REF"]
    return ([], []) if any(map(_reads, others)) else (columns, others)


def _sides(node: dict[str, Any]) -> list[dict[str, Any]]:
    """What a comparison stands between; nothing of what is none."""
    if node.get("class") not in ("COMPARISON", "BETWEEN") and node.get("type") not in _COMPARING:
        return []
    sides = [node[key] for key in ("left", "right", "input", "lower", "upper") if node.get(key)]
    return sides + (node.get("children") or [])


def _reads(node: dict[str, Any]) -> bool:
    """Whether an expression reads a column."""
    return any(part["class"] == "COLUMN_REF" for part in _expressions(node))


def _constant(
    connection: duckdb.DuckDBPyConnection, tree: dict[str, Any], node: dict[str, Any]
) -> tuple[str | None, str]:
    """The value of an expression without columns, as text, and its type."""
    try:
        sql = _alone(connection, tree, node)
        found = connection.execute(f"SELECT CAST(({sql}) AS VARCHAR), typeof({sql})").fetchone()
    except duckdb.Error as error:
        raise ExpressionError(str(error).splitlines()[0]) from None
    return (None, "NULL") if found is None else (found[0], found[1])


def _told(
    connection: duckdb.DuckDBPyConnection, tree: dict[str, Any], node: dict[str, Any]
) -> tuple[str, str]:
    """A part of the expression as DuckDB writes it, and its type over the table of the connection."""
    try:
        sql = _alone(connection, tree, node)
        return sql, str(connection.execute(f"DESCRIBE SELECT ({sql}) FROM source").fetchall()[0][1])
    except duckdb.Error as error:
        raise ExpressionError(str(error).splitlines()[0]) from None


def _alone(connection: duckdb.DuckDBPyConnection, tree: dict[str, Any], node: dict[str, Any]) -> str:
    """A part of the expression of a tree as DuckDB writes it."""
    (statement,) = tree["statements"]
    alone = {**statement, "node": {**statement["node"], "select_list": [node]}}
    return _sql(connection, {**tree, "statements": [alone]})


def _serialise(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    """DuckDB's tree of a query as JSON."""
    try:
        (text,) = _row(connection, "SELECT json_serialize_sql($1::VARCHAR)", query)
    except duckdb.Error as error:
        raise ExpressionError(str(error).splitlines()[0]) from None
    tree: dict[str, Any] = json.loads(text)
    if tree["error"]:
        raise ExpressionError(f"it does not parse: {tree.get('error_message', 'unknown reason')}")
    return tree


def _single(tree: dict[str, Any]) -> dict[str, Any]:
    """The one SELECT node, which must hold one expression and nothing else."""
    if len(tree["statements"]) != 1:
        raise ExpressionError("it holds more than one statement")
    node: dict[str, Any] = tree["statements"][0]["node"]
    plain = (
        node.get("type") == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and not node["select_list"][0].get("alias")
        and node["from_table"]["type"] == "EMPTY"
        and not any(
            node.get(clause)
            for clause in (
                "where_clause",
                "having",
                "qualify",
                "sample",
                "modifiers",
                "group_expressions",
                "group_sets",
            )
        )
        and not node["cte_map"]["map"]
    )
    if not plain:
        raise ExpressionError("it holds more than one expression")
    return node


def _expressions(node: Any) -> Iterator[dict[str, Any]]:
    """Every expression in a tree, whatever field it sits in."""
    if isinstance(node, dict):
        if "class" in node and "type" in node:
            yield node
        for value in node.values():
            yield from _expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _expressions(value)


def _refuse(part: dict[str, Any]) -> None:
    """Refuse expressions that reach beyond the row."""
    if part["class"] in _FORBIDDEN:
        raise ExpressionError(f"it uses {_FORBIDDEN[part['class']]}")


def _column(part: dict[str, Any]) -> str:
    """The name of a plain column."""
    if len(part["column_names"]) != 1:
        raise ExpressionError(f"it names {'.'.join(part['column_names'])}; write the column alone")
    return str(part["column_names"][0])


def _check_functions(connection: duckdb.DuckDBPyConnection, names: set[str]) -> None:
    """Only scalar functions that depend on nothing but their arguments: both passes must see the same rows."""
    for name in sorted(names):
        rows = connection.execute(
            "SELECT DISTINCT function_type, stability FROM duckdb_functions() WHERE function_name = $1",
            [name],
        ).fetchall()
        if not rows:
            raise ExpressionError(f"there is no function {name}")
        if name in _TIMED or any(kind != "scalar" or stability != "CONSISTENT" for kind, stability in rows):
            raise ExpressionError(f"the function {name} is none of the plain ones, which depend on arguments alone")


def _row(connection: duckdb.DuckDBPyConnection, query: str, value: str) -> tuple[Any, ...]:
    """The only row of a query with one parameter."""
    row = connection.execute(query, [value]).fetchone()
    if row is None:
        raise ExpressionError("it does not parse")
    return row
