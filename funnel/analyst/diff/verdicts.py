"""How two values of one term compare: whether the new one promises less, more, or something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from funnel.notions import Notion, implications
from funnel.notions.change import Judged, Verdict, ordered

Terms = Mapping[str, Any]


def privacy(old: Terms, new: Terms) -> Judged:
    """Two bounds as a whole: a notion with its epsilon and its parameters ([DS] Lemma 1)."""
    forth, back = implied(new, old), implied(old, new)
    if forth and back:
        return "unchanged", "each bound implies the other"
    if forth:
        return "stronger", f"it implies the old one: {forth}"
    if back:
        return "weaker", f"the old one implies it, not the other way round: {back}"
    return "incomparable", "neither bound implies the other"


def implied(given: Terms, asked: Terms) -> str | None:
    """Why a bound that is kept implies one that is asked for; None where it does not."""
    return implications.implied(bound(given), bound(asked))


def bound(terms: Terms) -> Notion:
    """The notion that the terms of a policy, a lock or a release name."""
    told = {key.removeprefix("privacy."): value for key, value in terms.items() if key.startswith("privacy.")}
    name, epsilon = told.pop("notion"), told.pop("epsilon", 0.0)
    return implications.bound(name, epsilon, told)


def sensitive(old: Sequence[str], new: Sequence[str]) -> Judged:
    """The secret is a tuple: a bound about more columns implies one about fewer."""
    before, after = set(old), set(new)
    if before == after:
        return "unchanged", "the order of the columns makes no difference"
    if before > after:
        return "weaker", f"{_names(before - after)} is not protected any more"
    if before < after:
        return "stronger", f"{_names(after - before)} is protected too"
    return (
        "incomparable",
        f"{_names(before - after)} is not protected any more, {_names(after - before)} is now",
    )


def attribute(old: Terms, new: Terms) -> Judged:
    """What is told of one public column: the finer, the weaker."""
    kinds = [next((key for key in ("bins", "top", "round") if key in one), None) for one in (old, new)]
    if kinds == [None, None]:
        return "unchanged", ""
    if kinds[0] is None or kinds[1] is None:
        return ("stronger", "coarser than the values themselves") if kinds[0] is None else (
            "weaker", "the values themselves instead of coarser ones")  # fmt: skip
    if kinds[0] != kinds[1]:
        return "incomparable", "other groups of values"
    return _FINER[kinds[0]](old, new)


def _bins(old: Terms, new: Terms) -> Judged:
    return nested(set(old["bins"]), set(new["bins"]), "finer bins", "coarser bins", "other bins")


def _top(old: Terms, new: Terms) -> Judged:
    return ordered(old["top"], new["top"], "more values are told apart", "fewer values are told apart")


def _rounded(old: Terms, new: Terms) -> Judged:
    coarse, fine = max(old["round"], new["round"]), min(old["round"], new["round"])
    if not math.isclose(coarse / fine, round(coarse / fine), rel_tol=1e-9):
        return "incomparable", "other multiples"
    step = ordered(-old["round"], -new["round"], "finer numbers", "coarser numbers")
    ends = [one.get("clip") or [-math.inf, math.inf] for one in (old, new)]
    if ends[0] == ends[1]:
        return step
    wider = ends[1][0] <= ends[0][0] and ends[1][1] >= ends[0][1]
    narrower = ends[1][0] >= ends[0][0] and ends[1][1] <= ends[0][1]
    clip: Verdict = "weaker" if wider else "stronger" if narrower else "incomparable"
    return (clip, f"{'wider' if wider else 'narrower' if narrower else 'other'} ends") if step[0] in (
        "unchanged", clip) else ("incomparable", "other steps and other ends")  # fmt: skip


_FINER: dict[str, Callable[[Terms, Terms], Judged]] = {"bins": _bins, "top": _top, "round": _rounded}


def nested(
    old: set[Any] | frozenset[Any], new: set[Any] | frozenset[Any], more: str, fewer: str, other: str
) -> Judged:
    """Two sets of which the larger one tells more."""
    if old == new:
        return "unchanged", ""
    if old < new:
        return "weaker", more
    return ("stronger", fewer) if old > new else ("incomparable", other)


def _names(columns: set[str]) -> str:
    return " and ".join(sorted(columns))
