"""What a row of each label counts for, where a mechanism does not leave the totals of the cells as they are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from funnel.cells.cells import Cells
from funnel.data import Protocol
from funnel.data.unary import AnyProtocol

WEIGHT_TYPE = "DECIMAL(18,6)"
_DECIMALS = 6
_EVEN = Fraction(1, 200)
"""Weights that are all this near to one are not worth a column."""


def weights(cells: Cells, protocol: AnyProtocol) -> tuple[Fraction, ...] | None:
    """What a row of each output counts for, so that weighted rows have the cells' shares: P(T=t) / P(T'=t).

    None where rows count alike, and where no weights can do that: a cell is never answered, or answers depend on
    more than the cell.
    """
    if (
        protocol.secret is not None
        or protocol.inputs.columns != (cells.name,)
        or not isinstance(protocol, Protocol)
    ):
        return None
    shares = [int(cells.shares[int(value[0] or 0) - 1]) for value in protocol.inputs.values]
    own = dict(zip(protocol.inputs.values, shares, strict=True))
    if set(own) != set(protocol.outputs.values) or not all(shares):
        return None
    answered = (protocol.weights[:, 0, :].astype(object) @ np.array(shares, object)).tolist()
    found = tuple(
        Fraction(own[value] << protocol.bits, chance)
        for value, chance in zip(protocol.outputs.values, answered, strict=True)
    )
    return None if all(abs(one - 1) <= _EVEN for one in found) else found


def decimal(number: Fraction) -> str:
    """A weight as it stands in a table."""
    whole, rest = divmod(round(number * 10**_DECIMALS), 10**_DECIMALS)
    return f"{whole}.{rest:0{_DECIMALS}d}"
