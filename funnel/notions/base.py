"""What every privacy notion offers: what it asks of one block's rows, and its measure of a whole release.

A notion is one file beside this one. Everything that other rooms need to know of it they ask it here: they never name
a notion, nor ask for its type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from funnel.data import AnyProtocol, Joint
from funnel.data.arrange import together
from funnel.data.channel import Channel
from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import ExactArray
from funnel.data.unary import UnaryProtocol
from funnel.errors import InternalError
from funnel.measure.exact import Epsilon
from funnel.measure.leakage import AnyLeakage
from funnel.notions.change import Judged, ordered
from funnel.notions.shape import Foreseen, Shape

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from funnel.format.robust import RobustFile
    from funnel.optimise.certificate import Certificate
    from funnel.optimise.cone import Cone
    from funnel.optimise.convex.cone import SeparationOracle
    from funnel.optimise.cost import Extent

MAX_EPSILON = 100.0
"""Nats beyond which no promise is left to make, and e^ε no longer fits a number."""
Nats = Annotated[
    float,
    Field(
        gt=0,
        le=MAX_EPSILON,
        allow_inf_nan=False,
        description="Bound of the notion, in nats; smaller is more private",
    ),
]
MOST_STEPS = 1 << 23
"""Products of whole numbers for which one composed channel is measured."""
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Split = Literal["equal", "optimal"] | dict[str, Share]


class Demand(ABC):
    """What a notion asks of the protocol of one block, whatever else is released.

    `notion` carries the block's own epsilon.
    """

    notion: Notion

    @abstractmethod
    def cone(self) -> Cone:
        """The rows Q[y, ·] (a,) that are allowed."""

    @abstractmethod
    def keeps(self, weights: IntArray) -> bool:
        """Whether integer weights W[y, s|1, x] keep the bound, in exact arithmetic."""

    def keeps_sets(self, protocol: UnaryProtocol) -> bool:
        """The same of unary encoding, whose outputs are too many to write out."""
        raise InternalError(f"{self.notion.notion} does not measure unary encoding")

    @property
    def cone_is_all(self) -> bool:
        """Whether every protocol that keeps the bound has its rows in the cone, so that its optimum is the optimum."""
        return True

    def each_table(self) -> Sequence[ExactArray] | None:
        """The tables N[s, x] (c, a) that the bound must hold for, each by itself; None where it is not about tables."""
        return None

    def oracle(self) -> SeparationOracle | None:
        """What tells the inequalities of rows where they are too many for a list; None where `cone` tells them."""
        return None

    def rays(self, prior: FloatArray) -> csr_array | None:
        """All extreme rays (k, a) of the cone with prior·r = 1, where theory lists them."""
        return None

    def ceiling(self) -> float | None:
        """An upper bound of I(X;Y) in nats, over all that keep the bound, which is known beforehand."""
        return None

    def ceiling_certificate(self) -> Certificate | None:
        """What shows the ceiling, where it is one: how much a channel on the secret may tell about the secret."""
        return None


@dataclass(frozen=True)
class Implied:
    """A bound that follows from another one: the notion's name, its nats, its parameters, and why."""

    notion: str
    epsilon: float
    why: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Amiss:
    """A key of `privacy` that another part of the policy does not allow: the error's code, what is said, what helps.

    `of_key` says that the key has no place there at all, whatever its value.
    """

    key: str
    code: str
    said: str
    advice: str
    of_key: bool


