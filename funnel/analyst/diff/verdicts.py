"""How two values of one term compare: whether the new one promises less, more, or something else.

Each term of a policy beside secret, columns and bound has a judge of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from operator import neg
from typing import Any, Literal

from funnel.data.alphabet import folded
from funnel.engine.sql import BLANKS
from funnel.notions import Notion, implications
from funnel.notions.change import Judged, Verdict, ordered
from funnel.notions.rldp import Rldp
from funnel.notions.srlip import Srlip
from funnel.policy.groups import climb

Terms = Mapping[str, Any]
Judge = Callable[[Any, Any], Judged]


def privacy(old: Terms, new: Terms) -> Judged:
    """Two bounds as a whole: a notion with its epsilon and its parameters ([DS] Lemma 1)."""
    forth, back = implied(new, old), implied(old, new)
    if forth and back:
        return "unchanged", "each bound implies the other"
    if forth:
        return "stronger", f"it implies the old one: {forth}"
    if back:
        return "weaker", f"the old one implies it, not the other way round: {back}"
    return "incomparable", "neither bound is known to imply the other"


def budgets(old: Terms, new: Terms) -> Judged:
    """Two budgets: a number of nats bounds what the notion measures, so that of another measure is another bound."""
    before, after = (at_most(one.get("budget")) for one in (old, new))
    if inf in (before, after) or bound(old).measure == bound(new).measure:
        more, less = "all releases together may leak more", "all releases together may leak less"
        return ordered(before, after, more, less)
    whole = [
        {**one, "privacy.lower": None, "privacy.notion": _MEASURING.get(name, name), "privacy.epsilon": nats}
        for one, name, nats in ((old, old["privacy.notion"], before), (new, new["privacy.notion"], after))
    ]
    verdict, why = privacy(*whole)
    return verdict, f"of all releases together, in the measure of each notion: {why}"


_MEASURING = {"perfect": "lip", "alip": "pml"}
"""The notion that a budget is in, where it is another: how far beliefs fall over several releases is not bounded."""


def known(asked: Terms, column: str) -> Literal["own", "released"] | None:
    """By which values the promise lets a released column be known at least: the source's own, or those released."""
    notion = bound(asked)
    if not isinstance(notion, Srlip):
        return None
    named = notion.knowledge.names
    if named is not None and column not in map(folded, named):
        return None
    return "own" if notion.asks_own else "released"


def by_confidence(asked: Terms) -> bool:
    """Whether the set of distributions that is protected follows from a confidence."""
    notion = bound(asked)
    return isinstance(notion, Rldp) and notion.radius is None


def estimated(key: str, old: Terms, new: Terms, *, whole: bool) -> Judged | None:
    """Terms of the estimate that take from the bound what they give; None of others, and where they do not.

    `whole`: what becomes of rare values is known of both sides.
    """
    bounds = bound(old), bound(new)
    known = [one for one in bounds if isinstance(one, Srlip)]
    shared = not whole or any(one.asks_own for one in known) or any(_joined(one, "error") for one in (old, new))
    if key == "estimate.minimum" and len(known) == len(bounds) and shared:
        return "incomparable", "the larger the groups that shape the protocol, the less may be known within the bound"
    if key == "estimate.minimum" and (not whole or all(_joined(one, "error", "other") for one in (old, new))):
        return "incomparable", "rare values may be joined otherwise, and some that were one be told apart"
    # One is about a set that noise widens, one about all distributions.
    if key not in ("estimate.kind", "estimate.epsilon") or {one.notion for one in bounds} <= {"rldp", "ldp-x"}:
        return None
    return "incomparable", "the more noise on the counts, the less they show, and the less is the bound about the table"


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
    found = [one for one in (_merged(old, new), _blanks(old, new), _rare(old, new)) if one[0] != "unchanged"]
    verdicts = {verdict for verdict, _ in found}
    whole: Verdict = "unchanged" if not found else verdicts.pop() if len(verdicts) == 1 else "incomparable"
    return whole, "; ".join(why for _, why in found)


def _merged(old: Terms, new: Terms) -> Judged:
    """As reduced; where rare values were one, others are rare among coarser ones, and some of these stand alone now."""
    found = _reduced(old, new)
    if found[0] == "stronger" and (old.get("rare") or "error") != "error":
        return "incomparable", f"{found[1]}, of which other ones are rare"
    return found


def _joined(terms: Terms, *otherwise: str) -> bool:
    """Whether something else than this becomes of rare values of some column, or may, for all that is known of it."""
    plain = [one for block in terms["public"] for one in block if "columns" not in one]
    inside = [column for block in terms["public"] for one in block for column in one.get("columns", ())]
    found = {one.get("rare") or "error" for one in plain} | {merged(one)["rare"] for one in inside}
    return bool(found - {*otherwise})


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
    before, after = (one.get("trim", False) for one in (old, new))
    if before != after and any("top" in one or one.get("rare", "error") != "error" for one in (old, new)):
        return "incomparable", "other values are frequent, or rare, where texts that differ in blanks alone are one"
    if before != after and any(map(_blank, (old, new))):
        return "incomparable", "a group names a text with its blanks, and is of that text only where they stay"
    apart, one = "texts that differ in blanks are told apart", "texts that differ in blanks alone are one"
    return ordered(before, after, apart, one, more_is_weaker=False)


def _blank(column: Terms) -> bool:
    """Whether blanks stand before or behind a text or a group's name, which may be a text, too."""
    names = (name for level in column.get("groups", ()) for pair in level.items() for name in pair)
    return any(name != name.strip(BLANKS) for name in names)


