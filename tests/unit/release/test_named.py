"""Rows that have names: their order, their way to the table, and that the table is a function of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from funnel.data import Alphabet, Protocol
from funnel.errors import PlanError, SourceError
from funnel.format.manifest import Key
from funnel.release.export import Target, released_file
from funnel.release.formulas import check_keys, formulas_among
from funnel.release.named import Aside, Kept, Order, export_named

ASCENDING = {
    "numbers": [pa.array([-3, 0, 2, 10])],
    "texts, by their bytes": [pa.array(["", "Z", "a", "a b", "z", "ä", "漢"])],
    "dates": [pa.array([date(1999, 12, 31), date(2000, 1, 1)])],
    "decimals": [pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("10.00")])],
    "two columns": [pa.array(["a", "a", "b", "b"]), pa.array([1, 2, 0, 1])],
    "the second decides": [pa.array([1, 1, 1]), pa.array(["x", "y", "z"])],
    "a single row": [pa.array([5])],
    "none": [pa.array([], pa.int64())],
}


def told(keys: list[pa.Array], cut: int) -> bool:
    """Whether the rows are in order, in batches of `cut` rows."""
    order = Order()
    return all(order.holds([one.slice(start, cut) for one in keys]) for start in range(0, len(keys[0]) or 1, cut))


@pytest.mark.parametrize("cut", [1, 2, 3, 100])
@pytest.mark.parametrize("case", ASCENDING)
def test_rows_are_in_order_however_they_are_cut_and_in_no_other(case: str, cut: int) -> None:
    keys = ASCENDING[case]
    assert told(keys, cut)
    rows = len(keys[0])
    for place in range(rows - 1):
        repeated = [*range(place + 1), *range(place, rows)]
        swapped = [*range(place), place + 1, place, *range(place + 2, rows)]
        assert not told([one.take(repeated) for one in keys], cut)
        assert not told([one.take(swapped) for one in keys], cut)


@pytest.mark.parametrize("cut", [1, 100])
def test_a_key_without_a_part_is_none(cut: int) -> None:
    assert not told([pa.array(["a", "b", None])], cut)
    assert not told([pa.array(["a", "b", "c"]), pa.array([1, None, 2])], cut)


PROTOCOL = Protocol(
    Alphabet(("x",), (("a",), ("b",), (None,))),
    Alphabet(("x",), (("a",), ("b",), (None,))),
    1,
    np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], np.int64)[:, None, :],
)
KEYS = (Key("id", "BIGINT"), Key("town", "VARCHAR"))


def batch(start: int, rows: int) -> pa.RecordBatch:
    ids = range(start, start + rows)
    codes = pa.array([i % 3 for i in ids], pa.uint8())
    return pa.record_batch([pa.array(ids), pa.array([f"t{i % 2}" for i in ids]), codes], names=["k0", "k1", "y0"])


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_bytes_depend_on_the_rows_alone(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An auditor reads the table back in other batches than it was drawn in."""
    monkeypatch.setattr("funnel.release.named.BATCH", 7)
    rows = 20
    table = released_file((PROTOCOL,), ("x",), ("VARCHAR",), np.array([[0], [1], [2]]), np.array([7, 7, 6]), ("id",))
    found = set()
    for cut in (1, 5, 7, 20):
        target = tmp_path / f"data{cut}.{form}"
        batches = (batch(start, min(cut, rows - start)) for start in range(0, rows, cut))
        export_named((PROTOCOL,), table, KEYS, batches, Target(target, form))
        found.add(target.read_bytes())
    assert len(found) == 1
    shown = duckdb.sql(f"FROM '{target}'")
    assert shown.columns == ["id", "town", "x"]
    assert shown.fetchall() == [(i, f"t{i % 2}", ("a", "b", None)[i % 3]) for i in range(rows)]


def test_a_key_named_like_a_released_column_is_refused() -> None:
    """To a reader that ignores case, as most do."""
    with pytest.raises(PlanError, match="two released columns would be named 'X'"):
        released_file((PROTOCOL,), ("x",), ("VARCHAR",), np.array([[0]]), np.array([1]), ("id", "X"))


def kept(folder: Path, *batches: pa.RecordBatch) -> Kept:
    found = Kept(folder)
    for told in Aside(folder, ("k0", "k1"), (PROTOCOL,))(0, iter(batches)):
        found.add(told)
    return found


def asked(start: int, rows: int) -> pa.RecordBatch:
    """Rows with what was drawn for, too."""
    return batch(start, rows).append_column("x0", pa.array(range(rows), pa.int64()))


def test_rows_come_back_from_aside_as_they_went(tmp_path: Path) -> None:
    found = kept(tmp_path, asked(0, 3), asked(3, 2), asked(5, 3))
    assert list(found.parts) == [0]
    assert pa.Table.from_batches(found.parts[0]).equals(pa.Table.from_batches([batch(0, 8)]))


def test_keys_that_are_not_those_that_were_looked_at_end_the_run(tmp_path: Path) -> None:
    kept(tmp_path, asked(0, 3), asked(3, 3)).check()
    found = kept(tmp_path, asked(0, 3), asked(2, 3))
    with pytest.raises(SourceError, match="changed between counting and drawing"):
        found.check()


def test_formulas_among_keys_are_counted_and_never_told() -> None:
    texts = pa.array(["a", "=1", " +cmd", "-5", "+4.5%", "@x", None, "b=c", "＝1"])
    assert formulas_among(texts) == 4
    assert formulas_among(pa.array([1, -2])) == 0
    check_keys(["id"], 0)
    with pytest.raises(SourceError, match="4 values of id"):
        check_keys(["id"], 4)
    with pytest.raises(SourceError, match="'=id'"):
        check_keys(["=id"], 0)
