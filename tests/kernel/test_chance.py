"""The bound on straying: true of every number of draws, alike or not, by writing all of them out."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.extras.fit import refuse
from funnel.audit.kernel.drawing import bound, strays
from funnel.audit.kernel.verdict import Broken

CHANCES = st.lists(st.integers(1, 30), min_size=3, max_size=3).map(lambda parts: np.array(parts) / sum(parts))


def strayed(expected: np.ndarray, observed: np.ndarray) -> float:
    some = observed > 0
    return float((observed[some] * np.log(observed[some] / expected[some])).sum())


def law(draws: list[np.ndarray]) -> dict[float, float]:
    """How far each outcome of some draws strays, and its chance."""
    found: Counter[float] = Counter()
    expected = np.sum(draws, axis=0)
    for codes in product(range(3), repeat=len(draws)):
        chance = math.prod(float(one[code]) for one, code in zip(draws, codes, strict=True))
        found[strayed(expected, np.bincount(codes, minlength=3))] += chance
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(CHANCES, min_size=1, max_size=7), st.booleans())
def test_no_draws_stray_as_far_more_often_than_the_bound_says(draws, alike):
    found = law([draws[0]] * len(draws) if alike else draws)
    for rate in (0.1, 0.5, 0.9, 0.99):
        assert sum(chance * math.exp(rate * far) for far, chance in found.items()) <= (1 - rate) ** -2 + 1e-9
    for far in found:
        assert sum(chance for other, chance in found.items() if other >= far) <= bound(far, 2) + 1e-12


def test_honest_draws_fit_skewed_ones_do_not_and_even_ones_are_for_the_sharper_test():
    generator, chances = np.random.default_rng(0), np.array([0.5, 0.3, 0.15, 0.05])
    means = np.tile(chances * 500, (20, 1))
    for _ in range(200):
        honest = generator.multinomial(500, chances, size=20)
        assert strays(means, honest)[0] > 1e-6
        assert refuse("f", "draws", means, honest, even=True) > 1e-6
    skewed = generator.multinomial(500, [0.43, 0.37, 0.15, 0.05], size=20)
    assert strays(means, skewed)[0] < 1e-9
    with pytest.raises(Broken, match="does not follow"):
        refuse("f", "draws", means, skewed, even=True)
    with pytest.raises(Broken, match="too even"):
        refuse("f", "draws", means, means.astype(int), even=True)


def test_what_cannot_be_has_no_chance_however_rare():
    assert strays(np.array([[500.0, 0.0]]), np.array([[499, 1]]))[0] == 0
