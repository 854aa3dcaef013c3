"""Merging values: what merges can do at all, what the two greedy ends do, and that a partition keeps its bound."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.measure.information import entropy, mutual_information
from funnel.optimise.partitions import merging
from funnel.optimise.partitions.clusters import Clusters, confusion
from funnel.optimise.partitions.merging import bottleneck, finest, funnel, refined
from tests.support.census import CENSUS
from tests.support.strategies import tables

NEAR = 1e-11
powers = st.sampled_from([0.0, 0.5, 0.75, 1.0])
paths = st.sampled_from([funnel, bottleneck])
shares = st.floats(0, 1)


def figure_one():
    """N[s, x] of S = (age in seven bands, income) and X = (age, sex, education), as in [PF] section IV.B."""
    rows = duckdb.execute(
        "SELECT dense_rank() OVER (ORDER BY age, income), dense_rank() OVER (ORDER BY age, sex, education), n FROM ("
        "SELECT least(greatest((age - 10) // 10, 1), 7) AS age, income, sex, education, count(*) AS n "
        f"FROM '{CENSUS}' GROUP BY ALL)"
    ).fetchall()
    s, x, n = np.array(rows).T
    table = np.zeros((s.max(), x.max()), np.int64)
    table[s - 1, x - 1] = n
    return table


def merged(table, owner):
    """N[s, y] of a partition."""
    return np.array([table[:, owner == y].sum(axis=1) for y in range(owner.max() + 1)]).T


def figures(table, owner):
    """I(X;Y), which is H(Y), and I(S;Y) of a partition, from the table itself."""
    released = merged(table, owner)
    return entropy(released.sum(axis=0)), mutual_information(released)


def partitions(size):
    """Every partition of `size` values, as owners numbered by their smallest members."""
    found = [[0]]
    for _ in range(size - 1):
        found = [[*owner, y] for owner in found for y in range(max(owner) + 2)]
    return [np.array(owner) for owner in found]


@st.composite
def several(draw):
    """Up to three tables over the same x."""
    first = draw(tables(6))
    others = draw(st.lists(st.integers(0, 50), min_size=0, max_size=2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return [
        first,
        *(rng.integers(0, top + 2, first.shape) + np.eye(*first.shape, dtype=int) for top in others),
    ]


@given(tables(6), paths)
def test_merging_never_tells_more_and_ends_in_nothing(table, search):
    path = search([table])
    assert len(path.pairs) == table.shape[1] - 1
    assert (np.diff(path.public) <= NEAR).all() and (np.diff(path.secret, axis=0) <= NEAR).all()
    assert path.public[-1] == pytest.approx(0, abs=NEAR) and path.secret[-1] == pytest.approx(0, abs=NEAR)
    assert (path.partition(len(path.pairs)) == 0).all()


@given(tables(6), paths)
def test_the_path_states_what_its_partitions_tell(table, search):
    path = search([table])
    for step, (public, secret) in enumerate(zip(path.public, path.secret, strict=True)):
        owner = path.partition(step)
        assert owner.max() + 1 == table.shape[1] - step
        assert np.unique(owner, return_index=True)[1].tolist() == sorted(
            np.unique(owner, return_index=True)[1].tolist()
        )
        assert (public, secret[0]) == pytest.approx(figures(table, owner), abs=NEAR)


@given(tables(6))
def test_a_merge_costs_its_jensen_shannon_term(table):
    """[PF] Proposition 1: p_ij H(S|y_ij) - p_i H(S|y_i) - p_j H(S|y_j), and the same for X."""
    clusters, prior = Clusters([table]), table.sum(axis=0) / table.sum()
    for i in range(table.shape[1] - 1):
        others = np.arange(i + 1, table.shape[1])
        secret, public = clusters.drops(i, others)
        for j, on_secret, on_public in zip(others, secret[0], public, strict=True):
            both = prior[i] + prior[j]
            spread = both * entropy(table[:, i] + table[:, j])
            spread -= prior[i] * entropy(table[:, i]) + prior[j] * entropy(table[:, j])
            assert on_secret == pytest.approx(spread, abs=NEAR)
            assert on_public == pytest.approx(both * entropy([prior[i], prior[j]]), abs=NEAR)


@given(tables(6), powers, st.booleans(), shares)
def test_floors_are_kept_and_nothing_more_could_be_merged(table, power, printed, share):
    top = Clusters([table])
    floor = share * top.public
    path = funnel([table], power=power, public_floor=floor)
    last = Clusters([table], path.partition(len(path.pairs)))
    assert path.public[-1] >= floor - 1e-9
    assert all(last.public - drop < floor + 1e-9 for drop in _drops(last)[1])

    floor = share * float(top.secret[0])
    path = bottleneck([table], printed=printed, secret_floor=floor)
    last = Clusters([table], path.partition(len(path.pairs)))
    assert path.secret[-1, 0] >= floor - 1e-9
    assert all(last.secret[0] - drop < floor + 1e-9 for drop in _drops(last)[0])


@given(tables(6))
def test_each_merge_of_the_printed_algorithms_is_the_best_there_is(table):
    for path, place in ((funnel([table], power=0), 0), (bottleneck([table], printed=True), 1)):
        for step in range(len(path.pairs)):
            before, after = (Clusters([table], path.partition(t)) for t in (step, step + 1))
            taken = before.secret[0] - after.secret[0], before.public - after.public
            assert taken[place] == pytest.approx(max(_drops(before)[place]), abs=NEAR)


@given(tables(6), shares)
def test_greedy_is_no_better_than_the_best_partition(table, share):
    bound = share * mutual_information(table)
    best = max(h for h, told in (figures(table, p) for p in partitions(table.shape[1])) if told <= bound)
    public, secret = figures(table, finest([table], bound))
    assert secret <= bound
    assert public <= best + NEAR


@given(tables(6))
def test_a_bound_is_a_bound_to_the_last_digits(table):
    """Right at, and a hair under, what a partition tells."""
    path = funnel([table])
    for told in path.secret[:, 0]:
        for bound in (told, told - 1e-10):
            assert bound <= 0 or figures(table, finest([table], bound, powers=[0.75]))[1] <= bound


@given(tables(8), shares)
def test_the_finest_keeps_no_less_than_the_paper_where_it_stops(table, share):
    bound = share * mutual_information(table)
    paper = funnel([table], power=0)
    step = paper.first_within(bound - 1e-12)
    kept = 0.0 if step is None else paper.public[step]
    assert figures(table, finest([table], bound))[0] >= kept - NEAR


@given(tables(8), shares, st.integers(0, 7))
def test_moving_keeps_the_bound_and_loses_nothing(table, share, step):
    path = funnel([table])
    owner = path.partition(min(step, len(path.pairs)))
    public, secret = figures(table, owner)
    bound = secret + share * (mutual_information(table) - secret)
    moved, stated = refined([table], owner, bound)
    assert figures(table, moved)[1] <= bound + NEAR
    assert figures(table, moved)[0] >= public - NEAR
    assert stated == pytest.approx(figures(table, moved)[0], abs=NEAR)


def test_moving_takes_apart_what_need_not_be_together():
    """Two values that tell nothing, and two that do unless they are together: found from one cluster of all."""
    table = np.array([[40, 40, 5, 55], [40, 40, 55, 5]])
    moved, public = refined([table], np.zeros(4, np.int64), 1e-6)
    assert moved.tolist() == [0, 1, 2, 2]
    assert public == pytest.approx(entropy([80, 80, 120]), abs=NEAR)


@given(several(), shares)
def test_several_tables_keep_the_bound_each(several, share):
    bound = share * max(mutual_information(table) for table in several)
    owner = finest(several, bound)
    assert all(figures(table, owner)[1] <= bound + 1e-12 for table in several)


@given(several(), paths)
def test_a_path_over_several_tables_states_each(several, search):
    path = search(several)
    for step in range(len(path.pairs) + 1):
        owner = path.partition(step)
        assert path.secret[step] == pytest.approx([figures(t, owner)[1] for t in several], abs=NEAR)
        assert path.public[step] == pytest.approx(figures(np.vstack(several), owner)[0], abs=NEAR)


def test_ties_go_to_the_smallest_indices_and_other_names_change_nothing_else():
    same = np.tile([[3], [5]], (1, 4))
    assert funnel([same]).pairs.tolist() == [[0, 1], [0, 2], [0, 3]]
    rng = np.random.default_rng(1)
    table = rng.integers(1, 1000, (5, 30))
    order = rng.permutation(30)
    one, other = funnel([table]), funnel([table[:, order]])
    assert other.public == pytest.approx(one.public, abs=NEAR)
    assert other.secret == pytest.approx(one.secret, abs=NEAR)
    for step in (7, 20, 26):
        named = {frozenset(order[other.partition(step) == y].tolist()) for y in range(30 - step)}
        assert named == {
            frozenset(np.flatnonzero(one.partition(step) == y).tolist()) for y in range(30 - step)
        }


def test_rows_of_best_pairs_stay_the_best(monkeypatch):
    """What a merge renews is all that it changes: the same path as when everything is priced anew."""
    table = np.random.default_rng(2).integers(0, 60, (4, 40)) + 1
    path = funnel([table])
    owner = np.arange(40)
    for kept, gone in path.pairs:
        names = np.unique(owner)
        clusters = Clusters([table], np.unique(owner, return_inverse=True)[1])
        best = max(
            (float(s / p**0.75), -int(names[i]), -int(names[j]))
            for i in range(len(names) - 1)
            for j, s, p in zip(
                range(i + 1, len(names)),
                *(part.ravel() for part in clusters.drops(i, np.arange(i + 1, len(names)))),
                strict=True,
            )
        )
        assert (kept, gone) == (-best[1], -best[2])
        owner[owner == gone] = kept


def test_figure_one_on_the_census():
    """[PF] Figure 1: I(S;Y) falls to zero as I(X;Y) does, well under the bottleneck's curve."""
    table = figure_one()
    low, high = funnel([table]), bottleneck([table])
    entropy_of_x, told = low.public[0], low.secret[0, 0]
    assert (entropy_of_x, told) == pytest.approx((high.public[0], high.secret[0, 0]), abs=NEAR)
    for share in (0.8, 0.6, 0.4, 0.2):
        lower, upper = (
            np.interp(share * entropy_of_x, path.public[::-1], path.secret[::-1, 0]) for path in (low, high)
        )
        assert lower < upper / 2 if share < 0.8 else lower < upper
        assert lower < share * told
    near_zero = np.interp(0.2 * entropy_of_x, low.public[::-1], low.secret[::-1, 0])
    assert near_zero < 0.02 * told


