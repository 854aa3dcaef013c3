"""A branch and bound for tests, as simple as can be, and the proof that it yields; shares nothing with the program."""

from __future__ import annotations

import hashlib
import itertools
import math
import zlib
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog


@dataclass
class Boxes:
    """A tree of boxes: (parent, coordinate, cut, upper half), and per box its multipliers and level."""

    inequalities: Any
    cuts: list[tuple[int, int, float, bool]]
    multipliers: list[Any]
    levels: list[float]

    def __len__(self) -> int:
        return len(self.cuts)

    def packed(self) -> tuple[bytes, dict[str, Any]]:
        """proof.bin, and what solution.json says of it."""
        parent, which, at, upper = zip(*self.cuts, strict=True)
        support = [np.flatnonzero(one) for one in self.multipliers]
        raw = b"".join(
            np.asarray(part).astype(kind).tobytes()
            for kind, part in (
                ("<f8", self.inequalities),
                ("<i4", parent),
                ("<i4", which),
                ("<f8", at),
                ("u1", upper),
                ("<u4", [len(one) for one in support]),
                ("<u4", np.concatenate(support)),
                ("<f8", np.concatenate([y[one] for y, one in zip(self.multipliers, support, strict=True)])),
                ("<f8", self.levels),
            )
        )
        packed = zlib.compress(raw)
        return packed, self.told(packed)

    def told(self, packed: bytes) -> dict[str, Any]:
        """The sizes of the parts, and the hash of the file."""
        return {
            "sha256": hashlib.sha256(packed).hexdigest(),
            "inequalities": len(self.inequalities),
            "boxes": len(self.cuts),
            "multipliers": int(sum(np.count_nonzero(one) for one in self.multipliers)),
        }


def cone(counts: Any, notion: str, epsilon: float) -> Any:
    """Inequalities on w = p∘v from the definitions, one by one; for perfect privacy equations."""
    n, (c, a) = counts.sum(), counts.shape
    given = [[counts[s, x] / counts[s].sum() / (counts[:, x].sum() / n) for x in range(a)] for s in range(c)]
    up = math.exp(epsilon)
    if notion == "ldp-x":
        share = counts.sum(axis=0) / n
        unit = np.eye(a) / share
        return np.array([unit[x] - up * unit[z] for x in range(a) for z in range(a) if x != z])
    if notion == "ldp":
        pairs = itertools.permutations(range(c), 2)
        return np.array([[given[s][x] - up * given[t][x] for x in range(a)] for s, t in pairs])
    if notion == "perfect":
        return np.array(given) - 1
    return np.array(
        [*[[one - up for one in row] for row in given], *[[1 / up - one for one in row] for row in given]]
    )


def vertices(rows: Any, *, equal: bool = False) -> Any:
    """Every vertex of {w >= 0 : Σ w = 1, rows @ w <= 0}, by trying all sets of active constraints."""
    a = rows.shape[1]
    tight = np.vstack([np.eye(a), rows])
    found = []
    for chosen in itertools.combinations(range(len(tight)), a - 1):
        square = np.vstack([np.ones(a), tight[list(chosen)]])
        if abs(np.linalg.det(square)) < 1e-10:
            continue
        w = np.linalg.solve(square, np.eye(a)[0])
        excess = np.abs(rows @ w) if equal else rows @ w
        if w.min() > -1e-9 and excess.max(initial=0) < 1e-9:
            found.append(np.maximum(w, 0))
    return np.array(found)


def optimum(points: Any, prior: Any) -> tuple[float, Any]:
    """The best protocol whose rows are among the points: its information, and the duals λ."""
    worth = (xlogx(points) - points * np.log(prior)).sum(axis=1)
    found = linprog(-worth, A_eq=(points / prior).T, b_eq=np.ones(len(prior)))
    return -found.fun, -found.eqlin.marginals


def xlogx(values: Any) -> Any:
    return values * np.log(np.where(values > 0, values, 1))


def search(rows: Any, linear: Any, peak: float, *, equal: bool = False) -> Boxes:
    """Boxes that prove Σ w ln w - linear·w <= peak on the slice, halved at their widest, breadth first."""
    boxes = Boxes(rows, [(-1, 0, 0.0, False)], [], [])
    a = rows.shape[1]
    waiting = deque([(0, np.zeros(a), np.ones(a))])
    while waiting:
        box, low, high = waiting.popleft()
        bound, y, level = bounded(rows, linear, low, high, equal=equal)
        boxes.multipliers.append(y)
        boxes.levels.append(level)
        if bound <= peak:
            continue
        which = int(np.argmax(high - low))
        at = (low[which] + high[which]) / 2
        for upper in (False, True):
            lower, most = low.copy(), high.copy()
            (lower if upper else most)[which] = at
            waiting.append((len(boxes.cuts), lower, most))
            boxes.cuts.append((box, which, at, upper))
    return boxes


def bounded(rows: Any, linear: Any, low: Any, high: Any, *, equal: bool) -> tuple[float, Any, float]:
    """An over-estimate over a box, with the multipliers of the rows and of Σ w = 1 that show it."""
    chord = (xlogx(high) - xlogx(low)) / (high - low)
    base, a = float((xlogx(low) - chord * low).sum()), len(low)
    more = {} if equal else {"A_ub": rows, "b_ub": np.zeros(len(rows))}
    both = np.vstack([np.ones(a), rows]) if equal else np.ones((1, a))
    right = np.eye(len(both))[0]
    found = linprog(linear - chord, A_eq=both, b_eq=right, bounds=np.column_stack([low, high]), **more)
    if found.status == 2:
        return -math.inf, *impossible(rows, base + 100.0, low, high, equal=equal)
    duals = -found.eqlin.marginals
    y = duals[1:] if equal else -found.ineqlin.marginals
    return base - found.fun, y, float(duals[0])


def impossible(rows: Any, worth: float, low: Any, high: Any, *, equal: bool) -> tuple[Any, float]:
    """Multipliers that show a box to be empty: they cost more than anything in it can be worth."""
    a, signed = len(low), np.vstack([rows, -rows]) if equal else rows
    sides = np.hstack([signed, -np.ones((len(signed), 1))])
    found = linprog(
        np.eye(a + 1)[a], A_ub=sides, b_ub=np.zeros(len(signed)),
        A_eq=[[1.0] * a + [0.0]], b_eq=[1.0], bounds=[*zip(low, high, strict=True), (-10, 10)],
    )  # fmt: skip
    if found.status == 2:  # Σ w = 1 alone is impossible
        return np.zeros(len(rows)), 0.0
    y = -found.ineqlin.marginals * (1 + worth / found.fun)
    return (y[: len(rows)] - y[len(rows) :] if equal else y), float(-found.eqlin.marginals[0])
