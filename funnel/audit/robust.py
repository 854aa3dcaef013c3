"""Robust LDP: a certified bound of P(y|s)/P(y|s') over all distributions in an uncertainty set ([RLDP] Definition 1).

P_{X|s} ranges over a ball around the estimate, the projection of F, which bounds every ratio by a quotient of two
`ends`. Two secret values cannot both use up the whole radius, and from order one half on `pairs` makes use of that.
"""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.apart import Apart
from funnel.audit.findings import broken
from funnel.audit.pairs import LEAST_ORDER, Together
from funnel.audit.protocols import Block
from funnel.audit.uncertainty import Uncertainty

MOST_WORK = 20_000_000
"""Numbers in all rows, as every secret value sees them, beyond which nothing is measured."""


def robust_ratio(block: Block, uncertainty: Uncertainty) -> Fraction | None:
    """A rational at or above P(y|s)/P(y|s') for all y, s, s' and P in F; None where none is known.

    Within 10^-9 of the largest such ratio from order one half on; below, of what the projections of F allow.
    Raises AuditFailure where the protocol is too large.
    """
    work = len(block.outputs) * sum(len(one.places) for one in uncertainty.seen)
    if work > MOST_WORK:
        raise broken(
            "protocol.json",
            "the protocol is too large to be measured over all distributions: nothing is proven",
            expected=f"at most {MOST_WORK} weights",
            found=work,
        )
    apart = Apart(block, uncertainty)
    worst = apart.largest()
    alone = len(uncertainty.seen) < 2 or uncertainty.order < LEAST_ORDER or uncertainty.radius == 0
    return worst if worst is None or alone else min(worst, Together(apart, worst).largest())
