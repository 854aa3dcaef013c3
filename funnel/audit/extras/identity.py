"""Of which table and people a release is, found again from its digest and those of the releases before it.

The ledger composes what was drawn from the same columns about the same people. Which these are it says itself: a
version for each column and for the secret, a numbering for people. Here the kept digests are compared once more,
person by person, by the rules of `funnel.ledger.identity`; what its entry, and the manifest, say is assumed has to
follow from that.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.parts import archived, entered
from funnel.audit.kernel.drawing import FALSE_ALARM, strays
from funnel.audit.kernel.opened import content, parsed
from funnel.audit.kernel.verdict import Broken, Unchecked, agree
from funnel.data import AnyProtocol
from funnel.data.alphabet import folded
from funnel.data.convert import joint_of, protocols_of
from funnel.draw.people import sample_bits
from funnel.format import counts, people
from funnel.format.counts import CountsFile
from funnel.format.journal import NAME, Identity, ReleaseEntry
from funnel.format.people import PeopleFile
from funnel.ledger.identity import identify
from funnel.ledger.nights import Night, Shared, Table
from funnel.ledger.whose import by_value, granted

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
    identity = Identity(*mine, found.numbered, found.secret, found.assumes, found.seen)
    identity = granted(identity, [one.together for one in entry.promises], entry.drawn, before)
    try:
        agree(NAME, [
            *((f"identity.{key}", value, vars(told)[key]) for key, value in vars(identity).items()),
            ("versions of columns", found.since, tuple(one.since for one in entry.drawn)),
        ])  # fmt: skip
    except Broken:
        if all(one.digest is not None for one in earlier):
            raise
        return Unchecked("digests of earlier releases are not kept any more")
    seen = identity.seen
    people_seen = "" if seen is None else f", {seen.people:.2%} of the sample were among those read for {seen.since}"
    return f"assumes {' and '.join(identity.assumes) or 'nothing'}{people_seen}{gone}"


def _same(own: Night, night: Night) -> None:
    """Two nights of which one hash says that all rows are the same: so are counts, and the people of their digests.

    Values are compared where both nights mean and name the same by them. Under another key no hash is the same. Raises
    Broken.
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
    alike = [mine for mine in own.drawn for then in night.drawn
             if (mine.columns, mine.base, mine.meaning) == (then.columns, then.base, then.meaning)]  # fmt: skip
    names = [name for mine in alike for name in mine.columns]
    pairs: list[tuple[str, object, object]] = [("rows", other.rows, one.rows)]
    for name in names:
        tables = own.count(name), night.count(name)
        if tables[0] is not None and tables[1] is not None:
            counted = Counter(tables[0]), Counter(tables[1])
            # Who was left out, as a lock does with values that it does not know, is in no count.
            left = 2 * one.rows - counted[0].total() - counted[1].total()
            off = sum(((counted[0] - counted[1]) + (counted[1] - counted[0])).values())
            pairs.append((name, True, off <= left))
    if one.entity is not None:
        both = Shared(own, night, (one, other))
        kept = both.secret_kept()
        pairs += [("people", [len(both)] * 2, both.sizes), ("secrets", True, kept is None or bool(kept.all()))]
        pairs += [(name, both.texts(1, name), both.texts(0, name)) for name in names]
    for name, then, now in pairs:
        if then != now and None not in (then, now):
            what = f"its hash says that all rows are those of {night.release}: {name} of them are not"
            raise Broken(people.NAME, what, "the same", "others")


def fits(opened: Release, file: PeopleFile) -> None:
    """A digest is of the columns and records that were counted. Raises Broken."""
    columns = tuple(chain.from_iterable(opened.manifest.public))
    words, below = [row[0] for row in file.sample], 1 << (63 - file.bits)
    sizes = list(map(len, file.labels))
    agree(people.NAME, [
        ("entity", opened.terms.entity, file.entity),
        ("columns", (opened.manifest.sensitive, columns), (file.secret, file.public)),
        ("words", True, words == sorted(set(words)) and all(one < below for one in words)),
        ("codes", True, len(sizes) == len(file.secret) + len(columns) and all(
            len(row) == len(sizes) + 1 and all(code < size for code, size in zip(row[1:], sizes, strict=True))
            for row in file.sample)),
    ])  # fmt: skip
    locked, present = opened.manifest.locked is not None, opened.entries[-1].present
    unknown = 0 if present is None else present.unseen
    # Without an entity the digest is of all rows that the filter lets in, of which some may be left out.
    if file.entity is not None or not (locked or opened.terms.missing == "drop"):
        agree(people.NAME, [("rows", opened.records.rows + unknown, file.rows)])
    agree(people.NAME, [("how many people are in the sample", sample_bits(file.rows), file.bits)])
    if file.entity is not None:
        _is_sampled(file)
    _is_counted(opened, file)


