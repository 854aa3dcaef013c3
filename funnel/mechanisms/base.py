"""What every mechanism offers: a protocol for one block that keeps a notion's bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from funnel.errors import SolverError
from funnel.model import Joint, Protocol
from funnel.model.channel import ExactArray, released_table, sent
from funnel.model.information import released_information
from funnel.model.protocol import MAX_BITS
from funnel.notions import Notion

LOSS = 2e-5
"""Share of the information that rounding an optimum to integers may cost; it decides how fine the weights are."""
NEAR = 1e-4
"""Share of the information by which a calibrated mechanism on few bits may differ from itself on many."""


@dataclass(frozen=True)
class Solved:
    """A protocol for one block; `bound` is a certified upper bound of I(X;Y) in nats, None if none is claimed."""

    protocol: Protocol
    bound: float | None
    how: str


class Mechanism(BaseModel, ABC):
    """A mechanism with its options; validated straight from the policy's `mechanism` section."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reads_secret: ClassVar[bool] = False

    kind: str

    @abstractmethod
    def solve(self, joint: Joint, notion: Notion, conditions: Sequence[ExactArray]) -> Solved:
        """The protocol for a joint of one block, which must keep the bound for each of `conditions`.

        These are tables N_k[s, x] (c, a): the block's own counts, or its counts given each combination of
        what other blocks release. Raises SolverError.
        """

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """How a problem of c = `secret` and a = `public` values would be solved, in words."""
        return "bisection on the measured leakage"


def calibrate(
    build: Callable[[int, int], Protocol], joint: Joint, notion: Notion, conditions: Sequence[ExactArray]
) -> Protocol:
    """The most informative protocol of a one-parameter family, on as few bits as that needs.

    `build(strength, bits)` gives the protocol whose 2^bits parts hold `strength` parts of signal, 0 up to
    2^bits (all signal: X itself). Leakage is non-decreasing in the strength ([DS] section VII), up to
    rounding, so bisection on integers finds it; the last word has the measurement.
    Raises SolverError where not even the finest weights keep the bound.
    """
    finest = next(
        (found for bits in (32, 48, MAX_BITS) if (found := _strongest(build, notion, conditions, bits))), None
    )
    if finest is None:
        raise SolverError(
            "nothing-to-release",
            f"no setting of the mechanism keeps {notion.notion} at epsilon {notion.epsilon:g} on this table",
            status="empty",
            advice="Use `mechanism: optimal`, put the public columns into one block, or allow a larger epsilon.",
        )
    wanted = _utility(joint, finest)
    for bits in range(4, finest.bits, 2):
        coarse = _strongest(build, notion, conditions, bits)
        # Near from both sides: rounding can also gain, but then it is no longer the mechanism that was named.
        if coarse is not None and abs(_utility(joint, coarse) - wanted) <= NEAR * wanted:
            return coarse
    return finest


def _strongest(
    build: Callable[[int, int], Protocol], notion: Notion, conditions: Sequence[ExactArray], bits: int
) -> Protocol | None:
    """The strongest member with these bits that keeps the bound, None if none does."""

    def keeps(strength: int) -> bool:
        protocol = build(strength, bits)
        return all(notion.holds(sent(table, protocol.weights)) for table in conditions)

    if keeps(1 << bits):
        return build(1 << bits, bits)
    low, high = 0, 1 << bits
    if not keeps(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return build(low, bits)


def _utility(joint: Joint, protocol: Protocol) -> float:
    """I(X;Y) in nats."""
    return released_information(joint, [protocol], released_table(joint, [protocol]))
