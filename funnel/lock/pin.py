"""Between a policy and its lock: what is pinned, whether the two belong together, and what it leaks at other counts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from funnel.cells.cells import Cells
from funnel.data import Alphabet, Joint, Label
from funnel.data.alphabet import OTHER
from funnel.data.channel import Channel
from funnel.data.joint import IntArray
from funnel.draw.histogram import Estimated
from funnel.draw.keys import Key
from funnel.engine.counting import check_minimum
from funnel.errors import InternalError, LockError, SourceError
from funnel.format.drift import DriftFile
from funnel.format.lock import LOCKED
from funnel.format.manifest import decimals
from funnel.lock.drift import drift
from funnel.lock.lock import Lock, damaged_lock, read_lock
from funnel.lock.pinned import SPENDS, counts_hash, kept_counts
from funnel.lock.relabel import Relabelled, Rule, relabel
from funnel.measure.exact import rational
from funnel.measure.figures import round_up
from funnel.mechanisms import MECHANISMS, Mechanism, Solved
from funnel.mechanisms.product import Protection
from funnel.notions import Arranged, Notion
from funnel.policy import Policy
from funnel.policy.terms import beside, terms
from funnel.release.measured import Measured, stated_leakage, stated_utility
from funnel.text import argument, number, portion
from funnel.version import __version__

KEEPING = ("privacy.epsilon", "privacy.lower", "budget")
"""The terms that may change while a protocol stays: how much may be told, and not what is drawn for whom."""
_AGAIN = "Make it anew with `funnel lock --force`, which shows what changes for privacy; review that, and commit it."
_CELLS = (
    " Where something was released by the cells of this one, the new one is refused if those come out otherwise, as "
    "after any change of their columns: then let the last release stand."
)


def lock_path(policy: Policy) -> Path:
    """Where a policy's lock lies: census.lock.yaml beside census.yaml."""
    file = Path(policy.file)
    return file.with_name(file.stem + LOCKED)


def with_room(policy: Policy, room: float) -> Policy:
    """The policy at an epsilon that leaves a part of its own, 0 <= room < 1, to drift; perfect privacy has none."""
    notion = policy.privacy
    if not room or notion.exact_zero:
        return policy
    return policy.model_copy(update={"privacy": notion.at(float(rational(notion.epsilon) * (1 - rational(room))))})


def new_lock(
    policy: Policy,
    protection: Protection,
    measured: Measured,
    estimated: Estimated | None,
    key: Key | None,
    room: float = 0.0,
    cells: Sequence[Cells] = (),
) -> Lock:
    """The lock of what was solved, with this much room; it has no checksum before it is a text. Raises LockError.

    `cells` are those of the wide blocks.
    """
    joint, minimum = protection.joint, policy.estimate.minimum
    _check_others(policy, joint, cells)
    records = np.bincount(joint.cells[:, 0], weights=joint.counts)
    rows = joint.rows if estimated is None else estimated.rows
    digits = decimals(rows, minimum)
    named = tuple(s for s, count in zip(joint.secret.values, records, strict=True) if count >= minimum)
    return Lock(
        policy=policy.name,
        made=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        funnel=__version__,
        terms=terms(policy),
        parameters=protection.notion.parameters(),
        mechanism=protection.mechanism.kind,
        room=room,
        shares=protection.shares,
        budgets=protection.budgets,
        rows=rows,
        leakage=stated_leakage(measured, protection.notion, digits),
        utility={key: value for key, value in asdict(stated_utility(measured, digits)).items() if key != "upper_bound"},
        secret=named,
        secrets=len(joint.secret),
        counts=None if key is None or estimated is not None else counts_hash(joint, key),
        protocols=protection.protocols,
        estimated=None if estimated is None else estimated.name,
        noisy=None if estimated is None else estimated.digest(joint),
        cells=tuple(cells),
    )  # fmt: skip


