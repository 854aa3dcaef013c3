"""Who keeps every published table, is told which rows are of one person, and knows everybody: exact Bayes over all.

The code is its own: of funnel it reads published protocols alone. What a person answers to all releases has the chance
of the overlaps of intervals: a permanent answer follows from one uniform number for a key, the block's columns, the
person's name and the value as it is called; whoever is not in a release answers by that. Floating point, to 1e-12.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from tests.trials.attacking.published import Floats

Label = tuple[str | None, ...]
Steps = tuple[float, ...]
Draw = tuple[Hashable, Steps]
"""What repeats a uniform number, and where outputs end for who draws."""
ABSENT = -1


@dataclass(frozen=True)
class Block:
    """One block of protocol.json that draws without the secret: where the chances of outputs end, by input."""

    columns: tuple[str, ...]
    ends: Mapping[Label, Steps]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Block:
        """From its JSON."""
        if told["kind"] != "weights" or told["secret"] is not None:
            raise ValueError("draws read the secret, or are sets")
        whole, inputs = 1 << told["bits"], map(tuple, told["inputs"])
        rows = zip(inputs, zip(*told["weights"], strict=True), strict=True)
        ends = {label: tuple(end / whole for end in accumulate(row)) for label, row in rows}
        return cls(tuple(told["columns"]), ends)

    def label(self, values: Sequence[object]) -> Label:
        """The input by which true values are drawn for: themselves, their intervals, or `other`."""
        return tuple(
            self._name(place, None if value is None else str(value)) for place, value in enumerate(values)
        )

    def _name(self, place: int, value: str | None) -> str | None:
        known = {label[place] for label in self.ends}
        if value is None or value in known:
            return value
        return next((name for name in known if name and _within(name, value)), "other")


def _within(interval: str, value: str) -> bool:
    """Whether a number lies in a half-open interval as releases name it."""
    low, comma, high = interval.strip("[)").partition(", ")
    if not comma:
        return False
    return float(low) <= float(value) and (high == "∞" or float(value) < float(high))


def blocks(release: Path) -> list[Block]:
    """The protocol of a published folder."""
    return [Block.of(told) for told in json.loads((release / "protocol.json").read_text())["blocks"]]


Answers = tuple[int, ...]
Draws = tuple[Draw | None, ...]
"""Of one kind of person: the draws of all releases, block by block; None where they are absent."""


def learnt(people: Mapping[tuple[Hashable, Draws], int], measure: str) -> float:
    """What all answers tell of the secret, in nats of a measure: how many people there are of each (secret, draws)."""
    secrets = list(dict.fromkeys(s for s, _ in people))
    table: dict[Answers, Floats] = {}
    laws: dict[Draws, list[tuple[Answers, float]]] = {}
    for (s, path), many in people.items():
        for answers, chance in laws.setdefault(path, list(_answers(path))):
            table.setdefault(answers, np.zeros(len(secrets)))[secrets.index(s)] += many * chance
    return MEASURES[measure](np.array(list(table.values())))


def _answers(path: Draws) -> Iterator[tuple[Answers, float]]:
    """The chance of every sequence of answers of one person."""
    groups: dict[Hashable, list[int]] = {}
    for place, draw in enumerate(path):
        groups.setdefault(("absent", place) if draw is None else draw[0], []).append(place)
    laws = [list(_overlaps([path[place] for place in places])) for places in groups.values()]
    order = [place for places in groups.values() for place in places]
    for together in product(*laws):
        told = dict(zip(order, (y for answers, _ in together for y in answers), strict=True))
        yield tuple(told[place] for place in range(len(path))), math.prod(chance for _, chance in together)


def _overlaps(draws: Sequence[Draw | None]) -> Iterator[tuple[Answers, float]]:
    """One uniform number and all that follows from it."""
    steps = [draw[1] for draw in draws if draw is not None]
    if not steps:
        yield (ABSENT,), 1.0
        return
    for low, high in pairwise(sorted({0.0, *(end for one in steps for end in one)})):
        yield tuple(sum(low >= end for end in one) for one in steps), high - low


def _lip(table: Floats) -> float:
    ratios = _posterior(table) / _prior(table)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(ratios)).max())


def _pml(table: Floats) -> float:
    return float(np.log((_posterior(table) / _prior(table)).max()))


def _ldp(table: Floats) -> float:
    given = table / table.sum(axis=0)
    with np.errstate(divide="ignore"):
        return float(np.log(given.max(axis=1) / given.min(axis=1)).max())


def _information(table: Floats) -> float:
    ratios = _posterior(table) / _prior(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nansum(table / table.sum() * np.log(ratios)))


def _posterior(table: Floats) -> Floats:
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _prior(table: Floats) -> Floats:
    return np.asarray(table.sum(axis=0) / table.sum())


MEASURES = {"lip": _lip, "ldp": _ldp, "pml": _pml, "alip": _pml, "mutual_information": _information, "ldp_x": _ldp}
"""By the names that ledgers give them, of P(y, s) up to a factor (y, s); of the usual LDP, the LDP that it bounds."""
