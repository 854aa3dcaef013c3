"""What a notion asks of a row v of a protocol, in whole numbers: over·v / Σ over <= e^power · under·v / Σ under.

`over` and `under` (a,) are counts of records, so every worst-case notion about tables is made of such conditions
([DS] Definitions 1 to 3): a belief rises, or falls, by so much at most; two secret values are told apart by so much.
This is the one place where extras say what a notion asks; inequalities in floats are made of it (`cones`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations

import numpy as np

from funnel.audit.extras.boxes import FloatArray
from funnel.audit.kernel.channel import Known
from funnel.audit.kernel.exact import ExactArray, IntArray, exp, rational
from funnel.format.fields import Alphabet
from funnel.format.manifest import Manifest

_POINT = 128
"""Binary digits behind the point of e^power, which is rounded up: what follows from more being allowed is true."""
MOST_CONDITIONS, MOST_NUMBERS = 200_000, 20_000_000
"""Conditions, and their coefficients together, beyond which they are not written out."""


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
        factor = 1.0 if self.equal else _nearly(self.power)
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
        return apart(counts.shape[1], power)
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


def about_secret(manifest: Manifest, size: int) -> list[Condition] | None:
    """What a channel on the secret itself, of so many values, has to keep; None where a notion asks nothing of it."""
    return apart(size, rational(manifest.epsilon)) if manifest.notion in ("ldp", "rldp") else None


def apart(size: int, power: Fraction) -> list[Condition] | None:
    """v_x <= e^power · v_x' for all x, x' of so many; None where that is too much."""
    return _all(Condition(one, two, power) for one, two in permutations(np.eye(size, dtype=np.int64), 2))


def beliefs(manifest: Manifest) -> tuple[float | None, float] | None:
    """Between which multiples of P(s) every P(s|y) must stay, None for no lower one; None where a notion has no such.

    [DS] Definitions 2 and 3; pointwise maximal leakage has an upper limit alone, asymmetric LIP one for each side.
    """
    falls = _falls(manifest)
    if falls is None:
        return None
    return None if falls[0] is None else 1 / _nearly(falls[0]), _nearly(rational(manifest.epsilon))


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
    kept, numbers = list[Condition](), 0
    for one in found:
        kept.append(one)
        numbers += one.over.size
        if len(kept) > MOST_CONDITIONS or numbers > MOST_NUMBERS:
            return None
    return kept


@cache
def _nearly(power: Fraction) -> float:
    """e^power."""
    return float(exp(power))


@cache
def _above(power: Fraction) -> int:
    """e^power from above, in units of 2^-_POINT."""
    return int(exp(power) * (1 << _POINT)) + 2
