"""What an optimum over a cone will cost, from its sizes alone: for a plan, before any data are seen.

Orders of magnitude, fitted to 248 cones of LIP and LDP on census and random tables (6 to 48 values, 6 to 240
constraints).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Method = Literal["known", "planar", "columns"]
"""Ways to the optimum: all rays from theory, pairs of values in closed form, or rows priced until none is missing."""
_WORDS: dict[Method, str] = {
    "known": "extreme rays known from theory",
    "planar": "extreme rays in closed form",
    "columns": "rows priced",
}
_PRICING = (1.3e-3, 1.6, 0.43)
"""Seconds: factor, and powers of the variables and the constraints."""
_PER_RAY = 1e-5
"""Seconds of the linear program for each ray that needs no search."""
_PER_PAIR = 1.5e-7
"""The same for pairs of values, which are priced without a list."""


@dataclass(frozen=True)
class Extent:
    """Sizes of a cone: a values, m constraints whose rank is at most `rank`, auxiliary variables, rays where known."""

    dimension: int
    constraints: int
    rank: int
    auxiliary: int = 0
    known: int | None = None


@dataclass(frozen=True)
class Cost:
    """The method that should serve, how many extreme rays it chooses among where that is known, and seconds."""

    method: Method
    extent: Extent
    rays: float | None
    seconds: float

    def words(self) -> str:
        """For a plan, in orders of magnitude: before data are seen there may be fewer rays, hardly more."""
        extent = self.extent
        where = f"in dimension {extent.dimension:,} under {extent.constraints:,} constraints"
        if extent.auxiliary:
            where += f" with {extent.auxiliary:,} auxiliary variables"
        if self.method == "known":
            where = f"{extent.known:,} {where}"
        elif self.rays is not None:
            where = f"up to about {magnitude(self.rays):,} {where}"
        return f"{_WORDS[self.method]}: {where}; {lasting(self.seconds)}"

    def as_dict(self) -> dict[str, Any]:
        """JSON form; rays have one digit that counts (None where nobody lists them), seconds are a power of ten."""
        return {
            "rung": self.method,
            "dimension": self.extent.dimension,
            "constraints": self.extent.constraints,
            "auxiliary": self.extent.auxiliary,
            "rays": None if self.rays is None else self.extent.known or magnitude(self.rays),
            "seconds": 10.0 ** round(math.log10(self.seconds)),
        }


def expected_cost(extent: Extent) -> Cost:
    """The method by which an optimum over a cone of these sizes will be found, and what that should take."""
    if extent.known is not None:
        return Cost("known", extent, extent.known, _PER_RAY * extent.known)
    if extent.rank <= 2 and not extent.auxiliary:
        rays = extent.dimension**2 / 2 + 1
        return Cost("planar", extent, rays, _PER_PAIR * rays)
    factor, of_variables, of_constraints = _PRICING
    variables, constraints = extent.dimension + extent.auxiliary, max(extent.constraints, 1)
    return Cost("columns", extent, None, factor * variables**of_variables * constraints**of_constraints)


def magnitude(count: float) -> int:
    """The count to one digit."""
    return int(float(f"{count:.0e}"))


def lasting(seconds: float) -> str:
    """A time in words that promise nothing."""
    for limit, word in ((0.3, "well under a second"), (3, "about a second"), (30, "some ten seconds")):
        if seconds <= limit:
            return word
    return "minutes" if seconds <= 600 else "longer than anyone waits"
