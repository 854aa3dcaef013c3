"""The words of notions that bound how far beliefs may rise, and less, or not at all, how far they may fall."""

from __future__ import annotations

import math

from funnel.report import beyond
from funnel.report.figures import factor_text
from funnel.report.terms import Terms, Wording, factor
from funnel.report.worst_case import LIP

_SEES = "Whoever sees a record’s released values"


def _pml(terms: Terms) -> str:
    return (
        f"{_SEES} can raise the probability they give to {terms.any_value} by at most a factor of "
        f"{factor_text(terms.epsilon)}, but may be able to rule a value out."
    )


def _alip(terms: Terms) -> str:
    lower = terms.parameters.get("lower")
    if lower is None:
        return _pml(terms)
    return (
        f"{_SEES} can raise the probability they give to {terms.any_value} by at most a factor of "
        f"{factor_text(terms.epsilon)}, and lower it by at most a factor of {factor_text(float(lower))}."
    )


def _starts_from_table(terms: Terms) -> str:
    return (
        "The promise is about someone who starts from the frequencies in the table. Someone who already knows more "
        "about the person (that a true public value is one of a few, say, or another column) starts from another "
        "belief, and for them the change may be larger: who can rule out all values of "
        f"{terms.secret} but one is certain of that one. {beyond.already(terms)}"
    )


def _within(before: float, epsilon: float) -> tuple[float, float]:
    """P(s|y) rises by a factor e^ε at most, and so does that of all other values together."""
    up = math.exp(epsilon)
    return max(1 - up * (1 - before), 0.0), min(before * up, 1.0)


PML = Wording(
    "Pointwise maximal leakage about the secret", "pml", "ε = {}",
    "P(s | y) / P(s) ≤ exp(ε) for every secret value s and every released y: the upper half of [DS, Definition 2]",
    "ln P(s | y) / P(s)", _pml, LIP.strength, LIP.subject, LIP.observer, LIP.condition, LIP.recognised,
    _starts_from_table, factor, _within,
)  # fmt: skip
ALIP = Wording(
    "Asymmetric local information privacy", "alip", "ε = {}",
    "exp(−lower) ≤ P(s | y) / P(s) ≤ exp(ε) for every secret value s and every released y: [DS, Definition 2] with a "
    "bound of its own for the fall, or none",
    "ln P(s | y) / P(s)", _alip, LIP.strength, LIP.subject, LIP.observer, LIP.condition, LIP.recognised,
    _starts_from_table, factor, _within,
)  # fmt: skip
