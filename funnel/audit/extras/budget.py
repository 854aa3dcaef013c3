"""The budget of all releases about the same people together, as this release's entry in the ledger tells it."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import STEP
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree
from funnel.format.journal import NAME

CLAIM = "ledger-budget"
TITLE = "what the entry says that this release and all before it tell is within the policy's budget"
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """And no less than was told before of the same measure and secret, nor than this release tells. Raises Broken.

    Two bounds of one robust leakage may lie apart by up to STEP, and the manifest's figure is rounded up to its own.
    """
    budget, (*before, own) = opened.terms.budget, [one.composed for one in opened.entries]
    alike = [one.figure for one in before if (one.measure, one.sensitive) == (own.measure, own.sensitive)]
    alone = opened.manifest.leakage[own.measure]
    if own.measured is not None and (alone is None or _most(own.measured, opened.manifest.step) < rational(alone)):
        raise Broken(NAME, "all releases together tell less than this one", alone, own.measured)
    figures = [own.measured, *alike]
    largest = None if None in figures else max(figure for figure in figures if figure is not None)
    agree(NAME, [("composed leakage, the largest so far", largest, own.figure)])
    if budget is None:
        return Unchecked(NOT_CLAIMED + "the policy names no budget")
    if largest is None or rational(largest) > Fraction(budget):
        raise Broken(NAME, "all releases together tell more than the budget", budget, largest)
    return f"{largest:g} of {float(Fraction(budget)):g} nats"


def _most(measured: float, step: Fraction) -> Fraction:
    """What the manifest may state of this leakage."""
    return -(-(rational(measured) + STEP) // step) * step
