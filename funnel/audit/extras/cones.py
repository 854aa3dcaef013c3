"""What a notion asks of a row of a protocol, as its definition reads: inequalities on w = p∘v, built from the counts.

A robust row has R_1·v_s <= e^ε R_2·v_s' for every pair (R_1, R_2) of P_{X|s}, P_{X|s'} that occur together in
F = {P : D_α(P̂ || P) <= B} ([RLDP] Definition 3). There are infinitely many; an inequality of a proof is read back into
its pair, and what follows from the pair is used if it occurs: with x_i = (Σ P̂^α R_i^(1-α))^(1/α) and w_i the share of
s_i, minimising over P_S shows that it does exactly where
    α > 1:  w_1 x_1 + w_2 x_2 <= E     α < 1:  w_1 x_1 + w_2 x_2 >= E     E = e^((α-1)B/α) - (1 - w_1 - w_2)
    α = 1:  w_1 D(P̂_1 || R_1) + w_2 D(P̂_2 || R_2) <= B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from funnel.audit.extras.boxes import FloatArray, IntArray
from funnel.audit.kernel.known import Known
from funnel.format.fields import Alphabet
from funnel.format.manifest import Manifest

MOST_NUMBERS = 20_000_000
"""Coefficients of all inequalities together, beyond which they are not written out."""
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


def rows_of(manifest: Manifest, block: Alphabet, counts: FloatArray, known: Known | None = None) -> Rows | None:
    """The cone of the notion around N[s, x] (c, a) of one block; None where it is not a plain one, or too large.

    `known`: what somebody may know, where the notion says that.
    """
    notion, ratio = manifest.notion, math.exp(manifest.epsilon)
    c, a = counts.shape
    columns = list(zip(*block.values, strict=True))
    subsets = math.prod(len(set(column)) + 1 for column in columns) if notion == "srlip" and known is None else 1
    many = {"ldp": c * c, "ldp-x": a * a}.get(notion, 2 * c * subsets)
    if many * a >= MOST_NUMBERS:
        return None
    if notion == "ldp-x":
        return odds(counts.sum(axis=0) / counts.sum(), ratio)
    if notion == "ldp":
        given = lifts(counts)
        pairs = given[:, None, :] - ratio * given[None, :, :]
        return Rows.of(pairs[~np.eye(len(given), dtype=bool)])
    if notion == "perfect":
        return Rows.of(lifts(counts) - 1, equal=True)
    limits = beliefs(manifest)
    if limits is None:
        return None
    if known is not None:
        return _rows_given(known, counts, limits)
    masks = _known(block.values) if notion == "srlip" else iter([np.ones(a, bool)])
    return Rows.of(np.concatenate([_belief_rows(counts, mask, *limits) for mask in masks]))


def _rows_given(known: Known, counts: FloatArray, limits: tuple[float | None, float]) -> Rows | None:
    """The limits of beliefs among the records that agree on what may be known; None where they are too many."""
    rows, size, whole = list[FloatArray](), 0, counts.sum(axis=0)
    for group in known.groups():
        part = np.zeros_like(counts)
        np.add.at(part, tuple(known.codes[group].T), known.number[group])
        rows.append(_belief_rows(part, np.asarray(part.any(axis=0)), *limits) * (part.sum(axis=0) / whole))
        size += rows[-1].size
        if size >= MOST_NUMBERS:
            return None
    return Rows.of(np.concatenate(rows))


def beliefs(manifest: Manifest) -> tuple[float | None, float] | None:
    """Between which multiples of P(s) every P(s|y) must stay, None for no lower one; None where a notion has no such.

    [DS] Definitions 2 and 3; pointwise maximal leakage has an upper limit alone, asymmetric LIP one for each side.
    """
    high = math.exp(manifest.epsilon)
    if manifest.notion in ("lip", "srlip"):
        return 1 / high, high
    if manifest.notion == "pml":
        return None, high
    if manifest.notion == "alip":
        lower = manifest.parameters.lower
        return None if lower is None else math.exp(-lower), high
    return None


def odds(prior: FloatArray, ratio: float) -> Rows:
    """v_x <= ratio · v_x' for all x, x'."""
    eye = np.diag(1 / prior)
    pairs = eye[:, None, :] - ratio * eye[None, :, :]
    return Rows.of(pairs[~np.eye(len(prior), dtype=bool)])


def lifts(counts: FloatArray) -> FloatArray:
    """P(s|x)/P(s) for counts N[s, x] of the secret values that occur, (c', a); zero for an x that does not."""
    counts = counts[counts.any(axis=1)]
    each = counts.sum(axis=0)
    chance = counts.sum(axis=1, keepdims=True) / counts.sum()
    return np.asarray(counts / np.where(each > 0, each, 1.0) / chance)


def _belief_rows(counts: FloatArray, mask: npt.NDArray[np.bool_], low: float | None, high: float) -> FloatArray:
    """The limits of beliefs where x is known to lie in `mask` (a,)."""
    given = lifts(counts[:, mask])
    rows = np.zeros(((2 if low is not None else 1) * len(given), len(mask)))
    rows[:, mask] = np.concatenate([given - high, *([] if low is None else [low - given])])
    return rows


def _known(values: Sequence[tuple[str | None, ...]]) -> Iterator[npt.NDArray[np.bool_]]:
    """For every set J of the block's columns but all of them, and every x_J: the x that have it."""
    width = len(values[0])
    for places in (some for size in range(width) for some in combinations(range(width), size)):
        told = [tuple(value[place] for place in places) for value in values]
        for one in dict.fromkeys(told):
            yield np.array([other == one for other in told])


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
