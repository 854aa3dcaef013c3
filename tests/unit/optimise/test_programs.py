"""Many small linear programs at a time, against a solver that is given them one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel.optimise.linear.programs import NONE, Bases, best_in_boxes, filled

SIZE = 5


def programs(seed: int, count: int) -> tuple[np.ndarray, ...]:
    """Rows that the centre keeps, slopes, and boxes of all widths, some of which nothing is in."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(12, SIZE))
    rows -= np.maximum(rows.mean(axis=1, keepdims=True) + random.uniform(0, 0.2, (12, 1)), 0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    middle = random.dirichlet(np.ones(SIZE), size=count)
    apart = random.choice([0.02, 0.3, 1.0], size=(count, 1))
    lower = np.maximum(middle - apart * random.uniform(size=middle.shape), 0)
    upper = np.minimum(middle + apart * random.uniform(size=middle.shape), 1)
    return rows, random.normal(size=middle.shape), lower, upper


def solve(
    rows: np.ndarray, slope: np.ndarray, lower: np.ndarray, upper: np.ndarray, bases: Bases | None = None
):
    bases = Bases.none(*slope.shape) if bases is None else bases
    anything = np.full(len(slope), -np.inf)
    return best_in_boxes(rows, np.arange(len(rows)), slope, lower, upper, enough=anything, bases=bases)


def one_by_one(rows: np.ndarray, slope: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float | None:
    found = linprog(
        -slope, rows, np.zeros(len(rows)), np.ones((1, SIZE)), [1.0], list(zip(lower, upper, strict=True))
    )
    return None if found.status == 2 else -float(found.fun)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_each_program_has_the_optimum_that_a_solver_finds_and_multipliers_that_show_it(seed):
    rows, slope, lower, upper = programs(seed, 20)
    answers = solve(rows, slope, lower, upper)
    sides = rows[np.maximum(answers.bases.kind, 0)]
    spent = np.einsum("nj,nja->na", answers.weights, sides)
    shown, _, _ = filled(slope - spent, lower, upper)
    missed, _, _ = filled(-spent, lower, upper)
    for box in range(len(slope)):
        optimum = one_by_one(rows, slope[box], lower[box], upper[box])
        assert answers.empty[box] == (optimum is None)
        if optimum is None:
            assert missed[box] < 0
        else:
            assert abs(shown[box] - optimum) < 1e-7
            assert abs(slope[box] @ answers.point[box] - optimum) < 1e-7


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_halves_begun_from_the_whole_have_the_same_optimum_as_halves_begun_anew(seed):
    rows, slope, lower, upper = programs(seed, 20)
    whole = solve(rows, slope, lower, upper)
    upper = upper.copy()
    upper[:, 0] = (lower[:, 0] + upper[:, 0]) / 2
    slope[:, 0] += 0.3
    kind = np.where(whole.empty[:, None], NONE, whole.bases.kind)
    warm = solve(rows, slope, lower, upper, Bases(kind, whole.bases.which))
    cold = solve(rows, slope, lower, upper)
    assert (warm.empty == cold.empty).all()
    value = np.einsum("na,na->n", slope, warm.point - cold.point)[~cold.empty]
    assert np.abs(value).max(initial=0) < 1e-7


def test_a_program_ends_where_its_optimum_is_known_to_be_low_enough():
    rows, slope, lower, upper = programs(1, 50)
    whole = solve(rows, slope, lower, upper)
    best = np.einsum("na,na->n", slope, whole.point)
    early = best_in_boxes(
        rows, np.arange(len(rows)), slope, lower, upper, enough=best + 0.05, bases=Bases.none(*slope.shape)
    )
    sides = rows[np.maximum(early.bases.kind, 0)]
    spent = np.einsum("nj,nja->na", early.weights, sides)
    shown, _, _ = filled(slope - spent, lower, upper)
    held = ~whole.empty & ~early.empty
    assert held.any()
    assert (shown[held] >= best[held] - 1e-9).all()
    assert (shown[held] <= best[held] + 0.05 + 1e-9).all()
