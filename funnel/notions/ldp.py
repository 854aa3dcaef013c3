"""Local differential privacy of the secret: no odds between two of its values move by more than e^ε."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from funnel.data.channel import ExactArray
from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.notions.base import Epsilon, TableNotion, conditionals
from funnel.optimise.cone import Cone


class Ldp(TableNotion):
    """ε-LDP with respect to S ([DS] Definition 1): P(y|s) <= e^ε P(y|s') for all s, s', y."""

    secret_may_be_public: ClassVar[bool] = True
    measure: ClassVar[str] = "ldp"

    notion: Literal["ldp"]
    epsilon: Epsilon

    def cone_of(self, table: ExactArray) -> Cone:
        """c(c-1) inequalities: Σ v p_{x|s} <= e^ε Σ v p_{x|s'}."""
        given, _ = conditionals(table)
        return Cone.of_odds(given, math.exp(self.epsilon))

    def constraints_of(self, secret: int) -> int:
        """c(c-1)."""
        return secret * (secret - 1)

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max ln P(y|s)/P(y|s')."""
        return measures.ldp(table)
