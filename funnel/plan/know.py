"""The stage that counts records by what somebody may know of them: every column, under its own values and coarser."""

from __future__ import annotations

from collections.abc import Iterator

from funnel.engine.sql import identifier, listed
from funnel.format.known import OWN, RELEASED
from funnel.plan.names import Names
from funnel.plan.stages import Know
from funnel.policy import Policy


def know_stage(policy: Policy, names: Names) -> Know | None:
    """The stage, None where the notion does not ask for it. It reads the view `kept`, and with it the raw keys."""
    if not policy.privacy.asks_own:
        return None
    levels = tuple(_levels(policy, names))
    labels = [f"{key.label} AS {identifier(key.name)}" for key in names.keys]
    own = [f"{key.label} AS {identifier(key.name)}" for key in names.own]
    inner = [f"CAST({name} AS VARCHAR) AS {name}" for name in (identifier(one) for one in _inner(names))]
    return Know(
        f"SELECT {listed([*labels, *own, *inner, 'count(*) AS n'])} FROM kept GROUP BY ALL",
        levels,
        policy.estimate.minimum,
    )


def _inner(names: Names) -> list[str]:
    return [one.key.name for inner in names.inner for one in inner]


def _levels(policy: Policy, names: Names) -> Iterator[tuple[str, str, str]]:
    """Each column under its own values, and where these are put together as it is released."""
    for j, block in enumerate(policy.blocks):
        for i, attribute in enumerate(block.attributes):
            label = f"w{j}_{i}" if names.inner[j] else f"x{j}_{i}"
            if attribute.reduced:
                yield attribute.name, OWN, f"o{j}_{i}"
            yield attribute.name, RELEASED if attribute.reduced else OWN, label
