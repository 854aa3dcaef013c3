"""robust.json: the numbers that show a bound on robust leakage, so that nobody has to look for them.

Private, for the numbers are functions of the counts. What they show is said, and checked, in `audit.kernel.robust`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Count, Nats

NAME = "robust.json"


@dataclass(frozen=True)
class Pair:
    """What shows P(output | secret) <= K P(output | other).

    How far above the weights under `secret` to go, and below those under `other`, in weights; and the h of each of the
    two at which tangents touch.
    """

    output: Count
    secret: Count
    other: Count
    above: Nats
    below: Nats
    spent: Nats
    other_spent: Nats


@dataclass(frozen=True)
class RobustFile:
    """robust.json. Outputs and secrets are places in protocol.json and counts.json; every double is meant exactly."""

    format: Literal["funnel-robust/1"]
    pairs: tuple[Pair, ...]
