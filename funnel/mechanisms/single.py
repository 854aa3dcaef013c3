"""Every mechanism that solves a block by itself: the one list of them, in the order in which they are named."""

from __future__ import annotations

from typing import get_args

from funnel.mechanisms.base import Mechanism
from funnel.mechanisms.conditional_reporting import ConditionalReporting
from funnel.mechanisms.gaussian_funnel import GaussianFunnel
from funnel.mechanisms.greedy_funnel import GreedyFunnel
from funnel.mechanisms.independent_reporting import IndependentReporting
from funnel.mechanisms.invariant import Invariant
from funnel.mechanisms.non_robust import NonRobust
from funnel.mechanisms.optimal import Optimal
from funnel.mechanisms.polyopt import Polyopt
from funnel.mechanisms.randomised_response import RandomisedResponse
from funnel.mechanisms.secret_randomised_response import SecretRandomisedResponse
from funnel.mechanisms.unary_encoding import UnaryEncoding

SINGLE: tuple[type[Mechanism], ...] = (
    Optimal,
    Invariant,
    RandomisedResponse,
    ConditionalReporting,
    Polyopt,
    SecretRandomisedResponse,
    IndependentReporting,
    NonRobust,
    GreedyFunnel,
    GaussianFunnel,
    UnaryEncoding,
)


def named(mechanisms: tuple[type[Mechanism], ...]) -> dict[str, type[Mechanism]]:
    """Mechanisms by the name that policies write."""
    return {str(get_args(one.model_fields["kind"].annotation)[0]): one for one in mechanisms}
