"""Auto is never worse than what it chose from, and takes nothing that breaks the bound or publishes too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint
from funnel.errors import PlanError, SolverError
from funnel.measure import clock
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.auto import candidates, fitting
from funnel.mechanisms.choice import PASSED_OVER, choose
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from tests.support.strategies import joints, many_block_joints

SETTINGS = settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
AUTO = MECHANISMS["auto"](kind="auto")
TABLE = Joint.from_table([[30, 5, 10, 40], [4, 25, 12, 20], [9, 9, 30, 7]])


def made(notion: str, epsilon: float, **more):
    return NOTIONS[notion](notion=notion, **({} if notion == "perfect" else {"epsilon": epsilon}), **more)


def same(first, second) -> bool:
    """Whether two protections release the same."""
    pairs = zip(first.protocols, second.protocols, strict=True)
    return all(a.bits == b.bits and np.array_equal(a.weights, b.weights) for a, b in pairs)


@pytest.mark.long
@pytest.mark.parametrize("notion", ["lip", "ldp", "perfect"])
@given(joint=joints(), epsilon=st.floats(0.05, 3))
@SETTINGS
def test_the_choice_is_the_best_of_the_candidates(notion, joint, epsilon):
    asked = made(notion, epsilon)
    try:
        found = choose(joint, asked, AUTO, (1.0,))
    except SolverError:
        for kind in candidates(notion, secret_public=False):
            with pytest.raises(SolverError):
                protect(joint, asked, MECHANISMS[kind](kind=kind), (1.0,))
        return
    assert found.holds
    assert [one.mechanism for one in found.candidates] == list(candidates(notion, secret_public=False))
    for one in found.candidates:
        assert (one.normalised is None) != (one.reason is None)
        if one.normalised is not None:
            alone = protect(joint, asked, MECHANISMS[one.mechanism](kind=one.mechanism), (1.0,))
            assert one.normalised == alone.normalised
            assert found.normalised >= one.normalised * (1 - 1e-8)
            assert one.mechanism != found.mechanism.kind or same(found, alone)
        else:
            assert one.mechanism != found.mechanism.kind


@pytest.mark.long
@given(joint=many_block_joints(), epsilon=st.floats(0.1, 2))
@settings(SETTINGS, max_examples=4)
def test_one_mechanism_is_chosen_for_all_blocks_and_the_whole_keeps_the_bound(joint, epsilon):
    found = choose(joint, made("lip", epsilon), AUTO, (1 / len(joint.blocks),) * len(joint.blocks))
    assert found.holds
    again = choose(joint, made("lip", epsilon), AUTO, (1 / len(joint.blocks),) * len(joint.blocks))
    assert same(found, again)
    assert found.candidates == again.candidates


def test_every_candidate_is_compared_at_the_best_split_found_for_it():
    table = np.array([[[40, 9, 6], [12, 30, 8]], [[10, 22, 5], [35, 9, 28]]])  # s, x, z: x tells more of s
    blocks = [Alphabet((name,), tuple((str(i),) for i in range(n))) for name, n in zip("sxz", table.shape, strict=True)]
    joint = Joint(blocks[0], tuple(blocks[1:]), np.argwhere(table > 0).astype(np.int64), table[table > 0])
    asked = made("lip", 0.25, split="optimal")
    found = choose(joint, asked, AUTO, (0.5, 0.5))
    alone = {kind: choose(joint, asked, MECHANISMS[kind](kind=kind), (0.5, 0.5)) for kind in
             (one.mechanism for one in found.candidates if one.reason is None)}  # fmt: skip
    assert {one.mechanism: one.normalised for one in found.candidates if one.reason is None} == {
        kind: one.normalised for kind, one in alone.items()
    }
    assert found.normalised == max(one.normalised for one in alone.values())
    assert found.shares == alone[found.mechanism.kind].shares != (0.5, 0.5)


def test_where_all_keep_everything_the_optimal_one_is_used():
    joint = Joint.from_table([[30, 20, 50], [25, 25, 40]])
    found = choose(joint, made("lip", 3.0), AUTO, (1.0,))
    assert found.mechanism.kind == "optimal"
    assert {one.normalised for one in found.candidates} == {1.0}


def test_a_mechanism_that_reads_the_secret_is_passed_over_where_some_secret_is_rare():
    found = choose(TABLE, made("lip", 0.5), AUTO, (1.0,), secret_rare=True)
    reasons = {one.mechanism: one.reason for one in found.candidates}
    assert reasons["conditional-reporting"] == PASSED_OVER["below-minimum"]
    assert reasons["optimal"] is None
    free = choose(TABLE, made("lip", 0.5), AUTO, (1.0,))
    assert {one.mechanism: one.reason for one in free.candidates}["conditional-reporting"] is None


def test_out_of_time_is_a_reason_and_without_any_protocol_an_error():
    hurried = MECHANISMS["auto"](kind="auto", time_limit=1e-9)
    with pytest.raises(SolverError) as caught:
        choose(TABLE, made("lip", 0.5), hurried, (1.0,))
    assert (caught.value.code, caught.value.status) == ("solver-time", "time")


def test_a_slow_candidate_leaves_the_others_their_part(monkeypatch):
    """One that uses up its part is passed over; those after it still have theirs."""
    given_to = {}

    def slow(self, joint, demand):
        given_to["optimal"] = clock.left()
        raise SolverError("solver-time", "too slow", status="time")

    def quick(self, joint, demand):
        given_to["other"] = clock.left()
        return original(self, joint, demand)

    original = MECHANISMS["randomised-response"].solve
    monkeypatch.setattr(MECHANISMS["optimal"], "solve", slow)
    monkeypatch.setattr(MECHANISMS["randomised-response"], "solve", quick)
    found = choose(TABLE, made("ldp-x", 1.0), MECHANISMS["auto"](kind="auto", time_limit=1000.0), (1.0,))
    assert found.mechanism.kind == "randomised-response"
    assert found.candidates[0].reason == PASSED_OVER["solver-time"]
    number = len(candidates("ldp-x", secret_public=False))
    assert given_to["optimal"] <= 1000 / number
    assert given_to["other"] >= 900 / number


def test_reasons_are_fixed_words_without_figures_of_the_table(monkeypatch):
    def refused(self, joint, demand):
        raise PlanError("alphabet-too-large", "marital_status has 4,711 rare values")

    monkeypatch.setattr(MECHANISMS["randomised-response"], "solve", refused)
    found = choose(TABLE, made("lip", 0.5), AUTO, (1.0,))
    (reason,) = [one.reason for one in found.candidates if one.mechanism == "randomised-response"]
    assert reason == PASSED_OVER["alphabet-too-large"]
    assert "4,711" not in reason


def test_what_a_search_did_not_find_is_not_said_to_be_impossible(monkeypatch):
    """Its table may be one that another mechanism serves: then there is a protocol that keeps the bound."""

    def constant(self, joint, demand):
        raise SolverError("nothing-to-release", "no", status="empty")

    monkeypatch.setattr(MECHANISMS["optimal"], "solve", constant)
    found = choose(TABLE, made("lip", 0.5), AUTO, (1.0,))
    (reason,) = [one.reason for one in found.candidates if one.mechanism == "optimal"]
    assert reason == "it found nothing to release that keeps the bound"
    assert any(one.normalised for one in found.candidates)


def test_when_all_refuse_each_says_why(monkeypatch):
    for kind, (code, status) in {
        "optimal": ("solver-size", "size"),
        "invariant": ("solver-size", "size"),
        "randomised-response": ("solver-time", "time"),
    }.items():

        def refused(self, joint, demand, code=code, status=status):
            raise SolverError(code, "no", status=status)

        monkeypatch.setattr(MECHANISMS[kind], "solve", refused)
    with pytest.raises(SolverError) as caught:
        choose(TABLE, made("ldp-x", 0.5), AUTO, (1.0,))
    assert caught.value.code == "nothing-to-release"
    for said in (
        "optimal: it is not offered for a table like this",
        "randomised-response: it did not finish",
    ):
        assert said in caught.value.message


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("public", [False, True])
def test_candidates_fit_and_never_are_auto_itself(notion, public):
    fit = fitting(notion, secret_public=public)
    assert "auto" not in fit
    assert all(one.misfit(notion, secret_public=public) is None for one in fit.values())
    chosen_from = candidates(notion, secret_public=public)
    assert set(chosen_from) <= set(fit)
    reads = any(one.reads_secret for one in chosen_from.values())
    assert AUTO.may_read_secret(notion, secret_public=public) == reads


def test_the_inner_limit_never_extends_the_outer_one():
    with clock.within(5), clock.within(50):
        assert clock.left() <= 5
    assert clock.left() == float("inf")
    with clock.within(0), pytest.raises(SolverError):
        clock.check()


def two_blocks() -> Joint:
    """A column of two values that tells much about the secret, and one of six that tells less of it."""
    cells = np.array([[s, a, b] for s in range(2) for a in range(2) for b in range(6)])
    much, less = np.array([[60, 5], [5, 60]]), np.array([[20, 18, 15, 12, 11, 10], [9, 12, 14, 16, 18, 19]])
    counts = np.array([much[s, a] * less[s, b] for s, a, b in cells])
    names = tuple((letter,) for letter in "uvwxyz")
    blocks = (Alphabet(("a",), names[:2]), Alphabet(("b",), names))
    return Joint(Alphabet(("s",), names[:2]), blocks, cells, counts)


@given(joint=many_block_joints(), epsilon=st.floats(0.1, 2))
@settings(SETTINGS, max_examples=3)
def test_a_searched_split_is_never_worse_than_the_equal_one(joint, epsilon):
    shares = (1 / len(joint.blocks),) * len(joint.blocks)
    used = MECHANISMS["randomised-response"](kind="randomised-response")
    try:
        equal = choose(joint, made("lip", epsilon), used, shares)
    except SolverError:
        return
    best = choose(joint, made("lip", epsilon, split="optimal"), used, shares)
    assert best.holds
    assert best.kept >= equal.kept
    assert sum(best.shares) == pytest.approx(1)
    assert all(share > 0 for share in best.shares)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["optimal", "randomised-response"])
def test_epsilon_goes_where_it_keeps_most(mechanism):
    joint, used = two_blocks(), MECHANISMS[mechanism](kind=mechanism)
    equal = choose(joint, made("lip", 0.4), used, (0.5, 0.5))
    best = choose(joint, made("lip", 0.4, split="optimal"), used, (0.5, 0.5))
    assert best.kept > equal.kept * 1.01
    again = choose(joint, made("lip", 0.4, split="optimal"), used, (0.5, 0.5))
    assert best.shares == again.shares
    assert same(best, again)


def test_auto_and_a_searched_split_work_together():
    joint = two_blocks()
    found = choose(joint, made("lip", 0.4, split="optimal"), AUTO, (0.5, 0.5))
    equal = choose(joint, made("lip", 0.4), AUTO, (0.5, 0.5))
    assert found.kept >= equal.kept
    assert found.holds
    (used,) = [one for one in found.candidates if one.mechanism == found.mechanism.kind]
    assert used.normalised == found.normalised


def test_one_block_and_perfect_privacy_have_nothing_to_split():
    calls = []
    optimal = MECHANISMS["optimal"](kind="optimal")
    choose(TABLE, made("lip", 0.5, split="optimal"), optimal, (1.0,), calls.append)
    choose(two_blocks(), made("perfect", 0, split="optimal"), optimal, (0.5, 0.5), calls.append)
    assert not [call for call in calls if call.startswith("split")]


def test_auto_chooses_among_what_releases_values_of_the_table():
    """Neither sets of values nor numbers that nobody has, of which cells and codes would be some."""
    assert not {"gaussian-funnel", "unary-encoding"} & {*candidates("mutual-information", secret_public=False)}
    assert "gaussian-funnel" in fitting("mutual-information", secret_public=False)
    assert "unary-encoding" not in candidates("lip", secret_public=False)
