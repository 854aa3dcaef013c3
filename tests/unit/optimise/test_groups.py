"""Groups searched one by one: the same optimum as rows searched whole, and bounds that no row and no part exceeds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.measure.information import kept_information
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.cone import Cone
from funnel.optimise.groups import maximise_groups, serves
from funnel.optimise.groups.levels import GroupCone, Groups, PartLimits, climb
from funnel.optimise.groups.listed import Vertices
from funnel.optimise.groups.parts import coupled
from funnel.optimise.solve import maximise
from funnel.optimise.worst_case import UncertaintySets, box_cone
from tests.support.rays import listed_rays

SETTINGS = settings(deadline=None, max_examples=10)


@st.composite
def boxes(draw: st.DrawFn, groups: int = 3, most: int = 4) -> tuple[UncertaintySets, np.ndarray]:
    """Boxes around random distributions of two groups or more, and a prior with these distributions."""
    sizes = draw(st.lists(st.integers(1, most), min_size=2, max_size=groups))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width = draw(st.floats(0.01, 1.0))
    given_s = [random.dirichlet(np.full(size, 2.0)) * 0.98 + 0.02 / size for size in sizes]
    ends = np.cumsum([0, *sizes])
    prior = np.concatenate(
        [share * row for share, row in zip(random.dirichlet(np.full(len(sizes), 5.0)), given_s, strict=True)]
    )
    return (
        UncertaintySets(
            [np.arange(low, high) for low, high in itertools.pairwise(ends)],
            [row * (1 - width * random.random(len(row))) for row in given_s],
            [np.minimum(row + width * random.random(len(row)), 1.0) for row in given_s],
            int(ends[-1]),
        ),
        prior,
    )


def of(counts: list[list[int]], width: float) -> tuple[UncertaintySets, np.ndarray]:
    """Boxes of half this width around the conditionals of a table N[s, u]."""
    table = np.array(counts, float)
    given_s, (c, a) = table / table.sum(axis=1, keepdims=True), table.shape
    members = [np.arange(s * a, (s + 1) * a) for s in range(c)]
    low, high = np.maximum(given_s - width, 0.0), np.minimum(given_s + width, 1.0)
    return UncertaintySets(members, list(low), list(high), c * a), (table / table.sum()).ravel()


def vertices(sets: UncertaintySets, group: int, low: float, high: float) -> np.ndarray:
    """All vertices of {z >= 0 : m(z) >= low, M(z) <= high}, from the corners of the set of weights, by cdd."""
    floor, roof = sets.lower[group], sets.upper[group]
    size = len(floor)
    corners = []
    for ends in itertools.product((0, 1), repeat=size):
        for free in range(size):
            corner = np.where(ends, roof, floor)
            corner[free] = 1 - np.delete(corner, free).sum()
            if floor[free] - 1e-12 <= corner[free] <= roof[free] + 1e-12:
                corners.append(corner)
    weights = np.unique(np.round(corners, 12), axis=0)
    # In (z / middle, h) the polytope is the slice h = 1 of a cone with all-ones inside; its rays are the vertices.
    middle = (low + high) / 2
    above = np.hstack([weights * middle, np.full((len(weights), 1), -high)])
    below = np.hstack([-weights * middle, np.full((len(weights), 1), low)])
    rays = listed_rays(Cone(np.vstack([above, below])), np.full(size + 1, 1 / (size + 1))).toarray()
    return middle * rays[:, :size] / rays[:, size:]


@SETTINGS
@given(boxes(groups=2), st.floats(0.05, 1.5), st.integers(0, 2**32 - 1))
def test_climbs_from_everywhere_end_at_the_best_vertex_and_none_beyond(
    problem, epsilon: float, seed: int
) -> None:
    sets, prior = problem
    groups, high = Groups.of(sets, prior), math.exp(epsilon) * 1.01
    random = np.random.default_rng(seed)
    for group, members in enumerate(sets.members):
        eta = np.zeros(groups.place.shape[1])
        eta[: len(members)] = random.normal(size=len(members)) * prior[members]
        corner = vertices(sets, group, 1.0, high)
        worth = xlogx(corner) @ prior[members] - corner @ eta[: len(members)]
        labels = np.array(list(itertools.product(range(3), repeat=len(members))))
        padded = np.zeros((len(labels), groups.place.shape[1]), np.int64)
        padded[:, : len(members)] = labels
        limits = PartLimits(np.full(len(labels), group), np.ones(len(labels)), np.full(len(labels), high))
        parts, climbed, _ = climb(groups, limits, np.broadcast_to(eta, padded.shape), padded)
        assert climbed.max() == pytest.approx(worth.max(), abs=1e-6)
        real = parts[climbed > -np.inf][:, : len(members)]
        assert xlogx(real) @ prior[members] - real @ eta[: len(members)] == pytest.approx(
            climbed[climbed > -np.inf], abs=1e-9
        )


@SETTINGS
@given(boxes(groups=2), st.floats(0.1, 1.0), st.floats(0.0, 0.5), st.integers(0, 2**32 - 1))
def test_lists_have_all_vertices_between_two_ends(problem, epsilon: float, step: float, seed: int) -> None:
    sets, prior = problem
    groups, ratio = Groups.of(sets, prior), math.exp(epsilon) * 1.001
    rho, kappas = 1 + step * (ratio - 1), np.array([0.8, 1.5])
    duals = np.random.default_rng(seed).normal(size=len(prior)) * prior
    for lows, highs in (((1.0, rho), (ratio, ratio)), ((1.0, 1.0), (ratio, ratio * rho))):
        listed = Vertices(groups, np.array(lows), np.array(highs))
        lines = listed.lines(listed.prices(groups.split(duals), kappas))
        for s, members in enumerate(sets.members):
            for share in (0.0, 0.4, 1.0):
                ends = [first + share * (last - first) for first, last in (lows, highs)]
                corner = vertices(sets, s, *ends)
                worth = xlogx(corner) @ prior[members] - corner @ duals[members]
                most = (worth[:, None] - (corner @ prior[members])[:, None] * kappas).max(axis=0)
                line = (1 - share) * lines[0, s] + share * lines[1, s]
                assert (most <= line + 1e-6).all()


@SETTINGS
@given(boxes(), st.floats(0.1, 1.5), st.integers(0, 2**32 - 1))
def test_the_cone_by_sorting_is_the_cone_of_boxes(problem, epsilon: float, seed: int) -> None:
    sets, _ = problem
    rows = np.random.default_rng(seed).exponential(size=(6, sets.dimension))
    ratio = math.exp(epsilon)
    sorted_out, lifted = GroupCone(sets, ratio), box_cone(sets, ratio)
    facets = sorted_out.facets(rows)
    assert facets.sum(axis=1) == pytest.approx(-1.0)
    excess = np.maximum((facets * rows).sum(axis=1), 0.0)
    assert excess == pytest.approx(lifted.violation(rows), abs=1e-6)
    inside = rows + excess[:, None]
    assert (inside @ facets.T <= 1e-9).all(), "what any row violates, a row inside meets"


@SETTINGS
@given(boxes(), st.integers(0, 2**32 - 1))
def test_rows_use_every_part_as_much_as_asked(problem, seed: int) -> None:
    sets, prior = problem
    groups, random = Groups.of(sets, prior), np.random.default_rng(seed)
    parts = []
    for s in range(groups.count):
        number = int(random.integers(1, 5))
        z = np.where(groups.real[s], random.exponential(size=(number, groups.place.shape[1])), 0.0)
        parts.append((z, random.dirichlet(np.ones(number)) * 0.7))
    rows = coupled(groups, parts)
    split = groups.split(rows)
    assert len(rows) <= 1 + sum(len(z) for z, _ in parts) * 2
    for s, (z, _) in enumerate(parts):
        assert {tuple(row) for row in np.round(split[:, s], 9)} <= {tuple(row) for row in np.round(z, 9)}


TABLES = [
    ([[7, 10], [26, 57]], 0.1, 1.0),
    ([[30, 10, 5], [20, 40, 9]], 0.05, 0.5),
    ([[30, 10], [20, 40], [5, 8]], 0.08, 0.5),
    ([[10, 20, 12], [30, 12, 9]], 1.0, 0.5),
]


@pytest.mark.long
@pytest.mark.parametrize(("counts", "width", "epsilon"), TABLES)
def test_groups_and_whole_rows_have_the_same_optimum(counts, width: float, epsilon: float) -> None:
    sets, prior = of(counts, width)
    ratio = math.exp(epsilon)
    whole = maximise(box_cone(sets, ratio), prior, budget=60, gap=1e-4)
    parts = maximise_groups(sets, ratio, prior, budget=60, gap=0.1)
    assert serves(sets)
    assert parts.certificate is not None
    assert parts.certificate.bound == pytest.approx(parts.bound, abs=1e-12)
    assert parts.value == pytest.approx(kept_information(prior, parts.protocol), abs=1e-9)
    assert parts.value <= whole.bound + 1e-9
    assert whole.value <= parts.bound + 1e-9
    assert np.abs(parts.protocol.sum(axis=0) - 1).max() <= 1e-9
    assert box_cone(sets, ratio).violation(parts.protocol).max() <= 1e-8
    random = np.random.default_rng(0)
    rows = random.dirichlet(np.full(sets.dimension, 0.3), size=2_000) / prior
    cone = GroupCone(sets, ratio)
    rows += np.maximum((cone.facets(rows) * rows).sum(axis=1), 0.0)[:, None]
    rows /= (rows @ prior)[:, None]
    excess = xlogx(rows) @ prior - rows @ parts.certificate.duals
    assert excess.max() <= parts.certificate.peak + 1e-9


def test_groups_that_share_values_are_not_served() -> None:
    shared = UncertaintySets([np.arange(2), np.arange(2)], [np.zeros(2)] * 2, [np.ones(2)] * 2, 2)
    assert not serves(shared)
