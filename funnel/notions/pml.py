"""Pointwise maximal leakage about the secret: nobody becomes e^ε times surer of any secret value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.notions.base import Implied, Nats
from funnel.notions.believed import Limit
from funnel.notions.tables import TableNotion

RISES = "what releases tell together is measured as how far beliefs may rise; how far they may fall is not"
"""What a figure of several releases says nothing about, nor one that counts who is absent."""


class Pml(TableNotion):
    """ε-PML about S: P(s|y)/P(s) <= e^ε for all s, y. A secret value may be ruled out.

    The upper half of LIP ([DS] Definition 2). Users of ARX know it as β-likeness, ε = ln(1 + β).
    """

    measure: ClassVar[str] = "pml"
    sets: ClassVar[Literal["no", "alone", "beside"]] = "beside"
    no_beliefs: ClassVar[str] = ""

    notion: Literal["pml"]
    epsilon: Nats

    @property
    def unmeasured(self) -> str:
        """The fall."""
        return RISES

    def limits(self, secret: int) -> Sequence[Limit]:
        """c inequalities: Σ v p_{x|s} <= e^ε Σ v p_x."""
        return (Limit.rises(secret, self.exact_epsilon),)

    def constraints_of(self, secret: int) -> int:
        """c."""
        return secret

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max ln P(s|y)/P(s)."""
        return measures.pml(table)

    def implies(self) -> Iterator[Implied]:
        """I(S;Y) is the mean of ln P(s|y)/P(s). Of odds, and of how far a belief may fall, nothing follows."""
        yield Implied("alip", self.epsilon, "it is alip without a lower bound")
        yield Implied("mutual-information", self.epsilon, "a mean is no more than its largest part")