def lock_of(policy: Policy) -> Lock:
    """The lock beside a policy, once it is found to be of this policy. Raises LockError."""
    path = lock_path(policy)
    lock = read_lock(path)
    wrong = differing(policy, lock)
    if wrong:
        same = lock.noisy is None and {*KEEPING} >= {*changed_terms(policy, lock)}
        stays = same and not unmeasured_bound(policy, lock)
        again = f"`funnel lock --keep {argument(policy.file)}`"
        keep = f"{again} keeps its protocol, where what it tells is within what the policy says now."
        raise LockError(
            "lock-policy",
            "the lock is not of this policy as it stands: " + "; ".join(wrong),
            where=os.fspath(path),
            advice=f"Undo the change, or: {keep if stays else _again(lock)}",
        )
    return lock


def _again(lock: Lock) -> str:
    """The advice to make another lock, and of wide blocks where that is refused."""
    return _AGAIN + _CELLS if lock.cells else _AGAIN


def differing(policy: Policy, lock: Lock) -> list[str]:
    """The terms that policy and lock do not share, in words; none where the lock is of this policy."""
    changed = changed_terms(policy, lock).items()
    said = ((name, *("not set" if one is None else f"{one}" for one in values)) for name, values in changed)
    return [f"{name} is {asked}, the lock has {pinned}" for name, asked, pinned in said]


def unmeasured_bound(policy: Policy, lock: Lock) -> bool:
    """Whether the policy asks for a smaller bound than a lock's of all tables in the same steps of beliefs.

    That is the one that was solved for: of a smaller one nothing is measured but tonight's counts. LDP of x is of no
    counts at all.
    """
    now, then = ([told.get(key) or math.inf for key in ("privacy.epsilon", "privacy.lower")]
                 for told in (terms(policy), lock.terms))  # fmt: skip
    counted = policy.estimate.beliefs is not None and policy.privacy.notion != "ldp-x"
    return counted and any(less < was for less, was in zip(now, then, strict=True))


def changed_terms(policy: Policy, lock: Lock) -> dict[str, tuple[Any, Any]]:
    """The terms that policy and lock do not share, as each has them, None where it has no word of it."""
    asked, pinned, other = terms(policy), dict(lock.terms), beside(policy)
    both = {name: (asked.get(name), pinned.get(name)) for name in [*asked, *pinned] if name not in other}
    return {name: (one, other) for name, (one, other) in both.items() if one != other}


@dataclass(frozen=True, eq=False)
class Pinned:
    """The lock's protocol over the current records; `reference` are the counts of the lock, None where not kept.

    Over a private estimate the protection is over noisy counts, and nobody but the private folder is told of the
    drift: it is measured at the current counts themselves, and has no noise.
    """

    lock: Lock
    protection: Protection
    current: Relabelled
    reference: Joint | None
    drift: DriftFile

    @property
    def records(self) -> list[IntArray] | None:
        """How many records each value of each block had when the protocol was made; None where nobody knows."""
        known = self.reference if self.lock.fixed is None else None
        return None if known is None else [known.table(j).sum(axis=0) for j in range(len(known.blocks))]


def pin(policy: Policy, lock: Lock, counted: Joint) -> Pinned:
    """Measure the lock's protocol at the current counts, over the policy's blocks, in exact arithmetic.

    Raises SourceError for values that no rule provides for, LockError where the bound does not hold there.
    """
    current = relabelled(policy, lock, counted)
    if any(one.reads_secret for one in lock.protocols):
        _check_readers(policy, lock, current.joint)
    arranged = _notion(policy, lock).arrange(current.joint, 1)
    if arranged.joint is not current.joint:
        raise InternalError("the lock's blocks are not those that the notion asks for")
    protection = _protection(policy, lock, arranged)
    reference = kept_counts(policy.private, lock)
    notion = protection.notion
    order = notion.parameters().get("order")
    moved = drift(lock, reference, current, notion.measure, protection.leakage.nats, order)
    if not protection.holds:
        raise _leaks(policy, lock, protection, moved)
    return Pinned(lock, protection, current, reference, moved)


def relabelled(policy: Policy, lock: Lock, counted: Joint) -> Relabelled:
    """Counts in the lock's values, others as the policy says. Raises SourceError where no rule provides for one."""
    return relabel(counted, [one.inputs for one in lock.protocols], rules_of(policy))


def rules_of(policy: Policy) -> dict[str, Rule]:
    """What becomes of values of each column of an alphabet that a lock does not know."""
    rules = {one.name: one.unseen for block in policy.blocks if block.cells is None for one in block.attributes}
    # Of a wide block only rows that its columns leave out are in no cell: any other unknown value was refused before.
    return rules | {block.name: "drop" for block in policy.wide}


