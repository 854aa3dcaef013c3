"""The auditor's own view of sets: ratios by iteration, means set by set, lists read strictly."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit import unary
from funnel.audit.coins import bit_totals, strongest_tie
from funnel.audit.unary import UnaryBlock, lip_ratio
from tests.support.strategies import tables

VALUES = (("a",), ("b, c",), ('"',), (None,), ("",), ("[]",))


def block(values: tuple = VALUES, bits: int = 8, present: int = 128, absent: int = 30, form: str = "set"):
    return UnaryBlock(("x",), values, bits, present, absent, form)


@st.composite
def blocks(draw: st.DrawFn, a: int) -> UnaryBlock:
    bits = draw(st.integers(2, 10))
    present = draw(st.integers(2, (1 << bits) - 1))
    return block(tuple((f"v{x}",) for x in range(a)), bits, present, draw(st.integers(1, present - 1)))


def listed(one: UnaryBlock) -> list[list[Fraction]]:
    """Chances of every set for every value, [x][y]."""
    whole, a = 1 << one.bits, len(one.inputs)
    chances = []
    for x in range(a):
        row = []
        for held in product((0, 1), repeat=a):
            chance = Fraction(1)
            for bit, on in enumerate(held):
                share = Fraction(one.present if bit == x else one.absent, whole)
                chance *= share if on else 1 - share
            row.append(chance)
        chances.append(row)
    return chances


def mixed(counts: list[int], chances: list[list[Fraction]]) -> list[Fraction]:
    """Chances of every set for a record drawn from these counts of values."""
    return [
        sum(n * p for n, p in zip(counts, of_y, strict=True)) / sum(counts)
        for of_y in zip(*chances, strict=True)
    ]


@given(table=tables(most=5, secrets=3), data=st.data())
@settings(max_examples=30)
def test_worst_ratios_are_those_of_the_list(table, data):
    one = data.draw(blocks(table.shape[1]))
    chances = listed(one)
    given_s = [mixed(counts, chances) for counts in table.tolist()]
    every = mixed(table.sum(axis=0).tolist(), chances)
    lip = max(max(p / q, q / p) for row in given_s for p, q in zip(row, every, strict=True))
    ldp = max(p / q for row in given_s for other in given_s for p, q in zip(row, other, strict=True))
    assert lip_ratio(table, one) == lip
    assert unary.ldp_ratio(table, one) == ldp
    assert unary.value_ratio(one) == max(
        p / q for row in chances for other in chances for p, q in zip(row, other, strict=True)
    )


@given(table=tables(most=5), data=st.data())
@settings(max_examples=20)
def test_the_grid_agrees_with_the_list(table, data):
    one = data.draw(blocks(table.shape[1]))
    exact = unary.secret_information(table, one)
    prior = table.sum(axis=0) / table.sum()
    kept = unary.public_information(prior, one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unary, "_LISTED", 0)
        rough = unary.secret_information(table, one)
        around = unary.public_information(prior, one)
    assert rough[0] - 1e-9 <= exact[0] <= exact[1] <= rough[1] + 1e-9
    assert around[0] - 1e-9 <= kept[0] <= around[1] + 1e-9
    assert rough[1] - rough[0] < 1e-6


def test_weights_written_out_are_the_chances():
    one = block(VALUES[:4])
    weights = one.weights[:, 0, :]
    assert (weights.sum(axis=0) == 1 << (8 * 4)).all()
    assert [[Fraction(int(w), 1 << 32) for w in column] for column in weights.T] == listed(one)


@pytest.mark.parametrize("code", [0, 1, 0b100000, 0b101010, 0b111111])
def test_a_list_says_which_set_it_is(code):
    texts = [json.dumps(value, ensure_ascii=False) for (value,) in VALUES]
    held = [text for place, text in enumerate(texts) if code >> (5 - place) & 1]
    assert block().coder()([f"[{','.join(held)}]"]) == code
    bits = [str(code >> (5 - place) & 1) for place in range(6)]
    assert block(form="bits").coder()(bits) == code


@pytest.mark.parametrize(
    "text",
    [
        '["a" ]',
        '["\\u0061"]',
        '["\\"","a"]',
        '["a","a"]',
        '["d"]',
        '[["a"]]',
        "[1]",
        "{}",
        "null",
        "",
        "[",
        "[NaN]",
    ],
)
def test_what_is_no_list_of_values_as_written_is_no_set(text):
    assert block().coder()([text]) == -1


@pytest.mark.parametrize("bits", [("2", *"00000"), (None, *"00000"), ("", *"00000"), ("1 ", *"00000")])
def test_bits_are_zero_or_one(bits):
    assert block(form="bits").coder()(bits) == -1


def test_ties_between_coins_are_seen_and_honest_coins_are_not():
    random, one = np.random.default_rng(3), block(VALUES[:3])
    x = random.integers(0, 3, 20_000)
    bits = random.random((20_000, 3)) < one.chances[x]

    def chance(rows: np.ndarray) -> float:
        codes, counts = np.unique(rows @ np.array([4, 2, 1]), return_counts=True)
        drawn = np.array([[*rows[x == value].sum(axis=0), (x == value).sum()] for value in range(3)])
        totals = bit_totals(dict(zip(codes.tolist(), counts.tolist(), strict=True)), one)
        assert [totals[bit] for bit in range(4)] == [*rows.sum(axis=0), 20_000]
        return strongest_tie(codes, counts, drawn, one)[0]

    assert chance(bits) > 1e-3
    bits[:, 2] = np.where(random.random(20_000) < 0.5, bits[:, 1], bits[:, 2])
    assert chance(bits) < 1e-9
