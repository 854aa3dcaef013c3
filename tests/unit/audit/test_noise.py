"""The auditor's eye for noise: honest noise passes, noise of another size or shape does not."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from funnel.audit.draws import FALSE_ALARM
from funnel.audit.evidence import Noisy
from funnel.audit.noise import _beyond, _fit
from funnel.draw.laplace import discrete_laplace
from funnel.errors import AuditFailure

CELLS = 112


def noisy(rate: Fraction, cells: int, seed: int) -> Noisy:
    dice = random.Random(seed).randrange
    noise = np.array([discrete_laplace(rate, dice) for _ in range(cells)])
    return Noisy(2 * rate, np.arange(cells)[:, None], np.zeros(cells, np.int64), noise)


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 4), Fraction(2), Fraction(30)])
@pytest.mark.parametrize("cells", [4, CELLS, 2_000])
def test_honest_noise_is_accepted(rate, cells):
    for seed in range(5):
        assert _fit(noisy(rate, cells, seed), rate) >= FALSE_ALARM


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(2)])
def test_noise_for_another_sensitivity_is_refused(factor):
    with pytest.raises(AuditFailure, match="not as large as stated"):
        _fit(noisy(Fraction(1, 4) * factor, CELLS, 1), Fraction(1, 4))


def test_noise_of_the_right_size_and_the_wrong_shape_is_refused():
    """All upwards, as large as it should be together."""
    told = noisy(Fraction(1, 4), 400, 1)
    upwards = Noisy(told.epsilon, told.cells, told.counted, abs(told.noise))
    with pytest.raises(AuditFailure, match="the noise"):
        _fit(upwards, Fraction(1, 4))


@pytest.mark.parametrize(("p", "cells"), [(0.3, 3), (0.8, 5), (0.95, 2)])
def test_the_chance_of_a_total_is_never_stated_too_small(p, cells):
    """Against the exact law of the total, by convolution."""
    sizes = np.arange(1_500)
    law = (1 - p) / (1 + p) * p**sizes * np.where(sizes > 0, 2, 1)
    total = law
    for _ in range(cells - 1):
        total = np.convolve(total, law)[: len(sizes)]
    mean = 2 * p * cells / (1 - p * p)
    for size in range(0, 200, 3):
        tail = total[size:].sum() if size > mean else total[: size + 1].sum()
        assert _beyond(p, cells, size) >= tail * (1 - 1e-3) - 1e-12
