"""Every promise of the ledger, as this release's entry has it: none forgotten, none ended without being named."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.extras.base import Release
from funnel.audit.extras.composition import figures_before
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import STEP
from funnel.audit.kernel.verdict import Broken, agree, counted
from funnel.data.alphabet import folded
from funnel.format.journal import NAME, Promise, ReleaseEntry
from funnel.ledger.promises import breaks
from funnel.text import number

CLAIM = "ledger-promises"
TITLE = "every promise of the ledger stands in the entry, and this release ended none that its policy does not name"
PRIVATE = True
_UNBOUNDED = "unbounded"


def check(opened: Release) -> str:
    """Each as it was, with no less told than before; what it allows is kept, or its end is accepted. Raises Broken."""
    *before, entry = opened.entries
    agree(NAME, [("budget", opened.terms.budget, entry.own.budget)])
    for old, new in zip(((), *(one.promises for one in before)), opened.entries, strict=True):
        _follow(old, new)
    for one in entry.promises:
        figures = [one.together.measured, *figures_before(before, one)]
        largest = None if None in figures else max(figure for figure in figures if figure is not None)
        agree(NAME, [(f"composed leakage of {one.policy}, the largest so far", largest, one.together.figure)])
        own = one is entry.own
        accepted = _UNBOUNDED if own else one.policy
        ends = one.ended == entry.release or (own and one.together.figure is None)
        if ends and accepted not in opened.terms.accept:
            what = f"the promise of {one.policy} is ended, which the policy does not accept"
            raise Broken(NAME, what, accepted, one.ended)
    tells_its_own(opened)
    return _told(entry.promises)


def tells_its_own(opened: Release) -> None:
    """All releases tell no less than this one by itself, as its entry has it. Raises Broken.

    Two bounds of one robust leakage may lie apart by up to STEP, and the manifest's figure is rounded up to its own.
    """
    own = opened.entries[-1].own.together
    measured, alone, step = own.measured, opened.manifest.leakage[own.measure], opened.manifest.step
    if measured is not None and (alone is None or -(-(rational(measured) + STEP) // step) * step < rational(alone)):
        raise Broken(NAME, "all releases together tell less than this one", alone, measured)


def _follow(old: tuple[Promise, ...], entry: ReleaseEntry) -> None:
    """An entry's promises are its own, which comes first, and those before it, as they were. Raises Broken.

    Their ends follow from what is told, and from what the entry says was drawn.
    """
    own, *others = entry.promises
    kept = [one for one in old if one.name != own.name]
    agree(NAME, [("promises of other policies", [_terms(one) for one in kept], [_terms(one) for one in others])])
    if own.together.figure is not None and breaks(own):
        raise Broken(NAME, "all releases together tell more than the budget", own.budget, own.together.figure)
    for one in entry.promises:
        was = next((each for each in old if each.name == one.name), None)
        least, told = was.together.figure if was else 0.0, one.together.figure
        if told is not None and (least is None or told < least):
            raise Broken(NAME, f"less is told of {one.policy} than before", least, told)
        measured = one.together.measured
        if told is not None and (measured is None or told < measured):
            raise Broken(NAME, f"less is told of {one.policy} than was measured", measured, told)
        _check_end(entry, one, was)


def _terms(one: Promise) -> object:
    return one.name, one.notion, one.epsilon, one.parameters, one.budget, one.since


def _check_end(entry: ReleaseEntry, one: Promise, was: Promise | None) -> None:
    """Since when it holds, and which release ended it. Raises Broken."""
    own = one is entry.own
    if was is not None and was.ended and own and breaks(was) and not breaks(one):
        was = None
    ended = was.ended if was is not None else None
    if ended is None and (breaks(one) or (not own and _published(entry, one))):
        ended = entry.release
    agree(NAME, [
        (f"since when {one.policy} promises", entry.release if was is None else was.since, one.since),
        (f"which release ended the promise of {one.policy}", ended, one.ended),
    ])  # fmt: skip


def _published(entry: ReleaseEntry, one: Promise) -> bool:
    """Whether a release shows a column that the promise hides, and does not hide it itself."""
    names = [name for block in entry.drawn for name in (*block.columns, *block.inside)]
    shown, own, hidden = (
        {folded(name) for name in every}
        for every in ((*names, *entry.identify), entry.own.together.sensitive, one.together.sensitive)
    )
    return bool((shown - own) & hidden)


def _told(promises: tuple[Promise, ...]) -> str:
    own, ended = promises[0].together.figure, sum(one.ended is not None for one in promises)
    budget = promises[0].budget
    of = "" if budget is None else f" of {number(float(Fraction(budget)))}"
    figure = "no finite bound known" if own is None else f"{number(own)}{of} nats"
    also = f"; {counted(ended, 'promise')} ended" if ended else ""
    return f"{counted(len(promises), 'promise')}, the own at {figure}{also}"
