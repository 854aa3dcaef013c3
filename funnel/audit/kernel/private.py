"""Claims about the private files: that they are this release's, the policy's terms, the lock, counts, the minimum."""

from __future__ import annotations

from itertools import chain

from funnel.audit.kernel.files import holds_only, sha256
from funnel.audit.kernel.opened import Once, Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import counts, draws, drift, evidence, manifest, robust, solution, terms
from funnel.format.canonical import encode
from funnel.format.schema import as_json
from funnel.format.sealed import SealError, unsealed

POLICY, PLAN, LOCK, SEEN = "policy.yaml", "plan.json", "lock.yaml", "published"
_ALWAYS = {counts.NAME, draws.NAME, terms.NAME, solution.NAME, POLICY, PLAN, "report.json", "report.html"}
_NEAR = 1e-9


def belonging(opened: Opened) -> str:
    """The private files are the whole evidence of this very manifest, unchanged, and nothing else lies beside them."""
    one, stated = opened.evidence, opened.manifest
    locked = {LOCK, drift.NAME} if stated.locked else set()
    shown = {robust.NAME} if stated.notion == "rldp" else set()
    own = opened.entry(opened.release / manifest.NAME).sha256
    facts = [("release", stated.release, one.release), ("hash of the manifest", own, one.manifest_sha256)]
    agree(evidence.NAME, [*facts, ("files", _ALWAYS | locked | shown, set(one.files) - {solution.PROOF})])
    seen = {SEEN} if (opened.folder / SEEN).exists() else set()
    holds_only(opened.folder, {evidence.NAME, *one.files, *seen})
    return opened.unchanged(opened.folder, one.files)


def asked(opened: Opened) -> str:
    """The manifest states what the policy's terms ask for, and names the policy, terms and plan that are kept."""
    one, policy = opened.manifest, opened.terms
    kept = [opened.entry(opened.folder / name).sha256 for name in (POLICY, POLICY, terms.NAME, PLAN)]
    named = [policy.policy_sha256, one.policy_sha256, one.terms_sha256, one.plan_sha256]
    blocks = tuple(tuple(column.name for column in block) for block in policy.public)
    # A robust notion is about whole records, SRLIP may be solved over them, and where the secret is released too, a
    # record is one value (s, u): then all public columns are one alphabet.
    told = set(one.sensitive) <= set(chain.from_iterable(blocks))
    merged = one.notion == "rldp" or one.parameters.solve == "joint" or told
    mechanism, noise = policy.mechanism.get("kind"), opened.counts.private
    chosen = one.candidates is not None or (mechanism == "auto" and one.locked is not None)
    free = _open(policy.parameters)
    same = ("name", "description", "sensitive", "notion", "epsilon", "format_of_data")
    agree(manifest.NAME, [
        ("policy, terms and plan", kept, named),
        *((key, getattr(policy, key), getattr(one, key)) for key in same),
        *((key, value, vars(one.parameters)[key]) for key, value in vars(policy.parameters).items() if key not in free),
        ("public", (tuple(chain.from_iterable(blocks)),) if merged else blocks, one.public),
        ("draws", policy.draws, one.draws.kind),
        ("estimate", (policy.estimate.minimum, policy.estimate.kind), (one.estimate.minimum, one.estimate.kind)),
        ("epsilon of the estimate", policy.estimate.epsilon, noise and noise.epsilon),
        ("mechanism", mechanism, "auto" if chosen else one.mechanism),
    ])  # fmt: skip
    split = one.split if policy.split == "optimal" or (merged and len(blocks) > 1) else policy.split
    if len(split) != len(one.split) or any(abs(float(a) - b) > _NEAR for a, b in zip(split, one.split, strict=True)):
        raise Broken(manifest.NAME, "the policy asks for another split", split, one.split)
    return f"{policy.notion} at {policy.epsilon:g}, {counted(len(blocks), 'block')} of columns: as the policy says"


def _open(asked: manifest.Parameters) -> set[str]:
    """What a policy leaves open: the way to solve, unless it names one, and a radius that follows from a confidence."""
    solve = {"solve"} if asked.solve in (None, "auto") else set()
    return solve | ({"radius"} if asked.radius is None and asked.confidence is not None else set())


def pinned(opened: Opened) -> str | Unchecked:
    """The protocol is, weight by weight, the one that the lock fixed."""
    stated = opened.manifest.locked
    if stated is None:
        return Unchecked(NOT_CLAIMED + "the protocol was solved for this release")
    facts, own = lock_facts(opened), sha256(encode(as_json(opened.protocol.blocks)))
    agree(LOCK, [("protocol", own, facts.get("protocol")), ("made", stated.made, facts.get("made"))])
    return f"the lock of {stated.made}, SHA-256 {stated.checksum[:16]}…"


@Once
def lock_facts(opened: Opened) -> dict[str, object]:
    """What lock.yaml says, once its checksum is its own and the manifest's. Raises Broken."""
    try:
        facts, checksum = unsealed(opened.content(opened.folder / LOCK).decode())
    except (SealError, UnicodeDecodeError) as error:
        raise Broken(LOCK, "this is no lock", "sealed text", error) from None
    stated = opened.manifest.locked
    agree(LOCK, [("checksum", stated and stated.checksum, checksum)])
    return facts


def counts_fit(opened: Opened) -> str:
    """The counts are of the protocol's inputs, for as many records as were released."""
    shape = " x ".join(map(str, opened.joint.shape))
    return f"{counted(opened.records.rows, 'record')}, {counted(len(opened.joint.cells), 'cell')} of {shape}"


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
