"""The drawing kernel against the exact weights, cell by cell.

    python -m tests.trials draws                                  1.1 * 10^10 draws, about ten minutes of one core
    python -m tests.trials draws --draws 2000000 --bias 0.01      a glance, in seconds

Seven protocols (2 to 40 outputs, weights of 0 and of 1 over 2^62, a row that reads the secret, unary encoding's coins)
are drawn from with the kernel of a run: fresh, and permanent for entities that are numbers and texts.

  map         every u there is leads to its output: counted segment by segment, each output by exactly its weight
  rule        the first `--draws` draws are each compared with the published rule, written a second time
  cells       counts of every cell, by the exact tails of the binomial distribution, and of every row as a whole;
              some rows go on until each of their cells shows a bias of `--bias` by its count alone
  pairs       of neighbouring entities, keys, inputs and blocks, by the exact tails of the product of their chances
  words       every byte and bit of the words, and of one word xor the next
  injected    the bias moved between two outputs of the kernel's protocol: map, rule and cells each have to refuse

Keys come from the operating system, so every run is a new sample; an honest kernel fails it with chance `--error`
(half of it shared among the cells, half among all other tests, so that no test of one hides in the many). With
`--seed-label` the keys, and so the permanent draws, are those of the label.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from funnel.data import AnyProtocol, Protocol
from funnel.draw.draw import CHUNK, Drawer, InverseTable
from funnel.draw.entity import read_entities
from funnel.draw.keys import Key
from funnel.draw.prf import Buffer, FreshUniforms, PermanentUniforms
from tests.trials.drawing import layout
from tests.trials.drawing.layout import (
    BLOCKS,
    CELLS,
    FRESH,
    LINES,
    NUMBERS,
    PROTOCOLS,
    ROWS,
    TEXTS,
    WAYS,
    Line,
    Row,
)
from tests.trials.drawing.rule import Codes, Rule
from tests.trials.drawing.tails import MISS, enough, shares, shows, together, two_sided
from tests.trials.drawing.telling import as_json, summary

SHARES = {FRESH: 0.46, NUMBERS: 0.46, TEXTS: 0.08}
"""Of the draws that are compared one by one; a text costs ten times a number."""
BATCH = 1 << 16
CYCLE = 10
"""Batches of each way at least: every input of every block comes first and second."""

Told = Callable[[str], None]
Pair = tuple[str, str, str]


@dataclass
class Trial:
    """What was counted and what was found."""

    error: float
    bias: float
    secrets: layout.Secrets
    told: Told = lambda _: None
    cells: dict[Row, Codes] = field(default_factory=dict)
    pairs: dict[Pair, tuple[list[int], list[int], Codes]] = field(default_factory=dict)
    words: dict[str, Codes] = field(default_factory=dict)
    followed: dict[Row, int] = field(default_factory=dict)
    injected: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    other_tests: int = 0
    least: dict[str, float] = field(default_factory=dict)

    @property
    def level(self) -> float:
        """The chance with which one cell may fail by chance."""
        return self.error / 2 / CELLS

    @property
    def other_level(self) -> float:
        """The same for one of the other tests, once they are counted."""
        return self.error / 2 / self.other_tests

    @property
    def compared(self) -> int:
        """Those of them that were compared with the rule, one by one."""
        return sum(self.followed.values())

    @property
    def draws(self) -> int:
        """All draws that were counted."""
        return sum(int(counts.sum()) for counts in self.cells.values())

    def count(self, row: Row, outputs: Codes) -> None:
        """Outputs of a row."""
        size = len(row.weights)
        self.cells[row] = self.cells.get(row, 0) + np.bincount(outputs, minlength=size)


def table_finding(source: Protocol, name: str, truth: Protocol | None = None) -> Iterator[str]:
    """Outputs that another number of uniforms leads to than has to.

    The table looks at a uniform only through its bucket and through comparisons with thresholds, so its answer is
    the same between two neighbouring ones of these: a look at the first and the last of each segment is a look at all.
    """
    table, truth = InverseTable(source), truth or source
    buckets = 1 << 64 - int(table._bucket_shift)
    width = (1 << source.bits) // buckets
    for code, thresholds in enumerate(source.thresholds()):
        ends = np.sort(np.concatenate([np.arange(buckets + 1, dtype=np.int64) * width, thresholds]))
        starts, lengths = ends[:-1][np.diff(ends) > 0], np.diff(ends)[np.diff(ends) > 0]
        shift = np.uint64(64 - source.bits)
        inputs = np.full(len(starts), code, np.int64)
        first = table.draw(inputs, starts.astype(np.uint64) << shift)
        last = table.draw(inputs, ((starts + lengths).astype(np.uint64) << shift) - np.uint64(1))
        led = np.zeros(len(source.outputs), np.int64)
        np.add.at(led, first, lengths)
        right = truth.weights.reshape(len(truth.outputs), -1)[:, code].astype(object) << (
            source.bits - truth.bits
        )
        if (first != last).any() or (led != right).any():
            yield f"map: {name}, input {code + 1}: uniforms do not lead to outputs by their weights"


def _batches(draws: int) -> list[int]:
    """Rows of each batch, for so many draws of three batches of every line, but for answers that are repeated."""
    rows = max(2, math.ceil(draws / (3 * len(LINES) - sum(line.inputs == 1 for line in LINES))))
    many = max(CYCLE, math.ceil(rows / BATCH))
    return [-(-rows // many // 2) * 2] * many


def compare(trial: Trial, way: str, draws: int) -> None:
    """Draw all blocks together: each draw against the rule, its cell and its pairs counted."""
    sources = list(PROTOCOLS.values())
    first, second = trial.secrets(f"{way} 1"), trial.secrets(f"{way} 2")
    one, other = (
        layout.watched(sources, secret, way) for secret in (first, first if way == FRESH else second)
    )
    entity, batches = 0, _batches(draws)
    for number, rows in enumerate(batches):
        trial.told(f"{way}, compared: batch {number + 1} of {len(batches)}")
        codes, changed = ([(number + step) % line.inputs for line in _heads()] for step in (0, 1))
        ask = partial(_asked, trial, layout.people(way, entity, rows), way)
        drawn, again, apart = ask(one, codes), ask(one, changed), ask(other, codes)
        for line in LINES:
            block = BLOCKS.index(line.name)
            _count_line(
                trial,
                way,
                line,
                (codes[block], changed[block]),
                [line.read(x[block]) for x in (drawn, again, apart)],
            )
        _count_blocks(trial, way, codes, drawn)
        entity += rows


def _heads() -> list[Line]:
    return [next(line for line in LINES if line.name == name) for name in BLOCKS]


def _asked(trial: Trial, who: Any, way: str, kernel: tuple[Drawer, Rule], codes: list[int]) -> list[Codes]:
    """One batch through the kernel, compared with the rule."""
    drawer, rule = kernel
    rows = len(who)
    entity = None if way == FRESH else layout.column(who)
    drawn = drawer.draw(layout.batch(list(PROTOCOLS.values()), codes, rows, entity))
    outputs = [column.to_numpy() for column in drawn.columns]
    for name, found, right in zip(BLOCKS, outputs, rule.draw(codes, rows, who), strict=True):
        wrong = int((found != right).sum())
        if wrong:
            trial.findings.append(f"rule: {way}, {name}: {wrong:,} of {rows:,} draws are not by the rule")
    return outputs


def _count_line(trial: Trial, way: str, line: Line, codes: tuple[int, int], drawn: list[Codes]) -> None:
    """Cells of a line, and pairs with the next entity, another input and another key."""
    code, changed = codes
    here, again, apart = drawn
    row = Row(way, line, code)
    trial.count(row, here)
    trial.count(row, apart)
    weights = row.weights
    _count_pair(
        trial, (way, f"{line}, input {code + 1}", "the next entity"), weights, weights, here[0::2], here[1::2]
    )
    _count_pair(trial, (way, f"{line}, input {code + 1}", "another key"), weights, weights, here, apart)
    if way != FRESH and changed == code:
        if (here != again).any():
            trial.findings.append(f"rule: {row}: the same entity answers otherwise")
        return
    trial.count(Row(way, line, changed), again)
    what = (way, f"{line}, input {code + 1}", f"input {changed + 1}")
    _count_pair(trial, what, weights, line.weights(changed), here, again)


def _count_blocks(trial: Trial, way: str, codes: list[int], drawn: list[Codes]) -> None:
    """Pairs of each line with the next one, in the same rows."""
    seen = [
        (line, codes[BLOCKS.index(line.name)], line.read(drawn[BLOCKS.index(line.name)])) for line in LINES
    ]
    for (line, code, here), (after, other, there) in pairwise(seen):
        what = (way, f"{line}, input {code + 1}", f"{after}, input {other + 1}")
        _count_pair(trial, what, line.weights(code), after.weights(other), here, there)


def _count_pair(
    trial: Trial, what: Pair, one: list[int], other: list[int], here: Codes, there: Codes
) -> None:
    if what not in trial.pairs:
        trial.pairs[what] = (one, other, np.zeros(len(one) * len(other), np.int64))
    counts = trial.pairs[what][2]
    counts += np.bincount(here.astype(np.int64) * len(other) + there, minlength=len(counts))


def deepen(trial: Trial, row: Row) -> None:
    """Go on with a row, in entities of its own, until each cell shows the bias by its count."""
    wanted = enough(shares(row.weights), trial.level, trial.bias) - int(trial.cells[row].sum())
    secret = trial.secrets(f"{row.way} 1")
    for outputs in _outputs(
        PROTOCOLS[row.line.name], row, secret, wanted, partial(trial.told, f"{row}, counted")
    ):
        trial.count(row, outputs)


def _outputs(
    source: AnyProtocol, row: Row, secret: bytes, rows: int, told: Callable[[], None]
) -> Iterator[Codes]:
    """That many draws of a row by a kernel of its own, batch by batch."""
    kernel, first = layout.drawer([source], secret, row.way), 1 << 40
    codes = layout.batch([source], [row.code], 16 * BATCH, None)
    while rows > 0:
        told()
        part = codes.slice(0, min(rows, codes.num_rows))
        if row.way != FRESH:
            part = part.append_column("entity", layout.column(layout.people(row.way, first, part.num_rows)))
        yield kernel.draw(part).column(0).to_numpy()
        first, rows = first + part.num_rows, rows - part.num_rows


def read_words(trial: Trial, way: str, words: int) -> None:
    """Bytes of the kernel's words, and of each second word xor the one before."""
    key = Key(trial.secrets(f"{way} words"))
    source = PROTOCOLS["coin"]
    noise, answers, buffer = (
        FreshUniforms(key, trial.secrets(f"{way} nonce")[:16]),
        PermanentUniforms(key, source),
        Buffer(CHUNK),
    )
    alone, apart = (
        trial.words.setdefault(f"{way}, {what}", np.zeros((8, 256), np.int64))
        for what in ("word", "word xor the next")
    )
    for first in range(0, words, CHUNK):
        if way == FRESH:
            found = noise.words(first, 0, CHUNK, buffer)
        else:
            people = read_entities(layout.column(layout.people(way, first, CHUNK)))
            found = answers.words(people, np.zeros(CHUNK, np.int64), buffer)
        for counts, part in ((alone, found), (apart, found[0::2] ^ found[1::2])):
            octets = np.ascontiguousarray(part).view(np.uint8).reshape(-1, 8)
            for place in range(8):
                counts[place] += np.bincount(octets[:, place], minlength=256)


