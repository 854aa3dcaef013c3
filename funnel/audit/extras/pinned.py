"""lock.yaml: the protocol that it fixed, weight by weight, and the noisy counts of its night."""

from __future__ import annotations

import hashlib

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.noise import noisy
from funnel.audit.extras.parts import kept_file
from funnel.audit.kernel.opened import content, parsed
from funnel.audit.kernel.records import Joint
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree
from funnel.format.canonical import encode
from funnel.format.counts import NAME as COUNTS
from funnel.format.counts import CountsFile
from funnel.format.locked import FOLDER, LockedFile
from funnel.format.schema import as_json, outside
from funnel.format.sealed import SealError, unsealed

CLAIM = "lock"
TITLE = (
    "the protocol is, weight by weight, the one that the lock fixed, and so are cells and noisy counts; what else"
    " lock.yaml says of its night, and since when the protocol is fixed, is the publisher’s word, but for what"
    " drift.json repeats"
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
    agree(NAME, [("protocol", own, facts.get("protocol")), ("made", stated.made, facts.get("made")),
                 ("mechanism", opened.manifest.mechanism, facts.get("mechanism")),
                 ("fixed", stated.fixed, facts.get("fixed")),
                 ("parameters", _asked(as_json(opened.manifest.parameters), noisy=private is not None),
                  _asked(facts.get("parameters"), noisy=private is not None))])  # fmt: skip
    if (locked := opened.counts.locked) is not None and stated.fixed is None and not private:
        agree(NAME, [("rows", facts.get("rows"), sum(one)) for one in locked])
        _as_before(opened, locked)
    if private:
        agree(NAME, [("fixed, where no lock keeps another’s protocol", None, stated.fixed)])
        cells, true, noise = noisy(private)
        rows = sorted(np.column_stack([cells, true + noise]).tolist())
        counts = _hash([[as_json(one) for one in opened.joint.alphabets], rows])
        agree(NAME, [("noisy counts", counts, facts.get("noisy"))])
    # Last, for of a release that has gone they may be lost, and all else is there.
    agree(NAME, [("cells", _hash(as_json(opened.partitioned)) if opened.partitioned else None, facts.get("cells"))])
    return f"the lock of {stated.made}, SHA-256 {stated.checksum[:16]}…"


def _as_before(opened: Release, locked: tuple[tuple[int, ...], ...]) -> None:
    """Each value had the records that the last release under the lock kept, where that is left. Raises Broken."""
    before = [] if opened.staged else [one for one in opened.entries[:-1] if one.lock == opened.entries[-1].lock]
    kept = (kept_file(opened, one, COUNTS) for one in reversed(before))
    told = (parsed(CountsFile, COUNTS, raw).locked for raw in kept if raw is not None)
    if (then := next((one for one in told if one is not None), None)) is not None:
        agree(COUNTS, [("records of each value when the lock was made", then, locked)])


def lock_facts(opened: Release) -> dict[str, object]:
    """What lock.yaml says, once its checksum is its own and the manifest's. Raises Broken."""
    try:
        facts, checksum = unsealed(opened.read(NAME).decode())
    except (SealError, UnicodeDecodeError) as error:
        raise Broken(NAME, "this is no lock", "sealed text", error) from None
    stated = opened.manifest.locked
    agree(NAME, [("checksum", stated and stated.checksum, checksum)])
    return facts


def _asked(parameters: object, *, noisy: bool) -> object:
    """What the lock's night has in common with tonight's.

    Not a radius that follows from each one's own records, nor a lower ε of which the lock leaves room.
    """
    if not isinstance(parameters, dict):
        return parameters
    own = parameters.get("confidence") is not None and not noisy
    told = {key: value for key, value in parameters.items() if value is not None and not (own and key == "radius")}
    return told | {"lower": True} if "lower" in told else told


def counts_then(opened: Release) -> Joint | None:
    """The counts of the lock's night, noisy ones those of the claims; None where they are not kept. Raises Broken."""
    if opened.counts.private is not None:
        return opened.joint
    facts, lock = lock_facts(opened), opened.manifest.locked
    path = opened.root / FOLDER / f"{lock and lock.checksum}.json"
    if not path.exists():
        return None
    kept = parsed(LockedFile, path.name, content(path))
    blocks = (kept.secret, *kept.blocks)
    agree(path.name, [
        ("lock", lock and lock.checksum, kept.lock),
        ("columns and values", opened.alphabets, kept.blocks),
        ("columns of the secret", opened.secret.columns, kept.secret.columns),
        ("codes", False, outside(kept.cells, [len(one.values) for one in blocks])),
        ("records", facts.get("rows"), sum(row[-1] for row in kept.cells)),
    ])  # fmt: skip
    rows = np.array(kept.cells, np.int64).reshape(-1, len(blocks) + 1)
    return Joint(blocks, rows[:, :-1], rows[:, -1])


def _hash(value: object) -> str:
    """SHA-256 of its canonical JSON."""
    return hashlib.sha256(encode(value)).hexdigest()
