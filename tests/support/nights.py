"""What several nights tell somebody who reads the published protocols and knows the people: by brute force."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

Night = tuple[object, str | tuple[str, ...]]
"""Of one person in one night: the identifier and the value, of several columns the values."""
Steps = tuple[Fraction, ...]
"""Where the released values of one input end, among all random numbers."""


def steps_of(protocol: Path) -> dict[Any, Steps]:
    """The one block of a protocol.json: for each input the cumulative chances of its outputs."""
    (block,) = json.loads(protocol.read_text())["blocks"]
    rows = [accumulate(column) for column in zip(*block["weights"], strict=True)]
    return {
        label[0] if len(label) == 1 else tuple(label): tuple(Fraction(end, 1 << block["bits"]) for end in row)
        for label, row in zip(block["inputs"], rows, strict=True)
    }


def real_leakage(
    people: Sequence[tuple[str, Sequence[Night]]],
    nights: Sequence[Mapping[Any, Steps]],
    *,
    permanent: bool = True,
) -> float:
    """max |ln P(y|s)/P(y)| over what all nights can answer, for these people with their secrets.

    Permanent draws for one identifier and value share their random number; all others are independent.
    """
    secrets = Counter(s for s, _ in people)
    joint: dict[tuple[int, ...], Counter[str]] = {}
    for (s, path), many in Counter((s, tuple(path)) for s, path in people).items():
        for answers, chance in _answers(path, nights, permanent=permanent).items():
            joint.setdefault(answers, Counter())[s] += many * chance
    worst = 0.0
    for told in joint.values():
        whole = Fraction(sum(told.values())) / len(people)
        for s, many in secrets.items():
            given = Fraction(told[s]) / many
            worst = max(worst, math.inf if not given else abs(math.log(given / whole)))
    return worst


def _answers(
    path: Sequence[Night], nights: Sequence[Mapping[Any, Steps]], *, permanent: bool
) -> dict[tuple[int, ...], Fraction]:
    """The chance of every sequence of answers of one person."""
    groups: dict[object, list[int]] = {}
    for place, one in enumerate(path):
        groups.setdefault(one if permanent else place, []).append(place)
    found = {(0,) * len(path): Fraction(1)}
    for places in groups.values():
        ends = sorted({Fraction(0), *(end for place in places for end in nights[place][path[place][1]])})
        law: dict[tuple[int, ...], Fraction] = {}
        for low, high in pairwise(ends):
            told = tuple(sum(low >= end for end in nights[place][path[place][1]]) for place in places)
            law[told] = law.get(told, Fraction(0)) + high - low
        both = ((before, dict(zip(places, told, strict=True)), a * b) for before, a in found.items()
                for told, b in law.items())  # fmt: skip
        found = {tuple(new.get(i, old) for i, old in enumerate(before)): chance for before, new, chance in both}
    return found
