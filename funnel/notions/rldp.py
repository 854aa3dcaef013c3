"""Robust local differential privacy: LDP of the secret for every distribution that the estimate leaves possible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from funnel.data import AnyProtocol, Joint
from funnel.data.arrange import possible, together
from funnel.data.channel import Channel
from funnel.data.joint import IntArray
from funnel.errors import InternalError, PlanError
from funnel.measure import leakage as measures
from funnel.measure.exact import rational
from funnel.notions.base import Amiss, Arranged, Implied, Nats, Notion
from funnel.notions.change import Judged, ordered
from funnel.notions.robust import RobustDemand
from funnel.notions.shape import Foreseen, Shape

if TYPE_CHECKING:
    from funnel.format.robust import RobustFile
    from funnel.optimise.cost import Extent

CONFIDENCE = 0.95
"""Chance that the truth lies in the uncertainty set, where the policy does not say."""
LEAST_RADIUS = 1e-12
"""Nats; nobody measures a smaller ball around the estimate."""
ROBUST_STEPS = 1 << 17
"""Products of whole numbers for which a composed channel is measured."""
MOST_RADIUS = 100.0
"""Nats; a larger ball holds every distribution of use."""


class Rldp(Notion):
    """(ε, F)-RLDP ([RLDP] Definition 1): P(y|s) <= e^ε P(y|s') for all s, s', y and every P in F.

    F = {P : D_α(P̂ || P) <= B} holds all distributions within a Rényi divergence of the estimate. B follows from
    `confidence`, or is given as `radius`.
    """

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["confidence", "radius"]}})

    secret_may_be_public: ClassVar[bool] = True
    measure: ClassVar[str] = "rldp"
    certified: ClassVar[bool] = True
    no_beliefs: ClassVar[str] = "holds for a set of distributions already, whose size it settles by itself"
    promises: ClassVar[tuple[str, ...]] = ("epsilon", "order", "confidence", "radius")

    notion: Literal["rldp"]
    epsilon: Nats
    confidence: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = Field(
        None,
        description="Probability that the truth lies in the uncertainty set; 0.95 where no radius is given",
    )
    order: float = Field(
        2.0, ge=0.01, le=100, allow_inf_nan=False, description="Order of the Rényi divergence"
    )
    radius: Annotated[float, Field(ge=0, le=MOST_RADIUS, allow_inf_nan=False)] | None = Field(
        None, description="Radius of the uncertainty set in nats, instead of a confidence"
    )

    @model_validator(mode="after")
    def _one_of(self) -> Rldp:
        """The radius follows from the confidence; both would be two claims. Radii have twelve decimals."""
        if self.radius is not None and self.confidence is not None:
            raise PydanticCustomError(
                "wrong-value", "give `confidence` or `radius`, not both", {"at": ("radius",)}
            )
        if self.radius is not None and 0 < self.radius < LEAST_RADIUS:
            raise PydanticCustomError(
                "wrong-value",
                "the radius must be 0, for the estimate alone, or {least} or more",
                {"at": ("radius",), "least": f"{LEAST_RADIUS:g}"},
            )
        return self

    def arrange(self, joint: Joint, minimum: int) -> Arranged:
        """All public columns are one alphabet, since F is about whole records; the radius is settled."""
        whole, why = together(joint), self.foresee(Shape.of(joint), minimum).why
        return Arranged(whole, self.settled(whole), why)

    def settled(self, joint: Joint) -> Rldp:
        """The notion with the radius that its confidence asks for on a joint of one block."""
        if self.radius is not None:
            return self
        from funnel.measure.uncertainty import radius

        found = radius(self._sure, self.order, joint.rows, record_cells(joint))
        return self._with(found)

    @property
    def _sure(self) -> float:
        """The confidence asked for, or the one that is usual."""
        return CONFIDENCE if self.confidence is None else self.confidence

    def _with(self, radius: float) -> Self:
        """The notion with the radius that follows from its confidence."""
        return self.model_copy(update={"confidence": self._sure, "radius": radius})

    def noise_width(self, rate: Fraction, cells: int) -> int:
        """With half of the chance that the confidence leaves."""
        from funnel.measure.uncertainty import noise_width

        return noise_width(rate, cells, self._sure)

    def over_noise(self, counts: IntArray, width: int | None, rows: int) -> Self:
        """The radius that holds the truth in spite of sampling and noise (`measure.widening`). Raises PlanError."""
        from funnel.measure.uncertainty import widened

        if width is None:
            raise InternalError("an uncertainty set over noise whose width is not known")
        found = widened(counts, width, rows, self._sure)
        if found > MOST_RADIUS:
            raise PlanError(
                "nothing-to-release",
                "the noise leaves every distribution possible: no uncertainty set of use holds the true one",
                advice="Accept a larger `estimate.epsilon`, declare fewer values, or take a notion that is not robust.",
            )
        return self._with(found)

    def over_kept_noise(self, parameters: Mapping[str, Any]) -> Self:
        """The lock's uncertainty set."""
        return self.model_copy(update={key: parameters[key] for key in ("confidence", "radius")})

    @classmethod
    def amiss_over_noise(cls, privacy: Mapping[str, Any]) -> Iterator[Amiss]:
        """The uncertainty set is widened by a chi-square argument, which is about order 2 and a confidence."""
        if "radius" in privacy:
            said = "over a private estimate the radius follows from the confidence and the noise"
            yield Amiss("radius", "wrong-value", said, "Write `confidence` instead.", True)
        if privacy.get("order", 2) != 2:
            said = "over a private estimate only uncertainty sets of order 2 are offered"
            yield Amiss("order", "unsupported", said, "Leave `order` out.", False)

    def foresee(self, shape: Shape, minimum: int) -> Foreseen:
        """Several blocks become one."""
        several = len(shape.blocks) > 1
        return Foreseen(several, "the uncertainty set is about whole records" if several else "")

    def extent(self, secret: int, shape: Shape, solved: tuple[int, ...], index: int) -> Extent:
        """The cone of boxes, with its auxiliary variables; each group of records is all of U, or of X."""
        from funnel.optimise.cost import Extent

        (size,) = solved
        members = size if shape.secret_public else secret * size
        return Extent(size, secret * (secret - 1) + 4 * members, size, 2 * (secret + members))

    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> RobustDemand:
        """What the one block must keep."""
        if released or len(joint.blocks) > 1:
            raise ValueError("robust privacy is about one block of whole records")
        settled = self.settled(joint)
        return RobustDemand(settled, joint, settled.exact())

    def leakage(self, channel: Channel) -> measures.Leakage:
        """A certified upper bound of max ln P(y|s)/P(y|s') over all P in F."""
        from funnel.measure.robust import robust_leakage

        return robust_leakage(
            channel.joint.table(), _weights(channel), possible(channel.joint), *self.exact()
        )

    def certificate(self, channel: Channel) -> RobustFile:
        """What shows that leakage to be no larger."""
        joint, bound = channel.joint, self.leakage(channel).ratio
        if bound is None:
            raise InternalError("a release without a bound is to be certified")
        from funnel.measure.robust import robust_certificate

        return robust_certificate(joint.table(), _weights(channel), possible(joint), *self.exact(), bound)

    def leakage_at(self, channel: Channel) -> tuple[str, measures.Leakage]:
        """LDP at the channel's own distribution: what holds for a set of them is compared with one."""
        return "ldp", measures.ldp(channel.table)

    @property
    def unmeasured(self) -> str:
        """The sets of earlier counts, which a confidence may have made wider; a radius is asked for as it is."""
        if self.asked()["confidence"] is None:
            return ""
        return (
            "what all releases tell together is measured over the uncertainty set of the last one; under a "
            "distribution that only an earlier and wider set holds, they may tell more"
        )

    def measuring_steps(self, joint: Joint) -> int:
        """Fewer, as every output has its own search over the set of distributions."""
        return ROBUST_STEPS

    def can_measure(self, protocols: Sequence[AnyProtocol]) -> bool:
        """Weights of at most 62 bits."""
        return all(one.likelihoods()[0].dtype != object for one in protocols)

    def implies(self) -> Iterator[Implied]:
        """The estimate lies in every set."""
        yield Implied("ldp", self.epsilon, "the estimate is one of the distributions protected")

    def covers(self, other: Self) -> bool:
        """Epsilon is no larger, and the uncertainty set no smaller as far as the parameters tell."""
        return super().covers(other) and self._holds_set_of(other)

    def changed(self, key: str, new: Self) -> Judged:
        """A larger set of distributions is the stronger."""
        if key == "epsilon":
            return super().changed(key, new)
        if key == "order":
            single = self.radius == new.radius == 0
            return (
                ("unchanged", "of a single distribution")
                if single
                else ("incomparable", "another kind of ball")
            )
        if (self.radius is None) != (new.radius is None):
            return "incomparable", "a radius follows from a confidence only once records are counted"
        before, after = (one._sure if key == "confidence" else one.radius or 0.0 for one in (self, new))
        if before == after:
            return "unchanged", "as it is by default"
        said = ("fewer distributions are protected", "more distributions are protected")
        return ordered(before, after, *said, more_is_weaker=False)

    def _holds_set_of(self, other: Rldp) -> bool:
        """Whether the set of another bound is certainly no larger than this one, on one table."""
        mine, its = (None if one.confidence is not None else one.radius for one in (self, other))
        if its == 0 or mine == math.inf:
            return True
        if self.order != other.order or (mine is None) != (its is None):
            return False
        if mine is not None and its is not None:
            return its <= mine
        return other._sure <= self._sure

    def exact(self) -> tuple[Fraction, Fraction]:
        """Radius and order as the decimals that they are written as; InternalError where the radius is not settled."""
        if self.radius is None:
            raise InternalError("the radius of an uncertainty set is used before it is settled")
        return rational(self.radius), rational(self.order)

    def parameters(self) -> dict[str, Any]:
        """The uncertainty set."""
        return {"order": self.order, "confidence": self.confidence, "radius": self.radius}

    def asked(self) -> dict[str, Any]:
        """A radius, or the confidence that it follows from."""
        if self.confidence is None and self.radius is not None:
            return {"order": self.order, "confidence": None, "radius": self.radius}
        return {"order": self.order, "confidence": self.confidence or CONFIDENCE, "radius": None}


def _weights(channel: Channel) -> IntArray:
    """The weights of the one block of whole records."""
    (protocol,) = channel.protocols
    return protocol.likelihoods()[0]


def record_cells(joint: Joint) -> int:
    """Cells of S x U: what a record can be, whether seen or not."""
    (block,) = joint.blocks
    if possible(joint).all():
        return len(joint.secret) * len(block)
    hidden = set(joint.secret.columns)
    place = [i for i, column in enumerate(block.columns) if column not in hidden]
    return len(joint.secret) * len({tuple(value[i] for i in place) for value in block.values})
