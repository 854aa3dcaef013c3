"""Certificates of robust leakage: they show what was measured, to a checker of its own, and never more than is true."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funnel.audit.kernel import notions
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.records import Block
from funnel.audit.kernel.robust import Ball, not_shown
from funnel.format.manifest import Parameters
from funnel.format.robust import NAME, RobustFile
from funnel.format.schema import read, write
from funnel.measure.robust import robust_certificate, robust_leakage
from tests.support.robust import CONVEX, ORDERS, RADII, cases
from tests.support.worst import worst_cases

FEWER = settings(max_examples=30)
"""Each example measures a protocol."""


def certified(case, order: Fraction, radius: Fraction, bound: Fraction) -> RobustFile:
    table, weights, possible = case
    return robust_certificate(table, weights, possible, radius, order, bound)


def refused(case, order: Fraction, radius: Fraction, bound: Fraction, certificate: RobustFile):
    table, weights, possible = case
    return not_shown(Ball(table, possible, order, radius), weights, bound, certificate)


@FEWER
@given(cases(), ORDERS, RADII, st.sampled_from([Fraction(1), Fraction(10**6 + 1, 10**6), Fraction(3, 2)]))
def test_a_certificate_shows_the_leakage_that_was_measured_and_any_larger_one(case, order, radius, more):
    table, weights, possible = case
    measured = robust_leakage(table, weights, possible, radius, order).ratio
    assume(measured is not None)
    written = certified(case, order, radius, measured * more)
    assert refused(case, order, radius, measured * more, written) is None
    assert read(RobustFile, NAME, write(written)) == written


@pytest.mark.long
@FEWER
@given(cases(), st.sampled_from(CONVEX), RADII, st.data())
def test_nothing_that_is_written_shows_less_than_some_distribution_leaks(case, order, radius, data):
    table, weights, possible = case
    (worst,) = worst_cases(table, weights, possible, radius, order) or [None]
    measured = robust_leakage(table, weights, possible, radius, order).ratio
    assume(measured is not None and worst is not None and worst.ratio > 1 + 1e-5)
    bound = Fraction(worst.ratio * (1 - 1e-6))
    written = certified(case, order, radius, bound)
    assert refused(case, order, radius, bound, written) is not None
    factors = st.floats(1e-6, 1e6)
    lied = replace(
        written,
        pairs=tuple(
            replace(
                one,
                above=one.above * data.draw(factors),
                below=one.below * data.draw(factors),
                spent=one.spent * data.draw(factors),
                other_spent=one.other_spent * data.draw(factors),
            )
            for one in written.pairs
        ),
    )
    assert refused(case, order, radius, bound, lied) is not None


@pytest.mark.long
@FEWER
@given(
    cases(), st.sampled_from([Fraction(1, 5), Fraction(2)]), RADII, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)
)
def test_any_numbers_may_be_written_and_are_never_believed(case, order, radius, above, below):
    """Of every pair at once, whatever they are; a place that is none is passed over."""
    table, weights, possible = case
    (worst,) = worst_cases(table, weights, possible, radius, order) or [None]
    assume(worst is not None and 2 * order >= 1 and worst.ratio > 1 + 1e-5)
    written = certified(case, order, radius, Fraction(1))
    lied = replace(
        written,
        pairs=tuple(
            replace(one, output=one.output + shift, above=above, below=below)
            for one in written.pairs
            for shift in (0, 1000)
        ),
    )
    assert refused(case, order, radius, Fraction(worst.ratio * (1 - 1e-6)), lied) is not None


@FEWER
@given(cases(), ORDERS)
def test_the_estimate_alone_is_a_sum(case, order):
    table, weights, possible = case
    measured = robust_leakage(table, weights, possible, Fraction(0), order).ratio
    assume(measured is not None)
    written = certified(case, order, Fraction(0), measured)
    assert not written.pairs
    inputs = tuple((str(x),) for x in range(table.shape[1]))
    asked = Parameters(order=float(order), radius=0.0)
    found = notions.rldp(Channel(table, (Block(0, ("x",), inputs, 0, weights),), asked, written, possible))
    assert found.text == notions.worst(measured).text


def test_a_certificate_is_short():
    """What the ends of the rows show is not written."""
    generator = np.random.default_rng(0)
    table = generator.integers(20, 400, size=(6, 8))
    weights = np.array([[3] * 8, [2, 3, 3, 3, 3, 3, 3, 3], [3, 2, 2, 2, 2, 2, 2, 2]])[:, None, :]
    case = table, weights, np.ones(table.shape, bool)
    plain = certified(case, Fraction(2), Fraction(1, 20), Fraction(8, 5))
    assert plain == RobustFile("funnel-robust/1", ())
    measured = robust_leakage(*case, Fraction(1, 20)).ratio
    assert measured is not None
    tight = certified(case, Fraction(2), Fraction(1, 20), measured * Fraction(101, 100))
    assert 0 < len(tight.pairs) <= 2 * 30
    assert refused(case, Fraction(2), Fraction(1, 20), measured * Fraction(101, 100), tight) is None


@pytest.mark.parametrize("order", [Fraction(2), Fraction(7, 10), Fraction(1), Fraction(3)])
def test_a_certificate_is_of_the_weights_counts_and_radius_that_it_is_checked_with(order):
    table, possible = np.array([[7, 10, 30], [26, 57, 20]]), np.ones((2, 3), bool)
    weights = np.array([[[50, 70, 20]], [[50, 30, 80]]])
    radius = Fraction(3, 40)
    measured = robust_leakage(table, weights, possible, radius, order).ratio
    assert measured is not None
    written = certified((table, weights, possible), order, radius, measured)
    others = [
        (table, weights + np.array([[[0, 9, 0]], [[0, -9, 0]]]), radius),
        (table[:, ::-1], weights, radius),
        (table[::-1], np.roll(weights, 1, axis=2), radius),
        (table, weights, radius * 2),
        (table // 2, weights, radius),
    ]
    leaking = [
        robust_leakage(counts, rows, possible, far, order).ratio or 10**9 for counts, rows, far in others
    ]
    assert sum(one > measured for one in leaking) >= 3
    for (counts, rows, far), leaks in zip(others, leaking, strict=True):
        if leaks > measured * Fraction(10**8 + 1, 10**8):
            assert refused((counts, rows, possible), order, far, measured, written) is not None
