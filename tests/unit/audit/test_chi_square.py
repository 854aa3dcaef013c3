"""Chances of χ², beside SciPy's, and beside an enclosure by ball arithmetic where SciPy errs."""

from __future__ import annotations

import math

import pytest
from scipy.special import chdtr, chdtrc

from funnel.audit.extras.chi_square import tails


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 31, 999])
def test_both_tails_are_those_of_the_incomplete_gamma_function(degrees):
    for deviations in (-5.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 7.0, 25.0):
        statistic = degrees + deviations * math.sqrt(2 * degrees)
        if statistic <= 0:
            statistic = degrees * math.exp(deviations)
        below, above = tails(degrees, statistic)
        assert below == pytest.approx(chdtr(degrees, statistic), rel=1e-11)
        assert above == pytest.approx(chdtrc(degrees, statistic), rel=1e-11, abs=1e-15)
        assert below + above == 1


def test_millions_of_degrees_of_freedom_are_no_trouble():
    """golden: 1.896563813861465e-7 ± 5e-23, by ball arithmetic in 80 bits (arb); SciPy's is 6 % less."""
    assert tails(30_000_000, 29_960_674.322946202)[0] == pytest.approx(1.896563813861465e-7, rel=1e-7)


@pytest.mark.parametrize(("statistic", "told"), [(0, (0, 1)), (-1, (0, 1)), (math.inf, (1, 0)), (math.nan, (1, 0))])
def test_a_statistic_that_is_no_number_speaks_against_the_fit(statistic, told):
    assert tails(7, statistic) == told
