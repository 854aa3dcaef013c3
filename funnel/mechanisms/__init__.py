"""Mechanisms: one file each, named in a policy under `mechanism`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from funnel.mechanisms.base import Mechanism, Solved
from funnel.mechanisms.conditional_reporting import ConditionalReporting
from funnel.mechanisms.optimal import Optimal
from funnel.mechanisms.randomised_response import RandomisedResponse

AnyMechanism = Annotated[Optimal | RandomisedResponse | ConditionalReporting, Field(discriminator="kind")]

MECHANISMS: dict[str, type[Mechanism]] = {
    "optimal": Optimal,
    "randomised-response": RandomisedResponse,
    "conditional-reporting": ConditionalReporting,
}

__all__ = [
    "MECHANISMS",
    "AnyMechanism",
    "ConditionalReporting",
    "Mechanism",
    "Optimal",
    "RandomisedResponse",
    "Solved",
]