def pin_estimate(policy: Policy, lock: Lock, estimated: Estimated) -> Pinned:
    """The lock's protocol at the noisy counts that it was solved on: every claim follows from them, on any night.

    How far the current counts themselves are from them is measured for the private folder. No run stops for it: whether
    one stopped would be a fact about those counts, each night, without the noise that is there to hide single records.
    Raises LockError where the noisy counts are not those of the lock, or its protocol does not keep the bound there.
    """
    arranged = _notion(policy, lock).arrange(estimated.joint, 1)
    inputs = tuple(one.inputs for one in lock.protocols)
    if arranged.joint.blocks != inputs or estimated.digest(arranged.joint) != lock.noisy:
        raise _foreign(policy, "the noisy counts in the private folder are not those that it was made from")
    protection = _protection(policy, lock, arranged)
    if not protection.holds:
        raise _foreign(
            policy, "its protocol does not keep the bound at the noisy counts that it was made from"
        )
    current = Relabelled.known(estimated.truth(arranged.joint))
    channel, notion = Channel(current.joint, lock.protocols), protection.notion
    measure, now = notion.leakage_at(channel)
    moved = drift(lock, arranged.joint, current, measure, now.nats, notion.parameters().get("order"))
    return Pinned(lock, protection, current, arranged.joint, moved)


def _protection(policy: Policy, lock: Lock, arranged: Arranged) -> Protection:
    """The lock's protocols over a joint distribution in its blocks."""
    solved = tuple(Solved(one, None, f"pinned by the lock of {lock.made}") for one in lock.protocols)
    return Protection(arranged, _mechanism(policy, lock), solved, lock.budgets, lock.shares)


def _foreign(policy: Policy, why: str) -> LockError:
    return damaged_lock(
        lock_path(policy), why, f"Restore the lock and the private folder from one backup. {SPENDS}"
    )


def kept_values(policy: Policy, lock: Lock | None) -> dict[str, Alphabet]:
    """For each column that by the policy keeps its more frequent values, those of the lock; by name in the plan.

    Among rare values a missing one may be frequent, too; `top` is asked of the others only.
    """
    if lock is None:
        return {}
    parts: dict[str, set[str | None]] = {}
    for known in (one.inputs for one in lock.protocols):
        for column, values in zip(known.columns, zip(*known.values, strict=True), strict=True):
            parts[column] = set(values) - {OTHER}
    parts |= {column.name: set(column.values) - {OTHER} for one in lock.cells for column in one.columns}
    return {
        f"lock_{'x' if block.cells is None else 'w'}{j}_{i}": Alphabet.of(
            [one.name], [(value,) for value in parts[one.name] - ({None} if one.top is not None else set())]
        )
        for j, block in enumerate(policy.blocks)
        for i, one in enumerate(block.attributes)
        if one.follows_table
    }


def _notion(policy: Policy, lock: Lock) -> Notion:
    """The policy's notion, solved the way the lock was; what follows from the counts follows from the current ones."""
    return policy.privacy.resettled(lock.parameters)


def _mechanism(policy: Policy, lock: Lock) -> Mechanism:
    """The one named, or the one that `auto` chose."""
    asked = policy.mechanism
    return asked if asked.kind == lock.mechanism else MECHANISMS[lock.mechanism](kind=lock.mechanism)


def _check_readers(policy: Policy, lock: Lock, joint: Joint) -> None:
    """A protocol that reads the secret is about those values of it, and each must stay common: it names them."""
    known: set[Label] = {value for one in lock.protocols if one.secret for value in one.secret.values}
    if set(joint.secret.values) != known:
        raise SourceError(
            "unseen-value",
            f"the values of {' + '.join(joint.secret.columns)} are not those of the lock, and this mechanism draws "
            "by them",
            advice=_again(lock),
        )
    try:
        check_minimum(joint, policy.estimate.minimum, secret_published=True)
    except SourceError as error:
        advice = f"{error.advice} A policy that says otherwise needs another lock, too. {_again(lock)}"
        raise SourceError(error.code, error.message, values=error.values, advice=advice) from None


