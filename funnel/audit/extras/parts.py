"""What the ledger says was drawn: blocks of releases, with the protocols that are left of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.extras.overlaps import Drawer
from funnel.audit.kernel.opened import content
from funnel.audit.kernel.verdict import Broken
from funnel.data.alphabet import folded
from funnel.format import evidence
from funnel.format.canonical import FormatError
from funnel.format.evidence import EvidenceFile
from funnel.format.fields import Label
from funnel.format.journal import NAME, Drawn, Present, ReleaseEntry
from funnel.format.protocol import FOLDER, ProtocolFile, Sets, Weights
from funnel.format.protocol import NAME as PROTOCOL
from funnel.format.schema import read

Protocol = Weights | Sets | Drawer


@dataclass(frozen=True, eq=False)
class DrawnBlock:
    """One block of one release, as the ledger tells of it; `protocol` is None where no copy of it is left.

    `source` is where its random numbers come from: the key's fingerprint, or the release where draws are fresh.
    Meanings are those of a version of the column, the entity is one of a numbering of people. `beside` are all blocks
    of its release.
    """

    columns: tuple[str, ...]
    meaning: tuple[str, ...]
    base: tuple[str, ...]
    reads: tuple[str, ...] | None
    source: str
    entity: str | None
    protocol: Protocol | None
    name: object
    present: Present | None = None
    inside: tuple[str, ...] = ()
    beside: tuple[DrawnBlock, ...] = ()

    @property
    def who(self) -> str | None:
        """The predicate of who is in the release, None where all are let in."""
        return None if self.present is None else self.present.predicate

    @property
    def drops(self) -> bool:
        """Whether records were left out because a lock did not know their values."""
        return self.present is not None and self.present.unseen > 0

    @property
    def drawer(self) -> object:
        """Parts that are alike here share their numbers, if their values mean the same."""
        return self.source, self.columns, self.reads

    @property
    def known(self) -> frozenset[Label] | None:
        """The values of x that were drawn for; None where nobody knows."""
        if self.protocol is None or isinstance(self.protocol, Drawer):
            return None if self.protocol is None else frozenset(x for _, x in self.protocol.columns)
        return frozenset(self.protocol.inputs)

    def knows(self, values: Set[Label]) -> bool:
        """Whether all of these were drawn for, those that had no name as `other`."""
        if isinstance(self.protocol, Drawer):
            secrets = {s for s, _ in self.protocol.columns}
            return all(self.protocol.name(asked) for asked in product(secrets, values))
        return self.known is not None and values <= self.known

    @property
    def table_columns(self) -> set[str]:
        """The columns of the table that it says something of, also within cells, as a table is asked for them."""
        return set(map(folded, (*self.columns, *self.inside)))

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Its columns with their meanings."""
        return set(zip(self.columns, self.meaning, strict=True))

    def tonight(self, own: Sequence[DrawnBlock]) -> DrawnBlock:
        """The same in terms of this release, where each of its values says what was drawn for.

        The two differ in which values had a name. Where this release names all that was named then, a value without a
        name then was drawn for as `other`.
        """
        for mine in own:
            alike = (self.columns, self.base, self.reads) == (mine.columns, mine.base, None)
            single = len(self.columns) == 1 and self.meaning != mine.meaning
            if alike and single and isinstance(self.protocol, Weights) and isinstance(mine.protocol, Weights):
                if mine.meaning != mine.base and not set(self.protocol.inputs) <= set(mine.protocol.inputs):
                    continue
                drawer = Drawer.of(self.protocol, pools=self.meaning != self.base)
                return replace(self, protocol=drawer, meaning=mine.meaning)
        return self

    def labelled(self) -> DrawnBlock:
        """The same with the values named put aside: answers for one label share their number whatever was named."""
        return replace(self, meaning=self.base) if isinstance(self.protocol, Weights) else self


def parts_of(entry: ReleaseEntry, protocol: ProtocolFile | None) -> list[DrawnBlock]:
    """What an entry says was drawn, with its protocol. Raises Broken where the two do not fit."""
    blocks = (None,) * len(entry.drawn) if protocol is None else protocol.blocks
    told = [(one.columns, one.reads, len(one.meaning), len(one.base)) for one in entry.drawn]
    drawn = [(one.columns, reads(one), len(one.columns), len(one.columns)) for one in blocks if one is not None]
    source = entry.key_fingerprint if entry.draws == "permanent" else entry.release
    if source is None or (entry.draws == "permanent") != (entry.entity is not None) or (drawn and told != drawn):
        raise Broken(NAME, "drawn is not what the protocol draws, or of nobody", drawn, told)
    entity = None if entry.entity is None else entry.entity + entry.identity.numbered
    found = [
        DrawnBlock(
            one.columns, _of(one.meaning, one), _of(one.base, one), one.reads, source, entity, block,
            (entry.protocol_sha256, place), entry.present, one.inside,
        )
        for place, (one, block) in enumerate(zip(entry.drawn, blocks, strict=True))
    ]  # fmt: skip
    return [replace(one, beside=tuple(found)) for one in found]


