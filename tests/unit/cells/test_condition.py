"""A cell's condition is the same in SQL and in numpy, for every record there is."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from funnel.cells.condition import sql, words
from funnel.cells.make import Made, make
from funnel.engine.sql import identifier, literal
from tests.support.wide import mixed, source, table


def asked(made: Made, records: list[tuple[str | None, ...]]) -> list[int | None]:
    """The engine's answers."""
    columns = made.cells.columns
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t (place INT, {', '.join(f'{identifier(c.name)} {c.type}' for c in columns)})"
        )
        rows = [[n, *record] for n, record in enumerate(records)]
        arrow = pa.table({f"c{i}": values for i, values in enumerate(zip(*rows, strict=True))})
        connection.register("records", arrow)
        connection.execute("INSERT INTO t SELECT * FROM records")
        case = sql(made.cells, [identifier(c.name) for c in columns], literal)
        return [cell for (cell,) in connection.execute(f"SELECT {case} FROM t ORDER BY place").fetchall()]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_the_engine_and_numpy_put_every_record_into_the_same_cell(seed: int) -> None:
    sources = mixed(seed, 900)
    made = make("person", sources, most=25, minimum=20, support=5 + seed)
    assert asked(made, table(sources)) == (made.labels + 1).tolist()
    assert np.bincount(made.labels).min() >= 20


def test_texts_nobody_had_are_unknown_unless_rare_ones_were_put_together() -> None:
    common = [source("a", ["u"] * 40 + ["v"] * 40, "VARCHAR"), source("b", list(range(80)), "INTEGER")]
    made = make("x", common, most=2, minimum=10, support=2)
    assert made.cells.columns[0].other is None
    rare = [source("a", ["u"] * 40 + ["v"] * 38 + ["w", "z"], "VARCHAR")]
    joined = make("x", rare, most=3, minimum=2, support=2)
    assert joined.cells.columns[0].values == ("other", "u", "v")
    assert asked(joined, [("never seen",), ("w",), (None,)])[:2] == [asked(joined, [("z",)])[0]] * 2
    assert asked(joined, [(None,)]) == [None]
    two = make("x", [source("a", ["u"] * 40 + ["v"] * 40, "VARCHAR")], most=2, minimum=10, support=2)
    assert asked(two, [("u",), ("v",), ("w",)]) == [1, 2, None]


def test_a_number_between_those_seen_is_in_a_cell() -> None:
    made = make("x", [source("n", [1] * 20 + [9] * 20, "INTEGER")], most=2, minimum=10, support=10)
    assert made.cells.columns[0].cuts == ("9",)
    assert asked(made, [("-5",), ("8",), ("9",), ("1000",), (None,)]) == [1, 1, 2, 2, None]


def test_conditions_in_words() -> None:
    ages, sexes = [20, 30, 40, 50] * 20, ["f"] * 40 + ["m"] * 40
    made = make(
        "x", [source("age", ages, "INTEGER"), source("sex", sexes, "VARCHAR")], most=8, minimum=10, support=10
    )
    said = [words(made.cells, cell) for cell in range(len(made.cells))]
    assert len(set(said)) == 8
    assert "age < 30 and sex is f" in said
    assert "40 ≤ age < 50 and sex is m" in said
    assert (
        words(make("x", [source("a", ["u"] * 9, "VARCHAR")], most=1, minimum=9, support=9).cells, 0)
        == "every record"
    )
