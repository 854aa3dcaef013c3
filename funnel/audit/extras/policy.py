"""terms.json, plan.json and lock.yaml against policy.yaml, which the kernel does not read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from funnel.audit.extras.base import Release
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import Broken, agree
from funnel.data.alphabet import OTHER
from funnel.errors import PolicyError
from funnel.format import groups
from funnel.format.drift import NAME as DRIFT
from funnel.format.drift import DriftFile
from funnel.format.known import GROUPED, OWN, RELEASED, TONIGHT
from funnel.format.known import NAME as KNOWN
from funnel.format.manifest import NAME as MANIFEST
from funnel.format.protocol import Sets
from funnel.format.released import NAME as TABLE
from funnel.format.sealed import SealError
from funnel.format.terms import NAME as TERMS
from funnel.format.terms import TermsFile
from funnel.lock.lock import parse_lock
from funnel.lock.pin import differing
from funnel.policy import Attribute, Policy
from funnel.policy.load import kept_policy
from funnel.policy.terms import terms_file

POLICY, PLAN, LOCK = "policy.yaml", "plan.json", "lock.yaml"
CLAIM = "policy"
TITLE = (
    "terms.json is what policy.yaml says, and there is a signature where that says so; of plan.json the steps count,"
    " solve (or measure the lock), draw and write do so, but for their SQL and types; known.json has each column's"
    " levels, under a lock that of tonight's values where drift.json tells of new ones, in the groups of files as"
    " groups.json keeps them; its lock has that policy’s terms"
)
PRIVATE = True
_SQL = {"step", "statements", "labelled", "cells", "codes", "statement", "types", "kind"}
"""What a step, or a column of it, may have beside what the policy decides."""


def check(opened: Release) -> str:
    """The policy, read again, has these terms, and so has its lock; plan and known.json are of it. Raises Broken."""
    policy, asked = has_its_terms(opened), opened.terms
    signs = policy.release.sign is not None
    agree(MANIFEST, [("whether it is signed, as the policy says", signs, opened.manifest.signed is not None)])
    _check_known(opened, policy)
    steps = _planned(opened, policy)
    if opened.manifest.locked is None:
        return f"{len(vars(asked))} terms, and {steps} steps of the plan{_named(opened)}"
    try:
        lock = parse_lock(opened.read(LOCK).decode())
    except (SealError, UnicodeDecodeError) as error:
        raise Broken(LOCK, "this is no lock", "sealed text", str(error)) from None
    if wrong := differing(policy, lock):
        raise Broken(LOCK, "the lock is of another policy", "the policy's terms", "; ".join(wrong))
    return f"{len(vars(asked))} terms, those of the lock too, and {steps} steps of the plan{_named(opened)}"


def has_its_terms(opened: Release) -> Policy:
    """The policy, whose terms are those of terms.json. Raises Broken."""
    policy = policy_of(opened)
    for name, expected in vars(terms_file(policy)).items():
        if (found := getattr(opened.terms, name)) != expected:
            raise Broken(TERMS, f"{name} is not what the policy says", expected, found)
    return policy


def policy_of(opened: Release) -> Policy:
    """The policy in policy.yaml, with the files that it names as groups.json has them. Raises Broken."""
    named = opened.read(groups.NAME) if groups.NAME in opened.evidence.files else None
    try:
        return kept_policy(opened.read(POLICY), opened.folder / POLICY, named)
    except (PolicyError, UnicodeDecodeError) as error:
        raise Broken(POLICY, "the policy cannot be read", "a policy", str(error).splitlines()[0]) from None


def _named(opened: Release) -> str:
    """The hashes of files that the policy names, by which whoever has them knows whether they are these."""
    if groups.NAME not in opened.evidence.files:
        return ""
    kept = parsed(groups.GroupsFile, groups.NAME, opened.read(groups.NAME)).files
    told = ", ".join(f"{name} {hashlib.sha256(text.encode()).hexdigest()}" for name, text in sorted(kept.items()))
    word = "that files of groups are the policy's own is the publisher’s word"
    return f"; {word}, but for the SHA-256 of their texts: {told}"


def _check_known(opened: Release, policy: Policy) -> None:
    """known.json has every level of a column that the policy alone decides. Raises Broken."""
    if not policy.privacy.asks_own:
        return
    told = {(one.column, one.level) for one in opened.known_file.levels}
    new = () if opened.manifest.locked is None else parsed(DriftFile, DRIFT, opened.read(DRIFT)).unseen
    pooled = {*chain.from_iterable(one.columns for one in new if one.rule == "other")}
    for block in policy.blocks:
        for one in block.attributes:
            asked = {OWN, *([RELEASED] if one.reduced or one.name in pooled else ())}
            asked |= {f"groups {height}" for height in range(2, len(one.groups or ()) + 1)}
            if one.reduced and one.name in pooled:
                asked.add(TONIGHT)
            if one.merges_rare and not block.cells and (one.is_measured or one.groups is not None):
                asked.add(GROUPED)
            if missing := sorted(asked - {level for column, level in told if column == one.name}):
                raise Broken(KNOWN, f"a level of {one.name} that may be known is not told", missing[0], "none")
            if one.groups:
                _check_groups(opened, one.name, one.groups)


def _check_groups(opened: Release, column: str, groups: Sequence[Mapping[str, str]]) -> None:
    """Values lie in the policy's groups, and these in those above, where enough records share them. Raises Broken."""
    levels = {one.level: place for place, one in enumerate(opened.known_file.levels) if one.column == column}
    named = next(one for one in (GROUPED, TONIGHT, RELEASED) if one in levels)
    ladder = [OWN, named, *(f"groups {height}" for height in range(2, len(groups) + 1))]
    texts = [[*_texts(opened, column, levels[level], shown=level == named)] for level in ladder]
    for group, above, own, names in zip(groups, ladder[1:], texts, texts[1:], strict=False):
        untold = Counter[str | None]()
        for told, found, number in zip(own, names, (row[-1] for row in opened.known_file.cells), strict=True):
            for wanted in (None if text is None else group.get(text, text) for text in told):
                if found and found[0] != wanted:
                    raise Broken(KNOWN, f"a value of {column} is in another group", wanted, found[0])
                untold[wanted] += 0 if found else number
        if max(untold.values(), default=0) >= opened.manifest.estimate.minimum:
            raise Broken(KNOWN, f"{column}, {above}: a group is not told", max(untold, key=untold.__getitem__), "none")


