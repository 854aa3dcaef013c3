"""Claims about the private files: that they are this release's, the counts, the minimum of every value."""

from __future__ import annotations

from funnel.audit.kernel.files import holds_only
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import (
    cells,
    counts,
    distances,
    draws,
    drift,
    evidence,
    groups,
    known,
    manifest,
    robust,
    solution,
    terms,
)

POLICY, PLAN, LOCK, SEEN = "policy.yaml", "plan.json", "lock.yaml", "published"
_ALWAYS = {counts.NAME, draws.NAME, terms.NAME, solution.NAME, POLICY, PLAN, "report.json", "report.html"}


def belonging(opened: Opened) -> str:
    """The private files are the whole evidence of this very manifest, unchanged, and nothing else lies beside them."""
    one, stated = opened.evidence, opened.manifest
    locked = {LOCK, drift.NAME} if stated.locked else set()
    shown = {robust.NAME} if stated.notion == "rldp" else {known.NAME} if stated.parameters.knows is not None else set()
    shown |= {distances.NAME} if cells.NAME in stated.files else set()
    own = opened.entry(opened.release / manifest.NAME).sha256
    kept = [opened.entry(opened.folder / name).sha256 for name in (POLICY, terms.NAME, PLAN)]
    agree(evidence.NAME, [
        ("release", stated.release, one.release),
        ("hash of the manifest", own, one.manifest_sha256),
        ("files", _ALWAYS | locked | shown, set(one.files) - {solution.PROOF, groups.NAME}),
        ("policy, terms and plan", kept, [stated.policy_sha256, stated.terms_sha256, stated.plan_sha256]),
    ])  # fmt: skip
    seen = {SEEN} if (opened.folder / SEEN).exists() else set()
    holds_only(opened.folder, {evidence.NAME, *one.files, *seen})
    return opened.unchanged(opened.folder, one.files)


def counts_fit(opened: Opened) -> str:
    """The counts are of the protocol's inputs, for as many records as were released."""
    shape = " x ".join(map(str, opened.joint.shape))
    return f"{counted(opened.records.rows, 'record')}, {counted(len(opened.joint.cells), 'cell')} of {shape}"


def knowing(opened: Opened) -> str | Unchecked:
    """The records by what may be known of them are those of the counts, and tell what is released of plain columns."""
    if opened.manifest.parameters.knows is None:
        return Unchecked(NOT_CLAIMED + "the notion does not say what may be known")
    people, pairs, sets = opened.knowledge.uncovered()
    return f"{counted(sets, 'set')} of columns; {people} people have values that few share in one, in all {pairs} times"


def enough(opened: Opened) -> str | Unchecked:
    """Every public value has at least the promised number of records, and so has each secret value that is named.

    A lock's protocol says nothing of tonight's records, but of those it was made from; noisy counts are the lock's.
    """
    joint, minimum = opened.joint, opened.manifest.estimate.minimum
    reads = any(block.reads for block in opened.blocks)
    numbers = {axis: joint.of_axis(axis).tolist() for axis in range(1 - reads, len(joint.shape))}
    if opened.manifest.locked and not reads and opened.counts.private is None:
        if opened.counts.locked is None:
            return Unchecked("the counts that the lock was made from are not kept with this release")
        numbers = {axis: list(one) for axis, one in enumerate(opened.counts.locked, start=1)}
        agree(counts.NAME, [("values under the lock", joint.shape[1:], tuple(map(len, numbers.values())))])
    for axis, found in numbers.items():
        if min(found) < minimum:
            names = ", ".join(joint.alphabets[axis].columns)
            raise Broken(counts.NAME, f"a value of {names} has too few records", minimum, min(found))
    return f"at least {min(map(min, numbers.values()))} records each, {minimum} promised"
