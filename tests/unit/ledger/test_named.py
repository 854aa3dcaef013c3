"""What bears on what a name stands for is in the hash by which a ledger knows it, field by field: none is left out."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.cells.cells import Cells
from funnel.cells.columns import Vocabulary
from funnel.cells.tree import Node, Tree
from funnel.format.terms import Attribute
from funnel.ledger.records import drawn, of_cells
from funnel.plan.people import named_table
from funnel.policy.model import Csv, SourceSection
from tests.support.policies import write_policy

PLAIN = Attribute("x", None, None, None, None, None, None, False, "error")
MADE: dict[str, Any] = {
    "bins": (0.0, 5.0), "round": 5.0, "clip": (0.0, 9.0), "groups": ({"a": "b"},), "trim": True,
}  # fmt: skip
"""What is made of a column's own values, whoever has them."""
NAMING: dict[str, Any] = {"top": 1, "rare": "other"}
"""Which values are named; of a wide block that is in its vocabularies."""
ELSEWHERE = {"name", "unseen"}
"""The name stands beside the hash; of whom a lock leaves out `present` tells, and `values` of what is under `other`."""
READ: dict[str, Any] = {"header": True, "delimiter": ";", "decimal": ",", "names": ("id", "x")}


def of_column(one: Attribute) -> tuple[str, str]:
    """The hashes of a column of its own: with which values are named, and without."""
    found = drawn(("x",), [("a",), ("b",)], None, {"x": one}, ())
    return found.meaning[0], found.base[0]


def of_inner(one: Attribute) -> str:
    """The hash of the cells of a wide block of this column."""
    vocabulary = Vocabulary("x", "VARCHAR", ("a", "b"), None, None, None)
    tree = Tree((Node(-1, np.empty(0, bool), -1, -1, 0),))
    return of_cells(Cells("block", (vocabulary,), tree, (), np.array([1 << 16]), b""), {"x": one})


def test_every_field_has_its_place() -> None:
    """A new one has to be given its place, and with it a case below."""
    assert {one.name for one in fields(Attribute)} == {*MADE, *NAMING, *ELSEWHERE}
    assert {*Csv.model_fields} == {*READ}
    # A filter and `missing` are the predicate of `present`, the entity stands in the entry.
    assert {*SourceSection.model_fields} == {"table", "csv", "filter", "missing", "entity"}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_a_columns_values_makes_it_another_one(name: str) -> None:
    made = replace(PLAIN, **{name: MADE[name]})
    assert of_column(made)[0] != of_column(PLAIN)[0]
    assert of_column(made)[1] != of_column(PLAIN)[1]
    assert of_inner(made) != of_inner(PLAIN)


def test_two_ways_of_making_them_are_two() -> None:
    ways = [PLAIN, *(replace(PLAIN, **{name: value}) for name, value in MADE.items())]
    ways += [replace(PLAIN, bins=(0.0, 6.0)), replace(PLAIN, groups=({"a": "c"},)), replace(PLAIN, round="week")]
    assert len({of_column(one)[1] for one in ways}) == len({of_inner(one) for one in ways}) == len(ways)


@pytest.mark.parametrize("name", NAMING)
def test_which_values_are_named_makes_it_another_one_but_for_that(name: str) -> None:
    named = replace(PLAIN, **{name: NAMING[name]})
    assert of_column(named)[0] != of_column(PLAIN)[0]
    assert of_column(named)[1] == of_column(PLAIN)[1]


@pytest.mark.parametrize("name", READ)
def test_a_csv_that_is_read_otherwise_is_another_table(tmp_path: Path, name: str) -> None:
    plain, otherwise = (
        named_table(funnel.load(write_policy(tmp_path, source={"table": "people.csv", "entity": "id"} | read)))
        for read in ({}, {"csv": {name: READ[name]}})
    )
    assert plain != otherwise
