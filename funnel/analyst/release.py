"""A release in Python: its table, unbiased figures from it, their covariances, and weights for its rows.

    release = funnel.open_release("releases/census/latest")
    release.estimate(by=["town", "income"], where="age >= 37", mean="hours").table()
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.analyst.figures import Tabulated
from funnel.analyst.opened import Data
from funnel.analyst.tabulate import Question, covariances, tabulate
from funnel.analyst.weigh import weights
from funnel.data.joint import FloatArray
from funnel.errors import ReleaseError

if TYPE_CHECKING:
    import pyarrow as pa

Names = str | Sequence[str]


class OpenRelease:
    """A release that was opened; everything follows from its published folder."""

    def __init__(self, path: Path) -> None:
        self._data = Data(path)

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

        The number of records; sums and means of numbers, and shares of conditions, which are SQL over the columns of
        the release. Raises ReleaseError: `question` for what it cannot answer, `wrong-value` for a confidence that is
        no share.
        """
        return tabulate(self._data, _question(by, where, sum, mean, share), _share(confidence))

    def covariance(
        self, *, by: Names = (), where: str | None = None, sum: Names = (), mean: Names = (), share: Names = ()
    ) -> FloatArray:  # fmt: skip
        """Of the figures of `estimate` in the same order, (f, f), over the random draws; NaN beside unknown ones."""
        return covariances(self._data, _question(by, where, sum, mean, share))

    def weights(self) -> pa.Array:
        """What each row of `table` counts for, so that weighted rows have the true totals; for SQL, or a regression.

        Raises ReleaseError (question) where no weights can do that. See `funnel.analyst.weigh`.
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