class Notion(BaseModel, ABC):
    """A privacy notion with its parameters; validated straight from the policy's `privacy` section."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    measure: ClassVar[str] = "lip"
    """The leakage that epsilon bounds, as the manifest names it."""
    certified: ClassVar[bool] = False
    """Whether that leakage is known only from above, by a certificate, and not as an exact ratio."""
    exact_zero: ClassVar[bool] = False
    """Whether the notion asks for equality, so that no rounding is small enough to be ignored."""
    linear: ClassVar[bool] = True
    """Whether the notion constrains every row by itself, linearly: only then is there a cone of rows."""
    of_one_table: ClassVar[bool] = False
    """Whether its measure follows from the counts N[s, y] of what is released alone, whatever else is known of it."""
    secret_may_be_public: ClassVar[bool] = False
    """Whether the sensitive columns may also be released, through the protocol."""
    secret_may_be_read: ClassVar[bool] = False
    """Whether a draw that reads the hidden secret as well as x can keep the notion."""
    between_values: ClassVar[bool] = False
    """Whether it bounds odds between true values, so that only records are compared that are drawn for at all."""
    sets: ClassVar[Literal["no", "alone", "beside"]] = "no"
    """Whether unary encoding, whose outputs are sets, is measured: of a single block alone, or beside others too."""

    no_beliefs: ClassVar[str] = "is not measured over all beliefs that round alike"
    """Why no protocol is made for it from rounded beliefs (`data.beliefs`), after its name; empty where one is."""

    looser: ClassVar[str] = "a larger epsilon"
    """What a policy may ask for instead, where nothing that says anything keeps the bound."""

    promises: ClassVar[tuple[str, ...]] = ("epsilon",)
    """The parameters that the promise is made of, in the order in which a change of them is told."""

    notion: str
    epsilon: float
    split: Split = Field("equal", description="How epsilon is shared over the public blocks")

    @abstractmethod
    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """What block `index` must keep, given the protocols of the blocks already `released`."""

    @abstractmethod
    def leakage(self, channel: Channel) -> AnyLeakage:
        """The exact leakage of a whole release in this notion's own measure."""

    def leakage_at(self, channel: Channel) -> tuple[str, AnyLeakage]:
        """The leakage for the channel's own distribution alone, and the name of its measure."""
        return self.measure, self.leakage(channel)

    def holds(self, channel: Channel, leakage: AnyLeakage | None = None) -> bool:
        """Whether a whole release keeps all that the notion asks, exactly; `leakage` is its own, where known."""
        return (self.leakage(channel) if leakage is None else leakage).within(self.bound)

    def measuring_steps(self, joint: Joint) -> int:
        """Products of whole numbers for which composed releases of these records are worth measuring."""
        return MOST_STEPS

    def can_measure(self, protocols: Sequence[AnyProtocol]) -> bool:
        """Whether the weights of composed releases are of a size that the notion measures."""
        return True

    def most(self, joint: Joint) -> AnyLeakage | None:
        """What no release whatever of these records leaks more than; None where nothing is known beforehand."""
        return None

    def of_answers(self, answers: ExactArray) -> AnyLeakage | None:
        """The leakage of T[s, y] (c, b) that lists all that everybody answers, `absent` among it.

        None where more is asked than such a table says.
        """
        return None

    @property
    def no_absence(self) -> str:
        """Why no bound is known of what being absent tells, to stand behind the notion's name; empty where one is."""
        return "is not measured over those who are absent"

    def of_absence(self, where: Joint, whole: Joint | None) -> AnyLeakage | None:
        """What being in which releases tells by itself, from N[s, p] and from `whole`, N[s, x_1, …, x_k, p].

        A bound to which that of the answers within one p is added; None where no finite one is known. `whole` is None
        where some value has no label.
        """
        return None

    def implies(self) -> Iterator[Implied]:
        """Bounds of other notions that follow from this one at once; `implications` follows them further."""
        yield from ()

    def covers(self, other: Self) -> bool:
        """Whether this bound is at least as strong as another one of the same notion."""
        return self.epsilon <= other.epsilon

    def needed(self, channel: Channel, leakage: float) -> dict[str, float]:
        """What its bounds in nats would have to be for a channel of this leakage to keep them, by the policy's key."""
        return {"epsilon": leakage}

    def changed(self, key: str, new: Self) -> Judged:
        """What a change of one of the parameters in `promises`, from here to `new`, makes of the promise."""
        if key != "epsilon":
            raise InternalError(f"{self.notion} does not judge a change of {key}")
        said = ("a larger bound promises less", "a smaller bound promises more")
        return ordered(self.epsilon, new.epsilon, *said)

    def arrange(self, joint: Joint, minimum: int) -> Arranged:
        """Settle what depends on the table: which blocks are sanitised one by one, and the notion's own choices.

        `minimum` is the number of records that every value of a block needs. The default keeps the policy's
        blocks, but makes one of all where the secret is released too: such a record is one value x = (s, u),
        and nothing of it can be drawn apart.
        """
        ahead = self.foresee(Shape.of(joint), minimum)
        return Arranged(together(joint) if ahead.together else joint, self, ahead.why)

    def foresee(self, shape: Shape, minimum: int) -> Foreseen:
        """What `arrange` will make of the policy's blocks on a table of this shape."""
        if len(shape.blocks) > 1 and shape.secret_public:
            return Foreseen(True, "the secret is released too, so all public columns are one alphabet")
        return Foreseen(False, "")

    def resettled(self, parameters: Mapping[str, Any]) -> Self:
        """The notion with the choices that another night settled (`parameters` as a lock has them), for new counts."""
        return self

    def noise_width(self, rate: Fraction, cells: int) -> int | None:
        """What discrete Laplace noise of this rate is taken to stay within, in all cells; None where none is needed."""
        return None

    def over_noise(self, counts: IntArray, width: int | None, rows: int) -> Self:
        """The notion for noisy counts (m,) of so many `rows`, to hold for the true ones as well where it can.

        Raises PlanError where the noise leaves nothing to promise.
        """
        return self

    def over_kept_noise(self, parameters: Mapping[str, Any]) -> Self:
        """The notion for the noisy counts of a lock, which settled it with these `parameters`."""
        return self

    @classmethod
    def amiss_over_noise(cls, privacy: Mapping[str, Any]) -> Iterator[Amiss]:
        """Keys of the section that do not go with a private estimate."""
        yield from ()

    def extent(self, secret: int, shape: Shape, solved: tuple[int, ...], index: int) -> Extent | None:
        """How large the cone of block `index` can be, before data are seen; None where there is no cone.

        `solved` are the cardinalities of the blocks as they are sanitised, `shape` is that of the policy's.
        """
        return None

    def knows_beyond(self, columns: set[str]) -> bool:
        """Whether it is about people who may know columns, some of these, that only earlier releases have."""
        return False

    @property
    def asks_own(self) -> bool:
        """Whether it asks what somebody knows of a column's own values, where coarser ones are released."""
        return False

    @property
    def adds_up(self) -> bool:
        """Whether demands kept at shares of epsilon, block after block, add up to the notion at epsilon."""
        return True

    def parameters(self) -> dict[str, Any]:
        """What defines a settled notion beside epsilon, for the manifest; JSON values."""
        return {}

    def asked(self) -> dict[str, Any]:
        """The same as a policy asks for it, with its defaults and without what follows from the counts."""
        return self.model_dump(mode="json", exclude={"notion", "epsilon", "split"})

    def certificate(self, channel: Channel) -> RobustFile | None:
        """The numbers that show the leakage of a whole release to who does not search; None where none are needed."""
        return None

    @property
    def unmeasured(self) -> str:
        """What of its promise the figure of several releases says nothing about; empty where it says all."""
        return ""

    @property
    def exact_epsilon(self) -> Epsilon:
        """Epsilon as the decimal that it is written as."""
        return Epsilon.of(self.epsilon)

    @property
    def ratio(self) -> float:
        """e^ε as a double, for a search alone: what is found is measured against `bound`."""
        return self.exact_epsilon.factor()

    @property
    def bound(self) -> Fraction:
        """What `leakage` may be at most: for a worst case the ratio e^ε, from below."""
        return self.exact_epsilon.ratio_below()

    def at(self, epsilon: float) -> Self:
        """The same notion with another epsilon, and in proportion whatever goes with it."""
        return self.model_copy(update={"epsilon": epsilon})

    def asked_at(self, epsilon: float) -> Self | None:
        """As a policy would ask for it with this epsilon and all else as it is; None where it cannot."""
        return self.model_copy(update={"epsilon": epsilon})


@dataclass(frozen=True, eq=False)
class Arranged:
    """The joint distribution in the blocks that are sanitised, the settled notion, and why ("": as it was)."""

    joint: Joint
    notion: Notion
    why: str = ""
