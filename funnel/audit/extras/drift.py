"""drift.json: what it says of the lock, of the counts of its night and of tonight's, and how far these are apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from fractions import Fraction

from funnel.audit.extras.base import Release
from funnel.audit.extras.pinned import counts_then, lock_facts
from funnel.audit.extras.together import certified
from funnel.audit.extras.uncertainty import needed
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import NOTIONS, ldp
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.records import Joint
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree
from funnel.data.alphabet import OTHER
from funnel.format.counts import NAME as COUNTS
from funnel.format.drift import NAME, DriftFile
from funnel.format.fields import Alphabet, Label
from funnel.format.manifest import decimals

CLAIM = "drift"
TITLE = (
    "drift.json says of the lock, of the counts kept of its night and of this release’s records what these say or, of"
    " leakage then under rldp, more, and new values become what the policy says; which values and keys are new, how"
    " many records have those values, and over a private estimate how many there were then, is the publisher’s word"
)
PRIVATE = True
ORDER = 2.0
"""Of the divergence, where the notion names none."""
_NEAR = 1e-9
"""How far figures in floating point may lie from one another."""
_STEP = Fraction(1, 10**9)
Table = Counter[tuple[Label, ...]]
"""Records by the values of S and of every block."""


def check(opened: Release) -> str | Unchecked:
    """Every figure that other files tell; how far the table has moved where the counts of the lock are kept.

    Raises Broken.
    """
    one, now = opened.manifest, opened.by_label()
    if one.locked is None:
        return Unchecked(NOT_CLAIMED + "the protocol was solved for this release")
    found, facts = parsed(DriftFile, NAME, opened.read(NAME)), lock_facts(opened)
    noisy = opened.counts.private is not None
    # What holds for a set of distributions is compared with one of them.
    measure = "ldp" if noisy and one.notion == "rldp" else NOTIONS[one.notion].measure
    seen = [{*values} for values in zip(*now, strict=True)][1:]
    empty = [v for block, some in zip(opened.alphabets, seen, strict=True) for v in block.values if v not in some]
    agree(NAME, [
        ("lock", one.locked.checksum, found.lock),
        ("time of the lock", facts.get("made"), found.made),
        ("records of the lock", facts.get("rows"), found.rows_then),
        ("leakage of the lock", _named(facts, "leakage", measure), found.leakage_then),
        ("radius of the lock", _named(facts, "parameters", "radius"), found.radius),
        ("measure and order", (measure, one.parameters.order or ORDER), (found.measure, found.order)),
        ("noise", noisy, found.noisy),
        ("records", opened.records.rows, found.rows_now),
        ("values without records", empty, [*found.gone]),
        ("keys, where rows have none", True, bool(opened.terms.identify) or found.new_keys is found.gone_keys is None),
    ])  # fmt: skip
    _check_leakage(opened, found)
    _check_unseen(opened, found)
    then = counts_then(opened)
    if not found.known:
        told = (found.distance, found.divergence, found.inside, found.new_secrets, found.gone_secrets)
        agree(NAME, [
            ("what nobody knows of the counts of the lock", (None,) * 5, told),
            ("records of each value when the lock was made", None, opened.counts.locked),
        ])  # fmt: skip
        # An honest run says so whose counts were put back since, and one that would hide how far they moved.
        here = "" if then is None else ", and they are here"
        return Unchecked(f"it says that the counts of the lock’s night were not kept{here}")
    _check_told(opened, found)
    if then is None:
        what = "how far apart, and leakage then, rest on the counts of the lock’s night"
        return Unchecked(f"{what}, which are not kept any more")
    _check_radius(opened, found, then)
    _check_moved(opened, found, then, now)
    if why := _check_leakage_then(opened, found, then):
        return Unchecked(f"leakage then: {why}")
    return f"{found.rows_then} records then, {found.rows_now} now; how far apart, and leakage then, worked out again"


def _named(facts: dict[str, object], section: str, name: str) -> object:
    part = facts.get(section)
    return part.get(name) if isinstance(part, dict) else None


def _check_leakage(opened: Release, found: DriftFile) -> None:
    """The leakage now is that at the records' own counts; a robust one rounds up to that stated. Raises Broken."""
    one, stated = opened.manifest, found.leakage_now
    noisy = opened.counts.private is not None
    if one.notion == "rldp" and not noisy:
        most = one.leakage["rldp"]
        held = stated is not None and most is not None and 0 <= rational(most) - rational(stated) < one.step
        told = f"{most}, or what rounds up to it"
    else:
        measured = ldp if one.notion == "rldp" else NOTIONS[one.notion].leakage
        leakage = measured(replace(opened.channel, counts=opened.records.dense()) if noisy else opened.channel)
        told = leakage.text
        held = leakage.is_stated_as(None if stated is None else rational(stated) + _STEP / 2, _STEP)
    if not held:
        raise Broken(NAME, "leakage_now is not that at the counts of the records", told, stated)


def _check_unseen(opened: Release, found: DriftFile) -> None:
    """Values unknown to the lock become what the policy has their columns say; who is left out is. Raises Broken."""
    rules = {one.name: one.unseen for block in opened.terms.public for one in block}
    for block in opened.terms.wide:  # a row that one of its columns leaves out is in no cell
        rules[block.name] = "drop" if any(one.unseen == "drop" for one in block.columns) else "error"
    known, dropped = {one.columns: {*one.values} for one in opened.alphabets}, Counter[tuple[str, ...]]()
    told = [(one.columns, one.value) for one in found.unseen]
    agree(NAME, [
        ("new values in columns of a block, once each", len({*told}),
         sum(len(value) == len(columns) and value not in known.get(columns, {value}) for columns, value in told)),
    ])  # fmt: skip
    for one in found.unseen:
        rule = _became(one.value, known[one.columns], [rules[name] for name in one.columns])
        agree(NAME, [("what became of a new value", rule, one.rule)])
        dropped[one.columns] += one.rows if rule == "drop" else 0
    if opened.staged:
        return  # its entry is not written yet
    present = opened.entries[-1].present
    left_out = 0 if present is None else present.unseen
    if not max(dropped.values(), default=0) <= left_out <= sum(dropped.values()):
        what = "records with new values that are left out are not as many as its entry says"
        raise Broken(NAME, what, left_out, sum(dropped.values()))