MERGED = "merged"
"""What stands in a wide block for no `rare`, and for `other`: numbers and dates by `bin`, texts by `other`."""


def merged(column: Terms) -> dict[str, Any]:
    """A column of a wide block, whose rare values are joined in one way or another unless they are an error."""
    return {**column, "rare": MERGED if (column.get("rare") or "other") == "other" else column["rare"]}


def _rare(old: Terms, new: Terms) -> Judged:
    """A release in which a rare value is an error says nothing of it, for there is none."""
    before, after = old.get("rare") or "error", new.get("rare") or "error"
    if {before, after} == {MERGED, "bin"}:
        return "unchanged", ""  # a column that is merged so is one of numbers or dates
    if before != after and "error" not in (before, after):
        whose = "of numbers and dates " if MERGED in (before, after) else ""
        return "incomparable", f"{whose}other groups of rare values"
    grade = ("error", "other", "bin", MERGED).index
    return ordered(grade(before), grade(after), "more is said of rare values", "less is said of rare values")


def _groups(old: Terms, new: Terms) -> Judged:
    """Groups are coarser where values that were together stay so; levels above them say who is close to whom."""
    lowest = old["groups"][0], new["groups"][0]
    levels = [level for one in (old, new) for level in one["groups"]]
    # What is not named keeps its own name, which may be that of a group; but a group that is gone has no levels above.
    named = {name for level in levels for name in level} - {name for level in levels for name in level.values()}
    named = named.union(*lowest)
    names = sorted(named.union(*(level.values() for level in lowest)))
    before, after = ([climb(name, one["groups"]) for name in names] for one in (old, new))
    if any(one[1:] != other[1:] for name, one, other in zip(names, before, after, strict=True) if name in named):
        return "incomparable", "other levels above the groups"
    pairs = [(one[0], other[0]) for one, other in zip(before, after, strict=True)]
    if all(one == other for one, other in pairs):
        return "unchanged", ""
    finer, coarser = (len({one[place] for one in pairs}) == len(set(pairs)) for place in (1, 0))
    if finer == coarser:
        return "incomparable", "other groups of values, or other names of groups, which a value may have, too"
    return ("weaker", "smaller groups") if finer else ("stronger", "larger groups")


def _bins(old: Terms, new: Terms) -> Judged:
    return nested(set(old["bins"]), set(new["bins"]), "finer bins", "coarser bins", "other bins")


def _top(old: Terms, new: Terms) -> Judged:
    return ordered(old["top"], new["top"], "more values are told apart", "fewer values are told apart")


def _rounded(old: Terms, new: Terms) -> Judged:
    if isinstance(old["round"], str) or isinstance(new["round"], str):
        return _calendar(old["round"], new["round"])
    if old["round"] != new["round"]:
        # A number goes to the nearest multiple: 9 and 14 are both 10 in tens, but 0 and 20 in twenties. Thirds would be
        # nested, were floats exact: the one below 7.5 is 5 in fives and 15 in fifteens, for adding a half rounds it up.
        return "incomparable", "other multiples: numbers that are rounded alike by one may be told apart by the other"
    before, after = (one.get("clip") or [-inf, inf] for one in (old, new))
    if before == after:
        return "unchanged", ""
    if after[0] <= before[0] and after[1] >= before[1]:
        return "weaker", "wider ends"
    narrower = after[0] >= before[0] and after[1] <= before[1]
    return ("stronger", "narrower ends") if narrower else ("incomparable", "other ends")


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


def at_most(bound: float | None) -> float:
    """A bound, or none."""
    return inf if bound is None else bound


def no_matter(old: Any, new: Any) -> Judged:
    """Terms that promise nothing."""
    return "unchanged", "it decides how values are drawn, not what is promised"


def _absences(weaker: str, stronger: str) -> Judge:
    """What becomes of a row without a value that counts: an error; it is dropped; or (any other) it has a label.

    A label is randomised under the bound, and that a row is absent is told as it is: neither tells less than the other.
    """

    def judge(old: Any, new: Any) -> Judged:
        if "error" not in (old, new):
            return "incomparable", "whether such a record is absent shows as it is; a value that it has is randomised"
        return ordered(old != "error", new != "error", weaker, stronger)

    return judge


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


def _identifiers(old: Any, new: Any) -> Judged:
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


UNSEEN = _absences(
    "more is said of rows with values that a lock does not know",
    "less is said of rows with values that a lock does not know",
)
"""The judge of a public column's `unseen`."""

CELLS: dict[str, Judge] = dict.fromkeys(
    ("most", "minimum"), _another("cells are divided otherwise: people who were in one may be told apart")
)
"""The judges of a wide block's `cells`."""

JUDGES: dict[str, Judge] = {
    "accept": _accepted,
    "estimate.epsilon": _graded(at_most, "less noise on the counts", "more noise on the counts"),
    "estimate.budget": _graded(
        at_most, "all estimates together may spend more", "all estimates together may spend less"
    ),
    "estimate.values": _another("other values are counted"),
    "estimate.minimum": _graded(
        neg, "smaller groups shape the protocol", "only larger groups shape the protocol"
    ),
    "estimate.beliefs": _optional(
        "protocols are made from rounded beliefs, and their weights hold for every table that rounds alike; those of "
        "releases before and after may together tell more",
        "protocols follow beliefs as counted, so that their weights tell of the counts",
        "other steps: tables that round alike by one may not by the other",
    ),
    "estimate.kind": _graded(
        ("private", "counts").index, "the protocol follows the counts themselves", "the counts are noisy"
    ),
    "source.missing": _absences(
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
    "release.identify": _identifiers,
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
