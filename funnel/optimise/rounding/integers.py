"""From a real protocol to integer weights over a power of two that are inside the cone, provably."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.data.protocol import MAX_BITS
from funnel.errors import SolverError
from funnel.optimise.cone import RoundingCone
from funnel.optimise.rounding.lattice import kernel, round_exactly
from funnel.optimise.rounding.rows import Near, round_by_choice, round_by_mixing
from funnel.optimise.utility import worth

Holds = Callable[[IntArray], bool]
"""Whether integer weights (b, a) keep the bound, measured in exact arithmetic."""

Attempt = Callable[[int, float], IntArray | None]
"""Bits and a margin to integer weights that floats believe inside."""

_LEAST_BITS = 6
_MOST_CHOICE = 40
"""Bits up to which the floats of the integer program resolve single units."""
_MARGINS = (1e-6, 1e-2, 1.0)
"""Units of weight to stay away from the cone's facets, tried in turn while `holds` refuses."""
_LIFTED = 1e-7
"""The same where inequalities come one by one, as shares of the weights per unit."""
_CUTS = 50
"""Times that such inequalities are added."""
_EQUALITY_LOSS = 1e-3
"""Share of the utility that rows on an integer lattice may cost."""
_NOTHING = 1e-12
"""Utility (nats) under which a protocol says nothing."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """Integer weights (b, a); every column sums to 2^bits."""

    weights: IntArray
    bits: int


def round_inward(
    protocol: FloatArray,
    cone: RoundingCone,
    prior: FloatArray,
    holds: Holds,
    *,
    loss: float = 2e-5,
    choose: bool = True,
) -> Rounded:
    """The coarsest integer protocol inside the cone that keeps I(X;Y) up to a share `loss`.

    `protocol` (b, a) lies in the cone up to rounding errors, `prior` (a,) is positive and sums to one. Floats
    guide the search; `holds` has the last word on every candidate. Where no number of bits up to 62 keeps
    1 - loss, the best one is taken if it keeps half; else SolverError (precision). Equalities cost at least
    0.1 % whatever `loss` says. Without `choose` no integer program looks for fewer bits. Proportional rows are
    merged, so that no more is published than is drawn.
    """
    target = worth(protocol, prior)
    if target <= _NOTHING:
        return Rounded(np.ones((1, cone.dimension), np.int64), 0)
    search = _Coarsest(prior, holds, target * (1 - max(loss, _EQUALITY_LOSS if cone.equalities else 0.0)))
    if cone.equalities:
        basis = kernel(cone.equalities, cone.dimension)
        search.coarsest(lambda bits, _: round_exactly(protocol, basis, bits))
    else:
        near = Near(protocol, prior, cone.facets(protocol))
        if not cone.complete:
            search.coarsest(partial(_cut_and_mix, near, cone))
            return _merged(*search.result(target / 2))
        search.coarsest(partial(round_by_mixing, near))
        if choose:
            search.coarser(partial(round_by_choice, near, loss=loss))
    return _merged(*search.result(target / 2))


def _cut_and_mix(near: Near, cone: RoundingCone, bits: int, margin: float) -> IntArray | None:
    """Mixing where not all inequalities are known: violated ones are added until there are none, or None.

    Weights of many bits may be told from the cone only up to the tolerance of linear programs; `holds` refuses
    what slips through, and a wider margin is tried.
    """
    margin *= max(1.0, 2.0**bits * _LIFTED)
    for _ in range(_CUTS):
        weights = round_by_mixing(near, bits, margin)
        if weights is None:
            return None
        cuts = cone.facets(weights.astype(float))
        violated = cuts[(weights @ cuts.T > -margin / 2).any(axis=0)]
        if not len(violated):
            return weights
        near = replace(near, inequalities=np.vstack([near.inequalities, violated]))
    return None


class _Coarsest:
    """Integer protocols that lose little enough, ever coarser; and the ones that lose more, for want of better."""

    def __init__(self, prior: FloatArray, holds: Holds, enough: float) -> None:
        self.prior, self.holds, self.enough = prior, holds, enough
        self.best: tuple[IntArray, int] | None = None
        self.poor: list[tuple[float, IntArray, int]] = []

    def coarsest(self, attempt: Attempt) -> None:
        """The first that serves, from few bits to many."""
        for bits in range(_LEAST_BITS, MAX_BITS + 1):
            if self._serves(attempt, bits):
                return

    def coarser(self, attempt: Attempt) -> None:
        """The fewest bits that serve, below those found so far, by bisection: failures are what takes time."""
        low, high = _LEAST_BITS, min(_MOST_CHOICE, self.best[1] - 1 if self.best else MAX_BITS)
        while low <= high:
            middle = (low + high) // 2
            if self._serves(attempt, middle):
                high = middle - 1
            else:
                low = middle + 1

    def result(self, least: float) -> tuple[IntArray, int]:
        """The coarsest that serves, else the best that `holds` accepts and is worth `least`."""
        if self.best is not None:
            return self.best
        for value, weights, bits in sorted(self.poor, key=lambda entry: -entry[0]):
            if value >= least and self.holds(weights):
                return weights, bits
        raise too_fine()

    def _serves(self, attempt: Attempt, bits: int) -> bool:
        """Try ever further inside while `holds` refuses; where one margin fails, a wider one does too."""
        for margin in _MARGINS:
            weights = attempt(bits, margin)
            if weights is None or not self._informs(weights, bits):
                return False
            if self.holds(weights):
                self.best = weights, bits
                return True
        return False

    def _informs(self, weights: IntArray, bits: int) -> bool:
        """Whether little enough is lost; the others are kept in mind."""
        value = worth(weights, self.prior) / 2.0**bits
        if value < self.enough:
            self.poor.append((value, weights, bits))
        return value >= self.enough


def _merged(weights: IntArray, bits: int) -> Rounded:
    """Merge proportional rows, drop empty ones, and give back the bits that are not used."""
    weights = weights[weights.any(axis=1)]
    primitive = weights // np.gcd.reduce(weights, axis=1)[:, None]
    _, group = np.unique(primitive, axis=0, return_inverse=True)
    merged = np.zeros((group.max() + 1, weights.shape[1]), np.int64)
    np.add.at(merged, group.ravel(), weights)
    shared = int(np.bitwise_or.reduce(merged, axis=None))
    spare = min((shared & -shared).bit_length() - 1, bits)
    return Rounded(merged >> spare, bits - spare)


def too_fine() -> SolverError:
    """The error of a bound that 62 bits cannot meet."""
    return SolverError(
        "precision",
        f"no weights of {MAX_BITS} bits keep the bound and at least half of what could be released",
        status="precision",
        advice="Shrink the public alphabet with `bins` or `groups`, or use a larger epsilon.",
    )
