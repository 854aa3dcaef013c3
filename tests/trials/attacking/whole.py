"""Who knows how many records there are of each kind and sees every released row: what they believe of one row."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests.trials.attacking.bench import Bench, Table
from tests.trials.attacking.published import Codes, Floats
from tests.trials.attacking.row import NEAR, Row
from tests.trials.attacking.together import blocks

NAME = "the whole table"
ROUNDS = 3000
TERMS: dict[str, Any] = {
    "version": 1, "name": "whole", "source": {"table": "people.parquet"}, "sensitive": ["s"], "public": ["x"],
    "mechanism": "optimal", "draws": {"kind": "fresh"}, "release": {"to": "releases", "private": "private"},
}  # fmt: skip
SMALL = (
    ([[76, 111, 102], [0, 33, 78]], 0.5),
    ([[76, 111, 102], [20, 33, 78]], 0.0001),
    ([[20, 12, 8], [6, 14, 20]], 0.5),
)
ALIKE = 1e-3
"""Nats by which scaling may be off, and a bound by it."""
Value = tuple[str | None, ...]
"""What one alphabet says of a record: a text for each of its columns, None where it is missing."""


@dataclass(frozen=True)
class Whole:
    """By how many nats some row moves a belief, up and down, by its own value and with the whole table in view.

    `beyond` are the rows, of `rows`, that move one further than by `epsilon` nats.
    """

    alone: tuple[float, float]
    whole: tuple[float, float]
    beyond: int
    rows: int


def own(folder: Path) -> Iterator[Row]:
    """Tables small enough for the chances of all outcomes: P(s | y, all totals) is exact."""
    for number, (counts, epsilon) in enumerate(SMALL):
        rows = [(s, x) for s, row in enumerate(counts) for x, many in enumerate(row) for _ in range(many)]
        table = {"s": [f"s{s}" for s, _ in rows], "x": [f"x{x}" for _, x in rows]}
        bench = Bench(folder / str(number), TERMS | {"privacy": {"notion": "lip", "epsilon": epsilon}})
        bench.night(table)
        told, released = bench.told["observer"], json.loads((bench.releases[-1] / "released.json").read_text())
        (block,) = blocks(bench.releases[-1])
        chances = np.array([np.diff((0.0, *block.ends[f"x{x}",])) for x in range(len(counts[0]))])
        totals = np.zeros(chances.shape[1], int)
        for y, many in released["rows"]:
            totals[y] = many
        real = exactly(np.array(counts), chances, totals)
        yield _row(f"{len(rows)} records, ε {epsilon} ({told['how']})", told, real, NEAR)


def exactly(counts: Codes, chances: Floats, totals: Codes) -> tuple[float, float]:
    """How far a belief rises and falls, in nats: counts (c, a), chances (a, b) of y given x, totals (b,), b at most 3.

    E[K_xy | M] = N_x Q(y|x) Z(N - e_x, M - e_y) / Z(N, M) with Z(N, M) = P(M | N), by adding record after record.
    """
    values = counts.sum(axis=0)
    whole = _chances_of_totals(values, chances, totals)
    sent = np.zeros_like(chances)
    for x in range(len(values)):
        less = _chances_of_totals(values - np.eye(len(values), dtype=int)[x], chances, totals)
        for y in np.flatnonzero(totals):
            before = totals - np.eye(len(totals), dtype=int)[y]
            sent[x, y] = values[x] * chances[x, y] * less[tuple(before[1:])] / whole[tuple(totals[1:])]
    seen = np.flatnonzero(totals)
    beliefs = (counts / values) @ sent[:, seen] / totals[seen]
    return _ends(beliefs / (counts.sum(axis=1, keepdims=True) / counts.sum()))


def _chances_of_totals(values: Codes, chances: Floats, totals: Codes) -> Floats:
    """P(M | N) for all totals of the outputs but the first, up to `totals`."""
    found = np.zeros(totals[1:] + 1)
    found[(0,) * found.ndim] = 1.0
    for many, row in zip(values, chances, strict=True):
        for _ in range(many):
            new = found * row[0]
            for axis, chance in enumerate(row[1:]):
                ahead = [slice(None)] * found.ndim
                behind = [slice(None)] * found.ndim
                ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
                new[tuple(ahead)] += chance * found[tuple(behind)]
            found = new
    return found


def shipped(bench: Bench, table: Table, measure: str) -> Iterator[Row]:
    """What the run says of who knows all counts, against one who does."""
    folder, told = bench.releases[-1], bench.told["observer"]
    if told is None:
        return
    secrets = zip(*(table[name] for name in bench.terms["sensitive"]), strict=True)
    values = [
        [block.label(one) for one in zip(*(table[name] for name in block.columns), strict=True)]
        for block in blocks(folder)
    ]
    truth = Counter((s, *xs) for s, *xs in zip(secrets, *values, strict=True))
    found = moved(folder, truth, bench.terms["privacy"].get("epsilon", 0.0))
    yield _row(f"all counts known ({told['how']})", told, found.whole, ALIKE)


def _row(what: str, told: dict[str, Any], real: tuple[float, float], near: float) -> Row:
    """Both ends of what is told, None where there is no bound."""
    ends = [math.inf if told[name] is None else told[name] for name in ("rises", "falls")]
    held = all(one <= end + near for one, end in zip(real, ends, strict=True))
    claimed, found = (f"up {up:.4f}, down {down:.4f}" for up, down in (ends, real))
    return Row(NAME, what, claimed, found, held)


def moved(folder: Path, truth: Mapping[tuple[Value, ...], int], epsilon: float) -> Whole:
    """From protocol.json and released.json, and how many true records (s, x_1, …, x_k) there are of each kind.

    Blocks that draw without the secret. The likeliest table of draws with all totals, found by scaling rows and columns
    in turn, stands for the expected one: where many tables fit, that is out by less than one record in fifty.
    """
    blocks = json.loads((folder / "protocol.json").read_text())["blocks"]
    released = {tuple(y): number for *y, number in json.loads((folder / "released.json").read_text())["rows"]}
    kinds = list(dict.fromkeys(kind[1:] for kind in truth))
    secrets = list(dict.fromkeys(kind[0] for kind in truth))
    table = np.array([[truth.get((s, *kind), 0) for kind in kinds] for s in secrets], float)
    seen = [y for y in product(*(range(len(block["outputs"])) for block in blocks)) if y in released]
    chances = np.array([[_chance(blocks, y, kind) for kind in kinds] for y in seen])
    totals, counts = np.array([released[y] for y in seen], float), table.sum(axis=0)
    prior, given = table.sum(axis=1) / table.sum(), table / counts
    alone = (chances * counts) @ given.T
    factors = alone / alone.sum(axis=1, keepdims=True) / prior
    drawn = chances * counts
    for _ in range(ROUNDS):
        drawn *= (totals / drawn.sum(axis=1))[:, None]
        drawn *= counts / drawn.sum(axis=0)
    whole = drawn @ given.T / drawn.sum(axis=1, keepdims=True) / prior
    with np.errstate(divide="ignore"):
        most = np.abs(np.log(whole)).max(axis=1)
    return Whole(_ends(factors), _ends(whole), int(totals[most > epsilon + 1e-6].sum()), int(totals.sum()))


def _chance(blocks: list[dict[str, Any]], y: tuple[int, ...], kind: tuple[Value, ...]) -> float:
    found = 1.0
    for block, output, value in zip(blocks, y, kind, strict=True):
        found *= block["weights"][output][block["inputs"].index(list(value))] / (1 << block["bits"])
    return found


def _ends(factors: Floats) -> tuple[float, float]:
    with np.errstate(divide="ignore"):
        return float(np.log(factors.max())), float(-np.log(factors.min()))
