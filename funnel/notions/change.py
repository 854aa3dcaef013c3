"""What a change of a term makes of a promise."""

from __future__ import annotations

from typing import Any, Literal

Verdict = Literal["weaker", "stronger", "incomparable", "unchanged"]
Judged = tuple[Verdict, str]
"""A verdict on the new value, and why."""


def ordered(old: Any, new: Any, weaker: str, stronger: str, *, more_is_weaker: bool = True) -> Judged:
    """Two numbers (or ranks) of which one promises less."""
    if old == new:
        return "unchanged", ""
    return ("weaker", weaker) if (new > old) == more_is_weaker else ("stronger", stronger)
