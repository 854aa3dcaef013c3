"""Functionals of true values: right on average over every outcome of small tables, and so are their covariances."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.data import Alphabet, Protocol, UnaryProtocol
from funnel.measure.functionals import AtFace, Inverted, Tally, tabulated
from funnel.measure.recovery import inverse_of

BITS = 6


def values(name: str, size: int) -> Alphabet:
    return Alphabet((name,), tuple((f"{name}{i}",) for i in range(size)))


@st.composite
def protocols(draw: st.DrawFn, name: str) -> Protocol:
    """Any weights (b, a) over 2^6, sometimes of low rank."""
    a, b = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    columns = []
    for _ in range(a):
        cuts = sorted(draw(st.lists(st.integers(0, 1 << BITS), min_size=b - 1, max_size=b - 1)))
        columns.append(np.diff([0, *cuts, 1 << BITS]))
    if a > 1 and draw(st.booleans()):
        columns[-1] = columns[0]
    return Protocol(values(name, a), values(f"{name}y", b), BITS, np.array(columns).T[:, None, :])


def chances(one: Protocol | UnaryProtocol) -> np.ndarray:
    """Q (b, a), sets listed."""
    if isinstance(one, Protocol):
        return one.probabilities()[:, 0, :]
    held, (present, absent) = one.members(), one.shares
    rows = []
    for x in range(len(one.inputs)):
        ones = np.where(np.arange(len(one.inputs)) == x, present, absent)
        rows.append(np.where(held, ones, 1 - ones).prod(axis=1))
    return np.array(rows).T


def outcomes(blocks: list, records: list[tuple[int, ...]]):
    """Every table of answers to some records, (b_1, …, b_r), with its chance."""
    each = [chances(one) for one in blocks]
    sizes = [len(one) for one in each]
    answers = list(product(*map(range, sizes)))
    for told in product(answers, repeat=len(records)):
        chance = np.prod([each[j][y[j], x[j]] for y, x in zip(told, records, strict=True) for j in range(len(sizes))])
        if chance > 0:
            yield chance, tabulated(np.array(told), np.ones(len(told), np.int64), sizes)


def expected(blocks: list, records: list, undoing, f: np.ndarray, g: np.ndarray, *, squares: bool = True) -> None:
    """Over all outcomes totals have the true means, and estimated covariances the true covariance as theirs."""
    first, mixed, found, told = np.zeros(2), 0.0, 0.0, []
    for chance, counts in outcomes(blocks, records):
        tally = Tally(counts, undoing)
        one, other = tally.functional(f), tally.functional(g)
        own = np.array([tally.total(one), tally.total(other)])
        first, mixed = first + chance * own, mixed + chance * own.prod()
        # without the floor that keeps a variance from being negative, which is not free of bias
        found += chance * (tally.covariance(one, other) if squares else 0.0)
        told.append(tally.covariance(one, one))
    np.testing.assert_allclose(first, [sum(h[x] for x in records) for h in (f, g)], atol=1e-8)
    if squares:
        np.testing.assert_allclose(found, mixed - first.prod(), atol=1e-7)
    assert min(told) >= 0


@given(st.data())
def test_over_all_outcomes_totals_and_covariances_are_right(data):
    blocks = [data.draw(protocols("x")), data.draw(protocols("u"))][: data.draw(st.integers(1, 2))]
    sizes = [len(one.inputs) for one in blocks]
    records = data.draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=1, max_size=2))
    numbers = st.lists(st.integers(-3, 3), min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes)))
    f, g = (np.array(data.draw(numbers), float).reshape(sizes) for _ in range(2))
    undoing = Inverted([inverse_of(one, np.arange(one.size)) for one in blocks])
    if any(one.condition > 1e4 for one in undoing.inverses):
        return
    reached = [h for h in (f, g) if undoing.estimable(h)]
    for h in (f, g):
        flat = h.reshape(-1)
        whole = chances(blocks[0]) if len(blocks) == 1 else np.kron(*map(chances, blocks))
        left = flat - flat @ np.linalg.pinv(whole, rcond=1e-9) @ whole
        assert undoing.estimable(h) == (np.abs(left).max() < 1e-6), "estimable is what lies in the row space of Q"
    if len(reached) == 2:
        both = undoing.estimable(f * g)
        expected(blocks, records, undoing, f, g, squares=both)


@pytest.mark.parametrize("beside", [False, True])
def test_sets_are_undone_exactly_alone_and_beside_values(beside):
    sets = UnaryProtocol(values("x", 3), 3, 5, 2)
    other = Protocol(values("u", 2), values("u", 2), 3, np.array([[6, 1], [2, 7]])[:, None, :])
    blocks = [sets, other] if beside else [sets]
    undoing = Inverted([inverse_of(one, np.arange(one.size)) for one in blocks])
    shape = (3, 2) if beside else (3,)
    random = np.random.default_rng(1)
    f, g = random.integers(-2, 3, (2, *shape)).astype(float)
    records = [(0, 1), (2, 0)] if beside else [(0,), (2,)]
    expected(blocks, records, undoing, f, g)
    tally = Tally(list(outcomes(blocks, records))[5][1], undoing)
    counts = [h[:, None] * np.ones(2) if beside else h for h in np.eye(3)]
    total = [tally.total(tally.functional(h)) for h in counts]
    assert sum(total) == pytest.approx(len(records)), "counts of all values add up to all records"


def test_a_total_at_face_value_is_right_where_the_protocol_keeps_totals():
    # Q p = p for p = (3, 1) / 4: expected totals of tables with such shares are the true ones
    kept = Protocol(values("x", 2), values("x", 2), 4, np.array([[14, 6], [2, 10]])[:, None, :])
    undoing = AtFace(chances(kept), np.arange(2), np.ones(2))
    f, g = np.array([1.0, 0.0]), np.array([2.0, -1.0])
    expected([kept], [(0,), (0,), (0,), (1,)], undoing, f, g)
    # and by weights where it does not: the share of a value over that of its answer
    moved = Protocol(values("x", 2), values("x", 2), 4, np.array([[12, 8], [4, 8]])[:, None, :])
    answered = chances(moved) @ [0.75, 0.25]
    expected([moved], [(0,), (0,), (0,), (1,)], AtFace(chances(moved), np.arange(2), [0.75, 0.25] / answered), f, g)


def test_where_squares_are_not_to_be_had_the_variance_is_no_smaller_than_the_true_one():
    # f is estimable and f² is not: the third column of Q is the mean of the others
    tied = Protocol(values("x", 3), values("y", 2), 6, np.array([[48, 16, 32], [16, 48, 32]])[:, None, :])
    undoing = Inverted([inverse_of(tied, np.arange(2))])
    f = np.array([1.0, -1.0, 0.0])
    assert undoing.estimable(f)
    assert not undoing.estimable(f * f)
    assert not undoing.estimable(np.array([1.0, 0.0, 0.0]))
    records = [(0,), (2,), (1,), (2,)]
    true, told = 0.0, 0.0
    for chance, counts in outcomes([tied], records):
        tally = Tally(counts, undoing)
        one = tally.functional(f)
        true, told = true + chance * tally.total(one) ** 2, told + chance * tally.covariance(one, one)
    assert told >= true, "the total is 0, so its square is the variance"


def test_a_protocol_that_reads_the_secret_tells_what_does_not_depend_on_it():
    # x0 passes; x1 and x2 are mixed, differently for each secret
    weights = np.array([[[64, 0, 0]] * 2, [[0, 48, 16], [0, 40, 8]], [[0, 16, 48], [0, 24, 56]]])
    one = Protocol(values("x", 3), values("x", 3), 6, weights, values("s", 2))
    undoing = Inverted([inverse_of(one, np.arange(3))])
    assert undoing.estimable(np.array([1.0, 0.0, 0.0]))
    assert not undoing.estimable(np.array([0.0, 1.0, 0.0]))
    assert undoing.estimable(np.array([0.0, 1.0, 1.0]))
