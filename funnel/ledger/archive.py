"""What the private folder keeps of earlier releases: protocols, cells and manifests by their hash, and evidence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from funnel.data.convert import protocols_of
from funnel.data.unary import AnyProtocol
from funnel.errors import LedgerError
from funnel.files import replace_file, sync, writing
from funnel.format import cells, evidence, schema
from funnel.format.canonical import FormatError
from funnel.format.evidence import EvidenceFile
from funnel.format.journal import ReleaseEntry
from funnel.format.protocol import FOLDER, ProtocolFile


def keep(private: Path, published: Path) -> None:
    """Copy a published file into the private folder, durably, under the name of its SHA-256. Raises ReleaseError.

    By protocols later nights are composed; what release.json and cells.json say, the ledger has to, wherever a release
    has gone.
    """
    with writing(private):
        content = published.read_bytes()
        folder = private / FOLDER
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
            sync(private)
        kept = _path(private, hashlib.sha256(content).hexdigest())
        if not kept.is_file() or kept.read_bytes() != content:
            replace_file(kept, content)


def cells_of(private: Path, entries: Sequence[ReleaseEntry]) -> set[str] | None:
    """SHA-256 of each cells.json that releases of the ledger have; None where what tells it of one is not kept whole.

    Raises LedgerError where it cannot be read.
    """
    found = set[str]()
    for sha256 in {entry.manifest_sha256 for entry in entries if any(one.inside for one in entry.drawn)}:
        raw = read_kept(_path(private, sha256))
        if raw is None or hashlib.sha256(raw).hexdigest() != sha256:
            return None
        listed = json.loads(raw)["files"].get(cells.NAME)
        found |= {listed["sha256"]} if listed else set()
    return found


def kept_protocols(
    private: Path, to: Path, entries: Sequence[ReleaseEntry]
) -> dict[str, tuple[AnyProtocol, ...] | None]:
    """The blocks of each protocol that entries name, by its hash; None where no copy is left, nor a release in `to`.

    Raises LedgerError where a copy is damaged.
    """
    published: dict[str, list[Path]] = {}
    for entry in entries:
        published.setdefault(entry.protocol_sha256, []).append(to / entry.release / "protocol.json")
    return {sha256: kept_protocol(private, sha256, *places) for sha256, places in published.items()}


def kept_protocol(private: Path, sha256: str, *elsewhere: Path) -> tuple[AnyProtocol, ...] | None:
    """The blocks of a protocol; None where no copy is left, neither here nor (by its hash) `elsewhere`.

    Raises LedgerError where the copy is damaged.
    """
    path = _path(private, sha256)
    for place in (path, *elsewhere):
        try:
            content = place.read_bytes()
        except OSError:
            continue
        if hashlib.sha256(content).hexdigest() == sha256:
            return protocols_of(schema.read(ProtocolFile, str(place), content))
        if place == path:
            raise LedgerError(
                "ledger",
                "a protocol that was kept for the ledger is not the one that was released",
                where=str(path),
                advice="Restore it from a backup of the private folder, or from the release's own protocol.json.",
            )
    return None


def kept_evidence(private: Path, entry: ReleaseEntry, name: str) -> bytes | None:
    """A private file of a release; None where it was lost, or is not the one that its evidence was entered with.

    Raises LedgerError where it is there and cannot be read.
    """
    listing, raw = (read_kept(private / entry.release / one) for one in (evidence.NAME, name))
    if listing is None or raw is None or hashlib.sha256(listing).hexdigest() != entry.evidence_sha256:
        return None
    try:
        told = schema.read(EvidenceFile, evidence.NAME, listing).files.get(name)
    except FormatError:
        return None
    return raw if told is not None and hashlib.sha256(raw).hexdigest() == told.sha256 else None


def read_kept(path: Path) -> bytes | None:
    """A private file of an earlier release; None where there is none. Raises LedgerError where it cannot be read.

    A share that is gone for a moment is no loss: what a release takes for lost it says for good.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerError(
            "ledger",
            f"a private file of an earlier release cannot be read: {error.strerror}",
            where=str(path),
            advice="Nothing was published. Run it again once it can be read, or restore it from a backup of the "
            "private folder.",
        ) from error


def _path(private: Path, sha256: str) -> Path:
    return private / FOLDER / f"{sha256}.json"
