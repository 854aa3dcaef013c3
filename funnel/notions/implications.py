"""Which bounds follow from which: the single steps that every notion names, taken one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from funnel.notions import NOTIONS
from funnel.notions.base import Implied, Notion


def bound(name: str, epsilon: float, parameters: Mapping[str, Any]) -> Notion:
    """A notion as an argument, not as a policy: not validated, so that zero nats and endless sets may be thought of."""
    return NOTIONS[name].model_construct(notion=name, epsilon=epsilon, **parameters)


def implied(given: Notion, asked: Notion) -> str | None:
    """Why a bound that is kept implies one that is asked for, by the fewest steps; None where it does not."""
    found = [
        (len(why), end.epsilon, why)
        for end, why in _chains(given)
        if end.notion == asked.notion and end.covers(asked)
    ]
    if not found:
        return None
    _, reached, why = min(found)
    return f"{', and '.join(why) or 'it is the same notion'}, at {reached:g} nats"


def least(given: Notion, name: str) -> float | None:
    """The smallest bound in nats of a notion that follows from one that is kept; None where none does."""
    found = [end.epsilon for end, _ in _chains(given) if end.notion == name]
    return min(found) if found else None


def _chains(given: Notion) -> Iterator[tuple[Notion, tuple[str, ...]]]:
    """What follows from a bound, itself first, with the reasons on the way: every chain that meets no notion twice."""
    yield from _onwards(given, (), frozenset({given.notion}))


def _onwards(
    here: Notion, why: tuple[str, ...], met: frozenset[str]
) -> Iterator[tuple[Notion, tuple[str, ...]]]:
    yield here, why
    for step in here.implies():
        if step.notion not in met:
            yield from _onwards(_end(step), (*why, step.why), met | {step.notion})


def _end(step: Implied) -> Notion:
    return bound(step.notion, step.epsilon, step.parameters)