def _is_counted(opened: Release, file: PeopleFile) -> None:
    """People in the sample have values that are counted; where all are in it, all that are. Raises Broken.

    Those who have another one are left out, as a lock does.
    """
    named = [{*one.values} for one in opened.alphabets]
    ends = [*accumulate((len(one.columns) for one in opened.alphabets), initial=len(file.secret))]
    kept, left_out = Counter[Hashable](), False
    for row in file.sample:
        values = tuple(labels[code] for labels, code in zip(file.labels, row[1:], strict=True))
        if all(values[i:j] in one for (i, j), one in zip(pairwise(ends), named, strict=True)):
            kept[values] += 1
        else:
            left_out = True
    counted = Counter[Hashable]()
    for values, number in opened.by_label().items():
        counted[tuple(chain.from_iterable(values))] += number
    whole = not file.bits and file.entity is not None and not left_out
    if kept - counted or (left_out and opened.manifest.locked is None) or (whole and kept != counted):
        raise Broken(people.NAME, "the sample is not of the records counted", "values that they have", "others")


def _is_sampled(file: PeopleFile) -> None:
    """All people are in the sample, or of more about as many as have a word that begins so. Raises Broken."""
    found, what = len(file.sample), "people in the sample"
    if not file.bits:
        agree(people.NAME, [(what, file.rows, found)])
        return
    share = 0.5**file.bits
    chance, _ = strays(np.array([[share, 1 - share]]) * file.rows, np.array([[found, file.rows - found]]))
    if not chance >= FALSE_ALARM:
        told = f"there are not as many {what} as chance has in one"
        raise Broken(people.NAME, told, f"about {file.rows * share:.0f}", found, improbable=True)


def _night(opened: Release, entry: ReleaseEntry) -> Night:
    """A release of the ledger, with what is kept of its evidence and its protocol."""
    own, told = entry.release == opened.manifest.release, entry.identity
    folder = opened.folder if own else opened.root / entry.release

    def protocol() -> tuple[AnyProtocol, ...] | None:
        file = opened.protocol if own else archived(opened, entry)
        return None if file is None else protocols_of(file)

    return Night(
        entry.release, entry.drawn, protocol, entry.key_fingerprint, told.numbered, told.table, told.content,
        lambda: digest(folder, entry), told.people_sha256, lambda name: _counted(opened, entry, name),
        entry.own.together.sensitive, told.secret, entry.present,
    )  # fmt: skip


def digest(folder: Path, entry: ReleaseEntry) -> PeopleFile | None:
    """The digest; None where it is gone. Raises Broken where it is not the one that was entered."""
    path = folder / people.NAME
    if not path.is_file():
        return None
    raw = content(path)
    if (found := hashlib.sha256(raw).hexdigest()) != entry.identity.people_sha256:
        what = f"this is not the digest of {entry.release} that was entered"
        raise Broken(people.NAME, what, entry.identity.people_sha256, found)
    return _people(raw)


def by(root: Path, entry: ReleaseEntry) -> str | None:
    """The column by which a release knows people; None where it knows none, or nobody knows. Raises Broken."""
    if entry.entity is not None:
        return entry.entity
    found = digest(root / entry.release, entry)
    return None if found is None else found.entity


@lru_cache(maxsize=32)
def _people(raw: bytes) -> PeopleFile:
    """The digest of a night, with which every later one in a folder is compared. Raises Broken."""
    return parsed(PeopleFile, people.NAME, raw)


def _counted(opened: Release, entry: ReleaseEntry, column: str) -> Table | None:
    """Records by secret and value of a column; None where the counts are gone. Raises Broken where they are others."""
    own = entry.release == opened.manifest.release
    raw = None if own else entered(opened, entry, counts.NAME)
    if not own and raw is None:
        return None
    file = opened.counts if raw is None else parsed(CountsFile, counts.NAME, raw)
    return by_value(joint_of(file.secret, file.blocks, file.cells), column)
