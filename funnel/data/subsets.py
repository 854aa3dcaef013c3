"""The release of one block by unary encoding, seen from the secret: 2^a sets, measured without listing them.

Up to a factor of y alone, P(y|s) is low + (high - low) P(X in y | s). So the set that separates two distributions
most holds the values whose ratio of probabilities is above some threshold: one of a prefixes, once the values are
sorted by that ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray
from funnel.data.sending import ExactArray

_NEAR = 1e-12
"""Relative width in which floats cannot tell two ratios of sums of at most 62 terms apart."""

Counts = npt.NDArray[Any]


class CoinChances(Protocol):
    """What the chances of sets depend on: see `funnel.data.unary.UnaryProtocol`, whose names these are."""

    @property
    def odds(self) -> tuple[int, int]:
        """(high, low): proportional to the chance of a set that holds x, and of one that does not."""

    @property
    def shares(self) -> tuple[float, float]:
        """P(bit x is 1 | x), and P(bit x' is 1 | x) for x' other than x."""


@dataclass(frozen=True, eq=False)
class Subsets:
    """Counts N[s, x] (c, a) whose records go through a unary protocol: a released table that is never written out."""

    counts: Counts
    protocol: CoinChances

    def pml_ratio(self) -> Fraction:
        """max over s and sets y of P(y|s)/P(y): the upper half of [DS] Definition 2."""
        rows = self._rows()
        return self._largest(rows, np.broadcast_to(rows.sum(axis=0), rows.shape))

    def loss_ratio(self) -> Fraction:
        """max over s and sets y of P(y)/P(y|s): the lower half of [DS] Definition 2."""
        rows = self._rows()
        return self._largest(np.broadcast_to(rows.sum(axis=0), rows.shape), rows)

    def ldp_ratio(self) -> Fraction:
        """max over s, s' and sets y of P(y|s)/P(y|s') ([DS] Definition 1)."""
        rows = self._rows()
        return max(self._largest(np.broadcast_to(row, rows.shape), rows) for row in rows)

    def changes(self) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest P(y|s)/P(y) over all sets y, (c,) each, as floats."""
        every = np.broadcast_to(self.counts.sum(axis=0), self.counts.shape)
        low = 1 / np.max(self._scan(every, self.counts)[1], axis=1)
        return low, np.max(self._scan(self.counts, every)[1], axis=1)

    @property
    def size(self) -> int:
        """Cells that the written-out table would have."""
        return len(self.counts) << int(self.counts.shape[1])

    def chances(self) -> FloatArray:
        """P(s, y) for all sets, (c, 2^a), in no order that means anything; only where 2^a is small."""
        present, absent = self.protocol.shares
        shares = _floats(self.counts) / float(self.counts.sum())
        held, base = np.zeros((len(shares), 1)), np.ones(1)
        for share in shares.T:
            held = np.concatenate([held, held + share[:, None]], axis=1)
            base = np.concatenate([base * (1 - absent), base * absent])
        outside, inside = (1 - present) / (1 - absent), present / absent
        return np.asarray(base * (outside * shares.sum(axis=1, keepdims=True) + (inside - outside) * held))

    def _rows(self) -> Counts:
        """Counts of the secret values and the public values that occur."""
        occurring = self.counts[self.counts.any(axis=1)]
        return np.asarray(occurring[:, occurring.any(axis=0)])

    def _largest(self, above: Counts, below: Counts) -> Fraction:
        """max over pairs of distributions (m, a) and sets y of P(y | above) / P(y | below)."""
        order, ratio = self._scan(above, below)
        return max(
            self._exact(above[pair], below[pair], order[pair, :length])
            for pair, length in np.argwhere(ratio >= ratio.max() * (1 - _NEAR)).tolist()
        )

    def _scan(self, above: Counts, below: Counts) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """Values by falling above/below (m, a), and the ratio of the set of the first 0, 1, … a of them (m, a + 1)."""
        high, low = self.protocol.odds
        gain = (high - low) / low
        top, bottom = (part / part.sum(axis=1, keepdims=True) for part in (_floats(above), _floats(below)))
        order = _order(above, below, top, bottom)
        inside = [_prefixes(np.take_along_axis(part, order, axis=1)) for part in (top, bottom)]
        return order, (1 + gain * inside[0]) / (1 + gain * inside[1])

    def _exact(self, above: Counts, below: Counts, inside: npt.NDArray[np.int64]) -> Fraction:
        """P(y | above) / P(y | below) of one pair (a,) and the set that holds the values `inside`."""
        high, low = self.protocol.odds
        parts = []
        for counts in (above, below):
            total, held = sum(map(int, counts)), sum(map(int, counts[inside]))
            parts.append(Fraction(low * total + (high - low) * held, total))
        return parts[0] / parts[1]


def _floats(counts: Counts) -> FloatArray:
    return np.asarray(counts.astype(float), np.float64)


def _prefixes(shares: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, … a entries, (m, a + 1)."""
    return np.concatenate([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)], axis=1)


def _order(above: Counts, below: Counts, top: FloatArray, bottom: FloatArray) -> npt.NDArray[np.int64]:
    """Values by falling above/below, (m, a); where floats are too close to tell, by the integers."""
    both = top + bottom
    share = np.divide(top, both, out=np.zeros_like(top), where=both > 0)
    order = np.argsort(-share, axis=1, kind="stable")
    for row in _doubtful(np.take_along_axis(share, order, axis=1)):
        ratio = [_ratio(int(one), int(other)) for one, other in zip(above[row], below[row], strict=True)]
        order[row] = sorted(range(len(ratio)), key=lambda x: -ratio[x])
    return order


def _doubtful(share: FloatArray) -> Iterator[int]:
    """Rows with neighbours that are almost equal, but for those that are surely 0 or 1."""
    close = (share[:, :-1] - share[:, 1:] <= _NEAR) & (share[:, 1:] > 0) & (share[:, :-1] < 1)
    yield from np.flatnonzero(close.any(axis=1)).tolist()


def _ratio(above: int, below: int) -> Fraction:
    """above / (above + below): it rises with above/below, and is finite."""
    return Fraction(above, above + below) if above else Fraction(0)


ReleasedTable = ExactArray | Subsets
"""T[s, y…] as integers, or as the sets that unary encoding may release."""
