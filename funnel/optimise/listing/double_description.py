"""Extreme rays by the double description method; also the program of the child process that runs it.

cddlib is C code that cannot be interrupted, so long runs happen in a process of their own:
`python double_description.py SECONDS EQUALITIES`, the matrix on standard input and the rays on standard
output, both as npy. The child needs nothing of funnel and ends by itself when its time is over.
"""

from __future__ import annotations

import ctypes
import io
import signal
import sys

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def generators(constraints: FloatArray, equalities: int) -> FloatArray:
    """Extreme rays (k, a) of {w >= 0 : constraints @ w <= 0}, the last `equalities` rows being equations.

    Rows are taken in the order given, after the unit vectors: the method starts from the simplex and cuts it,
    which is a hundred times faster on deep cuts first than cddlib's own order.
    """
    import cdd

    dimension = constraints.shape[1]
    halfspaces = np.vstack([np.eye(dimension), -constraints])
    halfspaces = np.hstack([np.zeros((len(halfspaces), 1)), halfspaces])
    exact = range(len(halfspaces) - equalities, len(halfspaces))
    matrix = cdd.matrix_from_array(halfspaces.tolist(), lin_set=exact, rep_type=cdd.RepType.INEQUALITY)
    polyhedron = cdd.polyhedron_from_matrix(matrix, row_order=cdd.RowOrderType.MIN_INDEX)
    rays = np.array(cdd.copy_generators(polyhedron).array, float).reshape(-1, dimension + 1)
    return rays[:, 1:]


def _end_with_parent(seconds: int) -> None:
    """Let the system end this process when its time is over, and on Linux when its parent ends."""
    signal.alarm(seconds)
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def main(seconds: str, equalities: str) -> None:
    """Read constraints, write rays."""
    _end_with_parent(int(seconds))
    constraints = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    np.save(sys.stdout.buffer, generators(constraints, int(equalities)), allow_pickle=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
