"""The linear program over extreme rays, and a bound on its optimum that needs no trust in the solver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.optimise.utility import Utility, information

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult
    from scipy.sparse import csr_array

_SIMPLEX = 20_000
"""Up to this many rays the dual simplex is the faster method; above, interior points with crossover."""
_TOLERANCES = (1e-10, 1e-8, 1e-6)
"""Feasibility asked of the solver, the finest first; redundant equations may not be met so closely."""
_UNUSED = 1e-11
"""Rows of a protocol whose entries are all below this are rounding errors of the solver."""
_STATUS: dict[int, Literal["time", "empty", "failed"]] = {1: "time", 2: "empty", 3: "failed", 4: "failed"}
"""scipy.optimize.linprog's status to ours: limit reached, infeasible, unbounded, numerical trouble."""


@dataclass(frozen=True, eq=False)
class Master:
    """Multipliers θ (k,) of the rays, the utility they reach, a bound no protocol can exceed (nats), and its λ (a,)."""

    theta: FloatArray
    value: float
    bound: float
    duals: FloatArray


def master(
    rays: csr_array, prior: FloatArray, *, time_limit: float, utility: Utility = information
) -> Master:
    """max Σ θ_r u(r) subject to Σ θ_r r = 1, θ >= 0, over rays (k, a) with prior·r = 1.

    At most a multipliers are positive. The bound holds for every cone whose extreme rays are all given:
    Σ θ_r = 1, so by duality no feasible θ exceeds Σ_x λ_x + max_r (u(r) - λ·r), whatever λ is.
    SolverError with status time, empty (no θ is feasible) or failed.
    """
    worth = utility(rays, prior)
    theta, duals = _solve(rays, worth, time_limit)
    theta = _polish(rays, theta)
    value = float(worth @ theta)
    bound = float(duals.sum() + (worth - rays @ duals).max())
    return Master(theta, value, max(bound, value), duals)


def _solve(rays: csr_array, worth: FloatArray, seconds: float) -> tuple[FloatArray, FloatArray]:
    """Run the solver: multipliers (k,) of a vertex, so as few rays as there are values, and duals λ (a,)."""
    deadline = time.monotonic() + seconds
    for tolerance in _TOLERANCES:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _failure("time", "no time is left for it")
        result = _linprog(rays, worth, tolerance, left)
        if result.status == 0:
            return np.maximum(result.x, 0.0), -np.asarray(result.eqlin.marginals)
        if _STATUS.get(result.status) == "time":
            break
    raise _failure(_STATUS.get(result.status, "failed"), str(result.message))


def _linprog(rays: csr_array, worth: FloatArray, tolerance: float, seconds: float) -> OptimizeResult:
    """minimise -Σ θ_r u(r) subject to Σ θ_r r = 1, θ >= 0."""
    from scipy import optimize

    linprog: Any = optimize.linprog  # its stubs know neither sparse matrices nor a method in a variable
    options = {
        "time_limit": seconds,
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    method = "highs-ds" if rays.shape[0] <= _SIMPLEX else "highs-ipm"
    result: OptimizeResult = linprog(
        -worth, A_eq=rays.T.tocsc(), b_eq=np.ones(rays.shape[1]), method=method, options=options
    )
    return result


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


def _failure(status: Literal["time", "empty", "failed"], reason: str) -> SolverError:
    """The solver's own words under our code."""
    code = "solver-time" if status == "time" else "solver-failed"
    advice = "Raise mechanism.time_limit, or shrink the public alphabet with `bins` or `top`."
    return SolverError(code, f"the linear program over extreme rays: {reason}", status=status, advice=advice)
