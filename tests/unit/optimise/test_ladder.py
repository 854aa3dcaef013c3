"""The ladder: whatever way is taken, the optimum is the same; which way it is follows from sizes alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from funnel.optimise.budget import Budget
from funnel.optimise.columns.search import columns
from funnel.optimise.cone import Cone
from funnel.optimise.cost import Extent, expected_cost, lasting
from funnel.optimise.master import master
from funnel.optimise.pairs import plane_facets
from funnel.optimise.solve import maximise
from funnel.optimise.staircase import staircase_cone, staircase_count, staircase_rays
from tests.support.cones import CONES, census, entropy, perfect, prior_of
from tests.support.rays import listed_rays, planar_rays
from tests.support.strategies import tables

CLOSE = 1e-7
"""Nats by which two ways may differ: floats, and the gap that pricing leaves."""
EPSILONS = st.sampled_from([0.1, 0.5, 1.0, 2.0])


def best(rays: csr_array, prior: np.ndarray) -> float:
    """The utility of the best protocol of these rows."""
    return master(rays, prior, budget=60).value


def listed(cone: Cone, prior: np.ndarray) -> float:
    return best(listed_rays(cone, prior), prior)


def priced(cone: Cone, prior: np.ndarray) -> float:
    found = columns(cone, prior, budget=Budget(60), tolerance=CLOSE / 2, ceiling=np.inf)
    return best(csr_array(found.rays), prior)


def agree(cone: Cone, prior: np.ndarray, rays: csr_array | None = None) -> None:
    """Every way that can be taken gives the same, and `maximise` with it."""
    values = [listed(cone, prior), priced(cone, prior), maximise(cone, prior, budget=60, rays=rays).value]
    values += [best(rays, prior)] if rays is not None else []
    values += [best(planar_rays(cone, prior), prior)] if plane_facets(cone, prior) is not None else []
    assert values == pytest.approx([values[0]] * len(values), abs=CLOSE)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(tables(most=5, secrets=4), st.sampled_from(sorted(CONES)), EPSILONS)
def test_all_ways_agree_on_the_secret(table: np.ndarray, kind: str, epsilon: float) -> None:
    agree(CONES[kind](table, epsilon), prior_of(table))


@settings(deadline=None, max_examples=20)
@given(tables(most=5, secrets=2), st.sampled_from(sorted(CONES)), EPSILONS)
def test_all_ways_agree_on_a_binary_secret(table: np.ndarray, kind: str, epsilon: float) -> None:
    cone, prior = CONES[kind](table, epsilon), prior_of(table)
    assert plane_facets(cone, prior) is not None
    agree(cone, prior)


@pytest.mark.long
@settings(deadline=None, max_examples=15)
@given(tables(most=5), EPSILONS)
def test_all_ways_agree_where_theory_lists_the_rays(table: np.ndarray, epsilon: float) -> None:
    prior, ratio = prior_of(table), math.exp(epsilon)
    if len(prior) > 1:
        agree(staircase_cone(len(prior), ratio), prior, staircase_rays(prior, ratio))


@settings(deadline=None, max_examples=15)
@given(tables(most=5, secrets=2, largest=40))
def test_all_ways_agree_on_perfect_privacy(table: np.ndarray) -> None:
    agree(perfect(table), prior_of(table))


# Which way


@pytest.mark.parametrize(
    ("extent", "method"),
    [
        (Extent(1000, 4, 2), "planar"),
        (Extent(5, 31, 5, known=31), "known"),
        (Extent(16, 210, 15), "columns"),
        (Extent(42, 12, 6), "columns"),
        (Extent(12, 50, 12, auxiliary=28), "columns"),
    ],
)
def test_sizes_say_which_way(extent: Extent, method: str) -> None:
    assert expected_cost(extent).method == method


@given(st.integers(1, 5000), st.integers(1, 100_000), st.integers(3, 5000))
def test_more_values_and_constraints_are_no_less_work(a: int, m: int, rank: int) -> None:
    here = expected_cost(Extent(a, m, rank))
    for more in (Extent(a + 1, m, rank), Extent(a, m + 1, rank)):
        assert expected_cost(more).seconds >= here.seconds


@pytest.mark.parametrize(
    "extent",
    [
        Extent(16, 14, 7),
        Extent(16, 210, 15),
        Extent(5, 20, 5, known=31),
        Extent(24, 4, 2),
        Extent(9, 9, 9, 20),
    ],
)
def test_what_is_expected_can_be_told(extent: Extent) -> None:
    told, words = expected_cost(extent).as_dict(), expected_cost(extent).words()
    assert (told["dimension"], told["constraints"]) == (extent.dimension, extent.constraints)
    assert math.log10(told["seconds"]) == pytest.approx(round(math.log10(told["seconds"])))
    assert f"in dimension {extent.dimension} under {extent.constraints} constraints" in words
    assert ("auxiliary" in words) == (extent.auxiliary > 0)


def test_no_time_is_promised() -> None:
    said = [lasting(10.0**power) for power in range(-3, 5)]
    assert not any(character.isdigit() for text in said for character in text)
    assert said[0] == "well under a second"
    assert said[-1] == "longer than anyone waits"


@pytest.mark.parametrize("dimension", [2, 5, 12, 13])
def test_known_rays_are_counted_right(dimension: int) -> None:
    rays = staircase_rays(np.full(dimension, 1 / dimension), math.e)
    assert staircase_count(dimension) == (None if rays is None else rays.shape[0])


def test_entropy_bounds_what_nobody_had_time_to_look_for() -> None:
    """In no time at all there is a protocol that says something, and a bound that holds."""
    table = census("occupation", "education")
    prior = prior_of(table)
    hasty = maximise(CONES["lip"](table, 1.0), prior, budget=1e-3)
    settled = maximise(CONES["lip"](table, 1.0), prior, budget=60)
    assert 0 < hasty.value <= settled.value + 1e-9 <= hasty.bound
    assert hasty.bound <= entropy(prior) + 1e-9
    assert CONES["lip"](table, 1.0).violation(hasty.protocol).max() <= 1e-9
