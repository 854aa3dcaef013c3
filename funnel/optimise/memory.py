"""What searches over one alphabet learn from each other: as epsilon moves, extreme rays move along.

Cones grow with epsilon, so rows found at a smaller one are still allowed at a larger one; and where a ray stood there
often still is one, with the same zeros and the same constraints met with equality. Nothing is taken on trust: each row
is checked against the cone at hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Cone

_SEARCHES = 4
"""Searches over one alphabet that are remembered: a search for the best budget goes to and fro."""
_ZERO = 1e-12
"""Share of a row's mass below which a coordinate is zero; excess over a constraint up to which a row is inside."""
_MET = 1e-9
"""The same for constraints that a row meets with equality."""


@dataclass(frozen=True, eq=False)
class _Found:
    """Rows on w = prior·v (k, a), each of sum one, and the constraints on w (m, a) under which they were found."""

    mass: FloatArray
    constraints: FloatArray | None


_Memory = dict[bytes, deque[_Found]]
_MEMORY: ContextVar[_Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Searches inside begin with what earlier ones inside found; within another memory, they share that."""
    if _MEMORY.get() is not None:
        yield
        return
    token = _MEMORY.set({})
    try:
        yield
    finally:
        _MEMORY.reset(token)


def keep(cone: Cone, prior: FloatArray, rows: FloatArray) -> None:
    """Remember rows v (k, a) of a cone, where anyone remembers."""
    memory = _MEMORY.get()
    if memory is not None:
        mass = rows * prior
        search = _Found(mass / mass.sum(axis=1, keepdims=True), _constraints(cone, prior))
        memory.setdefault(prior.tobytes(), deque(maxlen=_SEARCHES)).append(search)


def recall(cone: Cone, prior: FloatArray) -> FloatArray:
    """Rows v (k, a) of this cone with prior·v = 1 that earlier searches lead to; mostly none.

    For a lifted cone, where each row takes a linear program to check, the last search only.
    """
    searches = [*(_MEMORY.get() or {}).get(prior.tobytes(), ())]
    constraints = _constraints(cone, prior)
    if constraints is None:
        found = [search.mass for search in searches[-1:]]
    else:
        found = [rows for search in searches for rows in (search.mass, _moved(search, constraints))]
    mass = np.vstack([np.zeros((0, len(prior))), *found])
    return allowed(cone, prior, mass / prior)


def allowed(cone: Cone, prior: FloatArray, rows: FloatArray) -> FloatArray:
    """Those of the rows v (k, a) that lie in a cone, scaled to prior·v = 1."""
    rows = rows[(rows @ prior > 0) & (rows >= 0).all(axis=1)]
    rows = rows / (rows @ prior)[:, None]
    constraints = _constraints(cone, prior)
    if constraints is None:
        return np.asarray(rows[cone.violation(rows) <= _MET])
    excess = (rows * prior) @ constraints.T
    outside = np.abs(excess) if cone.equalities else excess
    return np.asarray(rows[outside.max(axis=1, initial=0.0) <= _ZERO])


def _constraints(cone: Cone, prior: FloatArray) -> FloatArray | None:
    """Constraints on w, (m, a); None for a lifted cone."""
    return None if cone.lift is not None else cone.constraints(prior)


def _moved(search: _Found, constraints: FloatArray) -> FloatArray:
    """The points with the same zeros and the same constraints met as the rows of a search, under other constraints."""
    old = search.constraints
    if old is None or old.shape != constraints.shape:
        return np.zeros((0, constraints.shape[1]))
    return np.array([_vertex(row, old, constraints) for row in search.mass]).reshape(-1, constraints.shape[1])


def _vertex(row: FloatArray, old: FloatArray, constraints: FloatArray) -> FloatArray:
    """w with Σw = 1 on the support of a row (a,) that meets what the row met; perhaps with entries below zero."""
    support, met = np.flatnonzero(row > _ZERO), np.abs(old @ row) <= _MET
    equations = np.vstack([constraints[np.ix_(met, support)], np.ones(len(support))])
    point, *_ = np.linalg.lstsq(equations, np.append(np.zeros(met.sum()), 1.0), rcond=None)
    moved = np.zeros(len(row))
    moved[support] = np.where(np.abs(point) > _ZERO, point, 0.0)
    return moved
