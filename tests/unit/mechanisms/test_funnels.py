"""The privacy funnel itself: average leakage, by merging values or by adding noise to numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint
from funnel.errors import PlanError
from funnel.measure.information import mutual_information, public_entropy, released_information
from funnel.mechanisms import GaussianFunnel, GreedyFunnel
from funnel.mechanisms.product import protect
from funnel.notions import MutualInformation
from tests.support.census import census
from tests.support.strategies import joints, many_block_joints

SETTINGS = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def average(epsilon: float) -> MutualInformation:
    return MutualInformation(notion="mutual-information", epsilon=epsilon)


def greedy(**options) -> GreedyFunnel:
    return GreedyFunnel(kind="greedy-funnel", **options)


def kept(protection) -> float:
    return released_information(protection.joint, protection.protocols, protection.channel.table)


def numbers(table, *columns) -> Joint:
    """A joint of one block of numbers: counts N[s, x1, …] with the labels of each column."""
    counts = np.asarray(table)
    names = tuple(f"n{k}" for k in range(len(columns)))
    cells = [index for index in np.ndindex(counts.shape[1:]) if counts[(slice(None), *index)].any()]
    values = tuple(tuple(str(column[i]) for column, i in zip(columns, index, strict=True)) for index in cells)
    flat = np.stack([counts[(slice(None), *index)] for index in cells], axis=1)
    where = np.argwhere(flat > 0)
    secret = Alphabet(("s",), tuple((f"s{s}",) for s in range(len(counts))))
    return Joint(secret, (Alphabet(names, values),), where, flat[flat > 0])


@pytest.mark.parametrize("search", ["best", "paper"])
@given(joint=joints(), epsilon=st.floats(1e-4, 1))
@SETTINGS
def test_merging_keeps_the_average_within_the_bound_without_chance(search, joint, epsilon):
    protection = protect_or_nothing(joint, epsilon, greedy(search=search))
    if protection is None:
        return
    (protocol,) = protection.protocols
    assert protocol.bits == 0
    assert set(np.unique(protocol.weights)) <= {0, 1}
    assert mutual_information(protection.channel.table) <= epsilon + 1e-12
    assert protection.leakage.exact <= Fraction(repr(epsilon))
    assert 0 <= kept(protection) <= public_entropy(joint) + 1e-12
    assert set(protocol.outputs.values) <= set(protocol.inputs.values)


def test_where_nothing_keeps_an_average_a_mechanism_is_named_that_keeps_averages():
    from funnel.errors import SolverError
    from funnel.mechanisms import MECHANISMS

    joint = Joint.from_table([[40, 20], [20, 41]])
    with pytest.raises(SolverError) as caught:
        protect(joint, average(1e-30), MECHANISMS["conditional-reporting"](kind="conditional-reporting"), (1.0,))
    advice = caught.value.advice or ""
    assert "`mechanism: greedy-funnel`" in advice and "optimal" not in advice
    assert MECHANISMS["greedy-funnel"].misfit("mutual-information", secret_public=False) is None


def protect_or_nothing(joint, epsilon, mechanism):
    """None where nothing but a constant keeps the bound, which is refused."""
    from funnel.errors import SolverError

    try:
        return protect(joint, average(epsilon), mechanism, (1 / len(joint.blocks),) * len(joint.blocks))
    except SolverError as error:
        assert error.code == "nothing-to-release"
        return None


@given(joint=many_block_joints(blocks=2), epsilon=st.floats(0.01, 0.5))
@SETTINGS
def test_averages_of_several_blocks_add_up(joint, epsilon):
    protection = protect_or_nothing(joint, epsilon, greedy())
    assert protection is None or mutual_information(protection.channel.table) <= epsilon + 1e-12


@pytest.mark.parametrize(
    ("pair", "epsilon"), [(("marital_status", "education"), 0.01), (("occupation", "relationship"), 0.05)]
)
def test_on_the_census_the_search_keeps_at_least_what_the_printed_one_keeps(pair, epsilon):
    joint = census(*pair)
    best, paper = (protect(joint, average(epsilon), greedy(search=one), (1.0,)) for one in ("best", "paper"))
    assert kept(best) >= kept(paper) > 0.2 * public_entropy(joint)


def test_above_what_x_gives_away_nothing_is_merged():
    joint = Joint.from_table([[30, 20, 50], [25, 25, 40]])
    protection = protect(joint, average(0.5), greedy(), (1.0,))
    assert np.array_equal(protection.protocols[0].weights[:, 0], np.eye(3))


AGES = numbers(
    np.round(1000 * np.stack([np.exp(-((np.arange(10) - m) ** 2) / 8) for m in (3, 6)]) + 1).astype(int),
    range(20, 70, 5),
)


@pytest.mark.parametrize("epsilon", [0.005, 0.02, 0.08])
def test_noise_on_a_number_keeps_the_measured_average(epsilon):
    protection = protect(AGES, average(epsilon), GaussianFunnel(kind="gaussian-funnel"), (1.0,))
    assert protection.leakage.nats <= epsilon
    assert protection.leakage.nats >= epsilon * 0.9
    grid = {value for (value,) in protection.protocols[0].outputs.values}
    assert grid <= {str(age) for age in range(20, 70, 5)}
    assert len(grid) > 1


def test_a_larger_budget_errs_less():
    errors = []
    points = np.array([float(value) for (value,) in AGES.blocks[0].values])
    counts = AGES.table().sum(axis=0)
    for epsilon in (0.005, 0.02, 0.08):
        (protocol,) = protect(
            AGES, average(epsilon), GaussianFunnel(kind="gaussian-funnel"), (1.0,)
        ).protocols
        outputs = np.array([float(value) for (value,) in protocol.outputs.values])
        chances = protocol.probabilities()[:, 0, :]
        errors.append(float((chances * (outputs[:, None] - points[None]) ** 2 @ counts).sum() / counts.sum()))
    assert errors == sorted(errors, reverse=True)


def test_numbers_that_tell_little_are_released_as_they_are():
    joint = numbers([[50, 50, 51], [50, 49, 50]], (1, 2, 3))
    protection = protect(joint, average(0.5), GaussianFunnel(kind="gaussian-funnel"), (1.0,))
    assert np.array_equal(protection.protocols[0].weights[:, 0], np.eye(3))


def test_noise_goes_where_the_secret_shows():
    """One number tells the secret, the other is noise: the second is released better."""
    spread = np.exp(-((np.arange(7) - 3) ** 2) / 4)
    table = np.round(
        400 * np.stack([np.outer(np.exp(-((np.arange(7) - m) ** 2) / 4), spread) for m in (2, 4)])
    ).astype(int)
    joint = numbers(table, range(7), range(7))
    (protocol,) = protect(joint, average(0.02), GaussianFunnel(kind="gaussian-funnel"), (1.0,)).protocols
    prior = joint.table().sum(axis=0) / joint.rows
    points = np.array(protocol.inputs.values, float)
    outputs = np.array(protocol.outputs.values, float)
    chances = protocol.probabilities()[:, 0, :]
    errors = [float((chances * (outputs[:, [k]] - points[None, :, k]) ** 2 @ prior).sum()) for k in range(2)]
    assert errors[1] < errors[0] / 3


@pytest.mark.parametrize("label", ["abc", None])
def test_only_numbers_can_have_noise(label):
    secret = Alphabet(("s",), (("a",), ("b",)))
    block = Alphabet(("n",), (("1",), (label,)))
    joint = Joint(secret, (block,), np.array([[0, 0], [1, 1], [0, 1]]), np.array([20, 20, 20]))
    with pytest.raises(PlanError) as caught:
        protect(joint, average(0.001), GaussianFunnel(kind="gaussian-funnel"), (1.0,))
    assert caught.value.code == "column-type"


def test_a_number_that_repeats_another_is_refused():
    table = np.zeros((2, 3, 3), int)
    table[0, [0, 1, 2], [0, 1, 2]], table[1, [0, 1, 2], [0, 1, 2]] = [30, 20, 10], [10, 20, 30]
    joint = numbers(table, (1, 2, 3), (2, 4, 6))
    with pytest.raises(PlanError) as caught:
        protect(joint, average(0.001), GaussianFunnel(kind="gaussian-funnel"), (1.0,))
    assert caught.value.code == "column-type"


def test_the_bound_is_epsilon_itself_and_not_its_exponential():
    assert average(0.1).bound == Fraction(1, 10)
    assert math.isclose(average(0.1).at(0.05).epsilon, 0.05)
