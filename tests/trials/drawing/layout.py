"""What is drawn from: seven protocols, three ways of drawing, and the cells that are counted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.data import AnyProtocol, Protocol, UnaryProtocol
from funnel.draw.draw import Drawer
from funnel.draw.keys import Key
from tests.support.samples import alphabet, protocol
from tests.trials.drawing.rule import Codes, Rule

FRESH, NUMBERS, TEXTS = "fresh", "permanent, numbers", "permanent, texts"
WAYS = (FRESH, NUMBERS, TEXTS)
_FINEST = 62


def _falling(bits: int, outputs: int, ratio: float, ends: Sequence[int] = ()) -> list[int]:
    """Weights that fall by a ratio, the given ones mixed in between, and the rest on the first."""
    total = (1 << bits) - sum(ends)
    shares = np.cumprod(np.full(outputs - len(ends), ratio))
    weights = [int(share * total) for share in shares / shares.sum()]
    weights[0] += total - sum(weights)
    for place, weight in enumerate(ends):
        weights.insert(1 + 3 * place, weight)
    return weights


_TINY = [0, 1, 0, 1 << 10, 1 << 31, 1 << 44, 0]
_SKEWED = _falling(_FINEST, 24, 0.93, _TINY)
_FORTY = _falling(30, 40, 0.96)
_SECRET = _falling(17, 16, 0.97)

PROTOCOLS: dict[str, AnyProtocol] = {
    "coin": protocol("coin", [[1, 1]]),
    "eighths": protocol("eighths", [[3, 0, 2, 1, 1, 1]]),
    "skewed": protocol("skewed", [_SKEWED, _SKEWED[::-1]]),
    "rare": protocol("rare", [[(1 << _FINEST) - (1 << 52), 1 << 52], [1 << 20, (1 << _FINEST) - (1 << 20)]]),
    "forty": protocol("forty", [_FORTY, _FORTY[13:] + _FORTY[:13]]),
    "secret": protocol("secret", [_SECRET, _SECRET[5:] + _SECRET[:5]], alphabet("s", 2)),
    "sets": UnaryProtocol(alphabet("sets", 5), 40, 1 << 39, 1 << 37),
}
"""Two to forty outputs, weights of 0 and 1 over 2^62, a row that reads the secret, and unary encoding's coins."""

DEEP = (
    (FRESH, "coin"),
    (FRESH, "skewed"),
    (NUMBERS, "coin"),
    (NUMBERS, "rare"),
    (NUMBERS, "forty"),
    (NUMBERS, "secret"),
)
"""Drawn from until every cell shows the bias by its count alone: the hardest cells there are, and both ciphers."""

INJECTED = tuple(one for one in DEEP if one != (NUMBERS, "coin"))
"""Where the bias is injected; one coin is enough, as it takes a fifth of all draws."""


@dataclass(frozen=True)
class Line:
    """What one code of a drawn batch says: the output of a block, or one coin of a block of sets."""

    name: str
    coin: int | None = None

    @property
    def inputs(self) -> int:
        """Codes that the block is drawn for."""
        source = PROTOCOLS[self.name]
        return len(source.inputs) * (len(source.secret) if source.secret else 1)

    def weights(self, code: int) -> list[int]:
        """Of its outputs, for one input."""
        source = PROTOCOLS[self.name]
        if isinstance(source, UnaryProtocol):
            one = source.present if self.coin == code else source.absent
            return [(1 << source.bits) - one, one]
        return [int(weight) for weight in source.weights.reshape(len(source.outputs), -1)[:, code]]

    def read(self, codes: Codes) -> Codes:
        """Its outputs in a column of drawn codes."""
        source = PROTOCOLS[self.name]
        if isinstance(source, UnaryProtocol):
            return np.asarray(source.outputs.holds(codes, self.coin or 0))
        return codes

    def __str__(self) -> str:
        return self.name if self.coin is None else f"{self.name}, coin {self.coin + 1}"


BLOCKS = tuple(PROTOCOLS)
LINES = tuple(
    Line(name, coin)
    for name, source in PROTOCOLS.items()
    for coin in (range(len(source.inputs)) if isinstance(source, UnaryProtocol) else [None])
)


