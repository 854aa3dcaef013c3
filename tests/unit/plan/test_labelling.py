"""Labels of blocks with rare values under a lock, batch by batch, are those that all values at once would have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from funnel.data import Alphabet
from funnel.plan import labelling
from funnel.plan.labelling import Labelling, Merging
from funnel.plan.stages import Rare

BLOCK = Alphabet(("x", "n"), (("b", "10"), ("a", "10"), ("other", "3"), (None, "3"), ("a", "3")))
OTHER = Merging(Rare("x", "other", "VARCHAR", "", "rare_x0_0", "lock_x0_0"), ("a", "b", None))
NEAREST = Merging(Rare("n", "bin", "BIGINT", "", "rare_x0_1", "lock_x0_1"), ("10", "3"))


def codes(block: Labelling, x: list[str | None], n: list[str | None]) -> list[int | None]:
    return block.codes([pa.array(x, pa.string()), pa.array(n, pa.string())]).to_pylist()


def test_codes_are_places_in_the_alphabet_of_what_values_become() -> None:
    block = Labelling(BLOCK, {0: OTHER, 1: NEAREST})
    assert codes(block, ["b", "a", "zebra", None, "a"], ["11", "7", "3", "-5", "6"]) == [0, 1, 2, 3, 4]
    assert codes(block, ["b", "zebra", "yak", "a"], ["3", "10", "4", None]) == [None, None, 2, None]


def test_what_became_of_values_is_told_with_their_records() -> None:
    block = Labelling(BLOCK, {0: OTHER})
    codes(block, ["zebra", "a", "zebra"], ["3", "3", "10"])
    codes(block, ["yak", "zebra", None], ["3", "3", "3"])
    x, n = block.columns
    assert x.become == {"zebra": "other", "a": "a", "yak": "other", None: None}
    merged = x.merged("x")
    assert (merged.column, merged.values, merged.records) == ("x", 2, 4)
    assert n.merged("n").records == 0


def test_too_many_values_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelling, "MOST_VALUES", 2)
    block = Labelling(BLOCK, {0: OTHER})
    assert codes(block, ["a", "b"], ["3", "10"]) == [4, 0]
    assert codes(block, ["zebra"], ["3"]) == [None]
