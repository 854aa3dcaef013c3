"""The faithful protocol: the printed shares, totals that stay, bounds kept on integers, distances, redraws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint
from funnel.errors import PlanError, SolverError
from funnel.measure.faithful import at_zero, share_unchanged
from funnel.mechanisms import Invariant
from funnel.mechanisms.base import Solved
from funnel.mechanisms.invariant import distances
from funnel.mechanisms.product import Protection, protect
from funnel.notions import NOTIONS, Ldp, Lip
from funnel.optimise.rounding.totals import LOSS, NEAR
from tests.support.census import census
from tests.support.strategies import joints, many_block_joints

KEPT = Invariant(kind="invariant")
SHARES = {
    ("marital_status", "education"): (".854160 .931831 .978181", ".771490 .886507 .960094"),
    ("occupation", "relationship"): (".748842 .894506 .968533", ".586524 .797378 .946968"),
    ("occupation", "sex"): (".711618 .837125 .940082", ".639102 .723400 .863072"),
}
CASES = [
    (pair, notion, epsilon, float(share))
    for pair, columns in SHARES.items()
    for notion, shares in zip((Lip, Ldp), columns, strict=True)
    for epsilon, share in zip((0.5, 1.0, 2.0), shares.split(), strict=True)
]
WORST = [name for name, notion in NOTIONS.items() if notion.linear]
SMALL = settings(max_examples=12, deadline=None)


def made(name: str, epsilon: float):
    return NOTIONS[name](notion=name, **({} if NOTIONS[name].exact_zero else {"epsilon": epsilon}))


def off(protection: Protection) -> float:
    """The largest |E[M_y] - N_y| over all blocks, in records."""
    found = [0.0]
    for index, one in enumerate(protection.protocols):
        counts = protection.joint.table(index).sum(axis=0)
        own = [one.inputs.values.index(value) for value in one.outputs.values]
        found.append(float(np.abs(one.probabilities()[:, 0] @ counts - counts[own]).max()))
    return max(found)


@pytest.mark.parametrize(("pair", "notion", "epsilon", "share"), CASES)
def test_the_printed_shares(pair, notion, epsilon, share):
    joint = census(*pair)
    found = protect(joint, notion(notion=notion.__name__.lower(), epsilon=epsilon), KEPT, (1.0,))
    assert 1 - found.solved[0].totals.optimum == pytest.approx(share, abs=5.1e-7)
    assert share_unchanged(joint, found.protocols) == pytest.approx(share, abs=LOSS + 1e-6)
    assert found.holds
    assert off(found) <= NEAR
    assert found.solved[0].totals.deviation == pytest.approx(off(found), abs=1e-9)


def test_free_totals_answer_the_commonest_value_for_all():
    joint = census("occupation", "sex")
    free = Invariant(kind="invariant", totals="free")
    solved: Solved = free.solve(joint, Ldp(notion="ldp", epsilon=0.5).demand(joint, {}, 0))
    assert solved.protocol.outputs.values == (("Male",),)
    assert share_unchanged(joint, [solved.protocol]) == pytest.approx(0.669, abs=5e-4)
    assert solved.totals.deviation is None
    with pytest.raises(SolverError, match="says nothing"):
        protect(joint, Ldp(notion="ldp", epsilon=0.5), free, (1.0,))


@pytest.mark.long
@pytest.mark.parametrize("name", WORST)
@given(joint=joints(most=5), epsilon=st.floats(0.05, 3))
@SMALL
def test_every_bound_is_kept_exactly_and_every_total_nearly(name, joint, epsilon):
    try:
        found = protect(joint, made(name, epsilon), KEPT, (1.0,))
    except SolverError as error:
        assert (name, error.code) == ("perfect", "nothing-to-release")  # every value of X tells the secret
        return
    assert found.holds
    assert off(found) <= NEAR
    assert share_unchanged(joint, found.protocols) >= at_zero(joint).unchanged - LOSS - 1e-9
    assert set(found.protocols[0].outputs.values) == set(joint.blocks[0].values)


@given(joint=many_block_joints(), name=st.sampled_from(["lip", "ldp", "srlip"]), epsilon=st.floats(0.2, 2))
@SMALL
def test_several_blocks_keep_their_totals_and_the_bound_together(joint, name, epsilon):
    found = protect(joint, made(name, epsilon), KEPT, (1 / len(joint.blocks),) * len(joint.blocks))
    assert found.holds
    assert off(found) <= NEAR
    if len(found.solved) > 1:
        assert all(one.totals.prices is None for one in found.solved)


@given(joint=joints(most=5), epsilon=st.floats(0.2, 2))
@SMALL
def test_whatever_totals_are_freed_costs_no_more(joint, epsilon):
    notion = Lip(notion="lip", epsilon=epsilon)
    demand = notion.demand(joint, {}, 0)
    kept, free = (Invariant(kind="invariant", totals=one).solve(joint, demand) for one in ("kept", "free"))
    assert free.totals.optimum <= kept.totals.optimum + 1e-7
    assert demand.keeps(free.protocol.weights)


def test_where_only_nothing_can_be_told_the_totals_alone_are():
    """Fifteen secret values leave one vector of sixteen beside the constant one, too long for any integers."""
    joint = census("occupation", "education")
    found = protect(joint, made("perfect", 0.0), KEPT, (1.0,))
    assert found.holds and off(found) <= NEAR
    assert share_unchanged(joint, found.protocols) == pytest.approx(at_zero(joint).unchanged, abs=1e-4)


def test_where_the_time_is_over_there_is_a_protocol_and_it_says_how_far_it_may_be_from_the_best():
    joint = census("occupation", "relationship")
    hasty = Invariant(kind="invariant", time_limit=1e-6)
    found = protect(joint, Lip(notion="lip", epsilon=0.5), hasty, (1.0,))
    assert found.holds
    assert off(found) <= NEAR
    assert at_zero(joint).unchanged < share_unchanged(joint, found.protocols) < 0.748842
    assert found.solved[0].totals.optimum < 1 - 0.748842
    assert "as far as was found in time" in found.solved[0].how


def test_totals_of_a_thousand_redraws_are_centred_on_the_true_ones():
    joint = census("marital_status", "education")
    found = protect(joint, Lip(notion="lip", epsilon=0.5), KEPT, (1.0,))
    chances, counts = found.protocols[0].probabilities()[:, 0], joint.table().sum(axis=0)
    draws = np.random.default_rng(7)
    totals = sum(draws.multinomial(n, chances[:, x], size=1000) for x, n in enumerate(counts))
    spread = np.sqrt((counts * chances * (1 - chances)).sum(axis=1))
    assert (np.abs(totals.mean(axis=0) - counts) <= 4.5 * spread / np.sqrt(1000) + NEAR).all()
    assert totals.std(axis=0) == pytest.approx(spread, rel=0.12)


AGES = Alphabet(("age", "job"), (("[17, 25)", "a"), ("[25, 35)", "a"), ("[105, ∞)", "b"), (None, "b")))


def test_distances_count_places_and_what_is_no_number_is_far_from_everything():
    order = distances(AGES, {"age": "order"})
    assert order[0].tolist() == [0.0, 0.25, 1.0, 1.0]
    assert order[3].tolist() == [1.0, 1.0, 0.5, 0.0]
    assert distances(AGES, "match").tolist() == (1 - np.eye(4)).tolist()
    with pytest.raises(PlanError, match="job holds fewer than two numbers"):
        distances(AGES, "order")


def test_in_groups_of_groups_and_in_trees_the_way_from_the_root_counts():
    paths = {"land": {"Wien": ("Europe", "Austria"), "Graz": ("Europe", "Austria"), "Rom": ("Europe", "Italy"),
                      "Lima": ("America", "Peru")}}  # fmt: skip
    block = Alphabet(("land",), (("Wien",), ("Graz",), ("Rom",), ("Lima",), (None,)), paths)
    far = distances(block, "order")
    assert far[0].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])
    assert (far == far.T).all()
    deep = Alphabet(("t",), (("1",), ("2",), ("3",)), {"t": {"1": (), "2": ("4",), "3": ("4",)}})
    assert distances(deep, "order").tolist() == [[0, 1, 1], [1, 0, 0.5], [1, 0.5, 0]]
    assert block == Alphabet(("land",), block.values)  # what holds values is no part of what they are


def test_with_order_values_change_to_near_ones():
    table = np.array([[40, 30, 30, 20, 20, 10], [5, 10, 20, 40, 40, 60]]) * 10
    values = tuple((str(20 + 10 * x),) for x in range(6))
    plain = Joint.from_table(table)
    joint = Joint(plain.secret, (Alphabet(("age",), values),), plain.cells, plain.counts)
    notion, cost = Lip(notion="lip", epsilon=0.3), distances(joint.blocks[0], "order")
    prior, moved = table.sum(axis=0) / table.sum(), {}
    for rule in ("match", "order"):
        solved = Invariant(kind="invariant", distance=rule).solve(joint, notion.demand(joint, {}, 0))
        moved[rule] = float((cost * solved.protocol.probabilities()[:, 0]).sum(axis=0) @ prior)
    assert moved["order"] < 0.95 * moved["match"]


def _least(joint: Joint, notion: Lip) -> float:
    """The least share of records that change where totals are kept, as prices show it."""
    found = protect(joint, notion, KEPT, (1.0,)).solved[0].totals
    assert found.prices is not None
    return float(found.optimum)


def test_no_least_distance_is_shown_of_what_keeps_more_than_the_promise():
    """From rounded beliefs more records change than have to; boxes around a set of distributions ask for more, too."""
    joint = Joint.from_table([[300, 250, 80, 120], [90, 260, 190, 110]])
    notion = Lip(notion="lip", epsilon=0.2)
    (rounded,) = protect(joint, notion, KEPT, (1.0,), minimum=10, beliefs=0.1).solved
    assert rounded.totals.optimum > _least(joint, notion) + 0.01
    assert rounded.totals.prices is None
    for order, shown in ((0.3, False), (2.0, True)):
        robust = NOTIONS["rldp"](notion="rldp", epsilon=0.5, order=order, radius=0.001)
        (found,) = protect(joint, robust, KEPT, (1.0,)).solved
        assert (found.totals.prices is not None) is shown
