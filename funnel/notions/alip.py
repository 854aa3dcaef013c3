"""Asymmetric local information privacy: no belief rises by more than e^ε, or falls by more than e^lower."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from funnel.data.channel import Channel
from funnel.data.subsets import ReleasedTable
from funnel.measure import leakage as measures
from funnel.measure.exact import Epsilon, added
from funnel.notions.base import MAX_EPSILON, Implied, Nats
from funnel.notions.believed import Limit
from funnel.notions.change import Judged, ordered
from funnel.notions.pml import RISES
from funnel.notions.tables import TableNotion


class Alip(TableNotion):
    """(ε, lower)-ALIP about S: e^-lower <= P(s|y)/P(s) <= e^ε for all s, y, with lower >= ε.

    Without `lower` it is PML: a secret value may be ruled out. Since lower >= ε, a channel keeps it exactly where its
    pointwise maximal leakage, the notion's own measure, is at most ε and its LIP leakage at most `lower`.
    """

    measure: ClassVar[str] = "alip"
    promises: ClassVar[tuple[str, ...]] = ("epsilon", "lower")
    sets: ClassVar[Literal["no", "alone", "beside"]] = "beside"
    no_beliefs: ClassVar[str] = ""

    notion: Literal["alip"]
    epsilon: Nats
    lower: Annotated[float, Field(gt=0, le=MAX_EPSILON, allow_inf_nan=False)] | None = Field(
        None, description="Bound in nats of how far a belief may fall, epsilon or more; none where absent"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Alip:
        """A smaller `lower` would bound the rise as well."""
        if self.lower is not None and self.lower < self.epsilon:
            raise PydanticCustomError("wrong-value", "`lower` is `epsilon` or more", {"at": ("lower",)})
        return self

    @property
    def unmeasured(self) -> str:
        """The fall."""
        return RISES

    def limits(self, secret: int) -> Sequence[Limit]:
        """c or 2c inequalities: Σ v p_{x|s} <= e^ε Σ v p_x, and Σ v p_x <= e^lower Σ v p_{x|s}."""
        rises = Limit.rises(secret, self.exact_epsilon)
        return (rises,) if self.lower is None else (rises, Limit.falls(secret, Epsilon.of(self.lower)))

    def constraints_of(self, secret: int) -> int:
        """c, or 2c."""
        return secret if self.lower is None else 2 * secret

    def leakage_of(self, table: ReleasedTable) -> measures.Leakage:
        """max ln P(s|y)/P(s)."""
        return measures.pml(table)

    def table_keeps(self, table: ReleasedTable) -> bool:
        """Both halves."""
        return super().table_keeps(table) and self._falls_within(table)

    def holds(self, channel: Channel, leakage: measures.AnyLeakage | None = None) -> bool:
        """Both halves."""
        return super().holds(channel, leakage) and self._falls_within(channel.table)

    def _falls_within(self, table: ReleasedTable) -> bool:
        """Whether no belief falls by more than e^lower, given that none rises by more than e^ε."""
        if self.lower is None:
            return True
        return measures.lip(table).within(Epsilon.of(self.lower).ratio_below())

    def needed(self, channel: Channel, leakage: float) -> dict[str, float]:
        """Those of both that it does not keep."""
        if self.lower is None:
            return super().needed(channel, leakage)
        asked = {"epsilon": (leakage, self.epsilon), "lower": (measures.lip(channel.table).nats, self.lower)}
        return {key: nats for key, (nats, bound) in asked.items() if nats > bound} or super().needed(channel, leakage)

    def implies(self) -> Iterator[Implied]:
        """The bound of the rise alone; the larger of both, either way."""
        yield Implied("pml", self.epsilon, "the rise of beliefs is bounded alike")
        if self.lower is not None:
            yield Implied("lip", self.lower, "`lower` bounds both ways")
            yield Implied("ldp", added(self.epsilon, self.lower), "odds change by a rise and a fall at most")

    def covers(self, other: Self) -> bool:
        """Both bounds are at least as strong; an absent `lower` promises nothing."""
        falls = other.lower is None or (self.lower is not None and self.lower <= other.lower)
        return super().covers(other) and falls

    def changed(self, key: str, new: Self) -> Judged:
        """No `lower` is an endless one."""
        if key == "epsilon":
            return super().changed(key, new)
        before, after = (math.inf if one.lower is None else one.lower for one in (self, new))
        return ordered(before, after, "beliefs may fall further", "beliefs may fall less far")

    def parameters(self) -> dict[str, Any]:
        """`lower`, None where absent."""
        return {"lower": self.lower}

    def at(self, epsilon: float) -> Self:
        """Both bounds in the same proportion: along a chain of blocks, rises and falls add up."""
        lower = None if self.lower is None else max(self.lower * epsilon / self.epsilon, epsilon)
        return self.model_copy(update={"epsilon": epsilon, "lower": lower})

    def asked_at(self, epsilon: float) -> Self | None:
        """With the bound on the fall as it is, which is never below that on the rise."""
        possible = self.lower is None or self.lower >= epsilon
        return self.model_copy(update={"epsilon": epsilon}) if possible else None
