"""Side-channel resistant local information privacy: LIP also for those who know some of the public columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from funnel.data import AnyProtocol, Joint
from funnel.data.alphabet import folded
from funnel.data.arrange import together
from funnel.data.channel import MAX_CELLS, Channel
from funnel.data.sending import ExactArray
from funnel.errors import PlanError
from funnel.measure import leakage as measures
from funnel.notions.base import Amiss, Arranged, Demand, Implied, Nats
from funnel.notions.change import Judged
from funnel.notions.lip import BeliefNotion
from funnel.notions.shape import Foreseen, Shape

if TYPE_CHECKING:
    from funnel.measure.side import Knowledge

Way = Literal["auto", "joint", "sequential", "per-attribute"]

KNOWN_STEPS = 1 << 26
"""Products of whole numbers for which a composed channel is measured, over all values that may be known."""
JOINT = 256
"""Combinations of all public columns up to which one alphabet of them all is solved: the true optimum."""
SEQUENTIAL = 20_000
"""Conditions (values that may be known, or released before) up to which columns are solved one after the other."""
MOST_COLUMNS = 64
"""Columns that others may know together."""


def _number_or_columns(value: Any) -> Any:
    """One sentence for both forms."""
    if type(value) is int and 1 <= value <= MOST_COLUMNS:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    said = f"it must be a number from 1 to {MOST_COLUMNS}, or a list of columns"
    raise PydanticCustomError("wrong-value", "{said}", {"said": said, "at": ()})


_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_COLUMNS},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    ]
}
Knows = Annotated[int | tuple[str, ...], BeforeValidator(_number_or_columns), WithJsonSchema(_SCHEMA)]
"""How many columns others may know together, or which ones."""
KNOWN = 200_000
"""Values x_J that may be known, over all sets J, beyond which nobody waits for Definition 3 to be measured."""
SETS = 20_000
"""Sets J of columns whose values are looked for."""


class Srlip(BeliefNotion):
    """ε-SRLIP ([DS] Definition 3): e^-ε <= P(y|s,x_J)/P(y|x_J) <= e^ε for every set J of public columns.

    `solve` names the way to a protocol. joint: one alphabet of all columns, the true optimum. sequential: block
    by block, each LIP given x_J and what earlier blocks outside J released; the chain rule then adds the shares.
    per-attribute: each block LIP given x_J alone ([DS] equations 23 to 26). What [DS] Theorem 4 claims of that
    is not so, hence the product is measured and the shares are scaled until Definition 3 holds. auto: the first
    of these that the sizes allow.

    `knows` says which columns may be known: so many together, whichever they are, or those named. Then a column may be
    known by its own values as well as by what is released of it, and x_J are the values that at least
    `estimate.minimum` records share. Absent: all released columns, by what is released of them, whoever shares it.
    """

    measure: ClassVar[str] = "srlip"
    of_one_table: ClassVar[bool] = False
    secret_may_be_read: ClassVar[bool] = False
    sets: ClassVar[Literal["no", "alone", "beside"]] = "alone"
    no_beliefs: ClassVar[str] = "is not measured over all beliefs that round alike, given what others know"
    promises: ClassVar[tuple[str, ...]] = ("epsilon", "knows")

    notion: Literal["srlip"]
    epsilon: Nats
    solve: Way = Field(
        "auto", description="auto, joint, sequential or per-attribute: how protocols are found"
    )

    knows: Knows | None = Field(
        None,
        description="What others may know of a person: at most so many public columns, or the columns listed; all "
        "where absent",
    )

    @property
    def unmeasured(self) -> str:
        """Whom an earlier release covered, and this one does not."""
        if self.knows is None:
            return ""
        return (
            "what all releases tell together is not measured against who knows values that enough records shared in an "
            "earlier release, and fewer share in this one"
        )

    @property
    def knowledge(self) -> Knowledge:
        """Which columns somebody may know."""
        from funnel.measure.side import Knowledge

        return Knowledge.of(self.knows)

    def arrange(self, joint: Joint, minimum: int) -> Arranged:
        """Choose the way, by size. Raises PlanError where too much may be known to be measured."""
        _refuse_many(joint, self.knowledge)
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
            else f"some combination of public values has a count below {minimum:,}"
        )
        conditions = self.knowledge.conditions(shape.blocks)
        if conditions <= SEQUENTIAL:
            return "sequential", why
        return "per-attribute", f"{why}, and {conditions:,} conditions are too many for a sequence"

    def demand(self, joint: Joint, released: Mapping[int, AnyProtocol], index: int) -> Demand:
        """LIP given every x_J (and, solved in sequence, given what the earlier blocks outside J released)."""
        from funnel.notions.known import KnownDemand

        before = {} if self.solve == "per-attribute" else released
        return KnownDemand(self, joint, self.knowledge, before, index)

    def conditions(self, shape: Shape, solved: tuple[int, ...], index: int) -> int:
        """Every x_J that may be known, together with what the earlier blocks of a sequence released.

        Some of them say nothing, and more may be known of blocks of several columns.
        """
        known = self.knowledge.conditions(shape.columns or shape.blocks)
        if len(solved) == 1 or self._choose(shape, 1)[0] == "per-attribute":
            return known
        return known * prod(size for j, size in enumerate(solved) if (-size, j) < (-solved[index], index))

    def leakage(self, channel: Channel) -> measures.Leakage:
        """The largest LIP given any x_J."""
        from funnel.notions.known import leakage_given

        return leakage_given(channel, self.knowledge)

    def of_answers(self, answers: ExactArray) -> None:
        """A table of answers says nothing of what may be known."""

    @property
    def no_absence(self) -> str:
        """Of those who are absent nobody counted what may be known."""
        return "counts only of those in a release what others may know of them" if self.asks_own else ""

    def of_absence(self, where: Joint, whole: Joint | None) -> measures.Leakage | None:
        """LIP of the pattern given any x_J, the pattern being one more column, released as it is, beside silence.

        Who knows the pattern learns nothing by it, so that what may be known is no less. Nobody counted absent people
        by what somebody may know of their columns: None where the notion asks for it.
        """
        if whole is None or self.asks_own or prod(whole.shape) > MAX_CELLS:
            return None
        from funnel.measure.composition import identity, silence

        *public, pattern = whole.blocks
        return self.leakage(Channel(whole, [*map(silence, public), identity(pattern)]))

    @property
    def asks_own(self) -> bool:
        """Where it says what may be known."""
        return self.knows is not None

    @property
    def adds_up(self) -> bool:
        """Not where blocks are solved apart."""
        return self.solve != "per-attribute"

    def measuring_steps(self, joint: Joint) -> int:
        """Fewer, as each is repeated for all values of public columns that may be known."""
        return KNOWN_STEPS // max(self.knowledge.conditions(joint.shape[1:]), 1)

    def knows_beyond(self, columns: set[str]) -> bool:
        """Any column will do, unless they are named."""
        names = self.knowledge.names
        return bool(columns if names is None else set(map(folded, columns)) & set(map(folded, names)))

    @classmethod
    def amiss_over_noise(cls, privacy: Mapping[str, Any]) -> Iterator[Amiss]:
        """Which values enough records share is not known through noise."""
        if privacy.get("knows") is not None:
            said = "which values somebody may know is a question to the records themselves, without noise"
            yield Amiss("knows", "unsupported", said, "Leave `knows` out, or use `estimate.kind: counts`.", True)

    def implies(self) -> Iterator[Implied]:
        """The empty set of known columns is one of those asked about."""
        yield Implied("lip", self.epsilon, "knowing no column is one case of srlip")

    def covers(self, other: Self) -> bool:
        """Epsilon is no larger, and whatever the other allows to be known may be known here."""
        return super().covers(other) and self.knowledge.covers(other.knowledge)

    def changed(self, key: str, new: Self) -> Judged:
        """Who knows more is protected, or no longer."""
        if key != "knows":
            return super().changed(key, new)
        more, fewer = new.knowledge.covers(self.knowledge), self.knowledge.covers(new.knowledge)
        if more == fewer:
            return ("unchanged", "") if more else ("incomparable", "others may know other columns")
        if more:
            return "stronger", "those who know more columns are promised as much"
        return "weaker", "those who know more columns are promised nothing"

    def resettled(self, parameters: Mapping[str, Any]) -> Self:
        """Solved in the way that was taken."""
        return self.model_copy(update={"solve": parameters["solve"]})

    def parameters(self) -> dict[str, Any]:
        """The way that was taken, and what may be known."""
        return {"solve": self.solve, "knows": self.knows}


def _refuse_many(joint: Joint, knowledge: Knowledge) -> None:
    """Every set of columns may be known: their number is exponential in that of the columns, unless it is limited."""
    known = joint.known()
    sizes = known.sizes()
    sets = sum(1 for _ in islice(knowledge.sets(known), SETS + 1))
    most = min(knowledge.conditions(sizes), len(known.cells) * sets)
    if sets > SETS or (knowledge.all and most > KNOWN):
        fewer = 2 if knowledge.most is None or knowledge.most > 2 else 1
        raise PlanError(
            "alphabet-too-large",
            f"an attacker may know any of {len(sizes):,} public columns, which takes up to {most:,} combinations of "
            f"values; srlip is measured given each of them, up to {KNOWN:,}, and up to {SETS:,} sets of columns",
            advice=f"Let others know fewer of them (`knows: {fewer}`), release fewer columns in this policy, shrink "
            "them with `bins` or `groups`, or use `notion: lip`.",
        )
