"""lock.yaml: the protocol that it fixed, weight by weight, and the noisy counts of its night."""

from __future__ import annotations

import hashlib

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.noise import noisy
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree
from funnel.format.canonical import encode
from funnel.format.schema import as_json
from funnel.format.sealed import SealError, unsealed

CLAIM = "lock"
TITLE = (
    "the protocol is, weight by weight, the one that the lock fixed, and so are cells and noisy counts; what else"
    " lock.yaml says of its night is the publisher’s word, but for what drift.json repeats"
)
PRIVATE = True
NAME = "lock.yaml"


def check(opened: Release) -> str | Unchecked:
    """The lock is the manifest's, and its hashes and numbers those of this protocol and its counts. Raises Broken."""
    stated, private = opened.manifest.locked, opened.counts.private
    if stated is None:
        return Unchecked(NOT_CLAIMED + "the protocol was solved for this release")
    facts = lock_facts(opened)
    own = _hash(as_json(opened.protocol.blocks))
    wide = _hash(as_json(opened.partitioned)) if opened.partitioned else None
    agree(NAME, [("protocol", own, facts.get("protocol")), ("made", stated.made, facts.get("made")),
                 ("fixed", stated.fixed, facts.get("fixed")), ("cells", wide, facts.get("cells"))])  # fmt: skip
    if (locked := opened.counts.locked) is not None and stated.fixed is None and not private:
        agree(NAME, [("rows", facts.get("rows"), sum(one)) for one in locked])
    if private:
        cells, true, noise = noisy(private)
        rows = sorted(np.column_stack([cells, true + noise]).tolist())
        counts = _hash([[as_json(one) for one in opened.joint.alphabets], rows])
        agree(NAME, [("noisy counts", counts, facts.get("noisy"))])
    return f"the lock of {stated.made}, SHA-256 {stated.checksum[:16]}…"


def lock_facts(opened: Release) -> dict[str, object]:
    """What lock.yaml says, once its checksum is its own and the manifest's. Raises Broken."""
    try:
        facts, checksum = unsealed(opened.read(NAME).decode())
    except (SealError, UnicodeDecodeError) as error:
        raise Broken(NAME, "this is no lock", "sealed text", error) from None
    stated = opened.manifest.locked
    agree(NAME, [("checksum", stated and stated.checksum, checksum)])
    return facts


def _hash(value: object) -> str:
    """SHA-256 of its canonical JSON."""
    return hashlib.sha256(encode(value)).hexdigest()
