"""What private estimates of the same people cost together: each is charged before its noise is drawn, once."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.noise import as_stated, noisy
from funnel.audit.extras.pinned import lock_facts
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.opened import content, parsed
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format.counts import Private
from funnel.format.estimated import FOLDER, EstimatedFile, file_name
from funnel.format.journal import NAME, EstimateEntry, ReleaseEntry
from funnel.text import number

CLAIM = "estimate-spent"
TITLE = (
    "the ledger holds one charge for this private estimate, its noise is that charge’s, and charges before this"
    " release’s entry come to what is stated"
)
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """Under a lock the estimate is the lock's, and its budget that of the night when it was made. Raises Broken."""
    one, private = opened.manifest, opened.counts.private
    if private is None:
        return Unchecked(NOT_CLAIMED + "the counts are the table’s own")
    if one.locked:
        agree(NAME, [("estimate of the lock", lock_facts(opened).get("estimated"), private.name)])
    before = charged(opened, private)
    total, budget = sum(Fraction(entry.epsilon) for entry in before), opened.terms.estimate.budget
    _drawn_once(opened, private, next(entry.terms for entry in before if entry.name == private.name))
    entries = [line.entry for line in opened.journal]
    kept = _as_charged(opened.root, private.name, [x for x in entries if isinstance(x, EstimateEntry)])
    if budget is not None and total > Fraction(budget):
        if one.locked:
            now = f"{number(float(total))} nats before its entry"
            return Unchecked(f"{now}; whether {budget} held when the lock was made is not known")
        raise Broken(NAME, "the estimates spent more than the policy's budget", budget, float(total))
    lost = sum(entry.name not in kept for entry in before)
    unseen = f"; of {lost} nothing is kept that shows what was drawn" if lost else ""
    return f"{counted(len(before), 'estimate')} before its entry, {number(float(total))} nats together{unseen}"


def charged(opened: Release, private: Private) -> list[EstimateEntry]:
    """The charges before a release: one is for its estimate, and they are what release.json states. Raises Broken."""
    one, entries = opened.manifest, [line.entry for line in opened.journal]
    until = next((i for i, x in enumerate(entries) if isinstance(x, ReleaseEntry) and x.release == one.release), None)
    before = [entry for entry in entries[:until] if isinstance(entry, EstimateEntry)]
    epsilon, total = Fraction(private.epsilon), sum(Fraction(entry.epsilon) for entry in before)
    told = (one.estimate.epsilon, one.estimate.estimates, one.estimate.spent)
    agree(NAME, [
        ("charge", [epsilon], [Fraction(entry.epsilon) for entry in before if entry.name == private.name]),
        ("what estimates spent", (float(epsilon), len(before), float(total)), told),
    ])  # fmt: skip
    return before


def _as_charged(root: Path, own: str, charges: list[EstimateEntry]) -> set[str]:
    """The estimates that are kept, of whatever release or none: the charge of each is what it says. Raises Broken."""
    told = {entry.name: (Fraction(entry.epsilon), entry.terms) for entry in charges}
    kept = set[str]()
    for path in sorted((root / FOLDER).glob("*.json")):
        facts = path.stat()
        name, epsilon, terms = _told(path, path.stem == own, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        agree(f"{FOLDER}/{path.name}", [("name", path.stem, name)])
        agree(NAME, [(f"charge of {name}", (Fraction(epsilon), terms), told.get(name))])
        kept.add(name)
    return kept


@cache
def _told(path: Path, own: bool, *_: int) -> tuple[str, str, str]:
    """What a kept estimate says of itself, and has the noise for it; once, for all releases of a folder. Raises Broken.

    Noise of the `own` estimate is looked at where its counts are.
    """
    name = f"{FOLDER}/{path.name}"
    file = parsed(EstimatedFile, name, content(path))
    _, added, taken = _lists(file, name)
    if not own:
        as_stated(name, added - taken, file.epsilon)
    return file.name, file.epsilon, file.terms


def _lists(file: EstimatedFile, name: str) -> IntArray:
    """What was counted, the noise added and the noise taken, (3, m). Raises Broken."""
    if len({len(row) for row in file.cells}) > 1 or len(file.cells) != 3:
        raise Broken(name, "these are no counts with their noise", "three lists of a length", len(file.cells))
    return np.array(file.cells, np.int64)


def _drawn_once(opened: Release, private: Private, terms: str) -> None:
    """The noise is that which was drawn for this charge, whatever else was made of it. Raises Broken."""
    name = file_name(private.name)
    kept = parsed(EstimatedFile, name, content(opened.root / name))
    _, true, noise = noisy(private)
    own = sorted(np.column_stack([true, np.maximum(noise, 0), np.maximum(-noise, 0)]).tolist())
    agree(name, [
        ("estimate", (private.name, private.epsilon, terms), (kept.name, kept.epsilon, kept.terms)),
        ("counts and noise", own, sorted(_lists(kept, name).T.tolist())),
    ])  # fmt: skip
