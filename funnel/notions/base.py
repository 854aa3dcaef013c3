"""What every privacy notion offers: what it asks of one block's rows, and its measure of a whole release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from funnel.data import AnyProtocol, Joint
from funnel.data.arrange import tells_secret, together
from funnel.data.channel import ExactArray, given_outputs, sent
from funnel.data.joint import FloatArray, IntArray
from funnel.data.released import Channel
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.data.unary import UnaryProtocol
from funnel.errors import InternalError
from funnel.measure import clock
from funnel.measure.exact import exp_below, rational
from funnel.measure.leakage import AnyLeakage
from funnel.optimise.certificate import Certificate
from funnel.optimise.cone import Cone, intersection
from funnel.optimise.cost import Extent

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_EPSILON = 100.0
"""Nats beyond which no promise is left to make, and e^ε no longer fits a number."""
Epsilon = Annotated[
    float,
    Field(
        gt=0,
        le=MAX_EPSILON,
        allow_inf_nan=False,
        description="Bound of the notion, in nats; smaller is more private",
    ),
]
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

    def rays(self, prior: FloatArray) -> csr_array | None:
        """All extreme rays (k, a) of the cone with prior·r = 1, where theory lists them."""
        return None

    def ceiling(self) -> float | None:
        """An upper bound of I(X;Y) in nats, over all that keep the bound, which is known beforehand."""
        return None

    def ceiling_certificate(self) -> Certificate | None:
        """What shows the ceiling, where it is one: how much a channel on the secret may tell about the secret."""
        return None


class Notion(BaseModel, ABC):
    """A privacy notion with its parameters; validated straight from the policy's `privacy` section."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    exact_zero: ClassVar[bool] = False
    """Whether the notion asks for equality, so that no rounding is small enough to be ignored."""
    linear: ClassVar[bool] = True
    """Whether the notion constrains every row by itself, linearly: only then is there a cone of rows."""
    secret_may_be_public: ClassVar[bool] = False
    """Whether the sensitive columns may also be released, through the protocol."""
    measure: ClassVar[str] = "lip"
    """The leakage that epsilon bounds, as the manifest names it."""

    notion: str
    epsilon: float
    split: Split = Field("equal", description="How epsilon is shared over the public blocks")

    @abstractmethod
    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """What block `index` must keep, given the protocols of the blocks already `released`."""

    @abstractmethod
    def leakage(self, channel: Channel) -> AnyLeakage:
        """The exact leakage of a whole release in this notion's own measure."""

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

    def extent(self, secret: int, shape: Shape, solved: tuple[int, ...], index: int) -> Extent | None:
        """How large the cone of block `index` can be, before data are seen; None where there is no cone.

        `solved` are the cardinalities of the blocks as they are sanitised, `shape` is that of the policy's.
        """
        return None

    @property
    def adds_up(self) -> bool:
        """Whether demands kept at shares of epsilon, block after block, add up to the notion at epsilon."""
        return True

    def parameters(self) -> dict[str, Any]:
        """What defines a settled notion beside epsilon, for the manifest; JSON values."""
        return {}

    def holds(self, channel: Channel) -> bool:
        """Whether a whole release keeps the bound, in exact arithmetic."""
        return self.leakage(channel).within(self.bound)

    @property
    def bound(self) -> Fraction:
        """What `leakage` may be at most: for a worst case the ratio e^ε, from below."""
        return exp_below(rational(self.epsilon))

    def at(self, epsilon: float) -> Self:
        """The same notion with another epsilon."""
        return self.model_copy(update={"epsilon": epsilon})


@dataclass(frozen=True)
class Shape:
    """Cardinalities that decide how blocks are arranged.

    Sizes of the blocks, how many combinations of public values occur, in how few records one of them does, and
    whether the secret is among the public columns.
    """

    blocks: tuple[int, ...]
    combinations: int
    fewest: int
    secret_public: bool

    @classmethod
    def of(cls, joint: Joint) -> Shape:
        """The shape of a joint distribution."""
        whole = together(joint)
        fewest = int(whole.table().sum(axis=0).min())
        return cls(joint.shape[1:], len(whole.blocks[0]), fewest, tells_secret(joint))


@dataclass(frozen=True)
class Foreseen:
    """Whether all public columns will be one alphabet, and why the blocks are arranged as they are ("": as asked)."""

    together: bool
    why: str


@dataclass(frozen=True, eq=False)
class Arranged:
    """The joint distribution in the blocks that are sanitised, the settled notion, and why ("": as it was)."""

    joint: Joint
    notion: Notion
    why: str = ""


class TableNotion(Notion, ABC):
    """A notion about tables N[s, x] alone: each table of conditions must keep the bound by itself."""

    @abstractmethod
    def cone_of(self, table: ExactArray) -> Cone:
        """The rows Q[y, ·] (a,) that are allowed where records are distributed as N[s, x] (c, a)."""

    @abstractmethod
    def constraints_of(self, secret: int) -> int:
        """How many constraints one table of c secret values gives."""

    @abstractmethod
    def leakage_of(self, table: ReleasedTable) -> AnyLeakage:
        """The exact leakage of one released table T[s, y…]."""

    def table_keeps(self, table: ReleasedTable) -> bool:
        """Whether one released table keeps the bound; the same as comparing `leakage_of`, perhaps sooner."""
        return self.leakage_of(table).within(self.bound)

    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """The bound must hold for every combination of what the other blocks put out."""
        return TableDemand(self, given_outputs(joint, released, index))

    def conditions(self, shape: Shape, solved: tuple[int, ...], index: int) -> int:
        """How many tables the bound must hold for: one for all that the larger blocks, solved before, can put out."""
        return prod(size for j, size in enumerate(solved) if (-size, j) < (-solved[index], index))

    def extent(self, secret: int, shape: Shape, solved: tuple[int, ...], index: int) -> Extent | None:
        """The constraints of every table; those of one table depend on P(y|s) alone."""
        if not self.linear:
            return None
        tables, size = self.conditions(shape, solved, index), solved[index]
        rank = min(secret, size) if tables == 1 else size
        return Extent(size, tables * self.constraints_of(secret), rank)

    def leakage(self, channel: Channel) -> AnyLeakage:
        """The leakage of all outputs together."""
        return self.leakage_of(channel.table)


@dataclass(frozen=True, eq=False)
class TableDemand(Demand):
    """The bound, for each of several tables N_k[s, x] (c, a); secret values without records have no part in it."""

    notion: TableNotion
    tables: Sequence[ExactArray]

    def cone(self) -> Cone:
        """The rows that are allowed under every table."""
        return intersection([self.notion.cone_of(table) for table in self.tables])

    def keeps(self, weights: IntArray) -> bool:
        """Every table, sent through the weights, keeps the bound."""
        return all(self._kept(sent(table, weights)) for table in self.tables)

    def keeps_sets(self, protocol: UnaryProtocol) -> bool:
        """Every table, seen through the sets, keeps the bound."""
        return all(self._kept(Subsets(table, protocol)) for table in self.tables)

    def _kept(self, table: ReleasedTable) -> bool:
        """One table of maybe very many, within the time allowed."""
        clock.check()
        return self.notion.table_keeps(table)


def conditionals(table: ExactArray) -> tuple[FloatArray, FloatArray]:
    """p_{x|s} (c, a) and p_x (a,) of counts N[s, x]; secret values that do not occur are left out."""
    counts = table[table.any(axis=1)].astype(float)
    return counts / counts.sum(axis=1, keepdims=True), np.asarray(counts.sum(axis=0) / counts.sum())
