"""ledger.jsonl: an unbroken chain, and one entry for the release."""

from __future__ import annotations

import hashlib
import os
from fractions import Fraction
from pathlib import Path

from funnel.audit.fields import Field, parse
from funnel.audit.files import content
from funnel.audit.findings import broken, counted
from funnel.audit.manifest import STEP, Manifest

NAME = "ledger.jsonl"
HEAD = "ledger.head"
_KEYS = (
    *("sequence", "written", "release", "name", "policy_sha256", "manifest_sha256", "protocol_sha256"),
    *("key_fingerprint", "draws", "notion", "epsilon", "leakage", "previous"),
)
_LATER = ("entity", "drawn", "composed", "estimate")
"""Keys that entries of the first version lack; the last is there where counts are noisy only."""


def read_ledger(folder: Path) -> tuple[list[Field], str]:
    """Every entry, once sequence and hashes chain, up to where the head says. Raises AuditFailure."""
    entries, digests = [], ["0" * 64]
    for number, line in enumerate(_lines(folder / NAME), start=1):
        entry = parse(f"{NAME}:{number}", line)
        entry.keys(*_KEYS, optional=_LATER)
        if entry["previous"].text() != digests[-1]:
            found = entry["previous"].value
            raise broken(entry.file, "the chain is broken here", expected=digests[-1], found=found)
        if entry["sequence"].whole() != number:
            found = entry["sequence"].value
            raise broken(entry.file, "the entry has another number", expected=number, found=found)
        entries.append(entry)
        digests.append(hashlib.sha256(line).hexdigest())
    _reaches(folder / HEAD, digests)
    return entries, counted(len(entries), "entry", "entries")


def _lines(path: Path) -> list[bytes]:
    """Whole lines; one without its end is what a crash left of an entry that never counted."""
    return content(path).split(b"\n")[:-1]


def _reaches(path: Path, digests: list[str]) -> None:
    """The head names a line, so none that it confirmed is missing; a crash may leave one beyond it."""
    entries = len(digests) - 1
    if entries <= 1 and not os.path.lexists(path):
        return
    head = parse(path.name, content(path))
    head.keys("sequence", "sha256")
    confirmed = head["sequence"].whole(1)
    if confirmed > entries:
        raise broken(NAME, "entries are missing at its end", expected=confirmed, found=entries)
    if digests[confirmed] != head["sha256"].text():
        what = f"entry {confirmed} is not the one that the head confirms"
        raise broken(NAME, what, expected=head["sha256"].value, found=digests[confirmed])


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
    return entries[:number], f"entry {number} of {len(entries)}"


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
