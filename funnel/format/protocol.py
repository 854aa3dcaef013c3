"""protocol.json: the labels and integer weights of every block's protocol, and how a value is drawn with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from funnel.format.fields import Alphabet, Label, Text
from funnel.format.schema import Between, Grid

NAME = "protocol.json"
MOST_BITS = 62


@dataclass(frozen=True)
class Weights:
    """P(y | x) = weights[y][x] / 2^bits; weights[y][s][x] where `secret` is given and the draw depends on s, too."""

    kind: Literal["weights"]
    columns: tuple[Text, ...]
    secret: Alphabet | None
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    bits: Annotated[int, Between(0, MOST_BITS)]
    weights: Grid


@dataclass(frozen=True)
class Sets:
    """Unary encoding: a set of values is released.

    Each value is in it with chance present / 2^bits if it is the true one, else absent / 2^bits. The code of a set has
    value x at bit a-1-x. It is written as a JSON list (`set`) or as a 0/1 column for each value (`bits`).
    """

    kind: Literal["unary"]
    columns: tuple[Text, ...]
    inputs: tuple[Label, ...]
    bits: Annotated[int, Between(1, MOST_BITS)]
    present: Annotated[int, Between(1, 1 << MOST_BITS)]
    absent: Annotated[int, Between(1, 1 << MOST_BITS)]
    form: Literal["set", "bits"]


@dataclass(frozen=True)
class ProtocolFile:
    """protocol.json; `rule` says in words how a value is drawn."""

    format: Literal["funnel-protocol/1"]
    rule: str
    blocks: tuple[Weights | Sets, ...]
