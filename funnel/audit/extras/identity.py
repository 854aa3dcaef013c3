"""Of which table and people a release is, found again from its digest and those of the releases before it.

The ledger composes what was drawn from the same columns about the same people. Which these are it says itself: a
version for each column and for the secret, a numbering for people. Here the kept digests are compared once more,
person by person, by the rules of `funnel.ledger.identity`; what its entry, and the manifest, say is assumed has to
follow from that.
"""

from __future__ import annotations

from funnel.audit.extras.base import Release
from funnel.audit.extras.digests import digest, fits
from funnel.audit.extras.knowable import Knowable
from funnel.audit.extras.parts import archived, kept_file
from funnel.audit.extras.rows import same_rows
from funnel.audit.extras.tables import one_table
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import Broken, Unchecked, agree
from funnel.data import AnyProtocol
from funnel.data.convert import joint_of, protocols_of
from funnel.format import counts, known, people, terms
from funnel.format.counts import CountsFile
from funnel.format.journal import NAME, Identity, ReleaseEntry
from funnel.format.known import KnownFile
from funnel.format.terms import TermsFile
from funnel.ledger.identity import identify, least_assumed
from funnel.ledger.nights import Night, Table
from funnel.ledger.whose import by_value, granted
from funnel.text import some

CLAIM = "ledger-identity"
TITLE = "the columns and people that the ledger takes for those of earlier releases are so, as far as digests show"
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """The entry's versions, numbering and assumptions follow from the digests. Raises Broken."""
    *before, entry = opened.entries
    own = _night(opened, entry)
    if own.digest is None:
        raise Broken(people.NAME, "the digest is not there", "people.json", None)
    fits(opened, own.digest)
    named = one_table(opened, before)
    earlier = [_night(opened, one) for one in before]
    blind = opened.terms.estimate.kind == "private"
    gone = "" if blind else _rows_again(opened, own)
    by = {"blind": blind, "finer": opened.manifest.parameters.knows is not None}
    found = identify(own, earlier, **by)
    told, file = entry.identity, own.digest
    mine = file.table, file.content, told.people_sha256
    identity = Identity(*mine, found.numbered, found.secret, found.assumes, found.seen, told.lost)
    identity = granted(identity, [one.together for one in entry.promises], entry.drawn, before)
    try:
        agree(NAME, [
            *((f"identity.{key}", value, vars(told)[key]) for key, value in vars(identity).items()),
            ("versions of columns", found.since, tuple(one.since for one in entry.drawn)),
        ])  # fmt: skip
    except Broken:
        here = [one for one in earlier if one.release not in told.lost and one.digest and one.hides()]
        least = least_assumed(own, here, told.numbered, [one.since for one in entry.drawn], **by)
        whole = all(one in here or one.release in told.lost for one in earlier)
        if whole or not {*least} <= {*told.assumes}:
            raise
        return Unchecked("digests or counts of earlier releases are not kept any more")
    seen = identity.seen
    people_seen = "" if seen is None else f", {seen.people:.2%} of the sample were among those read for {seen.since}"
    without = f"; that run went by no digest and counts of {some(told.lost, 3)}" if told.lost else ""
    return f"assumes {' and '.join(identity.assumes) or 'nothing'}{people_seen}{gone}{without}{named}"


def _rows_again(opened: Release, own: Night) -> str:
    """Rows that a hash says are those of earlier nights are, by what is here now; which files that rests on are gone.

    Raises Broken.
    """
    gone, whole = "", set[str]()
    for entry in reversed(opened.entries[:-1]):
        night = _night(opened, entry, found=True)
        if night.content != own.content or night.sha256 in whole:
            continue  # a table that does not change has one digest, byte for byte
        kept = None if entry.noisy else _counts(opened, entry, found=True)
        finer = _knowable(opened, entry, kept)
        same_rows((own, night), (opened.counts, kept), finer)
        if entry.noisy:
            continue  # its counts are of no rows
        if lost := _lost(opened, night, kept, finer):
            gone = gone or f"; {lost} of {night.release}, whose rows these are said to be"
        else:
            whole.add(night.sha256)
    return "" if whole else gone


def _lost(opened: Release, night: Night, kept: CountsFile | None, finer: object) -> str:
    """What is not here of an earlier night to compare rows with, in words; nothing where all is."""
    listed = "kept, with the list that names them,"
    if night.digest is None:
        return "no digest is kept"
    if kept is None:
        return f"no counts are {listed}"
    return f"no {known.NAME} is {listed}" if finer is None and known.NAME in opened.evidence.files else ""


def _night(opened: Release, entry: ReleaseEntry, *, found: bool = False) -> Night:
    """A release of the ledger, with what is kept of it: what tonight's run went by, or what is `found` by now."""
    own, told = entry.release == opened.manifest.release, entry.identity
    lost = not found and entry.release in opened.entries[-1].identity.lost
    folder = opened.folder if own else opened.root / entry.release

    def protocol() -> tuple[AnyProtocol, ...] | None:
        file = opened.protocol if own else archived(opened, entry)
        return None if file is None else protocols_of(file)

    return Night(
        entry.release, entry.drawn, protocol, entry.key_fingerprint, told.numbered, told.table, told.content,
        lambda: None if lost else digest(folder, entry), told.people_sha256,
        lambda name: _counted(opened, entry, name),
        entry.own.together.sensitive, told.secret, entry.present,
    )  # fmt: skip


def _counted(opened: Release, entry: ReleaseEntry, column: str) -> Table | None:
    """Records by secret and value of a column; None where the counts are gone. Raises Broken where they are others."""
    file = _counts(opened, entry)
    return None if file is None else by_value(joint_of(file.secret, file.blocks, file.cells), column)


def _counts(opened: Release, entry: ReleaseEntry, *, found: bool = False) -> CountsFile | None:
    """The counts of a release; None where they are gone, or were for tonight's run and are not asked as `found`."""
    own = opened.entries[-1]
    if entry is own:
        return opened.counts
    lost = not found and entry.release in own.identity.lost
    raw = None if lost else kept_file(opened, entry, counts.NAME)
    return None if raw is None else parsed(CountsFile, counts.NAME, raw)


def _knowable(opened: Release, entry: ReleaseEntry, kept: CountsFile | None) -> tuple[Knowable, Knowable] | None:
    """What may be known of tonight's records and of an earlier night's; None where one of both tells nothing."""
    if known.NAME not in opened.evidence.files or kept is None:
        return None
    files = [kept_file(opened, entry, name) for name in (known.NAME, terms.NAME)]
    if files[0] is None or files[1] is None:
        return None
    then = parsed(KnownFile, known.NAME, files[0]), kept, parsed(TermsFile, terms.NAME, files[1]).estimate.minimum
    return Knowable(opened.known_file, opened.counts, opened.manifest.estimate.minimum), Knowable(*then)
