"""Several releases as one channel: what an attacker who sees them all learns, counted one uniform number at a time."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol, UnaryProtocol
from funnel.data.channel import Channel
from funnel.draw.draw import InverseTable
from funnel.measure import overlap as module
from funnel.measure.composition import composed, identity, measurable, spread
from funnel.measure.leakage import information_above, ldp, lip
from funnel.measure.overlap import all_inputs, merged, overlap
from tests.support.strategies import joints, protocols

Tuples = dict[tuple[int, ...], Fraction]


def answers(group: Sequence[Protocol], pair: tuple, bits: int) -> Tuples:
    """P(y_1, …, y_m | s, x) of one shared uniform, by trying every value of it; -1 where a protocol knows no such x."""
    found: Counter = Counter()
    for uniform in range(1 << bits):
        told = []
        for protocol in group:
            code = {one: i for i, one in enumerate(all_inputs(protocol))}.get(pair)
            level = None if code is None else uniform >> (bits - protocol.bits)
            told.append(-1 if code is None else int(np.argmax(protocol.thresholds()[code] > level)))
        found[tuple(told)] += 1
    return {told: Fraction(times, 1 << bits) for told, times in found.items()}


def attacker(joint: Joint, groups: Sequence[Sequence[Protocol]]) -> dict[tuple, dict[int, Fraction]]:
    """P(s, y): every record's tuple, groups drawn independently, from the definitions."""
    seen: dict[tuple, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    table = joint.table()
    laws = {}
    for s, x in np.argwhere(table > 0).tolist():
        parts = []
        for place, group in enumerate(groups):
            hidden = joint.secret.values[s] if group[0].secret else None
            key = (place, hidden, x)
            if key not in laws:
                bits = max(one.bits for one in group)
                laws[key] = answers(group, (hidden, joint.blocks[0].values[x]), bits)
            parts.append(laws[key].items())
        for combination in itertools.product(*parts):
            chance = Fraction(int(table[s, x]), joint.rows)
            for _, one in combination:
                chance *= one
            seen[tuple(told for told, _ in combination)][s] += chance
    return seen


def gains(seen: dict[tuple, dict[int, Fraction]], secrets: int) -> tuple[Fraction | None, Fraction | None]:
    """The attacker's largest change of belief, up or down, and of the odds between two secrets; None: certainty."""
    prior = [sum((of.get(s, Fraction(0)) for of in seen.values()), Fraction(0)) for s in range(secrets)]
    belief = odds = Fraction(1)
    for of in seen.values():
        given_s = [of.get(s, Fraction(0)) / prior[s] for s in range(secrets)]
        if min(given_s) == 0:
            return None, None
        whole = sum(of.values())
        belief = max(belief, max(given_s) / whole, whole / min(given_s))
        odds = max(odds, max(given_s) / min(given_s))
    return belief, odds


def measured(joint: Joint, groups: Sequence[Sequence[Protocol]]) -> Channel:
    one = composed(joint.blocks[0], joint.secret, groups)
    assert one is not None
    return Channel(joint, [one])


@st.composite
def histories(draw: st.DrawFn, most: int = 3) -> tuple[Joint, list[list[Protocol]]]:
    """A joint distribution and releases of its block under a few keys, each reading s or not."""
    joint = draw(joints(most=3, secrets=3))
    groups = []
    for _ in range(draw(st.integers(1, 2))):
        first = draw(protocols(joint, bits=draw(st.integers(0, 4))))
        group = [first]
        for _ in range(draw(st.integers(0, most - 1))):
            other = draw(protocols(joint, bits=draw(st.integers(0, 4))))
            if other.reads_secret == first.reads_secret:
                group.append(other)
        groups.append(group)
    return joint, groups


@settings(max_examples=60, deadline=None)
@given(histories())
def test_the_composed_channel_leaks_what_the_best_attacker_learns(history) -> None:
    joint, groups = history
    channel = measured(joint, groups)
    belief, odds = gains(attacker(joint, groups), len(joint.secret))
    assert lip(channel.table).ratio == belief
    assert ldp(channel.table).ratio == odds


@settings(max_examples=30, deadline=None)
@given(histories())
def test_what_is_learnt_on_average_is_that_of_the_tuples(history) -> None:
    joint, groups = history
    seen = attacker(joint, groups)
    prior = Counter()
    for of in seen.values():
        prior.update(of)
    expected = sum(
        float(p) * math.log(p / (sum(of.values()) * prior[s]))
        for of in seen.values()
        for s, p in of.items()
        if p
    )
    assert float(information_above(measured(joint, groups).table)) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(histories())
def test_the_kernel_that_draws_answers_with_the_composed_chances(history) -> None:
    """Every uniform of six bits goes through the real lookup tables; the tuples come out as often as foretold."""
    _, (group, *_) = history
    asked = all_inputs(group[0])
    law = overlap(group, asked)
    assert law is not None
    words = np.arange(64, dtype=np.uint64) << np.uint64(58)
    tables = [InverseTable(one) for one in group]
    for column in range(len(asked)):
        codes = np.full(64, column)
        drawn = Counter(zip(*(table.draw(codes, words).tolist() for table in tables), strict=True))
        expected = sorted(weight for weight in law.rows[:, column].tolist() if weight)
        assert sorted(times << law.bits for times in drawn.values()) == [64 * one for one in expected]


@settings(max_examples=40, deadline=None)
@given(histories())
def test_no_bound_is_below_the_attacker(history) -> None:
    """Σ ε_X over independent groups bounds beliefs and odds, and X itself does where no draw reads s."""
    joint, groups = history
    belief, odds = gains(attacker(joint, groups), len(joint.secret))
    parts = [spread(group) for group in groups]
    if None not in parts:
        assert odds is not None
        assert belief <= odds <= math.prod(parts)
    if not any(group[0].reads_secret for group in groups):
        table = Channel(joint, [identity(joint.blocks[0])]).table
        for reached, ceiling in ((belief, lip(table).ratio), (odds, ldp(table).ratio)):
            assert ceiling is None or (reached is not None and reached <= ceiling)


@settings(max_examples=40, deadline=None)
@given(histories())
def test_a_repetition_adds_nothing_and_another_release_takes_nothing_away(history) -> None:
    joint, groups = history
    alone = ldp(measured(joint, groups[:1]).table).ratio
    again = ldp(measured(joint, [[*groups[0], *groups[0]]]).table).ratio
    both = ldp(measured(joint, groups).table).ratio
    assert again == alone
    assert both is None or (alone is not None and alone <= both)


@settings(max_examples=40, deadline=None)
@given(histories())
def test_fewer_releases_tell_no_more_than_all(history) -> None:
    """Data processing: whoever was in some of the releases is covered by the figure for all of them."""
    joint, groups = history
    whole = lip(measured(joint, groups).table).ratio
    for size in range(1, len(groups[0])):
        for part in itertools.combinations(groups[0], size):
            some = lip(measured(joint, [list(part), *groups[1:]]).table).ratio
            assert whole is None or (some is not None and some <= whole)


def two_values(weights: list[list[int]], bits: int, labels: Sequence[str] = ("x1", "x2", "x3")) -> Protocol:
    """A protocol on block X with weights [y][x]."""
    values = Alphabet(("X",), tuple((one,) for one in labels))
    outputs = Alphabet(("X",), tuple((f"y{y}",) for y in range(len(weights))))
    return Protocol(values, outputs, bits, np.array(weights, np.int64)[:, None, :])


TABLE = Joint.from_table([[30, 10, 10], [5, 30, 15]])


def of_nothing() -> Protocol:
    """Q = [[.8, 1, 0], [.2, 0, 1]] of the mathematics; fifths are no powers of two, so 2^20 parts of it."""
    whole = 1 << 20
    return two_values([[whole * 4 // 5, whole, 0], [whole - whole * 4 // 5, 0, whole]], 20)


def test_two_releases_of_nothing_tell_everything() -> None:
    """The counterexample to adding up: one release has (almost) leakage zero, two fresh ones all that X gives away."""
    law = of_nothing()
    assert lip(measured(TABLE, [[law]]).table).nats < 1e-5
    assert lip(measured(TABLE, [[law], [law]]).table).nats == pytest.approx(1.2528, abs=1e-4)
    assert lip(Channel(TABLE, [identity(TABLE.blocks[0])]).table).nats == pytest.approx(1.2528, abs=1e-4)
    assert lip(measured(TABLE, [[law, law]]).table).nats < 1e-5


def test_a_value_that_an_earlier_release_did_not_know_is_told_apart() -> None:
    old = two_values([[3, 1], [1, 3]], 2, ["x1", "x2"])
    new = two_values([[4, 4, 4]], 2)
    channel = measured(TABLE, [[old, new]])
    seen = attacker(TABLE, [[old, new]])
    assert ldp(channel.table).ratio == gains(seen, 2)[1]
    assert any(told[0][0] == -1 for told in seen)
    assert spread([old, new]) == 3, "two records are compared that were in the same releases"


def test_new_records_are_compared_among_themselves() -> None:
    """x2 and x3 are both new to the second release only; it alone tells them apart."""
    old = two_values([[2], [2]], 2, ["x1"])
    new = two_values([[2, 3, 1], [2, 1, 3]], 2)
    assert spread([old, new]) == 3
    assert spread([new]) == 3


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_record_whose_values_change_is_bounded_for_every_path(data: st.DataObject) -> None:
    """Random paths x_1 … x_n with the same times of change, distributed anyhow given s: k spreads hold, always."""
    size, releases = 3, data.draw(st.integers(2, 4))
    whole = Joint.from_table(np.ones((2, size), int))
    group = [data.draw(protocols(whole, bits=data.draw(st.integers(2, 3)))) for _ in range(releases)]
    group = [one for one in group if not one.reads_secret] or [two_values([[1, 2, 3], [3, 2, 1]], 2)]
    runs = data.draw(st.lists(st.integers(0, 2), min_size=len(group), max_size=len(group)))
    order = list(dict.fromkeys(runs))
    paths = [
        [values[order.index(run)] for run in runs]
        for values in itertools.permutations(range(size), len(order))
    ]
    laws = []
    for path in paths:
        law: dict[tuple, Fraction] = {(): Fraction(1)}
        for x in dict.fromkeys(path):
            part = [one for one, value in zip(group, path, strict=True) if value == x]
            own = answers(part, (None, whole.blocks[0].values[x]), max(one.bits for one in part))
            law = {(*a, b): p * q for a, p in law.items() for b, q in own.items()}
        laws.append(law)
    limit = spread(group)
    shares = [
        data.draw(st.lists(st.integers(0, 5), min_size=len(paths), max_size=len(paths))) for _ in range(2)
    ]
    shares = [one if sum(one) else [1] * len(paths) for one in shares]
    told = set().union(*laws)
    for y in told:
        chances = [
            sum(
                (Fraction(w, sum(one)) * law.get(y, 0) for w, law in zip(one, laws, strict=True)), Fraction(0)
            )
            for one in shares
        ]
        if limit is not None:
            assert max(chances) <= min(chances) * limit ** len(order)


def test_that_a_value_changed_shows_in_permanent_draws() -> None:
    """Why the times of change are given: a record that answers otherwise under one protocol has changed."""
    law = two_values([[3, 1, 2], [1, 3, 2]], 2)
    stayed = answers([law, law], (None, ("x1",)), 2)
    assert (0, 1) not in stayed
    first, second = (answers([law], (None, (x,)), 2) for x in ("x1", "x2"))
    assert first[0,] * second[1,] > 0


def sets(a: int, present: int, absent: int, bits: int) -> UnaryProtocol:
    return UnaryProtocol(Alphabet(("X",), tuple((f"x{i + 1}",) for i in range(a))), bits, present, absent)


def coins(group: Sequence[UnaryProtocol], x: int, bits: int) -> Tuples:
    """P(sets | x) with one uniform per value, by trying all."""
    found: Counter = Counter()
    for uniforms in itertools.product(range(1 << bits), repeat=len(group[0].inputs)):
        told = tuple(
            tuple(
                (u >> (bits - one.bits)) < (one.present if value == x else one.absent)
                for value, u in enumerate(uniforms)
            )
            for one in group
        )
        found[told] += 1
    total = sum(found.values())
    return {told: Fraction(times, total) for told, times in found.items()}


@pytest.mark.parametrize("group", [[(3, 1, 2)], [(2, 1, 2), (3, 1, 2)], [(2, 1, 2), (3, 1, 2), (5, 3, 3)]])
def test_sets_share_the_coin_of_each_value(group: list[tuple[int, int, int]]) -> None:
    joint = Joint.from_table([[30, 10], [5, 30]])
    laws = [sets(2, *one) for one in group]
    other = two_values([[1, 3], [3, 1]], 2, ["x1", "x2"])
    found = composed(joint.blocks[0], joint.secret, [laws, [other]])
    assert found is not None
    bits = max(one.bits for one in laws)
    expected: dict = defaultdict(lambda: [Fraction(0)] * 2)
    for x in range(2):
        second = answers([other], (None, joint.blocks[0].values[x]), 2)
        for (told, p), (y, q) in itertools.product(coins(laws, x, bits).items(), second.items()):
            for s in range(2):
                expected[told, y][s] += (
                    Fraction(int(joint.table()[s, x]), int(joint.table()[s].sum())) * p * q
                )
    best = max(max(one) / min(one) for one in expected.values())
    assert ldp(Channel(joint, [found]).table).ratio == best
    ratio = {x: coins(laws, x, bits) for x in range(2)}
    apart = [ratio[0][told] / ratio[1][told] if told in ratio[1] else None for told in ratio[0]]
    assert spread(laws) == (None if None in apart else max(apart))


def test_one_set_protocol_stays_what_it_is() -> None:
    law = sets(3, 2, 1, 2)
    assert composed(law.inputs, Alphabet(("S",), (("a",), ("b",))), [[law, law]]) is law


def test_weights_beyond_sixty_two_bits_are_exact() -> None:
    joint = Joint.from_table([[30, 10], [5, 30]])
    law = two_values([[3 << 40, 1 << 40], [1 << 40, 3 << 40]], 42, ["x1", "x2"])
    found = composed(joint.blocks[0], joint.secret, [[law]] * 3)
    assert found is not None
    assert found.bits == 126
    assert [sum(column) for column in found.weights[:, 0, :].T.tolist()] == [1 << 126] * 2
    one = Fraction(30, 40)
    highest = (one * 27 + (1 - one)) / (Fraction(5, 35) * 27 + Fraction(30, 35))
    assert ldp(Channel(joint, [found]).table).ratio == max(
        highest, (Fraction(5, 35) + Fraction(30, 35) * 27) / (one + (1 - one) * 27)
    )


def test_equal_nights_grow_by_the_number_of_answers_not_of_nights() -> None:
    """Fresh draws of one protocol: only how often each answer came matters, so thirty nights stay small."""
    joint = Joint.from_table([[30, 10], [5, 30]])
    law = two_values([[3, 1], [1, 3]], 2, ["x1", "x2"])
    found = composed(joint.blocks[0], joint.secret, [[law]] * 30)
    assert found is not None
    assert len(found.outputs) == 31


def test_too_large_is_said_and_not_begun() -> None:
    values = [f"x{i}" for i in range(40)]
    rng = np.random.default_rng(1)
    weights = rng.multinomial(1 << 20, np.full(40, 1 / 40), size=40).T
    law = two_values(weights.tolist(), 20, values)
    assert composed(law.inputs, Alphabet(("S",), (("a",), ("b",))), [[law]] * 3) is None
    assert not measurable(7, [40, 40], [law, law], 1000)


def test_one_protocol_is_never_too_large() -> None:
    """Its own weights say what two values tell; the auditor finds it from the same ones."""
    values = [f"x{i}" for i in range(600)]
    weights = np.ones((600, 600), np.int64) + np.diag(np.full(600, 424))
    law = two_values(weights.tolist(), 10, values)
    assert spread([law, law]) == law.spread() == 425
    assert spread([law], [(None, ("x0",)), (None, ("x1",))]) == 425
    assert spread([law], [(None, ("x0",))]) == 1


def test_a_year_of_changed_protocols_is_overlapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every night another protocol, one key: intervals are cut ever finer, and the tuples stay countable."""
    rng = np.random.default_rng(2)
    laws = [two_values(rng.multinomial(1 << 16, [0.25] * 4, size=3).T.tolist(), 16) for _ in range(365)]
    found = composed(laws[0].inputs, Alphabet(("S",), (("a",), ("b",))), [laws])
    assert found is not None
    assert len(found.outputs) <= 3 * 365 * 4
    monkeypatch.setattr(module, "MOST_OVERLAPS", 1000)
    assert composed(laws[0].inputs, Alphabet(("S",), (("a",), ("b",))), [laws]) is None
    assert spread(laws) is None


@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=8))
def test_merging_keeps_every_sum_and_every_direction(rows: list[list[int]]) -> None:
    table = np.array(rows, np.int64)
    if not table.any():
        return
    after = merged(table)
    assert after.sum(axis=0).tolist() == table.sum(axis=0).tolist()
    directions = [tuple((row // np.gcd.reduce(row)).tolist()) for row in after]
    assert len(set(directions)) == len(directions)
    assert {tuple((row // np.gcd.reduce(row)).tolist()) for row in table if row.any()} == set(directions)
