"""Claims about what was drawn: for every record once, into the released table, never the impossible, and by chance.

Counts by input cannot show a drawer that looked at more than the input, nor that nobody chose among several drawings.
How far chance alone strays has one bound, true of every finite number of draws. T = Σ K ln(K/E) over outcomes, K how
often each was drawn and E how often it is expected, both of one sum.

Theorem 2 (Agrawal, Finite-Sample Concentration of the Multinomial in Relative Entropy, IEEE Transactions on Information
    Theory 2020). Of draws that are independent and alike, E e^(λT) <= (1-λ)^-d for 0 <= λ < 1, d one less than there
    are outcomes. Independent tables multiply, so d adds up; and λ = 1 - d/t shows P(T >= t) <= e^(d-t) (t/d)^d, t > d.
Lemma 4. The same holds of independent draws that are not alike, with the sum of their chances as E: two draws' chances
    p and q replaced by their mean r do not lower E e^(λT), so all may have the mean of all. Given the other draws it is
    p'Mq = Σ p_i M_ij q_j up to a factor: one more draw of i multiplies e^(λT) by some h_i, so M_ij = h_i h_j for i ≠ j;
    a second by no less, as k ln(k/E) is convex in k, so M_ii >= h_i². Hence r'Mr - p'Mq = (p-q)'M(p-q)/4 >= 0.
Which outcomes count as one may depend on E, never on K.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.records import Block, sums
from funnel.audit.kernel.verdict import Broken, Unchecked, counted
from funnel.format import draws

FALSE_ALARM = 1e-9
"""Chance with which an honest release may fail a claim, at most. What is no number passes none: `not chance >=`."""
_POOLED = 5.0
"""Outcomes of one row that are expected less often count as one, or the many would hide what happens to the few."""
UNTOLD = "nothing is left to chance, or there are too few draws to tell"
Trial = tuple[str, FloatArray, IntArray]  # what, in words; how often outcomes are expected, and were drawn: (m, b)


def draw_inputs(opened: Opened) -> str:
    """draws.json has a draw for each record of counts.json in each block: Σ_y K[x, y] = N[x], by s where it is read."""
    joint = opened.records
    for block, table in zip(opened.blocks, opened.drawn, strict=True):
        axes = [0, block.axis + 1] if block.reads else [block.axis + 1]
        expected = sums(joint.cells[:, axes], joint.number, [joint.shape[axis] for axis in axes])
        _same(block, "inputs", expected.ravel(), table.sum(axis=1))
    return f"{counted(joint.rows, 'record')} in {counted(len(joint.alphabets) - 1, 'block')}"


def draw_outputs(opened: Opened) -> str:
    """The values of draws.json are those of released.json, block by block."""
    rows = opened.answers
    for place, (block, table) in enumerate(zip(opened.blocks, opened.drawn, strict=True)):
        _same(block, "outputs", sums(rows[:, [place]], rows[:, -1], [len(block.weights)]), table.sum(axis=0))
    return f"{counted(len(rows), 'distinct row')} agree, block by block"


def _same(block: Block, what: str, expected: IntArray, found: IntArray) -> None:
    for code in np.flatnonzero(expected != found):
        what = f"{', '.join(block.columns)}: the {what} of the draws are not those of the release, first code {code}"
        raise Broken(draws.NAME, what, int(expected[code]), int(found[code]))


def draw_support(opened: Opened) -> str:
    """draws.json holds no draw that protocol.json gives no weight."""
    for block, table in zip(opened.blocks, opened.drawn, strict=True):
        if wrong := int(((table > 0) & (block.flat.T == 0)).sum()):
            name = ", ".join(block.columns)
            raise Broken(draws.NAME, f"{name}: something impossible was drawn", "positive weights", wrong)
    pairs = sum(int((table > 0).sum()) for table in opened.drawn)
    return f"{counted(pairs, 'pair')} of input and output, each with a positive weight"


def draw_fit(opened: Opened) -> str | Unchecked:
    """In each block draws.json strays from the chances of protocol.json no further than chance does."""
    return _tried(by_block(opened))


def draw_independence(opened: Opened) -> str | Unchecked:
    """Any two blocks, or values of a set, stray in released.json from independent draws no further than chance."""
    return _tried(across(opened)) if len(opened.blocks) > 1 else "one block"


def _tried(trials: Iterator[Trial]) -> str | Unchecked:
    """None of some trials strays further than chance would, tried so often; 1.05 rounds up. Raises Broken."""
    found = sorted((*strays(means, seen), what) for what, means, seen in trials)
    for chance, _, what in found:
        if not chance > 0:
            raise Broken(draws.NAME, f"{what} cannot be", "chances above 0", "something impossible")
        if not chance * len(found) >= FALSE_ALARM:
            told = f"{what} does not follow its chances"
            raise Broken(draws.NAME, told, f"p >= {FALSE_ALARM}", f"p <= {1.05 * chance:.2g}", improbable=True)
    most, degrees, idle = min(1.05 * found[0][0], 1), sum(one[1] for one in found), sum(not one[1] for one in found)
    told = f"{counted(degrees, 'degree')} of freedom in what is expected {_POOLED:.0f} times or more, p <= {most:.2g}"
    return told + (f"; of {idle} of {len(found)} tables nothing" if idle else "") if degrees else Unchecked(UNTOLD)


def by_block(opened: Opened) -> Iterator[Trial]:
    """Draws of each block and its chances: of each input (Theorem 2), of all (Lemma 4), where small cells add up."""
    for block, seen in zip(opened.blocks, opened.drawn, strict=True):
        name = f"what was drawn of {', '.join(block.columns)}"
        means = block.flat.T / float(1 << block.bits) * seen.sum(axis=1, keepdims=True)
        yield f"{name}, input by input,", means, seen
        yield name, means.sum(axis=0, keepdims=True), seen.sum(axis=0, keepdims=True)


def across(opened: Opened) -> Iterator[Trial]:
    """Released rows against the distribution of outputs Σ_s T[s, y…], of every two blocks, and of all if they are few.

    Rows are independent but not alike (Lemma 4). Blocks that shared their randomness miss the product. More outcomes
    than there are rows would show nothing.
    """
    blocks, rows, number = opened.blocks, opened.answers, opened.manifest.rows
    channel, places = replace(opened.channel, counts=opened.records.dense()), range(len(blocks))
    few = len(blocks) > 2 and math.prod(len(one.weights) for one in blocks) <= number and channel.is_small
    for group in [*combinations(places, 2), *([tuple(places)] if few else [])]:
        some = tuple(blocks[place] for place in group)
        masses = replace(channel, blocks=some).table.sum(axis=0).ravel().tolist()  # of any size, so divided as they are
        whole, names = sum(masses), " with ".join(dict.fromkeys(", ".join(one.columns) for one in some))
        means = np.array([[number * mass / whole for mass in masses]])
        seen = sums(rows[:, group], rows[:, -1], [len(one.weights) for one in some])
        yield f"what was drawn of {names} together", means, seen.reshape(1, -1)


def strays(expected: FloatArray, observed: IntArray) -> tuple[float, int]:
    """A bound of the chance to stray so far, and d. Rows are independent tables, (m, b), each sums as expected."""
    small = (expected > 0) & (expected < _POOLED)
    means, seen = (np.column_stack([one * ~small, (one * small).sum(axis=1)]) for one in (expected, observed))
    with np.errstate(divide="ignore", invalid="ignore"):
        strayed = float((seen[seen > 0] * np.log(seen[seen > 0] / means[seen > 0])).sum())
    degrees = int((means > 0).sum() - (means > 0).any(axis=1).sum())
    return bound(strayed, degrees), degrees


def bound(strayed: float, degrees: int) -> float:
    """Theorem 2; 0 only where an outcome without chance was seen: the smallest float bounds what is rarer."""
    if math.isinf(strayed):
        return 0.0
    if strayed <= degrees:
        return 1.0
    return max(math.exp(degrees - strayed + (degrees * math.log(strayed / degrees) if degrees else 0)), math.ulp(0.0))
