"""A release in Python: its table, unbiased figures from it, their covariances, and weights for its rows.

    release = funnel.open_release("releases/census/latest")
    release.estimate(by=["town", "income"], where="age >= 37", mean="hours").table()

Weights say what each row of a released table counts for, so that weighted rows have the true totals of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from funnel.analyst.figures import Tabulated
from funnel.analyst.opened import Data
from funnel.analyst.tabulate import Question, covariances, tabulate
from funnel.data import Protocol
from funnel.data.joint import FloatArray, IntArray
from funnel.data.unary import AnyProtocol
from funnel.errors import ReleaseError
from funnel.format.released import COUNT
from funnel.measure.functionals import along, tabulated
from funnel.measure.recovery import inverse_of

if TYPE_CHECKING:
    import pyarrow as pa

Names = str | Sequence[str]
MOST = 10_000_000
"""Combinations of the values of all blocks."""
SWEEPS = 50


class OpenRelease:
    """A release that was opened; everything follows from its published folder."""

    def __init__(self, path: Path) -> None:
        self._data = Data(path)

    def __repr__(self) -> str:
        return f"<release {self.name}: {self.rows:,} rows of {', '.join(self.columns)}>"

    @property
    def name(self) -> str:
        """Its identifier."""
        return self._data.manifest.release

    @property
    def rows(self) -> int:
        """How many records there are."""
        return self._data.manifest.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """What can be asked for."""
        return self._data.columns

    def table(self) -> pa.Table:
        """The released table, in its types: random values, whose raw totals are seldom the true ones."""
        return self._data.table

    def estimate(
        self, *, by: Names = (), where: str | None = None, sum: Names = (), mean: Names = (), share: Names = (),
        confidence: float = 0.95,
    ) -> Tabulated:  # fmt: skip
        """Unbiased figures of the true values, for every group `by` columns, among records `where` a condition holds.

        The number of records; sums of numbers, and means of those who have one; and shares of all records of a group
        that meet conditions, which are SQL over the columns of the release, and not met where a missing value leaves
        them open. Raises ReleaseError: `question` for what it cannot answer, `wrong-value` for a confidence that is
        no share.
        """
        return tabulate(self._data, _question(by, where, sum, mean, share), _share(confidence))

    def covariance(
        self, *, by: Names = (), where: str | None = None, sum: Names = (), mean: Names = (), share: Names = ()
    ) -> FloatArray:  # fmt: skip
        """Of the figures of `estimate` in the same order, (f, f), over the random draws; NaN beside unknown ones."""
        return covariances(self._data, _question(by, where, sum, mean, share))

    def weights(self) -> pa.Array:
        """What each row of `table` counts for, so that weighted rows have each block's totals as nearly as may be.

        Raises ReleaseError (question) where no weights can do that. See `funnel.analyst.release`.
        """
        return weights(self._data)


def open_release(path: Path | str) -> OpenRelease:
    """Open a release's folder, or the folder that holds `latest`. Raises ReleaseError (`release-unreadable`)."""
    return OpenRelease(Path(path))


def _question(by: Names, where: str | None, sums: Names, means: Names, shares: Names) -> Question:
    def several(names: Names) -> tuple[str, ...]:
        return (names,) if isinstance(names, str) else tuple(names)

    return Question(several(by), where, several(sums), several(means), several(shares))


def _share(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ReleaseError("wrong-value", f"a confidence of {confidence} is not between 0 and 1",
                           advice="Give a share such as 0.95.")  # fmt: skip
    return confidence


def weights(data: Data) -> pa.Array:
    """Weights (rows,) of the table's rows, none below zero, of which the sum is the number of records.

    The table's own where it has one such column, with that sum on average; one where released totals may be read as
    they stand. Else rows that show (y_1, …, y_k) count for the estimated number of records that are so over the number
    that say so. Those below zero count as none, and the others are fitted to the totals of each block, as
    nearly as they can have them: where columns of two blocks are nearly the same, or a total is below zero or of a
    value that no row shows, they cannot. How blocks go together is no longer free of bias, as it is in `estimate`.
    Raises ReleaseError (question) where true totals do not follow from the released ones.
    """
    import pyarrow as pa

    found = _wide(data) if data.wide else _narrow(data)
    if data.counted:
        found = found * data.table.column(COUNT).to_numpy()
    return pa.array(found)


def _wide(data: Data) -> FloatArray:
    """The table's own weights, where no more than one block has some."""
    table, weighed = data.table, list[str]()
    for block in data.blocks:
        names = [name for cells in block.cells for name in ("weight", f"{cells.name}_weight")]
        own = [name for name in names if name in table.column_names]
        even = own or block.face is not None or _as_is(block.protocol) or (block.cells and _told_apart(block.protocol))
        if not even:
            raise _impossible("the draws move its totals, and no weight of its own undoes that")
        weighed += own
    if len(weighed) > 1:
        raise _impossible("several blocks have a weight each for their own totals, and no product of these has all")
    return np.asarray(table.column(weighed[0]), float) if weighed else np.ones(table.num_rows)


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
    if not kept.any():
        raise _impossible("of what they show, no estimate is above zero")
    totals = [_beside(seen if block.face is not None else likely, axis) for axis, block in enumerate(data.blocks)]
    each = np.divide(_raked(kept, totals, float(seen.sum())), seen, out=np.zeros(seen.shape), where=seen > 0)
    return np.asarray(each[tuple(codes.T)])


def _beside(table: FloatArray | IntArray, axis: int) -> FloatArray:
    """Totals along one axis, none below zero."""
    return np.asarray(np.maximum(table.sum(axis=tuple(i for i in range(table.ndim) if i != axis)), 0.0))


def _raked(table: FloatArray, totals: Sequence[FloatArray], rows: float) -> FloatArray:
    """A table that adds up to `rows`, and along every axis to its totals, as nearly as its zeros let it.

    What estimates below zero would move into other values goes back (W. E. Deming, F. F. Stephan, Annals of
    Mathematical Statistics 11, 1940). Where nothing is below zero the table has these totals, and stays as it is.
    """
    for _ in range(SWEEPS):
        for axis, total in enumerate(totals):
            own = _beside(table, axis)
            factor = np.divide(total, own, out=np.zeros(own.shape), where=own > 0)
            table = table * factor.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    return np.asarray(table * (rows / table.sum()))


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
