"""Side knowledge: what is left to tell about the secret for someone who knows some of the public columns.

Attributes are columns: whoever is protected against may know any of them, whatever the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from funnel.data.channel import measured
from funnel.data.joint import IntArray, Joint
from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable
from funnel.data.unary import AnyProtocol


@dataclass(frozen=True, eq=False)
class Known:
    """The records that share the values of some columns: `inside` are blocks all of whose columns are known.

    `cells` (m, 1+k) and `counts` (m,) are those of the joint distribution.
    """

    inside: frozenset[int]
    cells: IntArray
    counts: IntArray

    @property
    def open(self) -> bool:
        """Whether more than one value of the secret is left."""
        return len(np.unique(self.cells[:, 0])) > 1


def side_knowledge(joint: Joint, *, everything: bool = False) -> Iterator[Known]:
    """Every x_J that occurs, for every set J of public columns, the empty set first.

    Only groups in which more than one secret value occurs: in the others there is nothing to tell. The set of all
    columns is left out unless `everything`: who knows all of x learns no more from a draw that reads x alone.
    """
    places = [(j, i) for j, block in enumerate(joint.blocks) for i in range(len(block.columns))]
    parts = np.column_stack([_part_codes(joint, j, i) for j, i in places])
    for size in range(len(places) + everything):
        for chosen in combinations(range(len(places)), size):
            inside = _inside(joint, [places[column] for column in chosen])
            for rows in _groups(parts[:, chosen]):
                known = Known(inside, joint.cells[rows], joint.counts[rows])
                if known.open:
                    yield known


def tables_given(
    joint: Joint, known: Known, released: Mapping[int, AnyProtocol], index: int
) -> Iterator[ExactArray]:
    """N[s, x_index] (c, a) given x_J and every combination of what other blocks put out.

    What a block puts out whose columns are all known is noise, unless its protocol reads the secret.
    """
    active = {j: protocol for j, protocol in released.items() if _matters(known, j, protocol)}
    table = _released(joint, known, active, [index])
    flat = table.reshape(len(table), table.shape[1], -1)
    for y in range(flat.shape[2]):
        one = flat[:, :, y]
        if (one.any(axis=1)).sum() > 1:
            yield one


def released_given(joint: Joint, known: Known, protocols: Sequence[AnyProtocol]) -> ReleasedTable:
    """T[s, y…] given x_J, over the blocks whose outputs say anything; (c,) where none does."""
    active = {j: one for j, one in enumerate(protocols) if _matters(known, j, one)}
    if len(active) == 1:
        ((block, single),) = active.items()
        return single.released(_counted(joint, known, [block]))
    return _released(joint, known, active, [])


def _matters(known: Known, index: int, protocol: AnyProtocol) -> bool:
    return protocol.reads_secret or index not in known.inside


def _released(joint: Joint, known: Known, active: Mapping[int, AnyProtocol], kept: list[int]) -> ExactArray:
    """Counts over (s, x_kept…, y_active…) of the records known."""
    table = _counted(joint, known, [*kept, *active])
    return measured(table, dict(enumerate(active.values(), start=1 + len(kept))))


def _counted(joint: Joint, known: Known, blocks: Sequence[int]) -> IntArray:
    """Counts N[s, x_j…] of the records known, over some blocks."""
    table = np.zeros((len(joint.secret), *(len(joint.blocks[j]) for j in blocks)), np.int64)
    np.add.at(table, (known.cells[:, 0], *(known.cells[:, 1 + j] for j in blocks)), known.counts)
    return table


def _part_codes(joint: Joint, block: int, part: int) -> IntArray:
    """Codes (m,) of one column of one block in every cell."""
    values = [value[part] for value in joint.blocks[block].values]
    place = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return np.array([place[value] for value in values], np.int64)[joint.cells[:, 1 + block]]


def _inside(joint: Joint, columns: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Blocks all of whose columns are among those given."""
    known = [block for block, _ in columns]
    return frozenset(j for j, block in enumerate(joint.blocks) if known.count(j) == len(block.columns))


def _groups(parts: IntArray) -> list[IntArray]:
    """Row numbers of equal rows."""
    if parts.shape[1] == 0:
        return [np.arange(len(parts))]
    _, group = np.unique(parts, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
