"""Mechanisms: one file each, named in a policy under `mechanism`. `single.SINGLE` lists them."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from funnel.mechanisms.auto import Auto
from funnel.mechanisms.base import Mechanism, Outlook, Solved
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
from funnel.mechanisms.single import SINGLE, named
from funnel.mechanisms.unary_encoding import UnaryEncoding

_EVERY: tuple[type[Mechanism], ...] = (*SINGLE, Auto)
MECHANISMS: dict[str, type[Mechanism]] = named(_EVERY)
"""By name, as policies and manifests write it."""

if TYPE_CHECKING:
    AnyMechanism = Mechanism
else:
    AnyMechanism = Annotated[reduce(or_, _EVERY), Field(discriminator="kind")]

__all__ = [
    "MECHANISMS",
    "AnyMechanism",
    "Auto",
    "ConditionalReporting",
    "GaussianFunnel",
    "GreedyFunnel",
    "IndependentReporting",
    "Invariant",
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
