"""The stage that counts records by what somebody may know of them: every column, under its own values and coarser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from funnel.engine.sql import identifier, listed
from funnel.format.known import GROUPED, OWN, RELEASED
from funnel.plan.columns import above
from funnel.plan.names import Names
from funnel.plan.stages import Know
from funnel.policy import Attribute, Policy


def know_stage(policy: Policy, names: Names) -> Know | None:
    """The stage, None where the notion does not ask for it. It reads the view `kept`, and with it the raw keys."""
    if not policy.privacy.asks_own:
        return None
    texts = {key.name: key.label for key in [*names.keys, *names.own]}
    texts |= {one.key.name: f"CAST({identifier(one.key.name)} AS VARCHAR)" for inner in names.inner for one in inner}
    levels = list(_levels(policy, names))
    texts |= dict(_above(policy, names, texts))
    read = listed(f"{text} AS {identifier(name)}" for name, text in texts.items())
    shown = listed(map(identifier, texts))
    return Know(
        f"SELECT {shown}, count(*) AS n FROM (SELECT {read} FROM kept) GROUP BY ALL",
        tuple(levels),
        policy.estimate.minimum,
    )


def _columns(policy: Policy, names: Names) -> Iterator[tuple[str, str, Attribute]]:
    """For each public column its place, the name of what is released of it, or read inside a cell, and itself."""
    for j, block in enumerate(policy.blocks):
        for i, attribute in enumerate(block.attributes):
            yield f"{j}_{i}", f"w{j}_{i}" if names.inner[j] else f"x{j}_{i}", attribute


def _levels(policy: Policy, names: Names) -> Iterator[tuple[str, str, str]]:
    """Each column under its own values, where these are put together as it is released, and by groups of groups.

    Where rare ones of what they are put together to are merged, before that as well.
    """
    merged = {key.name for _, key, _ in names.rare}
    for place, label, attribute in _columns(policy, names):
        if attribute.reduced:
            yield attribute.name, OWN, f"o{place}"
        if label in merged and (attribute.is_measured or attribute.groups is not None):
            yield attribute.name, GROUPED, f"m{place}"
        yield attribute.name, RELEASED if attribute.reduced else OWN, label
        for height, _ in enumerate(above(label, attribute), start=2):
            yield attribute.name, f"groups {height}", f"g{place}_{height}"


def _above(policy: Policy, names: Names, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What rare values were before they were merged; and the names of groups of groups, of these as of others."""
    before = {key.name: key.text for _, key, _ in names.rare}
    for place, label, attribute in _columns(policy, names):
        if label in before:
            yield f"m{place}", before[label]
        for height, text in enumerate(above(before.get(label, texts[label]), attribute), start=2):
            yield f"g{place}_{height}", text
