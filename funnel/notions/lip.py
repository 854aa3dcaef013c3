"""Local information privacy: no belief about the secret moves by more than a factor e^ε."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from funnel.data.channel import ExactArray
from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.notions.base import Epsilon, TableNotion, conditionals
from funnel.optimise.cone import Cone


class Lip(TableNotion):
    """ε-LIP with respect to S ([DS] Definition 2): e^-ε <= P(s|y)/P(s) <= e^ε for all s, y."""

    notion: Literal["lip"]
    epsilon: Epsilon

    def cone_of(self, table: ExactArray) -> Cone:
        """2c inequalities: Σ v p_{x|s} <= e^ε Σ v p_x and e^-ε Σ v p_x <= Σ v p_{x|s}."""
        return belief_cone(table, self.epsilon)

    def constraints_of(self, secret: int) -> int:
        """2c."""
        return 2 * secret

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max |ln P(y|s)/P(y)|."""
        return measures.lip(table)


def belief_cone(table: ExactArray, epsilon: float) -> Cone:
    """Rows under which no belief moves by more than a factor e^ε, where records are distributed as N[s, x] (c, a)."""
    given, prior = conditionals(table)
    return Cone(np.vstack([given - math.exp(epsilon) * prior, math.exp(-epsilon) * prior - given]))
