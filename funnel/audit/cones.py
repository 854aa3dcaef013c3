"""What a notion asks of a row of a protocol, as the auditor reads its definition: inequalities on w = p∘v."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from funnel.audit.evidence import Evidence
from funnel.audit.fields import IntArray
from funnel.audit.manifest import Manifest

FloatArray = npt.NDArray[np.float64]
MOST_NUMBERS = 20_000_000
"""Coefficients of all inequalities together, beyond which they are not written out."""
_ALIKE = 1e-7
"""How far two inequalities of largest coefficient one may differ and still be meant to be the same."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Inequalities rows (m, a) @ w <= 0 with largest coefficient one; equations where `equal`."""

    rows: FloatArray
    equal: bool = False

    def match(self, given: FloatArray) -> tuple[IntArray, FloatArray]:
        """For each given inequality (k, a) the one here that it is, -1 for none, and how many times as large it is.

        Where the nearest one is not the same, no harm is done: what is here is true, whatever was given.
        """
        scale = np.abs(given).max(axis=1, initial=0.0)
        sane = np.isfinite(scale) & (scale > 0)
        unit = np.where(sane[:, None], given, 0.0) / np.where(sane, scale, 1.0)[:, None]
        line = np.random.default_rng(0).uniform(1, 2, self.rows.shape[1])
        keys = self.rows @ line
        order = np.argsort(keys)
        keys = keys[order]
        lines, off = unit @ line, _ALIKE * float(np.sum(line))
        ends = [np.searchsorted(keys, lines - off), np.searchsorted(keys, lines + off)]
        found = np.full(len(given), -1)
        for k, (first, last) in enumerate(zip(*ends, strict=True)):
            near = order[first:last]
            if sane[k] and len(near):
                far = np.abs(self.rows[near] - unit[k]).max(axis=1)
                found[k] = near[far.argmin()] if far.min() <= _ALIKE else -1
        return found, scale


def rows_of(evidence: Evidence, manifest: Manifest) -> Rows | None:
    """The cone of the notion around the counts of one block; None where it is not a plain one, or too large."""
    counts, ratio = evidence.dense().astype(float), math.exp(manifest.epsilon)
    c, a = counts.shape
    kinds = {"lip": 2 * c, "perfect": c, "ldp": c * c, "srlip": 2 * c * _subsets(evidence), "ldp-x": a * a,
             "pml": c, "alip": 2 * c}  # fmt: skip
    if kinds.get(manifest.notion, MOST_NUMBERS) * a >= MOST_NUMBERS:
        return None
    if manifest.notion == "ldp-x":
        return odds(counts.sum(axis=0) / counts.sum(), ratio)
    if manifest.notion == "ldp":
        given = lifts(counts)
        pairs = given[:, None, :] - ratio * given[None, :, :]
        return Rows(_scaled(pairs[~np.eye(len(given), dtype=bool)]))
    if manifest.notion == "perfect":
        return Rows(_scaled(lifts(counts) - 1), equal=True)
    if manifest.notion in ("pml", "alip"):
        lower = manifest.parameters.lower
        return Rows(_beliefs(counts, np.ones(a, bool), ratio, None if lower is None else math.exp(lower)))
    known = _known(evidence) if manifest.notion == "srlip" else iter([np.ones(a, bool)])
    return Rows(np.concatenate([_beliefs(counts, mask, ratio, ratio) for mask in known]))


def odds(prior: FloatArray, ratio: float) -> Rows:
    """v_x <= ratio · v_x' for all x, x'."""
    eye = np.diag(1 / prior)
    pairs = eye[:, None, :] - ratio * eye[None, :, :]
    return Rows(_scaled(pairs[~np.eye(len(prior), dtype=bool)]))


def lifts(counts: FloatArray) -> FloatArray:
    """P(s|x)/P(s) for counts N[s, x] of the secret values that occur, (c', a); zero for an x that does not."""
    counts = counts[counts.any(axis=1)]
    chance = counts.sum(axis=1, keepdims=True) / counts.sum()
    each = counts.sum(axis=0)
    return np.asarray(counts / np.where(each > 0, each, 1.0) / chance)


def _beliefs(
    counts: FloatArray, mask: npt.NDArray[np.bool_], ratio: float, fall: float | None
) -> FloatArray:
    """Where x is known to lie in `mask` (a,): no belief rises by a factor `ratio`, or falls by `fall` (None: any)."""
    given = lifts(counts[:, mask])
    sides = np.concatenate([given - ratio, *([] if fall is None else [1 / fall - given])])
    rows = np.zeros((len(sides), len(mask)))
    rows[:, mask] = sides
    return _scaled(rows)


def _scaled(rows: FloatArray) -> FloatArray:
    """Each row by its largest coefficient; rows of nothing but zeros are left out."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    return np.asarray(rows[largest > 0] / largest[largest > 0, None])


def _subsets(evidence: Evidence) -> int:
    """At most as many values x_J, over all sets J of columns."""
    columns = list(zip(*evidence.blocks[0].values, strict=True))
    return math.prod(len(set(column)) + 1 for column in columns)


def _known(evidence: Evidence) -> Iterator[npt.NDArray[np.bool_]]:
    """For every set J of the block's columns but all of them, and every x_J: the x that have it."""
    values = evidence.blocks[0].values
    width = len(values[0])
    for size in range(width):
        for places in combinations(range(width), size):
            told = [tuple(value[place] for place in places) for value in values]
            codes = {one: code for code, one in enumerate(dict.fromkeys(told))}
            group = np.array([codes[one] for one in told])
            for code in range(len(codes)):
                yield group == code
