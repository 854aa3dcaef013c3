"""What the trial of the draws tells: its summary, and every cell."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from funnel.data import Protocol
from tests.trials.drawing.layout import BLOCKS, CELLS, PROTOCOLS, WAYS
from tests.trials.drawing.tails import MISS, shares, smallest, two_sided

if TYPE_CHECKING:
    from tests.trials.draws import Trial

Cells = list[dict[str, Any]]


def table(trial: Trial) -> Cells:
    """Every cell: its exact weight, its count, its chance, and the smallest bias that it would have shown."""
    cells = []
    for row, counts in trial.cells.items():
        total, weights = int(counts.sum()), row.weights
        chances = two_sided(counts, total, shares(weights))
        least = smallest(total, shares(weights), trial.level)
        common = {"way": row.way, "protocol": row.line.name, "line": str(row.line), "input": row.code + 1}
        for output, weight in enumerate(weights):
            exact = {"output": output + 1, "weight": weight, "of": sum(weights)}
            found = {"draws": total, "count": int(counts[output]), "p": float(chances[output])}
            cells.append(common | exact | found | {"smallest_bias": float(least[output])})
    return cells


def as_json(trial: Trial, seconds: float) -> str:
    """All of it."""
    return json.dumps(
        {
            "held": not trial.findings,
            "findings": trial.findings,
            "draws": trial.draws,
            "compared": trial.compared,
            "error": trial.error,
            "bias": trial.bias,
            "refused_below": {"cells": trial.level, "others": trial.other_level},
            "overlooked_with_chance": MISS,
            "other_tests": trial.other_tests,
            "least": trial.least,
            "injected": trial.injected,
            "cells": table(trial),
            "processor_seconds": seconds,
        },
        indent=1,
    )


def summary(trial: Trial, seconds: float) -> str:
    """What a stranger has to know."""
    return "\n".join([*_tests(trial, seconds), "", *_seen(trial), "", *_injected(trial), *_end(trial)])


def _tests(trial: Trial, seconds: float) -> Iterator[str]:
    tables = sum(isinstance(one, Protocol) for one in PROTOCOLS.values())
    least = ", ".join(f"{kind} {trial.least[kind]:.2g}" for kind in ("rows", "pairs", "words"))
    yield f"{trial.draws:,} draws counted in {seconds:.0f} s of processor time"
    yield f"  map    {tables} tables, the output of every uniform there is counted"
    yield f"  rule   {trial.compared:,} draws compared with the rule, one by one"
    yield f"  cells  {CELLS:,} cells, refused below p = {trial.level:.2g}: least p {trial.least['cells']:.2g}"
    yield (
        f"  others {trial.other_tests:,} tests of rows, pairs and words, refused below p = {trial.other_level:.2g}: "
        f"least p {least}"
    )
    yield f"an honest kernel fails this trial with chance {trial.error:g} at most"


def _seen(trial: Trial) -> Iterator[str]:
    cells, heading = table(trial), f"cells at {trial.bias:g}"
    yield f"smallest bias that is seen (overlooked with chance {MISS:g} at most), by the count of each cell alone"
    yield (
        f"{'drawn':<19} {'protocol':<9} {'cells':>5} {'draws of a row':>14} {'in every cell':>14} {'median':>8} "
        f"{heading:>15}"
    )
    for way, name in ((way, name) for way in WAYS for name in BLOCKS):
        own = [cell for cell in cells if cell["way"] == way and cell["protocol"] == name]
        least = np.array([cell["smallest_bias"] for cell in own])
        yield (
            f"{way:<19} {name:<9} {len(own):>5} {min(cell['draws'] for cell in own):>14,}"
            f" {least.max():>14.1e} {np.median(least):>8.1e} {int((least <= trial.bias).sum()):>15}"
        )
    followed = -math.log(MISS) / min(trial.followed.values())
    yield f"by the comparison with the rule: {followed:.1e} in every cell of every row; by the map: any"
    for share, what in ((1 / 256, "the value of a byte"), (1 / 2, "a bit")):
        seen = (smallest(trial.words[f"{way}, word"][0].sum(), share, trial.other_level) for way in WAYS)
        yield f"of words, {what}: " + "; ".join(
            f"{way} {one:.1e}" for way, one in zip(WAYS, seen, strict=True)
        )


def _injected(trial: Trial) -> Iterator[str]:
    for one in trial.injected:
        by = ", ".join(what for what in ("map", "rule", "cells") if one[what])
        yield (
            f"a bias of {trial.bias:g} injected into {one['way']}, {one['protocol']} (chance {one['chance']:.4f}): "
            f"seen by {by}; p = {one['p']:.1g} after {one['draws']:,} draws"
        )


def _end(trial: Trial) -> Iterator[str]:
    yield from trial.findings
    told = "the kernel draws otherwise, or a test is blind" if trial.findings else "all held"
    yield f"{len(trial.findings)} findings: {told}"
