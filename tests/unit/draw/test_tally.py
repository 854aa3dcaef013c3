"""The tally is a plain count, however the rows are cut into batches and however large the alphabets are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.draw import tally as module
from funnel.draw.draw import Drawer
from funnel.draw.tally import Tally
from funnel.errors import SourceError
from tests.support.samples import alphabet, batch, fixed_key, joint_of, protocol, random_protocol


@pytest.mark.parametrize("dense", [1 << 22, 1], ids=["dense", "sparse"])
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2)] * 2, *[st.integers(0, 3)] * 2), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_counts_are_those_of_a_dictionary(dense: int, rows: list[tuple[int, ...]], cuts: list[int]) -> None:
    limit = module._DENSE
    module._DENSE = dense
    try:
        tally = Tally([random_protocol(1, "x", 3, 4, 8), random_protocol(2, "z", 3, 4, 8)])
    finally:
        module._DENSE = limit
    codes = np.array(rows, np.uint8).reshape(-1, 4)
    for part in np.split(codes, sorted(min(cut, len(codes)) for cut in cuts)):
        tally.count([part[:, 0], part[:, 1]], [part[:, 2], part[:, 3]])
    for block in range(2):
        expected = Counter((row[block], row[2 + block]) for row in rows)
        assert {
            cell: int(tally.tables[block][cell]) for cell in np.ndindex(3, 4) if tally.tables[block][cell]
        } == expected
    released, counts = tally.released
    found = list(zip(map(tuple, released.tolist()), counts.tolist(), strict=True))
    assert found == sorted(Counter(row[2:] for row in rows).items())


def test_one_block_releases_its_own_column_sums() -> None:
    tally = Tally([random_protocol(1, "x", 2, 5, 8)])
    tally.count([np.array([0, 1, 1])], [np.array([4, 0, 4])])
    codes, counts = tally.released
    assert codes.tolist() == [[0], [4]]
    assert counts.tolist() == [1, 2]


def test_batches_are_counted_as_the_kernel_reads_them() -> None:
    """The input code of a protocol that reads the secret is s·a + x."""
    law = protocol("x", [[64, 64]] * 6, alphabet("s", 3))
    rng = np.random.default_rng(0)
    rows = batch(np.arange(300), s=rng.integers(0, 3, 300), x0=rng.integers(0, 2, 300))
    drawer, tally = Drawer([law], fixed_key(), permanent=True), Tally([law])
    out = drawer.draw(rows)
    tally.add(rows, out)
    expected = np.zeros((6, 2), np.int64)
    np.add.at(expected, (rows["s"].to_numpy() * 2 + rows["x0"].to_numpy(), out["y0"].to_numpy()), 1)
    assert (tally.tables[0] == expected).all()
    assert tally.tables[0].sum() == 300


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (lambda x: np.where(np.arange(len(x)) < 7, (x + 1) % 4, x), "7 rows"),
        (lambda x: x[:-3], "3 rows"),
        (lambda x: np.append(x, [1, 1]), "2 rows"),
    ],
)
def test_a_source_that_changed_between_counting_and_drawing(
    change: Callable[[np.ndarray], np.ndarray], moved: str
) -> None:
    rng = np.random.default_rng(1)
    x, law = np.sort(rng.integers(0, 4, 1000)), random_protocol(0, "x", 4, 4, 16)
    joint = joint_of(rng.integers(0, 3, 1000), x)
    unchanged, changed = Tally([law]), Tally([law])
    unchanged.count([x], [np.zeros(1000, np.int64)])
    unchanged.check(joint)
    changed.count([change(x)], [np.zeros(len(change(x)), np.int64)])
    with pytest.raises(SourceError, match=moved) as caught:
        changed.check(joint)
    assert caught.value.code == "source-changed"
