"""Side-channel resistant local information privacy: LIP also for those who know some of the public columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from funnel.data import AnyProtocol, Joint
from funnel.data.arrange import together
from funnel.data.released import Channel
from funnel.data.sending import ExactArray
from funnel.errors import PlanError
from funnel.measure import clock
from funnel.measure import leakage as measures
from funnel.measure.side import released_given, side_knowledge, tables_given
from funnel.notions.base import Arranged, Demand, Implied, Nats
from funnel.notions.lip import BeliefNotion
from funnel.notions.shape import Foreseen, Shape
from funnel.notions.tables import TableDemand

Way = Literal["auto", "joint", "sequential", "per-attribute"]

KNOWN_STEPS = 1 << 26
"""Products of whole numbers for which a composed channel is measured, over all values that may be known."""
JOINT = 256
"""Combinations of all public columns up to which one alphabet of them all is solved: the true optimum."""
SEQUENTIAL = 20_000
"""Conditions (values that may be known, or released before) up to which columns are solved one after the other."""
KNOWN = 200_000
"""Values x_J that may be known, over all sets J, beyond which nobody waits for Definition 3 to be measured."""


class Srlip(BeliefNotion):
    """ε-SRLIP ([DS] Definition 3): e^-ε <= P(y|s,x_J)/P(y|x_J) <= e^ε for every set J of public columns.

    `solve` names the way to a protocol. joint: one alphabet of all columns, the true optimum. sequential: block
    by block, each LIP given x_J and what earlier blocks outside J released; the chain rule then adds the shares.
    per-attribute: each block LIP given x_J alone ([DS] equations 23 to 26). What [DS] Theorem 4 claims of that
    is not so, hence the product is measured and the shares are scaled until Definition 3 holds. auto: the first
    of these that the sizes allow.
    """

    measure: ClassVar[str] = "srlip"
    secret_may_be_read: ClassVar[bool] = False
    sets: ClassVar[Literal["no", "alone", "beside"]] = "alone"

    notion: Literal["srlip"]
    epsilon: Nats
    solve: Way = Field(
        "auto", description="auto, joint, sequential or per-attribute: how protocols are found"
    )

    def arrange(self, joint: Joint, minimum: int) -> Arranged:
        """Choose the way, by size. Raises PlanError where too much may be known to be measured."""
        _refuse_many(joint)
        way, why = self._choose(Shape.of(joint), minimum)
        settled = self.model_copy(update={"solve": way})
        return Arranged(together(joint) if way == "joint" else joint, settled, f"{way}: {why}")

    def foresee(self, shape: Shape, minimum: int) -> Foreseen:
        """The way that will be taken."""
        way, why = self._choose(shape, minimum)
        return Foreseen(way == "joint", f"{way}: {why}")

    def _choose(self, shape: Shape, minimum: int) -> tuple[Way, str]:
        """The way asked for, or the best that the sizes allow, and why."""
        if self.solve != "auto":
            return self.solve, f"the policy asks for `solve: {self.solve}`"
        if len(shape.blocks) == 1:
            return "joint", "there is one block"
        if shape.combinations <= JOINT and shape.fewest >= minimum:
            return (
                "joint",
                f"{shape.combinations:,} combinations of public values are few enough for one alphabet",
            )
        why = (
            f"{shape.combinations:,} combinations of public values are too many for one alphabet"
            if shape.combinations > JOINT
            else f"some combination of public values has fewer than {minimum:,} records"
        )
        conditions = prod(size + 1 for size in shape.blocks)
        if conditions <= SEQUENTIAL:
            return "sequential", why
        return "per-attribute", f"{why}, and {conditions:,} conditions are too many for a sequence"

    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """LIP given every x_J (and, solved in sequence, given what the earlier blocks outside J released)."""
        before = {} if self.solve == "per-attribute" else released
        tables = (
            table for known in side_knowledge(joint) for table in tables_given(joint, known, before, index)
        )
        return TableDemand(self, list(_distinct(tables)))

    def conditions(self, shape: Shape, solved: tuple[int, ...], index: int) -> int:
        """Every x_J that may be known; of an earlier block of a sequence, its value or else what it released.

        Some of them say nothing, and more may be known of blocks of several columns.
        """
        if len(solved) == 1:
            return prod(size + 1 for size in shape.blocks)
        sequence = self._choose(shape, 1)[0] != "per-attribute"
        earlier = [sequence and (-size, j) < (-solved[index], index) for j, size in enumerate(solved)]
        return prod(2 * size if before else size + 1 for size, before in zip(solved, earlier, strict=True))

    def leakage(self, channel: Channel) -> measures.Leakage:
        """The largest LIP given any x_J."""
        reads = any(protocol.reads_secret for protocol in channel.protocols)
        return measures.worst(_one_by_one(channel, everything=reads))

    @property
    def adds_up(self) -> bool:
        """Not where blocks are solved apart."""
        return self.solve != "per-attribute"

    def measuring_steps(self, public: Sequence[int]) -> int:
        """Fewer, as each is repeated for all values of public columns that may be known."""
        return KNOWN_STEPS // prod(size + 1 for size in public)

    def implies(self) -> Iterator[Implied]:
        """The empty set of known columns is one of those asked about."""
        yield Implied("lip", self.epsilon, "knowing no column is one case of srlip")

    def resettled(self, parameters: Mapping[str, Any]) -> Self:
        """Solved in the way that was taken."""
        return self.model_copy(update={"solve": parameters["solve"]})

    def parameters(self) -> dict[str, Any]:
        """The way that was taken."""
        return {"solve": self.solve}


def _one_by_one(channel: Channel, *, everything: bool) -> Iterator[measures.Leakage]:
    """The LIP given each x_J, within the time allowed."""
    for known in side_knowledge(channel.joint, everything=everything):
        clock.check()
        yield measures.lip(released_given(channel.joint, known, channel.protocols))


def _refuse_many(joint: Joint) -> None:
    """Every set of columns may be known: their number is exponential in that of the columns."""
    sizes = [
        len({value[place] for value in block.values})
        for block in joint.blocks
        for place in range(len(block.columns))
    ]
    most = min(prod(size + 1 for size in sizes), len(joint.cells) << len(sizes))
    if most > KNOWN:
        raise PlanError(
            "alphabet-too-large",
            f"an attacker may know any of {len(sizes):,} public columns, which takes up to {most:,} combinations of "
            f"values; srlip is measured given each of them, up to {KNOWN:,}",
            advice="Release fewer columns in this policy, shrink them with `bins` or `top`, or use `notion: lip`.",
        )


def _distinct(tables: Iterator[ExactArray]) -> Iterator[ExactArray]:
    """Each condition once: known values often leave the same table."""
    seen = set()
    for table in tables:
        key = tuple(table.ravel().tolist())
        if key not in seen:
            seen.add(key)
            yield table
