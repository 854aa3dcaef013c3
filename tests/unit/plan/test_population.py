"""Everybody is counted by every secret that is asked about, with tonight's labels, in a release or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.data.population import Population
from funnel.plan.compiled import planned
from funnel.plan.count import count
from funnel.plan.population import Wanted
from tests.support.policies import write_policy

PEOPLE = [
    (s, x, z)
    for s, x, z, many in [("a", "p", "u", 30), ("b", "p", "u", 20), ("a", "q", "v", 25), ("b", None, "v", 12),
                          ("b", "q", "u", 15), ("c", "r", "v", 3)]
    for _ in range(many)
]  # fmt: skip


def counted(folder: Path, wanted: Wanted, **changes: Any) -> tuple[Population, ...]:
    columns = dict(zip(("s", "x", "z"), map(list, zip(*PEOPLE, strict=True)), strict=True))
    pq.write_table(pa.table({"id": list(range(len(PEOPLE)))} | columns), folder / "people.parquet")
    source = {"table": "people.parquet", "entity": "id"}
    terms = {"source": source, "sensitive": ["s"], "public": ["x"], "estimate": {"minimum": 2}}
    policy = funnel.load(write_policy(folder, **(terms | changes)))
    with planned(policy, wanted=wanted) as (plan, engine, _):
        return count(policy, plan, engine).populations


def rows(one: Population) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for labels, present, number in zip(one.labels(), one.present.tolist(), one.counts.tolist(), strict=True):
        found[(*(None if label is None else label[0] for label in labels), *present)] += number
    return found


def test_every_secret_that_is_asked_about_counts_everybody_once(tmp_path: Path) -> None:
    wanted = Wanted(("x = 'p' /* VARCHAR */", "x = 'q' /* DOUBLE */", "gone = 1 /* BIGINT */"), (("z",), ("nowhere",)))
    own, other = counted(tmp_path, wanted, source__missing="drop", source__filter="s <> 'c'")
    assert (own.secret.columns, other.secret.columns) == (("s",), ("z",))
    known = "a predicate over a column that is not there, or of another type, is not known"
    assert own.classes[1:] == ("x = 'p' /* VARCHAR */",), known
    assert own.rows == other.rows == len(PEOPLE)
    there = [(s != "c" and x is not None, x == "p") for s, x, _ in PEOPLE]
    assert rows(own) == Counter((s, x, *flags) for (s, x, _), flags in zip(PEOPLE, there, strict=True))
    assert rows(other) == Counter((z, x, *flags) for (_, x, z), flags in zip(PEOPLE, there, strict=True))
    assert own.blocks[0].values[:2] == (("p",), ("q",)), "values of the release come first"


def test_a_value_that_nobody_in_the_release_has_is_named_as_tonights_rules_name_it(tmp_path: Path) -> None:
    top = [{"name": "x", "top": 1}]
    (own,) = counted(tmp_path, Wanted(), public=top, source__missing="category", source__filter="s <> 'c'")
    assert rows(own)["c", "other", False] == 3
    assert sum(number for (_, x, _), number in rows(own).items() if x is None) == 12


@pytest.mark.parametrize("wanted", [Wanted(), Wanted((), (("nowhere",),))])
def test_nobody_is_counted_where_nobody_can_be_absent(tmp_path: Path, wanted: Wanted) -> None:
    found = counted(tmp_path, wanted, source__missing="category")
    assert not found or [one.secret.columns for one in found] == [("s",)]
