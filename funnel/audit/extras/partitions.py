"""The cells of wide blocks against policy and counts: weights of rows rest on their shares.

Where a notion says what may be known, known.json tells it of columns inside cells; that has to be what cells make them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.cells.cells import Cells
from funnel.cells.columns import Vocabulary
from funnel.cells.profile import rounded
from funnel.errors import PlanError
from funnel.format.cells import NAME, Values
from funnel.format.counts import NAME as COUNTS
from funnel.format.known import MERGED, OWN, RELEASED, KnownFile
from funnel.format.known import NAME as KNOWN
from funnel.format.manifest import NAME as MANIFEST

CLAIM = "cells"
TITLE = (
    "there are cells where the policy asks for some, of its columns, as many and as large as it asks, and their shares"
    " are those of the counts that they were made from"
)
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """Of every wide block; those of a lock were as large on the night that it was made. Raises Broken."""
    as_asked(opened)
    if not opened.partitioned:
        return Unchecked(NOT_CLAIMED + "no block is wide")
    asked = {one.name: one for one in opened.terms.wide}
    agree(NAME, [
        ("wide blocks", list(asked), [one.name for one in opened.wide]),
        *((f"columns of {one.name}", [column.name for column in asked[one.name].columns],
           [column.name for column in one.columns]) for one in opened.wide if one.name in asked),
    ])  # fmt: skip
    numbers = _counted(opened)
    for one in opened.wide:
        if len(one) > asked[one.name].most:
            raise Broken(NAME, f"{one.name} has too many cells", asked[one.name].most, len(one))
        if numbers is not None:
            _fits(one, _records(opened, one, numbers), asked[one.name].minimum)
    if opened.manifest.parameters.knows is not None:
        for block, cells in zip(opened.partitioned, opened.wide, strict=True):
            for column, vocabulary in zip(block.columns, cells.columns, strict=True):
                if opened.manifest.locked is None:
                    as_known(column, opened.known_file)
                else:
                    as_locked(vocabulary, opened.known_file, opened.manifest.estimate.minimum)
    told = f"{counted(sum(map(len, opened.wide)), 'cell')} of {counted(len(opened.wide), 'wide block')}"
    if numbers is None:
        return Unchecked("the counts that the cells were made from are not kept with this release")
    if opened.manifest.locked is not None:
        filled = "what fills their rows is compared with no source, and how like the source that is, with --table FILE"
        return f"{told}; their counts are those that the lock was made from; {filled}"
    return f"{told}; what their rows are filled in with, and how like the source that is, --table FILE compares"


def as_asked(opened: Release) -> None:
    """A release is made of cells where its terms are: all else goes by whether it has any. Raises Broken."""
    agree(MANIFEST, [("whether there are cells", bool(opened.terms.wide), NAME in opened.manifest.files)])


def _fits(cells: Cells, records: IntArray, minimum: int) -> None:
    """Every cell has its support, and its share of the records. Raises Broken."""
    if records.min() < minimum:
        raise Broken(NAME, f"a cell of {cells.name} has too few records", minimum, int(records.min()))
    if (rounded(records.astype(float)) != cells.shares).any():
        raise Broken(NAME, f"the shares of {cells.name} are not those of the counts", "those counted", "others")


def as_known(column: Values, file: KnownFile) -> None:
    """Enough records share what is released of a column, so that of each record it may be known.

    A value that cells.json lists is released as itself; any other, and every rare one, as its level of merged values
    says. Raises Broken.
    """
    first = len(file.cells[0]) - 1 - len(file.levels)
    places = {first + i: one for i, one in enumerate(file.levels) if one.column == column.name}
    named = {one.level: (place, (None, *one.values)) for place, one in places.items()}
    own, values = named.get(RELEASED) or named[OWN]
    merged, shown = named.get(MERGED, (own, (None,)))
    for row in file.cells:
        code, to = row[own], row[merged] if len(shown) > 1 else 0
        listed = code > 0 and values[code] in column.values
        right = shown[to] in ([values[code]] if listed else column.values) if to else listed or not code
        if not right or not any(row[place] for place in places):
            raise _unlike(column.name, values[code])


def as_locked(column: Vocabulary, file: KnownFile, minimum: int) -> None:
    """What tonight's values are released as by the cells of a lock may be known where enough records share it.

    Where several values become one, that has a name of its own; records whose value has none, at no level, are fewer
    than `minimum` of each that they may be released as. Raises Broken.
    """
    first = len(file.cells[0]) - 1 - len(file.levels)
    places = {first + i: one for i, one in enumerate(file.levels) if one.column == column.name}
    named = {one.level: (place, one.values) for place, one in places.items()}
    own, values = named.get(RELEASED) or named[OWN]
    merged, shown = named.get(MERGED, (own, ()))
    try:
        becomes = [-1, *column.places(values).tolist()]
        stands = [-1, *(column.values.index(one) for one in shown)]
    except (PlanError, ValueError) as error:
        raise _unlike(column.name, str(error)) from None
    rows = [(row[own], row[merged] if shown else 0, any(row[place] for place in places), row[-1]) for row in file.cells]
    there, put = Counter(becomes[code] for code in {one[0] for one in rows} if code), {stands[one[1]] for one in rows}
    several = put if column.ordered else put & {column.other}
    for code, to, *_ in rows:
        together = becomes[code] in several or there[becomes[code]] > 1
        if code and stands[to] != (becomes[code] if together else -1):
            raise _unlike(column.name, values[code - 1])
    untold = sum(number for *_, shared, number in rows if not shared)
    if not put - {-1} <= several or untold > (minimum - 1) * len({*range(len(column))} - {*there} - put):
        raise _unlike(column.name, f"{untold} records without a value that may be known")


def _unlike(column: str, found: str | None) -> Broken:
    return Broken(KNOWN, "what is released of a column is not what cells make of it", column, found)


def _records(opened: Release, cells: Cells, numbers: Sequence[IntArray]) -> IntArray:
    """Records of each cell (m,), by those of each value of each block (a,)."""
    found = np.zeros(len(cells), np.int64)
    for alphabet, number in zip(opened.alphabets, numbers, strict=True):
        if cells.name in alphabet.columns:
            place = alphabet.columns.index(cells.name)
            np.add.at(found, [int(value[place] or 0) - 1 for value in alphabet.values], number)
    return found


def _counted(opened: Release) -> list[IntArray] | None:
    """Records of each value of each block (a,) when cells were made; None of a lock that keeps those of one before.

    Raises Broken.
    """
    numbers: list[IntArray] = [opened.joint.of_axis(axis) for axis in range(1, len(opened.joint.shape))]
    if opened.manifest.locked is None:
        return numbers
    if opened.manifest.locked.fixed is not None or opened.counts.locked is None:
        return None
    agree(COUNTS, [("values under the lock", [*map(len, numbers)], [*map(len, opened.counts.locked)])])
    return [np.array([*one], np.int64) for one in opened.counts.locked]
