"""A forger's tools: files of releases changed, and everything that needs no key made to fit again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from funnel import report
from funnel.cells.record import opened
from funnel.data.convert import protocols_of
from funnel.errors import FunnelError
from funnel.format import attestation, drift, evidence, manifest, protocol, released, schema, solution, terms
from funnel.format.attestation import Envelope
from funnel.format.canonical import encode
from funnel.format.journal import HEAD, START
from funnel.format.journal import NAME as LEDGER
from funnel.format.manifest import FileEntry
from funnel.format.reported import Evidence, Published
from funnel.format.reported import read as read_files
from funnel.release.export import Target
from funnel.release.sign import SigningKey
from funnel.release.written import write_data
from funnel.report.catalogue import catalogue, notes
from funnel.report.catalogue.attested import statement

Json = dict[str, Any]
LOCK, POLICY, PLAN, SEEN = "lock.yaml", "policy.yaml", "plan.json", "published"


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Change a JSON file in place; one that says the same afterwards keeps its bytes."""
    before, after = read(path), read(path)
    change(after)
    if after != before:
        path.write_bytes(encode(after))


@dataclass(frozen=True)
class Forged:
    """One release of a ledger: its published folder, its folder of evidence, and the private folder of all."""

    folder: Path
    kept: Path

    @property
    def private(self) -> Path:
        """The private folder of all releases."""
        return self.kept.parent

    # --- what the files say

    def published(self) -> Published:
        """The published files."""
        return read_files(Published, self.folder)

    # --- what follows from other files

    def write_reports(self) -> None:
        """Both reports anew; as they are where these files have none."""
        try:
            shown, kept = self.published(), read_files(Evidence, self.kept)
            found = {self.folder: report.published(shown), self.kept: report.full(shown, kept)}
            pages = {folder: report.page(content).encode() for folder, content in found.items()}
        except (FunnelError, ValueError, LookupError, TypeError, ArithmeticError):
            return
        for folder, content in found.items():
            (folder / "report.json").write_bytes(encode(content))
            (folder / "report.html").write_bytes(pages[folder])

    def write_data(self) -> None:
        """The table anew, of the released labels."""
        shown = self.published()
        stated, target = shown.manifest, self.folder / shown.manifest.data
        protocols, wide = protocols_of(shown.protocol), shown.cells
        try:
            told = notes(shown)
        except ValueError:  # columns that the protocol does not release: nobody knows what to tell of them
            told = {}
        inside = () if wide is None else tuple(map(opened, wide.blocks))
        write_data(shown, protocols, inside, Target(target, stated.format_of_data, notes=told), None)

    def answer(self, rows: Iterable[tuple[int, ...]], *, count: bool = True) -> None:
        """Other released rows of output codes, one for each record; the manifest counts them."""
        found = Counter(rows)
        told = [[*codes, number] for codes, number in sorted(found.items())]
        edit(self.folder / released.NAME, lambda old: old.update(rows=told))
        if count:
            edit(self.folder / manifest.NAME, lambda old: old.update(rows=sum(found.values())))
        self.write_data()

    def rows(self) -> list[tuple[int, ...]]:
        """Released output codes, one row for each record."""
        grid = np.array(read(self.folder / released.NAME)["rows"])
        return [tuple(row) for *codes, number in grid.tolist() for row in [tuple(codes)] * number]

    # --- hashes

    def list_files(self) -> None:
        """The manifest's list of files, as they are now: all that is needed to change a published folder."""
        listed = _entries(self.folder, {manifest.NAME, attestation.NAME, *manifest.CATALOGUES})
        entries = {name: FileEntry(**one) for name, one in listed.items()}
        with suppress(FunnelError, ValueError, LookupError, TypeError, ArithmeticError):
            for name, content in catalogue(self.published(), entries).items():
                (self.folder / name).write_bytes(content)
        listed = _entries(self.folder, {manifest.NAME, attestation.NAME})
        edit(self.folder / manifest.NAME, lambda old: old.update(files=listed))
        attest(self.folder)

    def seal(self, *, reports: bool = True) -> Json:
        """All hashes of the release, and what its entry in the ledger has to say of them; `reports` anew as well."""
        self._seal_proof()
        policy = sha((self.kept / POLICY).read_bytes())
        edit(self.kept / PLAN, lambda old: old.update(policy_sha256=policy))
        edit(self.kept / terms.NAME, lambda old: old.update(policy_sha256=policy))
        told = {"policy_sha256": policy, "plan_sha256": sha((self.kept / PLAN).read_bytes()),
                "terms_sha256": sha((self.kept / terms.NAME).read_bytes())}  # fmt: skip
        edit(self.folder / manifest.NAME, lambda old: old.update(told))
        self._seal_lock()
        if reports:
            self.write_reports()
        self.list_files()
        raw = (self.folder / protocol.NAME).read_bytes()
        (self.private / "protocols" / f"{sha(raw)}.json").write_bytes(raw)
        stated = sha((self.folder / manifest.NAME).read_bytes())
        files = _entries(self.kept, {evidence.NAME, SEEN})
        edit(self.kept / evidence.NAME, lambda old: old.update(manifest_sha256=stated, files=files))
        lock = read(self.folder / manifest.NAME)["locked"]
        return {
            "manifest_sha256": stated, "evidence_sha256": sha((self.kept / evidence.NAME).read_bytes()),
            "protocol_sha256": sha(raw), "policy_sha256": policy, "lock": lock and lock["checksum"],
        }  # fmt: skip

    def _seal_proof(self) -> None:
        path, told = self.kept / solution.PROOF, read(self.kept / solution.NAME)
        if path.is_file() and (told["certificate"] or {}).get("proof"):
            told["certificate"]["proof"]["sha256"] = sha(path.read_bytes())
            edit(self.kept / solution.NAME, lambda old: old.update(told))

    def _seal_lock(self) -> None:
        """A lock that fixed the protocol as it is now."""
        path, stated = self.kept / LOCK, read(self.folder / manifest.NAME)
        if not path.is_file() or not stated["locked"]:
            return
        blocks = encode(read(self.folder / protocol.NAME)["blocks"])
        lines = path.read_text().splitlines(keepends=True)[:-1]
        body = "".join(f'protocol: "{sha(blocks)}"\n' if one.startswith("protocol: ") else one for one in lines)
        path.write_bytes(body.encode() + f'checksum: "{sha(body.encode())}"\n'.encode())
        checksum = sha(body.encode())
        edit(self.folder / manifest.NAME, lambda old: old["locked"].update(checksum=checksum))
        for name, key in ((drift.NAME, "lock"),):
            if (self.kept / name).is_file():
                edit(self.kept / name, lambda old, key=key: old.update({key: checksum}))