def judge(trial: Trial) -> None:
    """All counts against their chances."""
    for row, counts in trial.cells.items():
        if row.deep and not shows(counts.sum(), shares(row.weights), trial.level, trial.bias).all():
            trial.findings.append(f"cells: {row}: too few draws to see a bias of {trial.bias:g}")
        chances = two_sided(counts, counts.sum(), shares(row.weights))
        _note(trial, "cells", float(chances.min()), trial.level, f"{row}: output {int(chances.argmin()) + 1}")
    tests = list(_others(trial))
    trial.other_tests = sum(many for _, _, _, many in tests)
    for kind, what, chance, _ in tests:
        _note(trial, kind, chance, trial.other_level, what)


def _note(trial: Trial, kind: str, chance: float, level: float, what: str) -> None:
    trial.least[kind] = min(chance, trial.least.get(kind, 1.0))
    if chance < level:
        trial.findings.append(f"{kind}: {what} has p = {chance:.2g}, below {level:.2g}")


def _others(trial: Trial) -> Iterator[tuple[str, str, float, int]]:
    """Kind, what, the least chance and the number of tests that it is the least of."""
    for row, counts in trial.cells.items():
        yield "rows", str(row), together(counts, row.weights), 1
    for what, (one, other, counts) in trial.pairs.items():
        weights = [a * b for a in one for b in other]
        chances = two_sided(counts, counts.sum(), shares(weights))
        yield (
            "pairs",
            " with ".join((f"{what[0]}, {what[1]}", what[2])),
            float(chances.min()),
            sum(map(bool, weights)),
        )
        yield (
            "pairs",
            " with ".join((f"{what[0]}, {what[1]}", what[2])) + ", as a whole",
            together(counts, weights),
            1,
        )
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    for name, counts in trial.words.items():
        total = counts[0].sum()
        yield "words", f"{name}, a byte's value", float(two_sided(counts, total, 1 / 256).min()), counts.size
        yield "words", f"{name}, a bit", float(two_sided(counts @ bits, total, 1 / 2).min()), 64


