"""Noise on counts: its law, what it hides, and that no other dice than the operating system's are rolled for it."""

from __future__ import annotations

import math
import random
import secrets
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import power_divergence

from funnel.data import Joint
from funnel.data.domain import Domain
from funnel.draw import histogram
from funnel.draw.histogram import bernoulli_exp, discrete_laplace
from funnel.ledger.estimates import EstimateRequest, estimate
from funnel.ledger.journal import Journal
from funnel.mechanisms import Optimal
from funnel.mechanisms.product import protect
from funnel.notions.ldp import Ldp

DRAWS = 20_000
ERROR = 1e-6
"""Chance with which a right sampler would fail a test of its law, had the seed been drawn."""


def exactly(run: Callable[[Callable[[int], int]], object], rolls: int) -> tuple[Counter, Fraction]:
    """Chances of the outcomes that need at most so many rolls, over all their results, and of all the others."""
    chances: Counter = Counter()
    rest, pending = Fraction(0), [()]
    while pending:
        path = pending.pop()
        sizes: list[int] = []

        def dice(size: int, path=path, sizes=sizes) -> int:
            sizes.append(size)
            if len(sizes) > len(path):
                raise LookupError
            return path[len(sizes) - 1]

        try:
            outcome = run(dice)
        except LookupError:
            if len(path) == rolls:
                rest += Fraction(1, math.prod(sizes[:-1]))
            else:
                pending += [(*path, face) for face in range(sizes[-1])]
            continue
        chances[outcome] += Fraction(1, math.prod(sizes))
    return chances, rest


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(1)]
)
def test_bernoulli_exp_is_right_to_the_last_roll(exponent):
    chances, rest = exactly(lambda dice: bernoulli_exp(exponent, dice), 5)
    assert sum(chances.values()) + rest == 1
    assert float(chances[True]) - 1e-15 <= math.exp(-exponent) <= float(chances[True] + rest) + 1e-15
    assert float(rest) < 0.01


def law(rate: Fraction, size: int) -> float:
    p = math.exp(-float(rate))
    return (1 - p) / (1 + p) * p ** abs(size)


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 4), Fraction(1), Fraction(7, 3)])
def test_discrete_laplace_has_its_law(rate):
    dice = random.Random(str(rate)).randrange
    drawn = Counter(discrete_laplace(rate, dice) for _ in range(DRAWS))
    sizes = [k for k in range(-400, 401) if DRAWS * law(rate, k) >= 10]
    observed = np.array([*(drawn[k] for k in sizes), DRAWS - sum(drawn[k] for k in sizes)])
    expected = np.array([DRAWS * law(rate, k) for k in sizes])
    expected = np.append(expected, DRAWS - expected.sum())
    assert power_divergence(observed, expected, lambda_="log-likelihood").pvalue > ERROR


class Undecided(Exception):  # noqa: N818 - nothing is wrong
    """A path of choices ends before its sampler does."""


def by_coins(rate: Fraction, rarest: float) -> tuple[Counter, float]:
    """Chances of every size over all results of dice and of coins e^-x, but for paths rarer than `rarest`."""
    chances: Counter = Counter()
    rest, pending = 0.0, [((), 1.0)]
    while pending:
        path, likely = pending.pop()
        if likely < rarest:
            rest += likely
            continue
        left, faces = list(path), list[float]()

        def chosen(told: list[float], left=left, faces=faces) -> int:
            if left:
                return left.pop(0)
            faces.extend(told)
            raise Undecided

        def coin(x: Fraction, _, chosen=chosen) -> bool:
            return chosen([1 - math.exp(-x), math.exp(-x)]) == 1

        try:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(histogram, "bernoulli_exp", coin)
                chances[discrete_laplace(rate, lambda size, chosen=chosen: chosen([1 / size] * size))] += likely
        except Undecided:
            pending += [((*path, face), likely * chance) for face, chance in enumerate(faces) if chance]
    return chances, rest


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
def test_discrete_laplace_is_its_law_over_all_results_of_its_coins(rate):
    """No size is cut off, and none has another chance than the law's; the coins are right to the last roll."""
    chances, rest = by_coins(rate, 1e-5)
    assert rest < 0.06
    assert sum(chances.values()) + rest == pytest.approx(1)
    for size in range(-40, 41):
        assert chances[size] - 1e-12 <= law(rate, size) <= chances[size] + rest + 1e-12
    assert all(chances[size] == pytest.approx(chances[-size]) for size in chances)


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="positive"):
        discrete_laplace(Fraction(0), secrets.randbelow)


def test_an_estimate_takes_no_dice_and_rolls_those_of_the_operating_system(monkeypatch, tmp_path):
    rolled = []

    def watched(size: int) -> int:
        rolled.append(size)
        return system(size)

    system = secrets.randbelow
    monkeypatch.setattr(secrets, "randbelow", watched)
    estimate(Journal(tmp_path), "one", EstimateRequest("0" * 64, Fraction(1, 2), None), np.array([5, 0, 3, 2]))
    assert len(rolled) >= 4 * len(SMALL.cells)


