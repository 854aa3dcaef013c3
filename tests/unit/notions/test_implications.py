"""What one notion promises, another one follows from: the stated steps hold for every channel."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data.channel import Channel
from funnel.measure import leakage as measures
from funnel.notions import NOTIONS, Alip, Ldp, LdpX, Lip, MutualInformation, Perfect, Pml, Rldp, Srlip
from funnel.notions.implications import implied, least
from tests.support.strategies import joints, protocols


@st.composite
def channels(draw):
    """A joint distribution, and any protocol on it that reads x alone."""
    joint = draw(joints())
    protocol = draw(protocols(joint).filter(lambda one: not one.reads_secret))
    return Channel(joint, [protocol])


@given(channels())
def test_lip_is_pml_and_its_lower_half(channel):
    """max(rise, fall) is LIP, so LIP of ε gives PML of ε, and PML is never infinite."""
    rise, both = measures.pml(channel.table), measures.lip(channel.table)
    assert rise.ratio is not None and rise.ratio >= 1
    assert both.ratio is None or rise.ratio <= both.ratio


@given(channels())
def test_pml_bounds_the_information_about_the_secret(channel):
    """I(S;Y) is the mean of ln P(s|y)/P(s), which is at most ε everywhere."""
    average = MutualInformation(notion="mutual-information", epsilon=1.0).leakage(channel)
    assert average.nats <= measures.pml(channel.table).nats + 1e-12


@given(channels(), st.floats(0.1, 2), st.floats(0, 2))
def test_alip_is_pml_and_lip_at_its_lower_bound(channel, epsilon, more):
    """From the definition: e^-lower <= P(s|y)/P(s) <= e^ε in every cell, in fractions."""
    notion = Alip(notion="alip", epsilon=epsilon, lower=epsilon + more)
    counts = [[int(n) for n in row] for row in channel.table if any(row)]
    total, columns = sum(map(sum, counts)), [sum(column) for column in zip(*counts, strict=True)]
    ratios = [
        Fraction(row[y] * total, sum(row) * columns[y])
        for row, y in product(counts, range(len(columns)))
        if columns[y]
    ]
    rise, fall = max(ratios), min(ratios)
    worst = math.inf if not fall else -math.log(fall)
    if min(abs(math.log(rise) - epsilon), abs(worst - epsilon - more)) > 1e-9:
        assert notion.holds(channel) == (math.log(rise) <= epsilon and worst <= epsilon + more)
    assert Pml(notion="pml", epsilon=epsilon).holds(channel) >= notion.holds(channel)
    assert Lip(notion="lip", epsilon=epsilon + more).holds(channel) >= notion.holds(channel)
    assert notion.holds(channel) >= Lip(notion="lip", epsilon=epsilon).holds(channel)


KEPT = [
    Lip(notion="lip", epsilon=1.0),
    Ldp(notion="ldp", epsilon=1.0),
    Srlip(notion="srlip", epsilon=1.0),
    LdpX(notion="ldp-x", epsilon=1.0),
    Pml(notion="pml", epsilon=1.0),
    Alip(notion="alip", epsilon=1.0),
    Alip(notion="alip", epsilon=1.0, lower=2.0),
    Perfect(notion="perfect"),
]


@settings(max_examples=30)
@given(channels())
def test_every_bound_that_is_said_to_follow_holds(channel):
    """Scaled to what the channel leaks: a notion that is kept gives every bound that `least` names."""
    for notion in KEPT:
        nats = notion.leakage(channel).nats
        kept = notion if notion.exact_zero else notion.at(min(max(nats, 1e-9), 90.0))
        if not kept.holds(channel):
            continue
        for name in set(NOTIONS) - {"rldp"}:
            bound = least(kept, name)
            if bound is not None and not NOTIONS[name].exact_zero:
                assert NOTIONS[name](notion=name, epsilon=max(bound, 1e-9) * (1 + 1e-9)).leakage(
                    channel
                ).nats <= max(bound, 1e-9) * (1 + 1e-9), (kept, name)


FOLLOWS = {
    "lip, pml": (Lip(notion="lip", epsilon=1.0), Pml(notion="pml", epsilon=1.0)),
    "lip, alip": (Lip(notion="lip", epsilon=1.0), Alip(notion="alip", epsilon=1.0, lower=1.0)),
    "alip, pml": (Alip(notion="alip", epsilon=1.0, lower=3.0), Pml(notion="pml", epsilon=1.0)),
    "alip, lip": (Alip(notion="alip", epsilon=1.0, lower=3.0), Lip(notion="lip", epsilon=3.0)),
    "alip, wider": (Alip(notion="alip", epsilon=1.0, lower=2.0), Alip(notion="alip", epsilon=1.0, lower=3.0)),
    "pml, alip": (Pml(notion="pml", epsilon=1.0), Alip(notion="alip", epsilon=1.0)),
    "pml, I(S;Y)": (Pml(notion="pml", epsilon=1.0), MutualInformation(notion="mutual-information", epsilon=1.0)),
    "srlip, pml": (Srlip(notion="srlip", epsilon=1.0), Pml(notion="pml", epsilon=1.0)),
    "rldp, pml": (Rldp(notion="rldp", epsilon=1.0), Pml(notion="pml", epsilon=1.0)),
    "ldp-x, rldp": (LdpX(notion="ldp-x", epsilon=1.0), Rldp(notion="rldp", epsilon=1.0)),
    "perfect, pml": (Perfect(notion="perfect"), Pml(notion="pml", epsilon=0.1)),
}  # fmt: skip
NOT = {
    "pml, lip": (Pml(notion="pml", epsilon=1.0), Lip(notion="lip", epsilon=90.0)),
    "pml, alip": (Pml(notion="pml", epsilon=1.0), Alip(notion="alip", epsilon=1.0, lower=90.0)),
    "alip, lip": (Alip(notion="alip", epsilon=1.0, lower=3.0), Lip(notion="lip", epsilon=2.9)),
    "average, pml": (MutualInformation(notion="mutual-information", epsilon=0.1), Pml(notion="pml", epsilon=90.0)),
    "pml, smaller": (Pml(notion="pml", epsilon=1.0), Pml(notion="pml", epsilon=0.9)),
    "ldp, rldp": (Ldp(notion="ldp", epsilon=1.0), Rldp(notion="rldp", epsilon=90.0)),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLLOWS)
def test_what_follows(case):
    assert implied(*FOLLOWS[case]) is not None


@pytest.mark.parametrize("case", NOT)
def test_what_does_not_follow(case):
    assert implied(*NOT[case]) is None


def test_a_chain_of_steps_says_why():
    assert implied(*FOLLOWS["ldp-x, rldp"]) == (
        "what moves no odds between public values moves none of the secret, at 1 nats"
    )
    assert implied(*FOLLOWS["srlip, pml"]) == (
        "knowing no column is one case of srlip, and the bound is the same both ways, "
        "and the rise of beliefs is bounded alike, at 1 nats"
    )