def inject(trial: Trial, way: str, name: str) -> None:
    """The bias in the kernel's own protocol: the map, the rule and the cell's count each have to refuse it."""
    row = Row(way, Line(name), 0)
    source, cell = layout.tilted(name, row.code, trial.bias)
    share = float(shares(row.weights)[cell])
    draws = enough(share, trial.level, trial.bias)
    told = partial(trial.told, f"{way}, {name}: a bias of {trial.bias:g} injected")
    counts = np.zeros(len(row.weights), np.int64)
    for outputs in _outputs(source, row, trial.secrets(f"{way} injected {name}"), draws, told):
        counts += np.bincount(outputs, minlength=len(counts))
    chance = float(two_sided(counts[cell], draws, share))
    true = PROTOCOLS[name]
    assert isinstance(true, Protocol)
    seen = {
        "map": any(table_finding(source, name, true)),
        "rule": _broken(trial, way, source, true, row.code),
        "cells": chance < trial.level,
    }
    trial.injected.append({"way": way, "protocol": name, "chance": share, "draws": draws, "p": chance} | seen)
    missed = [what for what, found in seen.items() if not found]
    if missed:
        trial.findings.append(
            f"injected: {way}, {name}: a bias of {trial.bias:g} was not seen by {', '.join(missed)}"
        )


