"""A statement over rows that lie in parts: what it reads, and how the answers of the parts make the one answer.

DuckDB's own tree of a statement says it; nothing is translated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from funnel.engine.sql import identifier, listed
from funnel.errors import InternalError

_DEFINITION = re.compile(
    r'CREATE(?: OR REPLACE)? TEMP (VIEW|TABLE|MACRO) ("(?:[^"]|"")+"|\w+)\s*(\([^)]*\))? AS (.*)', re.DOTALL
)
_SUMS = {"count", "count_star", "count_if", "sum"}
_ENDS = {"min", "max"}
_PARTS = "parts"


@dataclass(frozen=True)
class Definition:
    """CREATE TEMP VIEW, TABLE or MACRO of a plan."""

    kind: str
    name: str
    body: str


def definition(statement: str) -> Definition | None:
    """What a statement defines; None where it is a query."""
    found = _DEFINITION.fullmatch(statement)
    if found is None:
        return None
    kind, name, _, body = found.groups()
    return Definition(kind, name.strip('"').replace('""', '"'), body)


@dataclass
class Known:
    """What the statements of a run have defined so far, in its order: `views` by their bodies, macros and variables."""

    views: dict[str, str] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)

    def reached(self, query: str) -> set[str]:
        """The names of tables and views that a query reads, through views too."""
        found, waiting = set[str](), [query]
        while waiting:
            for name in set(_tables(_serialised(waiting.pop()))) - found:
                found.add(name)
                if name in self.views:
                    waiting.append(self.views[name])
        return found


def _tables(node: Any) -> Iterator[str]:
    """The names of tables in a tree, those of its own WITH among them."""
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield str(node["table_name"])
        yield from _tables(list(node.values()))
    elif isinstance(node, list):
        for one in node:
            yield from _tables(one)


def _serialised(query: str) -> dict[str, Any]:
    """DuckDB's tree of a query."""
    ((told,),) = duckdb.execute("SELECT json_serialize_sql($1::VARCHAR)", [query]).fetchall()
    tree: dict[str, Any] = json.loads(told)
    if tree["error"]:
        raise InternalError(f"a statement for rows in parts does not parse: {query}")
    return tree


@dataclass(frozen=True)
class Query:
    """One SELECT as DuckDB reads it."""

    tree: dict[str, Any]

    @property
    def node(self) -> dict[str, Any]:
        """The SELECT itself."""
        node: dict[str, Any] = self.tree["statements"][0]["node"]
        return node

    @property
    def counts(self) -> bool:
        """Whether many rows become one."""
        node = self.node
        return node.get("aggregate_handling") == "FORCE_AGGREGATES" or any(
            _function(one) in _SUMS | _ENDS for one in node["select_list"]
        )

    @property
    def ordered(self) -> bool:
        """Whether it has an order, or a limit."""
        return bool(self.node["modifiers"])

    @property
    def inner(self) -> dict[str, Any] | None:
        """The query in brackets that it reads, where that is all."""
        table = self.node["from_table"]
        return table if table["type"] == "SUBQUERY" else None


def parse(query: str) -> Query:
    """The tree of a query. Raises InternalError for what is none."""
    tree = _serialised(query)
    if tree["statements"][0]["node"]["type"] != "SELECT_NODE":
        raise InternalError(f"a statement for rows in parts is no plain query: {query}")
    return Query(tree)


def combined(query: Query, names: list[str], types: list[str]) -> str:
    """The query that makes one answer of those of all parts, which are the rows of the table `parts`.

    Counts and sums add up, the ends of a range are those of all, and what is no figure says to which group a row
    belongs. Raises InternalError for other figures: of these the parts do not tell enough.
    """
    items = query.node["select_list"]
    kinds = [_function(one) for one in items]
    star = next((place for place, one in enumerate(items) if one["class"] == "STAR"), None)
    if star is not None:
        kinds[star : star + 1] = [None] * (len(names) - len(items) + 1)
    if len(kinds) != len(names):
        raise InternalError("a statement for rows in parts has other columns than its answer")
    shown = [
        f"{_whole(kind, identifier(name), own)} AS {identifier(name)}"
        for kind, name, own in zip(kinds, names, types, strict=True)
    ]
    return f"SELECT {listed(shown)} FROM {_PARTS} GROUP BY ALL"


def _whole(kind: str | None, column: str, own: str) -> str:
    if kind is None:
        return column
    if kind in _SUMS:
        return f"CAST(sum(CAST({column} AS HUGEINT)) AS {own})"
    if kind in _ENDS:
        return f"{kind}({column})"
    raise InternalError(f"answers of parts cannot be put together by {kind}")


def _function(item: dict[str, Any]) -> str | None:
    """The function that a figure is made by, whatever type it is then cast to; None for what is no figure."""
    while item["class"] == "CAST":
        item = item["child"]
    if item["class"] != "FUNCTION":
        return None
    name = str(item["function_name"])
    return name if _is_figure(name) else None


def _is_figure(name: str) -> bool:
    if name not in _FIGURES:
        asked = "SELECT bool_or(function_type = 'aggregate') FROM duckdb_functions() WHERE function_name = $1"
        _FIGURES[name] = bool(duckdb.execute(asked, [name]).fetchall()[0][0])
    return _FIGURES[name]


_FIGURES: dict[str, bool] = {}


def inside(table: dict[str, Any]) -> str:
    """The query that stands in brackets."""
    return _text({"error": False, "statements": [table["subquery"]]})


def over(query: Query, table: str) -> str:
    """The query over a table in place of what it reads."""
    tree = _copy(query)
    node = tree["statements"][0]["node"]
    read = _all_of(table)["from_table"]
    node["from_table"] = read | {"alias": node["from_table"].get("alias", "")}
    return _text(tree)


def without_order(query: Query) -> str:
    """The query, its rows as they come."""
    tree = _copy(query)
    tree["statements"][0]["node"]["modifiers"] = []
    return _text(tree)


def in_order(query: Query, table: str) -> str:
    """All of a table, in the order of the query."""
    tree = _copy(query)
    tree["statements"][0]["node"] = _all_of(table) | {"modifiers": query.node["modifiers"]}
    return _text(tree)


def _all_of(table: str) -> dict[str, Any]:
    return parse(f"SELECT * FROM {table}").node


def _copy(query: Query) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(query.tree))
    return copy


def _text(tree: dict[str, Any]) -> str:
    ((told,),) = duckdb.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)]).fetchall()
    return str(told)
