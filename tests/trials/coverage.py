"""Intervals of estimates over redraws: how often they hold the truth, and from which number of records on.

    python -m tests.trials coverage                        40,000 redraws of each table, a few minutes
    python -m tests.trials coverage --redraws 4000         a glance

Tables of growing size are sent through protocols again and again, from a seed of its own: nobody is protected here.
Each figure is worked out by the tally and the intervals of `funnel estimate`. A figure has settled where from some size
on its share of intervals that hold the truth is within half a percent of 95 %; three deviations, of fewer redraws.
Where no variance is free of bias, the conservative one may hold the truth more often.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from funnel.analyst.figures import ratio, total
from funnel.data import Alphabet, AnyProtocol, Protocol, UnaryProtocol
from funnel.measure.functionals import AtFace, Functional, Inverted, Tally, Undoing
from funnel.measure.recovery import inverse_of

CONFIDENCE, SLACK = 0.95, 0.005
SIZES = (100, 300, 1_000, 3_000, 10_000, 100_000)
BITS = 10


@dataclass(frozen=True, eq=False)
class Case:
    """A figure: Σ N f, over Σ N g where there is one; of shares (a_1, …) of the records, by blocks."""

    name: str
    blocks: Sequence[AnyProtocol]
    shares: np.ndarray
    f: np.ndarray
    g: np.ndarray | None = None
    face: bool = False
    conservative: bool = False


@dataclass(frozen=True)
class Covered:
    """How often the intervals of so many records held the truth; `about` is the true number that the figure is of."""

    name: str
    rows: int
    about: float
    coverage: float
    conservative: bool


def values(name: str, size: int) -> Alphabet:
    """x0, x1, …"""
    return Alphabet((name,), tuple((f"{name}{i}",) for i in range(size)))


def weights(rows: Sequence[Sequence[int]], name: str = "x") -> Protocol:
    """Weights [y][x] over 2^BITS."""
    grid = np.array(rows, np.int64)
    return Protocol(values(name, grid.shape[1]), values(f"{name}y", grid.shape[0]), BITS, grid[:, None, :])


def response(size: int, kept: int, name: str = "x") -> Protocol:
    """Randomised response: the true value with chance kept / 2^BITS."""
    other = ((1 << BITS) - kept) // (size - 1)
    grid = np.full((size, size), other, np.int64)
    np.fill_diagonal(grid, (1 << BITS) - other * (size - 1))
    return weights(grid.tolist(), name)


def cases() -> Iterator[Case]:
    """Figures of each kind."""
    three, two = response(3, 768), response(2, 832, "u")
    shares = np.array([0.6, 0.3, 0.1])
    both = np.outer(shares, [0.7, 0.3])
    both[0, 0], both[0, 1] = both[0, 0] - 0.05, both[0, 1] + 0.05
    cell = np.zeros((3, 2))
    cell[1, 1] = 1
    numbers = np.array([10.0, 20.0, 40.0])
    yield Case("a count", [three], shares, np.eye(3)[1])
    yield Case("a rare count", [three], shares, np.eye(3)[2])
    yield Case("a sum", [three], shares, numbers)
    yield Case("a cell of two blocks", [three, two], both, cell)
    yield Case("a mean in a subgroup", [three, two], both, np.outer(numbers, [0, 1]), np.outer(np.ones(3), [0, 1]))
    yield Case("a share in a subgroup", [three, two], both, cell, np.outer(np.ones(3), [0, 1]))
    yield Case("values that are near one another", [weights([[560, 520, 400], [300, 340, 200], [164, 164, 424]])],
               shares, np.eye(3)[0])  # fmt: skip
    yield Case("a set", [UnaryProtocol(values("x", 3), BITS, 512, 200)], shares, np.eye(3)[1])
    kept = weights([[896, 192, 192], [64, 768, 128], [64, 64, 704]])
    law = kept.weights[:, 0, :] / (1 << BITS)
    own = np.linalg.svd(law - np.eye(3))[2][-1]
    yield Case("a total that stays", [kept], own / own.sum(), np.eye(3)[1], face=True)
    tied = weights([[768, 256, 512], [256, 768, 512]])
    yield Case("a sum whose square is not known", [tied], shares, np.array([1.0, -1.0, 0.0]), conservative=True)


def tried(case: Case, rows: int, redraws: int, random: np.random.Generator) -> Covered:
    """The share of redraws of so many records in which the interval holds the truth."""
    counts = np.floor(case.shares * rows + 0.5).astype(np.int64)
    undoing = _undoing(case)
    true, below = float((counts * case.f).sum()), None if case.g is None else float((counts * case.g).sum())
    truth, ends = (true if below is None else true / below), (float(case.f.min()) * rows, float(case.f.max()) * rows)
    held = 0
    sums = [Functional(f, undoing.numbers(f)) for f in (case.f, case.g) if f is not None]
    for seen in _redrawn(case, counts, redraws, random):
        tally = Tally(seen, undoing)
        one = sums[0]
        spread = tally.covariance(one, one)
        if len(sums) == 1:
            _, _, low, high, _ = total(tally.total(one), spread, *ends, CONFIDENCE)
        else:
            other = sums[1]
            both = (spread, tally.covariance(other, other), tally.covariance(one, other))
            _, _, low, high, _ = ratio(tally.total(one), tally.total(other), both, CONFIDENCE)
        held += low is None or high is None or low <= truth <= high
    return Covered(case.name, rows, true if below is None else below, held / redraws, case.conservative)


def _undoing(case: Case) -> Undoing:
    if case.face:
        (one,) = case.blocks
        assert isinstance(one, Protocol)
        return AtFace(one.probabilities()[:, 0, :], np.arange(one.size), np.ones(one.size))
    return Inverted([inverse_of(one, np.arange(one.size)) for one in case.blocks])


def _redrawn(case: Case, counts: np.ndarray, redraws: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Tables of answers (b_1, …), each record drawn by itself."""
    each = [_chances(one) for one in case.blocks]
    sizes = [len(one) for one in each]
    found = np.zeros((redraws, int(np.prod(sizes))), np.int64)
    for x in np.ndindex(*counts.shape):
        law = np.ones(1)
        for q, place in zip(each, x, strict=True):
            law = np.multiply.outer(law, q[:, place])
        found += random.multinomial(int(counts[x]), law.ravel() / law.sum(), size=redraws)
    yield from found.reshape(redraws, *sizes)


