"""Local differential privacy of the secret: no odds between two of its values move by more than e^ε."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from funnel.geometry.cone import Cone
from funnel.model import leakage
from funnel.model.channel import ExactArray
from funnel.notions.base import Epsilon, Notion, conditionals


class Ldp(Notion):
    """ε-LDP with respect to S ([DS] Definition 1): P(y|s) <= e^ε P(y|s') for all s, s', y."""

    notion: Literal["ldp"]
    epsilon: Epsilon

    def cone(self, table: ExactArray) -> Cone:
        """c(c-1) inequalities: Σ v p_{x|s} <= e^ε Σ v p_{x|s'}."""
        given, _ = conditionals(table)
        differences = given[:, None, :] - math.exp(self.epsilon) * given[None, :, :]
        return Cone(differences[~np.eye(len(given), dtype=bool)])

    def leakage(self, table: ExactArray) -> leakage.Leakage:
        """max ln P(y|s)/P(y|s')."""
        return leakage.ldp(table)
