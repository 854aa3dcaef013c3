"""Counts sent through weights, in exact integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.data.joint import IntArray

ExactArray = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""int64 where that is certain not to overflow, else Python integers."""


def sent(table: ExactArray, weights: IntArray) -> ExactArray:
    """T[s, y] = Σ_x N[s, x] W[y, s, x] of one block's table (c, a) and weights (b, c or 1, a), in exact integers."""
    wide = int(table.sum()).bit_length() + int(weights[:, 0, 0].sum()).bit_length() > 62
    exact: ExactArray = through(table.astype(object if wide else np.int64), 1, weights)
    return exact


def through(table: Any, axis: int, weights: IntArray) -> Any:
    """Replace axis x_j of T[s, …] by y_j: for each s, multiply by W_j[:, s, :] of weights (b, c or 1, a)."""
    moved = np.moveaxis(table, axis, -1)
    exact = weights.astype(table.dtype)
    if exact.shape[1] == 1:
        sent = moved @ exact[:, 0, :].T
    else:
        sent = np.stack([moved[s] @ exact[:, s, :].T for s in range(len(moved))])
    return np.moveaxis(sent, -1, axis)
