"""What a row of each label counts for, where the totals of the labels are not those of the cells."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from funnel.cells.cells import Cells
from funnel.data import Protocol
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol
from funnel.measure.reweighing import reweighed

WEIGHT_TYPE = "DECIMAL(18,6)"
Weights = tuple[Fraction, ...]
"""One for each output of a protocol."""
_DECIMALS = 6
_EVEN = Fraction(1, 200)
"""Weights that are all this near to one are not worth a column."""


def row_weights(
    blocks: Sequence[Cells], protocols: Sequence[AnyProtocol], rows: IntArray, *, locked: bool
) -> dict[str, Weights]:
    """What a row of each output counts for, by the wide block's name; `rows` (m, k+1) are those of released.json.

    A block is left out where rows count alike, and where there are none (`all_weights`).
    """
    every = all_weights(blocks, protocols, rows, locked=locked).items()
    return {name: weights for name, weights in every if uneven(weights)}


def uneven(weights: Weights) -> bool:
    """Whether rows count so differently that a column says for what."""
    return any(abs(one - 1) > _EVEN for one in weights)


def all_weights(
    blocks: Sequence[Cells], protocols: Sequence[AnyProtocol], rows: IntArray, *, locked: bool
) -> dict[str, Weights]:
    """The same of every wide block that has weights, also of one whose rows count alike.

    Where the protocol was solved for these records, weighted rows have the cells' shares. Under a lock the table has
    moved since, and they have the totals that follow from the released ones. There are none where a cell is never
    answered, answers depend on more than the cell, or under a lock no totals follow.
    """
    found = dict[str, Weights]()
    for axis, protocol in enumerate(protocols):
        cells = next((one for one in blocks if (one.name,) == protocol.inputs.columns), None)
        if cells is None or protocol.secret is not None or not isinstance(protocol, Protocol):
            continue
        codes, counts = rows[:, axis], rows[:, -1]
        weights = _tonight(protocol, codes, counts) if locked else solved_weights(cells, protocol)
        if weights is not None:
            found[cells.name] = weights
    return found


def _tonight(protocol: Protocol, codes: IntArray, counts: IntArray) -> Weights | None:
    seen = np.zeros(len(protocol.outputs), np.int64)
    np.add.at(seen, codes, counts)
    return reweighed(protocol, seen)


def solved_weights(cells: Cells, protocol: Protocol) -> Weights | None:
    """P(T=t) / P(T'=t) of the table that the cells were made from; None as in `all_weights`."""
    shares = cell_shares(cells, protocol)
    own = dict(zip(protocol.inputs.values, shares, strict=True))
    if set(own) != set(protocol.outputs.values) or not all(shares):
        return None
    answered = (protocol.weights[:, 0, :].astype(object) @ np.array(shares, object)).tolist()
    return tuple(
        Fraction(own[value] << protocol.bits, chance)
        for value, chance in zip(protocol.outputs.values, answered, strict=True)
    )


def cell_shares(cells: Cells, protocol: Protocol) -> list[int]:
    """Of each input of a protocol (a) the weight of its cell in the table that the cells were made from."""
    return [int(cells.shares[int(value[0] or 0) - 1]) for value in protocol.inputs.values]


def weight_name(block: str, blocks: int) -> str:
    """The column of the weights of a wide block, of so many in the release."""
    return "weight" if blocks == 1 else f"{block}_weight"


def decimal(number: Fraction) -> str:
    """A weight as it stands in a table."""
    whole, rest = divmod(round(number * 10**_DECIMALS), 10**_DECIMALS)
    return f"{whole}.{rest:0{_DECIMALS}d}"
