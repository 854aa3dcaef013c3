"""What somebody may know of a person beforehand, and the records that agree on it.

SRLIP ([DS] Definition 3) asks this of every set J of columns; a notion may name the columns, or how many. Columns are
known by what is released of them, and by all that known.json tells beside: their own values, groups of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np

from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.records import Block, Joint, by_axis, sums, table
from funnel.audit.kernel.verdict import Broken
from funnel.format.cells import Wide
from funnel.format.fields import Label
from funnel.format.known import NAME, OWN, RELEASED, KnownFile
from funnel.format.manifest import Manifest


@dataclass(frozen=True, eq=False)
class Known:
    """Records by s and x (m, 1+k) and by the values (m, l) of each level, 0 where none is told; `number` of each (m,).

    `columns` (l,) are those that the levels tell of. Somebody may know `knows` columns together, whichever they are, or
    those that it names, or all of them; any x_J that at least `minimum` records share.
    """

    columns: tuple[str, ...]
    codes: IntArray
    values: IntArray
    number: IntArray
    knows: int | tuple[str, ...] | None = None
    minimum: int = 1

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Every set J of levels, one of a column at most; the empty one first."""
        columns, knows = list(dict.fromkeys(self.columns)), self.knows
        if isinstance(knows, tuple):
            columns = [column for column in columns if column in knows]
        for size in range((knows if isinstance(knows, int) else len(columns)) + 1):
            for chosen in combinations(columns, size):
                yield from product(*([i for i, one in enumerate(self.columns) if one == name] for name in chosen))

    def groups(self) -> Iterator[IntArray]:
        """The rows of `codes` that agree on x_J, for every J and every x_J that enough records share."""
        for places in map(list, self.sets()):
            told = np.flatnonzero((self.values[:, places] > 0).all(axis=1))
            order = told[np.lexsort(self.values[told][:, places].T)] if places else told
            seen = self.values[order][:, places]
            for rows in np.split(order, np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1):
                if not places or self.number[rows].sum() >= self.minimum:  # who knows nothing is always there
                    yield rows


def everything(counts: IntArray, blocks: Sequence[Block]) -> Known:
    """Of records N[s, x_1, …, x_k] any columns, as they are released."""
    codes = np.argwhere(counts)
    columns, values = zip(*_released([(one.columns, one.inputs) for one, *_ in by_axis(blocks)], codes), strict=True)
    return Known(columns, codes, np.column_stack(values), counts[tuple(codes.T)])


def known(file: KnownFile, joint: Joint, manifest: Manifest, wide: Sequence[Wide] = ()) -> Known:
    """The same counts by what may be known of columns, and of those inside cells, of which only the file tells.

    Raises Broken where it counts other records, or tells nothing of a column.
    """
    knows, axes = manifest.parameters.knows, len(joint.shape)
    rows = table(NAME, file.cells, [*joint.shape, *(len(level.values) + 1 for level in file.levels)])
    codes, told, number = rows[:, :axes], rows[:, axes:-1], rows[:, -1]
    if (sums(codes, number, joint.shape) != joint.dense()).any():
        raise Broken(NAME, "records are counted otherwise than in counts.json", joint.rows, int(number.sum()))
    inside = {one.name: [column.name for column in one.columns] for one in wide}
    labels = _released([(one.columns, one.values) for one in joint.alphabets[1:]], codes)
    plain = {name: values for name, values in labels if name not in inside}
    # What the file says is released of a plain column is what its labels say: these are taken.
    shown = {level.column: place for place, level in enumerate(file.levels) if level.level in (OWN, RELEASED)}
    more = [place for place, one in enumerate(file.levels) if one.column not in plain or place != shown.get(one.column)]
    columns = (*plain, *(file.levels[place].column for place in more))
    asked = {*chain.from_iterable(inside.values()), *(knows if isinstance(knows, tuple) else ())}
    if missing := asked - {*columns}:
        raise Broken(NAME, "nothing is told of a column that may be known", min(missing), "no level")
    values = np.column_stack([*plain.values(), *told[:, more].T])
    return Known(columns, codes, values, number, knows, manifest.estimate.minimum)


def _released(
    alphabets: Sequence[tuple[tuple[str, ...], tuple[Label, ...]]], codes: IntArray
) -> Iterator[tuple[str, IntArray]]:
    """What the labels of x say of each column: a code from 1 on for every row (m,)."""
    for (columns, labels), x in zip(alphabets, codes[:, 1:].T, strict=True):
        for name, values in zip(columns, zip(*labels, strict=True), strict=True):
            code = {value: place for place, value in enumerate(values, start=1)}
            yield name, np.array([code[value] for value in values])[x]