def _became(value: Label, known: Set[Label], rules: Sequence[str]) -> str:
    """What rules of its columns make of a value that a lock does not know; where that is an error nothing is drawn."""
    parts = [{*part} for part in zip(*known, strict=True)]
    new = {place for place, part in enumerate(value) if part not in parts[place]} or {*range(len(value))}
    asked = {rules[place] for place in new}
    if not asked & {"error", "drop"}:
        pooled = tuple(OTHER if place in new else part for place, part in enumerate(value))
        return "other" if pooled in known else "error"
    return "error" if "error" in asked else "drop"


def _check_leakage_then(opened: Release, found: DriftFile, kept: Joint) -> str | None:
    """The lock's leakage is that of its protocol at the counts of its night; else why nobody knows. Raises Broken."""
    one, noisy = opened.manifest, opened.counts.private is not None
    if one.parameters.knows is not None:
        return "it was measured given values that others may know, which are not kept"
    if kept.alphabets[0] != opened.secret and any(block.weights.shape[1] > 1 for block in opened.blocks):
        return "draws look at the secret, which had other values then"
    asked = replace(one.parameters, radius=found.radius)  # a confidence asks for another one of each night's records
    channel = replace(opened.channel, counts=kept.dense(), possible=kept.possible(), parameters=asked, certificate=None)
    measured = certified if one.notion == "rldp" else NOTIONS[one.notion].leakage
    leakage = (ldp if noisy and one.notion == "rldp" else measured)(channel)
    step = Fraction(1, 10 ** decimals(found.rows_then, one.estimate.minimum))
    if not leakage.is_stated_as(None if found.leakage_then is None else rational(found.leakage_then), step):
        what = "leakage_then is not that at the counts of the lock, rounded up"
        raise Broken(NAME, what, leakage.text, found.leakage_then)
    return None


def _check_told(opened: Release, found: DriftFile) -> None:
    """Figures fit each other and tonight's records, whether or not the counts of the lock are kept. Raises Broken."""
    own = {*opened.secret.values}
    inside = None if found.radius is None else found.divergence is not None and found.divergence <= found.radius
    agree(NAME, [
        ("whether it lies in the set of the lock", inside, found.inside),
        ("new secrets that nobody has, and gone ones that somebody has", (set(), set()),
         ({*(found.new_secrets or ())} - own, {*(found.gone_secrets or ())} & own)),
    ])  # fmt: skip


def _check_radius(opened: Release, found: DriftFile, kept: Joint) -> None:
    """Where it follows from a confidence, the lock's set is as large as its own records ask for. Raises Broken."""
    asked = opened.manifest.parameters
    if found.radius is None or asked.confidence is None or found.noisy:
        return
    _, least = needed(opened, kept, asked.confidence, found.order)
    if abs(found.radius - least) > _NEAR:
        raise Broken(NAME, "the radius is not what the lock’s records ask for", least, found.radius)


def _check_moved(opened: Release, found: DriftFile, kept: Joint, now: Table) -> None:
    """How far from the counts of the lock those of the records are. Raises Broken."""
    then, secrets, own = opened.cells_of(kept), {*kept.alphabets[0].values}, {*opened.secret.values}
    if opened.counts.locked is not None:
        sums = tuple(tuple(_records(then, place, block)) for place, block in enumerate(opened.alphabets, start=1))
        agree(COUNTS, [("records of each value when the lock was made", sums, opened.counts.locked)])
    p, q = ([one[cell] / one.total() for cell in {**then, **now}] for one in (then, now))
    distance, divergence = sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2, _renyi(p, q, found.order)
    agree(NAME, [
        ("new and gone secrets", (own - secrets, secrets - own),
         tuple(None if one is None else {*one} for one in (found.new_secrets, found.gone_secrets))),
    ])  # fmt: skip
    for what, expected, stated in (("distance", distance, found.distance),
                                   ("divergence", divergence, found.divergence)):  # fmt: skip
        alike = expected is not None and stated is not None and abs(expected - stated) <= _NEAR * (1 + expected)
        if not alike and (expected, stated) != (None, None):
            raise Broken(NAME, f"{what} is not that from the counts of the lock", expected, stated)


def _records(table: Table, place: int, block: Alphabet) -> Iterator[int]:
    """How many records each value of a block has."""
    found = Counter[Label]()
    for cell, number in table.items():
        found[cell[place]] += number
    yield from (found[value] for value in block.values)


def _renyi(p: Sequence[float], q: Sequence[float], order: float) -> float | None:
    """D_order(p||q) in nats ([RLDP] section 3), the relative entropy at order 1; None where it is infinite."""
    both = [(a, math.log(a), math.log(b)) for a, b in zip(p, q, strict=True) if a and b]
    if not both or (order >= 1 and any(a and not b for a, b in zip(p, q, strict=True))):
        return None
    if order == 1:
        return max(math.fsum(a * (log_a - log_b) for a, log_a, log_b in both), 0.0)
    powers = [order * log_a + (1 - order) * log_b for _, log_a, log_b in both]
    most = max(powers)
    return max((most + math.log(math.fsum(math.exp(one - most) for one in powers))) / (order - 1), 0.0)
