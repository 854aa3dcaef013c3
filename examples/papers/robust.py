"""Mechanisms on records x = (s, u): their matrices, what they keep of X, and what they really give away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from solving import GRR, solved

from funnel.data import Joint
from funnel.data.joint import FloatArray, IntArray
from funnel.measure.information import entropy, kept_information
from funnel.mechanisms import IndependentReporting, NonRobust, SecretRandomisedResponse
from funnel.notions import Ldp, LdpX, Notion, Rldp, RobustDemand
from funnel.optimise.solve import maximise

SECONDS, GAP = 3.0, 4e-3
"""Time for one PolyOpt, and the share of H(X) between value and bound at which it stops earlier."""
PRINTED, BOXES, THEOREM = "PolyOpt, printed", "PolyOpt, boxes", "IR, Theorem 5"
SMALL = ("SRR", "IR", THEOREM, "GRR")
"""Mechanisms for large tables."""
Shape = Literal["box", "simplex", "printed"]
Matrix = Callable[["Sample", float, float], FloatArray]


@dataclass(frozen=True, eq=False)
class Sample:
    """Counts N[s, u], and the distribution P*[s, u] they were drawn from (the estimate itself where none is known)."""

    table: IntArray
    truth: FloatArray

    @classmethod
    def of(cls, table: IntArray, truth: FloatArray | None = None) -> Sample:
        """Values of s without records are left out, from the truth too."""
        seen = table.any(axis=1)
        truth = table / table.sum() if truth is None else truth
        return cls(table[seen], truth[seen] / truth[seen].sum())

    @property
    def size(self) -> int:
        """Cells of S x U."""
        return self.table.size

    @cached_property
    def joint(self) -> Joint:
        """Records whose public value is the whole of x."""
        return Joint.from_records(self.table)

    @cached_property
    def prior(self) -> FloatArray:
        """P̂ of the records that occur, (a,)."""
        return self.table[self.table > 0] / self.table.sum()

    def whole(self, matrix: FloatArray) -> FloatArray:
        """Q[y, s, u] from Q (b, a) over the records that occur; others get the average of their s."""
        full = np.zeros((len(matrix), *self.table.shape))
        full[:, self.table > 0] = matrix
        given = self.table / self.table.sum(axis=1, keepdims=True)
        average = np.einsum("ysu,su->ys", full, given)
        return np.asarray(np.where(self.table > 0, full, average[:, :, None]))

    def information(self, matrix: FloatArray, *, true: bool = False) -> float:
        """I(X;Y) in nats under P̂, or under P*."""
        if not true:
            return kept_information(self.prior, matrix)
        return kept_information(self.truth.ravel(), self.whole(matrix).reshape(len(matrix), -1))


def normalised(sample: Sample, matrix: FloatArray) -> float:
    """I(X;Y)/H(X) under the estimate."""
    return sample.information(matrix) / entropy(sample.prior)


def realised(sample: Sample, matrix: FloatArray) -> float:
    """ε* = max ln P*(y|s)/P*(y|s') over y, s, s' ([RLDP] section 8.3)."""
    given = sample.truth / sample.truth.sum(axis=1, keepdims=True)
    chance = np.einsum("ysu,su->ys", sample.whole(matrix), given)
    chance = chance[chance.any(axis=1)]
    return float(np.log(chance.max(axis=1) / chance.min(axis=1)).max())


_known: dict[tuple[str, tuple[int, ...], bytes, float, float], FloatArray] = {}
_gaps: list[float] = []


def _once(name: str, build: Matrix) -> Matrix:
    """The same matrix again where another figure of this run has asked for it."""

    def matrix(sample: Sample, epsilon: float, beta: float) -> FloatArray:
        key = (name, sample.table.shape, sample.table.tobytes(), epsilon, beta)
        if key not in _known:
            _known[key] = build(sample, epsilon, beta)
        return _known[key]

    return matrix


def widest_gap() -> float:
    """The largest share of H(X) by which a PolyOpt may be improved, as certified; 0 if none was solved."""
    return max(_gaps, default=0.0)


def mean_gap() -> float:
    """The mean of these shares."""
    return float(np.mean(_gaps)) if _gaps else 0.0


def _demand(sample: Sample, epsilon: float, beta: float) -> RobustDemand:
    """ε-RLDP over the χ² confidence set of level 1 - β."""
    return Rldp(notion="rldp", epsilon=epsilon, confidence=1 - beta).demand(sample.joint, {}, 0)


def _polyopt(shape: Shape) -> Matrix:
    """The best rows of the cone, real-valued."""

    def matrix(sample: Sample, epsilon: float, beta: float) -> FloatArray:
        demand = _demand(sample, epsilon, beta)
        found = maximise(demand.cone(shape), sample.prior, budget=SECONDS, gap=GAP, ceiling=demand.ceiling())
        _gaps.append(found.gap / entropy(sample.prior))
        return found.protocol

    return matrix


def _weights(
    sample: Sample, kind: IndependentReporting | SecretRandomisedResponse | NonRobust, demand: object
) -> FloatArray:
    return kind.solve(sample.joint, demand).protocol.probabilities()[:, 0, :]  # type: ignore[arg-type,union-attr]


def _independent(calibration: Literal["measured", "paper"]) -> Matrix:
    kind = IndependentReporting(kind="independent-reporting", calibration=calibration)
    return lambda sample, epsilon, beta: _weights(sample, kind, _demand(sample, epsilon, beta))


def _secret_response(sample: Sample, epsilon: float, beta: float) -> FloatArray:
    kind = SecretRandomisedResponse(kind="secret-randomised-response")
    return _weights(sample, kind, _demand(sample, epsilon, beta))


def _non_robust(sample: Sample, epsilon: float, _: float) -> FloatArray:
    notion = Ldp(notion="ldp", epsilon=epsilon)
    return _weights(sample, NonRobust(kind="non-robust"), notion.demand(sample.joint, {}, 0))


def _response(sample: Sample, epsilon: float, _: float) -> FloatArray:
    notion: Notion = LdpX(notion="ldp-x", epsilon=epsilon)
    return solved(sample.joint, GRR, notion).probabilities()[:, 0, :]  # type: ignore[union-attr]


MECHANISMS: dict[str, Matrix] = {
    name: _once(name, build)
    for name, build in {
        "SRR": _secret_response,
        PRINTED: _polyopt("printed"),
        BOXES: _polyopt("box"),
        "IR": _independent("measured"),
        THEOREM: _independent("paper"),
        "GRR": _response,
        "NR": _non_robust,
    }.items()
}
"""Q (b, a) over the records that occur, from a sample, ε and β."""