@dataclass(frozen=True)
class Row:
    """The cells of one line, one input and one way of drawing."""

    way: str
    line: Line
    code: int

    @property
    def weights(self) -> list[int]:
        """Of its cells."""
        return self.line.weights(self.code)

    @property
    def deep(self) -> bool:
        """Whether it is drawn from until its counts alone show the bias."""
        return (self.way, self.line.name) in DEEP

    def __str__(self) -> str:
        return f"{self.way}, {self.line}, input {self.code + 1}"


ROWS = tuple(Row(way, line, code) for way in WAYS for line in LINES for code in range(line.inputs))
CELLS = sum(1 for row in ROWS for weight in row.weights if weight)
"""Cells of positive weight; a draw of a weight of zero is wrong for certain."""


class Secrets:
    """Secrets from the operating system, or for who names a label, the same again."""

    def __init__(self, label: str | None) -> None:
        self._label = label

    def __call__(self, purpose: str) -> bytes:
        """32 bytes for a purpose."""
        if self._label is None:
            return os.urandom(32)
        return hashlib.sha256(f"funnel draws {self._label} {purpose}".encode()).digest()


def drawer(protocols: Sequence[AnyProtocol], secret: bytes, way: str) -> Drawer:
    """The kernel as a run makes it."""
    return Drawer(protocols, Key(secret), permanent=way != FRESH)


def watched(protocols: Sequence[AnyProtocol], secret: bytes, way: str) -> tuple[Drawer, Rule]:
    """The kernel, and the rule that it has to follow."""
    taken: list[bytes] = []

    def random(size: int) -> bytes:
        taken.append(original(size))
        return taken[-1]

    original = os.urandom
    with patch("os.urandom", random):
        made = drawer(protocols, secret, way)
    return made, Rule(protocols, secret, taken[0] if way == FRESH else None)


def people(way: str, first: int, rows: int) -> npt.NDArray[np.generic]:
    """Entities as `Rule.draw` takes them: numbers in a row, or texts that differ in their last letters."""
    numbers = np.arange(first, first + rows, dtype=np.int64)
    if way != TEXTS:
        return numbers
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts = np.empty((rows, 24), np.uint8)
    texts[:, :12] = np.frombuffer(b"person name ", np.uint8)
    for place in range(12):
        texts[:, 23 - place] = letters[(numbers >> (4 * place)) & 15]
    return texts


def column(entities: npt.NDArray[np.generic]) -> pa.Array:
    """The same as an engine hands them over."""
    if entities.ndim == 1:
        return pa.array(entities)
    rows, width = entities.shape
    ends = np.arange(0, (rows + 1) * width, width, dtype=np.int64)
    return pa.Array.from_buffers(
        pa.large_string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(entities))]
    )


def batch(
    protocols: Sequence[AnyProtocol], codes: Sequence[int], rows: int, entity: pa.Array | None
) -> pa.RecordBatch:
    """Rows that have one input in every block; the secret is that of the block that reads it."""
    columns: dict[str, pa.Array] = {}
    for block, (source, code) in enumerate(zip(protocols, codes, strict=True)):
        hidden, x = divmod(code, len(source.inputs))
        columns[f"x{block}"] = pa.array(np.full(rows, x, np.int32))
        if source.secret is not None:
            columns["s"] = pa.array(np.full(rows, hidden, np.int32))
    if entity is not None:
        columns["entity"] = entity
    return pa.record_batch(columns)


def tilted(name: str, code: int, bias: float) -> tuple[Protocol, int]:
    """The protocol with that much chance moved out of its most even cell; and the cell."""
    source = PROTOCOLS[name]
    weights = Line(name).weights(code)
    bits = max(source.bits, 50)
    flat = source.weights.reshape(len(source.outputs), -1) << (bits - source.bits)
    cell, other = sorted(range(len(weights)), key=lambda y: abs(2 * weights[y] - (1 << source.bits)))[:2]
    moved = round(bias * (1 << bits))
    flat[cell, code] -= moved
    flat[other, code] += moved
    return Protocol(
        source.inputs, source.outputs, bits, flat.reshape(source.weights.shape), source.secret
    ), cell
