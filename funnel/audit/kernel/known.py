"""What somebody may know of a person beforehand, as known.json tells it, and the records that agree on it.

SRLIP ([DS] Definition 3) asks this of every set J of columns; a notion may name the columns, or how many. Columns are
known by their own values and by those that they are put together to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np

from funnel.audit.kernel.counts import Joint, column
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.files import table
from funnel.audit.kernel.verdict import Broken
from funnel.format.cells import Values, Wide
from funnel.format.known import MERGED, NAME, OWN, RELEASED, KnownFile, Level
from funnel.format.manifest import Manifest


@dataclass(frozen=True, eq=False)
class Known:
    """Records by s and x (m, 1+k) and by the values (m, l) of each level, 0 where few share it; `number` of each (m,).

    Somebody may know `knows` columns together, whichever they are, or those that it names; any x_J that at least
    `minimum` records share.
    """

    levels: tuple[Level, ...]
    codes: IntArray
    values: IntArray
    number: IntArray
    knows: int | tuple[str, ...]
    minimum: int

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Every set J of levels, one of a column at most; the empty one first."""
        columns = list(dict.fromkeys(level.column for level in self.levels))
        if not isinstance(self.knows, int):
            columns = [column for column in columns if column in self.knows]
        for size in range((self.knows if isinstance(self.knows, int) else len(columns)) + 1):
            for chosen in combinations(columns, size):
                yield from product(*([i for i, one in enumerate(self.levels) if one.column == name] for name in chosen))

    def groups(self) -> Iterator[IntArray]:
        """The rows of `codes` that agree on x_J, for every J and every x_J that enough records share."""
        return (rows for places in self.sets() for rows in self.agreeing(places))

    def agreeing(self, places: tuple[int, ...]) -> Iterator[IntArray]:
        """The same for one J."""
        told = np.flatnonzero((self.values[:, places] > 0).all(axis=1))
        order = told[np.lexsort(self.values[told][:, places].T)] if places else told
        seen = self.values[order][:, places]
        for rows in np.split(order, np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1):
            if not places or self.number[rows].sum() >= self.minimum:  # who knows nothing is always there
                yield rows

    def uncovered(self) -> tuple[int, int, int]:
        """People with an x_J that too few share, columns by their finest levels; pairs of person and J; how many J."""
        finest = {*{level.column: place for place, level in reversed([*enumerate(self.levels)])}.values()}
        missed = np.zeros(len(self.number), np.int64)
        sets = [places for places in self.sets() if finest >= {*places}]
        for places in sets:
            missed += 1
            for rows in self.agreeing(places):
                missed[rows] -= 1
        return int(self.number[missed > 0].sum()), int(missed @ self.number), len(sets)


def known(file: KnownFile, joint: Joint, manifest: Manifest, wide: tuple[Wide, ...]) -> Known:
    """The same counts by what may be known of columns: released values as they are, where enough records share them.

    Every column has a level, those of wide blocks too. Raises Broken.
    """
    knows, axes, minimum = manifest.parameters.knows, len(joint.shape), manifest.estimate.minimum
    if knows is None:
        raise Broken(NAME, "the notion does not say what may be known", "a number or columns", knows)
    rows = table(NAME, file.cells, (*joint.shape, *(len(level.values) + 1 for level in file.levels)))
    found = np.zeros(joint.shape, np.int64)
    np.add.at(found, tuple(rows[:, :axes].T), rows[:, -1])
    if (found != joint.dense()).any():
        raise Broken(NAME, "records are counted otherwise than in counts.json", joint.rows, int(rows[:, -1].sum()))
    inside = {one.name: {column.name for column in one.columns} for one in wide}
    shown = {level.column: place for place, level in enumerate(file.levels) if level.level in (OWN, RELEASED)}
    every = set(chain.from_iterable(inside.get(name, {name}) for block in manifest.public for name in block))
    if missing := (every | {*(knows if isinstance(knows, tuple) else ())}) - {*shown}:
        raise Broken(NAME, "nothing is told of a column that may be known", min(missing), "no level")
    if manifest.locked is None:
        _shared(file.levels, rows[:, axes:-1], {*chain.from_iterable(inside.values())})
        for one in chain.from_iterable(block.columns for block in wide):
            if one.name in shown:
                _as_merged(one, file.levels, rows[:, axes:-1], shown[one.name])
    for axis, alphabet in enumerate(joint.alphabets[1:], start=1):
        for name in {*alphabet.columns} - {*inside}:
            told = rows[:, axes + shown[name]], file.levels[shown[name]].values
            _as_released(column(alphabet, name)[rows[:, axis]].tolist(), *told, rows[:, -1].tolist(), minimum)
    return Known(file.levels, rows[:, :axes], rows[:, axes:-1], rows[:, -1], knows, minimum)


def _shared(levels: tuple[Level, ...], codes: IntArray, inside: set[str]) -> None:
    """Enough records share what is released of a column inside cells, so that of every record it may be known.

    Its own value, or what cells merge that to; under a lock fewer may be left. Raises Broken.
    """
    for name in sorted(inside):
        places = [place for place, level in enumerate(levels) if level.column == name]
        if not codes[:, places].any(axis=1).all():
            raise Broken(NAME, "what is released of a column may be known, and is not told of all", name, "none")


def _as_merged(column: Values, levels: tuple[Level, ...], codes: IntArray, own: int) -> None:
    """What cells merge of a column is told as cells.json has it: a value listed there is itself, any other is merged.

    `own` is the place of the level that cells are made of. Raises Broken.
    """
    merged = [place for place, level in enumerate(levels) if (level.column, level.level) == (column.name, MERGED)]
    values, shown = (None, *levels[own].values), (None, *(levels[merged[0]].values if merged else ()))
    released = codes[:, merged[0]] if merged else np.zeros(len(codes), np.int64)
    for code, became in np.unique(np.column_stack([codes[:, own], released]), axis=0).tolist():
        listed = code > 0 and values[code] in column.values
        if not (shown[became] in ([values[code]] if listed else column.values) if became else listed or not code):
            raise Broken(NAME, "what is released of a column is not what cells make of it", column.name, values[code])


def _as_released(
    values: list[str | None], codes: IntArray, named: tuple[str | None, ...], number: list[int], minimum: int
) -> None:
    """What is released of a column may be known of it, wherever at least so many records share that."""
    shared: dict[str | None, int] = {}
    for value, records in zip(values, number, strict=True):
        shared[value] = shared.get(value, 0) + records
    for value, code in zip(values, codes.tolist(), strict=True):
        if (shared[value] >= minimum) != (code > 0) or (code and named[code - 1] != value):
            raise Broken(NAME, "what may be known of a column is not what is released of it", value, code)