def _check_others(policy: Policy, joint: Joint, cells: Sequence[Cells]) -> None:
    """`unseen: other` needs a value of that name to put such rows under."""
    known: dict[str, set[str | None]] = {
        column: {value[place] for value in block.values}
        for block in joint.blocks
        for place, column in enumerate(block.columns)
    }
    known |= {column.name: set(column.values) for one in cells for column in one.columns}
    for block in policy.blocks:
        for one in block.attributes:
            if one.unseen == "other" and OTHER not in known[one.name]:
                raise LockError(
                    "wrong-value",
                    f"{one.name} has `unseen: other`, but no value `{OTHER}` tonight to put such rows under",
                    where=policy.file,
                    advice="Name a group so (`groups`), or, but for a private estimate, use `top` with fewer values "
                    "than there are, which makes one; or write `unseen: drop`.",
                )


def _leaks(policy: Policy, lock: Lock, found: Protection, moved: DriftFile) -> LockError:
    notion, needed = found.notion, found.notion.needed(found.channel, found.leakage.nats)
    said = [
        f"leaks {_nats(nats)} ({moved.measure}) at tonight's counts, above the {number(notion.epsilon)} that "
        f"{notion.notion} allows"
        if key == "epsilon"
        else f"moves a belief by {_nats(nats)} there, above the {number(getattr(notion, key))} of the policy's `{key}`"
        for key, nats in needed.items()
    ]
    share = "of the distribution (values as drawn for) has moved since"
    far = "" if moved.distance is None else f"; {portion(moved.distance)} {share}"
    return LockError(
        "lock-leaks",
        f"the pinned protocol {', and '.join(said)}{far}",
        where=os.fspath(lock_path(policy)),
        advice="\n  ".join([
            "Nothing was published, and the last release stands.", *_exits(policy, lock, moved, needed)
        ]),
    )


def _nats(figure: float) -> str:
    return f"{number(round_up(figure, 6))} nats" if math.isfinite(figure) else "without bound"


def _exits(policy: Policy, lock: Lock, moved: DriftFile, needed: Mapping[str, float]) -> list[str]:
    """What a person may do about drift, in order: from what changes nobody's answers to what changes most.

    Of a bound of nothing no part is left to drift, and no other one may stand in the policy; fresh draws have no key.
    """
    file, then, now = argument(policy.file), lock.leakage.get(moved.measure), moved.leakage_now
    found, fixed = [], policy.privacy.exact_zero
    if not fixed and all(map(math.isfinite, needed.values())):
        allowed = " and ".join(f"`{key}: {number(round_up(nats, 4))}`" for key, nats in needed.items())
        found.append(
            f"Keep the protocol and tell readers: {allowed} or more in the policy, then "
            f"`funnel lock --keep {file}`; the chances of answers stay as they are."
        )
    if lock.cells:
        found.append(_again(lock))
        return [f"({place}) {one}" for place, one in enumerate(found, 1)]
    again = 0.2 if now is None or not then else math.ceil((1 - then / now) * 100) / 100
    room = min(max(again, lock.room, 0.01), 0.9)
    anew = (
        f"A new lock with the room of the old one: `funnel lock --room {lock.room:g} {file}` shows its cost, promise "
        "by promise; `--force` makes it."
    )
    widen = (
        f"Widen: `funnel lock --room {room:g} {file}` shows what another protocol changes and costs that leaves "
        "this part of epsilon to drift; `--force` makes it."
    )
    rotate = (
        "Rotate after that, where it shows no finite bound of old and new protocol under one key: "
        f"`funnel key rotate --locked {file}` shows the cost of a new key under the lock that is then there."
    )
    first, then_ = ([widen], [anew]) if room > lock.room and not fixed else ([anew], [])
    found += [
        *first,
        *([rotate] if policy.draws.kind == "permanent" else []),
        *then_,
        "Where each of these would end a promise or pass the budget: let the last release stand, or write "
        f"`accept: unbounded` into the policy{' in place of `budget`' * (policy.budget is not None)} with a new lock; "
        "the page says so before all else.",
    ]
    return [f"({place}) {one}" for place, one in enumerate(found, 1)]
