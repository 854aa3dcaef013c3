"""Extreme rays of any polyhedral cone, listed one and all."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.optimise.budget import Budget
from funnel.optimise.cone import Cone
from funnel.optimise.listing import double_description

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_QUICK = (8, 60)
"""Dimension and constraints up to which listing takes well under a second, so needs no process of its own."""
_NOISE = 1e-12
"""Share of a ray's mass below which a coordinate is a rounding error."""
_INSIDE = 1e-7
"""Violation (as a share of the uninformative row) up to which a listed ray counts as inside."""
ADVICE = (
    "Raise mechanism.time_limit, shrink the public alphabet with `bins` or `top`, "
    "or use mechanism: randomised-response."
)


def enumerated_rays(cone: Cone, prior: FloatArray, *, budget: Budget | float) -> csr_array:
    """All extreme rays as sparse rows (k, a) with prior·r = 1, in at most the seconds of a budget.

    SolverError with status time when that is too short, failed when the rays are not in the cone.
    """
    from scipy.sparse import csr_array

    constraints = _ordered(cone.constraints(prior), prior)
    equalities = len(constraints) if cone.equalities else 0
    if is_quick(cone.dimension, len(constraints)):
        mass = _here(constraints, equalities)
    else:
        mass = _in_child(constraints, equalities, Budget.of(budget).seconds)
    rays = _tidy(mass) / prior
    if not len(rays) or cone.violation(rays * prior.min()).max() > _INSIDE:
        raise _failed("the rays found do not lie in the cone")
    return csr_array(rays)


def is_quick(dimension: int, constraints: int) -> bool:
    """Whether a cone of this size is listed without a process of its own."""
    return dimension <= _QUICK[0] and constraints <= _QUICK[1]


def _ordered(constraints: FloatArray, prior: FloatArray) -> FloatArray:
    """Deepest cuts first: the result does not depend on the caller's order, and comes sooner."""
    return constraints[np.argsort(-(constraints @ prior), kind="stable")]


def _here(constraints: FloatArray, equalities: int) -> FloatArray:
    """Run `double_description` in this process; cddlib's complaints are our errors."""
    try:
        return double_description.generators(constraints, equalities)
    except RuntimeError as error:
        raise _failed(str(error)) from error


def _in_child(constraints: FloatArray, equalities: int, seconds: float) -> FloatArray:
    """Run `double_description` as a process; whatever ends the wait ends the process."""
    alarm = "0" if math.isinf(seconds) else str(math.ceil(seconds) + 1)
    program = [sys.executable, "-P", double_description.__file__, alarm, str(equalities)]
    question = io.BytesIO()
    np.save(question, constraints, allow_pickle=False)
    with subprocess.Popen(  # noqa: S603 - our own file, no shell
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        try:
            answer, complaint = child.communicate(
                question.getvalue(), timeout=None if math.isinf(seconds) else seconds
            )
        except subprocess.TimeoutExpired:
            raise _too_slow(seconds) from None
        finally:
            child.kill()
    if child.returncode != 0:
        last_words = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise _failed(last_words or f"exit status {child.returncode}")
    rays: FloatArray = np.load(io.BytesIO(answer), allow_pickle=False)
    return rays


def _too_slow(seconds: float) -> SolverError:
    """The error of a listing that was cut short."""
    message = f"listing the extreme rays took longer than {seconds:g} seconds"
    return SolverError("solver-time", message, status="time", advice=ADVICE)


def _failed(reason: str) -> SolverError:
    """The error of a listing that went wrong."""
    return SolverError(
        "solver-failed",
        f"listing the extreme rays failed: {reason}",
        status="failed",
        advice="A bound very close to zero is beyond floats: use a larger epsilon, or perfect privacy.",
    )


def _tidy(mass: FloatArray) -> FloatArray:
    """Rays on w scaled to sum one, without rounding errors, empty rays and repetitions."""
    mass = np.where(np.isfinite(mass).all(axis=1, keepdims=True), mass, 0.0)
    mass = mass[mass.sum(axis=1) > 0]
    mass = mass / mass.sum(axis=1, keepdims=True)
    mass = np.where(mass > _NOISE, mass, 0.0)
    mass /= mass.sum(axis=1, keepdims=True)
    _, first = np.unique(np.round(mass, 10), axis=0, return_index=True)
    return mass[np.sort(first)]
