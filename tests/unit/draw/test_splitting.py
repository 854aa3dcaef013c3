"""Fresh draws from counts follow the law of draws one by one: exactly, over all outcomes of all coins."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from funnel.data import Joint, Protocol
from funnel.data.joint import IntArray
from funnel.draw import splitting
from funnel.draw.splitting import draw_counts, fair_halves, split
from tests.support.samples import alphabet, protocol

Law = Counter[tuple[tuple[int, ...], ...]]


class Script:
    """Halves as told, the first of what is left where nothing is; and the chance of just these."""

    def __init__(self, told: Sequence[int]) -> None:
        self.told, self.numbers = list(told), list[int]()

    def __call__(self, numbers: IntArray) -> IntArray:
        start = len(self.numbers)
        self.numbers += numbers.tolist()
        self.told += [0] * (len(self.numbers) - len(self.told))
        return np.array(self.told[start : len(self.numbers)], np.int64)

    @property
    def chance(self) -> Fraction:
        return math.prod(
            (Fraction(math.comb(n, h), 2**n) for n, h in zip(self.numbers, self.told, strict=True)),
            start=Fraction(1),
        )

    def after(self) -> list[int] | None:
        """The next outcome in order; None after the last."""
        last = max(
            (i for i, (n, h) in enumerate(zip(self.numbers, self.told, strict=True)) if h < n), default=None
        )
        return None if last is None else [*self.told[:last], self.told[last] + 1]


def outcomes() -> Iterator[Script]:
    """Every outcome of every half, once; the one who asks lets it be carried out."""
    told: list[int] | None = []
    while told is not None:
        script = Script(told)
        yield script
        told = script.after()


def one_by_one(protocols: Sequence[Protocol], joint: Joint) -> Law:
    """The law of the released rows, in order, where every record draws for itself."""
    records = [
        cell for cell, n in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True) for _ in range(n)
    ]
    law: Law = Counter({(): Fraction(1)})  # type: ignore[dict-item]
    for s, *x in records:
        longer: Law = Counter()
        for rows, chance in law.items():
            for row in product(*(range(len(one.outputs)) for one in protocols)):
                weight = math.prod(
                    int(one.weights[y, s if one.reads_secret else 0, code])
                    for one, y, code in zip(protocols, row, x, strict=True)
                )
                part = Fraction(weight, 1 << sum(one.bits for one in protocols))
                if part:
                    longer[tuple(sorted((*rows, row)))] += chance * part  # type: ignore[assignment]
        law = longer
    return law


def joint_of(cells: dict[tuple[int, ...], int], sizes: Sequence[int]) -> Joint:
    blocks = tuple(alphabet(f"x{i}", size) for i, size in enumerate(sizes[1:]))
    return Joint(
        alphabet("s", sizes[0]),
        blocks,
        np.array(list(cells), np.int64),
        np.array(list(cells.values()), np.int64),
    )


READING = Protocol(
    alphabet("x0", 2),
    alphabet("x0", 2),
    2,
    np.array([[[1, 3], [4, 0]], [[3, 1], [0, 4]]], np.int64),
    alphabet("s", 2),
)
SIZES = (2, 2)
CASES = {
    "one block": ([protocol("x0", [[1, 3, 0], [2, 1, 1]])], joint_of({(0, 0): 2, (1, 1): 1}, SIZES)),
    "one answer": ([protocol("x0", [[0, 8, 0], [3, 0, 5]])], joint_of({(0, 1): 3, (1, 0): 1}, SIZES)),
    "reads the secret": ([READING], joint_of({(0, 0): 1, (0, 1): 1, (1, 0): 2, (1, 1): 1}, SIZES)),
    "two blocks": (
        [protocol("x0", [[1, 1], [0, 2]]), protocol("x1", [[3, 1], [2, 2]])],
        joint_of({(0, 0, 0): 2, (1, 1, 1): 1}, (2, 2, 2)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_law_is_that_of_drawing_one_by_one(case: str) -> None:
    protocols, joint = CASES[case]
    law: Law = Counter()
    for script in outcomes():
        codes, numbers, tables = draw_counts(protocols, joint, script)
        rows = tuple(
            sorted(
                tuple(row) for row, n in zip(codes.tolist(), numbers.tolist(), strict=True) for _ in range(n)
            )
        )
        law[rows] += script.chance  # type: ignore[assignment]
        for block, (one, table) in enumerate(zip(protocols, tables, strict=True)):
            counted = joint.table(block)
            assert (table.sum(axis=1) == (counted.ravel() if one.reads_secret else counted.sum(axis=0))).all()
    assert law == one_by_one(protocols, joint)
    assert sum(law.values()) == 1


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 5000))
def test_halves_are_no_more_than_all_however_they_are_made(numbers: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "_MOST_BITS", most)
        found = fair_halves(np.array(numbers))
        patch.setattr(os, "urandom", lambda size: b"\xff" * size)
        assert fair_halves(np.array(numbers)).tolist() == numbers
        patch.setattr(os, "urandom", lambda size: b"\x00" * size)
        assert not fair_halves(np.array(numbers)).any()
    assert ((found >= 0) & (found <= numbers)).all()


@pytest.mark.parametrize("number", [1, 3, 7])
def test_a_half_is_the_ones_of_a_byte_cut_to_its_number(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all bytes that there can be."""
    every = bytes(range(256))
    monkeypatch.setattr(os, "urandom", lambda size: every[:size])
    found = Counter(fair_halves(np.full(256, number)).tolist())
    assert found == {h: 256 * math.comb(number, h) // 2**number for h in range(number + 1)}


def test_many_records_follow_their_weights() -> None:
    law = protocol("x", [[1 << 60, 3 << 60], [5 << 59, 3 << 59]])
    place, outputs, drawn = split(law, np.array([0, 1]), np.array([4_000_000, 1_000_001]))
    assert np.bincount(place, drawn).tolist() == [4_000_000, 1_000_001]
    shares = law.weights[:, 0, :].T.astype(float) / 2**62
    expected = np.array([4_000_000, 1_000_001])[:, None] * shares
    assert chisquare(drawn, expected[place, outputs], ddof=1).pvalue > 1e-9
    assert binom.sf(drawn[0], 4_000_000, 0.25) > 1e-9
