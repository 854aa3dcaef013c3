"""Cones for tests, built from the table of notions as plain matrices, and an exact judge of integer rows.

The geometry knows nothing of what its cones are for; neither do these helpers use the code that does.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from funnel.optimise.cone import Cone
from tests.support.strategies import tables

CENSUS = Path(__file__).parents[2] / "examples" / "census" / "census.parquet"
NATURAL = {"lip": (0.1, 0.5, 1.0, 3.0), "ldp": (0.1, 0.5, 1.0, 3.0)}


def prior_of(table: np.ndarray) -> np.ndarray:
    """p_x."""
    return table.sum(axis=0) / table.sum()


def lip(table: np.ndarray, epsilon: float) -> Cone:
    """p_{x|s} <= e^ε p_x and e^-ε p_x <= p_{x|s}."""
    given = table / table.sum(axis=1, keepdims=True)
    prior = prior_of(table)
    return Cone(np.vstack([given - np.exp(epsilon) * prior, np.exp(-epsilon) * prior - given]))


def ldp(table: np.ndarray, epsilon: float) -> Cone:
    """p_{x|s} <= e^ε p_{x|s'} for s ≠ s'."""
    given = table / table.sum(axis=1, keepdims=True)
    c = len(given)
    pairs = [(s, t) for s in range(c) for t in range(c) if s != t]
    return Cone(np.array([given[s] - np.exp(epsilon) * given[t] for s, t in pairs]))


def lifted_ldp(table: np.ndarray, epsilon: float) -> Cone:
    """The same cone with one auxiliary: h <= p_{x|s} <= e^ε h for every s."""
    given = table / table.sum(axis=1, keepdims=True)
    one = np.ones((len(given), 1))
    return Cone(np.vstack([given, -given]), lift=np.vstack([-np.exp(epsilon) * one, one]))


def perfect(table: np.ndarray) -> Cone:
    """n N[s,x] - N_s N_x = 0, in integers."""
    n, by_s, by_x = int(table.sum()), table.sum(axis=1), table.sum(axis=0)
    rows = n * table.astype(object) - np.outer(by_s.astype(object), by_x.astype(object))
    return Cone(np.zeros((0, table.shape[1])), tuple(tuple(map(int, row)) for row in rows))


CONES = {"lip": lip, "ldp": ldp}


def exactly_inside(weights: np.ndarray, cone: Cone) -> bool:
    """Every row meets the cone as given, in rational arithmetic on the cone's own floats."""
    exact = [[Fraction(float(number)) for number in row] for row in cone.rows]
    return all(
        sum(a * int(v) for a, v in zip(row, weight, strict=True)) <= 0 for row in exact for weight in weights
    ) and all(
        sum(e * int(v) for e, v in zip(equality, weight, strict=True)) == 0
        for equality in cone.equalities
        for weight in weights
    )


@cache
def census(secret: str, public: str) -> np.ndarray:
    """Counts N[s, x] of two census columns."""
    import pyarrow.parquet as pq

    data = pq.read_table(CENSUS, columns=[secret, public])
    columns = [data[name].to_numpy(zero_copy_only=False) for name in (secret, public)]
    codes = [np.unique(column, return_inverse=True) for column in columns]
    table = np.zeros([len(values) for values, _ in codes], np.int64)
    np.add.at(table, (codes[0][1], codes[1][1]), 1)
    return table


def entropy(p: np.ndarray) -> float:
    """H(X) in nats."""
    return float(-(p @ np.log(p)))


@st.composite
def problems(draw: st.DrawFn, secrets: int = 4, most: int = 5) -> tuple[np.ndarray, Cone]:
    """A table and the cone of one of the two inequality notions at some ε."""
    table = draw(tables(most=most, secrets=secrets))
    kind = draw(st.sampled_from(sorted(CONES)))
    return table, CONES[kind](table, draw(st.sampled_from(NATURAL[kind])))
