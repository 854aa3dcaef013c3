"""What twelve columns of a census look like after they have been cells: nearer to the truth than a second census."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from funnel.cells import distance
from funnel.cells.fill import fill
from funnel.cells.make import make
from tests.support.census import CENSUS
from tests.support.wide import between, marginals, source

HIDDEN = {"person_id", "fnlwgt", "education_num", "income"}


@pytest.mark.long
def test_a_release_of_two_hundred_cells_is_as_near_to_the_census_as_promised() -> None:
    """Numbers coded by 20 quantiles; the comparison is a bootstrap of the true rows."""
    table = pq.read_table(CENSUS)
    columns = [
        source(
            name,
            table[name].to_pylist(),
            "VARCHAR" if table.schema.field(name).type == "string" else "BIGINT",
        )
        for name in table.column_names
        if name not in HIDDEN
    ]
    made = make("person", columns, most=200, minimum=50, support=10, seed=bytes(32))
    draw = np.random.default_rng(1)
    codings = [distance.coding(one.column, one.codes) for one in made.merged]
    keys = marginals(12, 60, draw)
    labels = np.bincount(made.labels, minlength=200).astype(float)
    expected = distance.expected(made.cells.profiles, labels, made.codes, codings, keys)
    assert (len(made.cells), len(columns)) == (200, 12)
    assert expected.largest(1) <= 0.001
    assert expected.mean(2) <= 0.010 and expected.largest(2) <= 0.05
    assert expected.mean(3) <= 0.022
    rows = fill(made.cells.profiles, made.labels, made.cells.seed)
    chosen = draw.integers(0, len(made.labels), len(made.labels))
    again = between(made.codes, [own[chosen] for own in made.codes], codings, keys)
    realised = between(made.codes, rows, codings, keys)
    for size in (1, 2, 3):
        assert realised.mean(size) <= 1.3 * again.mean(size)
    assert realised.largest(2) <= 1.3 * again.largest(2)
