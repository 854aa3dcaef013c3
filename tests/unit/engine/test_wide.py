"""Columns of a wide block: combinations with their records, whatever comes in which order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from funnel.engine import wide
from funnel.engine.wide import Columns

ASKED: tuple[tuple[str, ...], tuple[str, ...], tuple[bool, ...]] = (("a", "b"), ("VARCHAR",) * 2, (False,) * 2)
ROWS = [(None if i % 7 == 0 else f"é{i % 5}", "x" if i * i % 11 < 3 else "y") for i in range(100)]


def held(columns: Columns) -> dict[tuple[str | None, ...], int]:
    """The records of each combination."""
    found = columns.found(*ASKED)
    texts = zip(*([one.values[code] for code in one.codes] for one in found), strict=True)
    return dict(zip(texts, (found[0].records if found[0].records is not None else [1] * 99), strict=False))


def batches(rows: list[tuple[str | None, str]], size: int) -> list[list[pa.Array]]:
    return [[pa.array(one) for one in zip(*rows[start : start + size], strict=True)] for start in range(0, 100, size)]


@pytest.mark.parametrize("size", [1, 9, 100])
def test_equal_rows_become_one_on_the_way(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "_WAITING", 5)
    columns, again, counted = Columns(2), Columns(2), Counter(ROWS)
    for batch in batches(ROWS, size):
        columns.add(batch)
    for (a, b), number in reversed(counted.items()):
        again.add([pa.array([a], pa.string()), pa.array([b])], np.array([number]))
    assert held(columns) == held(again) == counted
    one, other = columns.found(*ASKED), again.found(*ASKED)
    for left, right in zip(one, other, strict=True):
        assert left.values == right.values == tuple(sorted(left.values, key=lambda text: (text is None, text or "")))
        assert left.codes.tolist() == right.codes.tolist()


def test_no_more_is_held_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "_WAITING", 0)
    monkeypatch.setattr(wide, "MOST_CODES", 6)
    columns = Columns(2)
    for batch in batches(ROWS, 1):
        columns.add(batch)
    assert columns.are_too_many
    assert 3 < len(held(columns)) <= 2 * 4
