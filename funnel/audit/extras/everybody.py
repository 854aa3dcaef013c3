"""population.json: everybody in the source, of whom those in the release are the records of counts.json."""

from __future__ import annotations

import json
from collections import Counter

from funnel.audit.extras.absence import Everybody, Flags, PromiseTerms, check_predicate, leaving_out
from funnel.audit.extras.base import Release
from funnel.audit.extras.policy import PLAN
from funnel.audit.kernel.verdict import NOT_CLAIMED, Unchecked, agree, counted
from funnel.format import manifest
from funnel.format.fields import Label
from funnel.format.population import NAME, People

CLAIM = "absent"
TITLE = (
    "release.json says whom the policy leaves out, and those whom its filter has in the release by population.json are"
    " the counts"
)
PRIVATE = True
_NEVER = "by the ledger no release before did"
_UNCOUNTED = "those whom releases before left out are not counted with it"
_NOBODY = "that there are none is the ledger's word, by which a bound is stated of all releases together"


def check(opened: Release) -> str | Unchecked:
    """The manifest's `absent` follows from the terms, and present rows are the records, cell by cell. Raises Broken."""
    stated = opened.manifest.absent
    agree(manifest.NAME, [("absent", leaving_out(opened.terms, locked=opened.manifest.locked is not None), stated)])
    if NAME not in opened.evidence.files:
        if stated is None:
            return Unchecked(f"{NOT_CLAIMED}the policy leaves nobody out{_before(opened)}")
        unbounded = opened.manifest.composed is not None and opened.manifest.composed.leakage is None
        bound = "no finite bound is stated of all releases together" if unbounded else _NOBODY
        return Unchecked(f"nobody counted those who are absent, and {bound}")
    people = Everybody(opened, opened.population, PromiseTerms.of(opened))
    agree(NAME, [("own predicate", _planned(opened), opened.population.own)])
    check_predicate(opened, NAME, opened.population.own)
    others = {f"people by {' + '.join(one.secret.columns)}": one for one in opened.population.people}
    agree(NAME, [(name, _all(people.people), _all(one)) for name, one in others.items()])
    present = people.present()
    agree(NAME, [("records of each cell", opened.by_label(), _cells(people, present))])
    absent = int(people.number.sum()) - int(people.number[present].sum())
    reads = f"; the filter reads {', '.join(stated.secret)}, which is sensitive" if stated and stated.secret else ""
    predicates = counted(len(people.file.predicates), "predicate")
    return f"{counted(absent, 'record')} of {people.number.sum()} absent, {predicates}{reads}"


def _before(opened: Release) -> str:
    """Whether the ledger tells of any whom earlier releases left out; nothing while it does not hold the release."""
    if opened.staged:
        return ""
    *before, _ = opened.entries
    return f", and {_UNCOUNTED if any(one.present is not None for one in before) else _NEVER}"


def _planned(opened: Release) -> str | None:
    """The predicate of the plan, by which the source was counted."""
    steps = json.loads(opened.read(PLAN))["steps"]
    own: str | None = next(step["own"] for step in steps if step["step"] == "everybody")
    return own


def _all(people: People) -> Counter[tuple[object, ...]]:
    """Everybody by what they would be drawn for and the predicates that hold, whatever their secret is."""
    found = Counter[tuple[object, ...]]()
    for _, *x, predicates, number in people.cells:
        labels = (one.values[code - 1] if code else None for one, code in zip(people.blocks, x, strict=True))
        found[*labels, predicates] += number
    return found


def _cells(people: Everybody, present: Flags) -> Counter[tuple[Label, ...]]:
    secret, blocks = people.people.secret, people.people.blocks
    found = Counter[tuple[Label, ...]]()
    for (s, *x), number in zip(people.codes[present].tolist(), people.number[present].tolist(), strict=True):
        labels = (one.values[code - 1] for one, code in zip(blocks, x, strict=True))
        found[secret.values[s], *labels] += number
    return found
