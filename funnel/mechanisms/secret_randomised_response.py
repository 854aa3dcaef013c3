"""Randomised response that spends its noise on the secret: private whatever the distribution."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from funnel.data import Joint, Protocol
from funnel.data.protocol import MAX_BITS
from funnel.data.records import Records
from funnel.errors import SolverError
from funnel.mechanisms.base import Mechanism, Solved
from funnel.notions import Demand

_NEAR = Fraction(1, 10_000)
"""Relative difference from the formula that integer weights may have."""


class SecretRandomisedResponse(Mechanism):
    """SRR^ε ([RLDP] Definition 4): a record (s, u) stays with weight e^ε, keeps only s with e^-ε, else gets 1.

    Every record is answered by any other. It is (ε, all P)-RLDP, so no estimate enters it: no larger ε fits.
    """

    of_counts: ClassVar[bool] = False
    releases_secret: ClassVar[bool] = True
    serves: ClassVar[frozenset[str]] = frozenset({"rldp"})

    kind: Literal["secret-randomised-response"]

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """The formula on as few bits as it needs. Raises SolverError."""
        records, bound = Records.of(joint), demand.notion.bound
        outputs = records.everything()
        same, kept, other = _weights(len(records.secret), len(records.rest), bound)
        mine = np.repeat(np.arange(len(records.secret)), len(records.rest))[:, None] == records.s[None]
        alike = np.tile(np.arange(len(records.rest)), len(records.secret))[:, None] == records.u[None]
        weights = np.where(mine & alike, same, np.where(mine, kept, other)).astype(np.int64)
        bits = int(weights[:, 0].sum()).bit_length() - 1
        protocol = Protocol(joint.blocks[0], outputs, bits, weights[:, None, :])
        return Solved(protocol, None, "by its formula, for all distributions")


def _weights(secrets: int, rest: int, bound: Fraction) -> tuple[int, int, int]:
    """Integers for (s, u) unchanged, s kept, s changed: a power of two in all, no ratio across s above `bound`.

    Raises SolverError where 62 bits are too few.
    """
    changed = (secrets - 1) * rest
    whole = bound + (rest - 1) / bound + changed
    for bits in range(4, MAX_BITS + 1):
        total = 1 << bits
        for other in (
            -(-total * whole.denominator // whole.numerator),
            total * whole.denominator // whole.numerator,
        ):
            kept = -(-other * bound.denominator // bound.numerator)
            same = total - (rest - 1) * kept - changed * other
            if other < same <= bound * other and other <= bound * kept and _near(same, kept, other, bound):
                return int(same), int(kept), int(other)
    raise SolverError(
        "precision",
        f"no weights of {MAX_BITS} bits come near secret randomised response over {secrets * rest:,} values",
        status="precision",
        advice="Use a smaller alphabet, or mechanism: polyopt.",
    )


def _near(same: int, kept: int, other: int, bound: Fraction) -> bool:
    """Whether both ratios that are asked for are almost reached."""
    return Fraction(same, other) >= bound * (1 - _NEAR) and Fraction(other, kept) >= bound * (1 - _NEAR)
