"""What a wide release does to its columns, from the records: for the private folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

import numpy as np

from funnel.cells.accuracy import accuracies, chances, law_of_labels
from funnel.cells.columns import Codes
from funnel.cells.counts import counted, tallied
from funnel.cells.distance import QUANTILES, coding, expected
from funnel.data import AnyProtocol, Protocol
from funnel.data.joint import FloatArray, IntArray
from funnel.errors import InternalError
from funnel.format import distances as files
from funnel.plan.partition import Partition
from funnel.plan.protect import Settled

_DECIMALS = 6


def distances_file(release: Settled) -> files.DistancesFile | None:
    """distances.json of a release; None where no block is wide."""
    return distances_of(release.counted.partitions, release.protection.protocols, release.joint.table)


def distances_of(
    partitions: Sequence[Partition], protocols: Sequence[AnyProtocol], table: Callable[[int], IntArray]
) -> files.DistancesFile | None:
    """distances.json of some wide blocks and the protocols of all; `table` gives N[s, x] (c, a) of each of these."""
    if not partitions:
        return None
    blocks = tuple(_block(one, _law(one, protocols, table)) for one in partitions)
    return files.DistancesFile("funnel-distances/1", blocks)


def _block(one: Partition, law: FloatArray) -> files.BlockDistances:
    cells, (codes, records), size = one.cells, _codes(one), len(one.cells)
    labels = cells.assign(codes)
    seen = tallied(labels, size, records)
    true = [counted(own, len(column), labels, size, records) / np.maximum(seen, 1)[:, None]
            for own, column in zip(codes, cells.columns, strict=True)]  # fmt: skip
    shown = accuracies(law, true, chances(cells.profiles))
    merged = [(0, 0)] * len(codes) if one.made is None else [(each.values, each.records) for each in one.made.merged]
    columns = tuple(
        files.ColumnAccuracy(column.name, *rare, *(round(share, _DECIMALS) for share in vars(accuracy).values()))
        for column, rare, accuracy in zip(cells.columns, merged, shown, strict=True)
    )
    near, nobody = (_distances(one, codes, records, answered) for answered in (law.sum(axis=0), law.sum(axis=1)))
    return files.BlockDistances(cells.name, QUANTILES, columns, near, nobody)


def _law(one: Partition, protocols: Sequence[AnyProtocol], table: Callable[[int], IntArray]) -> FloatArray:
    """The law of labels of this wide block in the release."""
    for index, protocol in enumerate(protocols):
        if one.cells.name in protocol.inputs.columns and isinstance(protocol, Protocol):
            return law_of_labels(one.cells.name, len(one.cells), protocol, table(index))
    raise InternalError(f"nothing was drawn for {one.cells.name}")


def _distances(
    one: Partition, codes: Sequence[Codes], records: IntArray | None, labels: FloatArray
) -> tuple[tuple[float, ...], ...]:
    """Of every two columns (d, d), where labels are distributed so (m,)."""
    columns = one.cells.columns
    keys = list(combinations_with_replacement(range(len(columns)), 2))
    wanted = {key: key if key[0] != key[1] else key[:1] for key in keys}
    coded = [coding(column, own, records=records) for column, own in zip(columns, codes, strict=True)]
    found = expected(one.cells.profiles, labels, codes, coded, wanted.values(), records).of
    table = np.zeros((len(columns), len(columns)))
    for (a, b), key in wanted.items():
        table[a, b] = table[b, a] = round(found[key], _DECIMALS)
    return tuple(map(tuple, table.tolist()))


def _codes(one: Partition) -> tuple[list[Codes], IntArray | None]:
    """The columns' codes (n,) as they may be released, and the records of each row (n,), None: one.

    Under a lock in its values, without rows that it leaves out.
    """
    if one.made is not None:
        return list(one.made.codes), one.made.records
    pairs = zip(one.cells.columns, one.sources, strict=True)
    codes = [column.places(source.values)[source.codes] for column, source in pairs]
    kept = np.logical_and.reduce([own >= 0 for own in codes])
    records = one.sources[0].records
    return [own[kept] for own in codes], None if records is None else records[kept]
