"""estimate.minimum: how many records each value had that a protocol says something of."""

from __future__ import annotations

import numpy as np

from funnel.audit.evidence import Evidence
from funnel.audit.fields import IntArray
from funnel.audit.findings import Unchecked, broken
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Blocks


def enough_records(evidence: Evidence, blocks: Blocks, manifest: Manifest) -> str | Unchecked:
    """Every value of every block has the promised number of records, and so has every value of the secret
    where a block reads it: the protocol then names that value. Raises AuditFailure.

    Under a lock the protocol says nothing of tonight's counts, but of those that the lock was made from; noisy ones
    stay the lock's.
    """
    reads = any(block.secret for block in blocks)
    named = [evidence.secret] if reads else []
    records = [_records(evidence, axis) for axis in range(1 - len(named), 1 + len(evidence.blocks))]
    when = ""
    if manifest.locked and not reads and evidence.noisy is None:
        if evidence.locked is None:
            return Unchecked("the counts that the lock was made from are not kept with this release")
        records, when = list(evidence.locked), " when the lock was made"
    for alphabet, found in zip([*named, *evidence.blocks], records, strict=True):
        if int(found.min()) < manifest.minimum:
            raise broken(
                "evidence.json",
                f"a value of {', '.join(alphabet.columns)} has too few records{when}",
                expected=f"at least {manifest.minimum}",
                found=f"{int(found.min())} for {alphabet.values[found.argmin()]}",
            )
    fewest = min(int(found.min()) for found in records)
    return f"at least {fewest} records each{when}, {manifest.minimum} promised"


def _records(evidence: Evidence, axis: int) -> IntArray:
    """Records of each value of the secret (axis 0) or of a block."""
    records = np.zeros(evidence.shape[axis], np.int64)
    np.add.at(records, evidence.cells[:, axis], evidence.counts)
    return records
