"""Claims about the estimate: the noise of a private one, what it spent, and how large an uncertainty set has to be.

That neighbouring tables make noisy counts likely by a factor e^ε_est at most follows from the law of the noise alone,
discrete Laplace of rate ε_est/2 on every cell. Its law is what is tested; that it was drawn once, no file can show.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from funnel.audit.kernel.chance import FALSE_ALARM, Fit, quantile
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.files import sha256
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.private import lock_facts
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import counts, journal, manifest
from funnel.format.canonical import encode
from funnel.format.counts import Private
from funnel.format.journal import EstimateEntry, ReleaseEntry
from funnel.format.schema import as_json

SENSITIVITY = 2
"""Counts that change, by one each, when one of a given number of records takes other values."""
_PLAIN = Unchecked(NOT_CLAIMED + "the counts are the table’s own")
_ROUNDING = 1e-9
"""Relative: by how much a radius may fall short, for a quantile is a float."""
_REACH = 10_000


def lawful(opened: Opened) -> str | Unchecked:
    """The counts that claims are about are true ones with the noise of a private estimate on every combination.

    Counts below one become one; under a robust notion those below 2t are dropped (`_width`).
    """
    private, joint = opened.counts.private, opened.joint
    if private is None:
        return _PLAIN
    columns: dict[str, set[str | None]] = {}
    for alphabet in joint.alphabets:
        for place, name in enumerate(alphabet.columns):
            columns.setdefault(name, set()).update(value[place] for value in alphabet.values)
    cells, true, noise = _noisy(private)
    found = true + noise
    robust = opened.manifest.notion == "rldp"
    stay = found >= 2 * _width(opened, private) if robust else np.ones(len(found), bool)
    used = np.column_stack([cells[stay], found[stay] if robust else np.maximum(found, 1)])
    agree(counts.NAME, [
        ("combinations", math.prod(map(len, columns.values())), len(cells)),
        ("counts with their noise", sorted(used.tolist()), np.column_stack([joint.cells, joint.number]).tolist()),
    ])  # fmt: skip
    if opened.manifest.locked:
        noisy = sorted(np.column_stack([cells, found]).tolist())
        own = sha256(encode([[as_json(one) for one in joint.alphabets], noisy]))
        agree(counts.NAME, [("hash of the noisy counts in the lock", lock_facts(opened).get("noisy"), own)])
    chance = _chance(noise, Fraction(private.epsilon) / SENSITIVITY)
    return f"{counted(len(cells), 'cell')} with noise of ε_est = {private.epsilon}, p = {chance:.2g}"


def _noisy(private: Private) -> tuple[IntArray, IntArray, IntArray]:
    """Cells [s, x_1, …, x_k], what was counted there, and the noise."""
    rows = np.array(private.cells, np.int64)
    return rows[:, :-3], rows[:, -3], rows[:, -2] - rows[:, -1]


def _width(opened: Opened, private: Private) -> int:
    """t: no noise of any cell is larger in size, but with half the chance that the confidence leaves.

    P(|Z| > t) < 2e^(-(t+1) rate) for each cell.
    """
    chance, rate = (
        (1 - (opened.manifest.parameters.confidence or 0)) / 2,
        Fraction(private.epsilon) / SENSITIVITY,
    )
    return math.ceil(math.log(2 * len(private.cells) / chance) / float(rate)) + 1


def _chance(noise: IntArray, rate: Fraction) -> float:
    """The least chance of noise that fits worse, in size (Chernoff's bound) or in shape. Raises Broken when tiny.

    E e^(t|Z|) = (1-p)/(1+p) (1+pe^t)/(1-pe^t) for p = e^-rate and pe^t < 1; the bound is the least over a grid of t.
    """
    p, sizes = math.exp(-float(rate)), abs(noise)
    total, cells, most = int(sizes.sum()), len(sizes), min(int(sizes.max()), _REACH)
    raised = np.linspace(0, 1, 20_001)[1:-1]
    raised = raised[raised > p] if total * (1 - p * p) > 2 * p * cells else raised[raised < p]
    bound = cells * np.log((1 - p) / (1 + p) * (1 + raised) / (1 - raised)) - total * np.log(raised / p)
    unlikely = math.exp(min(bound.min(initial=0.0), 0.0))
    if not unlikely >= FALSE_ALARM:
        raise Broken(counts.NAME, "the noise is not as large as stated", 2 * p / (1 - p * p), total / cells)
    law = (1 - p) / (1 + p) * p ** np.abs(np.arange(-most, most + 1))
    inside = noise[sizes <= most]
    observed = np.append(np.bincount(inside + most, minlength=len(law)), cells - len(inside))
    test = Fit()
    test.add(np.append(cells * law, cells * max(1 - law.sum(), 0.0)), observed)
    return min(unlikely, test.refuse("the noise", even=True))


def spent(opened: Opened) -> str | Unchecked:
    """The ledger holds one charge for this private estimate, and what is stated as spent is the sum so far.

    Under a lock the estimate is the lock's.
    """
    one, private = opened.manifest, opened.counts.private
    if private is None:
        return _PLAIN
    name = lock_facts(opened).get("estimated") if one.locked else one.release
    entries = [line.entry for line in opened.journal]
    until = next((i for i, x in enumerate(entries) if isinstance(x, ReleaseEntry) and x.release == one.release), None)
    before = [(entry.name, Fraction(entry.epsilon)) for entry in entries[:until] if isinstance(entry, EstimateEntry)]
    total, budget = sum(epsilon for _, epsilon in before), opened.terms.estimate.budget
    told = (one.estimate.epsilon, one.estimate.estimates, one.estimate.spent)
    agree(journal.NAME, [
        ("charge", [Fraction(private.epsilon)], [epsilon for other, epsilon in before if other == name]),
        ("what estimates spent", (float(Fraction(private.epsilon)), len(before), float(total)), told),
    ])  # fmt: skip
    if budget is not None and total > Fraction(budget):
        if one.locked:
            return Unchecked(f"{float(total):g} nats by now; whether {budget} held when the lock was made is not known")
        raise Broken(journal.NAME, "the estimates spent more than the policy's budget", budget, float(total))
    return f"{counted(len(before), 'estimate')} so far, {float(total):g} nats together"


def confident(opened: Opened) -> str | Unchecked:
    """The set of distributions protected against is as large as the stated confidence asks for ([RLDP] equation 9).

    B = ln(1 + q/n) at order 2, else αq/2n, q the quantile of χ² with a degree of freedom less than S x U has cells.
    """
    asked, joint, private = opened.manifest.parameters, opened.joint, opened.counts.private
    if opened.manifest.notion != "rldp" or asked.confidence is None or asked.radius is None or asked.order is None:
        return Unchecked(NOT_CLAIMED + "no confidence is stated")
    cells = joint.shape[0] * len({rest for _, rest in joint.told()})
    chance = 1 - asked.confidence
    if private is not None and asked.order != 2:
        raise Broken(manifest.NAME, "what noise adds is known at order 2 alone", 2, asked.order)
    if private is None:
        spread = quantile(cells - 1, chance) / joint.rows if cells > 1 else 0.0
        needed = math.log1p(spread) if asked.order == 2 else asked.order / 2 * spread
    else:
        needed = _despite_noise(opened, private, chance / 2)
    if not asked.radius >= needed * (1 - _ROUNDING):
        raise Broken(manifest.NAME, "the uncertainty set is too small for its confidence", needed, asked.radius)
    return f"radius {asked.radius:.6g} nats, {needed:.6g} needed for {asked.confidence:g} over {counted(cells, 'cell')}"


def _despite_noise(opened: Opened, private: Private, chance: float) -> float:
    """A radius of order 2 that holds the truth P where noisy counts below 2t were taken to be zero.

    In the norm |v|² = Σ v²/P: the estimate without noise is within r of P, r² = q/n at half the chance; noise moves
    each kept cell by what t allows, over the least P that r leaves it (the lower root of x² - (2p + r²)x + p²); and the
    cells that were dropped weigh P(Z) <= P̂(Z) + r √P(Z).
    """
    _, true, noise = _noisy(private)
    found, wide, rows = true + noise, _width(opened, private), int(true.sum())
    stay = found >= 2 * wide
    square = quantile(len(found) - 1, chance) / rows if len(found) > 1 else 0.0
    low, high, share = (
        (found[stay] - wide) / rows,
        (found[stay] + wide) / rows,
        found[stay] / found[stay].sum(),
    )
    least = low + square / 2 - np.sqrt(square * square / 4 + square * low)
    if not stay.any() or (least <= 0).any():
        return math.inf
    moved = math.sqrt((np.maximum(abs(share - low), abs(share - high)) ** 2 / least).sum())
    dropped = min(float(np.maximum(found[~stay] + wide, 0).sum()) / rows, 1.0)
    gone = (math.sqrt(square) + math.sqrt(square + 4 * dropped)) / 2
    return math.log1p((math.sqrt(square) + moved) ** 2 + min(gone * gone, 1.0))
