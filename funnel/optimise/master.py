"""The linear program over extreme rays, and a bound on its optimum that needs no trust in the solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.optimise.budget import Budget
from funnel.optimise.generation import closely
from funnel.optimise.linear.highs import Answer, Program
from funnel.optimise.utility import information

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_UNUSED = 1e-11
"""Rows of a protocol whose entries are all below this are rounding errors of the solver."""


@dataclass(frozen=True, eq=False)
class Master:
    """The protocol (b, a) of the rays in use, whose columns sum to one, its information, a bound no protocol exceeds
    (nats), and its λ (a,)."""

    protocol: FloatArray
    value: float
    bound: float
    duals: FloatArray


def master(rays: csr_array | FloatArray, prior: FloatArray, *, budget: Budget | float) -> Master:
    """max Σ θ_r μ(r) subject to Σ θ_r r = 1, θ >= 0, over rays (k, a) with prior·r = 1.

    At most a multipliers are positive. The bound holds for every cone whose extreme rays are all given:
    Σ θ_r = 1, so by duality no feasible θ exceeds Σ_x λ_x + max_r (μ(r) - λ·r), whatever λ is.
    SolverError with status time, empty (no θ is feasible), precision (a value got lost) or failed.
    """
    from scipy.sparse import csr_array

    rays = csr_array(rays)
    worth = information(rays, prior)
    answer = _solve(rays, worth, Budget.of(budget))
    theta, duals = _polish(rays, np.maximum(answer.point, 0.0)), answer.multipliers
    value = float(worth @ theta)
    bound = float(duals.sum() + (worth - rays @ duals).max())
    used = np.flatnonzero(theta)
    protocol = rays[used].toarray() * theta[used, None]
    if not protocol.any(axis=0).all():
        raise too_rare()
    return Master(protocol / protocol.sum(axis=0), value, max(bound, value), duals)


def too_rare() -> SolverError:
    """The error of masses that floats cannot keep apart from nothing."""
    return SolverError(
        "precision",
        "some values are so rare that the linear program loses them",
        status="precision",
        advice="Make the public columns coarser with `groups` or `bins`, or use mechanism: optimal.",
    )


def _solve(rays: csr_array, worth: FloatArray, budget: Budget) -> Answer:
    """A vertex of the program, so as few rays as there are values, met as closely as the solver can."""
    from scipy.sparse import csr_array

    count, size = rays.shape
    one, none, free = np.ones(size), np.zeros(count), np.full(count, np.inf)
    program = Program(csr_array(rays.T), one, one, none, free, method="dual", presolve=True)
    program.costs(worth)
    answer = closely(program, budget)
    answer.require("the linear program over extreme rays")
    return answer


def _polish(rays: csr_array, theta: FloatArray) -> FloatArray:
    """Solve the equations on the support once more, in full precision, where that brings them closer."""
    used = np.flatnonzero(theta * rays.max(axis=1).toarray().ravel() > _UNUSED)
    basis = rays[used].toarray().T
    share, *_ = np.linalg.lstsq(basis * theta[used], np.ones(len(basis)), rcond=None)
    better = share * theta[used]
    if better.min() < 0 or _residual(basis, better) > _residual(basis, theta[used]):
        better = theta[used]
    polished = np.zeros_like(theta)
    polished[used] = better
    return polished


def _residual(basis: FloatArray, theta: FloatArray) -> float:
    """Largest departure of a column sum from one."""
    return float(np.abs(basis @ theta - 1).max())
