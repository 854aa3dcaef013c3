"""Tests of fit: the incomplete gamma function against SciPy's, and how often honest draws are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtrc

from funnel.audit.kernel.chance import Fit, beyond
from funnel.audit.kernel.verdict import Broken


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 30, 100, 1234, 50_000, 1_000_000])
def test_the_tail_of_chi_square_is_scipys(degrees):
    for value in (
        0.0,
        1e-3,
        degrees * 0.5,
        degrees * 0.99,
        degrees,
        degrees + 1.9,
        degrees * 1.2,
        degrees * 3 + 60,
    ):
        assert beyond(degrees, value) == pytest.approx(chdtrc(degrees, value), rel=1e-7, abs=1e-300)


def test_honest_draws_fit_and_skewed_ones_do_not():
    generator, chances = np.random.default_rng(0), np.array([0.5, 0.3, 0.15, 0.05])
    for _ in range(200):
        test = Fit()
        for _ in range(20):
            test.add(chances * 500, generator.multinomial(500, chances))
        assert test.refuse("draws", even=True) > 1e-6
    skewed, even = Fit(), Fit()
    for _ in range(20):
        skewed.add(chances * 500, generator.multinomial(500, [0.45, 0.35, 0.15, 0.05]))
        even.add(chances * 500, (chances * 500).astype(int))
    for test, what in ((skewed, "does not follow"), (even, "too even")):
        with pytest.raises(Broken, match=what):
            test.refuse("draws", even=True)
