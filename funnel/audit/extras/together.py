"""What draws tell together, sorted by what this release's x says of them: bounds and measures, each by its own way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import chain, combinations

import numpy as np

from funnel.audit.extras.absence import Ground
from funnel.audit.extras.divided import about
from funnel.audit.extras.overlaps import Drawer, Law, TooLarge, group_law, group_spread
from funnel.audit.extras.parts import DrawnBlock, groups_of, tangled
from funnel.audit.kernel.channel import Channel, everything
from funnel.audit.kernel.exact import MOST_CELLS, exp_below, rational
from funnel.audit.kernel.notions import INFINITE, NOTIONS, STEP, Leakage, information
from funnel.audit.kernel.records import Block, by_axis
from funnel.audit.kernel.verdict import Broken
from funnel.data.alphabet import folded
from funnel.format.fields import Alphabet
from funnel.format.journal import NAME, Together
from funnel.measure.robust import robust_certificate

_NEAR = Fraction(1, 10**8)
"""Nats by which sums of logarithms that were rounded one by one may be off."""
MOST_NAMINGS = 4
"""Ways to name values, of all columns, that are looked at together."""
_FAR = Fraction(200)
"""Nats: weights of at most 62 bits whose bound is finite keep a smaller one."""


class Composition:
    """The draws of a release and of those before it, sorted by what this release's x says of them.

    `here`: whether the records of the ground are in the release itself, whose `own` draws say what values mean.
    """

    def __init__(self, ground: Ground, own: Sequence[DrawnBlock], earlier: Sequence[DrawnBlock], *,
                 here: bool = True) -> None:  # fmt: skip
        self.ground, self.own, self.here = ground, own, here
        self.opened = ground.release
        earlier = [one.tonight(own) for one in earlier]
        self.every = [*earlier, *own] if here else earlier
        self.same = [[one for one in self.every if self._same(one, mine)] for mine in own]
        rest = [one for one in self.every if not any(self._same(one, mine) for mine in own)]
        pairs = set[tuple[str, str]]().union(*(one.pairs for one in own))
        self.within = [one for one in rest if one.reads is None and one.pairs <= pairs]
        self.beyond = [one for one in rest if one not in self.within]
        self.tangled = tangled(self.every)
        self.reading = any(one.reads for group in self.same for one in group)

    def _same(self, one: DrawnBlock, mine: DrawnBlock) -> bool:
        """Whether this release's x, and s, are what was drawn from."""
        alike = (one.columns, one.meaning) == (mine.columns, mine.meaning) and one.protocol is not None
        return alike and one.reads in (None, self.ground.asked.sensitive)

    def agrees(self, stated: Together) -> None:
        """The figures are those of the way that is stated. Raises Broken, TooLarge."""
        figure = None if stated.measured is None else rational(stated.measured)
        if not any(is_figure(leakage, more, figure) for leakage, more in self._bounds(stated.how)):
            secret = " + ".join(stated.sensitive)
            what = f"what is told together of {secret} is not what the releases tell ({stated.how})"
            told = sorted({_text(leakage, more) for leakage, more in self._bounds(stated.how)})
            raise Broken(NAME, what, " or ".join(told) or "another way", stated.measured)

    def _bounds(self, how: str) -> Iterator[tuple[Leakage | None, Fraction | None]]:
        """What a way yields: a leakage, and what is added to it in nats (None: infinite)."""
        beyond = self._known_beyond()
        every = (*chain(*self.same), *self.within, *self.beyond)
        absent = (beyond or self._may_know(self._pooled)) and any(one.present for one in every)
        if absent or any(one.drops for one in (*self.within, *self.beyond)) or (beyond and how != "sum"):
            yield None, None
        elif how in ("exact", "unchanged") and not (self.within or self.beyond or self.tangled):
            yield self._measured, Fraction(0)
        elif how == "ceiling":
            if self.ground.asked.notion == "mutual-information":
                counts = self.ground.table
                found = information(np.diag(counts.reshape(len(counts), -1).sum(axis=1)))
                yield Leakage(f"{float(found):.6f}", lambda bound: found <= bound), Fraction(0)
            if not self.beyond:
                yield (None, None) if self.reading else (self._of_x(), Fraction(0))
        elif how == "sum":
            yield from self._sums()

    def _known_beyond(self) -> bool:
        """Whether the notion is about those who may know columns of earlier releases, of which nothing is told."""
        return self._may_know([*self.beyond, *(self._pooled if self._many else ())])

    def _may_know(self, parts: Sequence[DrawnBlock]) -> bool:
        """Whether the notion is about those who may know what these were drawn from."""
        asked, columns = self.ground.asked, set[str]().union(*(one.table_columns for one in parts))
        knows = asked.parameters.knows
        named = set(map(folded, knows)) if isinstance(knows, tuple) else columns
        return asked.notion == "srlip" and bool(columns & named)

    @cached_property
    def _named(self) -> list[list[tuple[DrawnBlock, tuple[object, ...]]]]:
        """For each block the draws that had one name for several of its values, with what each called them."""
        return [
            [
                (one, one.protocol.called(values.values))
                for one in parts
                if isinstance(one.protocol, Drawer) and one.protocol.merges(values.values)
            ]
            for values, parts in zip(self.ground.blocks, self.same, strict=True)
        ]

    @property
    def _pooled(self) -> list[DrawnBlock]:
        return [one for one, _ in chain(*self._named)]

    @property
    def _namings(self) -> list[set[tuple[object, ...]]]:
        return [{called for _, called in parts} for parts in self._named]

    @property
    def _many(self) -> bool:
        """Whether they are too many for all of their combinations to be looked at."""
        return sum(map(len, self._namings)) > MOST_NAMINGS

    def _called(self, channel: Channel) -> Channel:
        """Seen by those, too, who know of x what some of them called it."""
        if self._many or not self._may_know(self._pooled):
            return channel
        one = channel.known or everything(channel.counts, channel.blocks)
        columns, values = [*one.columns], [one.values]
        for axis, (block, namings) in enumerate(zip(self.ground.blocks, self._namings, strict=True), start=1):
            told = sorted(namings, key=str)
            for some in chain.from_iterable(combinations(told, size + 1) for size in range(len(told))):
                _, code = np.unique([str(name) for name in zip(*some, strict=True)], return_inverse=True)
                columns.append(block.columns[0])
                values.append((code.ravel() + 1)[one.codes[:, axis]][:, None])
        return replace(channel, known=replace(one, columns=tuple(columns), values=np.concatenate(values, axis=1)))

    def _sums(self) -> Iterator[tuple[Leakage | None, Fraction | None]]:
        """The usual LDP of everything, or of what is beyond x beside a bound of the rest; the last resort is none.

        Of all draws it bounds also what is told to who knows columns beyond x: both chances are means over what he
        does not know of products of the same chances, whatever he does.
        """
        more, found, told = self._sum(self.beyond), False, bool(self.beyond) and not self._known_beyond()
        if more is not None:
            asked, within = self._asked(), self._sum(self.within)
            if asked is not None and within is not None:
                found = True
                yield None, asked + within + more
            if told and not self.reading:
                found = True
                yield self._of_x(), more
            if told and not self.within and not self.tangled:
                found = True
                yield self._measured, more
        if not found or more is None:
            yield None, None

    def _sum(self, parts: Sequence[DrawnBlock]) -> Fraction | None:
        """The usual LDP between all values ever drawn for; None: infinite."""
        return (None if parts else Fraction(0)) if self.tangled else finite(self.added(parts))

    def _asked(self) -> Fraction | None:
        """The usual LDP between the values that occur now; a release that does not know one tells it apart."""
        total = 0.0
        for alphabet, parts in zip(self.ground.blocks, self.same, strict=True):
            values = set(alphabet.values)
            known = all(one.knows(values) for one in parts)
            compared = self.ground.asked.notion == "ldp-x" and not any(one.drops for one in parts)
            if self.tangled or not (known or compared):
                return None
            total += sum(group_spread(group, alphabet.values) for group in groups_of(parts))
        return finite(total)

    @staticmethod
    def added(parts: Sequence[DrawnBlock]) -> float:
        """Σ of what the usual LDP lets each group tell, in nats."""
        if any(one.protocol is None for one in parts):
            return math.inf
        return sum(map(group_spread, groups_of(parts)))

    def _channel(self, blocks: Sequence[Block]) -> Leakage:
        """The leakage of a channel at this release's counts, by the notion asked for."""
        channel = self._called(self.ground.channel(blocks))
        if self.ground.asked.notion != "rldp":
            return NOTIONS[self.ground.asked.notion].leakage(channel)
        return certified(channel)

    def _of_x(self) -> Leakage:
        """X released as it is, as far as it is released at all."""
        pairs = enumerate(zip(self.ground.blocks, self.same, strict=True))
        return self._channel([
            Block(axis, one.columns, one.values, 0, np.eye(len(one.values), dtype=np.int64)[:, None, :])
            if parts or self.within else _silent(axis, one)
            for axis, (one, parts) in pairs
        ])  # fmt: skip

    @cached_property
    def _measured(self) -> Leakage:
        """The composed channel, measured."""
        return self._channel(self.blocks)

    @cached_property
    def blocks(self) -> list[Block]:
        """One block for each of the release, whose outputs are what all releases say of it. Raises TooLarge."""
        found: list[Block] = []
        secret = self.ground.secret.values
        own = by_axis(self.opened.blocks)
        for axis, (alphabet, parts) in enumerate(zip(self.ground.blocks, self.same, strict=True)):
            groups = groups_of(parts)
            if not groups:
                found.append(_silent(axis, alphabet))
                continue
            if self.here and len(groups) == 1 and len(groups[0]) == 1 and self._fits(own[axis], alphabet):
                found += own[axis]
                continue
            law = reduce(Law.beside, (group_law(group, secret, alphabet.values) for group in groups))
            rows = np.array([[part * times for part in row] for row, times in law.rows.items()], object)
            weights = rows.reshape(len(rows), len(secret), len(alphabet.values))
            reads = any(one.reads for one in parts)
            weights = (weights if reads else weights[:, :1]).astype(np.int64 if law.bits <= 62 else object)
            found.append(Block(axis, alphabet.columns, alphabet.values, law.bits, weights))
        return found

    def _fits(self, own: Sequence[Block], alphabet: Alphabet) -> bool:
        """Whether a protocol of the release is one for these values, and for all of the secret where it reads that."""
        reads = any(one.reads for one in own)
        return own[0].inputs == alphabet.values and (not reads or self.ground.secret == self.opened.counts.secret)

    def whole(self) -> Channel:
        """All draws as one channel, where all are functions of x; sets beside others are listed. Raises TooLarge."""
        axes = by_axis(self.blocks)
        alone = len(axes) == 1 and axes[0][0].odds is not None
        if self.within or self.beyond or self.tangled or alone:
            raise TooLarge
        return self.ground.channel([_listed(group) for group in axes])

    def finite(self) -> list[float]:
        """What its ways bound the leakage by, where that is finite (nats); where one is too large, others may do."""
        found = list[float]()
        for how in ("exact", "ceiling", "sum"):
            with suppress(TooLarge, OverflowError):
                found += [about(one) + float(more) for one, more in self._bounds(how) if more is not None]
        return [one for one in found if math.isfinite(one)]


