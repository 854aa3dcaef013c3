"""What a ledger states of releases that leave people out, held against everybody divided by where they are.

Once for who knows no more than the whole source, and once for who knows of somebody that they are in one of the
releases: the figure is that of the worst reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np

from funnel.audit.extras.absence import Everybody, Flags, Pattern
from funnel.audit.extras.overlaps import TooLarge
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import INFINITE, NOTIONS, STEP, Leakage, information
from funnel.audit.kernel.verdict import Broken
from funnel.format.journal import NAME, Together

_NEAR = float(STEP / 50)
_MORE = {"ldp-x", "srlip", "rldp"}
"""Notions that ask for more than a table of answers says."""


class Inside(Protocol):
    """What the releases of one pattern tell about its records."""

    def whole(self) -> Channel:
        """All of them as one channel. Raises TooLarge."""

    def finite(self) -> list[float]:
        """The finite bounds that are known of it, in nats."""


class Divided:
    """A history of the people that one reader thinks of (`rows`, (m,)), divided by which releases they are in."""

    def __init__(
        self, people: Everybody, rows: Flags, patterns: Sequence[Pattern], inside: Sequence[Inside | None]
    ) -> None:
        self.people = people
        theirs = [(one, told) for one, told in zip(patterns, inside, strict=True) if rows[one.rows].any()]
        self.patterns, self.inside = [one for one, _ in theirs], [told for _, told in theirs]

    def within(self, figure: Fraction) -> bool:
        """Whether they are told no more: exactly, or else as far as bounds show."""
        try:
            return all(one.within(figure) for one in self.measured)
        except (TooLarge, OverflowError):
            return min([self._sums[0], *(float(one.text) for one in self._ceiling)]) - 2 * _NEAR <= figure

    def states(self, how: str, figure: Fraction | None) -> bool:
        """Whether a way of bounding what they are told yields the figure. Raises TooLarge, OverflowError."""
        if how == "sum":
            least, *looser = self._sums
            if figure is None:
                return math.isinf(least)
            return any(-_NEAR <= float(figure) - one <= 2 * float(STEP) + _NEAR for one in (least, *looser))
        return any(one.is_stated_as(figure) for one in (self._ceiling if how == "ceiling" else self.measured))

    @cached_property
    def measured(self) -> list[Leakage]:
        """The channels whose worst is the leakage. Raises TooLarge, also of what no table says, and OverflowError."""
        people, notion = self.people, self.people.asked.notion
        if notion in _MORE:
            raise TooLarge
        channels = [None if one is None else one.whole() for one in self.inside]
        if notion == "mutual-information":
            return [people.average(self.patterns, channels)]
        apart = [
            NOTIONS[notion].leakage(people.apart(self.patterns, one, channel))
            for one, channel in zip(self.patterns, channels, strict=True)
            if channel is not None
        ]
        pattern = people.told(self.patterns)
        return apart if pattern is None else [pattern, *apart]

    @property
    def _ceiling(self) -> Iterator[Leakage]:
        """What no release tells more than, on average: H(S)."""
        if self.people.asked.notion == "mutual-information":
            most = information(np.diag(self.people.where(self.patterns).sum(axis=1)))
            yield Leakage(f"{float(most):.6f}", lambda bound: most <= bound)

    @cached_property
    def _sums(self) -> list[float]:
        """What the pattern tells and the most that is told within one, in nats: by the tightest bounds that are known
        of each, and by such looser ones as the ledger may have had to do with."""
        pattern = self.people.told(self.patterns)
        own = math.inf if pattern is None else about(pattern)
        known = [sorted(one.finite()) or [math.inf] for one in self.inside if one is not None]
        least = max((one[0] for one in known), default=0.0)
        return [own + least, *(own + one for one in chain.from_iterable(known) if one > least)]


def agree_divided(
    people: Everybody, known: Sequence[Flags], patterns: Sequence[Pattern], inside: Sequence[Inside | None],
    stated: Together,
) -> None:  # fmt: skip
    """The figure is what the pattern and the answers tell together to the worst of the readers, who know the source
    (m,), or which of its people are in one of the releases. Raises Broken, TooLarge, OverflowError."""
    everybody = np.ones(len(people.number), bool)
    readers = [Divided(people, rows, patterns, inside) for rows in (everybody, *known) if rows.any()]
    figure, large = None if stated.measured is None else rational(stated.measured), list[Exception]()
    found = any(_can(one.states, stated.how, figure, large) for one in readers)
    bounded = figure is None or (_no_less(people, figure) and all(one.within(figure) for one in readers))
    if bounded and large and not found:
        raise large[0]
    if not (found and bounded):
        what = f"composed.measured is not what releases and absence tell together ({stated.how})"
        raise Broken(NAME, what, "what population.json and the protocols say", stated.measured)


def _can(
    states: Callable[[str, Fraction | None], bool], how: str, figure: Fraction | None, large: list[Exception]
) -> bool:
    """Whether a reader states it; those for whom it is too large are kept."""
    try:
        return states(how, figure)
    except (TooLarge, OverflowError) as error:
        large.append(error)
        return False


def _no_less(people: Everybody, figure: Fraction) -> bool:
    """Whether the release by itself tells no more to who knows who is in it, by the notion asked for; also where its
    draws read the secret of another promise, of which nothing is measured here."""
    opened = people.opened
    if people.asked.own:
        return NOTIONS[people.asked.notion].leakage(opened.channel).within(figure)
    if any(block.weights.shape[1] > 1 for block in opened.blocks):
        return True
    return NOTIONS[people.asked.notion].leakage(people.ground().channel(opened.blocks)).within(figure)


def about(leakage: Leakage | None) -> float:
    """Nats of a leakage, to the sixth decimal; a leakage that is only certified has no number."""
    if leakage is None:
        return 0.0
    return float(leakage.text) if leakage.exact and leakage.text != INFINITE else math.inf
