"""Who knows how many records there are of each kind and sees every released row: what they believe of one row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests.trials.attacking.published import Floats

ROUNDS = 3000
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
