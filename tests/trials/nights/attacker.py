"""A Bayesian attacker who reads every release of the year, and is told which rows are of one person.

The code is its own: it takes nothing from funnel, only the published protocols and rows. All probabilities are exact;
floating point only says which of them to work out. What the attacker knows:

- every release and its protocol, and which of its rows is whose (the truth is asked for this alone);
- tonight's joint distribution of the secret and the public values as they are, before rare ones become `other`;
- which releases share a key. Under one key the answers for one value follow from one uniform number, those for
  different values from independent ones: [0, 1) is cut by each protocol, and answers together have the chance of the
  overlap of their intervals.

`beliefs` is about a person whose values stayed the same: how far any belief P(s) moves, at the answers that this
person really gave. `worst` goes through all answers that anybody could give. `paths` is about a person whose values
changed at times that the attacker knows, and where the secret may decide everything: the odds between any two ways of
having these values at these times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from tests.trials.nights.bayes import Joint, log
from tests.trials.nights.table import Truth

OTHER = "other"
Seen = tuple[tuple[int, int], ...]
"""Answers of one block: the number of the source, and of the output."""


@dataclass(frozen=True)
class Source:
    """One block's protocol under one key: what repeats an answer when it is asked again."""

    key: str
    protocol: str
    block: int


@dataclass(frozen=True)
class Block:
    """A published protocol: `ends[x]` are its weights for a value x, added up, in parts of 2^-bits."""

    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    bits: int
    ends: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, told: Mapping[str, object]) -> Block:
        """From protocol.json."""
        weights, inputs = np.array(told["weights"], object), [value for (value,) in told["inputs"]]  # type: ignore[attr-defined]
        ends = {x: tuple(np.cumsum(weights[:, place]).tolist()) for place, x in enumerate(inputs)}
        outputs = tuple(value for (value,) in told["outputs"])  # type: ignore[attr-defined]
        return cls(tuple(told["columns"]), outputs, int(told["bits"]), ends)  # type: ignore[arg-type,call-overload]

    def label(self, value: str) -> str | None:
        """The name under which a value was drawn for; None where it cannot have been in the release."""
        return value if value in self.ends else OTHER if OTHER in self.ends else None

    def interval(self, label: str, output: int) -> tuple[Fraction, Fraction]:
        """Where the uniform number of a record was that gave this answer."""
        ends = (0, *self.ends[label])
        return Fraction(ends[output], 1 << self.bits), Fraction(ends[output + 1], 1 << self.bits)


@dataclass
class Person:
    """What was published about one person: values so far, and the answer to every (source, label)."""

    values: set[tuple[str, str]] = field(default_factory=set)
    labels: set[tuple[str, ...]] = field(default_factory=set)
    answers: tuple[dict[tuple[int, str], int], ...] = field(default_factory=lambda: ({}, {}))
    last: object = None
    _seen: tuple[Seen, ...] | None = None

    def seen(self) -> tuple[Seen, ...]:
        """The answers of both blocks, whatever they were asked for."""
        if self._seen is None:
            self._seen = tuple(
                tuple((source, y) for (source, _), y in given.items()) for given in self.answers
            )
        return self._seen

    def add(self, sources: Sequence[int], labels: Sequence[str], given: Sequence[int]) -> bool:
        """Answers of one release; whether the same question was answered as before, or is a new one."""
        self._seen = None
        asked = zip(self.answers, sources, labels, given, strict=True)
        alike = [known.setdefault((source, label), y) == y for known, source, label, y in asked]
        return all(alike)


