"""Mechanisms: one file each, named in a policy under `mechanism`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from funnel.mechanisms.auto import Auto
from funnel.mechanisms.base import Mechanism, Outlook, Solved
from funnel.mechanisms.conditional_reporting import ConditionalReporting
from funnel.mechanisms.gaussian_funnel import GaussianFunnel
from funnel.mechanisms.greedy_funnel import GreedyFunnel
from funnel.mechanisms.independent_reporting import IndependentReporting
from funnel.mechanisms.non_robust import NonRobust
from funnel.mechanisms.optimal import Optimal
from funnel.mechanisms.polyopt import Polyopt
from funnel.mechanisms.randomised_response import RandomisedResponse
from funnel.mechanisms.secret_randomised_response import SecretRandomisedResponse
from funnel.mechanisms.unary_encoding import UnaryEncoding

AnyMechanism = Annotated[
    Optimal
    | RandomisedResponse
    | ConditionalReporting
    | Polyopt
    | SecretRandomisedResponse
    | IndependentReporting
    | NonRobust
    | GreedyFunnel
    | GaussianFunnel
    | UnaryEncoding
    | Auto,
    Field(discriminator="kind"),
]

MECHANISMS: dict[str, type[Mechanism]] = {
    "optimal": Optimal,
    "randomised-response": RandomisedResponse,
    "conditional-reporting": ConditionalReporting,
    "polyopt": Polyopt,
    "secret-randomised-response": SecretRandomisedResponse,
    "independent-reporting": IndependentReporting,
    "non-robust": NonRobust,
    "greedy-funnel": GreedyFunnel,
    "gaussian-funnel": GaussianFunnel,
    "unary-encoding": UnaryEncoding,
    "auto": Auto,
}

__all__ = [
    "MECHANISMS",
    "AnyMechanism",
    "Auto",
    "ConditionalReporting",
    "GaussianFunnel",
    "GreedyFunnel",
    "IndependentReporting",
    "Mechanism",
    "NonRobust",
    "Optimal",
    "Outlook",
    "Polyopt",
    "RandomisedResponse",
    "SecretRandomisedResponse",
    "Solved",
    "UnaryEncoding",
]
