"""The count table with noise on every cell that the policy declares: all that a private estimate may be made of.

Neighbouring tables hold the same number of records, one of which has other values: two counts differ, each by one.
Discrete Laplace noise of rate ε_est/2 on each cell therefore makes the noisy table ε_est-differentially private, and
so is whatever is computed from it alone: protocol, figures, report (mathematics, section 8). The noise is drawn in
`funnel.ledger.estimates`, which enters it first.

Discrete Laplace noise is drawn in exact whole-number arithmetic: P(k) = (1-p)/(1+p) p^|k| with p = e^-rate.

The sampler is that of Canonne, Kamath and Steinke (2020), Algorithms 1 and 2: Bernoulli(e^-x) from fair dice alone,
so that no rounding of a logarithm can show in the lowest digit of a count. The dice are an argument, so that its
distribution can be worked out; `funnel.ledger.estimates` rolls those of the operating system, and no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count

import numpy as np

from funnel.data import Joint
from funnel.data.arrange import Recoder
from funnel.data.convert import alphabet_record, in_order
from funnel.data.domain import Domain
from funnel.data.joint import IntArray
from funnel.errors import PlanError
from funnel.format.canonical import encode
from funnel.format.schema import as_json
from funnel.measure.uncertainty import kept

SENSITIVITY = 2
"""By how much the counts of neighbouring tables differ together."""
MOST = (1 << 39) - 1
"""Of a noisy count, in size: no sum of them overflows a word. What is beyond it becomes it."""
FLOOR = 1
"""What noisy counts below it become, so that no declared combination is taken to be impossible."""
Dice = Callable[[int], int]
"""A uniform whole number from 0 to n - 1, for n >= 1."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """True and noisy counts (m,) of a domain's cells; the noisy ones may be negative. Nobody else sees either.

    `counted` are the current counts; the noise was added to `estimated` (m,), the counts of some hours ago, or of the
    lock's night. `width` is t of `funnel.measure.uncertainty` where the notion protects against a set of distributions,
    else None. `name` is that of the estimate in the ledger.
    """

    domain: Domain
    epsilon: Fraction
    counted: IntArray
    estimated: IntArray
    noisy: IntArray
    name: str
    width: int | None = None

    @property
    def rows(self) -> int:
        """Number of records, which neighbouring tables share."""
        return int(self.counted.sum())

    @property
    def parts(self) -> tuple[IntArray, IntArray, IntArray]:
        """`estimated`, the noise added and the noise taken, (m,) each and none below zero: as files hold them."""
        noise = self.noisy - self.estimated
        return self.estimated, np.maximum(noise, 0), np.maximum(-noise, 0)

    @cached_property
    def joint(self) -> Joint:
        """What everything is computed from: noisy counts, those below one set to one; or those below 2t set to zero.

        Raises PlanError where then nothing is left of some value, so that nobody could draw for it.
        """
        if self.width is None:
            return self.domain.joint(np.maximum(self.noisy, FLOOR))
        counts = kept(self.noisy, self.width)
        self._check_left(self.domain.cells[counts > 0], 2 * self.width)
        return self.domain.joint(counts)

    def _check_left(self, cells: IntArray, least: int) -> None:
        for axes, what in ((slice(0, 1), "the secret"), (slice(1, None), "the public columns together")):
            lost = len(np.unique(self.domain.cells[:, axes], axis=0)) - len(np.unique(cells[:, axes], axis=0))
            if lost:
                raise PlanError(
                    "below-minimum",
                    f"{lost:,} of the declared values of {what} cannot be told from none at all through the noise: no "
                    f"noisy count of theirs reaches {least:,}",
                    advice="Declare fewer or wider values, or accept a larger `estimate.epsilon`; a notion that is not "
                    "robust may ask for less, but its promise is about the noisy counts alone.",
                )

    def truth(self, arranged: Joint) -> Joint:
        """The true counts in the blocks of `arranged`, which is `joint` as it was or with its blocks put together."""
        cells = self.arranged(arranged)
        there = self.counted > 0
        return Joint(arranged.secret, arranged.blocks, cells[there], self.counted[there], complete=False)

    def digest(self, arranged: Joint) -> str:
        """SHA-256 of the noisy counts, in the blocks of `arranged`: it tells no more than they do."""
        cells = in_order(np.column_stack([self.arranged(arranged), self.noisy])).tolist()
        alphabets = [as_json(alphabet_record(one)) for one in (arranged.secret, *arranged.blocks)]
        return hashlib.sha256(encode([alphabets, cells])).hexdigest()

    def arranged(self, arranged: Joint) -> IntArray:
        """The codes (m, 1+k) of the domain's cells in the blocks of `arranged`."""
        cells = self.domain.cells
        if len(arranged.blocks) == len(self.domain.blocks):
            return cells
        whole = Recoder(self.joint)(list(cells[:, 1:].T))
        return np.column_stack([cells[:, 0], whole])


def bernoulli_exp(exponent: Fraction, dice: Dice) -> bool:
    """True with chance e^-x, for 0 <= x <= 1 (Algorithm 1): the first k at which Bernoulli(x/k) fails is odd."""
    for k in count(1):
        if dice(exponent.denominator * k) >= exponent.numerator:
            return k % 2 == 1
    raise AssertionError


def discrete_laplace(rate: Fraction, dice: Dice) -> int:
    """One whole number with P(k) proportional to e^-rate|k|, rate > 0 (Algorithm 2)."""
    if rate <= 0:
        raise ValueError("discrete Laplace noise needs a positive rate")
    one = Fraction(1)
    while True:
        low = dice(rate.denominator)
        if not bernoulli_exp(Fraction(low, rate.denominator), dice):
            continue
        high = 0
        while bernoulli_exp(one, dice):
            high += 1
        size = (low + rate.denominator * high) // rate.numerator
        negative = dice(2) == 1
        if not (negative and size == 0):
            return -size if negative else size
