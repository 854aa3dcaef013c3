"""Unary encoding: a released value is a set of values, drawn by one coin for each possible value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from funnel.data.alphabet import Alphabet, Label
from funnel.data.joint import FloatArray, IntArray
from funnel.data.protocol import MAX_BITS, Codes, Protocol, Randomiser
from funnel.data.sending import ExactArray
from funnel.data.subsets import Subsets
from funnel.errors import InternalError

Form = Literal["set", "bits"]
"""How sets are written: one column with a list of values, or a column of 0 and 1 for each value."""

MOST_VALUES = 62
"""Values of a block that unary encoding serves: a set is the bits of one signed 64-bit integer."""


@dataclass(frozen=True)
class Sets:
    """All sets of a block's values, as the outputs of a protocol; they are counted, never listed.

    The code of a set holds value x as bit a-1-x, so sets are ordered as the rows of their 0/1 columns are.
    """

    inputs: Alphabet
    form: Form

    def __len__(self) -> int:
        return 1 << len(self.inputs)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values the sets hold."""
        return self.inputs.columns

    @property
    def names(self) -> tuple[str, ...]:
        """The released columns: that of the lists, or one `column=value` for each value."""
        if self.form == "set":
            return ("+".join(self.inputs.columns),)
        return tuple(_name(self.inputs.columns, value) for value in self.inputs.values)

    def holds(self, codes: IntArray, x: int) -> IntArray:
        """0 or 1 (m,): whether the sets with these codes (m,) hold value x."""
        return (codes >> (len(self.inputs) - 1 - x)) & 1


@dataclass(frozen=True, eq=False)
class UnaryProtocol(Randomiser):
    """OUE ([DS] section VII) on integers: bit x' is 1 with chance present / 2^bits if x' = x, else absent / 2^bits.

    0 < absent < present < 2^bits, and at most `MOST_VALUES` values. The chance of a set y is proportional to
    `high` where it holds x and to `low` where it does not: the factor left out depends on y alone.
    """

    uniforms: ClassVar[Literal["one", "each"]] = "each"

    inputs: Alphabet
    bits: int
    present: int
    absent: int
    form: Form = "set"
    secret: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MAX_BITS or not 0 < self.absent < self.present < 1 << self.bits:
            raise ValueError("the weights of a unary protocol are out of range")
        if len(self.inputs) > MOST_VALUES:
            raise ValueError(f"unary encoding of more than {MOST_VALUES} values")

    @cached_property
    def outputs(self) -> Sets:
        """What can be released: every set of values."""
        return Sets(self.inputs, self.form)

    @property
    def odds(self) -> tuple[int, int]:
        """(high, low) in lowest terms: high/low = present (2^bits - absent) / (absent (2^bits - present)).

        For present = 2^(bits-1) that is e^α, with absent / 2^bits = 1/(e^α + 1).
        """
        whole = 1 << self.bits
        high, low = self.present * (whole - self.absent), self.absent * (whole - self.present)
        common = math.gcd(high, low)
        return high // common, low // common

    @property
    def alpha(self) -> float:
        """α in nats: the logarithm of `odds`."""
        high, low = self.odds
        return math.log(high) - math.log(low)

    @property
    def size(self) -> int:
        """2^a sets."""
        return len(self.outputs)

    @property
    def alone(self) -> int:
        """One for each value."""
        return len(self.inputs)

    def released(self, counts: ExactArray) -> Subsets:
        """The sets that records N[s, x] (c, a) may release, which are never listed."""
        return Subsets(counts, self)

    def no_draws(self) -> IntArray:
        """M[x, x'] for the sets drawn for x that hold x', and M[x, a] for all of them."""
        return np.zeros((len(self.inputs), len(self.inputs) + 1), np.int64)

    def count_draws(self, table: IntArray, x: Codes, y: Codes) -> None:
        """Bit by bit."""
        a = len(self.inputs)
        table[:, a] += np.bincount(x, minlength=a)
        codes = y.astype(np.int64, copy=False)
        for bit in range(a):
            table[:, bit] += np.bincount(x[self.outputs.holds(codes, bit) == 1], minlength=a)

    def drawn_for(self, table: IntArray) -> IntArray:
        """The last column."""
        return np.asarray(table[:, -1])

    def likelihoods(self) -> tuple[IntArray, int]:
        """`high` or `low` for every set y and value x, (2^a, 1, a), and the bits of their sum over y."""
        high, low = self.odds
        weights = np.where(self.members().astype(bool), high, low)[:, None, :].astype(np.int64)
        return weights, len(self.inputs) + high.bit_length()

    def spread(self) -> Fraction:
        """That of a set which holds the one value and not the other."""
        return Fraction(*self.odds) if len(self.inputs) > 1 else Fraction(1)

    def noise(self, prior: FloatArray) -> Iterator[tuple[float, FloatArray]]:
        """One coin of the one kind, and a - 1 of the other."""
        for number, share in zip((1, len(self.inputs) - 1), self.shares, strict=True):
            yield number, np.array([share, 1 - share])

    @property
    def told(self) -> Alphabet:
        """The values that sets hold."""
        return self.inputs

    @property
    def telling_weights(self) -> IntArray:
        """That of bit x' being 1 for x, by [x', 0, x]."""
        return np.where(np.eye(len(self.inputs), dtype=bool), self.present, self.absent)[:, None, :]

    def times_told(self, codes: IntArray, counts: IntArray) -> IntArray:
        """One for each set that holds the value."""
        return np.array([counts @ self.outputs.holds(codes, x) for x in range(len(self.inputs))], np.int64)

    @property
    def coins(self) -> tuple[float, float]:
        """Those of every bit."""
        return self.shares

    def alike(self, column: int | None = None) -> FloatArray:
        """One coin of the one kind up, a - 1 of the other down; a set of several values has no column of its own."""
        present, absent = self.shares
        return np.full((1, len(self.inputs)), present * (1 - absent) ** (len(self.inputs) - 1))

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Whose coins they are, and their chances."""
        return ("unary", self.inputs, self.bits, self.present, self.absent)

    def probabilities(self) -> FloatArray:
        """Sets are too many to list."""
        raise InternalError("the chances of sets are not listed")

    def scale(self) -> list[int]:
        """absent^m (2^bits - absent)^(a - m) for a set of m values: what `likelihoods` leave out."""
        a, rest = len(self.inputs), (1 << self.bits) - self.absent
        of_size = [self.absent**size * rest ** (a - size) for size in range(a + 1)]
        return [of_size[size] for size in self.members().sum(axis=1).tolist()]

    def members(self) -> IntArray:
        """0 or 1 for every set and value, (2^a, a), in the order of the sets' codes."""
        codes = np.arange(len(self.outputs), dtype=np.int64)
        return np.stack([self.outputs.holds(codes, x) for x in range(len(self.inputs))], axis=1)

    @property
    def shares(self) -> tuple[float, float]:
        """P(bit x is 1 | x) and P(bit x' is 1 | x) for x' other than x, as floats."""
        return self.present / (1 << self.bits), self.absent / (1 << self.bits)


AnyProtocol = Protocol | UnaryProtocol
"""Either kind; both are a `Randomiser`, which says all that callers ask."""


def _name(columns: tuple[str, ...], value: Label) -> str:
    """`column=value`, or `column is missing`; several columns of a block are joined by a comma."""
    return ", ".join(
        f"{column} is missing" if part is None else f"{column}={part}"
        for column, part in zip(columns, value, strict=True)
    )
