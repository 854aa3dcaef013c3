"""protocol.json: the labels and integer weights of every block's protocol, and how a value is drawn with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from funnel.format.fields import Alphabet, Label, Text
from funnel.format.schema import Flaws, Grid, InRange, unlike

NAME = "protocol.json"
FOLDER = "protocols"
"""In the private folder: each that was ever released, under its hash; and each release.json, in the same way."""
MOST_BITS = 62
MOST_VALUES = 62
"""Of a set: its code is one word."""


@dataclass(frozen=True)
class Weights:
    """P(y | x) = weights[y][x] / 2^bits; weights[y][s][x] where `secret` is given and the draw depends on s, too."""

    kind: Literal["weights"]
    columns: tuple[Text, ...]
    secret: Alphabet | None
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    bits: Annotated[int, InRange(0, MOST_BITS)]
    weights: Grid

    def flaws(self) -> Flaws:
        """Labels are distinct; there is a weight for every output and input, and those of an input sum to 2^bits."""
        yield from unlike(self.columns, inputs=self.inputs, outputs=self.outputs)
        parts = zip(*self.weights, strict=True) if self.secret else (self.weights,)
        secrets, size = len(self.secret.values) if self.secret else 1, len(self.inputs)
        sums = [[*map(sum, zip(*part, strict=True))] for part in parts]
        if len(self.weights) != len(self.outputs) or sums != [[1 << self.bits] * size] * secrets:
            yield "weights", f"columns of whole numbers that sum to 2^{self.bits}, one for each input", "others"


@dataclass(frozen=True)
class Sets:
    """Unary encoding: a set of values is released.

    Each value is in it with chance present / 2^bits if it is the true one, else absent / 2^bits. The code of a set has
    value x at bit a-1-x. It is written as a JSON list (`set`) or as a 0/1 column for each value (`bits`).
    """

    kind: Literal["unary"]
    columns: tuple[Text, ...]
    inputs: tuple[Label, ...]
    bits: Annotated[int, InRange(1, MOST_BITS)]
    present: Annotated[int, InRange(1, 1 << MOST_BITS)]
    absent: Annotated[int, InRange(1, 1 << MOST_BITS)]
    form: Literal["set", "bits"]

    def flaws(self) -> Flaws:
        """Labels are distinct, and few enough; a value is in a set more likely where it is the true one."""
        yield from unlike(self.columns, inputs=self.inputs)
        if not self.absent < self.present < 1 << self.bits or len(self.inputs) > MOST_VALUES:
            yield "present", f"0 < absent < present < 2^bits, for at most {MOST_VALUES} values", self.present


@dataclass(frozen=True)
class ProtocolFile:
    """protocol.json; `rule` says in words how a value is drawn."""

    format: Literal["funnel-protocol/1"]
    rule: str
    blocks: tuple[Weights | Sets, ...]
