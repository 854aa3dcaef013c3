"""Records by what somebody may know of them, and what they tell such a person, written out in fractions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint
from funnel.data.finer import finer
from funnel.format.known import OWN, RELEASED, Level


def known_joint(records, columns, minimum: int = 1) -> Joint:
    """Counts of (s, x_1, …, x_k, values…), a Counter; `columns` are a name and a level for each of the values."""
    rows = sorted(records)
    width = len(rows[0]) - len(columns)
    codes = np.array([[int(code) for code in row] for row in rows], np.int64)
    counts = np.array([records[row] for row in rows], np.int64)
    sizes = codes.max(axis=0) + 1
    cells, place = np.unique(codes[:, :width], axis=0, return_inverse=True)
    summed = np.zeros(len(cells), np.int64)
    np.add.at(summed, place.ravel(), counts)
    alphabets = [Alphabet((f"b{j}",), tuple((f"{j}:{v}",) for v in range(sizes[j]))) for j in range(width)]
    levels = [Level(name, level, tuple(f"v{v}" for v in range(sizes[width + i])))
              for i, (name, level) in enumerate(columns)]  # fmt: skip
    seen = finer(codes[:, :width], counts, levels, codes[:, width:], minimum)
    return Joint(alphabets[0], tuple(alphabets[1:]), cells, summed, complete=False, finer=seen)


def by_definition(records, columns, weights, knows, minimum: int) -> Fraction | None:
    """e^ε: over every J, x_J, s and y by sums over the records; None where it is infinite."""
    width, worst = len(next(iter(records))) - len(columns), Fraction(1)
    outputs = list(itertools.product(*(range(len(block)) for block in weights)))
    for places in sets_of(columns, knows):
        groups: dict[tuple[int, ...], Counter] = {}
        for row, number in records.items():
            groups.setdefault(tuple(row[width + place] for place in places), Counter())[row] += number
        for group in groups.values():
            if not places or group.total() >= minimum:
                found = _worst(group, outputs, weights)
                if found is None:
                    return None
                worst = max(worst, found)
    return worst


def sets_of(columns, knows):
    """Every set of places that may be known together: one level of a column at most."""
    for size in range(len(columns) + 1):
        for places in itertools.combinations(range(len(columns)), size):
            names = [columns[place][0] for place in places]
            allowed = size <= knows if isinstance(knows, int) else set(names) <= set(knows)
            if allowed and len(set(names)) == size:
                yield places


def _worst(group: Counter, outputs, weights) -> Fraction | None:
    worst = Fraction(1)
    by_secret = Counter()
    for row, number in group.items():
        by_secret[row[0]] += number
    for y in outputs:
        mass = Counter()
        for row, number in group.items():
            chances = (int(block[z][x]) for block, z, x in zip(weights, y, row[1:], strict=False))
            mass[row[0]] += number * math.prod(chances)
        if not mass.total():
            continue
        for s, number in by_secret.items():
            if not mass[s]:
                return None
            ratio = Fraction(mass[s] * group.total(), number * mass.total())
            worst = max(worst, ratio, 1 / ratio)
    return worst


@st.composite
def known_records(draw: st.DrawFn, blocks: int = 2):
    """Records of up to two blocks with two or three columns, one of which is known coarsely too; and what they are."""
    sizes = [draw(st.integers(2, 3)), *(draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, blocks))))]
    columns = [("age", OWN), ("age", RELEASED), ("sex", OWN), ("town", OWN)][: draw(st.integers(2, 4))]
    records: Counter = Counter()
    for _ in range(draw(st.integers(4, 14))):
        codes = [draw(st.integers(0, size - 1)) for size in sizes]
        age = draw(st.integers(0, 3))
        values = [age, age // 2, draw(st.integers(0, 1)), draw(st.integers(0, 2))][: len(columns)]
        records[(*codes, *values)] += draw(st.integers(1, 6))
    for j, size in enumerate(sizes):  # every code occurs
        for code in range(size):
            records[(*(code if i == j else 0 for i in range(len(sizes))), *(0 for _ in columns))] += 1
    return records, columns
