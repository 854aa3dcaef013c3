"""What a notion asks of a row of a protocol as inequalities on w = p∘v in floats: its conditions, or pairs of a set.

A robust row has R_1·v_s <= e^ε R_2·v_s' for every pair (R_1, R_2) of P_{X|s}, P_{X|s'} that occur together in
F = {P : D_α(P̂ || P) <= B} ([RLDP] Definition 3). There are infinitely many; an inequality of a proof is read back into
its pair, and what follows from the pair is used if it occurs: with x_i = (Σ P̂^α R_i^(1-α))^(1/α) and w_i the share of
s_i, minimising over P_S shows that it does exactly where
    α > 1:  w_1 x_1 + w_2 x_2 <= E     α < 1:  w_1 x_1 + w_2 x_2 >= E     E = e^((α-1)B/α) - (1 - w_1 - w_2)
    α = 1:  w_1 D(P̂_1 || R_1) + w_2 D(P̂_2 || R_2) <= B.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.audit.extras.boxes import FloatArray, IntArray
from funnel.audit.extras.conditions import Condition
from funnel.format.fields import Alphabet
from funnel.format.manifest import Manifest

_ALIKE = 1e-7
"""How far two inequalities of largest coefficient one may differ and still be meant to be the same."""
_WITHIN = 1e-12
"""Relative error of floats that is forgiven where a pair lies on the border of the set."""
_LEAST_ORDER = 0.5


@dataclass(frozen=True, eq=False)
class Rows:
    """Inequalities rows (m, a) @ w <= 0 with largest coefficient one; equations where `equal`."""

    rows: FloatArray
    equal: bool = False

    @classmethod
    def of(cls, rows: FloatArray, *, equal: bool = False) -> Rows:
        """Each row divided by its largest coefficient; rows of nothing but zeros are left out."""
        largest = np.abs(rows).max(axis=1, initial=0.0)
        return cls(np.asarray(rows[largest > 0] / largest[largest > 0, None]), equal)

    def match(self, given: FloatArray) -> tuple[IntArray, FloatArray]:
        """For each given inequality (k, a) the one here that it is, -1 for none, and how many times as large it is.

        Where the nearest one is not the same, no harm is done: what is here is true, whatever was given.
        """
        scale = np.abs(given).max(axis=1, initial=0.0)
        sane = np.isfinite(scale) & (scale > 0)
        unit = np.where(sane[:, None], given, 0.0) / np.where(sane, scale, 1.0)[:, None]
        line = 1 + np.modf(np.arange(1, self.rows.shape[1] + 1) * math.sqrt(2))[0]
        keys, lines = self.rows @ line, unit @ line
        order, off = np.argsort(keys), _ALIKE * float(line.sum())
        ends = [np.searchsorted(keys[order], lines - off), np.searchsorted(keys[order], lines + off)]
        found = np.full(len(given), -1)
        for k, (first, last) in enumerate(zip(*ends, strict=True)):
            near = order[first:last]
            if sane[k] and len(near):
                far = np.abs(self.rows[near] - unit[k]).max(axis=1)
                found[k] = near[far.argmin()] if far.min() <= _ALIKE else -1
        return found, scale


def rows_of(asked: Sequence[Condition], prior: FloatArray) -> Rows:
    """Conditions on v as inequalities on w = p∘v, for chances p (a,) that are all positive."""
    rows = np.array([one.floats() for one in asked]).reshape(-1, len(prior))
    return Rows.of(rows / prior, equal=any(one.equal for one in asked))


@dataclass(frozen=True, eq=False)
class Group:
    """What one secret value says: the x that occur with it (m,), P̂_{X|s} (m,), and its share P̂_s."""

    places: IntArray
    chances: FloatArray
    share: float


def robust_rows(manifest: Manifest, hidden: Alphabet, block: Alphabet, counts: FloatArray,
                given: FloatArray) -> Rows | None:  # fmt: skip
    """For inequalities on w that a proof names (k, a), those of their pairs that occur in F.

    None where pairs cannot be read back: the secret is not released beside the rest, or the order is below one half.
    """
    order = manifest.parameters.order or 0.0
    places = [block.columns.index(name) for name in hidden.columns if name in block.columns]
    if order < _LEAST_ORDER or len(places) != len(hidden.columns):
        return None
    told = [tuple(value[place] for place in places) for value in block.values]
    owner = np.array([hidden.values.index(one) if one in hidden.values else -1 for one in told])
    if (owner < 0).any() or not counts.any(axis=0).all():
        return None
    groups = {s: _group(counts, s, np.flatnonzero(owner == s)) for s in set(owner.tolist())}
    prior, ratio = counts.sum(axis=0) / counts.sum(), math.exp(manifest.epsilon)
    found = [_pair(one * prior, owner, groups, manifest) for one in given]
    rows = [(high - ratio * low) / prior for high, low in (pair for pair in found if pair is not None)]
    return Rows.of(np.array(rows).reshape(-1, given.shape[1]))


def _group(counts: FloatArray, s: int, places: IntArray) -> Group:
    own = counts[s, places]
    return Group(places, np.asarray(own / own.sum()), float(own.sum() / counts.sum()))


def _pair(given: FloatArray, owner: IntArray, groups: dict[int, Group], manifest: Manifest
          ) -> tuple[FloatArray, FloatArray] | None:  # fmt: skip
    """R_1 and R_2 (a,), zero outside their groups, that an inequality on v names; None where they are none in F."""
    if not np.isfinite(given).all():
        return None
    high, low = np.maximum(given, 0.0), np.maximum(-given, 0.0)
    named = [np.unique(owner[part > 0]).tolist() for part in (high, low)]
    if len(named[0]) != 1 or len(named[1]) != 1 or named[0] == named[1]:
        return None
    one, two = groups[named[0][0]], groups[named[1][0]]
    high, low = high / high.sum(), low / low.sum()
    pair = ((one, high[one.places]), (two, low[two.places]))
    return (high, low) if occurs(pair, manifest.parameters.order or 0.0, manifest.parameters.radius or 0.0) else None


@np.errstate(all="ignore")
def occurs(pair: Sequence[tuple[Group, FloatArray]], order: float, radius: float) -> bool:
    """Whether some P in F has each R (m,) as its P_{X|s}; R sums to one."""
    spent = 0.0
    for group, other in pair:
        seen, there = group.chances[group.chances > 0], other[group.chances > 0]
        terms = seen * np.log(seen / there) if order == 1 else seen**order * there ** (1 - order)
        total = float(terms.sum())
        spent += group.share * (total if order == 1 else total ** (1 / order))
    if order == 1:
        return spent <= radius * (1 + _WITHIN)
    limit = math.exp((order - 1) * radius / order) - (1 - sum(group.share for group, _ in pair))
    return spent <= limit + _WITHIN if order > 1 else spent >= limit - _WITHIN
