"""A private estimate, looked at from both sides: the noisy counts that all claims are about, and the true ones.

That neighbouring tables make the noisy counts likely by a factor e^ε_est at most follows from the law of the noise
alone. Its law is what is tested here; nobody can see from files that it was drawn once, and by nobody's choice.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from funnel.audit import leakage
from funnel.audit.draws import FALSE_ALARM, Fit
from funnel.audit.evidence import EPSILON, Evidence, Noisy
from funnel.audit.fields import IntArray
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.leakage import Channel
from funnel.audit.ledger import read_chain
from funnel.audit.lock import named
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Blocks
from funnel.audit.terms import budget_of, read_policy
from funnel.audit.uncertainty import SENSITIVITY, width
from funnel.errors import AuditFailure

RECORD = "estimates.jsonl"
HEAD = "estimates.head"
_PLAIN = NOT_CLAIMED + "the counts are the table’s own"


def true_counts(evidence: Evidence) -> Evidence:
    """The evidence with the counts of the records themselves: what was drawn for."""
    noisy = evidence.noisy
    if noisy is None:
        return evidence
    there = noisy.records > 0
    return replace(evidence, cells=noisy.cells[there], counts=noisy.records[there])


def true_channel(evidence: Evidence, channel: Channel, blocks: Blocks, manifest: Manifest) -> Channel | None:
    """The channel released as it is at the true counts alone; None where it cannot be measured there."""
    if evidence.noisy is None:
        return channel
    if manifest.notion == "rldp":
        manifest = replace(manifest, notion="ldp")
    try:
        return leakage.measure(true_counts(evidence), blocks, manifest)[0]
    except AuditFailure:
        return None


def as_stated(evidence: Evidence, manifest: Manifest, policy: bytes, folder: Path) -> str | Unchecked:
    """The counts that claims are about are noisy ones of every declared combination, and the noise is as stated.

    Under a lock they are, besides, those that lock.yaml names. Raises AuditFailure for a combination that is left out
    or not declared, for a count that does not follow from its noise, and for noise that chance explains less often
    than once in 10^9.
    """
    noisy = evidence.noisy
    if noisy is None or manifest.noise is None:
        return Unchecked(_PLAIN)
    if noisy.epsilon != manifest.noise.epsilon:
        raise _wrong("the noise is of another ε than stated", manifest.noise.epsilon, noisy.epsilon)
    _covered(evidence, noisy)
    _declared(evidence, read_policy(policy))
    cells, counts = kept_counts(noisy, manifest)
    seen, used = np.column_stack([cells, counts]), np.column_stack([evidence.cells, evidence.counts])
    if sorted(map(tuple, seen.tolist())) != sorted(map(tuple, used.tolist())):
        raise _wrong(
            "the counts are not the noisy ones", "true counts plus noise, small ones as stated", "others"
        )
    when = "" if manifest.locked is None else _pinned(evidence, noisy, named(folder, manifest.locked[0]))
    chance = _fit(noisy, noisy.epsilon / SENSITIVITY)
    return (
        f"noise on {counted(len(noisy.noise), 'cell')} like discrete Laplace noise of rate ε_est/2, ε_est = "
        f"{float(noisy.epsilon):g}, p = {chance:.2g}; that it was drawn once, and not chosen, no file can show{when}"
    )


def _pinned(evidence: Evidence, noisy: Noisy, facts: dict[str, str]) -> str:
    """In words, that the noisy counts are those of the lock."""
    cells = np.column_stack([noisy.cells, noisy.counted + noisy.noise]).tolist()
    alphabets = [
        {"columns": list(one.columns), "values": [list(value) for value in one.values]}
        for one in (evidence.secret, *evidence.blocks)
    ]
    whole = {"secret": alphabets[0], "blocks": alphabets[1:], "cells": sorted(cells)}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    found = hashlib.sha256(text.encode()).hexdigest()
    if facts.get("noisy") != found:
        raise _wrong("the noisy counts are not those that the lock names", facts.get("noisy"), found)
    return "; they are the lock's, and nothing was estimated for this release"


def kept_counts(noisy: Noisy, manifest: Manifest) -> tuple[IntArray, IntArray]:
    """Cells (m, 1+k) and counts (m,) that claims are about: one at least, or for a robust notion none below 2t."""
    found = noisy.counted + noisy.noise
    if manifest.notion != "rldp":
        return noisy.cells, np.maximum(found, 1)
    there = found >= 2 * width(noisy, float(manifest.parameters.confidence or 0))
    return noisy.cells[there], found[there]


def _covered(evidence: Evidence, noisy: Noisy) -> None:
    """As many distinct cells as the values of the columns have combinations."""
    sizes = [len(values) for values in _values(evidence).values()]
    if len(noisy.cells) != math.prod(sizes):
        raise _wrong("noise is not on every combination of values", math.prod(sizes), len(noisy.cells))


def _values(evidence: Evidence) -> dict[str, set[str | None]]:
    """The values of every column, secret or public."""
    found: dict[str, set[str | None]] = {}
    for alphabet in (evidence.secret, *evidence.blocks):
        for place, column in enumerate(alphabet.columns):
            found.setdefault(column, set()).update(value[place] for value in alphabet.values)
    return found


def _declared(evidence: Evidence, policy: Any) -> None:
    """No value was found in the table: all are declared, or bins."""
    try:
        items = chain.from_iterable(one if isinstance(one, list) else [one] for one in policy["public"])
        bins = {one["name"]: one["bins"] for one in items if isinstance(one, dict) and "bins" in one}
        declared = {
            _folded(name): set(values) for name, values in policy["estimate"].get("values", {}).items()
        }
        missing = {None} if policy["source"].get("missing") == "category" else set[None]()
        for column, values in _values(evidence).items():
            if column in bins:
                right = len(values) == len(bins[column]) + len(missing)
            else:
                right = values == declared[_folded(column)] | missing
            if not right:
                raise _wrong(f"the values of {column} are not those declared", "those of policy.yaml", values)
    except (KeyError, TypeError, AttributeError) as error:
        raise _wrong("the policy declares no values", "estimate.values", f"{type(error).__name__}") from None


def _folded(name: str) -> str:
    """Column names are the same in either case of ASCII letters."""
    return "".join(ch.lower() if ch.isascii() else ch for ch in name)


def _fit(noisy: Noisy, rate: Fraction) -> float:
    """The least chance of noise that fits worse in size or in shape. Raises AuditFailure when tiny."""
    p, sizes = math.exp(-float(rate)), abs(noisy.noise)
    total, cells = int(sizes.sum()), len(sizes)
    unlikely = _beyond(p, cells, total)
    if unlikely < FALSE_ALARM:
        mean = 2 * p / (1 - p * p)
        raise _wrong(
            "the noise is not as large as stated", f"about {mean:.3g} a cell", f"{total / cells:.3g} a cell"
        )
    reach = np.arange(-min(int(sizes.max()), 10_000), min(int(sizes.max()), 10_000) + 1)
    law = (1 - p) / (1 + p) * p ** np.abs(reach)
    inside = noisy.noise[sizes <= reach[-1]]
    observed = np.append(np.bincount(inside - reach[0], minlength=len(reach)), cells - len(inside))
    test = Fit()
    test.add(np.append(cells * law, cells * max(1 - law.sum(), 0.0)), observed)
    return min(unlikely, test.refuse("the noise", even=True))


def _beyond(p: float, cells: int, total: int) -> float:
    """At least the chance that sizes |Z| add up to a total as far from their mean, on the same side (Chernoff).

    E e^(t|Z|) = (1-p)/(1+p) (1+pe^t)/(1-pe^t) for pe^t < 1; the bound is the least over a grid of t.
    """
    raised = np.linspace(0, 1, 20_001)[1:-1]
    raised = raised[raised > p] if total * (1 - p * p) > 2 * p * cells else raised[raised < p]
    with np.errstate(divide="ignore"):
        bound = cells * np.log((1 - p) / (1 + p) * (1 + raised) / (1 - raised)) - total * np.log(raised / p)
    return float(np.exp(min(bound.min(initial=0.0), 0.0)))


def as_spent(folder: Path, manifest: Manifest, policy: bytes) -> str | Unchecked:
    """The record of estimates, an unbroken chain, holds this one, and adds up to what is stated.

    `folder` is the release's own in the private folder. Under a lock the estimate is the lock's, and others may have
    followed it. Raises AuditFailure.
    """
    if manifest.noise is None:
        return Unchecked(_PLAIN)
    record, stated = _record(folder.parent), manifest.noise
    name = manifest.release if manifest.locked is None else named(folder, manifest.locked[0]).get("estimated")
    own = [place for place, (one, _) in enumerate(record) if one == name]
    if len(own) != 1 or record[own[0]][1] != stated.epsilon:
        raise broken(
            RECORD,
            "this release’s estimate is not on record",
            expected=f"one line of {float(stated.epsilon):g} nats",
            found=counted(len(own), "line"),
        )
    first = own[0] + 1
    if stated.estimates < first or (manifest.locked is None and stated.estimates > first):
        raise _not_on_record(f"{first} estimates", f"{stated.estimates} estimates")
    total = _sum(record, stated.estimates)
    if stated.estimates > len(record) or abs(total - stated.spent) > Fraction(1, 10**9):
        raise _not_on_record(f"{float(total):g} nats", f"{float(stated.spent):g} nats")
    _afforded(_sum(record, first), policy)
    return f"{counted(stated.estimates, 'estimate')} of these counts so far, {float(total):g} nats together"


def _sum(record: list[tuple[str, Fraction]], lines: int) -> Fraction:
    return sum((epsilon for _, epsilon in record[:lines]), Fraction(0))


def _not_on_record(expected: str, found: str) -> AuditFailure:
    what = "what was spent on estimates is not what the record says"
    return broken("release.json", what, expected=expected, found=found)


def _afforded(total: Fraction, policy: bytes) -> None:
    """When it was made, the estimate was within what the policy lets all of them spend."""
    budget = budget_of(policy, "estimate")
    if budget is not None and total > budget:
        what = "the estimates spent more than the policy's budget"
        raise broken(RECORD, what, expected=float(budget), found=float(total))


def _record(folder: Path) -> list[tuple[str, Fraction]]:
    """Names and ε_est, in order."""
    entries = read_chain(folder, RECORD, HEAD, ("sequence", "written", "release", "epsilon", "previous"))
    return [(one["release"].text(), Fraction(one["epsilon"].text(EPSILON))) for one in entries]


def at_the_truth(evidence: Evidence, channel: Channel | None, manifest: Manifest) -> Unchecked:
    """What the leakage is at the true counts, which no claim is about: the figure is for the publisher alone."""
    if evidence.noisy is None:
        return Unchecked(_PLAIN)
    if channel is None:
        return Unchecked(NOT_CLAIMED + "the channel cannot be measured at the true counts")
    wider = {"rldp": "every distribution of the uncertainty set", "ldp-x": "every distribution"}
    about = wider.get(manifest.notion, "the distribution as estimated")
    kept = "within" if channel.own.within(manifest.epsilon) else "above"
    return Unchecked(
        f"{NOT_CLAIMED}the bound is about {about}; at the true counts {channel.own.measure} is {channel.own.nats()}, "
        f"{kept} ε = {float(manifest.epsilon):g}. Keep this figure private"
    )


def _wrong(what: str, expected: object, found: object) -> AuditFailure:
    return broken("evidence.json", what, expected=expected, found=found)
