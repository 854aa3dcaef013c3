"""The robust optimum itself, closed in on by the worst distributions of the uncertainty set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Joint
from funnel.data.joint import FloatArray
from funnel.measure.adversary import LEAST_ORDER, Adversary
from funnel.measure.robust import Search
from funnel.mechanisms.base import Solved
from funnel.mechanisms.naming import round_named
from funnel.notions import Ldp, RobustDemand

if TYPE_CHECKING:
    from funnel.optimise.certificate import Certificate
    from funnel.optimise.cone import Cone
    from funnel.optimise.convex.cone import SeparationOracle
    from funnel.optimise.convex.search import Closed

_SMALL = 16
"""Values of X up to which rows are found sooner one by one than by way of polytopes."""
_POLYTOPES = 0.3
"""Share of the time that polytopes get where there are more: a protocol that is there whatever comes of the rest."""
_FINISH = 0.95
"""Share of the time after which only rounding is left to do."""
_MARGIN = 0.95
"""Share of the gap asked for that the search may leave, as rounding to integers costs a little."""
_LEAST = 0.01
"""Share of H(X), in units of the gap, below which nothing is worth looking for, however little can be told."""
_ABOVE = 1e-12
"""Relative amount above e^ε to which inequalities are made, so that rounding errors take nothing from the bound."""
_ROOM = 1e-6
"""Share of noise that makes room to round in, at first."""
FEW = 12
"""Values of X up to which an integer program looks for fewer bits: inequalities are too many for more."""
_NEAR = 0.1
"""Inequalities that rows miss by less, in units of the all-ones vector, are heeded in rounding."""


def exactly_robust(joint: Joint, demand: RobustDemand, time_limit: float, gap: float) -> Solved:
    """The most informative robust protocol found, and a certified bound of all there are (mathematics, section 5).

    The exact constraint on a row is R1·v_s <= e^ε R2·v_s' for all (R1, R2) that occur together in F: a convex cone,
    known by the worst pairs of single rows. It ends when bound and value differ by the share `gap` of the value, or
    with the time. Where orders below one half make the pairs no convex set, polytopes have the last word. Raises
    SolverError.
    """
    from funnel.optimise.budget import Budget
    from funnel.optimise.convex.search import close_in

    prior, known = joint.table().sum(axis=0) / joint.rows, adversary(demand)
    if known is None:
        return _by_polytopes(joint, demand, time_limit, gap)
    budget, ceiling = Budget(_FINISH * time_limit), demand.ceiling()
    start = None
    if len(prior) > _SMALL:
        start = _start(demand, prior, _POLYTOPES * time_limit, gap)
    least = _LEAST * gap * float(-(prior @ np.log(prior)))
    share = gap * _MARGIN
    closed = close_in(known, prior, budget=budget, tolerance=least, share=share, ceiling=ceiling, start=start)
    protocol, shape = within(closed.protocol, known, prior, lambda mixed: _exceeds(mixed, demand))
    how = f"rows priced against {closed.inequalities:,} worst cases and {closed.nodes:,} boxes"
    bound, certificate, public = _bounded(closed, demand)
    return Solved(
        round_named(protocol, shape, joint, demand, choose=len(prior) <= FEW),
        bound,
        how,
        certificate,
        about="public" if public else "secret",
    )


def adversary(demand: RobustDemand) -> Adversary | None:
    """What finds the worst pairs of single rows; None where the estimate stands alone, or pairs are no convex set."""
    radius, order = demand.ball
    if radius == 0 or order < LEAST_ORDER or len(demand.table) < 2:
        return None
    return Adversary(demand.table, demand.possible, radius, order, demand.notion.ratio * (1 + _ABOVE))


def polytope(joint: Joint, demand: RobustDemand) -> Cone:
    """The cone that serves where there is no adversary: of the estimate where it stands alone, else of boxes."""
    if demand.radius == 0:
        return Ldp(notion="ldp", epsilon=demand.notion.epsilon).demand(joint, {}, 0).cone()
    return demand.cone()


def _start(demand: RobustDemand, prior: FloatArray, time_limit: float, gap: float) -> FloatArray:
    """The best protocol found over boxes."""
    from funnel.optimise.groups import maximise_groups, serves
    from funnel.optimise.solve import maximise

    ceiling = demand.ceiling()
    if serves(demand.sets):
        ratio = demand.notion.ratio
        return maximise_groups(demand.sets, ratio, prior, budget=time_limit, ceiling=ceiling).protocol
    return maximise(demand.cone(), prior, budget=time_limit, gap=gap, ceiling=ceiling).protocol


def _bounded(closed: Closed, demand: RobustDemand) -> tuple[float, Certificate | None, bool]:
    """The lower of two bounds, what shows it if that was kept, and whether that is about public values."""
    ceiling, found = demand.ceiling(), closed.certificate
    if ceiling <= found.bound:
        return max(ceiling, closed.value), demand.ceiling_certificate(), False
    return max(found.bound, closed.value), None if found.proof is None else found, True


def _by_polytopes(joint: Joint, demand: RobustDemand, time_limit: float, gap: float) -> Solved:
    """The estimate alone is a polytope; other sets are within boxes, and the estimate bounds them."""
    from funnel.optimise.solve import maximise

    prior, ceiling = joint.table().sum(axis=0) / joint.rows, demand.ceiling()
    cone = polytope(joint, demand)
    found = maximise(cone, prior, budget=time_limit, gap=gap, ceiling=ceiling)
    protocol, how = round_named(found.protocol, cone, joint, demand), f"{found.method}, {found.rays:,} rows"
    if demand.radius == 0:
        return Solved(protocol, found.bound, how, found.certificate)
    return Solved(protocol, ceiling, how, demand.ceiling_certificate(), about="secret")


def within(
    protocol: FloatArray, known: SeparationOracle, prior: FloatArray, exceeds: Callable[[FloatArray], bool]
) -> tuple[FloatArray, Cone]:
    """The protocol mixed with noise, by one share for all rows, until it is robust with room to round; and its cone.

    `exceeds` has the last word on that. The cone is that of the worst inequalities of the rows.
    """
    from funnel.optimise.cone import Cone

    chance = protocol @ prior
    excess, inequalities = known.worst(protocol / chance[:, None])
    least, room = float(excess.max(initial=0.0)), _ROOM
    while True:
        share = min(least + room, 1.0)
        mixed = protocol + share * (np.outer(chance, np.ones(len(prior))) - protocol)
        if share == 1 or not exceeds(mixed):
            break
        room *= 2
    near = inequalities[excess > -_NEAR]
    return mixed, Cone(np.concatenate([near, _at_the_estimate(known, len(prior))]))


def _exceeds(protocol: FloatArray, demand: RobustDemand) -> bool:
    """Whether a real protocol (b, a) exceeds e^ε anywhere in F, as the measurement sees it."""
    search = Search.of(demand.table, protocol[:, None, :], demand.possible, *demand.ball)
    return search.exceeds(demand.notion.ratio)


def _at_the_estimate(known: SeparationOracle, size: int) -> FloatArray:
    """The inequalities of constant rows."""
    _, inequalities = known.worst(np.ones((1, size)))
    return np.asarray(inequalities[0])
