"""Rows of labels: values drawn from the profiles by a published seed, spread evenly over the rows of a label.

Filling sees labels and the seed, never a record. A uniform number is a word of SHAKE-256 of the seed and of what it is
for, and all arithmetic is on whole numbers, so that the same rows come out everywhere and always.
Of n rows in the same cell, whose parent has a value of the same group, a value of weight w gets n w / 2^bits rows,
rounded up or down (systematic sampling: W. G. Madow, Annals of Mathematical Statistics 20, 1949); which rows is drawn.
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
        profile = profiles[column]
        context = sorted_ * profile.weights.shape[1]
        if profile.parent >= 0:
            context = context + profile.groups[found[profile.parent][by_label]]
        found[column][by_label] = _drawn(profile, context, seed, column)
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


def _drawn(profile: Profile, context: IntArray, seed: bytes, column: int) -> Codes:
    """One value per row, by its context: the cell and the group of the parent's value."""
    rows, size = len(context), profile.weights.shape[2]
    number = profile.weights.shape[0] * profile.weights.shape[1]
    counts = np.bincount(context, minlength=number)
    order = np.lexsort((uniform(seed, f"order {column}", rows), context))
    place = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
    start = (uniform(seed, f"start {column}", number) >> np.uint64(64 - BITS)).astype(np.int64)
    of_row = context[order]
    point = ((place << BITS) + start[of_row]) // counts[of_row]
    ends = np.cumsum(profile.weights.reshape(number, size), axis=1) + (np.arange(number) << BITS)[:, None]
    found = np.empty(rows, np.int32)
    found[order] = np.searchsorted(ends.ravel(), (of_row << BITS) + point, side="right") - of_row * size
    return found
