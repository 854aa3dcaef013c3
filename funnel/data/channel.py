"""The channel that is really released: the blocks' protocols side by side, seen from the secret."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.data.joint import IntArray, Joint
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.data.unary import AnyProtocol, UnaryProtocol, likelihoods
from funnel.errors import PlanError

MAX_CELLS = 2_000_000
"""Largest product alphabet (cells of S x Y) that is measured; beyond it nothing could be claimed."""

ExactArray = npt.NDArray[np.int64] | npt.NDArray[np.object_]


def released_table(joint: Joint, protocols: Sequence[AnyProtocol]) -> ReleasedTable:
    """T[s, y_1, …, y_k] = Σ_x N[s, x] Π_j W_j[y_j, s, x_j]: the joint of S and Y in exact integers.

    Shape (c, b_1, …, b_k), total n·2^(Σ bits). int64 where that is certain not to overflow, else Python
    integers. A single block that goes through unary encoding stays `Subsets`; beside others its sets are
    written out, and the total is another. Raises PlanError when the product is too large to measure.
    """
    if len(protocols) == 1 and isinstance(protocols[0], UnaryProtocol):
        return Subsets(joint.table(), protocols[0])
    check_size(joint, [len(protocol.outputs) for protocol in protocols])
    table = measured(joint.dense(), dict(enumerate(protocols, start=1)))
    for axis, protocol in enumerate(protocols, start=1):
        if isinstance(protocol, UnaryProtocol):
            shape = [-1 if place == axis else 1 for place in range(table.ndim)]
            table = table * np.array(protocol.base(), object).reshape(shape)
    return table


def measured(table: IntArray, protocols: Mapping[int, AnyProtocol]) -> ExactArray:
    """Counts with the axes of some blocks sent through their protocols, by axis: up to a factor of each y."""
    parts = {axis: likelihoods(protocol) for axis, protocol in protocols.items()}
    wide = int(table.sum()).bit_length() + sum(bits for _, bits in parts.values()) > 62
    sent: Any = table.astype(object if wide else np.int64)
    for axis, (weights, _) in parts.items():
        sent = through(sent, axis, weights)
    exact: ExactArray = sent
    return exact


def given_outputs(joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> list[ExactArray]:
    """T_y[s, x_index] (c, a) for every combination y of what the blocks in `released` put out.

    One table without condition where nothing is released yet; combinations that never occur are left out.
    Each table is proportional to the counts it stands for.
    """
    _check_conditions(joint, released)
    table = measured(joint.dense(), {1 + block: protocol for block, protocol in released.items()})
    others = tuple(1 + j for j in range(len(joint.blocks)) if j != index and j not in released)
    table = np.moveaxis(table.sum(axis=others, keepdims=True), 1 + index, -1)
    tables = np.moveaxis(table.reshape(len(table), -1, table.shape[-1]), 1, 0)
    return [one for one in tables if one.any()]


def check_size(joint: Joint, released: Sequence[int]) -> None:
    """Refuse a product alphabet whose leakage could not be measured; `released` are the b_j."""
    largest = max(math.prod(joint.shape), len(joint.secret) * math.prod(released))
    for done in range(1, len(released)):
        mixed = (*released[:done], *joint.shape[1 + done :])
        largest = max(largest, len(joint.secret) * math.prod(mixed))
    if largest > MAX_CELLS:
        raise PlanError(
            "alphabet-too-large",
            f"the public blocks together take {largest:,} combinations with the secret; "
            f"leakage is measured on the whole product, up to {MAX_CELLS:,}",
            advice="Release fewer columns in this policy, or shrink them with `bins` or `top`.",
        )


def _check_conditions(joint: Joint, released: Mapping[int, AnyProtocol]) -> None:
    """Refuse sets that cannot be written out as conditions."""
    if any(isinstance(protocol, UnaryProtocol) for protocol in released.values()):
        sizes = [len(released[j].outputs) if j in released else len(joint.blocks[j])
                 for j in range(len(joint.blocks))]  # fmt: skip
        check_size(joint, sizes)


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
