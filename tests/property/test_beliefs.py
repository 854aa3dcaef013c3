"""Rounded beliefs: tables in the same steps have the same protocol, which keeps its bound for all of them."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.extras.rounded import ends
from funnel.data import Alphabet, Joint
from funnel.data.beliefs import rounded, steps_in_one, total_within
from funnel.errors import SolverError
from funnel.measure.exact import Epsilon
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from funnel.optimise.bent import Bent, bends
from funnel.optimise.budget import Budget
from funnel.optimise.masses import highest, lowest
from funnel.optimise.transport import FINE, Transport
from tests.support.strategies import tables

STEPS = st.sampled_from([Fraction(1, 100), Fraction(1, 50), Fraction(3, 40), Fraction(1, 7), Fraction(1, 4)])
ASKED = {
    "lip": {}, "ldp": {}, "pml": {}, "alip": {"lower": 2.0},
}  # fmt: skip


def notion(name: str, epsilon: float = 1.0):
    return NOTIONS[name](notion=name, epsilon=epsilon, **ASKED.get(name, {}))


def all_of(total: int, secrets: int):
    """Every way in which so many records can have so many secret values."""
    if secrets == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in all_of(total - first, secrets - 1))


def said(counts, step: Fraction, minimum: int) -> tuple:
    """What is left of one column of counts."""
    found = rounded(np.array(counts).reshape(-1, 1), step, minimum, exact=True)
    return tuple(found.least.ravel()), tuple(found.most.ravel()), tuple(found.centre.ravel())


@pytest.mark.parametrize(("total", "secrets"), [(1, 2), (7, 3), (40, 3), (50, 2), (100, 2), (300, 2), (900, 2)])
@pytest.mark.parametrize("step", [Fraction(1, 50), Fraction(1, 4)])
@pytest.mark.parametrize("minimum", [1, 5])
def test_more_numbers_of_records_than_the_minimum_round_alike(total, secrets, step, minimum):
    alike: dict[tuple, list[tuple]] = {}
    for counts in all_of(total, secrets):
        alike.setdefault(said(counts, step, minimum), []).append(counts)
    for (least, most, centre), members in alike.items():
        for s in range(secrets):
            found = sorted(counts[s] for counts in members)
            if total >= minimum:
                assert found[-1] - found[0] >= min(minimum, total)
            assert least[s] <= found[0] <= found[-1] <= most[s]
            if total >= minimum:
                assert least[s] <= centre[s] + 1
                assert centre[s] - 1 <= most[s]
    assert sum(map(len, alike.values())) == len(list(all_of(total, secrets)))


def test_steps_of_two_sizes_may_leave_fewer_numbers_together_than_the_minimum():
    """What is promised is of one release: protocols of two, made with other steps, may pin a count between them."""
    alike = []
    for step in (Fraction(1, 10), Fraction(3, 20)):
        true = said((56, 64), step, 4)
        alike.append({counts for counts in all_of(120, 2) if said(counts, step, 4) == true})
    assert min(map(len, alike)) >= 4 > len(alike[0] & alike[1])


@given(st.integers(1, 10**7), STEPS)
def test_totals_round_to_ranges_that_hold_them_and_only_those(total, step):
    least, most = total_within(total, step)
    assert least <= total <= most
    assert total_within(least, step) == total_within(most, step) == (least, most)
    assert total_within(most + 1, step)[0] == most + 1
    assert most + 1 - least >= min(step * least, 1) / 2


@given(tables(most=4, secrets=3), STEPS, st.integers(1, 12), st.booleans())
def test_the_auditor_works_out_the_same_steps(table, step, minimum, exact):
    found = rounded(table, step, minimum, exact=exact)
    least, most = ends(table.astype(float), float(step), minimum, exact=exact)
    if float(step) == Fraction(repr(float(step))):
        assert least == pytest.approx(found.least.astype(float))
        assert most == pytest.approx(found.most.astype(float))
    assert (found.least[:-1] <= table).all()
    assert (table <= found.most[:-1]).all()
    assert (found.least[-1] <= table.sum(axis=0)).all()


def elsewhere(table, step, minimum, draw, *, exact: bool):
    """Another table in the same steps."""
    moved = table.copy()
    for x in range(table.shape[1]):
        for _ in range(8):
            tried = moved[:, x].copy()
            one, other = draw(st.permutations(range(len(table))))[:2]
            records = draw(st.integers(0, int(tried[one])))
            tried[one] -= records
            tried[other] += records
            if not exact:
                tried[other] += draw(st.integers(0, 3))
            before, after = (
                rounded(column.reshape(-1, 1), step, minimum, exact=exact) for column in (table[:, x], tried)
            )
            same = all((getattr(before, name) == getattr(after, name)).all() for name in ("least", "most", "centre"))
            if same:
                moved[:, x] = tried
    return moved


def shown(protection) -> list:
    return [(one.outputs.values, one.bits, one.weights.tolist()) for one in protection.protocols]


@pytest.mark.long
@pytest.mark.parametrize(("name", "mechanism"), [
    ("lip", "optimal"), ("ldp", "optimal"), ("alip", "optimal"), ("ldp-x", "optimal"),
    ("lip", "invariant"), ("ldp", "invariant"), ("pml", "randomised-response"),
])  # fmt: skip
@settings(max_examples=10)
@given(data=st.data())
def test_tables_in_the_same_steps_have_the_same_protocol_and_its_bound(name, mechanism, data):
    table, minimum = data.draw(tables(most=4, secrets=3)), 1
    exact, step = mechanism == "invariant", data.draw(STEPS)
    other = elsewhere(table, step, minimum, data.draw, exact=exact)
    solve = partial(
        protect, notion=notion(name, 0.7), mechanism=MECHANISMS[mechanism](kind=mechanism), shares=(1.0,),
        minimum=minimum, beliefs=float(step),
    )  # fmt: skip
    try:
        first = solve(joint_of(table))
    except SolverError:
        with pytest.raises(SolverError):
            solve(joint_of(other))
        return
    second = solve(joint_of(other))
    assert shown(first) == shown(second)
    assert first.holds
    assert second.holds
    assert first.bound is None


def joint_of(table) -> Joint:
    """The same alphabets for every table of a size."""
    cells = np.argwhere(table > 0).astype(np.int64)
    alphabets = [Alphabet((f"c{j}",), tuple((f"v{i}",) for i in range(n))) for j, n in enumerate(table.shape)]
    return Joint(alphabets[0], tuple(alphabets[1:]), cells, table[table > 0], complete=False)


@pytest.mark.long
@settings(max_examples=10)
@given(st.data())
def test_so_have_several_blocks_with_combinations_that_nobody_has(data):
    cells = st.one_of(st.just(0), st.integers(0, 12), st.integers(0, 400))
    table = np.array(data.draw(st.lists(cells, min_size=12, max_size=12)), np.int64).reshape(2, 3, 2)
    table += np.array([200, 100]).reshape(2, 1, 1) * (np.arange(6).reshape(3, 2) % 2 == 0)
    table[:, 1, 1] += 150
    minimum, step = 10, Fraction(1, 10)
    flat = elsewhere(table.reshape(2, 6), step, minimum, data.draw, exact=False)
    rare = flat.sum(axis=0) < minimum
    flat[0, rare] = data.draw(st.integers(0, minimum - 1))
    flat[1, rare] = 0
    try:
        first, second = (
            protect(
                joint_of(one), notion("lip", 1.5), MECHANISMS["optimal"](kind="optimal"), (0.5, 0.5),
                minimum=minimum, beliefs=float(step),
            )
            for one in (table, flat.reshape(table.shape))
        )  # fmt: skip
    except SolverError:
        return
    assert shown(first) == shown(second)
    assert first.holds
    assert second.holds


def corners(least, most) -> list[list[Fraction]]:
    """Every choice of an end for each mass, as chances."""
    found = [list(one) for one in product(*zip(least, most, strict=True))]
    return [[mass / sum(one) for mass in one] for one in found if sum(one)]


@settings(max_examples=40)
@given(tables(most=4, secrets=3), STEPS, st.data())
def test_what_keeps_the_demand_keeps_it_at_every_corner_of_the_steps_and_nothing_else_does(table, step, data):
    name = data.draw(st.sampled_from(sorted(ASKED)))
    asked = notion(name, data.draw(st.sampled_from([0.2, 1.0, 1.5])))
    joint = joint_of(table).believed(step, 1, exact=False)
    demand = asked.demand(joint, {}, 0)
    weights = np.array(data.draw(st.lists(st.integers(1, 9), min_size=table.shape[1], max_size=table.shape[1])))
    sides = [corners(low, high) for low, high in zip(joint.beliefs.least, joint.beliefs.most, strict=True)]
    seen = [[sum(w * int(v) for w, v in zip(one, weights, strict=True)) for one in side] for side in sides]
    holds = all(
        max(seen[up]) <= limit.epsilon.ratio_below() * min(seen[down])
        for limit in asked.limits(len(table))
        for up, down in zip(limit.high.tolist(), limit.low.tolist(), strict=True)
    )
    assert demand.keeps(weights.reshape(1, 1, -1)) == holds
    for low, high, values in zip(joint.beliefs.least, joint.beliefs.most, seen, strict=True):
        assert highest(low, high, weights.tolist()) == max(values)
        assert lowest(low, high, weights.tolist()) == min(values)


def test_limits_are_what_the_notions_are_defined_by():
    pairs = {
        name: {
            (up, down, one.epsilon)
            for one in notion(name).limits(2)
            for up, down in zip(one.high.tolist(), one.low.tolist(), strict=True)
        }
        for name in ASKED
    }
    one, two = Epsilon.of(1.0), Epsilon.of(2.0)
    rises, falls = {(0, 2, one), (1, 2, one)}, {(2, 0, one), (2, 1, one)}
    assert pairs["lip"] == rises | falls
    assert pairs["pml"] == rises
    assert pairs["alip"] == rises | {(2, 0, two), (2, 1, two)}
    assert pairs["ldp"] == {(0, 1, one), (1, 0, one)}


@settings(max_examples=15)
@given(tables(most=4, secrets=3), STEPS, st.sampled_from(["lip", "pml", "alip"]))
def test_a_program_in_pieces_finds_what_cuts_find(table, step, name):
    joint = joint_of(table).believed(step, 1, exact=True)
    oracle = notion(name).demand(joint, {}, 0).oracle()
    prior, limits = table.sum(axis=0) / table.sum(), bends(oracle)
    cost = 1 - np.eye(len(prior))
    pieces = Bent(cost, prior, limits, oracle).solve(Budget(10.0))
    cuts = Transport(cost, prior, oracle, kept=True, fine=FINE).solve(Budget(10.0))
    assert pieces.cost == pytest.approx(cuts.cost, abs=2e-5)
    assert pieces.protocol @ prior == pytest.approx(prior)
    rows = pieces.protocol / prior[:, None]
    assert oracle.worst(rows)[0].max() <= 1e-6
    inside = Bent(cost, prior, limits, oracle).solve(Budget(10.0), room=1e-3)
    assert oracle.worst(inside.protocol / prior[:, None])[0].max() <= 0
    assert bends(notion("ldp").demand(joint, {}, 0).oracle()) is None


@given(st.integers(0, 5_000), STEPS, st.integers(1, 50), st.integers(2, 9))
def test_half_a_step_is_so_many_records_that_the_minimum_is_not_told(total, step, minimum, secrets):
    parts = steps_in_one(step, minimum, secrets, total)
    if parts:
        wide = Fraction(2, 2 * parts + 1)
        assert wide >= step
        assert wide / 2 * total >= minimum + secrets
        assert (1 / wide).denominator == 2
