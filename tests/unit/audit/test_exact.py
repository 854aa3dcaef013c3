"""Exact arithmetic: bounds of e^x on the safe side, contraction by block, leakage as the definitions say."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.exact import at_most_exp, exp_below, largest_step, ldp_ratio, lip_ratio, released_table
from tests.unit.audit.forge import Block, brute_force, worst_ldp, worst_lip

EXPONENTS = st.fractions(min_value=0, max_value=60, max_denominator=10**6)


def precise_exp(exponent: Fraction, digits: int = 140) -> Fraction:
    """e^exponent to about `digits` digits by Decimal, which sums its series quite differently."""
    with localcontext() as context:
        context.prec = digits
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


@given(EXPONENTS)
@settings(deadline=None)
def test_the_bound_lies_below_the_exponential_and_close_to_it(exponent: Fraction) -> None:
    bound, exact = exp_below(exponent), precise_exp(exponent)
    above = exact * (1 + Fraction(1, 10**120))
    assert bound <= above
    assert bound >= exact * (1 - Fraction(1, 10**30))
    assert bound >= exact * (1 - Fraction(1, 10**90))


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1), Fraction(1, 10**320), Fraction(700), Fraction(5000)]
)
def test_the_bound_holds_at_the_ends(exponent: Fraction) -> None:
    assert exp_below(exponent) <= precise_exp(exponent) * (1 + Fraction(1, 10**120))
    assert exp_below(exponent) >= precise_exp(exponent) * (1 - Fraction(1, 10**90))


def test_e_to_the_zero_is_one_exactly() -> None:
    assert exp_below(Fraction(0)) == 1
    assert at_most_exp(Fraction(1), Fraction(0))
    assert not at_most_exp(Fraction(10**40 + 1, 10**40), Fraction(0))


@given(EXPONENTS, st.integers(30, 80))
@settings(deadline=None)
def test_a_ratio_just_above_the_bound_is_told_from_one_just_below(exponent: Fraction, digits: int) -> None:
    gap = Fraction(1, 10**digits)
    assert at_most_exp(precise_exp(exponent) * (1 - gap), exponent)
    assert not at_most_exp(precise_exp(exponent) * (1 + gap), exponent)


@given(st.fractions(min_value=1, max_value=10**9), st.sampled_from([10, 1e3, 1e100, 1e308]))
@settings(deadline=None)
def test_an_enormous_epsilon_costs_nothing_and_holds(ratio: Fraction, epsilon: float) -> None:
    assert at_most_exp(ratio, Fraction(repr(float(epsilon)))) == (math.log(ratio) <= epsilon)


@st.composite
def channels(draw: st.DrawFn) -> tuple[np.ndarray, list[Block]]:
    """Counts over one or two blocks and protocols for them, with zeros among them, sometimes reading s."""
    c = draw(st.integers(2, 3))
    shape = [c, *draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))]
    cells = math.prod(shape)
    counts = np.array(draw(st.lists(st.integers(0, 40), min_size=cells, max_size=cells))).reshape(shape)
    counts[(0,) * len(shape)] += 1
    return counts, [draw(blocks(c, size)) for size in shape[1:]]


@st.composite
def blocks(draw: st.DrawFn, c: int, a: int) -> Block:
    """A protocol of `a` inputs to up to three outputs at 2^bits, up to the widest allowed."""
    b, bits, reads = draw(st.integers(1, 3)), draw(st.sampled_from([0, 3, 16, 40, 62])), draw(st.booleans())
    columns = [[cut(draw, b, 1 << bits) for _ in range(a)] for _ in range(c if reads else 1)]
    labels: list[list[str | None]] = [[str(i)] for i in range(max(a, b))]
    by_output = [[[columns[s][x][y] for x in range(a)] for s in range(len(columns))] for y in range(b)]
    weights = by_output if reads else [rows[0] for rows in by_output]
    return Block(["x"], labels[:a], labels[:b], bits, weights, reads_secret=reads)


def cut(draw: st.DrawFn, parts: int, total: int) -> list[int]:
    """Non-negative integers with a given sum."""
    ends = sorted(draw(st.lists(st.integers(0, total), min_size=parts - 1, max_size=parts - 1)))
    return [high - low for low, high in zip([0, *ends], [*ends, total], strict=True)]


def as_arrays(blocks: list[Block]) -> list[np.ndarray]:
    """Weights as the auditor holds them, (b, c or 1, a)."""
    return [
        np.array(block.weights, np.int64).reshape(len(block.outputs), -1, len(block.inputs))
        for block in blocks
    ]


@given(channels())
@settings(max_examples=150, deadline=None)
def test_leakage_is_that_of_the_definitions(channel: tuple[np.ndarray, list[Block]]) -> None:
    counts, blocks = channel
    table = released_table(counts, as_arrays(blocks))
    secret, _ = brute_force(counts, blocks)
    assert lip_ratio(table) == worst_lip(secret)
    assert ldp_ratio(table) == worst_ldp(secret)


@given(channels())
@settings(deadline=None)
def test_the_contraction_is_exact_and_loses_nobody(channel: tuple[np.ndarray, list[Block]]) -> None:
    counts, blocks = channel
    table = released_table(counts, as_arrays(blocks))
    scale = int(counts.sum()) << sum(block.bits for block in blocks)
    assert table.shape == (len(counts), *(len(block.outputs) for block in blocks))
    assert sum(table.ravel().tolist()) == scale
    secret, _ = brute_force(counts, blocks)
    for (s, y), chance in secret.items():
        assert int(table[(s, *y)]) == chance * scale


@given(channels())
@settings(deadline=None)
def test_lip_and_ldp_bound_each_other(channel: tuple[np.ndarray, list[Block]]) -> None:
    """[DS] Lemma 1: ε-LDP implies ε-LIP, and ε-LIP implies 2ε-LDP."""
    counts, blocks = channel
    table = released_table(counts, as_arrays(blocks))
    lip, ldp = lip_ratio(table), ldp_ratio(table)
    assert (lip is None) == (ldp is None)
    if lip is not None and ldp is not None:
        assert lip <= ldp <= lip**2


def test_weights_of_62_bits_in_many_inputs_do_not_overflow() -> None:
    bits, size = 62, 300
    counts = np.full((2, size), 10**6, np.int64)
    half = np.full((2, 1, size), 1 << (bits - 1), np.int64)
    table = released_table(counts, [half])
    assert set(table.ravel().tolist()) == {10**6 * size << (bits - 1)}
    assert lip_ratio(table) == ldp_ratio(table) == 1


def test_a_difference_of_one_part_in_two_to_the_62_is_seen() -> None:
    weights = np.array([[[1 << 61, (1 << 61) + 1]], [[1 << 61, (1 << 61) - 1]]])
    table = released_table(np.array([[5, 0], [0, 5]]), [weights])
    assert ldp_ratio(table) == Fraction((1 << 61), (1 << 61) - 1)
    assert lip_ratio(table) != 1


def test_a_secret_that_no_record_has_sets_no_constraint() -> None:
    weights = np.array([[[6, 2]], [[2, 6]]])
    with_ghost = released_table(np.array([[5, 1], [0, 0], [2, 4]]), [weights])
    without = released_table(np.array([[5, 1], [2, 4]]), [weights])
    assert lip_ratio(with_ghost) == lip_ratio(without)
    assert ldp_ratio(with_ghost) == ldp_ratio(without)


def test_the_largest_step_of_a_contraction_is_foreseen() -> None:
    assert largest_step((2, 3, 5), (4, 1)) == 2 * 4 * 5
    assert largest_step((2, 3, 5), (1, 1)) == 2 * 3 * 5
    assert largest_step((2, 3), (10,)) == 20


def test_a_thousand_values_each_way_are_measured_exactly() -> None:
    random = np.random.default_rng(0)
    counts = random.integers(0, 50, size=(10, 1000))
    weights = random.integers(0, (1 << 62) // 1000, size=(1000, 1, 1000))
    weights[0] += (1 << 62) - weights.sum(axis=0)
    table = released_table(counts, [weights])
    s, y = 3, 17
    by_hand = sum(int(n) * int(w) for n, w in zip(counts[s], weights[y, 0], strict=True))
    assert int(table[s, y]) == by_hand
    worst, chance = lip_ratio(table), Fraction(by_hand, int(counts[s].sum()) << 62)
    overall = Fraction(sum(int(table[r, y]) for r in range(10)), int(counts.sum()) << 62)
    assert worst is not None
    assert 1 / worst <= chance / overall <= worst
