"""How each term of a policy beside secret, columns and bound compares: one judge a term."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from funnel.notions.change import Judged, ordered

_RANK_MISSING = {"error": 0, "drop": 1, "category": 2}


def no_matter(old: Any, new: Any) -> Judged:
    """Terms that promise nothing."""
    return "unchanged", "it decides how values are drawn, not what is promised"


def _budget(old: float | None, new: float | None) -> Judged:
    said = ("all releases together may leak more", "all releases together may leak less")
    return ordered(at_most(old), at_most(new), *said)


def at_most(bound: float | None) -> float:
    """A bound, or none."""
    return inf if bound is None else bound


def _minimum(old: int, new: int) -> Judged:
    return ordered(old, new, "smaller groups shape the protocol", "only larger groups shape the protocol",
                   more_is_weaker=False)  # fmt: skip


def _missing(old: str, new: str) -> Judged:
    return ordered(_RANK_MISSING[old], _RANK_MISSING[new], "more is said of records with missing values",
                   "less is said of records with missing values")  # fmt: skip


def _draws(old: str, new: str) -> Judged:
    said = (
        "every release draws anew about the same people",
        "an unchanged record answers the same every time",
    )
    return ordered({"permanent": 0, "fresh": 1}[old], {"permanent": 0, "fresh": 1}[new], *said)


def _key(old: str | None, new: str | None) -> Judged:
    return (
        "incomparable",
        "if the key is another one, all answers are drawn anew: one more release about the same people",
    )


def _filter(old: str | None, new: str | None) -> Judged:
    return "incomparable", "other people: what is promised to whom cannot be compared"


def _entity(old: str | None, new: str | None) -> Judged:
    if old is None:
        return "stronger", "no person may have more than one row"
    if new is None:
        return "weaker", "a person may have several rows, each of which tells as much"
    return "incomparable", "other persons"


def _kind(old: str, new: str) -> Judged:
    return ordered(
        old == "counts", new == "counts", "the protocol follows the counts themselves", "the counts are noisy"
    )


def _noise(old: float | None, new: float | None) -> Judged:
    return ordered(at_most(old), at_most(new), "less noise on the counts", "more noise on the counts")


def _estimates(old: float | None, new: float | None) -> Judged:
    said = ("all estimates together may spend more", "all estimates together may spend less")
    return ordered(at_most(old), at_most(new), *said)


def _values(old: Any, new: Any) -> Judged:
    return "incomparable", "other values are counted"


def _sign(old: str | None, new: str | None) -> Judged:
    if old is None:
        return "stronger", "readers can tell a release from one that was forged or changed"
    if new is None:
        return "weaker", "readers cannot tell a release any more from one that was forged or changed"
    return "incomparable", "if the key is another one, readers have to get its public half anew"


def _formulas(old: str, new: str) -> Judged:
    said = ("values of a CSV file may be carried out as formulas", "no value of a CSV file is a formula")
    return ordered({"refuse": 0, "keep": 1}[old], {"refuse": 0, "keep": 1}[new], *said)


def _private(old: str, new: str) -> Judged:
    return (
        "incomparable",
        "unless the folder was moved as it is, its ledger begins anew: nothing released so far is counted any more",
    )


JUDGES: dict[str, Callable[[Any, Any], Judged]] = {
    "budget": _budget, "estimate.epsilon": _noise, "estimate.budget": _estimates, "estimate.values": _values,
    "estimate.minimum": _minimum, "estimate.kind": _kind, "source.missing": _missing,
    "source.filter": _filter, "source.entity": _entity, "draws.kind": _draws, "draws.key": _key,
    "release.sign": _sign, "release.formulas": _formulas, "release.private": _private,
}  # fmt: skip
"""By the dotted name of the term; what is not named here promises nothing."""