def test_the_default_order_keeps_more_than_the_printed_one():
    table = figure_one()
    told = mutual_information(table)
    for share in (0.5, 0.25, 0.1, 0.03, 0.01):
        kept = [_kept(funnel([table], power=power), share * told) for power in (merging.POWERS[0], 0)]
        assert kept[0] > kept[1]


def test_values_and_tables_without_records_are_refused():
    with pytest.raises(ValueError, match="no records"):
        funnel([np.array([[1, 0], [2, 0]])])
    with pytest.raises(ValueError, match="no records"):
        funnel([np.ones((2, 2)), np.zeros((2, 2))])


@given(st.floats(1e-12, 1), st.floats(0, 1))
def test_confusion_is_symmetric_and_positive(one, other):
    assert confusion(one, other) == pytest.approx(float(confusion(other, one)), abs=1e-15)
    assert confusion(one, other) >= 0
    assert confusion(one, 0.0) == 0


def _drops(clusters):
    """All drops of I(S;Y) and of I(X;Y) over the pairs of clusters."""
    size = len(clusters.mass)
    found = [clusters.drops(i, np.arange(i + 1, size)) for i in range(size - 1)]
    return [float(v) for s, _ in found for v in s[0]], [float(v) for _, p in found for v in p]


def _kept(path, bound):
    """I(X;Y) of the first partition within the bound."""
    return path.public[path.first_within(bound)]
