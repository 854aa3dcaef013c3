"""How two values of one term compare: whether the new one promises less, more, or something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from funnel.notions import Notion, implications
from funnel.notions.change import Judged, Verdict, ordered
from funnel.policy.groups import climb

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
    found = [one for one in (_reduced(old, new), _blanks(old, new), _rare(old, new)) if one[0] != "unchanged"]
    verdicts = {verdict for verdict, _ in found}
    whole: Verdict = "unchanged" if not found else verdicts.pop() if len(verdicts) == 1 else "incomparable"
    return whole, "; ".join(why for _, why in found)


def _reduced(old: Terms, new: Terms) -> Judged:
    """By the key that makes other values of a column's own."""
    kinds = [next((key for key in _FINER if key in one), None) for one in (old, new)]
    if kinds == [None, None]:
        return "unchanged", ""
    if kinds[0] is None or kinds[1] is None:
        return ("stronger", "coarser than the values themselves") if kinds[0] is None else (
            "weaker", "the values themselves instead of coarser ones")  # fmt: skip
    if kinds[0] != kinds[1]:
        return "incomparable", "other groups of values"
    return _FINER[kinds[0]](old, new)


def _blanks(old: Terms, new: Terms) -> Judged:
    apart, one = "texts that differ in blanks are told apart", "texts that differ in blanks alone are one"
    return ordered(old.get("trim", False), new.get("trim", False), apart, one, more_is_weaker=False)


def _rare(old: Terms, new: Terms) -> Judged:
    """A release in which a rare value is an error says nothing of it, for there is none."""
    before, after = old.get("rare") or "error", new.get("rare") or "error"
    if before != after and "error" not in (before, after):
        return "incomparable", "other groups of rare values"
    grade = ("error", "other", "bin").index
    return ordered(grade(before), grade(after), "more is said of rare values", "less is said of rare values")


def _groups(old: Terms, new: Terms) -> Judged:
    """Groups are coarser where values that were together stay so; levels above them say who is close to whom."""
    names = sorted({*old["groups"][0], *new["groups"][0]})
    before, after = ([climb(name, one["groups"]) for name in names] for one in (old, new))
    if any(one[1:] != other[1:] for one, other in zip(before, after, strict=True)):
        return "incomparable", "other levels above the groups"
    pairs = [(one[0], other[0]) for one, other in zip(before, after, strict=True)]
    finer, coarser = (len({one[place] for one in pairs}) == len(set(pairs)) for place in (1, 0))
    if finer and coarser:
        return "unchanged", "the same groups under other names"
    if not finer and not coarser:
        return "incomparable", "other groups of values"
    return ("weaker", "smaller groups") if finer else ("stronger", "larger groups")


def _bins(old: Terms, new: Terms) -> Judged:
    return nested(set(old["bins"]), set(new["bins"]), "finer bins", "coarser bins", "other bins")


def _top(old: Terms, new: Terms) -> Judged:
    return ordered(old["top"], new["top"], "more values are told apart", "fewer values are told apart")


def _rounded(old: Terms, new: Terms) -> Judged:
    if isinstance(old["round"], str) or isinstance(new["round"], str):
        return _calendar(old["round"], new["round"])
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


def _calendar(old: Any, new: Any) -> Judged:
    """Parts of the calendar: weeks lie in no month, and hold days."""
    lines = (("day", "week"), ("day", "month", "quarter", "year"))
    line = next((one for one in lines if old in one and new in one), None)
    if line is None:
        return "incomparable", "other groups of dates"
    return ordered(-line.index(old), -line.index(new), "finer dates", "coarser dates")


_FINER: dict[str, Callable[[Terms, Terms], Judged]] = {
    "bins": _bins, "top": _top, "round": _rounded, "groups": _groups,
}  # fmt: skip


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
