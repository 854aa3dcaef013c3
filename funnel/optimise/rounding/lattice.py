"""Integer vectors on exact linear equations: a short basis of their lattice, and protocols on it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.errors import SolverError

Integers = npt.NDArray[np.object_]
"""Arrays of Python integers, which do not overflow."""

MAX_DIMENSION = 512
"""Largest lattice; its bases are dense, and the work grows faster than the cube of this."""
_TOGETHER = 32
"""Basis vectors that are reduced at a time."""


def kernel(equalities: Sequence[Sequence[int]], dimension: int) -> Integers:
    """A short basis (d, a) of all integer v with e·v = 0 for every equality e, in exact arithmetic.

    One equality at a time: Euclid's algorithm on the values e·b_i leaves at most one basis vector off the
    equality; the others are made short again before the next one, a few dozen at a time: more dimensions cost their
    fourth power, except for vectors that are short already. So all are made short together once, at the end: parts
    that are short by themselves may still be nearly parallel, which no float can tell apart.
    SolverError (size) beyond MAX_DIMENSION.
    """
    if dimension > MAX_DIMENSION:
        raise SolverError(
            "solver-size",
            f"exact equalities on {dimension:,} values, more than {MAX_DIMENSION}",
            status="size",
            advice="Shrink the public alphabet with `bins` or `groups`, or allow a small epsilon.",
        )
    basis: Integers = np.eye(dimension, dtype=int).astype(object)
    for equality in equalities:
        basis = _on_equality(basis, basis @ np.array([int(e) for e in equality], object))
        parts = range(0, len(basis), _TOGETHER)
        basis = np.concatenate([reduce(basis[start : start + _TOGETHER]) for start in parts])
    return reduce(basis) if len(basis) > _TOGETHER else basis


def _on_equality(basis: Integers, value: Integers) -> Integers:
    """The basis of those combinations whose values cancel."""
    while True:
        off = np.flatnonzero(value != 0)
        if len(off) < 2:
            return np.asarray(basis[value == 0])
        least = off[np.argmin(abs(value[off]))]
        times = (2 * value + value[least]) // (2 * value[least])
        times[least] = 0
        value = value - times * value[least]
        basis = basis - times[:, None] * basis[least]


def reduce(basis: Integers) -> Integers:
    """The same lattice by short vectors (A. K. Lenstra, H. W. Lenstra and Lovász)."""
    if len(basis) < 2:
        return basis
    from flint import fmpz_mat

    short = fmpz_mat([[int(entry) for entry in row] for row in basis]).lll()
    return np.array([[int(entry) for entry in row] for row in short.tolist()], object)


def nearest(basis: Integers, targets: FloatArray) -> Integers:
    """Babai's nearest plane: a lattice vector near each row of targets (b, a), in Python integers.

    Done twice, the second time on what the first left over, because floats hold large targets coarsely.
    """
    orthogonal, triangle = np.linalg.qr(basis.astype(float).T)
    whole: Integers = np.vectorize(int, otypes=[object])(np.round(targets))
    found: Integers = np.zeros_like(whole)
    for _ in range(2):
        projected = (whole - found).astype(float) @ orthogonal
        times = np.zeros_like(projected)
        for i in range(len(basis) - 1, -1, -1):
            times[:, i] = np.round(projected[:, i] / triangle[i, i])
            projected -= times[:, [i]] * triangle[:, i]
        found = found + _combine(times, basis)
    return found


def _combine(times: FloatArray, basis: Integers) -> Integers:
    """times @ basis in exact integers; in machine words where they cannot overflow."""
    largest = int(abs(basis).max())
    if len(basis) * largest * float(np.abs(times).max(initial=1.0)) < 2.0**62:
        return np.asarray((times.astype(np.int64) @ basis.astype(np.int64)).astype(object))
    return np.asarray(np.vectorize(int, otypes=[object])(times) @ basis)


def round_exactly(protocol: FloatArray, basis: Integers, bits: int) -> IntArray | None:
    """Integer weights (b, a) whose rows are in the lattice and whose columns sum to 2^bits, or None.

    Every row but one goes to a near lattice vector, raised by whole multiples of all-ones until nothing is
    negative; the last row is what remains. The share t of the uninformative protocol pays for it.
    """
    total = 1 << bits
    last = int(protocol.min(axis=1).argmax())
    others = np.delete(protocol, last, axis=0)
    reserve = 0
    for _ in range(8):
        if reserve >= total:
            return None
        rows = nearest(basis, others * float(total - reserve))
        rows = rows + np.array([max(0, -min(row)) for row in rows], object)[:, None]
        rest = total - rows.sum(axis=0)
        if min(rest) >= 0:
            return np.asarray(np.insert(rows, last, rest, axis=0), np.int64)
        reserve += math.ceil(-min(rest) * 1.25)
    return None
