"""Blocks put together: several public columns as one alphabet, and codes of the one from codes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from funnel.data.alphabet import Alphabet
from funnel.data.joint import IntArray, Joint


def together(joint: Joint) -> Joint:
    """All blocks as one: an alphabet of the combinations that occur, in the order of the blocks' codes."""
    if len(joint.blocks) == 1:
        return joint
    combinations, code = np.unique(joint.cells[:, 1:], axis=0, return_inverse=True)
    columns = tuple(column for block in joint.blocks for column in block.columns)
    values = tuple(
        tuple(part for block, x in zip(joint.blocks, combination, strict=True) for part in block.values[x])
        for combination in combinations
    )
    cells = np.column_stack([joint.cells[:, 0], code.ravel()]).astype(np.int64)
    paths = {column: path for block in joint.blocks for column, path in block.paths.items()}
    whole = Joint(joint.secret, (Alphabet(columns, values, paths),), cells, joint.counts)
    if joint.finer is None:
        return whole
    placed = joint.finer.placed
    codes = Recoder(joint)(list(placed[:, 1:].T))
    return replace(whole, finer=joint.finer.moved(np.column_stack([placed[:, 0], codes])))


class Recoder:
    """Codes of `together(joint)` from codes of each block of `joint`."""

    def __init__(self, joint: Joint) -> None:
        self._sizes = joint.shape[1:]
        self._known: list[IntArray] = []
        prefix = np.zeros(len(joint.cells), np.int64)
        for size, codes in zip(self._sizes, joint.cells[:, 1:].T, strict=True):
            known, prefix = np.unique(prefix * size + codes, return_inverse=True)
            self._known.append(known)

    def __call__(self, codes: Sequence[IntArray]) -> IntArray:
        """Codes (rows,) from one array (rows,) per block; -1 for a combination that does not occur."""
        prefix = np.zeros(len(codes[0]), np.int64)
        for size, known, own in zip(self._sizes, self._known, codes, strict=True):
            flat = np.where(prefix < 0, -1, prefix * size + own)
            place = np.minimum(np.searchsorted(known, flat), len(known) - 1)
            prefix = np.where(known[place] == flat, place, -1)
        return prefix


def tells_secret(joint: Joint) -> bool:
    """Whether every sensitive column is also among the public ones."""
    public = {column for block in joint.blocks for column in block.columns}
    return set(joint.secret.columns) <= public


def possible(joint: Joint) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which x can occur with s at all, (c, a) of a joint of one block: where x tells s, only its own."""
    (block,) = joint.blocks
    if not tells_secret(joint):
        return np.ones(joint.shape, bool)
    place = [block.columns.index(column) for column in joint.secret.columns]
    told = [tuple(value[i] for i in place) for value in block.values]
    return np.array([[value == one for one in told] for value in joint.secret.values], bool)
