"""Numbers released with the least error that a bound on the average leakage allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import gcd
from typing import ClassVar, Literal

import numpy as np

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.joint import FloatArray
from funnel.errors import PlanError, SolverError
from funnel.measure import gaussian
from funnel.mechanisms.base import Mechanism, Solved
from funnel.notions import Demand, Notion

_BITS = 16
"""Chances below 2^-16 are no part of a Gaussian that anyone could see."""
_HALVINGS = 14
"""Steps of the search for the Gaussian budget at which the measured leakage meets the bound."""


class GaussianFunnel(Mechanism):
    """The Gaussian funnel ([PF] section V, in the convex form of mathematics, section 6) for numeric columns.

    Noise goes where the numbers tell most about the secret: along the eigenvectors of Σ_{x|s} Σ_x⁻¹, in the amounts
    that minimise the mean squared error of all columns, each relative to its variance. Released is the estimate of
    each number, on the grid of its column. The budget of the Gaussian model is only a guess for a real table, so it
    is set by the leakage that is measured on the channel as released.
    """

    serves: ClassVar[frozenset[str]] = frozenset({"mutual-information"})
    needs_numbers: ClassVar[bool] = True
    plain: ClassVar[bool] = False

    kind: Literal["gaussian-funnel"]

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Bisection on the model's budget, measured on integers. Raises SolverError, and PlanError for text."""
        inputs = joint.blocks[0]
        whole = np.eye(len(inputs), dtype=np.int64)[:, None, :]
        if demand.keeps(whole):
            how = "the true values keep the bound, so they are released as they are"
            return Solved(Protocol(inputs, inputs, 0, whole), None, how)
        model = _Model(joint, _Grid.of(inputs))
        budget, protocol = _largest(model, demand)
        if protocol is None:
            raise SolverError(
                "nothing-to-release",
                "no noise along the directions of the Gaussian model was found that keeps the bound on this table",
                status="empty",
                advice="Allow a larger epsilon, or use mechanism: greedy-funnel.",
            )
        return Solved(protocol, None, model.told(budget))

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """Every step builds the channel anew."""
        return f"bisection on the measured leakage of a Gaussian channel over {public:,} values"


def _largest(model: _Model, demand: Demand) -> tuple[float, Protocol | None]:
    """The largest budget of the model at which the channel, as measured, keeps the bound; None where none does."""
    low, high = 0.0, model.most
    for budget in (high, low):
        protocol = model.protocol(budget)
        if demand.keeps(protocol.weights):
            break
    else:
        return 0.0, None
    if budget == high:
        return high, protocol
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tried = model.protocol(middle)
        if demand.keeps(tried.weights):
            protocol, low = tried, middle
        else:
            high = middle
    return low, protocol


@dataclass(frozen=True, eq=False)
class _Grid:
    """The numbers behind a block's labels: `points` (a, k), and the steps and decimals of the k columns."""

    inputs: Alphabet
    points: FloatArray
    steps: FloatArray
    decimals: tuple[int, ...]

    @classmethod
    def of(cls, block: Alphabet) -> _Grid:
        """Raises PlanError where a label is no number, or a column takes one value."""
        columns = [
            [_number(value[k], name) for value in block.values] for k, name in enumerate(block.columns)
        ]
        decimals = tuple(max(0, *(-int(one.as_tuple().exponent) for one in column)) for column in columns)
        whole = [[int(one.scaleb(d)) for one in column] for column, d in zip(columns, decimals, strict=True)]
        steps = [
            _step(column, name) / 10.0**d
            for column, name, d in zip(whole, block.columns, decimals, strict=True)
        ]
        return cls(block, np.array(columns, float).T, np.array(steps), decimals)

    def alphabet(self, outputs: FloatArray) -> Alphabet:
        """Released numbers (b, k) as labels with each column's own decimals."""
        return Alphabet(
            self.inputs.columns,
            tuple(
                tuple(f"{part + 0.0:.{d}f}" for part, d in zip(point, self.decimals, strict=True))
                for point in outputs
            ),
        )


class _Model:
    """The Gaussian model of one block and its secret: directions, prices and the channel at a budget.

    Raises PlanError where the columns have no covariance to speak of.
    """

    def __init__(self, joint: Joint, grid: _Grid) -> None:
        self.grid, table = grid, joint.table()
        counts = table.sum(axis=0)
        self.mean = np.asarray(counts @ grid.points / counts.sum())
        public = gaussian.covariance(grid.points, counts)
        groups, members = np.nonzero(table)
        given = gaussian.given_groups(grid.points[members], groups, table[groups, members])
        try:
            self.found = gaussian.directions(public, given)
        except ValueError as error:
            said = f"{' + '.join(grid.inputs.columns)}: {error}"
            raise PlanError("column-type", said, advice="Leave that column out, or round less.") from None
        self.price = gaussian.prices(self.found, 1 / np.diag(public))
        self.least = gaussian.resolution(self.found, grid.steps)

    @property
    def most(self) -> float:
        """The budget at which every direction is released at its resolution."""
        return float(gaussian.leak_at(self.least, np.minimum(self.found.kept, 1.0)).sum()) + 1e-9

    def errors(self, budget: float) -> FloatArray:
        """D of every direction."""
        return gaussian.allocate(self.found.kept, self.price, budget, self.least)

    def protocol(self, budget: float) -> Protocol:
        """The channel at a budget, on integers. Raises PlanError where it has too many outputs."""
        from funnel.optimise.rounding.rows import nearest_weights

        try:
            chances, outputs = gaussian.channel(
                self.grid.points, self.mean, self.found, self.errors(budget), self.grid.steps
            )
        except ValueError as error:
            raise PlanError("alphabet-too-large", str(error), advice="Use a larger `round`.") from None
        weights = nearest_weights(chances, _BITS)
        used = weights.any(axis=1)
        return Protocol(self.grid.inputs, self.grid.alphabet(outputs[used]), _BITS, weights[used][:, None, :])

    def told(self, budget: float) -> str:
        """Directions and errors, for the evidence."""
        pairs = zip(self.found.kept, self.errors(budget), strict=True)
        return "directions " + ", ".join(f"lambda {kept:.4g} with error {error:.4g}" for kept, error in pairs)


def _number(part: str | None, column: str) -> Decimal:
    """A label as a number."""
    try:
        return Decimal(part or "").normalize()
    except InvalidOperation:
        raise PlanError(
            "column-type",
            f"{column} holds {'missing values' if part is None else 'texts'}, and only numbers can have noise added",
            values=part,
            advice="Use `round` on a numeric column, and `missing: drop`.",
        ) from None


def _step(values: Sequence[int], column: str) -> int:
    """The largest step of a grid that holds all values and zero."""
    step = gcd(*values)
    if len(set(values)) < 2:
        raise PlanError("column-type", f"{column} takes a single value; there is nothing to release of it")
    return step
