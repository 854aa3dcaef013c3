"""Leakage by writing every output out: fractions, no cleverness, and nothing of the kernel."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

from funnel.format.protocol import Sets, Weights

One = Fraction(1)


def chance(block, s: int, x: int, y: int) -> Fraction:
    whole = 1 << block.bits
    if isinstance(block, Weights):
        row = block.weights[y]
        return Fraction(row[s][x] if block.secret else row[x], whole)
    a, found = len(block.inputs), One
    for other in range(a):
        one = Fraction(block.present if other == x else block.absent, whole)
        found *= one if y >> (a - 1 - other) & 1 else 1 - one
    return found


def outputs(block) -> range:
    return range(len(block.outputs)) if isinstance(block, Weights) else range(1 << len(block.inputs))


def seen(cells, blocks, keep=lambda x: True) -> dict[int, dict[tuple[int, ...], Fraction]]:
    """P(s, y) of the records whose x is kept, unnormalised."""
    found: dict[int, dict[tuple[int, ...], Fraction]] = {}
    for *codes, count in cells:
        s, x = codes[0], tuple(codes[1:])
        if not keep(x):
            continue
        row = found.setdefault(s, {})
        for y in product(*map(outputs, blocks)):
            mass = count * math.prod((chance(b, s, v, w) for b, v, w in zip(blocks, x, y, strict=True)), start=One)
            row[y] = row.get(y, Fraction(0)) + mass
    return found


def given(table) -> tuple[dict, dict]:
    """P(y|s) and P(y)."""
    total = sum(sum(row.values()) for row in table.values())
    ys = next(iter(table.values())).keys()
    alone = {y: sum(row[y] for row in table.values()) / total for y in ys}
    return {s: {y: mass / sum(row.values()) for y, mass in row.items()} for s, row in table.items()}, alone


def worst(pairs) -> Fraction | None:
    best = One
    for high, low in pairs:
        if high and not low:
            return None
        best = max(best, high / low) if low else best
    return best


def rises(table):
    by, alone = given(table)
    return worst((row[y], alone[y]) for row in by.values() for y in alone)


def falls(table):
    by, alone = given(table)
    return worst((alone[y], row[y]) for row in by.values() for y in alone)


def larger(*ratios):
    return None if None in ratios else max(ratios)


def lip(cells, blocks):
    table = seen(cells, blocks)
    return larger(rises(table), falls(table))


def ldp(cells, blocks):
    by, alone = given(seen(cells, blocks))
    return worst((one[y], other[y]) for one in by.values() for other in by.values() for y in alone)


def ldp_x(cells, blocks):
    secrets = sorted({row[0] for row in cells})
    found = One
    for block in blocks:
        inputs = list(product(secrets, range(len(block.inputs))))
        rows = [[chance(block, *one, y) for one in inputs] for y in outputs(block)]
        ratio = worst((i, j) for row in rows for i in row for j in row)
        if ratio is None:
            return None
        found *= ratio
    return found


def srlip(cells, blocks):
    """Labels of all columns together, every subset of them, every value that occurs."""
    labels = {tuple(row[1:-1]): sum((blocks[j].inputs[code] for j, code in enumerate(row[1:-1])), ()) for row in cells}
    width, best = len(next(iter(labels.values()))), One
    for size in range(width + 1):
        for places in combinations(range(width), size):
            for known in {tuple(label[p] for p in places) for label in labels.values()}:
                table = seen(cells, blocks, lambda x: tuple(labels[x][p] for p in places) == known)  # noqa: B023
                ratio = larger(rises(table), falls(table))
                if ratio is None:
                    return None
                best = max(best, ratio)
    return best


def pml(cells, blocks):
    return rises(seen(cells, blocks))


def lowered(cells, blocks):
    return falls(seen(cells, blocks))


def information(cells, blocks, public: bool = False) -> float:
    """I(S;Y), or I(X;Y), in floats."""
    table: dict = {}
    for *codes, count in cells:
        row = table.setdefault(tuple(codes[1:]) if public else codes[0], {})
        for y in product(*map(outputs, blocks)):
            mass = count * math.prod(
                float(chance(b, codes[0], v, w)) for b, v, w in zip(blocks, codes[1:], y, strict=True)
            )
            row[y] = row.get(y, 0.0) + mass
    total = sum(sum(row.values()) for row in table.values())
    marginal: dict = {}
    for row in table.values():
        for y, mass in row.items():
            marginal[y] = marginal.get(y, 0.0) + mass
    return sum(
        mass / total * math.log(mass * total / (sum(row.values()) * marginal[y]))
        for row in table.values()
        for y, mass in row.items()
        if mass
    )


def entropy(cells) -> float:
    by: dict = {}
    for row in cells:
        by[tuple(row[1:-1])] = by.get(tuple(row[1:-1]), 0) + row[-1]
    total = sum(by.values())
    return -sum(n / total * math.log(n / total) for n in by.values())


def is_sets(block) -> bool:
    return isinstance(block, Sets)
