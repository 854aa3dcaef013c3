"""Unary encoding, re-checked: blocks that release sets of values, one coin for each value.

A set y holds some of the a values. Up to a factor of y alone, its chance is `high` where it holds the true value and
`low` where it does not, so that ratios of chances over all 2^a sets take no list of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from funnel.audit.fields import Field, Label
from funnel.audit.findings import broken

MOST_VALUES = 62
MOST_BITS = 62
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UnaryBlock:
    """One protocol: bit x' is 1 with chance present / 2^bits if x' is the true value, else absent / 2^bits.

    The code of a set holds value x as bit a-1-x; `form` is set or bits.
    """

    columns: tuple[str, ...]
    inputs: tuple[Label, ...]
    bits: int
    present: int
    absent: int
    form: str

    secret: ClassVar[None] = None
    secret_columns: ClassVar[None] = None

    @property
    def outputs(self) -> range:
        """The codes of all sets."""
        return range(1 << len(self.inputs))

    @property
    def released(self) -> list[str]:
        """The names of the released columns."""
        if self.form == "set":
            return ["+".join(self.columns)]
        return [
            ", ".join(
                f"{column} is missing" if part is None else f"{column}={part}"
                for column, part in zip(self.columns, value, strict=True)
            )
            for value in self.inputs
        ]

    @property
    def chances(self) -> FloatArray:
        """P(bit x' is 1 | x), (a, a)."""
        whole = 1 << self.bits
        chances = np.full((len(self.inputs),) * 2, self.absent / whole)
        np.fill_diagonal(chances, self.present / whole)
        return chances

    @cached_property
    def weights(self) -> npt.NDArray[Any]:
        """The chance of every set, times 2^(a·bits), for every value, (2^a, 1, a); only where 2^a is small."""
        whole, a = 1 << self.bits, len(self.inputs)
        table = np.ones((1, a), object)
        for x in range(a):  # the first value is the highest bit of the code
            one = np.array([self.present if other == x else self.absent for other in range(a)], object)
            table = np.stack([table * (whole - one), table * one], axis=1).reshape(-1, a)
        return table[:, None, :]

    def coder(self) -> Callable[[Sequence[str | None]], int]:
        """From the released texts of one row to the code of its set; -1 where they are no set."""
        return self._bits_code if self.form == "bits" else _Lists(self.inputs)

    def _bits_code(self, texts: Sequence[str | None]) -> int:
        """0 and 1, the first value first."""
        if any(text not in ("0", "1") for text in texts):
            return -1
        return int("".join(str(text) for text in texts), 2)


class _Lists:
    """Reads JSON lists of values: in order, each once, spelt in the one way that a writer spells them."""

    def __init__(self, inputs: Sequence[Label]) -> None:
        parts = [value[0] if len(value) == 1 else list(value) for value in inputs]
        self._texts = [json.dumps(part, ensure_ascii=False, separators=(",", ":")) for part in parts]
        self._place = {text: place for place, text in enumerate(self._texts)}

    def __call__(self, texts: Sequence[str | None]) -> int:
        (text,) = texts
        try:
            found: Any = json.loads(text or "")
        except (ValueError, RecursionError):
            return -1
        if not isinstance(found, list):
            return -1
        spelt = [json.dumps(part, ensure_ascii=False, separators=(",", ":")) for part in found]
        places = sorted({self._place.get(one, -1) for one in spelt})
        if text != f"[{','.join(self._texts[place] for place in places)}]" or -1 in places:
            return -1
        return sum(1 << (len(self._texts) - 1 - place) for place in places)


def read_block(field: Field) -> UnaryBlock:
    """A block of protocol.json whose kind is unary. Raises AuditFailure."""
    field.keys("kind", "columns", "secret", "inputs", "bits", "present", "absent", "form")
    field["kind"].among("unary")
    if field["secret"].value is not None:
        raise field["secret"].wrong("null: coins do not read the secret")
    columns = field["columns"].names()
    inputs, bits = field["inputs"].labels(len(columns)), field["bits"].whole(1, MOST_BITS)
    if len(inputs) > MOST_VALUES:
        raise broken(field.file, "too many values for sets", expected=MOST_VALUES, found=len(inputs))
    present = field["present"].whole(1, (1 << bits) - 1)
    absent = field["absent"].whole(1, present - 1)
    return UnaryBlock(columns, inputs, bits, present, absent, field["form"].among("set", "bits"))


def released_columns(blocks: Sequence[Any]) -> list[str]:
    """The columns of the released table: those of the blocks, or what stands for their sets."""
    return [
        name
        for block in blocks
        for name in (block.released if isinstance(block, UnaryBlock) else block.columns)
    ]


def as_mechanism(block: Any, mechanism: str) -> str | None:
    """Sets come from unary encoding alone: a true value is present with chance one half, or is released as it is.

    None for blocks of other mechanisms. Raises AuditFailure.
    """
    name = ", ".join(block.columns)
    if isinstance(block, UnaryBlock):
        if mechanism != "unary-encoding" or 2 * block.present != 1 << block.bits:
            raise broken(
                "protocol.json",
                f"the sets of {name} are no protocol of {mechanism}",
                expected="unary-encoding, whose true values are present with chance 1/2",
                found=f"{mechanism}, {block.present} / 2^{block.bits}",
            )
        return "coins of 1/2 for what is true"
    if mechanism == "unary-encoding" and not _identity(block):
        raise broken(
            "protocol.json",
            f"the protocol of {name} is no unary encoding",
            expected="sets, or every value as it is",
            found="other outputs",
        )
    return "every value as it is" if mechanism == "unary-encoding" else None


def _identity(block: Any) -> bool:
    a = len(block.inputs)
    same = block.outputs == block.inputs and block.weights.shape == (a, 1, a)
    return bool(same and (block.weights[:, 0, :] == np.eye(a, dtype=np.int64) << block.bits).all())


def lip_ratio(counts: npt.NDArray[Any], block: UnaryBlock) -> Fraction:
    """max over s and sets y of P(y|s)/P(y) or its inverse ([DS] Definition 2), from N[s, x]."""
    rows: list[list[int]] = counts[counts.any(axis=1)].tolist()
    every = [sum(column) for column in zip(*rows, strict=True)]
    return _worst(block, ((one, other) for row in rows for one, other in ((row, every), (every, row))))


def pml_ratio(counts: npt.NDArray[Any], block: UnaryBlock) -> Fraction:
    """max over s and sets y of P(s|y)/P(s), from N[s, x]."""
    rows: list[list[int]] = counts[counts.any(axis=1)].tolist()
    every = [sum(column) for column in zip(*rows, strict=True)]
    return _worst(block, ((row, every) for row in rows))


def ldp_ratio(counts: npt.NDArray[Any], block: UnaryBlock) -> Fraction:
    """max over s, s' and sets y of P(y|s)/P(y|s') ([DS] Definition 1), from N[s, x]."""
    rows: list[list[int]] = counts[counts.any(axis=1)].tolist()
    return _worst(block, ((row, other) for row in rows for other in rows if other is not row))


def value_ratio(block: UnaryBlock) -> Fraction:
    """max over x, x' and sets y of Q(y|x)/Q(y|x')."""
    whole = 1 << block.bits
    if len(block.inputs) == 1:
        return Fraction(1)
    return Fraction(block.present * (whole - block.absent), block.absent * (whole - block.present))


def _worst(block: UnaryBlock, pairs: Iterator[tuple[list[int], list[int]]]) -> Fraction:
    """The largest P(y | above)/P(y | below) over pairs of counts by value and over sets y."""
    best = Fraction(1)
    for above, below in pairs:
        best = _raised(best, block, above, below)
    return best


def _raised(best: Fraction, block: UnaryBlock, above: list[int], below: list[int]) -> Fraction:
    """The larger of `best` and what one pair reaches, by Dinkelbach's iteration in whole numbers.

    With the ratio of a set as (k + Σ u_x)/(k + Σ v_x), the set of all x with u_x > λ v_x beats λ if any set does;
    taking its ratio as the next λ ends at the largest, after finitely many steps.
    """
    whole = 1 << block.bits
    low = block.absent * (whole - block.present)
    gain = block.present * (whole - block.absent) - low
    one, other = sum(above), sum(below)
    fixed = low * one * other
    terms = [(gain * u * other, gain * v * one) for u, v in zip(above, below, strict=True)]
    while True:
        held = [term for term in terms if term[0] * best.denominator > best.numerator * term[1]]
        reached = Fraction(fixed + sum(u for u, _ in held), fixed + sum(v for _, v in held))
        if reached <= best:
            return best
        best = reached


def srlip_ratio(counts: npt.NDArray[Any], block: UnaryBlock) -> Fraction:
    """max of P(y|s, x_J)/P(y|x_J) or its inverse ([DS] Definition 3), J any of the block's columns but all.

    Who knows all of them learns nothing from the coins.
    """
    worst = Fraction(1)
    for width in range(len(block.columns)):
        for places in combinations(range(len(block.columns)), width):
            told = [tuple(value[place] for place in places) for value in block.inputs]
            for known in dict.fromkeys(told):
                worst = max(worst, lip_ratio(counts[:, [one == known for one in told]], block))
    return worst


def secret_information(counts: npt.NDArray[Any], block: UnaryBlock) -> tuple[float, float]:
    """I(S;Y) in nats between two bounds."""
    shares = counts[counts.any(axis=1)].astype(float)
    shares /= shares.sum()
    by_secret = shares.sum(axis=1)
    marginal = _mean(shares.sum(axis=0), block)
    parts = [_mean(row / row.sum(), block) for row in shares]
    low, high = (float(by_secret @ np.array(ends)) for ends in zip(*parts, strict=True))
    return max(low - marginal[1], 0.0), max(high - marginal[0], 0.0)


def public_information(prior: FloatArray, block: UnaryBlock) -> tuple[float, float]:
    """I(X;Y) in nats between two bounds, for the shares (a,) of X."""
    q, p = block.absent / (1 << block.bits), block.present / (1 << block.bits)
    noise = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    low, high = _mean(prior, block)
    return max(noise - high, 0.0), max(noise - low, 0.0)


def noise(block: UnaryBlock) -> float:
    """H(Y|X) in nats."""
    others = len(block.inputs) - 1
    return sum(
        -times * (share * math.log(share) + (1 - share) * math.log(1 - share))
        for times, share in (
            (1, block.present / (1 << block.bits)),
            (others, block.absent / (1 << block.bits)),
        )
    )


_LISTED = 16
_GRID = 1 << 18


def _mean(prior: FloatArray, block: UnaryBlock) -> tuple[float, float]:
    """Bounds of E[L ln L] over sets of coins that know no value, L the likelihood of the set given the prior.

    Up to 16 values set by set; beyond, the share that a set holds is rounded to a grid by coins that keep its
    mean, which can only raise the mean of a convex function, and by no more than half its largest curvature times
    the variance that they add.
    """
    q, p = block.absent / (1 << block.bits), block.present / (1 << block.bits)
    inside, outside = p / q, (1 - p) / (1 - q)
    if len(prior) <= _LISTED:
        held, chance = np.zeros(1), np.ones(1)
        for share in prior.tolist():
            held = np.concatenate([held, held + share])
            chance = np.concatenate([chance * (1 - q), chance * q])
        exact = _convex(outside + (inside - outside) * held) @ chance
        return float(exact), float(exact)
    chance, added = np.zeros(_GRID + len(prior) + 2), 0.0
    chance[0] = 1.0
    for share in prior.tolist():
        step, rest = divmod(share * _GRID, 1)
        below, above = np.roll(chance, int(step)), np.roll(chance, int(step) + 1)
        chance = (1 - q) * chance + q * ((1 - rest) * below + rest * above)
        added += q * rest * (1 - rest)
    high = _convex(outside + (inside - outside) * np.arange(len(chance)) / _GRID) @ chance
    error = (inside - outside) ** 2 / (2 * min(inside, outside)) * added / _GRID**2
    return float(high) - error, float(high)


def _convex(likelihood: FloatArray) -> FloatArray:
    return np.asarray(likelihood * np.log(likelihood), np.float64)
