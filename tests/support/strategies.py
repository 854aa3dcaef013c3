"""Random tables and protocols, the degenerate ones included."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol


@st.composite
def tables(draw: st.DrawFn, most: int = 5, secrets: int = 4, largest: int = 400) -> np.ndarray:
    """Counts N[s, x] with no empty row or column: sparse, correlated, tiny and large ones."""
    c, a = draw(st.integers(2, secrets)), draw(st.integers(1, most))
    cell = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, largest))
    table = np.array(draw(st.lists(cell, min_size=c * a, max_size=c * a)), np.int64).reshape(c, a)
    for s in np.flatnonzero(table.sum(axis=1) == 0):
        table[s, draw(st.integers(0, a - 1))] = draw(st.integers(1, largest))
    for x in np.flatnonzero(table.sum(axis=0) == 0):
        table[draw(st.integers(0, c - 1)), x] = draw(st.integers(1, largest))
    return table


@st.composite
def joints(draw: st.DrawFn, most: int = 5, secrets: int = 4) -> Joint:
    """A joint of one block."""
    return Joint.from_table(draw(tables(most, secrets)))


@st.composite
def many_block_joints(draw: st.DrawFn, blocks: int = 3, most: int = 3) -> Joint:
    """A joint of up to three blocks, sparse or dense."""
    k = draw(st.integers(1, blocks))
    shape = (draw(st.integers(2, 3)), *(draw(st.integers(1, most)) for _ in range(k)))
    size = int(np.prod(shape))
    table = np.array(draw(st.lists(st.integers(0, 30), min_size=size, max_size=size)), np.int64).reshape(
        shape
    )
    for axis in range(len(shape)):
        for index in range(shape[axis]):
            cell = tuple(index if j == axis else 0 for j in range(len(shape)))
            if np.take(table, index, axis=axis).sum() == 0:
                table[cell] = 1
    cells = np.argwhere(table > 0).astype(np.int64)
    alphabets = [Alphabet((f"c{j}",), tuple((f"v{i}",) for i in range(n))) for j, n in enumerate(shape)]
    return Joint(alphabets[0], tuple(alphabets[1:]), cells, table[table > 0])


@st.composite
def protocols(draw: st.DrawFn, joint: Joint, index: int = 0, bits: int | None = None) -> Protocol:
    """Any protocol for a block, reading the secret or not."""
    inputs, chosen = joint.blocks[index], draw(st.integers(0, 20)) if bits is None else bits
    secret = joint.secret if draw(st.booleans()) else None
    columns = (len(secret) if secret else 1) * len(inputs)
    outputs = draw(st.integers(1, len(inputs) + 1))
    weights = np.stack([_column(draw, outputs, 1 << chosen) for _ in range(columns)], axis=1)
    labels = Alphabet(inputs.columns, tuple((f"y{y}",) * len(inputs.columns) for y in range(outputs)))
    return Protocol(inputs, labels, chosen, weights.reshape(outputs, -1, len(inputs)), secret)


def _column(draw: st.DrawFn, outputs: int, total: int) -> np.ndarray:
    """Non-negative integers that sum to `total`."""
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=outputs - 1, max_size=outputs - 1)))
    return np.diff(np.array([0, *cuts, total], np.int64))
