"""Of which table and people a release is, found again from its digest and those of the releases before it.

The ledger composes what was drawn from the same columns about the same people. Which these are it says itself: a
version for each column and for the secret, a numbering for people. Here the kept digests are compared once more,
person by person, by the rules of `funnel.ledger.identity`; what its entry, and the manifest, say is assumed has to
follow from that.
"""

from __future__ import annotations

from collections import Counter

from funnel.audit.extras.base import Release
from funnel.audit.extras.digests import digest, fits
from funnel.audit.extras.parts import archived, kept_file
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import Broken, Unchecked, agree
from funnel.data import AnyProtocol
from funnel.data.alphabet import OTHER, folded
from funnel.data.convert import joint_of, protocols_of
from funnel.format import counts, people
from funnel.format.counts import CountsFile
from funnel.format.journal import NAME, Drawn, Identity, ReleaseEntry
from funnel.ledger.identity import identify
from funnel.ledger.nights import Night, Shared, Table
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
    earlier = [_night(opened, one) for one in before]
    blind = opened.terms.estimate.kind == "private"
    # The last one does: those before it are held to each other where it is audited.
    plain = [night for night, one in zip(earlier, before, strict=True) if not one.noisy]
    same = None if blind else next((one for one in reversed(plain) if one.content == own.content), None)
    gone = ""
    if same is not None:
        _same(own, same)
        lost = "no digest is" if same.digest is None else "no counts are" if same.hides() is None else ""
        gone = lost and f"; {lost} kept of {same.release}, whose rows these are said to be"
    found = identify(own, earlier, blind=blind, finer=opened.manifest.parameters.knows is not None)
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
        if all(one.release in told.lost or (one.digest and one.hides()) for one in earlier):
            raise
        return Unchecked("digests or counts of earlier releases are not kept any more")
    seen = identity.seen
    people_seen = "" if seen is None else f", {seen.people:.2%} of the sample were among those read for {seen.since}"
    without = f"; that run found no digest and counts of {some(told.lost, 3)}" if told.lost else ""
    return f"assumes {' and '.join(identity.assumes) or 'nothing'}{people_seen}{gone}{without}"


def _same(own: Night, night: Night) -> None:
    """Two nights of which one hash says that all rows are the same: so are counts, and the people of their digests.

    Values are compared as far as both nights mean and name the same by them. Under another key no hash is the same.
    Raises Broken.
    """
    read = [[tuple(map(folded, names)) for names in (each.secret, *(block.columns for block in each.drawn))]
            for each in (own, night)]  # fmt: skip
    if read[0] != read[1]:
        what = f"its hash of all rows is that of {night.release}, which read other columns"
        raise Broken(people.NAME, what, read[1], read[0])
    one, other = own.digest, night.digest
    if one is None or other is None:
        return
    if one.key != other.key:
        what = f"its hash of all rows is that of {night.release}, and it was made with another key"
        raise Broken(people.NAME, what, other.key, one.key)
    pairs: list[tuple[str, object, object]] = [("rows", other.rows, one.rows)]
    alike = [name for mine, then in zip(own.drawn, night.drawn, strict=True) if mine.meaning == then.meaning
             for name in mine.columns]  # fmt: skip
    for mine, then in zip(own.drawn, night.drawn, strict=True):
        based = [name for name, *bases in zip(mine.columns, mine.base, then.base, strict=True) if len({*bases}) == 1]
        pairs += [(name, True, _counts_alike((own, night), (mine, then), name)) for name in based]
    if one.entity is not None:
        both = Shared(own, night, (one, other))
        kept = both.secret_kept()
        pairs += [("people", [len(both)] * 2, both.sizes), ("secrets", True, kept is None or bool(kept.all()))]
        pairs += [(name, both.texts(1, name), both.texts(0, name)) for name in alike]
    for name, was, now in pairs:
        if was != now and None not in (was, now):
            what = f"its hash says that all rows are those of {night.release}: {name} of them are not"
            raise Broken(people.NAME, what, "the same", "others")


def _counts_alike(nights: tuple[Night, Night], blocks: tuple[Drawn, Drawn], name: str) -> bool:
    """Whether counts of a column may be of the same rows, of two nights whose values of it are the same ones.

    Where a lock does not know a value, its rows are in no count, or under `other`.
    """
    tables, digests = [one.count(name) for one in nights], [one.digest for one in nights]
    if None in tables or None in digests:
        return True
    counted = [Counter(one) for one in tables if one is not None]
    out = [one.rows - table.total() for one, table in zip(digests, counted, strict=True) if one is not None]
    if blocks[0].meaning != blocks[1].meaning:
        known = nights[0].values(name) & nights[1].values(name)
        for place, table in enumerate(counted):
            pooled = {cell: n for cell, n in table.items() if cell[1] == OTHER or cell[1] not in known}
            table.subtract(pooled)
            # Of a block of several columns the values that are known may be in a combination that is not.
            out[place] += sum(pooled.values()) if len(blocks[0].columns) > 1 else 0
    more = [(counted[place] - counted[1 - place]).total() for place in (0, 1)]
    return all(more[i] <= (0 if _has_all(nights[1 - i], nights[i]) else out[1 - i]) for i in (0, 1))


def _has_all(one: Night, other: Night) -> bool:
    """Whether a night counts all rows that another one of the same rows counts: it knows all values that this knows."""
    return all(
        mine.meaning == then.meaning and known is not None and fewer is not None and fewer <= known
        for mine, then, known, fewer in zip(one.drawn, other.drawn, one.named, other.named, strict=True)
    )


def _night(opened: Release, entry: ReleaseEntry) -> Night:
    """A release of the ledger, with what is kept of its evidence and its protocol."""
    own, told = entry.release == opened.manifest.release, entry.identity
    lost = entry.release in opened.entries[-1].identity.lost
    folder = opened.folder if own else opened.root / entry.release

    def protocol() -> tuple[AnyProtocol, ...] | None:
        file = opened.protocol if own else archived(opened, entry)
        return None if file is None else protocols_of(file)

    return Night(
        entry.release, entry.drawn, protocol, entry.key_fingerprint, told.numbered, told.table, told.content,
        lambda: None if lost else digest(folder, entry), told.people_sha256,
        lambda name: None if lost else _counted(opened, entry, name),
        entry.own.together.sensitive, told.secret, entry.present,
    )  # fmt: skip


def _counted(opened: Release, entry: ReleaseEntry, column: str) -> Table | None:
    """Records by secret and value of a column; None where the counts are gone. Raises Broken where they are others."""
    own = entry.release == opened.manifest.release
    raw = None if own else kept_file(opened, entry, counts.NAME)
    if not own and raw is None:
        return None
    file = opened.counts if raw is None else parsed(CountsFile, counts.NAME, raw)
    return by_value(joint_of(file.secret, file.blocks, file.cells), column)
