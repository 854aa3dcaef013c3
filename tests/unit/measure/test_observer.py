"""Who sees the whole table: held against every outcome of small tables, in fractions; and draws of large ones."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from funnel.data import AnyProtocol, Joint, UnaryProtocol
from funnel.measure.observer import CHANCE, Whole, bounds, observed, whole_of
from funnel.mechanisms.optimal import Optimal
from funnel.notions.lip import Lip
from tests.support.census import census
from tests.support.samples import joint_of, protocol, random_protocol


def _chance(one: AnyProtocol, s: int, x: int, y: int) -> Fraction:
    if isinstance(one, UnaryProtocol):
        coins = [one.present if other == x else one.absent for other in range(len(one.inputs))]
        held = [y >> (len(coins) - 1 - other) & 1 for other in range(len(coins))]
        whole = 1 << one.bits
        return math.prod(
            (Fraction(c if h else whole - c, whole) for c, h in zip(coins, held, strict=True)),
            start=Fraction(1),
        )
    return Fraction(int(one.weights[y, s if one.reads_secret else 0, x]), 1 << one.bits)


def _outcomes(joint: Joint, protocols: list[AnyProtocol]):
    """By totals of all answers: their chance, and of each secret value the expected records that gave each answer."""
    records = [
        code
        for code, count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True)
        for _ in range(count)
    ]
    answers = list(product(*(range(one.size) for one in protocols)))
    found: dict[tuple, list] = {}
    options = []
    for s, *xs in records:
        chances = [
            (
                y,
                math.prod(
                    (_chance(one, s, x, v) for one, x, v in zip(protocols, xs, y, strict=True)),
                    start=Fraction(1),
                ),
            )
            for y in answers
        ]
        options.append([(y, chance) for y, chance in chances if chance])
    for drawn in product(*options):
        chance = math.prod((one for _, one in drawn), start=Fraction(1))
        totals = tuple(sorted(Counter(y for y, _ in drawn).items()))
        entry = found.setdefault(totals, [Fraction(0), Counter()])
        entry[0] += chance
        for (s, *_), (y, _) in zip(records, drawn, strict=True):
            entry[1][s, y] += chance
    return found


def _factors(joint: Joint, totals, chance, expected) -> np.ndarray:
    """P(s|y,M)/P(s) (c, m)."""
    secrets = np.bincount(joint.cells[:, 0], joint.counts)
    return np.array([
        [float(expected[s, y] / chance / number / Fraction(int(secrets[s]), joint.rows)) for y, number in totals]
        for s in range(len(secrets))
    ])  # fmt: skip


def _seen(totals) -> tuple[np.ndarray, np.ndarray]:
    return np.array([y for y, _ in totals]), np.array([number for _, number in totals])


def _cases():
    rng = np.random.default_rng(3)
    two = joint_of(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 1]))
    three = joint_of(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 0, 2]))
    pair = joint_of(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
    reads = protocol("x", [[5, 2, 1], [0, 4, 4], [1, 1, 6], [8, 0, 0]], two.secret)
    return [
        (two, [random_protocol(1, "x", 2, 3, 4)]),
        (three, [random_protocol(2, "x", 3, 3, 5, 0.3)]),
        (three, [protocol("x", [[4, 0, 4], [4, 4, 0], [4, 0, 4]])]),
        (pair, [random_protocol(4, "x", 2, 2, 3), random_protocol(5, "z", 2, 2, 3)]),
        (two, [reads]),
        (two, [UnaryProtocol(two.blocks[0], 4, 8, 3)]),
        (joint_of(rng.integers(0, 2, 7), np.arange(7) % 2), [random_protocol(6, "x", 2, 2, 3)]),
    ]


@pytest.mark.parametrize("case", range(len(_cases())))
def test_small_tables_are_exact(case):
    joint, protocols = _cases()[case]
    for totals, (chance, expected) in _outcomes(joint, protocols).items():
        found = observed(joint, protocols, *_seen(totals))
        true = _factors(joint, totals, chance, expected)
        assert found.how == "exact"
        assert np.allclose(found.low, true, rtol=3e-9, atol=1e-15)
        assert (found.low <= true * (1 + 1e-12)).all()
        assert (found.high >= true * (1 - 1e-12)).all()
        assert found.rows.sum() == joint.rows


@pytest.mark.parametrize("case", range(len(_cases())))
@pytest.mark.parametrize("beta", [0.9, 0.3, 1e-3])
def test_a_bound_fails_no_oftener_than_it_says(case, beta):
    joint, protocols = _cases()[case]
    failed = Fraction(0)
    for totals, (chance, expected) in _outcomes(joint, protocols).items():
        whole = whole_of(joint, protocols, *_seen(totals))
        low, high = bounds(whole, beta)
        true = _factors(joint, totals, chance, expected) * whole.prior[:, None]
        if (low > true + 1e-12).any() or (high < true - 1e-12).any():
            failed += chance
    assert failed <= Fraction(beta)


def test_one_total_at_a_time_is_not_enough():
    """N = (1, 1), rows (½, ½, 0) and (½, 0, ½), M = (1, 1, 0): what says the first value is never of the first kind."""
    joint = joint_of(np.array([0, 1]), np.array([0, 1]))
    drawn = [protocol("x", [[1, 1, 0], [1, 0, 1]])]
    found = observed(joint, drawn, np.array([[0], [1]]), np.array([1, 1]))
    assert found.high[0, 0] == 0
    assert found.low[1, 0] == pytest.approx(2)
    assert math.isinf(found.falls().max())


def _drawn(joint: Joint, one, rng) -> tuple[np.ndarray, np.ndarray]:
    chances = one.probabilities()[:, 0, :]
    totals = sum(rng.multinomial(n, chances[:, x]) for x, n in enumerate(joint.table().sum(axis=0)))
    seen = np.flatnonzero(totals)
    return seen[:, None], totals[seen]


def _solved(joint: Joint, epsilon: float):
    return (
        Optimal(kind="optimal").solve(joint, Lip(notion="lip", epsilon=epsilon).demand(joint, {}, 0)).protocol
    )


def test_four_hundred_people_may_be_moved_by_half_as_much_again():
    """The exact figure passes ε = 0.5 by far, and lies within the bound in every redraw."""
    joint, rng, worst = Joint.from_table([[76, 111, 102], [0, 33, 78]]), np.random.default_rng(3), 0.0
    one = _solved(joint, 0.5)
    for _ in range(15):
        seen = _drawn(joint, one, rng)
        found, whole = observed(joint, [one], *seen), whole_of(joint, [one], *seen)
        low, high = (end / whole.prior[:, None] for end in bounds(whole))
        assert found.how == "exact"
        assert (low <= found.high).all()
        assert (high >= found.low).all()
        worst = max(worst, found.rises().max(), found.falls().max())
    assert worst == pytest.approx(0.77, abs=0.005)


def test_the_census_moves_beliefs_further_than_epsilon():
    """Marital status and education under ε = 1: beyond it, never above 1.32, and the bound is next to the estimate."""
    joint, rng, worst = census("marital_status", "education"), np.random.default_rng(1), 0.0
    one = _solved(joint, 1.0)
    for _ in range(20):
        found = observed(joint, [one], *_drawn(joint, one, rng))
        assert found.how == "bound"
        assert found.rises().max() <= 1.32
        guess = found.least
        assert np.allclose(guess.rises(), found.rises(), atol=1e-3)
        assert np.allclose(guess.falls(), found.falls(), atol=1e-3)
        worst = max(worst, guess.rises().max(), guess.falls().max())
    assert 1.1 < worst < 1.3


def test_too_many_answers_are_bounded_by_what_the_true_values_tell():
    joint = joint_of(np.array([0, 0, 1, 1] * 50), np.arange(200) % 40)
    one = UnaryProtocol(joint.blocks[0], 4, 8, 3)
    found = observed(joint, [one], np.array([[3]]), np.array([200]))
    table = joint.table()
    shares = table / table.sum(axis=0) / (table.sum(axis=1, keepdims=True) / joint.rows)
    assert found.how == "ceiling"
    assert found.high.ravel() == pytest.approx(shares.max(axis=1))
    assert found.low.ravel() == pytest.approx(shares.min(axis=1))


def test_memory_does_not_grow_with_the_square_of_the_answers():
    answers, kinds = 2 << 12, 3
    chances = np.random.default_rng(3).dirichlet(np.ones(answers), kinds).T
    whole = Whole(np.full(kinds, 100.0), chances, np.array([[0.2, 0.5, 0.6], [0.8, 0.5, 0.4]]), np.zeros(answers))
    whole.seen[:100] = 3
    tracemalloc.start()
    low, high = bounds(whole)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 64 << 20, "a covariance of all answers takes 512 MiB"
    assert (low >= 0.2 - 1e-6).all()
    assert (high <= 0.8 + 1e-6).all()


def test_values_that_nothing_is_drawn_for_tell_what_they_tell():
    """Where every value is released as it is, the whole table adds nothing to a row's own value."""
    joint = Joint.from_table([[300, 20, 5], [100, 90, 40]])
    one = protocol("x", [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    found = observed(joint, [one], np.arange(3)[:, None], joint.table().sum(axis=0))
    true = joint.table() / joint.table().sum(axis=0) / (joint.table().sum(axis=1, keepdims=True) / joint.rows)
    assert np.allclose(found.low, true)
    assert np.allclose(found.high, true)


def test_the_chance_is_one_in_a_million():
    assert CHANCE == 1e-6


def test_totals_that_no_draws_can_give_have_no_figure():
    """A forger's: bounds exclude each other, and nothing is told instead of a number."""
    joint = Joint.from_table([[3000, 20], [20, 3000]])
    one = protocol("x", [[63, 1], [1, 63]])
    found = observed(joint, [one], np.array([[0], [1]]), np.array([6030, 10]))
    assert found.low.max() > found.high.min()
    assert not any(np.isnan(one).any() for one in (found.low, found.high, found.rises(), found.falls()))
