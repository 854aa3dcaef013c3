"""What an optimum over a cone will cost, from sizes alone: what chooses the method, and what a plan can say.

Orders of magnitude, fitted to 248 cones of LIP and LDP on census and random tables (6 to 48 values, 6 to 240
constraints): the count of extreme rays is off by a factor of two as a rule and of ten at worst.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Cone

Method = Literal["known", "planar", "enumeration", "columns"]
"""Ways to the optimum: all rays from theory, in closed form, or listed; or rows priced until none is left to add."""
WORTH_LISTING = 1.5
"""Seconds up to which all rays are listed, as that leaves nothing to prove."""
_WORDS: dict[Method, str] = {
    "known": "extreme rays known from theory",
    "planar": "extreme rays in closed form",
    "enumeration": "extreme rays listed",
    "columns": "rows priced",
}
_RAYS = (0.73, 0.434, 0.19, 1.39)
"""Factor, and powers of the choices among values, of those among constraints, and of the dimension."""
_LISTING = (8e-7, 1.35, 0.15, 0.49)
"""Seconds: factor, and powers of the rays, the dimension and the constraints."""
_PRICING = (1.3e-3, 1.6, 0.43)
"""Seconds: factor, and powers of the variables and the constraints."""
_PER_RAY = 1e-5
"""Seconds of the linear program for each ray that needs no search."""
_PER_PAIR = 1.5e-7
"""The same for pairs of values, which are priced without a list."""
_DIGITS = 15
"""Digits beyond which nobody counts."""
_CUT = 1e-12
"""Coordinates below this share of a constraint's largest coefficient lie on its border."""


@dataclass(frozen=True)
class Extent:
    """Sizes of a cone: a values, m constraints whose rank is at most `rank`, auxiliary variables, rays where known.

    `reached` values are not allowed as rows by themselves, because of `binding` constraints; None where no data
    have been seen, which may be all.
    """

    dimension: int
    constraints: int
    rank: int
    auxiliary: int = 0
    known: int | None = None
    reached: int | None = None
    binding: int | None = None

    @classmethod
    def of(cls, cone: Cone, prior: FloatArray) -> Extent:
        """The sizes of a cone at hand that is not planar."""
        if cone.lift is not None:
            return cls(cone.dimension, len(cone.rows), cone.dimension, cone.lift.shape[1])
        matrix = cone.constraints(prior)
        cut = np.abs(matrix) > _CUT if cone.equalities else matrix > _CUT
        reached, binding = int(cut.any(axis=0).sum()), int(cut.any(axis=1).sum())
        rank = max(int(np.linalg.matrix_rank(matrix)) if len(matrix) else 0, 3)
        return cls(cone.dimension, len(matrix), rank, reached=reached, binding=binding)


@dataclass(frozen=True)
class Cost:
    """The way that should serve, how many extreme rays there should be, and what that should take in seconds."""

    method: Method
    extent: Extent
    rays: float
    seconds: float

    def words(self) -> str:
        """For a plan, in orders of magnitude: before data are seen there may be fewer rays, hardly more."""
        extent = self.extent
        where = f"in dimension {extent.dimension:,} under {extent.constraints:,} constraints"
        if extent.auxiliary:
            where += f" with {extent.auxiliary:,} auxiliary variables"
        elif self.method == "columns":
            where += f", where up to about {magnitude(self.rays):,} extreme rays are too many to list"
        elif self.method == "known":
            where = f"{extent.known:,} {where}"
        else:
            where = f"up to about {magnitude(self.rays):,} {where}"
        return f"{_WORDS[self.method]}: {where}; {lasting(self.seconds)}"

    def as_dict(self) -> dict[str, Any]:
        """JSON form; rays have one digit that counts (None where auxiliaries hide them), seconds are a power of ten."""
        return {
            "rung": self.method,
            "dimension": self.extent.dimension,
            "constraints": self.extent.constraints,
            "auxiliary": self.extent.auxiliary,
            "rays": None if self.extent.auxiliary else self.extent.known or magnitude(self.rays),
            "seconds": 10.0 ** round(math.log10(self.seconds)),
        }


def expected_cost(extent: Extent) -> Cost:
    """The way by which an optimum over a cone of these sizes is found, and what it should take.

    With sizes from data it chooses; without, it says what to expect at most.
    """
    if extent.known is not None:
        return Cost("known", extent, extent.known, _PER_RAY * extent.known)
    if extent.rank <= 2 and not extent.auxiliary:
        rays = extent.dimension**2 / 2 + 1
        return Cost("planar", extent, rays, _PER_PAIR * rays)
    rays, listing = _rays(extent), math.inf
    if not extent.auxiliary:
        listing = _power(_LISTING, rays, extent.dimension, extent.constraints)
    if listing <= WORTH_LISTING:
        return Cost("enumeration", extent, rays, listing)
    pricing = _power(_PRICING, extent.dimension + extent.auxiliary, extent.constraints)
    return Cost("columns", extent, rays, pricing)


def _rays(extent: Extent) -> float:
    """How many extreme rays are to be expected: as many constraints are met as there are values more than one."""
    a = extent.dimension
    reached = a if extent.reached is None else extent.reached
    binding = extent.constraints if extent.binding is None else extent.binding
    factor, of_values, of_constraints, of_dimension = _RAYS
    digits = (
        of_values * _choices(reached, min(reached // 2, extent.rank))
        + of_constraints * _choices(binding, min(binding // 2, extent.rank, a // 2))
        + of_dimension * math.log10(a)
    )
    return max(factor * math.pow(10, min(digits, _DIGITS)), float(a))


def _choices(of: int, many: int) -> float:
    """Decimal logarithm of the number of ways to choose so many."""
    return (math.lgamma(of + 1) - math.lgamma(many + 1) - math.lgamma(of - many + 1)) / math.log(10)


def _power(law: tuple[float, ...], *sizes: float) -> float:
    """factor · Π size^power; sizes of zero count as one."""
    factor, *powers = law
    return factor * math.exp(
        sum(power * math.log(max(size, 1.0)) for size, power in zip(sizes, powers, strict=True))
    )


def magnitude(count: float) -> int:
    """The count to one digit."""
    return int(float(f"{count:.0e}"))


def lasting(seconds: float) -> str:
    """A time in words that promise nothing."""
    for limit, word in ((0.3, "well under a second"), (3, "about a second"), (30, "some ten seconds")):
        if seconds <= limit:
            return word
    return "minutes" if seconds <= 600 else "longer than anyone waits"
