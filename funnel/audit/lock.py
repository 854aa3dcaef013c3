"""The lock under which a release was made: whole, the one that the manifest names, and of this protocol."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from funnel.audit.fields import parse
from funnel.audit.files import MAX_EVIDENCE, content
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken
from funnel.audit.manifest import Manifest

_SEALED = re.compile(rb'checksum: "([0-9a-f]{64})"\n')
_FACT = re.compile(rb'^(protocol|made|estimated|noisy): "([^"\\\\\n]*)"$', re.MULTILINE)


def as_pinned(folder: Path, release: Path, manifest: Manifest) -> str | Unchecked:
    """lock.yaml has the checksum that it and the manifest name, and names the published blocks' hash.

    Raises AuditFailure.
    """
    if manifest.locked is None:
        return Unchecked(NOT_CLAIMED + "the protocol was solved for this release")
    facts = named(folder, manifest.locked[0])
    blocks = parse("protocol.json", content(release / "protocol.json", MAX_EVIDENCE))["blocks"].value
    own = hashlib.sha256(json.dumps(blocks, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    for name, expected in (("protocol", own), ("made", manifest.locked[1])):
        if facts.get(name) != expected:
            raise broken(
                "lock.yaml", f"the lock fixed another {name}", expected=expected, found=facts.get(name)
            )
    return f"the lock of {manifest.locked[1]}, SHA-256 {manifest.locked[0][:16]}…"


def named(folder: Path, checksum: str) -> dict[str, str]:
    """The facts of lock.yaml that are hashes, times or names, once it has this checksum. Raises AuditFailure."""
    raw = content(folder / "lock.yaml", MAX_EVIDENCE)
    body, seal = raw[: -len(b'checksum: ""\n') - 64], raw[-len(b'checksum: ""\n') - 64 :]
    found, sealed = hashlib.sha256(body).hexdigest(), _SEALED.fullmatch(seal)
    if sealed is None or not sealed[1].decode() == found == checksum:
        raise broken(
            "lock.yaml",
            "the lock is not the one that the manifest names",
            expected=checksum,
            found=found,
        )
    return {name.decode(): value.decode() for name, value in _FACT.findall(body)}