def _listed(group: Sequence[Block]) -> Block:
    """The block of one axis, of sets that of all of them. Raises TooLarge."""
    first, *rest = group
    if not rest:
        return first
    if math.prod(len(one.weights) for one in group) * len(first.inputs) > MOST_CELLS:
        raise TooLarge
    bits = sum(one.bits for one in group)
    weights = first.weights.astype(np.int64 if bits <= 62 else object)
    for one in rest:  # every y with every y' of the same x
        weights = (weights[:, None] * one.weights.astype(weights.dtype)).reshape(-1, *weights.shape[1:])
    return Block(first.axis, first.columns, first.inputs, bits, weights)


def _silent(axis: int, one: Alphabet) -> Block:
    """A block of which nothing is released."""
    return Block(axis, one.columns, one.values, 0, np.ones((1, 1, len(one.values)), np.int64))


def certified(channel: Channel) -> Leakage:
    """Robust leakage of a channel of which no file holds a certificate: one is made, and the kernel checks it.

    Infinite where none shows even a bound that is out of reach, and where counts have no set of distributions.
    """
    (block,), asked = channel.blocks, channel.parameters
    possible = np.asarray(channel.possible, bool)
    radius, order = rational(asked.radius or 0), rational(asked.order or 0)

    def within(bound: Fraction) -> bool:
        made = robust_certificate(channel.counts, block.weights, possible, radius, order, exp_below(bound))
        return NOTIONS["rldp"].leakage(replace(channel, certificate=made)).within(bound)

    whole = channel.counts.shape == possible.shape and bool(channel.counts.any(axis=1).all())
    text = "as certified" if whole and within(_FAR) else INFINITE
    return Leakage(text, lambda bound: within(bound + _NEAR), exact=False)


def finite(nats: float) -> Fraction | None:
    """Nats as a number that can be compared exactly; None: infinite."""
    return Fraction(nats) if math.isfinite(nats) else None


def is_figure(leakage: Leakage | None, more: Fraction | None, figure: Fraction | None) -> bool:
    """Whether a figure is the leakage and so many nats more, rounded up; None: infinite."""
    if more is None or figure is None:
        infinite = more is None or (leakage is not None and leakage.is_stated_as(None))
        return figure is None and infinite
    rest = figure - more
    if leakage is None:
        return -_NEAR <= rest <= STEP + _NEAR
    if not more:
        return leakage.is_stated_as(figure)
    return leakage.is_stated_as(rest) or leakage.is_stated_as(rest + _NEAR) or leakage.is_stated_as(rest - _NEAR)


def _text(leakage: Leakage | None, more: Fraction | None) -> str:
    """For a reader."""
    if more is None:
        return "infinite"
    return f"{float(more):.6f}" if leakage is None else f"{leakage.text} + {float(more):.6f}"
