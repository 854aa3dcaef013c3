"""What each row of a released table counts for, so that weighted rows have the true totals."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from funnel.analyst.opened import Data
from funnel.data import Protocol
from funnel.data.joint import FloatArray
from funnel.data.unary import AnyProtocol
from funnel.errors import ReleaseError
from funnel.format.released import COUNT
from funnel.measure.functionals import along, tabulated
from funnel.measure.recovery import inverse_of

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 10_000_000
"""Combinations of the values of all blocks."""


def weights(data: Data) -> pa.Array:
    """Weights (rows,) of the table's rows, none below zero, of which the sum is the number of records.

    The table's own where it has such a column; one where released totals may be read as they stand. Else rows that show
    (y_1, …, y_k) count for the estimated number of records that are so over the number that say so: right for all
    blocks together, but for estimates below zero, which count as none while the others are lowered in proportion.
    Raises ReleaseError (question) where true totals do not follow from the released ones.
    """
    import pyarrow as pa

    found = _wide(data) if data.wide else _narrow(data)
    if data.counted:
        found = found * data.table.column(COUNT).to_numpy()
    return pa.array(found)


def _wide(data: Data) -> FloatArray:
    """The product of the table's own weights."""
    table = data.table
    found = np.ones(table.num_rows)
    for block in data.blocks:
        names = [name for cells in block.cells for name in ("weight", f"{cells.name}_weight")]
        own = [name for name in names if name in table.column_names]
        even = block.face is not None or _as_is(block.protocol) or (block.cells and _told_apart(block.protocol))
        if not own and not even:
            raise _impossible("the draws move its totals, and no weight of a row undoes that")
        for name in own:
            found = found * np.asarray(table.column(name), float)
    return found


def _narrow(data: Data) -> FloatArray:
    certain = all(_as_is(one) for one in data.protocols)
    if certain or (len(data.blocks) == 1 and data.blocks[0].face is not None):
        return np.ones(data.table.num_rows)
    if not all(map(_told_apart, data.protocols)):
        raise _impossible("its protocol does not tell all values apart, or reads the secret, or releases sets")
    sizes = [one.size for one in data.protocols]
    if prod(sizes) > MOST:
        raise _impossible(f"its blocks have {prod(sizes):,} combinations, which is more than {MOST:,}")
    codes = data.answers
    seen = tabulated(codes, data.times, sizes)
    inverses = [block.inverse(np.arange(size)).matrix for block, size in zip(data.blocks, sizes, strict=True)]
    likely = along(seen.astype(float), [_by_output(one, m) for one, m in zip(data.protocols, inverses, strict=True)])
    kept = np.where(seen > 0, np.maximum(likely, 0.0), 0.0)
    each = np.divide(kept * (seen.sum() / kept.sum()), seen, out=np.zeros(seen.shape), where=seen > 0)
    return np.asarray(each[tuple(codes.T)])


def _by_output(protocol: AnyProtocol, matrix: FloatArray) -> FloatArray:
    """Of the inverse (b, a) the estimates by output, (b, b): values are in another order there, perhaps."""
    place = [protocol.inputs.values.index(value) for value in protocol.told.values]
    return matrix[:, place].T


def _as_is(protocol: AnyProtocol) -> bool:
    return protocol.certain and bool((protocol.alike() == 1).all())


def _told_apart(protocol: AnyProtocol) -> bool:
    """Whether true totals of values follow from the released ones of the same values."""
    if not isinstance(protocol, Protocol) or protocol.reads_secret:
        return False
    same = sorted(map(repr, protocol.inputs.values)) == sorted(map(repr, protocol.outputs.values))
    return same and inverse_of(protocol, np.arange(protocol.size)).residual is None


def _impossible(why: str) -> ReleaseError:
    return ReleaseError(
        "question", f"rows of this release have no weights: {why}", where="weights",
        advice="Ask `estimate` for totals, means and shares; what it cannot know, it says.",
    )  # fmt: skip
