"""What a notion that holds for a set of distributions asks of the protocol of whole records."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from funnel.data import Joint
from funnel.data.arrange import possible
from funnel.data.joint import FloatArray, IntArray
from funnel.measure.information import entropy
from funnel.notions.base import Demand, Notion

if TYPE_CHECKING:
    from funnel.optimise.certificate import Certificate
    from funnel.optimise.cone import Cone
    from funnel.optimise.solve import Solution
    from funnel.optimise.worst_case import UncertaintySets

Polytope = Literal["box", "simplex", "printed"]


@dataclass(frozen=True, eq=False)
class RobustDemand(Demand):
    """The bound for a joint of one block, for every distribution in the uncertainty set.

    `ball` is the exact radius of the set in nats, and the order of its divergence.
    """

    notion: Notion
    joint: Joint
    ball: tuple[Fraction, Fraction]

    def cone(self, shape: Polytope = "box") -> Cone:
        """Rows that keep the bound for all P_{U|s} in a polytope around what F allows for each s.

        box: {L <= R <= U}; simplex: {L <= R} ([RLDP] Definition 3 without its empty rows s1 = s2); printed: with
        these rows, for comparison only.
        """
        from funnel.optimise.worst_case import box_cone, simplex_cone

        ratio = self.notion.ratio
        if shape == "box":
            return box_cone(self.sets, ratio)
        return simplex_cone(self.sets, ratio, within=shape == "printed")

    def keeps(self, weights: IntArray) -> bool:
        """Whether no distribution in F leaks more, certified in exact arithmetic."""
        from funnel.measure.robust import robust_holds

        return robust_holds(self.table, weights, self.possible, *self.ball, self.notion.bound)

    @property
    def cone_is_all(self) -> bool:
        """Polytopes are larger than what F allows, so some robust protocols have rows outside the cone."""
        return False

    def ceiling(self) -> float:
        """H(X|S) + max I(S;Y) over LDP channels on S at the estimate, which lies in F."""
        hidden = entropy(self.table) - entropy(self.table.sum(axis=1) / self.joint.rows)
        return hidden + self._on_secret.bound

    def ceiling_certificate(self) -> Certificate | None:
        """That of the LDP channels on S."""
        return self._on_secret.certificate

    @cached_property
    def _on_secret(self) -> Solution:
        """The most informative LDP channel on S at the estimate."""
        from funnel.optimise.staircase import staircase

        return staircase(self.table.sum(axis=1) / self.joint.rows, self.notion.ratio)

    @property
    def radius(self) -> float:
        """The radius B of F in nats."""
        return float(self.ball[0])

    @property
    def order(self) -> float:
        """The order of its divergence."""
        return float(self.ball[1])

    @cached_property
    def table(self) -> IntArray:
        """N[s, x], (c, a)."""
        return self.joint.table()

    @cached_property
    def possible(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which x can occur with s, (c, a)."""
        return possible(self.joint)

    @cached_property
    def given(self) -> list[FloatArray]:
        """P̂_{x|s} over the x that are possible with each s."""
        counts = self.table.astype(float)
        return [row[mask] / row.sum() for row, mask in zip(counts, self.possible, strict=True)]

    @cached_property
    def radii(self) -> list[float]:
        """The radius B_s of each projection F_{U|s} ([RLDP] Theorem 1)."""
        from funnel.measure.uncertainty import project

        chances = self.table.sum(axis=1) / self.joint.rows
        return [float(project(self.radius, self.order, chance)) for chance in chances]

    @cached_property
    def sets(self) -> UncertaintySets:
        """L <= P_{x|s} <= U for every s."""
        from funnel.measure.uncertainty import limits
        from funnel.optimise.worst_case import UncertaintySets

        ends = [limits(self.order, b, rho) for b, rho in zip(self.radii, self.given, strict=True)]
        members = [np.flatnonzero(mask) for mask in self.possible]
        return UncertaintySets(members, [low for low, _ in ends], [high for _, high in ends], self.table.shape[1])


def as_robust(demand: Demand) -> RobustDemand | None:
    """The demand, where it holds for a set of distributions, so that cuts alone reach all that it allows."""
    return demand if isinstance(demand, RobustDemand) else None
