"""Extreme rays: in the cone, extreme, all of them, by either way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from funnel.errors import SolverError
from funnel.optimise.cone import Cone
from funnel.optimise.listing import double_description, enumeration
from funnel.optimise.listing.enumeration import enumerated_rays, is_quick
from funnel.optimise.listing.planar import plane_facets
from tests.support.strategies import tables
from tests.unit.optimise.cones import census, ldp, lip, perfect, prior_of, problems
from tests.unit.optimise.planar import planar_rays

Answer = TypeVar("Answer")


def canonical(rays: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Masses w = p·v in a fixed order, so that two lists of rays can be compared."""
    mass = np.round(rays * prior, 7) + 0.0
    return np.unique(mass, axis=0)


def is_extreme(ray: np.ndarray, cone: Cone, prior: np.ndarray) -> bool:
    """The constraints that hold with equality leave one direction."""
    constraints, mass = cone.constraints(prior), ray * prior
    tight = constraints if cone.equalities else constraints[np.abs(constraints @ mass) < 1e-8]
    active = np.vstack([np.eye(len(ray))[mass < 1e-11], tight])
    return np.linalg.matrix_rank(active, tol=1e-7) == len(ray) - 1


@given(problems())
def test_every_enumerated_ray_is_inside_extreme_and_normalised(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    prior = prior_of(table)
    rays = enumerated_rays(cone, prior, budget=60).toarray()
    assert np.allclose(rays @ prior, 1)
    assert cone.violation(rays).max() <= 1e-7 * rays.max()
    assert all(is_extreme(ray, cone, prior) for ray in rays)


@given(problems(secrets=2))
def test_closed_form_and_enumeration_list_the_same_rays(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    prior = prior_of(table)
    closed = planar_rays(cone, prior)
    listed = enumerated_rays(cone, prior, budget=60)
    assert np.allclose(canonical(closed.toarray(), prior), canonical(listed.toarray(), prior), atol=1e-6)


@given(tables(secrets=2))
def test_closed_form_and_enumeration_agree_on_an_equality(table: np.ndarray) -> None:
    cone, prior = perfect(table), prior_of(table)
    closed = planar_rays(cone, prior)
    listed = enumerated_rays(cone, prior, budget=60)
    assert np.allclose(canonical(closed.toarray(), prior), canonical(listed.toarray(), prior), atol=1e-6)


@given(tables(secrets=4))
def test_rays_of_equalities_meet_them(table: np.ndarray) -> None:
    cone, prior = perfect(table), prior_of(table)
    rays = enumerated_rays(cone, prior, budget=60).toarray()
    assert cone.violation(rays / rays.max(axis=1, keepdims=True)).max() <= 1e-7


def test_independent_columns_are_all_allowed() -> None:
    """X independent of S: no inequality is ever reached, rank one."""
    table = np.outer([3, 5], [1, 2, 4])
    rays = planar_rays(lip(table, 0.5), prior_of(table))
    assert np.allclose(rays.toarray(), np.diag(1 / prior_of(table)))


def test_a_cone_without_constraints_is_the_orthant() -> None:
    rays = planar_rays(Cone(np.zeros((3, 4))), np.full(4, 0.25))
    assert np.allclose(rays.toarray(), 4 * np.eye(4))


def test_a_column_on_a_facet_is_a_ray_of_its_own() -> None:
    """v1 <= v2 + 2 v3 on three values, with a fourth that the constraint does not see."""
    rays = planar_rays(Cone(np.array([[1.0, -1.0, -2.0, 0.0]])), np.full(4, 0.25))
    directions = {tuple(np.round(ray / ray.max(), 9)) for ray in rays.toarray()}
    assert directions == {(0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (1, 0, 0.5, 0)}


def test_duplicated_columns_are_no_trouble() -> None:
    table = np.array([[30, 30, 1, 1], [2, 2, 20, 20]])
    rays = planar_rays(ldp(table, 0.5), prior_of(table))
    assert rays.shape[0] == 8
    assert (np.diff(rays.indptr) == 2).all()


def test_rank_two_is_not_enough_when_three_columns_surround_the_origin() -> None:
    """A v = 0 has then a solution with three entries, which the closed form does not know."""
    prior = np.full(3, 1 / 3)
    surrounded = Cone(np.array([[1.0, 0.0, -1.1], [0.0, 1.0, -1.1]]))
    assert plane_facets(surrounded, prior) is None
    rays = enumerated_rays(surrounded, prior, budget=60).toarray()
    assert any((ray > 0).all() for ray in rays)


def test_higher_rank_is_not_planar() -> None:
    table = census("marital_status", "relationship")
    assert plane_facets(lip(table, 0.5), prior_of(table)) is None


def test_a_listing_in_a_process_of_its_own_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = census("marital_status", "relationship")
    cone, prior = lip(table, 0.5), prior_of(table)
    here = enumerated_rays(cone, prior, budget=60).toarray()
    monkeypatch.setattr(enumeration, "is_quick", lambda *_: False)
    there = enumerated_rays(cone, prior, budget=60).toarray()
    assert len(here) == 100
    assert (here == there).all()


def test_the_order_of_constraints_does_not_matter() -> None:
    table = census("marital_status", "relationship")
    cone, prior = lip(table, 0.5), prior_of(table)
    turned = Cone(cone.rows[::-1] * np.arange(1, len(cone.rows) + 1)[:, None])
    rays = [enumerated_rays(each, prior, budget=60).toarray() for each in (cone, turned)]
    assert np.allclose(canonical(rays[0], prior), canonical(rays[1], prior), atol=1e-6)


def test_small_cones_need_no_process() -> None:
    assert is_quick(6, 42)
    assert not is_quick(16, 14)
    assert not is_quick(6, 210)


def test_a_listing_stops_at_its_time_limit_and_leaves_no_process() -> None:
    table = census("occupation", "education")
    with pytest.raises(SolverError) as caught:
        enumerated_rays(ldp(table, 2.0), prior_of(table), budget=0.5)
    assert (caught.value.code, caught.value.status) == ("solver-time", "time")
    assert "time_limit" in (caught.value.advice or "")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_child_that_dies_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    broken = f"{tmp_path}/broken.py"
    with open(broken, "w", encoding="utf-8") as program:  # noqa: PTH123
        program.write("raise SystemExit('no such thing')")
    monkeypatch.setattr(double_description, "__file__", broken)
    monkeypatch.setattr(enumeration, "is_quick", lambda *_: False)
    with pytest.raises(SolverError, match="no such thing") as caught:
        enumerated_rays(lip(np.eye(3) * 5 + 1, 0.5), np.full(3, 1 / 3), budget=60)
    assert caught.value.status == "failed"


def test_rays_outside_the_cone_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(double_description, "generators", lambda rows, _: np.eye(rows.shape[1]))
    with pytest.raises(SolverError, match="do not lie in the cone") as caught:
        enumerated_rays(lip(np.eye(3) * 5 + 1, 0.5), np.full(3, 1 / 3), budget=60)
    assert (caught.value.code, caught.value.status) == ("solver-failed", "failed")


def test_an_interrupted_listing_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def communicate(self, *_: object, **__: object) -> tuple[bytes, bytes]:
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    table = census("occupation", "education")
    with pytest.raises(KeyboardInterrupt):
        enumerated_rays(ldp(table, 2.0), prior_of(table), budget=60)
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel to end children with their parent")
def test_the_child_ends_with_its_parent() -> None:
    """A parent that is killed outright cannot clean up; its child must not go on computing."""
    program = (
        "from tests.unit.optimise.cones import *; from funnel.optimise.listing.enumeration import enumerated_rays;"
        "t = census('occupation', 'education');"
        "print('ready', flush=True); enumerated_rays(ldp(t, 2.0), prior_of(t), budget=60)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        child = _wait_for(lambda: _children(parent.pid))[0]
        _wait_for(lambda: "double_description" in _command(child))
        time.sleep(1)
        parent.send_signal(signal.SIGKILL)
    assert _wait_for(lambda: "double_description" not in _command(child))


def _wait_for(question: Callable[[], Answer], patience: float = 20.0) -> Answer:
    """Ask until the answer is true."""
    deadline = time.monotonic() + patience
    while not (answer := question()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


def _children(pid: int) -> list[int]:
    """Processes that a process started."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as names:  # noqa: PTH123
        return [int(name) for name in names.read().split()]


def _command(pid: int) -> str:
    """The command line of a process, empty when it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as line:  # noqa: PTH123
            return line.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@given(problems(secrets=2, most=6))
def test_rays_of_the_plane_hold_every_allowed_row(problem: tuple[np.ndarray, Cone]) -> None:
    """Completeness without another solver: no direction of the cone sticks out of the hull of the rays.

    Every row of an optimal protocol for a random linear utility is found among the rays: the largest w·v over
    the cone's slice equals the largest over the rays.
    """
    table, cone = problem
    prior = prior_of(table)
    rays = planar_rays(cone, prior)
    for gain in np.random.default_rng(0).normal(size=(3, len(prior))):
        best = linprog(
            -gain, A_ub=cone.constraints(prior), b_ub=np.zeros(len(cone.rows)),
            A_eq=np.ones((1, len(prior))), b_eq=[1.0],
        )  # fmt: skip
        assert best.status == 0
        assert (rays @ (gain * prior)).max() == pytest.approx(-best.fun, abs=1e-7)


@given(problems(secrets=4, most=5))
def test_enumerated_rays_hold_every_allowed_row(problem: tuple[np.ndarray, Cone]) -> None:
    """The same for cones of any rank: a bound over rays is only a bound when none is missing."""
    table, cone = problem
    prior = prior_of(table)
    rays = enumerated_rays(cone, prior, budget=60)
    for gain in np.random.default_rng(1).normal(size=(3, len(prior))):
        best = linprog(
            -gain, A_ub=cone.constraints(prior), b_ub=np.zeros(len(cone.rows)),
            A_eq=np.ones((1, len(prior))), b_eq=[1.0],
        )  # fmt: skip
        assert best.status == 0
        assert (rays @ (gain * prior)).max() == pytest.approx(-best.fun, abs=1e-6)


@settings(max_examples=25)
@given(problems(secrets=2, most=8))
def test_no_more_entries_than_the_plane_needs(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    rays = planar_rays(cone, prior_of(table))
    assert (np.diff(rays.indptr) <= 2).all()
    assert (rays.data > 0).all()
