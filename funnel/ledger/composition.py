"""What all releases that a record may be in give away together: measured where it can be, else bounded.

Privacy with respect to S does not add up release by release: two releases of leakage zero can together tell all that
X tells. So the channel that counts is the composed one, and three figures bound its leakage from above.

exact    Records keep their x. Their answers have the joint law of `funnel.measure.composition`, which the notion
         measures like any channel, at the current counts.
ceiling  Whatever is drawn from X alone, tells no more than X (data processing).
sum      Of independent groups of draws the usual LDP adds up: P(y_1, …, y_m | x) <= e^(Σ ε) P(y_1, …, y_m | x') for
         all x, x', hence for means of them, so for P(y|s), P(y|s') and P(y) in every notion; and I(S;Y) <= Σ ε, being
         a mean of logarithms of such ratios.

An earlier release of other columns, or of columns cut otherwise, is no function of the current x. Given (x, x') its
answer y' is independent of the others, and m <= P(y'|x') <= M with M/m = e^ε'. So P(y, y'|s) <= M P(y|s) and
P(y, y') >= m P(y): whatever the others leak, together they leak at most ε' more. Who may know some x'_J beside x_J
may learn more from y than is measured given x_J alone: there only the sum bounds, for P(y, y'|s, x_J, x'_J) and
P(y, y'|x_J, x'_J) are means over (x, x') of the same P(y|x) P(y'|x'). Where somebody is absent, being so may follow
from x', of which nobody counted how it goes together with s: there nothing does.
Where several of tonight's values were `other` in an earlier release, who knows just that of x knows less than x, and
may learn more: no x_J says it. So what is measured exactly, or of X itself, is measured given that, too, and given what
several such releases said of x together.

A record whose values change draws anew for each value, and nothing is known of how x changes with s. Let it have k
values, and let it be given of every block in which releases its part of them was the same. For each value v of a block
the answers there have the law above restricted to the releases in which it was v, so they move odds by at most ε_X of
that block's history (`spread`; restricting is data processing). The values' draws are independent, no block has more
than k, and the ε_X of blocks add up to that of all, so any two such paths differ by at most k times it: what holds for
every path holds for means over paths, whatever their distribution given s. Draws that are fresh have one factor per
release whatever x does. That a value changed is not part of this, nor in which block, nor which one came back: where a
record answers otherwise under an unchanged protocol, or as it did before, that shows.
A value is what the record was drawn for: one that a new lock takes out of `other` is another one from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, Literal

import numpy as np

from funnel.data import AnyProtocol, Joint
from funnel.data.alphabet import Alphabet, Label
from funnel.data.channel import Channel
from funnel.data.finer import finer
from funnel.data.population import Population
from funnel.format.journal import Together
from funnel.format.known import BEFORE, Level
from funnel.ledger.presence import is_absent, with_absence
from funnel.ledger.records import DrawRecord, by_label, coupled, restated
from funnel.ledger.stated import own_figure
from funnel.measure.composition import composed, identity, measurable, silence, spread
from funnel.measure.exact import log_above, rational
from funnel.measure.figures import round_up
from funnel.measure.leakage import AnyLeakage
from funnel.measure.overlap import POOL, Input, Pooling, all_inputs, drawn_as
from funnel.notions import Notion

Way = Literal["exact", "ceiling", "sum"]
_WAYS: tuple[Way, ...] = ("exact", "ceiling", "sum")
"""The first is preferred of equal bounds."""
MOST_NAMINGS = 4
"""Ways to name values, of all columns, of which it is measured what who knows some of them may learn."""


def together(
    notion: Notion,
    joint: Joint,
    own: Sequence[DrawRecord],
    earlier: Sequence[DrawRecord],
    alone: AnyLeakage | None,
    before: Sequence[Together | None] = (),
    everybody: Population | None = None,
) -> Together:
    """The leakage of a release (`own`, one per block of `joint`; `alone` by itself) and of all `earlier` ones.

    The secret is that of `joint`, whatever the release itself hides; `alone` is None where nobody measured it yet.
    `before` is what each earlier release stated of the same (None: nothing), and the figure is never below; it is None
    where no finite bound is known. `varying` is the usual LDP of the whole history: k times this bounds what a
    record's k values tell, where it is known in which releases those of each block were the same; nothing is known of
    that where somebody is absent.
    `everybody` has those too whom a release leaves out: absence is part of what is told (`presence`).
    """

    def inside(records: Joint, here: bool, draws: Sequence[DrawRecord]) -> _History:
        same = here and records.rows == joint.rows
        return _History(notion, records, own, draws, alone if same else None, here=here)

    absent = is_absent([*earlier, *own])
    if absent and alone is None:
        alone = _History(notion, joint, own, [], None).exact()
    measured, how = (
        with_absence(notion, joint, own, earlier, everybody, inside)
        if absent
        else _History(notion, joint, own, earlier, alone).best()
    )
    about = notion.measure, joint.secret.columns
    return _stated(*about, measured, how, before, usual([*earlier, *own]))


def unseen(
    notion: Notion,
    sensitive: tuple[str, ...],
    own: Sequence[DrawRecord],
    earlier: Sequence[DrawRecord],
    before: Sequence[Together | None],
) -> Together:
    """The same where nobody knows how the secret goes together with what was released.

    The usual LDP of all draws bounds every notion, whatever the distribution; and where draws are new, their own is
    added to what was told before, unless the promise is about those who know the columns that they are drawn from.
    Where somebody is absent, nothing bounds what that tells.
    """
    every = [*earlier, *own]
    added, whole = None if is_absent(every) else _new(own, earlier), unchanged(own, earlier)
    columns = {column for one in own for column in one.tells_of}
    last = next((one for one in reversed(before) if one is not None), None)
    found = [whole] if whole is not None else []
    if last is not None and last.figure is not None and added is not None and not notion.knows_beyond(columns):
        found.append(rational(last.figure) + added)
    measured = min((round_up(float(one)) for one in found), default=None)
    return _stated(notion.measure, sensitive, measured, "sum", before, usual(every))


def _stated(
    measure: str,
    sensitive: tuple[str, ...],
    measured: float | None,
    how: Way,
    before: Sequence[Together | None],
    whole: Fraction | None,
) -> Together:
    """As the ledger has it: no less than was told before."""
    figures = [measured, *(one.figure for one in before if one is not None)]
    largest = None if None in figures else max(figure for figure in figures if figure is not None)
    varying = None if whole is None else round_up(float(whole))
    return Together(measure, sensitive, largest, measured, how, len(before) + 1, varying)


def usual(draws: Sequence[DrawRecord]) -> Fraction | None:
    """The usual LDP of a history in nats, rounded up; None: infinite, or somebody is absent, or it is not known."""
    labelled = [by_label(one) for one in draws]
    return None if is_absent(draws) or coupled(labelled) else _added(grouped(labelled), None)


def unchanged(own: Sequence[DrawRecord], earlier: Sequence[DrawRecord]) -> Fraction | None:
    """The usual LDP of a history for records that keep their values, in nats rounded up; None as in `usual`.

    Which label a value had in which release is part of what it tells: a value that was `other` and has a name tonight
    has had two answers.
    """
    every = [*(restated(one, own) for one in earlier), *own]
    return None if is_absent(every) or coupled(every) else _added(grouped(every), None)


def _new(own: Sequence[DrawRecord], earlier: Sequence[DrawRecord]) -> Fraction | None:
    """The usual LDP of the draws that do not only repeat earlier ones; None where they share their uniforms."""
    known = {_name(one) for one in earlier}
    fresh = [one for one in own if one.protocol is None or _name(one) not in known]
    shared = {one.drawer for one in earlier} & {one.drawer for one in fresh}
    return None if shared or coupled(fresh) else _added(grouped(fresh), None)


def _name(one: DrawRecord) -> object:
    """Equal for draws that give the same record the same answer."""
    return one.drawer, one.meaning, one.entity, one.protocol and one.protocol.fingerprint


def grouped(draws: Sequence[DrawRecord]) -> list[list[DrawRecord]]:
    """The draws that share their uniforms; groups are independent."""
    found: dict[object, list[DrawRecord]] = {}
    for one in draws:
        uniforms = None if one.protocol is None else one.protocol.uniforms
        found.setdefault((one.drawer, uniforms, one.meaning, one.entity), []).append(one)
    return list(found.values())


class _History:
    """Draws sorted by what the current x says of them, and the bounds of them all.

    Where records are not `here`, in the current release, `own` only says what their values mean.
    `fitting`: for each current block those drawn from its values, itself among them, `pooled` those of them that took
    several values for one; `covered`: those of other blocks that are functions of x all the same; `foreign`: all
    others, and what this release itself drew by another secret.
    """

    def __init__(
        self,
        notion: Notion,
        joint: Joint,
        own: Sequence[DrawRecord],
        earlier: Sequence[DrawRecord],
        alone: AnyLeakage | None,
        *,
        here: bool = True,
    ) -> None:
        self.notion, self.joint, self.own, self.alone = notion, joint, own, alone
        earlier = [restated(one, own) for one in earlier]
        every = [*earlier, *own] if here else earlier
        self.fitting = [[one for one in every if self._fits(one, mine)] for mine in own]
        pooled = [[one for one in group if _merges(one, mine)]
                  for mine, group in zip(joint.blocks, self.fitting, strict=True)]  # fmt: skip
        self.pooled = [*chain.from_iterable(pooled)]
        namings = [{_drawn_for(one, mine) for one in group} for mine, group in zip(joint.blocks, pooled, strict=True)]
        self.many = sum(map(len, namings)) > MOST_NAMINGS
        told = self._knows_beyond(self.pooled) and not self.many
        self.joint = _named_before(joint, namings) if told else joint
        self.covered, self.foreign = list[DrawRecord](), list[DrawRecord]()
        meanings = {pair for one in own for pair in zip(one.columns, one.meaning, strict=True)}
        for one in earlier:
            if not any(self._fits(one, mine) for mine in own):
                inside = meanings.issuperset(zip(one.columns, one.meaning, strict=True))
                (self.covered if inside and one.reads is None else self.foreign).append(one)
        self.foreign += [one for one in own if not self._fits(one, one)]
        self.coupled = coupled(every)

    def _fits(self, one: DrawRecord, mine: DrawRecord) -> bool:
        """Whether the current x, and s, are what was drawn from."""
        same = one.columns == mine.columns and one.meaning == mine.meaning
        return same and one.protocol is not None and one.reads in (None, self.joint.secret.columns)

    def best(self) -> tuple[float | None, Way]:
        """The smallest bound as a figure, and how it was found."""
        beyond = self._knows_beyond([*self.foreign, *(self.pooled if self.many else ())])
        every = [*chain.from_iterable(self.fitting), *self.covered, *self.foreign]
        if (beyond or self._knows_beyond(self.pooled)) and is_absent(every):
            return None, "sum"
        if any(one.present and one.present.unseen for one in (*self.covered, *self.foreign)):
            return None, "sum"
        other = Fraction(0) if not self.foreign else self._bounded(self.foreign)
        if beyond:
            return min(self._summed(other), default=(None, "sum"))
        exact = None if self.covered or self.coupled else self.exact()
        found: list[tuple[float, Way]] = []
        if exact is not None:
            found += self._with(exact, other, "exact")
        if exact is None or not found:
            found += self._with(self._ceiling(), other, "ceiling")
            found += self._summed(other)
        if (most := self.notion.most(self.joint)) is not None:
            found.append((round_up(most.nats), "ceiling"))
        if not found:
            return None, "sum" if self.foreign else "exact" if exact is not None else "ceiling"
        return min(found, key=lambda one: (one[0], _WAYS.index(one[1])))

    def _knows_beyond(self, draws: Sequence[DrawRecord]) -> bool:
        """Whether the notion is about those who may know what these were drawn from."""
        return self.notion.knows_beyond({column for one in draws for column in one.tells_of})

    def _with(self, base: AnyLeakage | None, other: Fraction | None, how: Way) -> Iterator[tuple[float, Way]]:
        """A leakage, and what releases of other columns may add."""
        if base is None or other is None or base.nats == float("inf"):
            return
        figure = own_figure(base, self.notion)
        if not self.foreign and figure is not None:
            yield figure, how
        else:
            yield round_up(float(rational(base.nats) + other)), "sum"

    def _summed(self, other: Fraction | None) -> Iterator[tuple[float, Way]]:
        """The usual LDP of everything."""
        parts = [self._asked(group, mine) for group, mine in zip(self.fitting, self.own, strict=True)]
        parts += [other, self._bounded(self.covered)]
        if not any(part is None for part in parts):
            yield round_up(float(sum(part for part in parts if part is not None))), "sum"

    def _asked(self, group: Sequence[DrawRecord], mine: DrawRecord) -> Fraction | None:
        """ε_X between the current values; a release that does not know one tells that one apart.

        For the usual LDP itself records are compared that both were drawn for; not where a lock left others out.
        """
        values = next(block.values for block in self.joint.blocks if block.columns == mine.columns)
        known = all(self._knows(one, values) for one in group)
        dropped = any(one.present and one.present.unseen for one in group)
        if self.coupled or not (known or (self.notion.between_values and not dropped)):
            return None
        return _added(grouped(group), values)

    def _knows(self, one: DrawRecord, values: Sequence[Label]) -> bool:
        """Whether a draw is defined for all current records."""
        hidden: Sequence[Label | None] = (None,) if one.reads is None else self.joint.secret.values
        return one.protocol is not None and None not in drawn_as(one.protocol, [*product(hidden, values)])

    def _bounded(self, draws: Sequence[DrawRecord]) -> Fraction | None:
        """ε_X between all values that were ever drawn for."""
        return None if self.coupled else _added(grouped(draws), None)

    def channel(self) -> list[AnyProtocol] | None:
        """What all draws release of each block, as one protocol; None where that is too large, or not known exactly."""
        if self.covered or self.foreign or self.coupled:
            return None
        blocks = self._composed()
        return blocks if blocks is not None and self._measurable(blocks) else None

    def _composed(self) -> list[AnyProtocol] | None:
        blocks: list[AnyProtocol] = []
        for block, draws in zip(self.joint.blocks, self.fitting, strict=True):
            groups = [[one.protocol for one in group if one.protocol] for group in grouped(draws)]
            one = composed(block, self.joint.secret, groups) if groups else silence(block)
            if one is None:
                return None
            blocks.append(one)
        return blocks

    def _measurable(self, blocks: Sequence[AnyProtocol]) -> bool:
        secrets, *public = self.joint.shape
        return measurable(secrets, public, blocks, self.notion.measuring_steps(self.joint))

    def exact(self) -> AnyLeakage | None:
        """The composed channel, measured; None where it is too large."""
        blocks = self._composed()
        alone = [mine.protocol.fingerprint for mine in self.own if mine.protocol]
        if blocks is None:
            return None
        if self.alone is not None and [one.fingerprint for one in blocks] == alone:
            return self.alone
        able = self._measurable(blocks) and self.notion.can_measure(blocks) and self._of_sets(blocks)
        return self.notion.leakage(Channel(self.joint, blocks)) if able else None

    def _of_sets(self, blocks: Sequence[AnyProtocol]) -> bool:
        """Whether the notion measures what they release, sets of values among it."""
        if all(one.uniforms == "one" for one in blocks):
            return True
        return self.notion.sets == "beside" or (self.notion.sets == "alone" and len(blocks) == 1)

    def _ceiling(self) -> AnyLeakage | None:
        """X as it is; nothing where a draw looks at the secret too."""
        if any(one.reads for group in self.fitting for one in group):
            return None
        pairs = zip(self.joint.blocks, self.fitting, strict=True)
        blocks = [identity(block) if draws or self.covered else silence(block) for block, draws in pairs]
        return self.notion.leakage(Channel(self.joint, blocks))


def _drawn_for(one: DrawRecord, current: Alphabet) -> tuple[Input | None, ...]:
    """What each current value was drawn for."""
    return tuple(drawn_as(one.protocol, [(None, x) for x in current.values]))


def _merges(one: DrawRecord, current: Alphabet) -> bool:
    """Whether several current values were drawn for as `other`."""
    return isinstance(one.protocol, Pooling) and _drawn_for(one, current).count((None, POOL)) > 1


def _named_before(joint: Joint, namings: Sequence[set[tuple[Input | None, ...]]]) -> Joint:
    """The records by what may be known of them, with what earlier releases called the values of each block."""
    if not any(namings):
        return joint
    seen = joint.known()
    levels, codes = [*seen.levels], [seen.known]
    for place, (block, own) in enumerate(zip(joint.blocks, namings, strict=True), start=1):
        for several in chain.from_iterable(combinations(sorted(own, key=str), size + 1) for size in range(len(own))):
            called = list(zip(*several, strict=True))
            code = {name: number for number, name in enumerate(dict.fromkeys(called))}
            levels.append(Level(block.columns[0], BEFORE, tuple(map(str, range(len(code))))))
            codes.append(np.array([code[name] for name in called])[seen.placed[:, place]][:, None])
    return replace(joint, finer=finer(seen.placed, seen.counts, levels, np.concatenate(codes, axis=1), seen.minimum))


def _added(groups: Sequence[Sequence[DrawRecord]], values: Sequence[Any] | None) -> Fraction | None:
    """Σ ε_X over independent groups, in nats rounded up; over some values of x or over all that occur."""
    known: dict[object, float] = {}
    total = Fraction(0)
    for group in groups:
        protocols = [one.protocol for one in group if one.protocol is not None]
        if len(protocols) < len(group):
            return None
        name = tuple(one.fingerprint for one in protocols)
        if name not in known:
            known[name] = log_above(spread(protocols, _pairs_of(protocols, values)))
        if known[name] == float("inf"):
            return None
        total += rational(known[name])
    return total


def _pairs_of(protocols: Sequence[AnyProtocol], values: Sequence[Any] | None) -> list[Input] | None:
    """Each of `values`, with each of the secret that is read: also one that was drawn for as `other`."""
    if values is None:
        return None
    return [*product(dict.fromkeys(s for one in protocols for s, _ in all_inputs(one)), values)]
