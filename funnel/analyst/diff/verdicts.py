"""How two values of one term compare: whether the new one promises less, more, or something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

Verdict = Literal["weaker", "stronger", "incomparable", "unchanged"]
Judged = tuple[Verdict, str]
Terms = Mapping[str, Any]

CONFIDENCE = 0.95
"""Of robust notions that name neither confidence nor radius."""


def ordered(old: Any, new: Any, weaker: str, stronger: str, *, more_is_weaker: bool = True) -> Judged:
    """Two numbers (or ranks) of which one promises less."""
    if old == new:
        return "unchanged", ""
    return ("weaker", weaker) if (new > old) == more_is_weaker else ("stronger", stronger)


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
    source, target = given["privacy.notion"], asked["privacy.notion"]
    epsilon, most = given.get("privacy.epsilon", 0.0), asked.get("privacy.epsilon", 0.0)
    if source == target == "rldp" and not _inside(asked, given):
        return None
    if target == "rldp" and source not in ("rldp", "ldp-x") and _radius(asked) != 0:
        return None
    name = "ldp" if target == "rldp" and source != "rldp" else target
    factor, why = (
        _IMPLIED.get((source, name), (math.inf, "")) if source != name else (1.0, "it is the same notion")
    )
    reached = 0.0 if epsilon == 0 and factor < math.inf else factor * epsilon
    return f"{why}, at {reached:g} nats" if reached <= most else None


_IMPLIED: dict[tuple[str, str], tuple[float, str]] = {
    **{("ldp-x", other): (1.0, "what moves no odds between public values moves none of the secret")
       for other in ("ldp", "lip", "srlip", "rldp", "mutual-information")},
    **{(source, "mutual-information"): (1.0, "a mean is no more than its largest part")
       for source in ("ldp", "lip", "srlip", "rldp", "perfect")},
    ("ldp", "lip"): (1.0, "ldp implies lip"),
    ("rldp", "ldp"): (1.0, "the estimate is one of the distributions protected"),
    ("rldp", "lip"): (1.0, "ldp at the estimate implies lip"),
    ("srlip", "lip"): (1.0, "knowing no column is one case of srlip"),
    ("lip", "ldp"): (2.0, "lip implies ldp at twice epsilon"),
    ("srlip", "ldp"): (2.0, "lip implies ldp at twice epsilon"),
    ("perfect", "lip"): (0.0, "nothing is learnt"),
    ("perfect", "ldp"): (0.0, "nothing is learnt"),
}  # fmt: skip


def _radius(terms: Terms) -> float | None:
    radius = terms.get("privacy.radius")
    return None if terms.get("privacy.confidence") is not None or radius is None else float(radius)


def _inside(small: Terms, large: Terms) -> bool:
    """Whether one uncertainty set is no larger than another, as far as the terms tell."""
    radii = _radius(small), _radius(large)
    if radii[0] == 0:
        return True
    if small.get("privacy.order", 2.0) != large.get("privacy.order", 2.0):
        return False
    if radii[0] is not None and radii[1] is not None:
        return radii[0] <= radii[1]
    if radii != (None, None):
        return False
    confidence: list[float] = [one.get("privacy.confidence") or CONFIDENCE for one in (small, large)]
    return confidence[0] <= confidence[1]


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
