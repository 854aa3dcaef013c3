"""Claims about the ledger: an unbroken chain, one entry for this release, and the budget."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import NOTIONS, STEP
from funnel.audit.kernel.opened import Once, Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import evidence, journal, manifest, protocol
from funnel.format.journal import ReleaseEntry

_ALIKE = ("policy_sha256", "name", "notion", "epsilon", "leakage")
_WAITS = Unchecked("the release is not entered in the ledger yet")


def unbroken(opened: Opened) -> str | Unchecked:
    """The ledger's chain of hashes is unbroken, as far as its head says."""
    return _WAITS if opened.staged else counted(len(opened.journal), "line")


def entered(opened: Opened) -> str | Unchecked:
    """The ledger holds exactly one entry for this release, with its hashes and its figures."""
    if opened.staged:
        return _WAITS
    one, (own, *before) = opened.manifest, _entries(opened)
    told = own.composed
    agree(journal.NAME, [
        ("hash of the manifest", opened.entry(opened.release / manifest.NAME).sha256, own.manifest_sha256),
        ("hash of the evidence", opened.entry(opened.folder / evidence.NAME).sha256, own.evidence_sha256),
        ("hash of the protocol", one.files[protocol.NAME].sha256, own.protocol_sha256),
        *((key, getattr(one, key), getattr(own, key)) for key in _ALIKE),
        ("draws", (one.draws.kind, one.draws.key_fingerprint), (own.draws, own.key_fingerprint)),
        ("entity", opened.terms.entity if one.draws.kind == "permanent" else None, own.entity),
        ("lock", one.locked and one.locked.checksum, own.lock),
        ("measure and secret", (NOTIONS[one.notion].measure, one.sensitive), (told.measure, told.sensitive)),
        ("composed leakage", one.composed, manifest.Composed(told.figure, told.how, told.releases) if before else None),
        ("number of releases", len(before) + 1, told.releases),
        ("blocks", [block.columns for block in opened.blocks], [block.columns for block in own.drawn]),
    ])  # fmt: skip
    return f"entry {len(before) + 1} of releases, {counted(len(opened.journal), 'line')} in all"


def affordable(opened: Opened) -> str | Unchecked:
    """What the entry says that this release and all before it tell is within the policy's budget.

    And no less than was told before of the same measure and secret, nor, by more than the STEP that two bounds of one
    robust leakage may lie apart, than this release tells. How it was worked out is not the kernel's to say.
    """
    if opened.staged:
        return _WAITS
    budget, (own, *before) = opened.terms.budget, [one.composed for one in _entries(opened)]
    alike = [one.figure for one in before if (one.measure, one.sensitive) == (own.measure, own.sensitive)]
    alone = opened.manifest.leakage[own.measure]
    if own.measured is not None and (alone is None or rational(own.measured) + STEP < rational(alone)):
        raise Broken(journal.NAME, "all releases together tell less than this one", alone, own.measured)
    figures = [own.measured, *alike]
    largest = None if None in figures else max(figure for figure in figures if figure is not None)
    agree(journal.NAME, [("composed leakage, the largest so far", largest, own.figure)])
    if budget is None:
        return Unchecked(NOT_CLAIMED + "the policy names no budget")
    if largest is None or rational(largest) > Fraction(budget):
        raise Broken(journal.NAME, "all releases together tell more than the budget", budget, largest)
    return f"{largest:g} of {float(Fraction(budget)):g} nats"


@Once
def _entries(opened: Opened) -> list[ReleaseEntry]:
    """This release's entry, which must be there once, and all releases before it, the last one first. Raises Broken."""
    releases = [line.entry for line in opened.journal if isinstance(line.entry, ReleaseEntry)]
    own = [place for place, one in enumerate(releases) if one.release == opened.manifest.release]
    if len(own) != 1:
        raise Broken(journal.NAME, "the release is not entered exactly once", 1, len(own))
    return releases[own[0] :: -1]
