"""ledger.jsonl: an unbroken chain, and one entry for the release."""

from __future__ import annotations

import hashlib
import os
from fractions import Fraction
from pathlib import Path

from funnel.audit.fields import Field, parse
from funnel.audit.files import content, digest
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.manifest import STEP, Manifest

NAME = "ledger.jsonl"
HEAD = "ledger.head"
_KEYS = (
    *("sequence", "written", "release", "name", "policy_sha256", "manifest_sha256", "protocol_sha256"),
    *("key_fingerprint", "draws", "notion", "epsilon", "leakage", "previous"),
)
_LATER = ("entity", "drawn", "composed", "estimate", "lock", "kept")
"""Keys that entries of the first versions lack; `estimate` is there where counts are noisy, `lock` under one."""
SEEN = "published"
"""A file beside the evidence of a release that became visible; whoever writes it writes `kept`, too."""
_SHA = r"[0-9a-f]{64}"


def read_ledger(folder: Path) -> tuple[list[Field], str]:
    """Every entry, once sequence and hashes chain, up to where the head says. Raises AuditFailure."""
    entries = read_chain(folder, NAME, HEAD, _KEYS, _LATER)
    return entries, counted(len(entries), "entry", "entries")


def read_chain(
    folder: Path, name: str, head: str, keys: tuple[str, ...], optional: tuple[str, ...] = ()
) -> list[Field]:
    """Every entry of one chained record, with its head. Raises AuditFailure."""
    entries, digests = [], ["0" * 64]
    for number, line in enumerate(_lines(folder / name), start=1):
        entry = parse(f"{name}:{number}", line)
        entry.keys(*keys, optional=optional)
        if entry["previous"].text() != digests[-1]:
            found = entry["previous"].value
            raise broken(entry.file, "the chain is broken here", expected=digests[-1], found=found)
        if entry["sequence"].whole() != number:
            found = entry["sequence"].value
            raise broken(entry.file, "the entry has another number", expected=number, found=found)
        entries.append(entry)
        digests.append(hashlib.sha256(line).hexdigest())
    _reaches(folder / head, name, digests)
    return entries


def _lines(path: Path) -> list[bytes]:
    """Whole lines; one without its end is what a crash left of an entry that never counted."""
    return content(path).split(b"\n")[:-1]


def _reaches(path: Path, name: str, digests: list[str]) -> None:
    """The head names a line, so none that it confirmed is missing; a crash may leave one beyond it."""
    entries = len(digests) - 1
    if entries <= 1 and not os.path.lexists(path):
        return
    head = parse(path.name, content(path))
    head.keys("sequence", "sha256")
    confirmed = head["sequence"].whole(1)
    if confirmed > entries:
        raise broken(name, "entries are missing at its end", expected=confirmed, found=entries)
    if digests[confirmed] != head["sha256"].text():
        what = f"entry {confirmed} is not the one that the head confirms"
        raise broken(name, what, expected=head["sha256"].value, found=digests[confirmed])


def entered(entries: list[Field], manifest: Manifest) -> tuple[list[Field], str]:
    """The entries up to that of this release, which is one, and says what the manifest says. Raises AuditFailure."""
    own = [entry for entry in entries if entry["release"].value == manifest.release]
    if len(own) != 1:
        raise broken(NAME, "the release is not entered exactly once", expected=1, found=len(own))
    entry = own[0]
    for key, expected in (
        ("manifest_sha256", manifest.sha256),
        ("policy_sha256", manifest.policy_sha256),
        ("protocol_sha256", manifest.files["protocol.json"][0]),
        ("name", manifest.name),
        ("notion", manifest.notion),
        ("key_fingerprint", manifest.fingerprint),
    ):
        if entry[key].value != expected:
            raise broken(
                entry.file, f"{key} is not the manifest's", expected=expected, found=entry[key].value
            )
    _same_figures(entry, manifest)
    if manifest.noise is not None and entry["estimate"]["spent"].number() != manifest.noise.spent:
        raise broken(
            entry.file,
            "what was spent on estimates is not the manifest's",
            expected=float(manifest.noise.spent),
            found=entry["estimate"]["spent"].value,
        )
    number = entry["sequence"].whole(1)
    _same_lock(entries[:number], manifest)
    return entries[:number], f"entry {number} of {len(entries)}"


def _same_lock(entries: list[Field], manifest: Manifest) -> None:
    """The last entry names the manifest's lock, or none of the first version does."""
    *before, entry = entries
    stated = None if manifest.locked is None else manifest.locked[0]
    found = entry["lock"].text() if "lock" in entry.value else None
    first = found is None and not any("lock" in one.value for one in before)
    if found != stated and not first:
        raise broken(entry.file, "the lock is not the manifest's", expected=stated, found=found)


def kept_files(entries: list[Field], folder: Path) -> str | Unchecked:
    """The private files of the last entry's release are, byte for byte, those that it names. Raises AuditFailure."""
    *before, entry = entries
    if "kept" not in entry.value:
        if any("kept" in one.value for one in before) or os.path.lexists(folder / SEEN):
            raise broken(
                entry.file, "the entry has lost the hashes of its evidence", expected="kept", found=None
            )
        return Unchecked(NOT_CLAIMED + "the entry is of a version that did not name its evidence")
    named = {name: field.text(_SHA) for name, field in entry["kept"].members()}
    for name, expected in named.items():
        if "/" in name or (found := digest(folder / name)) != expected:
            raise broken(name, "this is not the file that the ledger names", expected=expected, found=found)
    if "evidence.json" not in named:
        raise entry["kept"].wrong("the hash of evidence.json, and of all that lies beside it")
    return f"{counted(len(named), 'file')} of evidence"


def _same_figures(entry: Field, manifest: Manifest) -> None:
    """Draws and epsilon are the manifest's; a leakage may be the exact one that the manifest rounds up."""
    kind = entry["draws"]["kind"] if isinstance(entry["draws"].value, dict) else entry["draws"]
    kind.among(manifest.draws)
    epsilon = entry["epsilon"]
    if (0 if epsilon.value is None else epsilon.number(high=1e308)) != manifest.epsilon:
        raise broken(
            entry.file, "epsilon is not the manifest's", expected=float(manifest.epsilon), found=epsilon.value
        )
    stated = manifest.leakage
    for name, field in entry["leakage"].members():
        if not _near(field, stated.get(name)):
            raise broken(
                entry.file,
                f"leakage.{name} is not the manifest's",
                expected=stated.get(name),
                found=field.value,
            )


def _near(field: Field, stated: Fraction | None) -> bool:
    if field.value is None or stated is None:
        return field.value is None and stated is None
    return stated - STEP <= field.number() <= stated
