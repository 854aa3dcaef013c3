"""protocol.json: labels and integer weights of every block, read strictly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from funnel.audit.fields import Field, IntArray, Label, parse
from funnel.audit.files import content
from funnel.audit.findings import broken, counted
from funnel.audit.manifest import Manifest
from funnel.audit.unary import UnaryBlock, read_block

FORMAT = "funnel-protocol/1"
MOST_BITS = 62


@dataclass(frozen=True, eq=False)
class Block:
    """One protocol: weights W[y, s, x] (b, c or 1, a); the chance of y given s and x is W / 2^bits."""

    columns: tuple[str, ...]
    secret_columns: tuple[str, ...] | None
    secret: tuple[Label, ...] | None
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    bits: int
    weights: IntArray

    @property
    def possible(self) -> tuple[Label, ...]:
        """The outputs that some input can produce."""
        positive = self.weights.max(axis=(1, 2)).tolist()
        return tuple(label for label, can in zip(self.outputs, positive, strict=True) if can > 0)


Blocks = tuple[Block | UnaryBlock, ...]


def read_protocol(folder: Path) -> tuple[Blocks, str]:
    """Every block of protocol.json. Raises AuditFailure where labels or weights are not of the format."""
    blocks = read_blocks("protocol.json", content(folder / "protocol.json"))
    sizes = ", ".join(f"{len(block.inputs)} to {len(block.outputs)} at 2^{block.bits}" for block in blocks)
    return blocks, f"{counted(len(blocks), 'block')}: {sizes}"


def read_blocks(name: str, raw: bytes) -> Blocks:
    """The blocks in the bytes of a protocol.json. Raises AuditFailure."""
    root = parse(name, raw)
    root["format"].among(FORMAT)
    root.keys("format", "rule", "blocks")
    root["rule"].text()
    blocks = tuple(_block(field) for field in root["blocks"].items())
    if not blocks:
        raise root["blocks"].wrong("one or more blocks")
    return blocks


def _block(field: Field) -> Block | UnaryBlock:
    if isinstance(field.value, dict) and "kind" in field.value:
        return read_block(field)
    field.keys("columns", "secret", "inputs", "outputs", "bits", "weights")
    columns = field["columns"].names()
    secret_columns, secret = _secret(field["secret"])
    inputs, outputs = field["inputs"].labels(len(columns)), field["outputs"].labels(len(columns))
    bits = field["bits"].whole(0, MOST_BITS)
    axes = (len(outputs), len(inputs)) if secret is None else (len(outputs), len(secret), len(inputs))
    weights = field["weights"].whole_grid(*axes, high=1 << bits).reshape(len(outputs), -1, len(inputs))
    _sums_to_one(field["weights"], weights, bits)
    return Block(columns, secret_columns, secret, inputs, outputs, bits, weights)


def _secret(field: Field) -> tuple[tuple[str, ...] | None, tuple[Label, ...] | None]:
    if field.value is None:
        return None, None
    field.keys("columns", "values")
    columns = field["columns"].names()
    return columns, field["values"].labels(len(columns))


def _sums_to_one(field: Field, weights: IntArray, bits: int) -> None:
    """Every column sums to 2^bits, added in halves so that no sum can wrap around to the right one."""
    high, low = (weights >> 31).sum(axis=0), (weights & ((1 << 31) - 1)).sum(axis=0)
    sums = (high.astype(object) << 31) + low.astype(object)
    wrong = np.argwhere(sums != 1 << bits)
    if len(wrong):
        s, x = wrong[0]
        raise broken(
            field.file,
            f"{field.path}: the weights of input {x} (secret {s}) do not sum to 2^bits",
            expected=1 << bits,
            found=sums[s, x],
        )


def as_stated(blocks: Blocks, manifest: Manifest) -> tuple[Blocks, str]:
    """The blocks, once their columns and sizes are the manifest's. Raises AuditFailure."""
    c, public, released = manifest.sizes
    for what, expected, found in (
        ("columns", manifest.public, tuple(block.columns for block in blocks)),
        ("number of inputs", public, tuple(len(block.inputs) for block in blocks)),
        ("number of outputs", released, tuple(len(block.outputs) for block in blocks)),
        (
            "secret columns",
            {manifest.sensitive},
            {b.secret_columns for b in blocks if b.secret} | {manifest.sensitive},
        ),
        ("number of secret values", {c}, {len(block.secret) for block in blocks if block.secret} | {c}),
    ):
        if expected != found:
            raise broken(
                "protocol.json", f"the {what} are not the manifest's", expected=expected, found=found
            )
    return blocks, ", ".join(f"{a} to {counted(b, 'value')}" for a, b in zip(public, released, strict=True))
