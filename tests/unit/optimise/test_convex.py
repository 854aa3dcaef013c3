"""Convex cones closed in on: against cones whose sides are all known, and one of which nothing else is known."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.optimise.budget import Budget
from funnel.optimise.cone import Cone
from funnel.optimise.convex.cone import ConvexSlice
from funnel.optimise.convex.search import close_in, peak
from funnel.optimise.solve import maximise


class Sides:
    """An oracle that knows all sides of a polyhedral cone."""

    def __init__(self, cone: Cone) -> None:
        self.sides = cone.normalised()

    def worst(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows @ self.sides.T, np.repeat(self.sides[None], len(rows), axis=0)


class Round:
    """Rows whose deviation from their mean is at most half of it: |v - m| <= m/2, m = mean."""

    def worst(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        aside = rows - rows.mean(axis=1, keepdims=True)
        length = np.linalg.norm(aside, axis=1, keepdims=True)
        size = rows.shape[1]
        # |aside| >= u·v for any unit vector u across the all-ones vector.
        unit = np.divide(aside, length, out=np.zeros_like(aside), where=length > 0)
        sides = 2 * unit - 1 / size
        return (sides * rows).sum(axis=1, keepdims=True), sides[:, None, :]


def cone_of(size: int, seed: int) -> tuple[Cone, np.ndarray]:
    generator = np.random.default_rng(seed)
    given = generator.dirichlet(np.ones(size), size=3)
    pairs = given[:, None, :] - np.exp(0.7) * given[None, :, :]
    return Cone(pairs[~np.eye(3, dtype=bool)]), generator.dirichlet(np.full(size, 3.0))


@pytest.mark.parametrize("seed", range(4))
def test_a_cone_whose_sides_are_known_has_the_same_optimum(seed):
    cone, prior = cone_of(4, seed)
    known = maximise(cone, prior, budget=20)
    found = close_in(Sides(cone), prior, budget=60, tolerance=1e-5, ceiling=np.inf)
    assert found.value == pytest.approx(known.value, abs=1.1e-5)
    assert known.value - 1e-9 <= found.certificate.bound <= found.value + 1e-5
    assert cone.violation(found.protocol).max() <= 1e-9
    assert found.protocol.sum(axis=0) == pytest.approx(1)


def test_a_round_cone_is_closed_in_on():
    prior = np.array([0.2, 0.3, 0.5])
    found = close_in(Round(), prior, budget=60, tolerance=1e-5, ceiling=np.inf)
    excess, _ = Round().worst(found.protocol / (found.protocol @ prior)[:, None])
    assert excess.max() <= 1e-9
    assert found.value <= found.certificate.bound <= found.value + 1e-5
    # By hand: all rows on the border in steps of a degree, in the linear program over them.
    angle = np.radians(np.arange(360))
    plane = np.linalg.svd(np.ones((1, 3)))[2][1:]
    border = 1 + 1.5 / 3 * (np.cos(angle)[:, None] * plane[0] + np.sin(angle)[:, None] * plane[1])
    duals = found.certificate.duals
    border /= (border @ prior)[:, None]
    worth = (border * prior * np.log(border)).sum(axis=1)
    assert (worth <= border @ duals + found.certificate.peak + 1e-9).all()


def test_points_are_moved_onto_the_border_and_no_farther():
    prior = np.array([0.2, 0.3, 0.5])
    room = ConvexSlice(Round(), prior)
    points = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    moved = room.land(points, cut=False)[0]
    excess, _ = Round().worst(moved / prior)
    before, _ = Round().worst(points / prior)
    assert excess.max() <= 1e-9
    out = before[:, 0] > 1e-9
    assert out.any()
    assert excess[out] == pytest.approx(0, abs=1e-9)
    assert moved[~out] == pytest.approx(points[~out])


def test_without_time_nothing_is_released_and_the_entropy_bounds_it():
    prior = np.array([0.2, 0.3, 0.5])
    found = close_in(Round(), prior, budget=-1, tolerance=1e-6, ceiling=np.inf)
    assert found.protocol.sum(axis=0) == pytest.approx(1)
    assert found.certificate.bound == pytest.approx(float(-(prior @ np.log(prior))))


def test_the_gap_may_be_asked_for_as_a_share_of_the_value():
    prior = np.array([0.2, 0.3, 0.5])
    found = close_in(Round(), prior, budget=60, tolerance=0.0, share=1e-3, ceiling=np.inf)
    assert found.value <= found.certificate.bound <= found.value * (1 + 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_no_row_of_the_cone_exceeds_the_peak_whatever_the_prices(seed):
    generator = np.random.default_rng(seed)
    prior = generator.dirichlet(np.full(3, 5.0))
    eta = generator.normal(scale=0.3, size=3)
    room = ConvexSlice(Round(), prior)
    rows, _ = room.land(generator.dirichlet(np.ones(3), size=2000), cut=False)
    worth = worth_of(rows, prior, eta)
    few = peak(room, eta, tolerance=float(worth.max()) - 0.05, budget=Budget(60), enough=1)
    assert few.bound >= worth.max()
    assert (worth_of(few.points, prior, eta) > float(worth.max()) - 0.05).all()
    all_of_it = peak(room, eta, tolerance=float(worth.max()) + 1e-3, budget=Budget(60), enough=10**9)
    assert worth.max() <= all_of_it.bound <= worth.max() + 1e-3 + 1e-12
    assert all_of_it.proof is not None and all_of_it.proof.boxes > 1


def worth_of(rows: np.ndarray, prior: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """D(w || prior) - eta·w, as its definition has it."""
    return (rows * np.log(np.maximum(rows, 1e-300) / prior)).sum(axis=1) - rows @ eta


@pytest.mark.long
def test_with_nodes_alone_the_search_ends_at_the_same_place():
    prior = np.array([0.2, 0.3, 0.5])
    found = [
        close_in(Round(), prior, budget=Budget(nodes=200), tolerance=1e-7, ceiling=np.inf) for _ in range(2)
    ]
    assert (found[0].protocol == found[1].protocol).all()
    assert found[0].value <= found[0].certificate.bound == found[1].certificate.bound
