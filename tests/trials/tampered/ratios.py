"""The exact leakage of counts and weights by brute force, as a forger would work it out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

Json = dict[str, Any]


def worst(joint: Json, blocks: list[Json]) -> dict[str, float | None]:
    """lip and ldp of T[s, y…] as the manifest states them; blocks that release sets are not handled."""
    sizes = [len(joint["secret"]["values"]), *(len(block["outputs"]) for block in blocks)]
    table = np.zeros(sizes, object)
    for s, *x, n in joint["cells"]:
        columns = [
            [row[s][code] if block["secret"] else row[code] for row in block["weights"]]
            for block, code in zip(blocks, x, strict=True)
        ]
        for y in product(*(range(len(column)) for column in columns)):
            table[(s, *y)] += n * int(
                np.prod([column[one] for column, one in zip(columns, y, strict=True)], dtype=object)
            )
    rows = [row for row in table.reshape(sizes[0], -1).tolist() if sum(row)]
    return {"lip": _figure(_lip(rows)), "ldp": _figure(_ldp(rows))}


def _lip(rows: list[list[int]]) -> Iterator[tuple[int, int]]:
    whole = sum(map(sum, rows))
    for column in zip(*rows, strict=True):
        for row, one in zip(rows, column, strict=True):
            if sum(column):
                yield one * whole, sum(row) * sum(column)
                yield sum(row) * sum(column), one * whole


def _ldp(rows: list[list[int]]) -> Iterator[tuple[int, int]]:
    for column in zip(*rows, strict=True):
        if sum(column):
            for i, j in product(range(len(rows)), repeat=2):
                yield column[i] * sum(rows[j]), column[j] * sum(rows[i])


def _figure(pairs: Iterator[tuple[int, int]]) -> float | None:
    """In nats, rounded up; None: infinite."""
    found = list(pairs)
    if any(below == 0 for _, below in found):
        return None
    ratio = max((Fraction(above, below) for above, below in found), default=Fraction(1))
    nats = math.log(ratio.numerator) - math.log(ratio.denominator)
    return math.ceil(nats * 10_000 - 1e-9) / 10_000