def test_the_dice_of_the_operating_system_are_rolled_for_noise_in_one_room_alone():
    """The room that enters an estimate before it draws: no command can have noise from anywhere else."""
    house = Path(histogram.__file__).parents[1]
    rooms = {one.relative_to(house).as_posix(): one.read_text() for one in house.rglob("*.py")}
    assert {name for name, text in rooms.items() if "discrete_laplace" in text} == {
        "draw/histogram.py", "ledger/estimates.py",
    }  # fmt: skip
    assert [name for name, text in rooms.items() if "randbelow" in text] == ["ledger/estimates.py"]
    source = rooms["ledger/estimates.py"]
    assert source.count("_noisy(") == 2
    assert source.index("_check(journal, Spent") < source.index("journal.append(") < source.index(", _noisy(")


SMALL = Domain.of({"s": ("a", "b"), "x": ("common", "rare")}, ["s"], [["x"]])
OUR_PERSON_A = np.array([4, 1, 2, 0])
OUR_PERSON_B = np.array([4, 0, 2, 1])
"""Records by (s, x): one person alone has the rare value, and their secret is a, or it is b."""
NOTION = Ldp(notion="ldp", epsilon=0.5)


def published(joint: Joint) -> bytes:
    """The protocol made for counts, as far as it is published."""
    (protocol,) = protect(joint, NOTION, Optimal(kind="optimal"), (1.0,)).protocols
    return protocol.weights.tobytes()


def test_the_hole_a_protocol_made_from_counts_tells_the_secret_of_one_person():
    """Someone who knows all the others works out both protocols, and sees which of them was published."""
    first, second = (published(SMALL.joint(counts)) for counts in (OUR_PERSON_A, OUR_PERSON_B))
    assert first != second


def outcomes(counts: np.ndarray, epsilon: Fraction, highest: int, rate: Fraction | None = None) -> Counter:
    """Chance of every protocol over the noisy tables without a count above `highest`."""
    chances: Counter = Counter()
    for noisy in product(range(1, highest + 1), repeat=len(counts)):
        chance = math.prod(
            reached(value, int(count), rate or epsilon / histogram.SENSITIVITY)
            for value, count in zip(noisy, counts, strict=True)
        )
        if noisy not in KNOWN:
            KNOWN[noisy] = published(SMALL.joint(np.array(noisy)))
        chances[KNOWN[noisy]] += chance
    return chances


KNOWN: dict[tuple[int, ...], bytes] = {}


def reached(value: int, count: int, rate: Fraction) -> float:
    """The chance that a noisy count, raised to the floor, is this value."""
    if value > histogram.FLOOR:
        return law(rate, value - count)
    return math.fsum(law(rate, size) for size in range(-400, histogram.FLOOR - count + 1))


def worst(first: Counter, second: Counter) -> float:
    return max(max(first[one] / second[one], second[one] / first[one]) for one in first)


def test_the_hole_closed_no_protocol_tells_the_two_tables_apart_by_more_than_epsilon():
    epsilon = Fraction(1, 2)
    first, second = (outcomes(counts, epsilon, 3) for counts in (OUR_PERSON_A, OUR_PERSON_B))
    assert len(first) > 10
    assert 1.1 < worst(first, second) <= math.exp(epsilon) * (1 + 1e-9)


@pytest.mark.long
def test_noise_for_a_single_changed_count_would_not_be_enough():
    """A record that changes leaves one cell and enters another: at rate ε the bound is broken."""
    epsilon = Fraction(1, 2)
    first, second = (outcomes(counts, epsilon, 5, epsilon) for counts in (OUR_PERSON_A, OUR_PERSON_B))
    assert worst(first, second) > math.exp(epsilon) * 1.1


def test_a_domain_holds_every_combination_and_a_column_in_two_roles_only_once():
    domain = Domain.of({"s": ("a", "b"), "u": ("1", "2", "3")}, ["s"], [["s", "u"]])
    assert len(domain.cells) == 6
    for s, x in domain.cells.tolist():
        assert domain.blocks[0].values[x][0] == domain.secret.values[s][0]


def test_blocks_put_together_keep_every_cell_with_its_own_count():
    from funnel.data.arrange import together

    values = {"s": ("a", "b"), "x": ("1", "2"), "y": ("3", "4", "5")}
    domain = Domain.of(values, ["s"], [["x"], ["y"]])
    counted = np.arange(len(domain.cells))
    made = histogram.Estimated(domain, Fraction(1), counted, counted, counted - 3, "one")
    whole = together(made.joint)
    truth = made.truth(whole)
    for row, count in zip(domain.cells.tolist(), counted.tolist(), strict=True):
        label = domain.blocks[0].values[row[1]] + domain.blocks[1].values[row[2]]
        assert truth.table()[row[0], whole.blocks[0].values.index(label)] == count
