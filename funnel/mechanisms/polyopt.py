"""The most informative protocol that is robust by way of polytopes around what the uncertainty set allows."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from funnel.errors import InternalError
from funnel.mechanisms.base import Mechanism, Solved
from funnel.mechanisms.optimal import TIME_LIMIT, TimeLimit, best_inside
from funnel.model import Joint
from funnel.notions import Demand, Notion
from funnel.notions.rldp import RobustDemand


class Polyopt(Mechanism):
    """PolyOpt ([RLDP] section 5) over one polytope per secret value.

    `sets: box` are the tightest boxes around what F allows for P_{U|s}, `simplex` are bounded from below only,
    as in [RLDP] Definition 3, and `printed` adds the rows of that definition that compare a secret value with
    itself: they guard nothing and cost utility, so they serve comparison only.
    """

    serves: ClassVar[frozenset[str]] = frozenset({"rldp"})

    kind: Literal["polyopt"]
    sets: Literal["box", "simplex", "printed"] = Field(
        "box", description="box, simplex, or printed: the polytopes in which the conditionals may lie"
    )
    time_limit: TimeLimit = TIME_LIMIT

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Maximise I(X;Y) over the cone, then round inward to integers. Raises SolverError."""
        if not isinstance(demand, RobustDemand):
            raise InternalError("polyopt was asked to serve a notion that is not robust")
        return best_inside(demand.cone(self.sets), joint, demand, self.time_limit)

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """Large and lifted cones are priced."""
        return f"rows by pricing over {self.sets} sets, within {self.time_limit:g} s"
