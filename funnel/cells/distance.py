"""How far a release's marginals are from the true ones: total variation, half the sum of absolute differences.

Expected ones are exact: they follow from the weights of the profiles, pooling and rounding included, and from how the
labels are distributed. Columns are coded first: values of an ordered column by at most 20 quantiles of the true rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.columns import Codes, Vocabulary
from funnel.cells.counts import tallied
from funnel.cells.law import Marginal, RowLaw
from funnel.cells.profile import BITS, Profile
from funnel.data.joint import FloatArray, IntArray

QUANTILES = 20


@dataclass(frozen=True)
class Distances:
    """Distances of marginals, by their columns."""

    of: dict[Marginal, float]

    def mean(self, columns: int) -> float:
        """Over all marginals of so many columns; 0 where there are none."""
        found = [value for key, value in self.of.items() if len(key) == columns]
        return float(np.mean(found)) if found else 0.0

    def largest(self, columns: int) -> float:
        """Over all marginals of so many columns; 0 where there are none."""
        return max((value for key, value in self.of.items() if len(key) == columns), default=0.0)


def coding(
    column: Vocabulary, codes: Codes, quantiles: int = QUANTILES, records: IntArray | None = None
) -> IntArray:
    """By which code every value (v,) of a column goes: a quantile where it is ordered, else its own."""
    counts = tallied(codes, len(column), records)
    if not column.ordered:
        return np.arange(len(column))
    numbers = len(column) - (column.values[-1] is None)
    before = np.cumsum(counts[:numbers]) - counts[:numbers]
    total = max(int(counts[:numbers].sum()), 1)
    found = np.minimum(before * quantiles // total, quantiles - 1)
    coded = np.unique(found, return_inverse=True)[1]
    return np.append(coded, [coded.max(initial=-1) + 1] * (len(column) - numbers)).astype(np.int64)


def expected(
    profiles: Sequence[Profile],
    labels: FloatArray,
    codes: Sequence[Codes],
    codings: Sequence[IntArray],
    keys: Iterable[Marginal],
    records: IntArray | None = None,
) -> Distances:
    """Distances between a table (codes of its columns) and what rows of labels with this distribution (m,) expect.

    Rows of the table stand for so many `records` (n,); None: for one each.
    """
    true = [coded.astype(np.int32)[column] for coded, column in zip(codings, codes, strict=True)]
    sizes = [int(coded.max()) + 1 for coded in codings]
    rows = law(profiles, labels / labels.sum(), codings)
    far = {key: np.abs(_table(true, sizes, key, records) - rows.marginal(key)).sum() for key in keys}
    return Distances({key: float(one) / 2 for key, one in far.items()})


def law(profiles: Sequence[Profile], labels: FloatArray, codings: Sequence[IntArray]) -> RowLaw:
    """The distribution of a filled row's codes, over labels with chances (m,)."""
    return RowLaw(
        labels,
        [profile.parent for profile in profiles],
        [profile.links / (1 << BITS) for profile in profiles],
        [_coded(profile, coding) for profile, coding in zip(profiles, codings, strict=True)],
    )


def _coded(profile: Profile, coding: IntArray) -> FloatArray:
    """The chances (m, groups, codes) of a column's codes, given its groups."""
    shape = profile.links.shape[2], int(coding.max()) + 1
    found = np.zeros((len(profile.values), *shape))
    for value, (group, code) in enumerate(zip(profile.groups, coding, strict=True)):
        found[:, group, code] += profile.values[:, value] / (1 << BITS)
    return found


def _table(
    codes: Sequence[Codes], sizes: Sequence[int], key: Marginal, records: IntArray | None
) -> FloatArray:
    """The shares of the coded values of some columns, in an array with an axis for each."""
    place = np.zeros(len(codes[0]), np.int64)
    for column in key:
        place = place * sizes[column] + codes[column]
    shape = [sizes[column] for column in key]
    counts = tallied(place, int(np.prod(shape)), records)
    return np.asarray(counts.reshape(shape) / counts.sum())
