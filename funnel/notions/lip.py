"""Local information privacy: no belief about the secret moves by more than a factor e^ε."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from funnel.geometry.cone import Cone
from funnel.model import leakage
from funnel.model.channel import ExactArray
from funnel.notions.base import Epsilon, Notion, conditionals


class Lip(Notion):
    """ε-LIP with respect to S ([DS] Definition 2): e^-ε <= P(s|y)/P(s) <= e^ε for all s, y."""

    notion: Literal["lip"]
    epsilon: Epsilon

    def cone(self, table: ExactArray) -> Cone:
        """2c inequalities: Σ v p_{x|s} <= e^ε Σ v p_x and e^-ε Σ v p_x <= Σ v p_{x|s}."""
        given, prior = conditionals(table)
        return Cone(
            np.vstack([given - math.exp(self.epsilon) * prior, math.exp(-self.epsilon) * prior - given])
        )

    def leakage(self, table: ExactArray) -> leakage.Leakage:
        """max |ln P(y|s)/P(y)|."""
        return leakage.lip(table)
