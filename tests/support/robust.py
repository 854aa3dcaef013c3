"""Tables, protocols and balls for robust leakage."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from tests.support.strategies import tables

CONVEX = [Fraction(1, 2), Fraction(4, 5), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5)]
"""Orders for which the worst pair is found, not only bounded."""


ORDERS = st.sampled_from([Fraction(1, 5), *CONVEX, Fraction(2), Fraction(2)])


RADII = st.sampled_from([Fraction(1, 10**6), Fraction(1, 500), Fraction(3, 40), Fraction(1, 2)])


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, weights, and possible cells: all of them, or those of a secret that is part of X."""
    table = draw(tables(most=4, secrets=3, largest=60))
    c, a = table.shape
    possible = np.ones(table.shape, bool)
    if draw(st.booleans()):
        table = np.hstack([np.where(np.arange(c)[:, None] == s, table, 0) for s in range(c)])
        possible = np.repeat(np.eye(c, dtype=bool), a, axis=1)
    outputs = draw(st.integers(1, 2))
    least = draw(st.sampled_from([0, 1, 50]))
    secrets = c if draw(st.booleans()) else 1
    size = outputs * secrets * table.shape[1]
    cells = draw(st.lists(st.integers(least, 100), min_size=size, max_size=size).filter(any))
    weights = np.array(cells, np.int64).reshape(outputs, secrets, table.shape[1])
    rest = weights.sum(axis=0).max() - weights.sum(axis=0) + least
    return table, np.concatenate([weights, rest[None]]), possible
