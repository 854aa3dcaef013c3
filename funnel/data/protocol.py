"""A protocol Q(y|x) on integers; the only place that knows which way round the matrix lies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from funnel.data.alphabet import Alphabet
from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import ExactArray, sent
from funnel.data.subsets import ReleasedTable

Codes = npt.NDArray[np.integer]

MAX_BITS = 62
"""Weights and their sums stay within a signed 64-bit integer."""


class Randomiser(ABC):
    """How one block is drawn, whatever an answer is: a value with its weight (`Protocol`), or a set of values.

    A record's answer depends on x, and on s where the protocol reads the `secret`. Chances are whole numbers over
    2^`bits`. What the answers tell is asked for here, so that callers need not know which kind they have.
    """

    uniforms: ClassVar[Literal["one", "each"]]
    """Whether a record's answer takes one uniform, or one for each value that might be in it."""

    inputs: Alphabet
    bits: int
    secret: Alphabet | None

    @property
    def reads_secret(self) -> bool:
        """Whether the draw depends on s as well as on x."""
        return self.secret is not None

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of possible answers."""

    @property
    @abstractmethod
    def alone(self) -> int:
        """Numbers for each secret value that `released` takes where no other block stands beside."""

    @abstractmethod
    def released(self, counts: ExactArray) -> ReleasedTable:
        """T[s, y] of records N[s, x] (c, a) of this block alone, in exact integers."""

    @abstractmethod
    def no_draws(self) -> IntArray:
        """Counts of draws before any: inputs (s·a + x, or x) by outputs, or by what is counted of an answer."""

    @abstractmethod
    def count_draws(self, table: IntArray, x: Codes, y: Codes) -> None:
        """Add input and output codes (rows,) to such counts."""

    @abstractmethod
    def drawn_for(self, table: IntArray) -> IntArray:
        """Records of each input (inputs,) in such counts."""

    @abstractmethod
    def likelihoods(self) -> tuple[IntArray, int]:
        """W[y, s, x] (b, c or 1, a), proportional for each y to the chance of y, and the bits of its sum over y.

        That sum is the same for every input, so the table made with W has the true likelihood ratios. Of sets only
        where 2^a is small.
        """

    @abstractmethod
    def scale(self) -> list[int] | None:
        """The factor of each y (b,) that makes `likelihoods` proportional to chances over all y as well; None: one."""

    @abstractmethod
    def spread(self) -> Fraction | None:
        """max Q(y|x)/Q(y|x') over all inputs and outputs; None where it is infinite."""

    @abstractmethod
    def noise(self, prior: FloatArray) -> Iterator[tuple[float, FloatArray]]:
        """Distributions whose entropies, each times its number, add up to H(Y|X) under P(x) = prior (a,)."""

    @property
    @abstractmethod
    def told(self) -> Alphabet:
        """The values that an answer tells of: itself, or the members of a set."""

    @property
    @abstractmethod
    def telling_weights(self) -> IntArray:
        """The chance that an answer tells each of the values `told`, (b, c or 1, a), in parts of 2^-`bits`."""

    def telling(self) -> FloatArray:
        """The same as floats."""
        return self.telling_weights / float(1 << self.bits)

    @abstractmethod
    def times_told(self, codes: IntArray, counts: IntArray) -> IntArray:
        """How often each of the values `told` was told (b,) by answers (m,) that were given so many times (m,)."""

    @property
    def coins(self) -> tuple[float, float] | None:
        """Where an answer is a set: the chances that it holds x, and any other value. None: it is one value."""
        return None

    @property
    def certain(self) -> bool:
        """Whether all chances are 0 or 1."""
        return bool(np.isin(self.telling_weights, (0, 1 << self.bits)).all())

    @abstractmethod
    def alike(self, column: int | None = None) -> FloatArray:
        """The chance (c or 1, a) that an answer shows the true value: in every column of the block, or in this one.

        A set shows it where it holds that value and no other.
        """

    @property
    @abstractmethod
    def fingerprint(self) -> tuple[object, ...]:
        """Equal for protocols that draw alike."""

    @abstractmethod
    def probabilities(self) -> FloatArray:
        """Q[y, s, x] as floats, for pictures and estimates; InternalError where answers are too many to list."""


@dataclass(frozen=True, eq=False)
class Protocol(Randomiser):
    """Integer weights W[y, s, x] with Σ_y W[y, s, x] = 2^bits: the chance of y is W[y, s, x] / 2^bits.

    The axis of s has length 1 where the mechanism reads only x (`secret` is None), else length c.
    """

    uniforms: ClassVar[Literal["one", "each"]] = "one"

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
    def size(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @property
    def alone(self) -> int:
        """One for each output."""
        return len(self.outputs)

    def released(self, counts: ExactArray) -> ReleasedTable:
        """Σ_x N[s, x] W[y, s, x]."""
        return sent(counts, self.weights)

    def no_draws(self) -> IntArray:
        """A cell for each input and output."""
        return np.zeros((self.weights[0].size, len(self.outputs)), np.int64)

    def count_draws(self, table: IntArray, x: Codes, y: Codes) -> None:
        """One for each record."""
        cell = x * np.int64(table.shape[1])
        cell += y
        np.add.at(table.reshape(-1), cell, 1)

    def drawn_for(self, table: IntArray) -> IntArray:
        """All outputs together."""
        return np.asarray(table.sum(axis=1))

    def likelihoods(self) -> tuple[IntArray, int]:
        """The weights themselves."""
        return self.weights, self.bits

    def scale(self) -> None:
        """The weights are the chances."""

    def spread(self) -> Fraction | None:
        """That of the weights."""
        return spread(self.weights)

    def noise(self, prior: FloatArray) -> Iterator[tuple[float, FloatArray]]:
        """The column of each x, as often as x occurs."""
        yield from zip(prior.tolist(), self.probabilities()[:, 0, :].T, strict=True)

    @property
    def told(self) -> Alphabet:
        """The outputs."""
        return self.outputs

    @property
    def telling_weights(self) -> IntArray:
        """Those of the outputs."""
        return self.weights

    def times_told(self, codes: IntArray, counts: IntArray) -> IntArray:
        """One for each answer."""
        seen = np.zeros(len(self.outputs), np.int64)
        np.add.at(seen, codes, counts)
        return seen

    def alike(self, column: int | None = None) -> FloatArray:
        """Summed over the outputs that agree with the input."""
        shown, true = ([value if column is None else value[column] for value in one.values]
                       for one in (self.outputs, self.inputs))  # fmt: skip
        code = {value: place for place, value in enumerate(dict.fromkeys([*shown, *true]))}
        same = np.equal.outer([code[value] for value in shown], [code[value] for value in true])
        return np.asarray((self.weights * same[:, None, :]).sum(axis=0) / float(1 << self.bits))

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """What is drawn for, and the weights; outputs may have other names."""
        return (self.inputs, self.secret, self.bits, self.weights.shape, self.weights.tobytes())

    def probabilities(self) -> FloatArray:
        """Q[y, s, x] as floats, for pictures and estimates."""
        return self.weights / float(1 << self.bits)

    def thresholds(self) -> IntArray:
        """Cumulative weights per input, shape (inputs, outputs), input code s*a + x (or x): for inverse-CDF draws.

        A uniform integer u in [0, 2^bits) draws the first y whose threshold exceeds u.
        """
        return np.cumsum(self.weights.reshape(len(self.outputs), -1), axis=0).T


def spread(weights: IntArray) -> Fraction | None:
    """max Q(y|x)/Q(y|x') of integer weights W[y, s|1, x], over all inputs (s, x); None where it is infinite."""
    rows = weights.reshape(len(weights), -1)
    rows = rows[rows.any(axis=1)]
    if (rows == 0).any():
        return None
    ends = zip(rows.max(axis=1).tolist(), rows.min(axis=1).tolist(), strict=True)
    return max((Fraction(most, least) for most, least in ends), default=Fraction(1))
