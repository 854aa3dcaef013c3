"""The uncertainty set around noisy counts holds the truth as often as it says, whoever works out how wide it is."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.audit.extras.noise import width
from funnel.audit.extras.uncertainty import _quantile, despite_noise
from funnel.draw.histogram import discrete_laplace
from funnel.format.counts import Private
from funnel.measure.uncertainty import kept, noise_width, radius, widened, widest

TRIALS = 200
TRUTHS = {
    "all cells large": [0.3, 0.25, 0.2, 0.15, 0.1],
    "some of a handful": [0.5, 0.3, 0.15, 0.04, 0.009, 0.0009, 0.0001],
    "one that cannot be": [0.6, 0.39, 0.01, 0.0],
}


def noise(rate: Fraction, cells: int, seed: object) -> np.ndarray:
    dice = random.Random(str(seed)).randrange
    return np.array([discrete_laplace(rate, dice) for _ in range(cells)])


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("rows", [2_000, 40_000])
def test_the_truth_is_inside_as_often_as_the_confidence_says(truth, rows):
    chances, rate, confidence = np.array(TRUTHS[truth]), Fraction(1, 2), 0.9
    drawn = np.random.default_rng(rows).multinomial(rows, chances, size=TRIALS)
    wide, inside = noise_width(rate, len(chances), confidence), 0
    for trial, counts in enumerate(drawn):
        noisy = counts + noise(rate, len(chances), (truth, rows, trial))
        stay = kept(noisy, wide)
        share, there = stay / stay.sum(), stay > 0
        with np.errstate(divide="ignore"):
            divergence = math.log(float((share[there] ** 2 / chances[there]).sum()))
        inside += divergence <= widened(noisy, wide, rows, confidence)
    assert inside >= confidence * TRIALS


@given(st.floats(1e-15, 0.99), st.integers(2, 100), st.integers(10, 10**6))
def test_writer_and_auditor_find_the_same_radius_of_a_confidence_near_zero_too(confidence, cells, rows):
    found = math.log1p(_quantile(cells - 1, 1 - confidence, confidence) / rows)
    assert found == pytest.approx(radius(confidence, 2.0, rows, cells), rel=1e-9, abs=2e-12)


@given(st.floats(0.01, 5), st.integers(1, 1_000), st.floats(1e-6, 0.5))
def test_no_noise_is_wider_but_with_the_chance_stated(rate, cells, chance):
    exact, p = Fraction(rate), math.exp(-rate)
    found = widest(exact, cells, chance)
    assert cells * 2 * p ** (found + 1) / (1 + p) <= chance


@given(
    st.lists(st.integers(0, 5_000), min_size=2, max_size=20), st.floats(0.5, 0.99),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(4)]), st.integers(0, 1_000),
)  # fmt: skip
def test_writer_and_auditor_find_the_same_radius_and_noise_only_widens(counts, confidence, epsilon, seed):
    counted, rate = np.array(counts), epsilon / 2
    if not counted.sum():
        return
    added = noise(rate, len(counts), seed)
    wide = noise_width(rate, len(counts), confidence)
    found = widened(counted + added, wide, int(counted.sum()), confidence)
    parts = [np.arange(len(counts)), counted, np.maximum(added, 0), np.maximum(-added, 0)]
    told = Private("one", str(epsilon), tuple(map(tuple, np.column_stack(parts).tolist())), ())
    assert width(told, confidence) == wide
    assert despite_noise(told, confidence) == pytest.approx(found, rel=1e-6, abs=1e-11)
    assert found >= radius(confidence, 2, int(counted.sum()), len(counts))
