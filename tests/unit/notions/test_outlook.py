"""What a plan says of a search before data are seen bounds what the data then ask for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Joint, Protocol
from funnel.notions import NOTIONS, Notion, Shape
from funnel.optimise.cost import expected_cost
from tests.support.strategies import joints, many_block_joints


def made(name: str, **options: object) -> Notion:
    epsilon = {} if name == "perfect" else {"epsilon": 1.0}
    return NOTIONS[name](notion=name, **epsilon, **options)


def weights(size: int) -> np.ndarray:
    """Every value is heard as itself mostly, and as any other."""
    return (np.ones((size, size), np.int64) + (64 - size) * np.eye(size, dtype=np.int64))[:, None, :]


def check(notion: Notion, joint: Joint) -> None:
    """Every block, given the blocks solved before it, which release as many values as they can."""
    shape, arranged = Shape.of(joint), notion.arrange(joint, 1)
    sizes, released = arranged.joint.shape[1:], {}
    for index in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        demand = arranged.notion.demand(arranged.joint, released, index)
        cone, block = demand.cone(), arranged.joint.block(index)
        prior = block.table().sum(axis=0) / block.rows
        foreseen = notion.extent(len(joint.secret), shape, sizes, index)
        assert foreseen is not None
        assert foreseen.dimension == cone.dimension
        assert foreseen.auxiliary == (0 if cone.lift is None else cone.lift.shape[1])
        constraints = len(cone.rows) if cone.lift is not None else len(cone.constraints(prior))
        assert foreseen.constraints >= constraints
        rays = demand.rays(prior)
        assert foreseen.known == (None if rays is None else rays.shape[0])
        values = block.blocks[0]
        released[index] = Protocol(values, values, 6, weights(len(values)))


@settings(deadline=None, max_examples=60)
@given(joints(), st.sampled_from(["lip", "ldp", "srlip", "ldp-x", "perfect", "rldp"]))
def test_one_block(joint: Joint, name: str) -> None:
    check(made(name), joint)


@settings(deadline=None, max_examples=40)
@given(many_block_joints(), st.sampled_from(["lip", "ldp", "ldp-x", "rldp"]))
def test_blocks_one_after_the_other(joint: Joint, name: str) -> None:
    check(made(name), joint)


@settings(deadline=None, max_examples=30)
@given(many_block_joints(), st.sampled_from(["joint", "sequential", "per-attribute"]))
def test_side_knowledge_multiplies_the_conditions(joint: Joint, way: str) -> None:
    check(made("srlip", solve=way), joint)


@pytest.mark.parametrize("secret", [2, 3])
def test_only_a_binary_secret_has_rays_in_closed_form(secret: int) -> None:
    shape = Shape((9,), 9, 5, secret_public=False)
    methods = {
        name: expected_cost(made(name).extent(secret, shape, (9,), 0)).method for name in ("lip", "ldp", "perfect")
    }
    assert {method == "planar" for method in methods.values()} == {secret == 2}


def test_an_average_constrains_no_row() -> None:
    shape = Shape((9,), 9, 5, secret_public=False)
    assert made("mutual-information").extent(3, shape, (9,), 0) is None
