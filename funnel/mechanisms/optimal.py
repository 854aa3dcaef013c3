"""The protocol that keeps most of X among all that keep the notion's bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from funnel.data import Joint
from funnel.mechanisms.base import Mechanism, Outlook, Solved, searching
from funnel.mechanisms.naming import round_named
from funnel.notions import Demand, Notion, as_robust

if TYPE_CHECKING:
    from funnel.optimise.cone import Cone
    from funnel.optimise.cost import Extent

TimeLimit = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="Seconds that solving one block may take")
]
Gap = Annotated[
    float,
    Field(
        gt=0, le=1, allow_inf_nan=False, description="Share of H(X) between value and bound at which to stop"
    ),
]
TIME_LIMIT, GAP = 60.0, 1e-6


class Optimal(Mechanism):
    """[RLDP] Theorem 3: an optimal protocol uses extreme rays of the notion's cone, found by one LP.

    Under a robust notion the cone has infinitely many sides: it is closed in on by cuts (`exactly_robust`).
    """

    any_form: ClassVar[bool] = True
    of_beliefs: ClassVar[bool] = True

    kind: Literal["optimal"]
    time_limit: TimeLimit = TIME_LIMIT
    gap: Gap = GAP

    @classmethod
    def fits(cls, notion: type[Notion]) -> bool:
        """Notions that have a cone of rows."""
        return notion.linear

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Maximise I(X;Y) over the cone of the demand, then round inward to integers. Raises SolverError."""
        if (robust := as_robust(demand)) is not None:
            from funnel.mechanisms.exactly_robust import exactly_robust

            return exactly_robust(joint, robust, searching(self.time_limit), self.gap)
        if (oracle := demand.oracle()) is not None:
            from funnel.mechanisms.believed import best_against

            return best_against(oracle, joint, demand, searching(self.time_limit), self.gap)
        return best_inside(demand.cone(), joint, demand, self.time_limit, self.gap)

    def outlook(self, extent: Extent) -> Outlook:
        """The method that should serve, in the time and to the gap allowed."""
        return Outlook(extent, self.time_limit, self.gap)

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """Where there is no cone to look at beforehand."""
        return f"rows of {public:,} values priced against the worst tables; ends after {self.time_limit:g} s"


def best_inside(cone: Cone, joint: Joint, demand: Demand, time_limit: float, gap: float = GAP) -> Solved:
    """The most informative protocol whose rows lie in a cone, on integers that keep the demand.

    `bound` certifies the optimum over all real protocols that keep the demand: the solver's own bound where the
    cone is all that the demand allows, else the ceiling that the demand knows. Raises SolverError.
    """
    from funnel.optimise.solve import maximise

    prior = joint.table().sum(axis=0) / joint.rows
    ceiling = demand.ceiling()
    solution = maximise(
        cone,
        prior,
        budget=searching(time_limit),
        gap=gap,
        ceiling=ceiling,
        rays=demand.rays(prior),
    )
    protocol = round_named(solution.protocol, cone, joint, demand)
    how = _how(solution.method, solution.rays)
    if demand.cone_is_all:
        return Solved(protocol, solution.bound, how, solution.certificate)
    return Solved(protocol, ceiling, how, demand.ceiling_certificate(), about="secret")


def _how(method: str, rays: int) -> str:
    """The way to the optimum, for the plan's reader and the evidence."""
    return f"{method}, {rays:,} {'rows priced' if method == 'columns' else 'extreme rays'}"
