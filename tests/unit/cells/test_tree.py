"""Trees of cells, and what profiles tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from funnel.cells import distance
from funnel.cells.columns import SourceColumn
from funnel.cells.fill import fill
from funnel.cells.make import Made, make
from funnel.cells.record import written
from funnel.cells.tree import SAMPLE
from funnel.errors import PlanError
from tests.support.wide import between, marginals, mixed, source


def test_the_best_split_is_the_one_that_tells_most_about_all_columns() -> None:
    draw = np.random.default_rng(3)
    group = draw.integers(0, 2, 400)
    columns = [
        source(f"x{i}", [f"{g}{v}" for g, v in zip(group, draw.integers(0, 3, 400), strict=True)], "VARCHAR")
        for i in range(3)
    ]
    made = make(
        "x",
        [*columns, source("n", draw.integers(0, 9, 400).tolist(), "INTEGER")],
        most=2,
        minimum=20,
        support=5,
    )
    assert len(set(zip(made.labels.tolist(), group.tolist(), strict=True))) == 2


def test_cells_keep_their_minimum_and_distances_follow_the_tree() -> None:
    made = make("x", mixed(2), most=30, minimum=50, support=10)
    assert np.bincount(made.labels).min() >= 50
    far = made.cells.tree.distances()
    assert (far == far.T).all() and (far.diagonal() == 0).all()
    assert far.max() == far[0, -1]
    assert (far[0, :, None] <= np.maximum(far[0][None, :], far)).all()


def test_few_many_and_no_cells() -> None:
    assert len(make("x", mixed(1), most=1, minimum=50, support=10).cells) == 1
    assert len(make("x", mixed(1)[:1], most=4, minimum=50, support=10).cells) == 4
    assert len(make("x", [source("a", ["u"] * 90, "VARCHAR")], most=9, minimum=10, support=10).cells) == 1
    for most, minimum, code in (
        (10**6, 50, "cells-most"),
        (9, 3000, "cells-support"),
        (9, 5, "cells-support"),
    ):
        with pytest.raises(PlanError, match=code):
            make("x", mixed(1), most=most, minimum=minimum, support=10)


def test_expected_distances_are_those_of_a_very_large_filled_table() -> None:
    made = make("x", mixed(5), most=20, minimum=40, support=10, seed=bytes(32))
    codings = [distance.coding(one.column, one.codes) for one in made.merged]
    keys = marginals(5, 100, np.random.default_rng(1))
    assert len(keys) == 25
    totals = np.bincount(made.labels).astype(float)
    large = fill(made.cells.profiles, np.repeat(np.arange(20), (totals * 60).astype(int)), made.cells.seed)
    wanted = distance.expected(made.cells.profiles, totals, made.codes, codings, keys)
    found = between(made.codes, large, codings, keys)
    for key in keys:
        assert found.of[key] == pytest.approx(wanted.of[key], abs=6e-3)
    assert wanted.largest(1) < 4e-3


def test_what_a_condition_rules_out_is_not_possible() -> None:
    made = make("x", mixed(6), most=20, minimum=40, support=10)
    for place, one in enumerate(made.merged):
        possible = made.cells.tree.possible(place, len(one.column))
        assert possible[made.labels, one.codes].all()
    assert not all(
        made.cells.tree.possible(place, len(one.column)).all() for place, one in enumerate(made.merged)
    )


def test_large_cells_are_split_by_a_part_of_their_records_and_keep_their_minimum() -> None:
    draw = np.random.default_rng(4)
    group = draw.integers(0, 8, 50_000)
    columns = [source("g", [f"g{v}" for v in group], "VARCHAR")]
    columns += [
        source(f"n{i}", (group * 3 + draw.integers(0, 5, 50_000)).tolist(), "INTEGER") for i in range(2)
    ]
    made = make("x", columns, most=8, minimum=2000, support=10)
    assert np.bincount(made.labels).min() >= 2000
    assert len(set(zip(made.labels.tolist(), group.tolist(), strict=True))) <= 16


def test_many_columns_of_which_few_depend_on_one_another_keep_their_totals() -> None:
    """More pairs than profiles are made to agree with: columns in none of these stay as they are."""
    draw = np.random.default_rng(5)
    columns = [source(f"x{i}", draw.integers(0, 3, 1500).tolist(), "INTEGER") for i in range(24)]
    made = make("x", columns, most=4, minimum=100, support=10)
    codings = [distance.coding(one.column, one.codes) for one in made.merged]
    keys = [(column,) for column in range(24)]
    labels = np.bincount(made.labels).astype(float)
    far = distance.expected(made.cells.profiles, labels, made.codes, codings, keys)
    assert far.largest(1) < 4e-3


def test_a_constant_column_is_constant_in_every_row() -> None:
    columns = [*mixed(3), source("same", ["all"] * 2000, "VARCHAR")]
    made = make("x", columns, most=10, minimum=50, support=10)
    assert set(fill(made.cells.profiles, made.labels, made.cells.seed)[-1].tolist()) == {0}


@pytest.mark.parametrize("rows", [2_000, 3 * SAMPLE])
def test_cells_of_combinations_with_their_records_are_those_of_the_records(rows: int) -> None:
    """Also where a part of the records is looked at, which is evenly spaced among them."""
    draw = np.random.default_rng(8)
    group = draw.integers(0, 6, rows)
    codes = [(group + draw.integers(0, 3, rows)).astype(np.int32) for _ in range(4)]
    order = np.lexsort(codes[::-1])
    codes = [one[order] for one in codes]
    several, records = np.unique(np.column_stack(codes), axis=0, return_counts=True)
    assert len(several) < rows / 3
    kinds = [("VARCHAR", False), ("INTEGER", True), ("VARCHAR", False), ("DOUBLE", True)]
    values = tuple(map(str, range(8)))

    def made(columns: Sequence[np.ndarray], of: np.ndarray | None) -> Made:
        told = zip(columns, kinds, strict=True)
        sources = [SourceColumn(f"x{i}", kind, ordered, values, np.ascontiguousarray(own, np.int32), of)
                   for i, (own, (kind, ordered)) in enumerate(told)]  # fmt: skip
        return make("x", sources, most=40, minimum=30, support=10, seed=bytes(32))

    one, other = made(codes, None), made(list(several.T), records)
    assert len(one.cells) > 10
    assert written(one.cells) == written(other.cells)
    assert [each.records for each in one.merged] == [each.records for each in other.merged]
    far = [_far(each) for each in (one, other)]
    assert len(far[0]) == 4 + 6
    assert far[0] == far[1]


def _far(made: Made) -> dict[tuple[int, ...], float]:
    """Distances of all single columns and pairs, where every label is as frequent."""
    codings = [distance.coding(one.column, one.codes, records=made.records) for one in made.merged]
    keys, labels = marginals(4, 0, np.random.default_rng(1)), np.ones(len(made.cells))
    return distance.expected(made.cells.profiles, labels, made.codes, codings, keys, made.records).of
