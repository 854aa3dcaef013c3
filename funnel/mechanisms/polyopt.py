"""The most informative protocol that is robust by way of polytopes around what the uncertainty set allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from funnel.data import Joint
from funnel.errors import InternalError
from funnel.mechanisms.base import Mechanism, Outlook, Solved, searching
from funnel.mechanisms.naming import round_named
from funnel.mechanisms.optimal import GAP, TIME_LIMIT, TimeLimit, best_inside
from funnel.notions import Demand
from funnel.notions.robust import RobustDemand, as_robust

if TYPE_CHECKING:
    from funnel.optimise.cost import Extent
    from funnel.optimise.worst_case import UncertaintySets

_SMALL = 20
"""Coordinates up to which rows are searched as a whole, to a closer gap."""


class Polyopt(Mechanism):
    """PolyOpt ([RLDP] section 5) over one polytope per secret value.

    `sets: box` are the tightest boxes around what F allows for P_{U|s}, `simplex` are bounded from below only,
    as in [RLDP] Definition 3, and `printed` adds the rows of that definition that compare a secret value with
    itself: they guard nothing and cost utility, so they serve comparison only.
    """

    serves: ClassVar[frozenset[str]] = frozenset({"rldp"})
    any_form: ClassVar[bool] = True

    kind: Literal["polyopt"]
    sets: Literal["box", "simplex", "printed"] = Field(
        "box", description="box, simplex, or printed: the polytopes in which the conditionals may lie"
    )
    time_limit: TimeLimit = TIME_LIMIT

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Maximise I(X;Y) over the cone, then round inward to integers. Raises SolverError."""
        from funnel.optimise.groups import serves

        if (robust := as_robust(demand)) is None:
            raise InternalError("polyopt was asked to serve a notion that is not robust")
        sets = robust.sets if self.sets == "box" else robust.sets.simplices()
        if self.sets != "printed" and sets.dimension > _SMALL and serves(sets):
            return best_of_groups(sets, joint, robust, self.time_limit)
        return best_inside(robust.cone(self.sets), joint, robust, self.time_limit)

    def outlook(self, extent: Extent) -> Outlook:
        """Lifted cones are priced."""
        return Outlook(extent, self.time_limit, GAP)


def best_of_groups(
    sets: UncertaintySets, joint: Joint, demand: RobustDemand, time_limit: float
) -> Solved:
    """The most informative protocol that is robust over sets of distributions, where the secret is released too.

    `how` tells the bound of the optimum over these sets; `bound` is about all robust protocols. Raises SolverError.
    """
    from funnel.optimise import groups

    prior = joint.table().sum(axis=0) / joint.rows
    ratio, ceiling = demand.notion.ratio, demand.ceiling()
    found = groups.maximise_groups(sets, ratio, prior, budget=searching(time_limit), ceiling=ceiling)
    protocol = round_named(found.protocol, groups.GroupCone(sets, ratio), joint, demand)
    known = (
        f"at most {found.bound:.6g} nats over these sets"
        if found.certificate
        else "not proved optimal in time"
    )
    how = f"columns, {found.rays:,} parts of {len(sets.members)} groups priced; {known}"
    return Solved(protocol, ceiling, how, demand.ceiling_certificate(), about="secret")
