"""What is told of counts in cells: sums with support, from which no smaller count follows."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.cells.columns import SourceColumn
from funnel.cells.counts import counted
from funnel.cells.make import make
from funnel.cells.pooling import ToldSums, bridges, told
from funnel.cells.tree import Nesting
from tests.support.wide import mixed

SUPPORT = 6


def small_table(seed: int) -> ToldSums:
    """A skewed table of 2 … 7 cells and 2 … 6 values, each of them with support."""
    draw = np.random.default_rng(seed)
    cells, values = int(draw.integers(2, 8)), int(draw.integers(2, 7))
    counts = np.floor(draw.lognormal(1.2, 1.3, (cells, values))).astype(np.int64)
    counts[counts.sum(axis=1) < SUPPORT, 0] += SUPPORT
    counts[0, counts.sum(axis=0) < SUPPORT] += SUPPORT
    return told(counts, chain(cells), SUPPORT, np.arange(values))


def chain(cells: int) -> Nesting:
    """Cells one after the other, each beside all that follow."""
    parents = [-1] + [2 * (place // 2) for place in range(2 * cells - 2)]
    return Nesting(np.array(parents), np.array([*range(1, 2 * cells - 2, 2), 2 * cells - 2]))


def known(one: ToldSums) -> np.ndarray:
    """Which entries follow linearly from all that is told: entries, parts, pools, sizes of cells, totals of values."""
    names = [np.arange(one.counts.size), *(np.repeat(np.arange(a), b) for a, b in [one.counts.shape])]
    values = np.tile(np.arange(one.counts.shape[1]), len(one.counts))
    alone = np.where(one.hidden.ravel(), -1, names[0])
    rows = [
        (kind.ravel() == name).astype(float)
        for kind in (one.parts, one.pools * one.hidden - ~one.hidden, alone, names[1], values)
        for name in np.unique(kind)
        if name >= 0
    ]
    _, sizes, basis = np.linalg.svd(np.array(rows))
    basis = basis[: len(sizes)][sizes > 1e-9]
    return (np.abs((basis**2).sum(axis=0) - 1) < 1e-9).reshape(one.counts.shape)


@pytest.mark.parametrize("seed", range(60))
def test_no_small_count_follows_from_what_is_told(seed: int) -> None:
    one = small_table(seed)
    small = (one.counts > 0) & (one.counts < SUPPORT)
    assert not (known(one) & small).any()
    for sums in one.sums():
        assert not ((sums > 0) & (sums < SUPPORT)).any()


def test_hiding_small_counts_alone_would_not_hide_them() -> None:
    """The check above sees what a reader sees: where only small entries are hidden, most tables give some away."""
    seen = 0
    for seed in range(60):
        one = small_table(seed)
        small = (one.counts > 0) & (one.counts < SUPPORT)
        parts = np.where(small, np.arange(len(one.counts))[:, None], -1)
        naive = ToldSums(
            one.counts, parts, np.tile(np.arange(one.counts.shape[1]), (len(one.counts), 1)), SUPPORT
        )
        seen += bool((known(naive) & small).any())
    assert seen > 30


@pytest.mark.parametrize("seed", range(20))
def test_masses_repeat_what_is_told(seed: int) -> None:
    one = small_table(seed)
    masses = one.masses()
    assert (masses[~one.hidden] == one.counts[~one.hidden]).all()
    assert masses.sum(axis=1) == pytest.approx(one.counts.sum(axis=1))
    assert masses.sum(axis=0) == pytest.approx(one.counts.sum(axis=0), abs=1)


def test_masses_are_a_function_of_what_is_told() -> None:
    """Another table with the same sums, and the same entries below support, is told in the same way."""
    counts = np.array([[40, 3, 4, 5], [40, 4, 3, 9], [0, 30, 30, 30]])
    other = counts + np.array([[0, 1, -1, 0], [0, -1, 1, 0], [0, 0, 0, 0]])
    first, second = (told(table, chain(3), SUPPORT, np.arange(4)) for table in (counts, other))
    assert (first.masses() == second.masses()).all()


def test_bridges_are_found() -> None:
    square = np.array([[0, 0], [1, 1]])
    assert not bridges(square, np.array([[0, 1], [0, 1]])).any()
    open_ = np.array([[0, 0], [1, -1]])
    assert bridges(open_, np.array([[0, 1], [0, 1]])).tolist() == [[True, True], [True, False]]
    # Two squares that share nothing but one entry between them.
    parts = np.array([[0, 0, -1, -1], [1, 1, 1, -1], [-1, -1, 2, 2], [-1, -1, 3, 3]])
    pools = np.tile(np.arange(4), (4, 1))
    assert np.argwhere(bridges(parts, pools)).tolist() == [[1, 2]]


def by_hand(rows: list[str]) -> list[SourceColumn]:
    """Columns A and B of rows that are written as their two values."""
    told = [(name, [row[place] for row in rows]) for place, name in enumerate("AB")]
    return [
        SourceColumn(name, "VARCHAR", False, tuple(sorted(set(own))), np.unique(own, return_inverse=True)[1])
        for name, own in told
    ]


def test_no_small_count_is_what_the_conditions_of_other_cells_leave() -> None:
    """Of 52 records with u, 50 would be a cell: two are in that of B=1, whatever is hidden."""
    sources = by_hand(["u0"] * 50 + ["v0"] * 50 + ["u1"] * 2 + ["v1"] * 98)
    made = make("x", sources, most=20, minimum=10, support=10)
    assert {node.column for node in made.cells.tree.nodes} == {1, -1}
    for place, codes in enumerate(made.codes):
        counts = counted(codes, 2, made.labels, len(made.cells.tree))
        sums = told(counts, made.cells.tree.nesting, 10, np.arange(2), made.cells.tree.possible(place, 2))
        assert not (known(sums) & (counts > 0) & (counts < 10)).any()


def test_a_tree_without_a_split_is_that_tree_with_its_cells_in_one() -> None:
    made = make("x", mixed(4), most=30, minimum=40, support=10)
    tree = made.cells.tree
    for column in {node.column for node in tree.nodes} - {-1}:
        other = tree.without(column)
        together = np.array(sorted({*zip(made.labels.tolist(), other.assign(made.codes).tolist(), strict=True)}))
        assert together[:, 0].tolist() == list(range(len(tree)))
        assert (np.diff(together[:, 1]) >= 0).all()
        assert together[-1, 1] == len(other) - 1
        assert other.leaves.tolist() == [place for place, node in enumerate(other.nodes) if node.cell >= 0]
        assert len(other.nodes) == 2 * len(other) - 1 < len(tree.nodes)


def test_profiles_of_a_table_keep_its_columns() -> None:
    made = make("x", mixed(4), most=30, minimum=40, support=10)
    for one in made.merged:
        counts = counted(one.codes, len(one.column), made.labels, 30)
        found = told(counts, made.cells.tree.nesting, 10, np.arange(len(one.column)))
        assert found.masses().sum(axis=0) == pytest.approx(counts.sum(axis=0), rel=0.02)
