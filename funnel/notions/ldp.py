"""Local differential privacy of the secret: no odds between two of its values move by more than e^ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np

from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.notions.base import Implied, Nats
from funnel.notions.believed import Limit
from funnel.notions.tables import TableNotion


class Ldp(TableNotion):
    """ε-LDP with respect to S ([DS] Definition 1): P(y|s) <= e^ε P(y|s') for all s, s', y."""

    secret_may_be_public: ClassVar[bool] = True
    measure: ClassVar[str] = "ldp"
    sets: ClassVar[Literal["no", "alone", "beside"]] = "beside"
    no_beliefs: ClassVar[str] = ""

    notion: Literal["ldp"]
    epsilon: Nats

    def limits(self, secret: int) -> Sequence[Limit]:
        """c(c-1) inequalities: Σ v p_{x|s} <= e^ε Σ v p_{x|s'}."""
        high, low = np.nonzero(~np.eye(secret, dtype=bool))
        return (Limit(high, low, self.exact_epsilon),)

    def constraints_of(self, secret: int) -> int:
        """c(c-1)."""
        return secret * (secret - 1)

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max ln P(y|s)/P(y|s')."""
        return measures.ldp(table)

    def implies(self) -> Iterator[Implied]:
        """P(y) is a mean of the P(y|s), so LIP follows ([DS] Lemma 1); a set of one distribution is the estimate."""
        yield Implied("lip", self.epsilon, "ldp implies lip")
        yield Implied(
            "rldp", self.epsilon, "the estimate is the only distribution of the set", {"radius": 0.0}
        )