def _broken(trial: Trial, way: str, source: AnyProtocol, true: AnyProtocol, code: int) -> bool:
    """Whether draws of a changed protocol differ from the rule of the true one, within -ln(MISS) / bias of them."""
    secret, rows = trial.secrets(f"{way} broken"), math.ceil(-math.log(MISS) / trial.bias)
    kernel, rule = layout.watched([source], secret, way)
    who = layout.people(way, 0, rows)
    found = kernel.draw(layout.batch([source], [code], rows, None if way == FRESH else layout.column(who)))
    rule._protocols = [true]
    return bool((found.column(0).to_numpy() != rule.draw([code], rows, who)[0]).any())


def run(
    draws: int, bias: float, error: float, label: str | None = None, told: Told = lambda _: None
) -> Trial:
    """The whole trial."""
    trial = Trial(error, bias, layout.Secrets(label), told)
    for name, source in PROTOCOLS.items():
        if isinstance(source, Protocol):
            trial.findings += table_finding(source, name)
    for way in WAYS:
        compare(trial, way, math.ceil(draws * SHARES[way]))
        read_words(trial, way, math.ceil(draws * SHARES[way]))
    trial.followed = {row: int(counts.sum()) for row, counts in trial.cells.items()}
    for row in filter(lambda row: row.deep, ROWS):
        deepen(trial, row)
    judge(trial)
    for way, name in layout.INJECTED:
        inject(trial, way, name)
    return trial


def main(arguments: list[str]) -> int:
    """Run from the command line; exit code 0 only if every test held and every injected bias was seen."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.trials draws",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--draws", type=int, default=100_000_000, help="draws compared one by one (100,000,000)"
    )
    parser.add_argument("--bias", type=float, default=1e-4, help="what the deep rows have to show (1e-4)")
    parser.add_argument(
        "--error", type=float, default=1e-6, help="chance with which an honest kernel fails (1e-6)"
    )
    parser.add_argument("--seed-label", help="keys made from this label instead of the system's randomness")
    parser.add_argument("--json", action="store_true", help="every cell, as JSON")
    asked = parser.parse_args(arguments)
    if not 0 < asked.bias <= 0.04 or not 0 < asked.error < 1 or asked.draws < 1:
        parser.error("at least one draw, a bias above 0 and up to 0.04, and an error between 0 and 1")
    begun = time.process_time()
    trial = run(asked.draws, asked.bias, asked.error, asked.seed_label, _shown())
    tell = as_json if asked.json else summary
    print(tell(trial, time.process_time() - begun))
    return 1 if trial.findings else 0


def _shown() -> Told:
    """A line that changes, on a terminal only."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r{text[:100]:<100}", end="", file=sys.stderr, flush=True)
