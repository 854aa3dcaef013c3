"""How each term of a policy beside secret, columns and bound compares: one judge a term."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from operator import neg
from typing import Any

from funnel.analyst.diff.verdicts import nested
from funnel.data.alphabet import folded
from funnel.notions.change import Judged, ordered

Judge = Callable[[Any, Any], Judged]


def at_most(bound: float | None) -> float:
    """A bound, or none."""
    return inf if bound is None else bound


def no_matter(old: Any, new: Any) -> Judged:
    """Terms that promise nothing."""
    return "unchanged", "it decides how values are drawn, not what is promised"


def _graded(grade: Callable[[Any], Any], weaker: str, stronger: str) -> Judge:
    """A term that promises the less the higher the grade of its value; what a higher and a lower one mean."""
    return lambda old, new: ordered(grade(old), grade(new), weaker, stronger)


def _optional(come: str, gone: str, other: str) -> Judge:
    """A term that promises something where it is there; what it means that it came, went, or is another."""

    def judge(old: Any, new: Any) -> Judged:
        if old is None:
            return "stronger", come
        return ("weaker", gone) if new is None else ("incomparable", other)

    return judge


def _names(old: Any, new: Any) -> Judged:
    """Key columns: the more of them, the more is known of a row."""
    return nested(
        set(map(folded, old or ())),
        set(map(folded, new or ())),
        "rows have a name, or more of one: more is known of whose they are, and a key may tell something by itself",
        "rows have no name any more, or less of one: less is known of whose they are",
        "rows have other names",
    )


def _accepted(old: Any, new: Any) -> Judged:
    """What a release may end."""
    return nested(
        set(old or ()),
        set(new or ()),
        "releases may end more promises, or have no bound together",
        "releases may end fewer promises",
        "releases may end other promises",
    )


def _another(why: str) -> Judge:
    """A term of which two values cannot be compared."""
    return lambda old, new: ("incomparable", why)


UNSEEN = _graded(
    ("error", "drop", "other").index,
    "more is said of rows with values that a lock does not know",
    "less is said of rows with values that a lock does not know",
)
"""The judge of a public column's `unseen`."""

CELLS: dict[str, Judge] = {
    "most": _graded(int, "more cells: more is told apart", "fewer cells: less is told apart"),
    "minimum": _graded(neg, "smaller cells", "larger cells"),
}
"""The judges of a wide block's `cells`."""

JUDGES: dict[str, Judge] = {
    "accept": _accepted,
    "budget": _graded(
        at_most, "all releases together may leak more", "all releases together may leak less"
    ),
    "estimate.epsilon": _graded(at_most, "less noise on the counts", "more noise on the counts"),
    "estimate.budget": _graded(
        at_most, "all estimates together may spend more", "all estimates together may spend less"
    ),
    "estimate.values": _another("other values are counted"),
    "estimate.minimum": _graded(
        neg, "smaller groups shape the protocol", "only larger groups shape the protocol"
    ),
    "estimate.beliefs": _graded(
        lambda step: -(step or 0.0),
        "protocols follow beliefs more closely, so that their weights tell more of the counts",
        "protocols are made from coarser beliefs, so that their weights tell less of the counts",
    ),
    "estimate.kind": _graded(
        ("private", "counts").index, "the protocol follows the counts themselves", "the counts are noisy"
    ),
    "source.missing": _graded(
        ("error", "drop", "category").index,
        "more is said of records with missing values",
        "less is said of records with missing values",
    ),
    "source.csv": _another("the same file is read as other values"),
    "source.table": _another(
        "another table: whether its columns mean the same, about the same people, is not known; a run looks into the "
        "private digests, and takes for another column what these do not show to be the same"
    ),
    "source.filter": _another("other people: what is promised to whom cannot be compared"),
    "source.entity": _optional(
        "no person may have more than one row",
        "a person may have several rows, each of which tells as much",
        "other persons",
    ),
    "draws.kind": _graded(
        ("permanent", "fresh").index,
        "every release draws anew about the same people",
        "an unchanged record answers the same every time",
    ),
    "draws.key": _another(
        "if the key is another one, all answers are drawn anew: one more release about the same people"
    ),
    "release.identify": _names,
    "release.sign": _optional(
        "readers can tell a release from one that was forged or changed",
        "readers cannot tell a release any more from one that was forged or changed",
        "if the key is another one, readers have to get its public half anew",
    ),
    "release.formulas": _graded(
        ("refuse", "keep").index,
        "values of a CSV file may be carried out as formulas",
        "no value of a CSV file is a formula",
    ),
    "release.private": _another(
        "unless the folder was moved as it is, its ledger begins anew: nothing released so far is counted any more"
    ),
}
"""By the dotted name of the term; what is not named here promises nothing."""
