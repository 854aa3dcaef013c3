"""Secret and rest reported side by side, each by randomised response."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from funnel.data import Joint, Protocol
from funnel.data.joint import FloatArray, IntArray
from funnel.data.records import Records
from funnel.errors import InternalError, SolverError
from funnel.measure import clock
from funnel.measure.information import kept_information
from funnel.measure.uncertainty import rad
from funnel.mechanisms.base import Mechanism, Solved
from funnel.notions import Demand
from funnel.notions.robust import RobustDemand, as_robust

_SPLITS = 40
"""Steps of the search for the best split of ε between secret and rest."""
_BITS = (8, 10, 12, 14, 16, 20, 24, 28)
"""Bits of each of the two factors, tried in turn."""
_NEAR = 1e-4
"""Share of the information that integer weights may lose."""
_MOST = 40.0
"""Strength δ beyond which randomised response is the truth for every purpose."""


class IndependentReporting(Mechanism):
    """IR ([RLDP] section 6): GRR^ε1 on S and GRR^δ on U, with the split ε1 + ε2 = ε that keeps most information.

    `calibration: measured` takes the largest δ at which GRR^δ is ε2-robust over the projections F_{U|s}, as
    measured; `paper` and `per-pair` take δ = ln(1 + 2(e^ε2 - 1)/d) of [RLDP] Theorem 5, with the printed d or the
    one of the worst pair of secret values.
    """

    releases_secret: ClassVar[bool] = True
    serves: ClassVar[frozenset[str]] = frozenset({"rldp"})

    kind: Literal["independent-reporting"]
    calibration: Literal["measured", "paper", "per-pair"] = Field(
        "measured", description="How the noise on the rest is set: measured, paper or per-pair"
    )

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """The best split, on as few bits as it needs. Raises SolverError."""
        if (robust := as_robust(demand)) is None:
            raise InternalError("independent reporting was asked to serve a notion that is not robust")
        records, prior = Records.of(joint), joint.table().sum(axis=0) / joint.rows
        strength = _Strength(robust, records, self.calibration)
        first, second = strength.best_split(prior)
        wanted = kept_information(prior, _product(records, first, second))
        for bits in _BITS:
            clock.check()
            protocol = _rounded(joint, records, *strength.fitted(first, second, bits), bits)
            kept = kept_information(prior, protocol.probabilities()[:, 0, :])
            if kept >= wanted * (1 - _NEAR) and demand.keeps(protocol.weights):
                how = f"{self.calibration}: {first:.4g} nats on the secret, strength {second:.4g} on the rest"
                return Solved(protocol, None, how)
        raise SolverError(
            "nothing-to-release",
            f"no weights of independent reporting were found that keep {demand.notion.notion} on this table",
            status="empty",
            advice="Use mechanism: polyopt, or a larger epsilon.",
        )


class _Strength:
    """The strength δ of randomised response on U that a share ε2 allows."""

    def __init__(self, demand: RobustDemand, records: Records, calibration: str) -> None:
        self.demand, self.records, self.calibration = demand, records, calibration
        size = (len(records.secret), len(records.rest))
        self.lower, self.upper, self.given = np.zeros(size), np.zeros(size), np.zeros(size)
        for s, members in enumerate(demand.sets.members):
            self.lower[s, records.u[members]] = demand.sets.lower[s]
            self.upper[s, records.u[members]] = demand.sets.upper[s]
            self.given[s, records.u[members]] = demand.given[s]

    def at(self, epsilon: float) -> float:
        """δ for one ε2."""
        if self.calibration == "measured":
            return self._measured(math.expm1(epsilon))
        distance = self._distance(per_pair=self.calibration == "per-pair")
        return min(math.log1p(2 * math.expm1(epsilon) / distance), _MOST) if distance > 0 else _MOST

    def best_split(self, prior: FloatArray) -> tuple[float, float]:
        """ε1 and δ of the split that keeps most of X: a grid over all splits, then a search beside its best point.

        All of ε on the one side or the other is often best, so the ends are points of the grid.
        """
        whole = self.demand.notion.epsilon

        def worth(share: float) -> float:
            clock.check()
            return kept_information(
                prior, _product(self.records, share * whole, self.at((1 - share) * whole))
            )

        grid = np.linspace(0.0, 1.0, _SPLITS + 1)
        peak = int(np.argmax([worth(share) for share in grid]))
        share = _golden(worth, float(grid[max(peak - 1, 0)]), float(grid[min(peak + 1, _SPLITS)]))
        return share * whole, self.at((1 - share) * whole)

    def fitted(self, first: float, second: float, bits: int) -> tuple[float, float]:
        """ε1 and δ, less what integers of these bits add to the other: none are uniform over five values, say."""
        spare = max(_spent(_integers(len(self.records.rest), second, bits)) - second, 0.0)
        first = max(first - spare, 0.0)
        left = self.demand.notion.epsilon - _spent(_integers(len(self.records.secret), first, bits)) - spare
        return first, min(second, self.at(max(left, 0.0)))

    def _measured(self, grown: float) -> float:
        """Largest δ with (1 + k U_{u|s}) <= e^ε2 (1 + k L_{u|s'}), k = e^δ - 1, for all u and s ≠ s'."""
        excess = self.upper[:, None, :] - (1 + grown) * self.lower[None, :, :]
        excess[np.arange(len(excess)), np.arange(len(excess))] = 0.0
        worst = float(excess.max())
        return _MOST if worst <= 0 else min(math.log1p(grown / worst), _MOST)

    def _distance(self, *, per_pair: bool) -> float:
        """d of [RLDP] Theorem 5, or its tighter form over pairs."""
        order, radii = self.demand.order, self.demand.radii
        reach = np.array([rad(order, b, rho) for b, rho in zip(radii, self.demand.given, strict=True)])
        apart = np.abs(self.given[:, None] - self.given[None]).sum(axis=2)
        sums = reach[:, None] + reach[None] if per_pair else np.full_like(apart, 2 * reach.max())
        pairs = (sums + apart)[~np.eye(len(apart), dtype=bool)]
        return min(2.0, float(pairs.max()))


def _golden(worth: Callable[[float], float], low: float, high: float) -> float:
    """The highest point of a function with one peak between two points, the ends included."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda share: -worth(float(share)), bounds=(low, high), method="bounded")
    return max((float(found.x), low, high), key=worth)


def _response(size: int, strength: float) -> FloatArray:
    """GRR^δ as a matrix (size, size)."""
    other = 1 / (math.exp(strength) + size - 1)
    matrix = np.full((size, size), other)
    np.fill_diagonal(matrix, 1 - (size - 1) * other)
    return matrix


def _product(records: Records, first: float, second: float) -> FloatArray:
    """Q((s', u') | x) of the two responses side by side, (c·a2, a)."""
    on_secret = _response(len(records.secret), first)[:, records.s]
    on_rest = _response(len(records.rest), second)[:, records.u]
    return np.asarray((on_secret[:, None, :] * on_rest[None, :, :]).reshape(-1, len(records.s)))


def _rounded(joint: Joint, records: Records, first: float, second: float, bits: int) -> Protocol:
    """The product on integers, both factors rounded towards more noise."""
    on_secret = _integers(len(records.secret), first, bits)[:, records.s]
    on_rest = _integers(len(records.rest), second, bits)[:, records.u]
    weights = (on_secret[:, None, :] * on_rest[None, :, :]).reshape(-1, 1, len(records.s))
    return Protocol(joint.blocks[0], records.everything(), 2 * bits, weights)


def _spent(weights: IntArray) -> float:
    """The strength of a response on integers: near 0 it can be above what was asked for."""
    return math.log(int(weights.max()) / int(weights.min())) if weights.min() else math.inf


def _integers(size: int, strength: float, bits: int) -> IntArray:
    """GRR^δ in parts of 2^bits, never stronger than δ."""
    total = 1 << bits
    other = min(math.ceil(total / (math.exp(strength) + size - 1)), total // size)
    matrix = np.full((size, size), other, np.int64)
    np.fill_diagonal(matrix, total - (size - 1) * other)
    return matrix
