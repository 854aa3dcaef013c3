"""Keys that tests may fix, and small protocols, batches and joints."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from funnel.data import Alphabet, Joint, Protocol
from funnel.draw.keys import Key


def fixed_key(name: str = "a") -> Key:
    """The same key every time: only tests may have such a thing."""
    return Key(hashlib.sha256(f"test key {name}".encode()).digest())


def alphabet(column: str, size: int) -> Alphabet:
    return Alphabet((column,), tuple((f"{column}{i}",) for i in range(size)))


def protocol(column: str, weights: Sequence[Sequence[int]], secret: Alphabet | None = None) -> Protocol:
    """A protocol from one row of output weights per input code; all rows sum to one power of two."""
    rows = np.array(weights, np.int64)
    hidden = len(secret) if secret else 1
    inputs = len(rows) // hidden
    shaped = rows.T.reshape(rows.shape[1], hidden, inputs)
    bits = int(rows[0].sum()).bit_length() - 1
    return Protocol(alphabet(column, inputs), alphabet(column, rows.shape[1]), bits, shaped, secret)


def random_weights(
    rng: np.random.Generator, inputs: int, outputs: int, bits: int, concentration: float = 1.0
) -> np.ndarray:
    """Rows of non-negative integers that sum to 2^bits; a small concentration gives many zeros and spikes."""
    total = 1 << bits
    shares = rng.dirichlet(np.full(outputs, concentration), size=inputs)
    rows = [[int(share * total) for share in row] for row in shares]
    for row in rows:
        row[row.index(max(row))] += total - sum(row)
    return np.array(rows, np.int64)


def random_protocol(
    seed: int, column: str, inputs: int, outputs: int, bits: int, concentration: float = 1.0
) -> Protocol:
    return protocol(column, random_weights(np.random.default_rng(seed), inputs, outputs, bits, concentration))


def batch(entity: object = None, s: object = None, **inputs: object) -> pa.RecordBatch:
    """A batch for the kernel, columns in the order x0, x1, …, s, entity."""
    columns = {name: np.asarray(codes) for name, codes in sorted(inputs.items())}
    if s is not None:
        columns["s"] = np.asarray(s)
    arrays = {name: pa.array(codes) for name, codes in columns.items()}
    if entity is not None:
        arrays["entity"] = entity if isinstance(entity, pa.Array) else pa.array(entity)
    return pa.record_batch(arrays)


def drawn(record_batch: pa.RecordBatch, block: int = 0) -> np.ndarray:
    return record_batch.column(block).to_numpy()


def joint_of(secret: np.ndarray, *blocks: np.ndarray) -> Joint:
    """The joint distribution of columns of codes; every code up to the largest must occur."""
    codes = np.column_stack([secret, *blocks]).astype(np.int64)
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    sizes = codes.max(axis=0) + 1
    alphabets = [alphabet(name, int(size)) for name, size in zip("sxzvw", sizes, strict=False)]
    return Joint(alphabets[0], tuple(alphabets[1:]), cells, counts)
