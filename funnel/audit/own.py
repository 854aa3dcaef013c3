"""The leakage that epsilon bounds, by notion: an exact ratio, or a number that is certainly not below the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from funnel.audit.evidence import Evidence
from funnel.audit.exact import ExactArray, at_most_exp, exp_below, ldp_ratio, lip_ratio, pml_ratio
from funnel.audit.findings import broken
from funnel.audit.logarithms import information_above
from funnel.audit.manifest import STEP, Manifest
from funnel.audit.protocols import Blocks
from funnel.audit.robust import robust_ratio
from funnel.audit.side import public_ratio, srlip_ratio
from funnel.audit.unary import UnaryBlock
from funnel.audit.uncertainty import around

_SLACK = Fraction(1, 10**12)
_CERTIFIED = Fraction(1, 10**6)
"""Relative: how far two certified bounds of one robust ratio may differ."""
_AVERAGED = Fraction(1, 10**9)
"""Nats: how far two certified bounds of one mutual information may differ."""


@dataclass(frozen=True)
class Own:
    """`value` is a ratio, None where infinite; for mutual information it is a number of nats."""

    measure: str
    value: Fraction | None

    def within(self, epsilon: Fraction) -> bool:
        """Whether the leakage is at most epsilon nats; in doubt the answer is no."""
        if self.value is None:
            return False
        return self.value <= epsilon if self._in_nats else at_most_exp(self.value, epsilon)

    def agrees(self, kept: Fraction | None) -> bool:
        """Whether the evidence's number is this one, or as near as two certificates of one truth can be asked to be."""
        if self.value is None or kept is None:
            return self.value is kept
        if self._in_nats:
            return abs(self.value - kept) <= _AVERAGED
        return abs(self.value - kept) <= (self.value * _CERTIFIED if self.measure == "rldp" else 0)

    def rounded_up(self, stated: Fraction | None) -> bool:
        """Whether the published nats are these, rounded up by less than 0.0001."""
        if self._in_nats:
            return stated is not None and self.value is not None and (
                -_AVERAGED <= stated - self.value <= STEP + _AVERAGED
            )  # fmt: skip
        return rounded_up(self.value, stated, _CERTIFIED if self.measure == "rldp" else _SLACK)

    @property
    def _in_nats(self) -> bool:
        return self.measure == "mutual_information"

    def text(self) -> str:
        """As the evidence writes it."""
        return ratio_text(self.value)

    def nats(self) -> str:
        """For a reader."""
        return f"{float(self.value):.6f}" if self._in_nats and self.value is not None else nats(self.value)


def own_leakage(evidence: Evidence, blocks: Blocks, table: ExactArray, manifest: Manifest) -> Own:
    """The manifest's own measure of the channel released, T[s, y…] of which is given. Raises AuditFailure."""
    measure = manifest.measure
    if measure == "srlip":
        return Own(measure, srlip_ratio(evidence, blocks))
    if measure == "ldp_x":
        return Own(measure, public_ratio(blocks))
    if measure == "rldp":
        if isinstance(blocks[0], UnaryBlock):
            raise broken("release.json", "sets are not measured under rldp", expected="weights", found="sets")
        return Own(measure, robust_ratio(blocks[0], around(evidence, manifest)))
    if measure == "mutual_information":
        return Own(measure, information_above(table))
    if measure in ("pml", "alip"):
        return Own(measure, pml_ratio(table))
    return Own(measure, ldp_ratio(table) if measure == "ldp" else lip_ratio(table))


def rounded_up(ratio: Fraction | None, stated: Fraction | None, slack: Fraction = _SLACK) -> bool:
    """ln(ratio) <= stated < ln(ratio) + 0.0001, decided without a logarithm; a slack above 10^-12 goes both ways."""
    if ratio is None or stated is None:
        return ratio is None and stated is None
    floor = stated - STEP - slack
    ceiling = stated if slack == _SLACK else stated + slack
    return at_most_exp(ratio, ceiling) and (floor <= 0 or not _above(floor, ratio))


def _above(exponent: Fraction, ratio: Fraction) -> bool:
    """Whether e^exponent > ratio for certain."""
    return exp_below(min(exponent, Fraction(ratio.numerator.bit_length() + 1))) > ratio


def nats(ratio: Fraction | None) -> str:
    """ln(ratio) for a reader."""
    if ratio is None:
        return "infinite"
    return f"{math.log(ratio.numerator) - math.log(ratio.denominator):.6f}"


def ratio_text(ratio: Fraction | None) -> str:
    """`num/den`, or `inf`."""
    return "inf" if ratio is None else f"{ratio.numerator}/{ratio.denominator}"