def _of(hashes: tuple[str, ...], one: Drawn) -> tuple[str, ...]:
    """What values mean in the version of their column; raises Broken where some column has none."""
    if len(one.since) != len(hashes):
        raise Broken(NAME, "a column that was drawn has no version", one.columns, one.since)
    return tuple(map("".join, zip(hashes, one.since, strict=True)))


def reads(block: Weights | Sets) -> tuple[str, ...] | None:
    """The columns of the secret that draws look at."""
    return block.secret.columns if isinstance(block, Weights) and block.secret else None


def once(parts: Iterator[DrawnBlock]) -> list[DrawnBlock]:
    """Permanent draws that only repeat what was said count once."""
    return list({
        (one.name, one.columns, one.meaning, one.source, one.entity, one.who, one.drops): one for one in parts
    }.values())  # fmt: skip


def kept_file(opened: Release, entry: ReleaseEntry, name: str) -> bytes | None:
    """A private file of an earlier release; None where it is gone, or what lists it.

    Raises Broken where it is not the one that the release was entered with.
    """
    folder = opened.root / entry.release
    path, listing = folder / name, folder / evidence.NAME
    if not (path.is_file() and listing.is_file()):
        return None
    raw, told = content(path), content(listing)
    whole = hashlib.sha256(told).hexdigest() == entry.evidence_sha256
    stated = read(EvidenceFile, evidence.NAME, told).files.get(name) if whole else None
    if stated is None or stated.sha256 != hashlib.sha256(raw).hexdigest():
        what = f"this is not the file of {entry.release} that was entered"
        raise Broken(name, what, "the one that its evidence lists", "another")
    return raw


def copy_of(opened: Release, sha256: str) -> Path:
    """Where the private folder keeps a published file for good."""
    return opened.root / FOLDER / f"{sha256}.json"


def archived(opened: Release, entry: ReleaseEntry) -> ProtocolFile | None:
    """An earlier release's protocol, from the archive or a release that was drawn by it; None where no copy is left.

    Raises Broken where the archive's was changed.
    """
    archive, folder = copy_of(opened, entry.protocol_sha256), opened.release.parent
    name = archive.name

    def places() -> Iterator[Path]:
        yield archive
        for one in (line.entry for line in opened.journal):
            if isinstance(one, ReleaseEntry) and one.protocol_sha256 == entry.protocol_sha256:
                yield folder / one.release / PROTOCOL

    def kept(path: Path) -> ProtocolFile | None:
        raw = content(path) if path.is_file() else None
        found = None if raw is None else hashlib.sha256(raw).hexdigest()
        if raw is None or (found != entry.protocol_sha256 and path != archive):
            return None
        if found != entry.protocol_sha256:
            raise Broken(f"protocols/{name}", "the archived protocol was changed", name, found)
        try:
            return read(ProtocolFile, path.name, raw)
        except FormatError as error:
            raise Broken(name, "the archived protocol is none", error.expected, error.found) from None

    copies = (opened.once(("archived", path), partial(kept, path)) for path in places())
    return next((found for found in copies if found is not None), None)


def groups_of(parts: Sequence[DrawnBlock]) -> list[list[Protocol]]:
    """Protocols that share their numbers, each once."""
    found: dict[object, dict[object, Protocol]] = {}
    for one in parts:
        if one.protocol is not None:
            group = found.setdefault((one.drawer, isinstance(one.protocol, Sets), one.meaning, one.entity), {})
            group.setdefault(_content(one.protocol), one.protocol)
    return [list(group.values()) for group in found.values()]


def _content(protocol: Protocol) -> object:
    """Equal for protocols that draw alike."""
    return protocol.key if isinstance(protocol, Drawer) else protocol


def tangled(parts: Sequence[DrawnBlock]) -> bool:
    """Whether one number may have served one text in two meanings: then nothing is known of how these go together."""
    meanings: dict[object, dict[object, set[Label | None]]] = {}
    for one in parts:
        known = {None} if one.known is None else one.known
        meanings.setdefault(one.drawer, {}).setdefault((one.meaning, one.entity), set()).update(known)
    return any(
        None in a | b or bool(a & b) for used in meanings.values() for a, b in combinations(used.values(), 2)
    )
