"""Perfect privacy: the released value is independent of the secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.notions.base import Implied
from funnel.notions.tables import TableNotion

if TYPE_CHECKING:
    from funnel.optimise.cone import Cone


class Perfect(TableNotion):
    """ε-LIP with ε = 0: P(s|y) = P(s) for all s, y, exactly."""

    exact_zero: ClassVar[bool] = True
    looser: ClassVar[str] = "`notion: lip` with an epsilon above zero"
    no_beliefs: ClassVar[str] = "allows only what does not depend on X, where beliefs are known up to a step"

    notion: Literal["perfect"]
    epsilon: float = Field(0.0, ge=0, le=0, description="Zero, or absent")

    def cone_of(self, table: ExactArray) -> Cone:
        """c equalities in integers: Σ_x v_x (n N[s,x] - N_s N_x) = 0."""
        from funnel.optimise.cone import Cone

        counts = table.astype(object)
        excess = counts * counts.sum() - np.outer(counts.sum(axis=1), counts.sum(axis=0))
        return Cone(
            np.zeros((0, counts.shape[1])), tuple(tuple(int(value) for value in row) for row in excess)
        )

    def constraints_of(self, secret: int) -> int:
        """c."""
        return secret

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max |ln P(y|s)/P(y)|, which must be zero."""
        return measures.lip(table)

    def implies(self) -> Iterator[Implied]:
        """LIP and LDP at zero."""
        yield Implied("lip", 0.0, "nothing is learnt")
        yield Implied("ldp", 0.0, "nothing is learnt")
