"""Joint distributions of the census example."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import duckdb
import numpy as np

from funnel.data import Alphabet, Joint

CENSUS = Path(__file__).parents[2] / "examples" / "census" / "census.parquet"


@cache
def census(secret: str, public: str) -> Joint:
    """N[s, x] of two columns, all 32,561 rows, `?` as a category."""
    rows = duckdb.execute(
        f'SELECT "{secret}", "{public}", count(*) FROM \'{CENSUS}\' GROUP BY ALL'
    ).fetchall()
    s = Alphabet.of((secret,), [(row[0],) for row in rows])
    x = Alphabet.of((public,), [(row[1],) for row in rows])
    cells = np.array([[s.values.index((row[0],)), x.values.index((row[1],))] for row in rows])
    return Joint(s, (x,), cells, np.array([row[2] for row in rows]))
