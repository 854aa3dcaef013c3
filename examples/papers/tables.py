"""The tables of the papers: random ones as they describe them, and the census."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import duckdb
import numpy as np

from funnel.data import Alphabet, Joint
from funnel.data.joint import FloatArray, IntArray

CENSUS = Path(__file__).parent.parent / "census" / "census.parquet"
RECORDS = 10**9
"""funnel works on counts: a distribution becomes this many records, each cell rounded to the nearest."""
CENSUS_RECORDS = 32_561


def uniform(generator: np.random.Generator, shape: Sequence[int]) -> FloatArray:
    """Entries uniform on [0, 1], normalised ([DS] section VIII.A)."""
    drawn = generator.uniform(size=shape)
    return np.asarray(drawn / drawn.sum())


def jeffreys(generator: np.random.Generator, shape: Sequence[int]) -> FloatArray:
    """The symmetric Dirichlet distribution with parameter 1/2 ([DS] section VIII.D, [RLDP] section 8.2)."""
    return generator.dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)


def counts(distribution: FloatArray) -> IntArray:
    """A distribution as counts of `RECORDS` records."""
    return np.rint(distribution * RECORDS).astype(np.int64)


def joint(distribution: FloatArray) -> Joint:
    """A distribution p[s, x_1, …, x_k] with the secret first and one block per further axis."""
    table = counts(distribution)
    cells = np.argwhere(table > 0).astype(np.int64)
    secret, *blocks = (_alphabet(axis, size) for axis, size in enumerate(table.shape))
    return Joint(secret, tuple(blocks), cells, table[table > 0])


def _alphabet(axis: int, size: int) -> Alphabet:
    name = f"X{axis}" if axis else "S"
    return Alphabet((name,), tuple((f"{name.lower()}{value + 1}",) for value in range(size)))


def estimate(generator: np.random.Generator, truth: FloatArray, records: int = CENSUS_RECORDS) -> IntArray:
    """Counts of records drawn from a distribution p[s, u] ([RLDP] section 8.2)."""
    return np.asarray(generator.multinomial(records, truth.ravel()).reshape(truth.shape), np.int64)


@cache
def census(secret: str, public: str) -> Joint:
    """N[s, x] of two SQL expressions over the census example; `?` is a value like any other."""
    rows = _counted(secret, public)
    s, x = ([(row[axis],) for row in rows] for axis in (0, 1))
    inputs = [Alphabet.of((name,), values) for name, values in ((secret, s), (public, x))]
    cells = [
        [alphabet.values.index(value) for value in values]
        for alphabet, values in zip(inputs, (s, x), strict=True)
    ]
    return Joint(inputs[0], (inputs[1],), np.array(cells).T, np.array([row[2] for row in rows]))


@cache
def census_records(secret: str, rest: str) -> IntArray:
    """N[s, u] (c, a2) of two columns of the census."""
    return census(secret, rest).table()


def _counted(secret: str, public: str) -> list[tuple[str, str, int]]:
    """Value of one expression, value of the other, records, in a fixed order."""
    query = (
        f"SELECT ({secret})::VARCHAR, ({public})::VARCHAR, count(*) FROM '{CENSUS}' GROUP BY ALL ORDER BY ALL"
    )
    return duckdb.sql(query).fetchall()
