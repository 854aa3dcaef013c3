"""What the report promises, in words: one entry per notion; nothing else in the report names a notion's promise."""

from __future__ import annotations

from funnel.errors import InternalError
from funnel.report import average, rising, worst_case
from funnel.report.figures import epsilon_text
from funnel.report.terms import Terms, Wording

__all__ = ["NOTIONS", "Terms", "Wording", "bound_sentence", "notion"]

NOTIONS: dict[str, Wording] = {
    "lip": worst_case.LIP,
    "ldp": worst_case.LDP,
    "perfect": worst_case.PERFECT,
    "srlip": worst_case.SRLIP,
    "ldp-x": worst_case.LDP_X,
    "rldp": worst_case.RLDP,
    "pml": rising.PML,
    "alip": rising.ALIP,
    "mutual-information": average.MUTUAL_INFORMATION,
}


def notion(name: str) -> Wording:
    """The words of a notion. Raises InternalError where it has none: no report without a promise."""
    if name not in NOTIONS:
        raise InternalError(f"the report has no wording for the notion {name!r}")
    return NOTIONS[name]


def bound_sentence(name: str, epsilon: float) -> str:
    """The bound in symbols, for the headline."""
    return notion(name).symbol.format(epsilon_text(epsilon))
