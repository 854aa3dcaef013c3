"""Notions about tables N[s, x] alone: each table of conditions must keep the bound by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from funnel.data import AnyProtocol, Joint
from funnel.data.channel import Channel, given_outputs
from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import ExactArray, sent
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.data.unary import UnaryProtocol
from funnel.errors import InternalError
from funnel.measure import clock
from funnel.measure.leakage import AnyLeakage
from funnel.notions.base import Demand, Notion
from funnel.notions.believed import BelievedDemand, Limit
from funnel.notions.shape import Shape

if TYPE_CHECKING:
    from funnel.optimise.cone import Cone
    from funnel.optimise.cost import Extent


class TableNotion(Notion, ABC):
    """A notion that is asked of every table of conditions apart."""

    of_one_table: ClassVar[bool] = True
    secret_may_be_read: ClassVar[bool] = True

    def limits(self, secret: int) -> Sequence[Limit]:
        """What is asked of P(y|s) for c secret values, and of P(y), where that is all. Raises InternalError."""
        raise InternalError(f"{self.notion} is not about chances of an output one against another")

    def cone_of(self, table: ExactArray) -> Cone:
        """The rows Q[y, ·] (a,) that are allowed where records are distributed as N[s, x] (c, a): the limits."""
        from funnel.optimise.cone import Cone

        given, prior = conditionals(table)
        sides, found = np.vstack([given, prior]), list[FloatArray]()
        for one in self.limits(len(given)):
            ratio, falls = one.epsilon.factor(), (one.high == len(given)).all()
            high, low = sides[one.high], sides[one.low]
            found.append(high / ratio - low if falls else high - ratio * low)
        return Cone(np.concatenate(found))

    @abstractmethod
    def constraints_of(self, secret: int) -> int:
        """How many constraints one table of c secret values gives."""

    @abstractmethod
    def leakage_of(self, table: ReleasedTable) -> AnyLeakage:
        """The exact leakage of one released table T[s, y…]."""

    def table_keeps(self, table: ReleasedTable) -> bool:
        """Whether one released table keeps all that the notion asks."""
        return self.leakage_of(table).within(self.bound)

    def of_answers(self, answers: ExactArray) -> AnyLeakage | None:
        """The table of a channel."""
        return self.leakage_of(answers)

    @property
    def no_absence(self) -> str:
        """A bound is known."""
        return ""

    def of_absence(self, where: Joint, whole: Joint | None) -> AnyLeakage | None:
        """The pattern as an answer: P(p,y|s)/P(p,y|s') is a product of ratios, and I(S;P,Y) a sum ([DS] section II)."""
        return self.leakage_of(where.table())

    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """The bound must hold for every combination of what the other blocks put out."""
        if joint.beliefs is not None:
            return BelievedDemand.of(self, joint, released, index)
        return TableDemand(self, given_outputs(joint, released, index))

    def conditions(self, shape: Shape, solved: tuple[int, ...], index: int) -> int:
        """How many tables the bound must hold for: one for all that the larger blocks, solved before, can put out."""
        return prod(size for j, size in enumerate(solved) if (-size, j) < (-solved[index], index))

    def extent(self, secret: int, shape: Shape, solved: tuple[int, ...], index: int) -> Extent | None:
        """The constraints of every table; those of one table depend on P(y|s) alone."""
        from funnel.optimise.cost import Extent

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
        from funnel.optimise.cone import intersection

        return intersection([self.notion.cone_of(table) for table in self.tables])

    def each_table(self) -> Sequence[ExactArray]:
        """All of them."""
        return self.tables

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
