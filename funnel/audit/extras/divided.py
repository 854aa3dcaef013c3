"""What a ledger states of releases that leave people out, held against everybody divided by where they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from funnel.audit.extras.absence import Everybody, Pattern
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import INFINITE, NOTIONS, STEP, Leakage, information
from funnel.audit.kernel.verdict import Broken
from funnel.format.journal import NAME, Together


class Inside(Protocol):
    """What the releases of one pattern tell about its records."""

    def whole(self) -> Channel:
        """All of them as one channel. Raises TooLarge."""

    def ends(self) -> tuple[float, float]:
        """The least and the most that finite bounds say, in nats."""


class Divided:
    """A history of everybody, divided by which releases they are in."""

    def __init__(
        self, people: Everybody, patterns: Sequence[Pattern], inside: Sequence[Inside | None]
    ) -> None:
        self.people, self.patterns, self.inside = people, patterns, inside

    def agrees(self, stated: Together) -> None:
        """The figure is what the pattern and the answers tell together. Raises Broken, TooLarge, OverflowError."""
        figure = None if stated.measured is None else rational(stated.measured)
        if stated.how == "sum":
            self._sums(stated, figure)
        elif stated.how == "ceiling" and self.people.asked.notion == "mutual-information":
            found = information(np.diag(self.people.where(self.patterns).sum(axis=1)))
            most = Leakage(f"{float(found):.6f}", lambda bound: found <= bound)
            self._told(stated, most.is_stated_as(figure))
        else:
            leakages = list(self._measured())
            infinite = any(one.is_stated_as(None) for one in leakages)
            within = figure is not None and all(one.within(figure) for one in leakages)
            right = infinite if figure is None else within and any(one.is_stated_as(figure) for one in leakages)
            self._told(stated, right)

    def _told(self, stated: Together, right: bool) -> None:
        if not right:
            what = f"composed.measured is not what releases and absence tell together ({stated.how})"
            raise Broken(NAME, what, "what population.json and the protocols say", stated.measured)

    def _measured(self) -> Iterator[Leakage]:
        """The channels whose worst is the leakage: that of the release itself, to who knows who is in it, is one."""
        people = self.people
        if (alone := self._alone()) is not None:
            yield alone
        channels = [None if one is None else one.whole() for one in self.inside]
        if people.asked.notion == "mutual-information":
            yield people.average(self.patterns, channels)
            return
        if (pattern := people.told(self.patterns)) is not None:
            yield pattern
        for one, channel in zip(self.patterns, channels, strict=True):
            if channel is not None:
                yield NOTIONS[people.asked.notion].leakage(people.apart(one, channel))

    def _alone(self) -> Leakage | None:
        """The release by itself, by the notion asked for, to who knows who is in it; None where its draws read the
        secret of another promise."""
        people, opened = self.people, self.people.opened
        if people.asked.own:
            return NOTIONS[people.asked.notion].leakage(opened.channel)
        if any(block.weights.shape[1] > 1 for block in opened.blocks):
            return None
        return NOTIONS[people.asked.notion].leakage(people.ground().channel(opened.blocks))

    def _sums(self, stated: Together, figure: Fraction | None) -> None:
        """No less than the tightest bounds that are shown here, and no more than the loosest of them."""
        pattern = self.people.told(self.patterns)
        ends = [one.ends() for one in self.inside if one is not None]
        least, most = (max((one[side] for one in ends), default=0.0) for side in (0, 1))
        own = math.inf if pattern is None else about(pattern)
        if figure is None:
            self._told(stated, math.isinf(own) or any(math.isinf(one) for one, _ in ends))
            return
        near, alone = float(STEP / 50), self._alone()
        bounded = own + least - near <= float(figure) <= max(own + most, about(alone)) + 2 * float(STEP) + near
        self._told(stated, bounded and (alone is None or alone.within(figure)))


def about(leakage: Leakage | None) -> float:
    """Nats of a leakage, to the sixth decimal; a leakage that is only certified has no number."""
    if leakage is None:
        return 0.0
    return float(leakage.text) if leakage.exact and leakage.text != INFINITE else math.inf
