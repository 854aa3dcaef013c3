"""Unary encoding: every possible value is reported as present or absent, by a coin of its own."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from funnel.data import Alphabet, Joint, Protocol, UnaryProtocol
from funnel.data.subsets import Subsets
from funnel.data.unary import MOST_VALUES, Form
from funnel.errors import PlanError
from funnel.measure.information import released_information
from funnel.mechanisms.base import NEAR, Mechanism, Solved, nothing_kept
from funnel.notions import Demand, Notion

_COARSE, _FINE = (8, 16), 32
"""Bits of the coins: few where that is near enough to many."""


class UnaryEncoding(Mechanism):
    """OUE^α ([DS] section VII): bit x' is 1 with chance 1/2 if x' = x, else 1/(e^α + 1).

    α is as large as the measured leakage of its channel allows. However large, its coins stay noisy: where X itself
    keeps the bound, X is released as it is.
    """

    plain: ClassVar[bool] = False

    kind: Literal["unary-encoding"]
    release: Form = Field(
        "set",
        description="set: one column that lists the values reported present; bits: a 0/1 column for each value",
    )

    @classmethod
    def fits(cls, notion: type[Notion]) -> bool:
        """Notions that are measured over sets."""
        return notion.sets != "no"

    @classmethod
    def one_block(cls, notion: type[Notion]) -> bool:
        """Where sets are not measured beside other blocks."""
        return notion.sets == "alone"

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Calibrate on integers. Raises SolverError, and PlanError where there are too many values."""
        inputs = joint.blocks[0]
        whole = np.eye(len(inputs), dtype=np.int64)[:, None, :]
        if demand.keeps(whole):
            how = "the true values keep the bound, so they are released as they are"
            return Solved(Protocol(inputs, inputs, 0, whole), None, how)
        _check_values(inputs)
        protocol = self._calibrate(joint, demand)
        return Solved(protocol, None, f"alpha = {protocol.alpha:.6g}, calibrated on the measured leakage")

    def form_of_sets(self) -> str | None:
        """As the policy asks."""
        return self.release

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """The same way for every size that is served."""
        if public > MOST_VALUES:
            return f"refused: more than {MOST_VALUES} values"
        return f"bisection on the measured leakage of {public} coins"

    def _calibrate(self, joint: Joint, demand: Demand) -> UnaryProtocol:
        """The strongest coins that keep the bound, on as few bits as come near enough to the finest."""
        finest = self._strongest(joint.blocks[0], demand, _FINE)
        if finest is None:
            raise nothing_kept(demand)
        wanted = _kept(joint, finest)
        for bits in _COARSE:
            coarse = self._strongest(joint.blocks[0], demand, bits)
            if coarse is not None and abs(_kept(joint, coarse) - wanted) <= NEAR * wanted:
                return coarse
        return finest

    def _strongest(self, inputs: Alphabet, demand: Demand, bits: int) -> UnaryProtocol | None:
        """The coins with these bits and the least chance of a value that is not there; None if none will do.

        Leakage does not rise with that chance, so bisection finds it.
        """
        half = 1 << (bits - 1)

        def made(absent: int) -> UnaryProtocol:
            return UnaryProtocol(inputs, bits, half, absent, self.release)

        low, high = 0, half - 1
        if not demand.keeps_sets(made(high)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if demand.keeps_sets(made(middle)) else (middle, high)
        return made(high)


def _check_values(inputs: Alphabet) -> None:
    """A set is the bits of one integer."""
    if len(inputs) > MOST_VALUES:
        raise PlanError(
            "alphabet-too-large",
            f"{' + '.join(inputs.columns)} takes {len(inputs):,} values; unary encoding serves up to {MOST_VALUES}",
            advice="Make it coarser with `groups` or `bins`, or use another mechanism.",
        )


def _kept(joint: Joint, protocol: UnaryProtocol) -> float:
    """I(X;Y) in nats."""
    return released_information(joint, [protocol], Subsets(joint.table(), protocol))
