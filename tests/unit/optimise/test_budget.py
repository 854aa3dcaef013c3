"""What a search may spend: parts of a budget, and searches that end at the same place whatever the clock says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from funnel.measure import clock
from funnel.optimise.budget import Budget
from funnel.optimise.solve import maximise
from tests.support.cones import CONES, census, entropy, lifted_ldp, prior_of


def test_a_part_spends_from_the_whole() -> None:
    whole = Budget(nodes=10)
    part = whole.part(0.5)
    part.spend(4)
    assert (whole.nodes, part.nodes, part.over, whole.over) == (6, 1, False, False)
    part.spend(1)
    assert (part.over, whole.over) == (True, False)


def test_seconds_are_limited_only_where_they_were() -> None:
    assert math.isinf(Budget(nodes=5).part(0.25).seconds)
    assert Budget(2).part(0.25).seconds <= 0.5
    assert Budget(0).over
    assert Budget(-1).seconds == 0


def test_seconds_are_never_more_than_the_clock_leaves() -> None:
    with clock.within(5):
        assert Budget.of(60).seconds <= 5
    own = Budget(nodes=3)
    assert Budget.of(own) is own


@pytest.mark.long
@pytest.mark.parametrize("kind", ["lip", "ldp", "lifted"])
@pytest.mark.parametrize("nodes", [20, 300])
def test_with_nodes_alone_a_search_ends_at_the_same_place(kind: str, nodes: int) -> None:
    table = census("occupation", "education")
    cone = lifted_ldp(table, 0.5) if kind == "lifted" else CONES[kind](table, 0.5)
    prior = prior_of(table)
    found = [maximise(cone, prior, budget=Budget(nodes=nodes)) for _ in range(2)]
    assert found[0].nodes <= nodes
    assert found[0].value <= found[0].bound <= entropy(prior) + 1e-9
    assert (found[0].protocol == found[1].protocol).all()
    assert (found[0].value, found[0].bound) == (found[1].value, found[1].bound)
    assert np.abs(found[0].protocol.sum(axis=0) - 1).max() <= 1e-12
