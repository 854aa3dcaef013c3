"""The usual local differential privacy: no odds between two public values move by more than e^ε."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from funnel.data import AnyProtocol, Joint
from funnel.data.channel import Channel
from funnel.data.joint import FloatArray, IntArray
from funnel.data.protocol import spread
from funnel.data.unary import UnaryProtocol
from funnel.measure.leakage import Leakage, ldp
from funnel.notions.base import Demand, Implied, Nats, Notion
from funnel.notions.shape import Shape

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from funnel.optimise.cone import Cone
    from funnel.optimise.cost import Extent


class LdpX(Notion):
    """ε-LDP with respect to X: Q(y|x) <= e^ε Q(y|x') for all x, x', y, whatever the joint distribution.

    It protects every public value alike, and with them the secret: ε-LDP of X is ε-LDP of S.
    """

    secret_may_be_public: ClassVar[bool] = True
    measure: ClassVar[str] = "ldp_x"
    between_values: ClassVar[bool] = True
    sets: ClassVar[Literal["no", "alone", "beside"]] = "beside"
    no_beliefs: ClassVar[str] = ""

    notion: Literal["ldp-x"]
    epsilon: Nats

    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """Each block by itself: for the usual LDP the shares of epsilon add up."""
        return _Everywhere(self, len(joint.blocks[index]))

    def extent(self, secret: int, shape: Shape, solved: tuple[int, ...], index: int) -> Extent:
        """a(a-1) constraints, whatever the secret."""
        from funnel.optimise.cost import Extent
        from funnel.optimise.staircase import staircase_count

        size = solved[index]
        return Extent(size, size * (size - 1), size, known=staircase_count(size))

    def leakage(self, channel: Channel) -> Leakage:
        """The product over the blocks of max Q(y|x)/Q(y|x')."""
        ratio = Fraction(1)
        for protocol in channel.protocols:
            one = protocol.spread()
            if one is None:
                return Leakage(None)
            ratio *= one
        return Leakage(ratio)

    @property
    def no_absence(self) -> str:
        """A bound is known."""
        return ""

    def of_absence(self, where: Joint, whole: Joint | None) -> Leakage | None:
        """Between any two that occur, told apart by x and by the secret: what holds for these holds for both."""
        if whole is None:
            return None
        people, row = np.unique(whole.cells[:, :-1], axis=0, return_inverse=True)
        table = np.zeros((len(people), len(whole.blocks[-1])), np.int64)
        np.add.at(table, (row.ravel(), whole.cells[:, -1]), whole.counts)
        return ldp(table)

    def implies(self) -> Iterator[Implied]:
        """P(y|s), given whatever x_J and under whatever distribution, is a mean of the Q(y|x)."""
        why = "what moves no odds between public values moves none of the secret"
        yield Implied("ldp", self.epsilon, why)
        yield Implied("srlip", self.epsilon, why)
        yield Implied("rldp", self.epsilon, why, {"radius": math.inf})


@dataclass(frozen=True, eq=False)
class _Everywhere(Demand):
    """The bound between any two of a values."""

    notion: LdpX
    size: int

    def cone(self) -> Cone:
        """a(a-1) inequalities: v_x <= e^ε v_x'."""
        from funnel.optimise.staircase import staircase_cone

        return staircase_cone(self.size, self.notion.ratio)

    def rays(self, prior: FloatArray) -> csr_array | None:
        """{1, e^ε}^a, for small alphabets."""
        from funnel.optimise.staircase import staircase_rays

        return staircase_rays(prior, self.notion.ratio)

    def keeps(self, weights: IntArray) -> bool:
        """No ratio within a row exceeds e^ε."""
        return Leakage(spread(weights)).within(self.notion.bound)

    def keeps_sets(self, protocol: UnaryProtocol) -> bool:
        """No ratio between two values exceeds e^ε, for any set."""
        return Leakage(protocol.spread()).within(self.notion.bound)
