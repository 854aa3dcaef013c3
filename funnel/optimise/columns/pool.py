"""Rows of a cone that a protocol can be made of, the master over them, and the lowest bound so far."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.pricing import Peak, divergence
from funnel.optimise.generation import RestrictedMaster
from funnel.optimise.linear.highs import Answer


class RowPool:
    """Rows w = prior·v with Σ w = 1, from the uninformative one on; `digits` to which two rows are the same row.

    `best` is the certificate with the lowest bound, H(X) at first, and `nodes` counts the boxes of all searches.
    `tolerance` and `ceiling`, a bound known before, are in nats.
    """

    def __init__(self, prior: FloatArray, tolerance: float, ceiling: float, *, digits: int) -> None:
        self.prior, self.ceiling, self.nodes = prior, ceiling, 0
        self.master = RestrictedMaster(np.ones(len(prior)))
        self.best = Certificate.of_entropy(prior, tolerance)
        self._digits, self._mass = digits, list[FloatArray]()
        self.add([prior])

    @property
    def rays(self) -> FloatArray:
        """All rows v (k, a) with prior·v = 1."""
        return np.asarray(np.array(self._mass) / self.prior)

    def used(self, answer: Answer) -> FloatArray:
        """The rows w of the best protocol (k, a)."""
        return np.array(self._mass)[answer.point > 0]

    def add(self, rows: Iterable[FloatArray]) -> bool:
        """Let rows w take part that do not yet; whether there are any."""
        new = False
        for row in rows:
            name = (np.round(row, self._digits) + 0.0).tobytes()
            if self.master.add(float(divergence(row, self.prior)), row / self.prior, name):
                self._mass.append(row)
                new = True
        return new

    def gap(self, value: float) -> float:
        """What the optimum may be worth more than a value (nats)."""
        return min(self.best.bound, self.ceiling) - value

    def bounded(self, duals: FloatArray, aim: float, found: Peak) -> None:
        """What a search for the peak at some duals (a,) proves, which was to be at most `aim`."""
        self.nodes += found.nodes
        certificate = Certificate(duals, found.bound, aim, found.nodes, found.proof)
        if certificate.bound < self.best.bound:
            self.best = certificate
