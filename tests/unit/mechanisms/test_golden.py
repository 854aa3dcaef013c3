"""The printed numbers: optimum and baselines on the census, through the mechanisms themselves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest

from funnel.data import Alphabet
from funnel.data.channel import Channel, released_table
from funnel.measure.information import mutual_information, public_entropy, released_information
from funnel.measure.leakage import lip
from funnel.mechanisms import ConditionalReporting, Optimal, RandomisedResponse
from funnel.mechanisms.base import LOSS
from funnel.mechanisms.naming import named
from funnel.notions import Alip, Ldp, Lip, Pml
from tests.support.census import census

EPSILONS = (0.5, 1.0, 2.0)
OPTIMA = {
    ("occupation", "sex"): ((0.1168261, 0.3518113, 0.7329280), (0.0472907, 0.1741043, 0.5249947)),
    ("occupation", "relationship"): ((0.6368990, 0.8590300, 0.9507117), (0.4361629, 0.7110578, 0.9173919)),
    ("marital_status", "relationship"): (
        (0.4235522, 0.6237563, 0.8231183),
        (0.3383934, 0.4433724, 0.6991621),
    ),
    ("marital_status", "education"): ((0.8588399, 0.9397998, 0.9776523), (0.7812089, 0.9108032, 0.9643750)),
}
BASELINES = {
    ("occupation", "sex"): ((0.092, 0.108), (0.293, 0.330), (0.718, 0.653)),
    ("occupation", "relationship"): ((0.052, 0.052), (0.176, 0.178), (0.490, 0.675)),
    ("marital_status", "relationship"): ((0.046, 0.049), (0.176, 0.129), (0.490, 0.541)),
    ("marital_status", "education"): ((0.242, 0.124), (0.481, 0.303), (0.765, 0.645)),
}
CASES = [
    (pair, notion, epsilon, value)
    for pair, columns in OPTIMA.items()
    for notion, values in zip((Lip, Ldp), columns, strict=True)
    for epsilon, value in zip(EPSILONS, values, strict=True)
]


@pytest.mark.parametrize(
    ("pair", "kind", "epsilon", "value"),
    CASES,
    ids=lambda v: getattr(v, "__name__", None) or "-".join(map(str, v)) if isinstance(v, tuple) else str(v),
)
def test_the_optimum_to_the_printed_digits(pair, kind, epsilon, value):
    joint = census(*pair)
    notion = kind(notion=kind.__name__.lower(), epsilon=epsilon)
    solved = Optimal(kind="optimal", gap=5e-8).solve(joint, notion.demand(joint, {}, 0))
    entropy = public_entropy(joint)
    assert solved.bound is not None
    assert solved.bound / entropy == pytest.approx(value, abs=1.1e-7 + 1.5e-6 * (pair[0] == "occupation"))

    table = released_table(joint, [solved.protocol])
    kept = released_information(joint, [solved.protocol], table)
    assert notion.holds(Channel(joint, [solved.protocol]))
    assert solved.bound * (1 - 2 * LOSS) <= kept <= solved.bound + 1e-12
    assert len(solved.protocol.outputs) <= len(solved.protocol.inputs)


UPPER_HALF = {
    ("occupation", "sex"): (0.8890, 0.7329),
    ("marital_status", "relationship"): (0.8935, 0.7731),
    ("occupation", "relationship"): (0.9637, 0.9351),
}
"""Of H(X): PML at 1 nat, and ALIP at 1 nat with `lower` 2."""
RECODED = {
    ("occupation", "sex"): (0.0, 0.3518),
    ("marital_status", "relationship"): (0.0, 0.6238),
    ("occupation", "relationship"): (0.7035, 0.8590),
}
"""Under LIP at 1 nat: the best partition of X, as released by tools that recode, and the optimum."""


@pytest.mark.parametrize("pair", UPPER_HALF, ids="-".join)
def test_the_optimum_under_a_bound_of_the_rise_alone(pair):
    joint = census(*pair)
    notions = (Pml(notion="pml", epsilon=1.0), Alip(notion="alip", epsilon=1.0, lower=2.0))
    for notion, printed in zip(notions, UPPER_HALF[pair], strict=True):
        solved = Optimal(kind="optimal").solve(joint, notion.demand(joint, {}, 0))
        channel = Channel(joint, [solved.protocol])
        kept = released_information(joint, [solved.protocol], channel.table) / public_entropy(joint)
        assert notion.holds(channel)
        assert solved.bound is not None
        assert kept == pytest.approx(printed, abs=5.1e-5)
        assert solved.bound / public_entropy(joint) == pytest.approx(printed, abs=5.1e-5)


@pytest.mark.parametrize("pair", RECODED, ids="-".join)
def test_no_recoding_of_values_keeps_as_much_as_the_optimum(pair):
    counts = census(*pair).table()
    bound = Lip(notion="lip", epsilon=1.0).bound
    best = max(
        mutual_information(np.diag(merged.sum(axis=0)))
        for partition in partitions(list(range(counts.shape[1])))
        if lip(merged := np.stack([counts[:, part].sum(axis=1) for part in partition], axis=1)).within(bound)
    )
    recoded, optimum = RECODED[pair]
    assert best / public_entropy(census(*pair)) == pytest.approx(recoded, abs=5.1e-5)
    assert recoded < optimum == round(OPTIMA[pair][0][1], 4)


def partitions(values: list[int]) -> Iterator[list[list[int]]]:
    """All partitions of the values."""
    if not values:
        yield []
        return
    first, *rest = values
    for partition in partitions(rest):
        yield [[first], *partition]
        for place, part in enumerate(partition):
            yield [*partition[:place], [first, *part], *partition[place + 1 :]]


@pytest.mark.parametrize("pair", BASELINES, ids="-".join)
def test_baselines_to_the_printed_digits(pair):
    joint = census(*pair)
    for epsilon, printed in zip(EPSILONS, BASELINES[pair], strict=True):
        notion = Lip(notion="lip", epsilon=epsilon)
        for mechanism, value in zip(
            (
                RandomisedResponse(kind="randomised-response"),
                ConditionalReporting(kind="conditional-reporting"),
            ),
            printed,
            strict=True,
        ):
            protocol = mechanism.solve(joint, notion.demand(joint, {}, 0)).protocol
            table = released_table(joint, [protocol])
            assert notion.holds(Channel(joint, [protocol]))
            kept = released_information(joint, [protocol], table) / public_entropy(joint)
            assert kept == pytest.approx(value, abs=5.1e-4), (mechanism.kind, epsilon)


def test_outputs_are_named_where_bids_for_the_names_stand_still():
    """Two rows differ by less than floating-point numbers can move the price of what both of them want."""
    counts = np.array([303, 463, 1087, 247, 303])
    weights = np.array([
        [19928, 54167, 19927, 19927, 54167],
        [19929, 54172, 19929, 54170, 19929],
        [54167, 54167, 19927, 19927, 19928],
        [59783, 59783, 162506, 59783, 59783],
        [108337, 39855, 39855, 108337, 108337],
    ])  # fmt: skip
    found = named(Alphabet(("x",), tuple((f"x{i}",) for i in range(5))), counts / counts.sum(), weights, 18)
    best = max(sum(counts[x] * weights[y, x] for y, x in enumerate(order)) for order in permutations(range(5)))
    assert len(found.outputs) == 5 and np.trace(found.weights[:, 0] * counts) == best
