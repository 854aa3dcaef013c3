"""The channel that is really released: the joint distribution through the blocks' protocols, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from funnel.data.joint import IntArray, Joint
from funnel.data.sending import ExactArray, through
from funnel.data.subsets import ReleasedTable
from funnel.data.unary import AnyProtocol
from funnel.errors import PlanError
from funnel.text import some

CELLS = 200
"""Cells that are proposed for a wide block."""
_SHOWN = 8
MAX_CELLS = 2_000_000
"""Largest product alphabet (cells of S x Y) that is measured; beyond it nothing could be claimed."""


def released_table(joint: Joint, protocols: Sequence[AnyProtocol]) -> ReleasedTable:
    """T[s, y_1, …, y_k] = Σ_x N[s, x] Π_j W_j[y_j, s, x_j]: the joint of S and Y in exact integers.

    Shape (c, b_1, …, b_k), total n·2^(Σ bits). int64 where that is certain not to overflow, else Python
    integers. A single block says itself what it releases; sets beside other blocks are written out, and the total
    is another. Raises PlanError when the product is too large to measure.
    """
    if len(protocols) == 1:
        check_size(joint, [protocols[0].alone])
        return protocols[0].released(joint.table())
    check_size(joint, [protocol.size for protocol in protocols])
    table = measured(joint.dense(), dict(enumerate(protocols, start=1)))
    for axis, protocol in enumerate(protocols, start=1):
        if (scale := protocol.scale()) is not None:
            shape = [-1 if place == axis else 1 for place in range(table.ndim)]
            table = table * np.array(scale, object).reshape(shape)
    return table


def measured(table: IntArray, protocols: Mapping[int, AnyProtocol]) -> ExactArray:
    """Counts with the axes of some blocks sent through their protocols, by axis: up to a factor of each y."""
    parts = {axis: protocol.likelihoods() for axis, protocol in protocols.items()}
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
    check_size(joint, [released[j].size if j in released else size for j, size in enumerate(joint.shape[1:])])
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
            f"leakage is measured on the whole product, up to {MAX_CELLS:,}. Of it they are {_sizes(joint)}",
            advice=_as_one(joint),
        )


def _sizes(joint: Joint) -> str:
    """The blocks by how many values they have, most first."""
    sizes = [(len(block), "+".join(block.columns)) for block in joint.blocks]
    told = [f"{name} ({size:,} values)" for size, name in sorted(sizes, reverse=True)]
    return some(told, _SHOWN)


def _as_one(joint: Joint) -> str:
    """What helps: the largest blocks put together as cells, few enough for the product with the others."""
    most, left = MAX_CELLS // CELLS, len(joint.secret)
    kept: list[str] = []
    for block in sorted(joint.blocks, key=len):
        if left * len(block) > most:
            break
        left *= len(block)
        kept += block.columns
    columns = [one for block in joint.blocks for one in block.columns if one not in kept]
    if len(columns) < 2:
        return "Release fewer columns in this policy, or shrink them with `bins` or `groups`."
    return (
        f"Put these {len(columns)} into one wide block, under `public`: "
        f"`{{name: record, columns: [{', '.join(columns)}], cells: {CELLS}}}`; or shrink them with `bins` or `groups`."
    )


@dataclass(frozen=True, eq=False)
class Channel:
    """One protocol per block of a joint distribution, side by side: what every notion measures."""

    joint: Joint
    protocols: Sequence[AnyProtocol]

    @cached_property
    def table(self) -> ReleasedTable:
        """T[s, y_1, …, y_k] in exact integers. Raises PlanError when it is too large to measure."""
        return released_table(self.joint, self.protocols)
