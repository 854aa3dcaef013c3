"""What a notion asks of a row v of a protocol, in whole numbers: over·v / Σ over <= e^power · under·v / Σ under.

`over` and `under` (a,) are counts of records, so every worst-case notion about tables is made of such conditions
([DS] Definitions 1 to 3): a belief rises, or falls, by so much at most; two secret values are told apart by so much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np

from funnel.audit.extras.boxes import FloatArray
from funnel.audit.kernel.exact import ExactArray, IntArray, exp, rational
from funnel.audit.kernel.known import Known
from funnel.format.fields import Alphabet
from funnel.format.manifest import Manifest

_POINT = 128
"""Binary digits behind the point of e^power, which is rounded up: what follows from more being allowed is true."""
MOST_CONDITIONS = 200_000


@dataclass(frozen=True, eq=False)
class Condition:
    """One of them; an equation where `power` is zero and `equal`."""

    over: IntArray
    under: IntArray
    power: Fraction
    equal: bool = False

    def coefficients(self) -> ExactArray:
        """Whole numbers C (a,) with C·v <= 0, or = 0, for every row that keeps it."""
        over, under = self.over.astype(object), self.under.astype(object)
        factor = 1 << _POINT if self.equal else _above(self.power)
        return np.asarray((under.sum() << _POINT) * over - factor * over.sum() * under)

    def floats(self) -> FloatArray:
        """The same in proportion, its largest coefficient one in size."""
        factor = 1.0 if self.equal else float(exp(self.power))
        row = self.over / self.over.sum() - factor * (self.under / self.under.sum())
        return np.asarray(row / (np.abs(row).max() or 1.0))


def conditions(
    manifest: Manifest, block: Alphabet, counts: IntArray, known: Known | None = None
) -> list[Condition] | None:
    """All that a notion asks around N[s, x] (c, a) of one block; None for other notions, and where that is too much.

    `known`: what somebody may know, where the notion says that.
    """
    notion, power = manifest.notion, rational(manifest.epsilon)
    seen = counts[counts.any(axis=1)]
    if notion == "ldp-x":
        each = np.eye(counts.shape[1], dtype=np.int64)
        return _all(Condition(one, two, power) for one, two in permutations(each, 2))
    if notion == "ldp":
        return _all(Condition(one, two, power) for one, two in permutations(seen, 2))
    if notion == "perfect":
        return _all(Condition(one, seen.sum(axis=0), Fraction(0), equal=True) for one in seen)
    falls = _falls(manifest)
    if falls is None:
        return None
    if known is not None:
        tables = _agreeing(known, counts)
    else:
        parts = _parts(block) if notion == "srlip" else iter([np.ones(counts.shape[1], np.int64)])
        tables = (counts * mask for mask in parts)
    return _all(one for table in tables for one in _beliefs(table, power, falls[0]))


def _agreeing(known: Known, counts: IntArray) -> Iterator[IntArray]:
    """N[s, x] of the records that agree on what may be known; those that leave nothing to tell are left out."""
    for rows in known.groups():
        table = np.zeros_like(counts)
        np.add.at(table, tuple(known.codes[rows].T), known.number[rows])
        if (table.any(axis=1).sum() > 1) and (table.any(axis=0).sum() > 1):
            yield table


def _beliefs(counts: IntArray, power: Fraction, lower: Fraction | None) -> Iterator[Condition]:
    """No belief rises by more than e^power, or falls by more than e^lower, among these records."""
    whole = counts.sum(axis=0)
    for own in counts[counts.any(axis=1)]:
        yield Condition(own, whole, power)
        if lower is not None:
            yield Condition(whole, own, lower)


def _falls(manifest: Manifest) -> tuple[Fraction | None] | None:
    """How far a belief may fall, in a tuple (None in it: without limit); None for a notion that is not about that."""
    if manifest.notion in ("lip", "srlip"):
        return (rational(manifest.epsilon),)
    if manifest.notion == "pml":
        return (None,)
    lower = manifest.parameters.lower
    return (None if lower is None else rational(lower),) if manifest.notion == "alip" else None


def _parts(block: Alphabet) -> Iterator[IntArray]:
    """For every set of the block's columns and every value of theirs: the x that have it, as 0 and 1."""
    places = range(len(block.columns))
    for some in (some for size in range(len(places) + 1) for some in combinations(places, size)):
        told = [tuple(value[place] for place in some) for value in block.values]
        for one in dict.fromkeys(told):
            yield np.array([other == one for other in told], np.int64)


def _all(found: Iterator[Condition]) -> list[Condition] | None:
    """A list, unless there are too many."""
    kept = [one for _, one in zip(range(MOST_CONDITIONS + 1), found, strict=False)]
    return None if len(kept) > MOST_CONDITIONS else kept


def _above(power: Fraction) -> int:
    """e^power from above, in units of 2^-_POINT."""
    return int(exp(power) * (1 << _POINT)) + 2
