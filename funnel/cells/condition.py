"""What it takes to be in a cell: in words for people, and as one SQL expression for the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from funnel.cells.cells import Cells
from funnel.cells.columns import Vocabulary
from funnel.cells.tree import Mask
from funnel.text import human, label

Quote = Callable[[str], str]
Say = Callable[[str], str]
"""Puts a short English text into a reader's language."""


def words(cells: Cells, cell: int, say: Say = str) -> str:
    """The conditions of a cell, for people: `age < 37 and education is one of Masters, Doctorate`."""
    possible = {place: np.ones(len(one), bool) for place, one in enumerate(cells.columns)}
    place, asked = int(cells.tree.leaves[cell]), list[int]()
    while place:
        above = int(cells.tree.parents[place])
        node = cells.tree.nodes[above]
        possible[node.column] &= node.left if place == node.yes else ~node.left
        asked, place = [*asked, node.column], above
    parts = [_said(cells.columns[column], possible[column], say) for column in sorted(set(asked))]
    return f" {say('and')} ".join(parts) or say("every record")


def sql(cells: Cells, expressions: Sequence[str], quote: Quote) -> str:
    """The number of the cell, from 1, as an SQL expression over one expression per column; `quote` makes literals.

    NULL where a record has a text, or a missing value, that the cells do not know and that they ask for.
    """
    texts = dict[int, str]()
    for place in range(len(cells.tree.nodes) - 1, -1, -1):  # children stand behind their parents
        node = cells.tree.nodes[place]
        if node.column < 0:
            texts[place] = str(node.cell + 1)
            continue
        column, expression = cells.columns[node.column], expressions[node.column]
        yes, no = texts.pop(node.yes), texts.pop(node.no)
        cases = [
            f"WHEN {expression} IS NULL THEN {_either(column.missing, node.left, yes, no)}",
            f"WHEN {_test(column, expression, node.left, quote)} THEN {yes}",
        ]
        if not column.ordered and column.other is None:
            cases.append(f"WHEN {_among(column, expression, ~node.left, quote)} THEN {no}")
            no = "NULL"
        texts[place] = f"CASE {' '.join(cases)} ELSE {no} END"
    return texts[0]


def _either(code: int | None, left: Mask, yes: str, no: str) -> str:
    if code is None:
        return "NULL"
    return yes if left[code] else no


def _test(column: Vocabulary, expression: str, left: Mask, quote: Quote) -> str:
    """Whether a value that is not missing goes left."""
    if column.cuts is not None:
        return _below(column, expression, left, quote)
    if column.other is not None and left[column.other]:
        return f"NOT ({_among(column, expression, ~left, quote)})"
    return _among(column, expression, left, quote)


def _below(column: Vocabulary, expression: str, left: Mask, quote: Quote) -> str:
    """A threshold; without one where only missing values go right."""
    assert column.cuts is not None  # noqa: S101  asked by the caller
    number = int(left.sum())
    if number > len(column.cuts):
        return "TRUE"
    return f"{expression} < CAST({quote(column.cuts[number - 1])} AS {column.type})"


def _among(column: Vocabulary, expression: str, wanted: Mask, quote: Quote) -> str:
    """Whether a value is one of those that stand for themselves."""
    listed = [
        f"CAST({quote(value)} AS {column.type})"
        for code, value in enumerate(column.values)
        if wanted[code] and value is not None and (code != column.other or column.type != "VARCHAR")
    ]
    return f"{expression} IN ({', '.join(listed)})" if listed else "FALSE"


def _said(column: Vocabulary, possible: Mask, say: Say) -> str:
    """Which values of a column are possible, in words."""
    name, missing = human(column.name), bool(column.values[-1] is None and possible[-1])
    if column.cuts is None:
        return _one_of(
            name, [label([value]) for value, can in zip(column.values, possible, strict=True) if can], say
        )
    numbers = possible[: len(column.cuts) + 1]
    if not numbers.any():
        return say("{} is missing").format(name)
    first, last = int(np.argmax(numbers)), len(numbers) - int(np.argmax(numbers[::-1]))
    low = column.cuts[first - 1] if first else None
    high = column.cuts[last - 1] if last < len(numbers) else None
    return _range(name, low, high, say) + (say(" or missing") if missing and (low or high) else "")


def _range(name: str, low: str | None, high: str | None, say: Say) -> str:
    if low is None:
        return f"{name} < {high}" if high is not None else say("{} is not missing").format(name)
    return f"{name} ≥ {low}" if high is None else f"{low} ≤ {name} < {high}"


def _one_of(name: str, values: Sequence[str], say: Say) -> str:
    return say("{} is {}" if len(values) == 1 else "{} is one of {}").format(name, ", ".join(values))
