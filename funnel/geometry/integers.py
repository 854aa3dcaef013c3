"""From a real protocol to integer weights over a power of two that are inside the cone, provably."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from funnel.errors import SolverError
from funnel.geometry.cone import Cone
from funnel.geometry.lattice import kernel, round_exactly
from funnel.geometry.rounding import Near, has_room, round_by_choice, round_by_mixing
from funnel.geometry.utility import worth
from funnel.model.joint import FloatArray, IntArray
from funnel.model.protocol import MAX_BITS

Judge = Callable[[IntArray], bool]
"""Whether integer weights (b, a) keep the bound, measured in exact arithmetic."""

_LEAST_BITS = 6
_MOST_CHOICE = 40
"""Bits up to which the integer program's floats resolve single units."""
_MARGINS = (1e-6, 1e-2, 1.0)
"""Units of weight to stay away from the cone's facets, tried in turn while the judge refuses."""
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
    protocol: FloatArray, cone: Cone, prior: FloatArray, holds: Judge, *, loss: float = 2e-5
) -> Rounded:
    """The coarsest integer protocol inside the cone that keeps I(X;Y) up to a share `loss`.

    `protocol` (b, a) lies in the cone up to rounding errors, `prior` (a,) is positive and sums to one. Floats
    guide the search; `holds` has the last word on every candidate. Where no number of bits up to 62 keeps
    1 - loss, the best one is taken if it keeps half; else SolverError (precision). Equalities cost at least
    0.1 % whatever `loss` says. Proportional rows are merged, so that no more is published than is drawn.
    """
    target = worth(protocol, prior)
    if target <= _NOTHING:
        return Rounded(np.ones((1, cone.dimension), np.int64), 0)
    allowed = max(loss, _EQUALITY_LOSS) if cone.equalities else loss
    best, best_value = None, target / 2
    for weights, bits in _candidates(protocol, cone, prior, loss):
        value = worth(weights / 2.0**bits, prior)
        if value <= best_value or not holds(weights):
            continue
        if value >= target * (1 - allowed):
            return _compact(weights, bits)
        best, best_value = (weights, bits), value
    if best is None:
        raise _too_fine()
    return _compact(*best)


def _candidates(
    protocol: FloatArray, cone: Cone, prior: FloatArray, loss: float
) -> Iterator[tuple[IntArray, int]]:
    """Integer protocols that floats believe inside, coarsest first in each of the ways to get one."""
    if cone.equalities:
        yield from _on_lattice(protocol, cone)
        return
    near = Near(protocol, prior, cone.normalised())
    for bits in range(_LEAST_BITS, _MOST_CHOICE + 1 if has_room(near) else 0):
        yield from _with_margins(bits, partial(round_by_choice, near, bits, loss=loss))
    for bits in range(_LEAST_BITS, MAX_BITS + 1):
        yield from _with_margins(bits, partial(round_by_mixing, near, bits))


def _with_margins(bits: int, attempt: Callable[..., IntArray | None]) -> Iterator[tuple[IntArray, int]]:
    """Candidates ever further inside; when one margin leaves no room, a wider one does not either."""
    for margin in _MARGINS:
        weights = attempt(margin=margin)
        if weights is None:
            return
        yield weights, bits


def _on_lattice(protocol: FloatArray, cone: Cone) -> Iterator[tuple[IntArray, int]]:
    """Integer protocols that meet the equalities exactly; only the constant one where nothing else does."""
    basis = kernel(cone.equalities, cone.dimension)
    for bits in range(_LEAST_BITS, MAX_BITS + 1):
        weights = round_exactly(protocol, basis, bits)
        if weights is not None:
            yield weights, bits


def _compact(weights: IntArray, bits: int) -> Rounded:
    """Merge proportional rows, drop empty ones, and give back the bits that are not used."""
    weights = weights[weights.any(axis=1)]
    primitive = weights // np.gcd.reduce(weights, axis=1)[:, None]
    _, group = np.unique(primitive, axis=0, return_inverse=True)
    merged = np.zeros((group.max() + 1, weights.shape[1]), np.int64)
    np.add.at(merged, group.ravel(), weights)
    shared = int(np.bitwise_or.reduce(merged, axis=None))
    spare = min((shared & -shared).bit_length() - 1, bits)
    return Rounded(merged >> spare, bits - spare)


def _too_fine() -> SolverError:
    """The error of a bound that 62 bits cannot meet."""
    return SolverError(
        "precision",
        f"no weights of {MAX_BITS} bits keep the bound and at least half of what could be released",
        status="precision",
        advice="Shrink the public alphabet with `bins` or `top`, or use a larger epsilon.",
    )
