"""Rows of labels: values drawn from the profiles by a published seed, spread evenly over the rows of a label.

Filling sees labels and the seed, never a record. A uniform number is a word of SHAKE-256 of the seed and of what it
is for, and all arithmetic is on whole numbers, so that the same rows come out everywhere and always. Of n rows in the
same cell, whose parent has a value of the same group, a group of weight w gets n w / 2^bits rows, rounded up or down
(systematic sampling: W. G. Madow, Annals of Mathematical Statistics 20, 1949), and so does a value of the rows of its
cell and group; which rows it is, is drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.cells.columns import Codes
from funnel.cells.profile import BITS, Profile, drawing_order
from funnel.data.joint import IntArray

Words = npt.NDArray[np.uint64]
_CHUNK = 1 << 20


def fill(profiles: Sequence[Profile], labels: IntArray, seed: bytes) -> tuple[Codes, ...]:
    """The codes (n,) of every column for rows with these labels (n,), cells counted from 0.

    What a row gets depends on its label and on its place among the rows of the same label, in order.
    """
    by_label = np.argsort(labels, kind="stable")
    sorted_ = labels[by_label]
    found = [np.zeros(len(labels), np.int32) for _ in profiles]
    for column in drawing_order(profiles):
        above = found[profiles[column].parent][by_label] if profiles[column].parent >= 0 else None
        found[column][by_label] = _column(profiles, column, sorted_, above, seed)
    return tuple(found)


def fill_in_order(
    profiles: Sequence[Profile], labels: IntArray, keys: Sequence[str], seed: bytes
) -> tuple[Codes, ...]:
    """As `fill`, for rows with names: rows of a label are filled in the order of a hash of key and seed.

    What a row gets then depends on the names and labels of the rows, and not on how they are sorted.
    """
    ranks = [hashlib.sha256(b"funnel/cells/key " + seed + key.encode()).digest() for key in keys]
    order = np.array(sorted(range(len(keys)), key=ranks.__getitem__), np.int64)
    found = [np.zeros(len(labels), np.int32) for _ in profiles]
    for column, drawn in zip(found, fill(profiles, labels[order], seed), strict=True):
        column[order] = drawn
    return tuple(found)


def uniform(seed: bytes, purpose: str, number: int) -> Words:
    """Words (number,) that follow from the seed and what they are for."""
    parts = [
        hashlib.shake_256(b"funnel/cells " + seed + f" {purpose} {start}".encode()).digest(
            8 * min(_CHUNK, number - start)
        )
        for start in range(0, number, _CHUNK)
    ]
    return np.frombuffer(b"".join(parts), "<u8")


def _column(
    profiles: Sequence[Profile], column: int, labels: IntArray, above: Codes | None, seed: bytes
) -> IntArray:
    """The codes (n,) of a column for rows with these labels, and these values of the parent."""
    profile = profiles[column]
    cells, contexts, groups = profile.links.shape
    context = labels * contexts
    if above is not None:
        context = context + profiles[profile.parent].groups[above]
    ends = _ends(profile.links.reshape(-1, groups), np.zeros(groups, np.int64), 1)
    group = _drawn(ends, cells * contexts, context, seed, f"group {column}") % groups
    order = np.argsort(profile.groups, kind="stable")
    ends = _ends(profile.values[:, order], profile.groups[order], groups)
    drawn = _drawn(ends, cells * groups, labels * groups + group, seed, f"value {column}")
    return order[drawn % len(order)]


def _ends(weights: IntArray, groups: IntArray, number: int) -> IntArray:
    """Where the values of every row (r, v) end on one line on which each of a row's groups is 2^BITS long.

    Values stand by group; where a group is impossible, its values end where it begins.
    """
    sums = np.cumsum(weights, axis=1)
    first = np.searchsorted(groups, groups)
    before = np.pad(sums, ((0, 0), (1, 0)))[:, first]
    place = np.arange(len(weights))[:, None] * number + groups
    return np.asarray((place << BITS) + sums - before).ravel()


def _drawn(ends: IntArray, contexts: int, context: IntArray, seed: bytes, purpose: str) -> IntArray:
    """Which of the `ends` each row (n,) gets, by its context (n,): rows of one context evenly, in a drawn order."""
    rows = len(context)
    counts = np.bincount(context, minlength=contexts)
    order = np.lexsort((uniform(seed, f"order of {purpose}", rows), context))
    place = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
    start = (uniform(seed, f"start of {purpose}", contexts) >> np.uint64(64 - BITS)).astype(np.int64)
    of_row = context[order]
    point = ((place << BITS) + start[of_row]) // counts[of_row]
    found = np.empty(rows, np.int64)
    found[order] = np.searchsorted(ends, (of_row << BITS) + point, side="right")
    return found
