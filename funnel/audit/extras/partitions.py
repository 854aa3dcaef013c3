"""The cells of wide blocks against policy and counts: weights of rows rest on their shares."""

from __future__ import annotations

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.cells.cells import Cells
from funnel.cells.profile import rounded
from funnel.format.cells import NAME

CLAIM = "cells"
TITLE = "cells are of the policy’s columns, as many and as large as it asks, and their shares are those of the counts"
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """Of every wide block; those of a lock were as large on the night that it was made. Raises Broken."""
    if not opened.partitioned:
        return Unchecked(NOT_CLAIMED + "no block is wide")
    asked = {one.name: one for one in opened.terms.wide}
    agree(NAME, [
        ("wide blocks", list(asked), [one.name for one in opened.wide]),
        *((f"columns of {one.name}", [column.name for column in asked[one.name].columns],
           [column.name for column in one.columns]) for one in opened.wide if one.name in asked),
    ])  # fmt: skip
    for one in opened.wide:
        if len(one) > asked[one.name].most:
            raise Broken(NAME, f"{one.name} has too many cells", asked[one.name].most, len(one))
        if opened.manifest.locked is None:
            _fits(one, _records(opened, one), asked[one.name].minimum)
    cells = f"{counted(sum(map(len, opened.wide)), 'cell')} of {counted(len(opened.wide), 'wide block')}"
    return f"{cells}; what their rows are filled in with, and how like the source that is, --table FILE compares"


def _fits(cells: Cells, records: IntArray, minimum: int) -> None:
    """Every cell has its support, and its share of the records. Raises Broken."""
    if records.min() < minimum:
        raise Broken(NAME, f"a cell of {cells.name} has too few records", minimum, int(records.min()))
    if (rounded(records.astype(float)) != cells.shares).any():
        raise Broken(NAME, f"the shares of {cells.name} are not those of the counts", "those counted", "others")


def _records(opened: Release, cells: Cells) -> IntArray:
    """Records of each cell (m,), as counted."""
    found = np.zeros(len(cells), np.int64)
    for axis, alphabet in enumerate(opened.joint.alphabets):
        if axis and cells.name in alphabet.columns:
            place = alphabet.columns.index(cells.name)
            labels = [int(value[place] or 0) - 1 for value in alphabet.values]
            np.add.at(found, labels, opened.joint.of_axis(axis))
    return found
