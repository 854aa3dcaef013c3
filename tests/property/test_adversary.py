"""The worst pairs of single rows: inside F, and none worse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.measure.adversary import Adversary
from funnel.measure.uncertainty import radius
from tests.support.worst import worst_cases

RATIO = math.exp(1.0)


@st.composite
def cases(draw):
    """Counts (c, a), which cells are possible, order, radius, and rows."""
    c, m = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    released, n = draw(st.booleans()), draw(st.sampled_from([60, 5_000]))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = generator.multinomial(n, generator.dirichlet(np.full(c * m, 0.5))).reshape(c, m)
    counts[:, 0] += 2
    table = np.zeros((c, c * m), np.int64)
    for s in range(c):
        table[s, s * m : (s + 1) * m] = counts[s]
    possible = np.kron(np.eye(c), np.ones(m)) > 0
    if not released:
        table, possible = counts, np.ones((c, m), bool)
    order = draw(st.sampled_from([Fraction(2), Fraction(1), Fraction(7, 10), Fraction(3)]))
    rows = generator.dirichlet(np.full(table.shape[1], 0.5), size=4) * table.shape[1]
    return (
        table,
        possible,
        Fraction(radius(0.95, float(order), n, counts.size)),
        order,
        np.where(rows < 0.1, 0, rows),
    )


@pytest.mark.long
@settings(max_examples=25)
@given(cases())
def test_inequalities_come_from_pairs_inside_the_set_and_none_is_worse(case):
    table, possible, distance, order, rows = case
    known = Adversary(table, possible, distance, order, RATIO)
    excess, inequalities = known.worst(rows)
    assert np.allclose(inequalities.sum(axis=2), -1)
    assert np.allclose((inequalities @ rows[:, :, None])[:, :, 0], excess)
    # Moved to where they exceed nothing, rows exceed nothing in the search that measures releases either.
    low, high = np.zeros(len(rows)), np.ones(len(rows))
    for _ in range(30):
        middle = (low + high) / 2
        out = known.worst(1 + middle[:, None] * (rows - 1))[0].max(axis=1) > 0
        low, high = np.where(out, low, middle), np.where(out, middle, high)
    for row, share in zip(rows, low, strict=True):
        inside = (1 + share * (row - 1))[None, None, :]
        (worst,) = worst_cases(table, inside, possible, distance, order) or [None]
        assert worst is None or worst.ratio <= RATIO * (1 + 1e-7)


@settings(max_examples=25)
@given(cases())
def test_pairs_of_order_two_are_inside_in_exact_arithmetic(case):
    """Where x tells s, the two halves of an inequality do not overlap: w √χ1 + w' √χ2 + rest <= e^{B/2}."""
    table, possible, distance, _, rows = case
    if (possible.sum(axis=0) > 1).any():
        return
    _, inequalities = Adversary(table, possible, distance, Fraction(2), RATIO).worst(rows)
    pairs = [(s, t) for s in range(len(table)) for t in range(len(table)) if s != t]
    total = int(table.sum())
    for row in inequalities:
        for (s, t), inequality in zip(pairs, row, strict=True):
            spent = Fraction(0)
            for secret, sign in ((s, 1), (t, -1)):
                part = [max(sign * Fraction(float(one)), Fraction(0)) for one in inequality]
                share = Fraction(int(table[secret].sum()), total)
                chi = Fraction(0)
                for one, count in zip(part, table[secret].tolist(), strict=True):
                    if count:
                        chi += Fraction(count, int(table[secret].sum())) ** 2 / (one / sum(part))
                root = Fraction(math.isqrt(math.ceil(chi * 10**40)) + 1, 10**20)
                spent += share * (root - 1)
            assert spent <= Fraction(math.expm1(float(distance) / 2))


def test_a_ratio_of_one_allows_nothing_and_is_not_taken():
    table = np.array([[3, 4], [5, 6]])
    for ratio, order, distance in ((1.0, 2, 1), (2.0, Fraction(1, 3), 1), (2.0, 2, 0)):
        with pytest.raises(ValueError, match="positive radius"):
            Adversary(table, np.ones((2, 2), bool), Fraction(distance), Fraction(order), ratio)
