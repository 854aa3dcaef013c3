"""Claims about the private files: that they are this release's, the policy's terms, the lock, and the minimum."""

from __future__ import annotations

from itertools import chain

from funnel.audit.kernel.files import content, entry, holds_only, sha256, unchanged
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, counted
from funnel.format import counts, draws, evidence, manifest, robust, solution, terms
from funnel.format.canonical import encode
from funnel.format.schema import as_json
from funnel.format.sealed import SealError, unsealed

POLICY, PLAN, LOCK, SEEN = "policy.yaml", "plan.json", "lock.yaml", "published"
_ALWAYS = {counts.NAME, draws.NAME, terms.NAME, solution.NAME, POLICY, PLAN, "report.json", "report.html"}
_SOMETIMES = {solution.PROOF}
_NEAR = 1e-9


def belonging(opened: Opened) -> str:
    """evidence.json is of this very manifest, lists every private file, and nothing else lies beside them."""
    one, stated = opened.evidence, opened.manifest
    own = entry(opened.release / manifest.NAME).sha256
    if (one.release, one.manifest_sha256) != (stated.release, own):
        raise Broken(evidence.NAME, "this is the evidence of another release", own, one.manifest_sha256)
    needed = (
        _ALWAYS | ({LOCK} if stated.locked else set()) | ({robust.NAME} if stated.notion == "rldp" else set())
    )
    if set(one.files) - _SOMETIMES != needed:
        raise Broken(evidence.NAME, "these are not the files of a release", sorted(needed), sorted(one.files))
    there = {SEEN} if (opened.folder / SEEN).exists() else set()
    holds_only(opened.folder, {evidence.NAME, *one.files, *there})
    return unchanged(opened.folder, one.files)


def asked(opened: Opened) -> str:
    """The manifest states what terms.json asks, and names the policy, the terms and the plan that are kept."""
    one, policy = opened.manifest, opened.terms
    kept = [sha256(content(opened.folder / name)) for name in (POLICY, terms.NAME, PLAN)]
    if (
        kept != [one.policy_sha256, one.terms_sha256, one.plan_sha256]
        or policy.policy_sha256 != one.policy_sha256
    ):
        raise Broken(
            manifest.NAME, "policy, terms and plan are not those that are kept", one.policy_sha256, kept[0]
        )
    blocks = tuple(tuple(column.name for column in block) for block in policy.public)
    merged = _together(opened, blocks)
    mechanism = policy.mechanism.get("kind")
    chosen = one.candidates is not None or (mechanism == "auto" and one.locked is not None)
    for what, wanted, found in (
        *((name, getattr(policy, name), getattr(one, name)) for name in
          ("name", "description", "sensitive", "notion", "epsilon", "format_of_data")),
        ("public", (tuple(chain.from_iterable(blocks)),) if merged else blocks, one.public),
        ("kind of draws", policy.draws, one.draws.kind),
        ("minimum", policy.estimate.minimum, one.estimate.minimum),
        ("kind of estimate", policy.estimate.kind, one.estimate.kind),
        ("epsilon of the estimate", policy.estimate.epsilon, opened.counts.private and opened.counts.private.epsilon),
        ("mechanism", mechanism, "auto" if chosen else one.mechanism),
        *_parameters(policy.parameters, one.parameters),
    ):  # fmt: skip
        if wanted != found:
            raise Broken(manifest.NAME, f"the policy asks for another {what}", wanted, found)
    split = one.split if policy.split == "optimal" or (merged and len(blocks) > 1) else policy.split
    if len(split) != len(one.split) or any(abs(a - b) > _NEAR for a, b in zip(split, one.split, strict=True)):
        raise Broken(manifest.NAME, "the policy asks for another split", split, one.split)
    return f"{policy.notion} at {policy.epsilon:g}, {counted(len(blocks), 'block')} of columns: as the policy says"


def _together(opened: Opened, blocks: tuple[tuple[str, ...], ...]) -> bool:
    """Whether all public columns are one alphabet: a robust notion is about whole records, SRLIP may be solved over
    them, and where the secret is released too, a record is one value (s, u).
    """
    one = opened.manifest
    told = set(one.sensitive) <= set(chain.from_iterable(blocks))
    return one.notion == "rldp" or one.parameters.solve == "joint" or told


def _parameters(asked: manifest.Parameters, found: manifest.Parameters) -> list[tuple[str, object, object]]:
    """What was asked for, and what is stated; a way to solve and a radius may be left open."""
    wanted = vars(asked) | {key: value for key, value in vars(found).items() if _open(key, asked)}
    return [(key, value, getattr(found, key)) for key, value in wanted.items()]


def _open(key: str, asked: manifest.Parameters) -> bool:
    if key == "solve":
        return asked.solve in (None, "auto")
    return key == "radius" and asked.radius is None and asked.confidence is not None


def pinned(opened: Opened) -> str | Unchecked:
    """lock.yaml is the lock that the manifest names, and fixes this protocol, weight by weight."""
    stated = opened.manifest.locked
    if stated is None:
        return Unchecked(NOT_CLAIMED + "the protocol was solved for this release")
    facts = lock_facts(opened)
    own = sha256(encode(as_json(opened.protocol.blocks)))
    if (facts.get("protocol"), facts.get("made")) != (own, stated.made):
        raise Broken(LOCK, "the lock fixed another protocol", own, facts.get("protocol"))
    return f"the lock of {stated.made}, SHA-256 {stated.checksum[:16]}…"


def lock_facts(opened: Opened) -> dict[str, object]:
    """What lock.yaml says, once its checksum is its own and the manifest's. Raises Broken."""
    stated = opened.manifest.locked
    try:
        facts, checksum = unsealed(content(opened.folder / LOCK).decode())
    except (SealError, UnicodeDecodeError) as error:
        raise Broken(LOCK, "this is no lock", "sealed text", error) from None
    if stated is None or checksum != stated.checksum:
        raise Broken(LOCK, "this is not the lock that the manifest names", stated, checksum)
    return facts


def counted_right(opened: Opened) -> str:
    """See `sound.joint` and `sound.records`."""
    shape = " x ".join(map(str, opened.joint.shape))
    return f"{counted(opened.records.rows, 'record')}, {counted(len(opened.joint.cells), 'cell')} of {shape}"


def enough(opened: Opened) -> str | Unchecked:
    """Every value of every block has the minimum of records; so has every secret value that a protocol names.

    A lock's protocol says nothing of tonight's records, but of those it was made from; noisy counts are the lock's.
    """
    joint, minimum = opened.joint, opened.manifest.estimate.minimum
    reads = any(block.reads for block in opened.blocks)
    numbers = {axis: joint.of_axis(axis).tolist() for axis in range(1 - reads, len(joint.shape))}
    when = ""
    if opened.manifest.locked and not reads and opened.counts.private is None:
        if opened.counts.locked is None:
            return Unchecked("the counts that the lock was made from are not kept with this release")
        numbers = dict(enumerate((list(one) for one in opened.counts.locked), start=1))
        when = " when the lock was made"
    for axis, found in numbers.items():
        if len(found) != joint.shape[axis] or min(found) < minimum:
            names = ", ".join(joint.alphabets[axis].columns)
            raise Broken(counts.NAME, f"a value of {names} has too few records{when}", minimum, min(found))
    fewest = min(min(found) for found in numbers.values())
    return f"at least {fewest} records each{when}, {minimum} promised"
