"""Local information privacy: no belief about the secret moves by more than a factor e^ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.notions.base import Implied, Nats
from funnel.notions.believed import Limit
from funnel.notions.tables import TableNotion


class BeliefNotion(TableNotion):
    """A notion that asks LIP of every table of conditions."""

    def limits(self, secret: int) -> Sequence[Limit]:
        """2c inequalities: Σ v p_{x|s} <= e^ε Σ v p_x and e^-ε Σ v p_x <= Σ v p_{x|s}."""
        return Limit.rises(secret, self.exact_epsilon), Limit.falls(secret, self.exact_epsilon)

    def constraints_of(self, secret: int) -> int:
        """2c."""
        return 2 * secret

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max |ln P(y|s)/P(y)|."""
        return measures.lip(table)


class Lip(BeliefNotion):
    """ε-LIP with respect to S ([DS] Definition 2): e^-ε <= P(s|y)/P(s) <= e^ε for all s, y."""

    sets: ClassVar[Literal["no", "alone", "beside"]] = "beside"
    no_beliefs: ClassVar[str] = ""

    notion: Literal["lip"]
    epsilon: Nats

    def implies(self) -> Iterator[Implied]:
        """Two beliefs that each move by e^ε move their odds by e^2ε ([DS] Lemma 1); the upper half alone is PML."""
        yield Implied("ldp", 2 * self.epsilon, "lip implies ldp at twice epsilon")
        yield Implied("alip", self.epsilon, "the bound is the same both ways", {"lower": self.epsilon})
        yield Implied("mutual-information", self.epsilon, "a mean is no more than its largest part")
