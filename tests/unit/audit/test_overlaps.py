"""What draws tell together: laws of answers, against every uniform number tried."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.audit.extras.overlaps import OTHER, Drawer, Law, TooLarge, group_law, group_spread, law_of, log
from funnel.format.fields import Alphabet
from funnel.format.protocol import Sets, Weights

BITS = 3


@st.composite
def protocols(draw: st.DrawFn, inputs: int = 2, secrets: int = 0) -> Weights:
    """Any weights for some inputs, with two or three outputs."""
    outputs = draw(st.integers(2, 3))
    cut = st.lists(st.integers(0, 1 << BITS), min_size=outputs - 1, max_size=outputs - 1).map(sorted)

    def column() -> list[int]:
        ends = [0, *draw(cut), 1 << BITS]
        return [high - low for low, high in pairwise(ends)]

    names = [tuple((f"{kind}{i}",) for i in range(size)) for kind, size in (("x", inputs), ("y", outputs))]
    if not secrets:
        weights = tuple(zip(*(column() for _ in range(inputs)), strict=True))
        return Weights("weights", ("x",), None, *names, BITS, weights)
    table = [[column() for _ in range(inputs)] for _ in range(secrets)]
    told = tuple(tuple(tuple(one[y] for one in row) for row in table) for y in range(outputs))
    hidden = Alphabet(("s",), tuple((f"s{i}",) for i in range(secrets)))
    return Weights("weights", ("x",), hidden, *names, BITS, told)


def column_of(block: Weights, s: int, x: int) -> list[int]:
    return [row[s][x] if block.secret else row[x] for row in block.weights]


def answer(weights: Sequence[int], number: int) -> int:
    """The first output whose weights, added up from the first on, exceed the number."""
    total = 0
    for y, weight in enumerate(weights):
        total += weight
        if number < total:
            return y
    raise AssertionError("weights do not sum to 2^bits")


def as_told(law: Law) -> dict[tuple[Fraction, ...], Fraction]:
    """How much there is of every direction, which sums to one."""
    found: dict[tuple[Fraction, ...], Fraction] = {}
    for row, times in law.rows.items():
        most = max(row)
        found[tuple(Fraction(part, most) for part in row)] = Fraction(most * times, 1 << law.bits)
    return found


def tried(rows: list[Counter[Any]], whole: int) -> dict[tuple[Fraction, ...], Fraction]:
    """The same from counts of answers, one counter for each input."""
    found: dict[tuple[Fraction, ...], Fraction] = {}
    for told in set().union(*rows):
        row = [one[told] for one in rows]
        key = tuple(Fraction(part, max(row)) for part in row)
        found[key] = found.get(key, Fraction(0)) + Fraction(max(row), whole)
    return found


@given(st.lists(protocols(), min_size=1, max_size=3))
def test_protocols_that_share_their_number_answer_as_all_numbers_do(blocks: list[Weights]) -> None:
    rows = [
        Counter(tuple(answer(column_of(one, 0, x), u) for one in blocks) for u in range(1 << BITS)) for x in range(2)
    ]
    law = law_of([Drawer.of(one) for one in blocks], [(None, ("x0",)), (None, ("x1",))])
    assert as_told(law) == tried(rows, 1 << BITS)


@given(protocols(), protocols(), protocols(secrets=2))
def test_independent_groups_and_blocks_that_read_the_secret_stand_side_by_side(
    one: Weights, two: Weights, reads: Weights
) -> None:
    inputs, secret = (("x0",), ("x1",)), (("s0",), ("s1",))
    groups = [group_law([part], secret, inputs) for part in (one, two, reads)]
    law = groups[0].beside(groups[1]).beside(groups[2])
    rows = [
        Counter({
            (a, b, c): column_of(one, 0, x)[a] * column_of(two, 0, x)[b] * column_of(reads, s, x)[c]
            for a, b, c in product(range(3), repeat=3)
            if a < len(one.outputs) and b < len(two.outputs) and c < len(reads.outputs)
        })
        for s in range(2) for x in range(2)
    ]  # fmt: skip
    assert as_told(law) == tried([+row for row in rows], 1 << 3 * BITS)


@given(protocols(inputs=2), protocols(inputs=1))
def test_a_value_that_had_no_name_has_another_number_for_that(new: Weights, old: Weights) -> None:
    pooled = Weights("weights", ("x",), None, (OTHER,), old.outputs, BITS, old.weights)
    law = law_of([Drawer.of(pooled, pools=True), Drawer.of(new)], [(None, ("x0",)), (None, ("x1",))])
    rows = [
        Counter(
            (answer(column_of(old, 0, 0), u), answer(column_of(new, 0, x), v))
            for u, v in product(range(1 << BITS), repeat=2)
        )
        for x in range(2)
    ]
    assert as_told(law) == tried(rows, 1 << 2 * BITS)


@given(st.integers(2, 6), st.integers(1, 5), st.integers(1, 3))
def test_sets_are_coins_side_by_side(present: int, absent: int, values: int) -> None:
    labels = tuple((f"x{i}",) for i in range(values))
    sets = Sets("unary", ("x",), labels, BITS, present, absent, "set")
    law = group_law([sets], (("s0",),), labels)
    rows = [
        Counter({
            held: math.prod(
                ((present if other == own else absent) if bit else (1 << BITS) - (present if other == own else absent))
                for other, bit in enumerate(held)
            )
            for held in product((0, 1), repeat=values)
        })
        for own in range(values)
    ]  # fmt: skip
    assert as_told(law) == tried(rows, 1 << values * BITS)
    widest = max(log(Fraction(a, b)) for told in set().union(*rows) for one in rows for two in rows
                 for a, b in [(one[told], two[told])])  # fmt: skip
    assert group_spread([sets]) == pytest.approx(widest)


@pytest.mark.long
def test_what_is_too_large_is_left_alone() -> None:
    many = tuple((f"x{i}",) for i in range(60))
    sets = [Sets("unary", ("x",), many, BITS, 4, absent, "set") for absent in (1, 2)]
    with pytest.raises(TooLarge):
        group_law(sets, (("s0",),), many)


def test_a_year_of_protocols_under_one_key_is_composed() -> None:
    """Each answers 1 below an end of its own, so what all of them tell is between which two ends the number is."""
    inputs, nights, ends = [(None, (f"x{i}",)) for i in range(8)], 365, range(1, 366)
    whole = 1 << 12
    law = law_of([Drawer({asked: (8 * end + i, *(0,) * 6, whole - 8 * end - i) for i, asked in enumerate(inputs)}, 12)
                  for end in ends], inputs)  # fmt: skip
    told = {tuple(range(8, 16)): 1, (8,) * 8: nights - 1, tuple(whole - 8 * nights - i for i in range(8)): 1}
    assert (law.bits, law.rows) == (12, Law.of([*told.items()], 12).rows)