def _texts(opened: Release, column: str, place: int, *, shown: bool) -> Iterator[tuple[str | None, ...]]:
    """The text of every row of known.json at a level; () where too few records share it.

    Where that is `shown`, it is the text of counts.json: but for `other`, which may stand for several.
    """
    file, blocks = opened.known_file, enumerate(opened.alphabets, start=1)
    known = [(axis, [value[one.columns.index(column)] for value in one.values])
             for axis, one in blocks if shown and column in one.columns]  # fmt: skip
    values = file.levels[place].values
    for row in file.cells:
        code = row[1 + len(opened.alphabets) + place]
        labels = [texts[row[axis]] for axis, texts in known]
        yield tuple(text for text in labels if text != OTHER) or ((values[code - 1],) if code else ())


def _planned(opened: Release, policy: Policy) -> int:
    """How many steps of the plan say what the policy does; its SQL follows from the table, too. Raises Broken."""
    terms, locked = opened.terms, opened.manifest.locked
    notion, mechanism, estimate = policy.privacy, policy.mechanism, policy.estimate
    choice = mechanism.choice(notion.notion, secret_public=policy.secret_public)
    noise, parted = estimate.epsilon, policy.parted
    if choice is not None and (tried := opened.manifest.candidates) is not None:
        agree(MANIFEST, [("candidates", [*choice.ready], [one.mechanism for one in tried])])
    promise = {
        "notion": notion.notion, "epsilon": notion.epsilon, "mechanism": mechanism.kind, "beliefs": estimate.beliefs,
    }  # fmt: skip
    known: dict[str, dict[str, Any]] = {
        "count": {
            "secret": list(policy.sensitive),
            "blocks": [list(block.labels) for block in policy.blocks],
            "minimum": 1 if locked else estimate.minimum,
            "rare": [_merged(one, f"x{j}_{i}", locked=bool(locked)) for j, block in enumerate(policy.blocks)
                     if block.cells is None for i, one in enumerate(block.attributes) if one.merges_rare],
            "noise": None if locked else noise,
        },
        "solve": promise
        | {
            "shares": list(policy.shares()),
            "candidates": [] if choice is None else list(choice.ready),
            "search": notion.split == "optimal" and len(policy.blocks) > 1,
        },
        "measure the lock": promise | {"lock": locked.checksum if locked else None, "noise": noise},
        "draw": {
            "kind": terms.draws,
            "keys": [f"k{place}" for place in range(len(terms.identify))],
            "whose": terms.draws == "permanent"
            and not (locked or terms.wide or noise is not None or policy.engine == "spark"),
            "parted": parted.rows if parted and parted.column is None and terms.identify else None,
        },
        "write": {
            "format": terms.format_of_data,
            "columns": _released(terms),
            "sets": mechanism.form_of_sets(),
            "keys": list(terms.identify),
            "key_types": [key.type for key in opened.manifest.identify],
            "counted": terms.rows_of_data == "counts",
            "partition": None if parted is None else [parted.column, parted.rows],
        },
    }
    if opened.has_table and not any(isinstance(block, Sets) for block in opened.protocol.blocks):
        types = dict(zip(opened.released.columns, opened.released.types, strict=True))
        missing = sorted({*_released(terms)} - {*types})
        agree(TABLE, [("columns that the policy releases, and are not there", [], missing)])
        known["write"]["types"] = [types.get(name) for name in known["write"]["columns"]]
    try:
        plan = json.loads(opened.read(PLAN))
        pairs = [(plan["name"], terms.name), (plan["policy_sha256"], terms.policy_sha256), *_steps(plan, known)]
        steps = [step["step"] for step in plan["steps"] if step["step"] in known]
    except (ValueError, KeyError, TypeError) as error:
        raise Broken(PLAN, "this is no plan", "a plan", f"{type(error).__name__}: {error}") from None
    for found, expected in pairs:
        if found != expected:
            raise Broken(PLAN, "the plan is one for something else", expected, found)
    needed = sorted({*known} - {"solve" if locked else "measure the lock"})
    if sorted(steps) != needed:
        raise Broken(PLAN, "the plan has other steps", needed, sorted(steps))
    return len(steps)


def _merged(one: Attribute, key: str, *, locked: bool) -> dict[str, str | None]:
    """What the plan has to say of a column whose rare values are merged, beside SQL and type."""
    known = f"lock_{key}" if locked else None
    return {"column": one.name, "rule": one.rare, "name": f"rare_{key}", "known": known}


def _released(terms: TermsFile) -> list[str]:
    """The columns of the table: those of the blocks, and those inside wide blocks."""
    inside = {one.name: [column.name for column in one.columns] for one in terms.wide}
    names = [one.name for block in terms.public for one in block]
    return [column for name in names for column in inside.get(name, [name])]


def _steps(plan: Any, known: dict[str, dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    """What the plan's steps say, and what they have to: a plan leaves out what is none, empty or false."""
    for step in plan["steps"]:
        asked = known.get(step["step"])
        if "rare" in step:
            step |= {"rare": [{key: one[key] for key in one if key not in _SQL} for one in step["rare"]]}
        for key, expected in (asked or {}).items():
            yield step.get(key) or None, expected or None
        yield from (({key}, set()) for key in step if asked is not None and key not in {*asked, *_SQL})