def attest(folder: Path, line: str | None = None, signer: SigningKey | None = None) -> None:
    """The statement about the files as they are now, and the `line` of the ledger with this hash.

    Under the signature that was there, where no `signer` makes another: that is all a forger has.
    """
    path = folder / attestation.NAME
    if not path.is_file():
        return
    old = schema.read(Envelope, path.name, path.read_bytes())
    files = {name: one["sha256"] for name, one in _entries(folder, {attestation.NAME}).items()}
    ledger = line or json.loads(old.content)["predicate"]["ledger_sha256"]
    with suppress(FunnelError, ValueError, LookupError, TypeError, ArithmeticError):
        content = statement(read_files(Published, folder), files, ledger)
        new = attestation.sealed(content, old.signed_by, old.signature) if signer is None else signer.seal(content)
        path.write_bytes(schema.write(new))


def _entries(folder: Path, without: set[str]) -> Json:
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in without)
    return {path.name: {"sha256": sha(path.read_bytes()), "bytes": path.stat().st_size} for path in files}


def lines_of(private: Path) -> list[Json]:
    """The ledger's lines."""
    return [json.loads(line) for line in _raw_lines(private)]


def _raw_lines(private: Path) -> list[bytes]:
    return (private / LEDGER).read_bytes().split(b"\n")[:-1]


def rechain(private: Path, lines: list[Json]) -> None:
    """The ledger and its head, written anew with numbers and hashes that fit."""
    raw, last = b"", START
    for number, line in enumerate(lines, start=1):
        text = encode(line | {"sequence": number, "previous": last})
        raw, last = raw + text, sha(text)
    (private / LEDGER).write_bytes(raw)
    (private / HEAD).write_bytes(encode({"sequence": max(len(lines), 1), "sha256": last}))


def seal(releases: Iterable[Forged], *, reports: bool = True) -> None:
    """Every hash and checksum of some releases and of their ledger, as a forger without the signing key can."""
    forged, private, told = [*releases], None, dict[str, Json]()
    for one in forged:
        private, told[one.folder.name] = one.private, one.seal(reports=reports)
    if private is not None:
        lines = lines_of(private)
        for line in lines:
            line["entry"] |= told.get(line["entry"].get("release"), {})
        rechain(private, lines)
        hashes = {json.loads(raw)["entry"].get("release"): sha(raw + b"\n") for raw in _raw_lines(private)}
        for one in forged:
            attest(one.folder, hashes.get(one.folder.name))


__all__ = ["Forged", "Json", "attest", "edit", "lines_of", "read", "rechain", "seal", "sha"]
