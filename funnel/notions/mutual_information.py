"""Bounded mutual information: what is learnt about the secret on average, not in the worst case."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from funnel.data import Joint
from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.errors import InternalError
from funnel.measure.leakage import Average, information_above, information_within
from funnel.notions.base import Nats
from funnel.notions.tables import TableNotion

if TYPE_CHECKING:
    from funnel.optimise.cone import Cone


class MutualInformation(TableNotion):
    """I(S;Y) <= ε, the privacy funnel's own bound ([PF] equation 3). Single records may be affected more.

    Several blocks: I(S;Y_j | Y_1, …, Y_{j-1}) <= ε_j adds up by the chain rule, and holds for the average where it
    holds for every combination of earlier outputs.
    """

    linear: ClassVar[bool] = False
    no_beliefs: ClassVar[str] = "is an average, whose largest value over all beliefs that round alike is not bounded"
    measure: ClassVar[str] = "mutual_information"

    notion: Literal["mutual-information"]
    epsilon: Nats

    def cone_of(self, table: ExactArray) -> Cone:
        """There is none: an average does not constrain rows one by one. Raises InternalError."""
        raise InternalError("mutual information has no cone of rows")

    def constraints_of(self, secret: int) -> int:
        """None on rows one by one."""
        return 0

    def leakage_of(self, table: ReleasedTable) -> Average:
        """I(S;Y), certified from above."""
        return Average(information_above(_counted(table)))

    def table_keeps(self, table: ReleasedTable) -> bool:
        """Whether I(S;Y) is certainly at most ε."""
        return information_within(_counted(table), self.bound)

    def most(self, joint: Joint) -> Average:
        """H(S): on average nobody can learn more."""
        by_secret = np.bincount(joint.cells[:, 0], weights=joint.counts).astype(np.int64)
        return Average(information_above(np.diag(by_secret)))

    @property
    def bound(self) -> Fraction:
        """ε itself, as the decimal that it is written as."""
        return self.exact_epsilon.nats


def _counted(table: ReleasedTable) -> ExactArray:
    """A table that lists all its outputs."""
    if isinstance(table, Subsets):
        raise InternalError("mutual information with the secret is not measured over sets")
    return table
