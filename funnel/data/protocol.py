"""A protocol Q(y|x) on integers; the only place that knows which way round the matrix lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.alphabet import Alphabet
from funnel.data.joint import FloatArray, IntArray

MAX_BITS = 62
"""Weights and their sums stay within a signed 64-bit integer."""


@dataclass(frozen=True, eq=False)
class Protocol:
    """Integer weights W[y, s, x] with Σ_y W[y, s, x] = 2^bits: the chance of y is W[y, s, x] / 2^bits.

    The axis of s has length 1 where the mechanism reads only x (`secret` is None), else length c.
    """

    inputs: Alphabet
    outputs: Alphabet
    bits: int
    weights: IntArray
    secret: Alphabet | None = None

    def __post_init__(self) -> None:
        shape = (len(self.outputs), len(self.secret) if self.secret else 1, len(self.inputs))
        if self.weights.shape != shape:
            raise ValueError(f"protocol weights have shape {self.weights.shape}, expected {shape}")
        if not 0 <= self.bits <= MAX_BITS or self.weights.min() < 0:
            raise ValueError("protocol weights are negative or too fine")
        if (self.weights.sum(axis=0) != 1 << self.bits).any():
            raise ValueError("a column of the protocol does not sum to one")

    @property
    def reads_secret(self) -> bool:
        """Whether the draw depends on s as well as on x."""
        return self.secret is not None

    def probabilities(self) -> FloatArray:
        """Q[y, s, x] as floats, for pictures and estimates."""
        return self.weights / float(1 << self.bits)

    def thresholds(self) -> IntArray:
        """Cumulative weights per input, shape (inputs, outputs), input code s*a + x (or x): for inverse-CDF draws.

        A uniform integer u in [0, 2^bits) draws the first y whose threshold exceeds u.
        """
        return np.cumsum(self.weights.reshape(len(self.outputs), -1), axis=0).T
