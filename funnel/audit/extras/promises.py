"""Every promise of the ledger, as this release's entry has it: none forgotten, none ended without being named."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.extras.base import Release
from funnel.audit.extras.composition import figures_before
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import STEP
from funnel.audit.kernel.verdict import Broken, agree, counted
from funnel.data.alphabet import folded
from funnel.format.journal import NAME, Promise
from funnel.ledger.promises import breaks
from funnel.text import number

CLAIM = "ledger-promises"
TITLE = "every promise of the ledger stands in the entry, and this release ended none that its policy does not name"
PRIVATE = True
_UNBOUNDED = "unbounded"


def check(opened: Release) -> str:
    """Each as it was, with no less told than before; what it allows is kept, or its end is accepted. Raises Broken."""
    *before, entry = opened.entries
    old = before[-1].promises if before else ()
    _same_promises(opened, old)
    made = {one.name for earlier in before for one in earlier.promises} - {one.name for one in entry.promises}
    if made:
        raise Broken(NAME, "a promise that an entry before has is forgotten", sorted(made)[0], None)
    for one in entry.promises:
        figures = [one.together.measured, *figures_before(before, one)]
        largest = None if None in figures else max(figure for figure in figures if figure is not None)
        agree(NAME, [(f"composed leakage of {one.policy}, the largest so far", largest, one.together.figure)])
        _check_end(opened, one, next((was for was in old if was.name == one.name), None))
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


def _same_promises(opened: Release, old: tuple[Promise, ...]) -> None:
    """The own promise comes first and is the policy's; the others are those of the entry before, in their order."""
    own, *others = opened.entries[-1].promises
    kept = [one for one in old if one.name != own.name]
    agree(NAME, [
        ("budget", opened.terms.budget, own.budget),
        ("promises of other policies", [_terms(one) for one in kept], [_terms(one) for one in others]),
    ])  # fmt: skip


def _terms(one: Promise) -> object:
    return one.name, one.notion, one.epsilon, one.parameters, one.budget, one.since


def _check_end(opened: Release, one: Promise, was: Promise | None) -> None:
    """Since when it holds, which release ended it, and that this one may. Raises Broken."""
    release, own = opened.manifest.release, one is opened.entries[-1].own
    if was is not None and was.ended and own and breaks(was) and not breaks(one):
        was = None
    ended = was.ended if was is not None else None
    if ended is None and (breaks(one) or (not own and _published(opened, one))):
        ended = release
    agree(NAME, [
        (f"since when {one.policy} promises", release if was is None else was.since, one.since),
        (f"which release ended the promise of {one.policy}", ended, one.ended),
    ])  # fmt: skip
    if own and one.together.figure is not None and breaks(one):
        raise Broken(NAME, "all releases together tell more than the budget", one.budget, one.together.figure)
    accepted = _UNBOUNDED if own else one.policy
    if (ended == release or (own and one.together.figure is None)) and accepted not in opened.terms.accept:
        raise Broken(NAME, f"the promise of {one.policy} is ended, which the policy does not accept", accepted, ended)


def _published(opened: Release, one: Promise) -> bool:
    """Whether the release shows a column that the promise hides, and does not hide it itself."""
    terms = opened.terms
    names = [column.name for block in terms.public for column in block]
    names += [name for wide in terms.wide for name in (wide.name, *(column.name for column in wide.columns))]
    shown, own, hidden = (
        {folded(name) for name in every}
        for every in ((*names, *terms.identify), terms.sensitive, one.together.sensitive)
    )
    return bool((shown - own) & hidden)


def _told(promises: tuple[Promise, ...]) -> str:
    own, ended = promises[0].together.figure, sum(one.ended is not None for one in promises)
    budget = promises[0].budget
    of = "" if budget is None else f" of {number(float(Fraction(budget)))}"
    figure = "no finite bound known" if own is None else f"{number(own)}{of} nats"
    also = f"; {counted(ended, 'promise')} ended" if ended else ""
    return f"{counted(len(promises), 'promise')}, the own at {figure}{also}"