class Attacker:
    """Everything that was published so far."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.blocks: list[Block] = []
        self.people: dict[int, Person] = {}
        self._laws: dict[object, list[list[Fraction]]] = {}
        self.chance, self.odds = cache(self._chance), cache(self._odds)

    def read(self, release: Path, key: str) -> list[int]:
        """A release's protocol; the numbers of the sources of its answers, block by block."""
        content = (release / "protocol.json").read_bytes()
        name = json.loads((release / "release.json").read_text())["files"]["protocol.json"]["sha256"]
        sources = []
        for place, told in enumerate(json.loads(content)["blocks"]):
            source = Source(key, name, place)
            if source not in self.sources:
                self.sources.append(source)
                self.blocks.append(Block.of(told))
            sources.append(self.sources.index(source))
        return sources

    def link(self, sources: Sequence[int], truth: Truth, answers: Mapping[int, tuple[int, ...]]) -> list[int]:
        """Add a release's rows to their people; those who answered the same question in another way than before."""
        changed = []
        for person, given in answers.items():
            known, values = self.people.setdefault(person, Person()), truth[person][1]
            if known.last == (sources, values, given):
                continue
            known.last = (sources, values, given)
            labels = [str(self.blocks[one].label(value)) for one, value in zip(sources, values, strict=True)]
            known.values.add(values)
            known.labels.add(tuple(labels))
            if not known.add(sources, labels, given):
                changed.append(person)
        return changed

    def _chance(self, seen: Seen, value: str) -> Fraction:
        """P(answers | value), where the value stayed the same: one factor for each key and label."""
        found: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
        for source, y in seen:
            block = self.blocks[source]
            label = block.label(value)
            if label is None:
                return Fraction(0)
            low, high = block.interval(label, y)
            name = (self.sources[source].key, label)
            before = found.get(name, (low, high))
            found[name] = max(before[0], low), min(before[1], high)
        return math.prod((max(high - low, Fraction(0)) for low, high in found.values()), start=Fraction(1))

    def beliefs(self, truth: Truth, people: Sequence[int]) -> float:
        """max |ln P(s|answers)/P(s)| over people whose values stayed the same and all s."""
        joint = Joint.of(truth)
        pairs = {self.people[one].seen() for one in people}
        chances = [
            {
                seen: [self.chance(seen, value) for value in joint.values[block]]
                for seen in {one[block] for one in pairs}
            }
            for block in (0, 1)
        ]
        return joint.worst_of([(chances[0][one], chances[1][two]) for one, two in pairs])

    def worst(self, truth: Truth) -> float:
        """The same over all answers that are possible, each block's by itself being told apart from the others."""
        joint = Joint.of(truth)
        rows = [self._law(block, joint.values[block]) for block in (0, 1)]
        return joint.worst_of_all(*rows)

    def _law(self, block: int, values: Sequence[str]) -> list[list[Fraction]]:
        """Chances of all answers of one block to all releases so far, for each value; equal directions once."""
        sources = [number for number, one in enumerate(self.sources) if one.block == block]
        name = (tuple(sources), tuple(values))
        if name not in self._laws:
            keys = dict.fromkeys(self.sources[one].key for one in sources)
            parts = [
                self._tuples([one for one in sources if self.sources[one].key == key], values) for key in keys
            ]
            self._laws[name] = reduce(_products, parts)
        return self._laws[name]

    def _tuples(self, sources: Sequence[int], values: Sequence[str]) -> list[list[Fraction]]:
        """The same under one key."""
        found: dict[tuple[int, ...], list[Fraction]] = {}
        for place, value in enumerate(values):
            for answer, chance in self._answers(sources, value).items():
                found.setdefault(answer, [Fraction(0)] * len(values))[place] = chance
        return _directions(found.values())

    def _answers(self, sources: Sequence[int], value: str) -> dict[tuple[int, ...], Fraction]:
        """Under one key, all answers to several protocols for one value that stays the same."""
        labels = [self.blocks[one].label(value) for one in sources]
        pieces = []
        for label in dict.fromkeys(labels):
            places = [i for i, other in enumerate(labels) if other == label]
            pieces.append([
                (tuple(zip(places, answer, strict=True)), chance)
                for answer, chance in self._overlaps([sources[i] for i in places], label)
            ])  # fmt: skip
        found: dict[tuple[int, ...], Fraction] = {}
        for together in product(*pieces):
            answer = dict(one for piece, _ in together for one in piece)
            found[tuple(answer[i] for i in range(len(sources)))] = math.prod(chance for _, chance in together)
        return found

    def _overlaps(self, sources: Sequence[int], label: str | None) -> list[tuple[tuple[int, ...], Fraction]]:
        """One uniform number, several protocols; -1 where a value that no protocol knows was in no release."""
        if label is None:
            return [((-1,) * len(sources), Fraction(1))]
        blocks = [self.blocks[one] for one in sources]
        cuts = sorted({Fraction(end, 1 << one.bits) for one in blocks for end in (0, *one.ends[label])})
        found = []
        for low, high in pairwise(cuts):
            answer = tuple(
                next(y for y, end in enumerate(one.ends[label]) if Fraction(end, 1 << one.bits) > low)
                for one in blocks
            )
            found.append((answer, high - low))
        return found

    def paths(self, person: int) -> tuple[float, int]:
        """ln of the largest odds between two ways of having values at these times, and how many values these are."""
        known, odds = self.people[person], Fraction(1)
        for answers in known.answers:
            asked: dict[str, list[tuple[int, int]]] = {}
            for (source, label), y in answers.items():
                asked.setdefault(label, []).append((source, y))
            for seen in asked.values():
                ratio = self.odds(tuple(seen))
                if ratio is None:
                    return math.inf, len(known.labels)
                odds *= ratio
        return log(odds), len(known.labels)

    def _odds(self, seen: Seen) -> Fraction | None:
        """max P(answers|v)/P(answers|v') over values that all of these protocols know; None: infinite."""
        known = [set(self.blocks[source].ends) for source, _ in seen]
        chances = [self.chance(seen, value) for value in sorted(set.intersection(*known))]
        return None if min(chances) == 0 else max(chances) / min(chances)


def _products(ones: Sequence[Sequence[Fraction]], twos: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """Independent answers side by side."""
    return _directions([p * q for p, q in zip(one, two, strict=True)] for one in ones for two in twos)


def _directions(rows) -> list[list[Fraction]]:
    """Rows that are multiples of each other say the same; each direction once, its largest part being 1."""
    tops = ((row, max(row)) for row in rows)
    return [list(row) for row in {tuple(part / top for part in row) for row, top in tops if top}]