def _chances(one: AnyProtocol) -> np.ndarray:
    """Q (b, a), sets listed."""
    if isinstance(one, Protocol):
        return one.probabilities()[:, 0, :]
    held, (present, absent) = one.members().astype(bool), one.shares
    odds = np.where(np.eye(len(one.inputs), dtype=bool), present, absent)
    return np.array([[np.where(row, p, 1 - p).prod() for p in odds] for row in held])


def run(redraws: int, sizes: Sequence[int] = SIZES, seed: int = 1) -> list[Covered]:
    """Every figure at every size."""
    random = np.random.default_rng(seed)
    return [tried(case, rows, redraws, random) for case in cases() for rows in sizes]


def settled(found: Sequence[Covered], redraws: int) -> dict[str, int | None]:
    """By figure the size from which on all are near enough; None where the largest is not."""
    near = max(SLACK, 3 * (CONFIDENCE * (1 - CONFIDENCE) / redraws) ** 0.5)
    ends: dict[str, int | None] = {}
    for one in sorted(found, key=lambda one: -one.rows):
        good = abs(one.coverage - CONFIDENCE) <= near or (one.conservative and one.coverage > CONFIDENCE)
        if one.name not in ends:
            ends[one.name] = one.rows if good else None
        elif good and (last := ends[one.name]) is not None and one.rows < last:
            above = [other for other in found if other.name == one.name and one.rows < other.rows]
            ends[one.name] = one.rows if last == min(other.rows for other in above) else last
    return ends


def main(arguments: list[str]) -> int:
    """Run the trial; 1 where some figure never settles."""
    parser = argparse.ArgumentParser(prog="python -m tests.trials coverage", description=__doc__)
    parser.add_argument("--redraws", type=int, default=40_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    found = run(asked.redraws)
    ends = settled(found, asked.redraws)
    if asked.json:
        print(json.dumps({"covered": [asdict(one) for one in found], "settled": ends}))
    else:
        for one in found:
            print(f"{one.name:<36} {one.rows:>8,} records  {one.about:>10,.0f}  {one.coverage:8.3%}")
        for name, rows in ends.items():
            print(f"{name}: {'never near 95 %' if rows is None else f'near 95 % from {rows:,} records on'}")
    return 0 if all(ends.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
