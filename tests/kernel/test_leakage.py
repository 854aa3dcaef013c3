"""Every notion's leakage against brute force: all outputs written out, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funnel.audit.extras.averages import information, secret_and_public
from funnel.audit.kernel import notions
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.exact import exp, exp_below
from funnel.audit.kernel.notions import STEP, worst
from funnel.audit.kernel.records import Block, _parts
from funnel.format.fields import Alphabet
from funnel.format.manifest import Parameters
from funnel.format.protocol import Sets, Weights
from tests.kernel import brute
from tests.kernel.samples import alphabet, cells_of


@st.composite
def channels(draw, sets: bool | None = None):
    """Counts with zeros, one to two blocks, weights with zeros, some of which read the secret."""
    secrets, columns = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    sizes = [draw(st.integers(1, 3)) for _ in range(columns)]
    cells = secrets * math.prod(sizes)
    table = np.array(draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)))
    table = table.reshape(secrets, *sizes)
    assume(table.sum() > 0)
    hidden = alphabet("s", secrets)
    blocks = tuple(draw(protocols(alphabet(f"x{j}", size), hidden, sets)) for j, size in enumerate(sizes))
    return table, blocks


@st.composite
def protocols(draw, values: Alphabet, hidden: Alphabet, sets: bool | None):
    if sets or (sets is None and draw(st.integers(0, 3)) == 0):
        absent = draw(st.integers(1, 14))
        present = draw(st.integers(absent + 1, 15))
        return Sets("unary", values.columns, values.values, 4, present, absent, "set")
    reads = draw(st.booleans())
    a, b, whole = len(values.values), draw(st.integers(1, 3)), 16
    columns = []
    for _ in range(a * (len(hidden.values) if reads else 1)):
        cuts = sorted(draw(st.lists(st.integers(0, whole), min_size=b - 1, max_size=b - 1)))
        columns.append(np.diff([0, *cuts, whole]))
    weights = np.array(columns).T.reshape((b, len(hidden.values), a) if reads else (b, a)).tolist()
    labels = tuple((f"y{y}",) for y in range(b))
    return Weights("weights", values.columns, hidden if reads else None, values.values, labels, 4, weights)


def channel_of(table, blocks) -> Channel:
    parts = (_parts(j, one) for j, one in enumerate(blocks))
    return Channel(table.astype(np.int64), tuple(chain.from_iterable(parts)), Parameters())


PAIRS = {
    "lip": (notions.lip, brute.lip),
    "ldp": (notions.ldp, brute.ldp),
    "srlip": (notions.srlip, brute.srlip),
    "pml": (notions.pml, brute.pml),
    "lowered": (notions.lowered, brute.lowered),
}


def same(leakage: notions.Leakage, ratio: Fraction | None) -> bool:
    """Whether a leakage is the logarithm of a ratio, as far as its own questions tell."""
    if ratio is None:
        return leakage.text == notions.INFINITE and leakage.is_stated_as(None)
    expected = worst(ratio)
    exponents = [Fraction(k, 40) for k in range(200)]
    return leakage.text == expected.text and [*map(leakage.within, exponents)] == [*map(expected.within, exponents)]


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(channels())
@pytest.mark.parametrize("notion", PAIRS)
def test_the_leakage_is_what_brute_force_finds(notion, case):
    table, blocks = case
    ours, theirs = PAIRS[notion]
    assert same(ours(channel_of(table, blocks)), theirs(cells_of(table), blocks))


@settings(max_examples=30, deadline=None)
@given(channels())
def test_the_usual_ldp_is_that_of_all_inputs(case):
    table, blocks = case
    assume((table.reshape(len(table), -1).sum(axis=1) > 0).all())
    assert same(notions.ldp_x(channel_of(table, blocks)), brute.ldp_x(cells_of(table), blocks))


@settings(max_examples=30, deadline=None)
@given(channels())
def test_information_is_what_brute_force_finds(case):
    table, blocks = case
    channel, cells = channel_of(table, blocks), cells_of(table)
    secret, public = secret_and_public(channel)
    assert information(secret) == pytest.approx(brute.information(cells, blocks), abs=1e-12)
    assert information(public) == pytest.approx(brute.information(cells, blocks, public=True), abs=1e-12)
    assert float(notions.information(channel.table)) == pytest.approx(brute.information(cells, blocks), abs=1e-12)


@pytest.mark.parametrize("table", [[[12], [7]], [[1, 2], [2, 4]], [[3 << 70, 1 << 70], [3, 1]]])
def test_of_independent_values_information_is_nothing_and_may_be_stated_so(table):
    assert notions.information(np.array(table, object)) == 0
    assert 0 < notions.information(np.array([[*row, place] for place, row in enumerate(table)], object)) < 1


@settings(max_examples=30, deadline=None)
@given(channels(sets=True))
def test_sets_are_listed_and_not_listed_alike(case):
    table, blocks = case
    table, blocks = table.reshape(len(table), table.shape[1], -1).sum(axis=2), blocks[:1]
    alone = channel_of(table, blocks)
    listed = channel_of(table[..., None], (*blocks, Weights("weights", ("z",), None, (("z",),), (("z",),), 0, [[1]])))
    for notion in (notions.lip, notions.ldp, notions.srlip, notions.pml, notions.lowered, notions.ldp_x):
        assert notion(alone).text == notion(listed).text


def test_composition_of_srlip_is_measured_and_not_believed():
    """The counterexample to the composition theorem ([DS] Theorem 4): S = A xor B, one block tells A, the other B."""
    table = np.array([[[5, 0], [0, 5]], [[0, 5], [5, 0]]])
    bit = tuple(
        Weights("weights", (name,), None, (("0",), ("1",)), (("0",), ("1",)), 0, ((1, 0), (0, 1))) for name in "ab"
    )
    assert notions.lip(channel_of(table, bit)).text == notions.INFINITE
    assert notions.srlip(channel_of(table, bit)).text == notions.INFINITE


@pytest.mark.parametrize("bits", [10, 40])
def test_tables_are_exact_beyond_a_machine_word(bits):
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 1 << 20, (3, 4, 5))
    weights = [whole(generator, bits, (2, 1, 4)), whole(generator, bits, (3, 3, 5))]
    exact = np.einsum(
        "sab,ysa,zsb->syz", *(one.astype(object) for one in (counts, np.repeat(weights[0], 3, 1), weights[1]))
    )
    blocks = [Block(axis, (), (), bits, one) for axis, one in enumerate(weights)]
    assert (Channel(counts, tuple(blocks), Parameters()).table == exact).all()
    alone = Channel(counts, tuple(blocks[1:]), Parameters()).table
    assert (alone << bits == exact.sum(axis=1)).all()


def whole(generator: np.random.Generator, bits: int, shape: tuple[int, ...]) -> np.ndarray:
    """Random weights, whose columns sum to 2^bits."""
    cuts = np.sort(generator.integers(0, 1 << bits, (shape[0] - 1, *shape[1:])), axis=0)
    return np.diff(cuts, axis=0, prepend=0, append=1 << bits)


def test_powers_of_e_err_on_the_side_of_privacy():
    for exponent in (Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100)):
        low = exp_below(exponent)
        assert low < exp(exponent)
        assert exp(exponent) < low * (1 + Fraction(3, 10**50))
    assert exp_below(Fraction(0)) == 1
    assert exp_below(Fraction(10) ** 300) > 5


def test_a_figure_is_rounded_up_by_less_than_a_step():
    leakage = worst(Fraction(3, 2))  # 0.405465…
    assert [leakage.is_stated_as(Fraction(k, 10_000)) for k in (4054, 4055, 4056)] == [False, True, False]
    assert leakage.is_stated_as(Fraction("0.40547"))  # an epsilon between two steps
    assert not leakage.is_stated_as(None)
    assert worst(Fraction(1)).is_stated_as(Fraction(0))
    assert not worst(Fraction(1)).is_stated_as(STEP * 2)
