"""Who a row is about, in the form that keyed draws read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.data.joint import IntArray
from funnel.errors import InternalError

Words = npt.NDArray[np.uint64]

_CANONICAL = r"^(0|-?[1-9][0-9]{0,17})$"
_BOUND = 10**18
_LONGEST_NUMBER = 19
_BLOCK = 16


@dataclass(frozen=True)
class Texts:
    """Entities that are not canonical integers: `rows` (m,), longest first, and their byte `lengths` (m,).

    `blocks[r]` holds the r-th 16 bytes of every text that is longer than 16·r bytes, zero-padded, as two
    words each; since the rows lie longest first, it belongs to the first len(blocks[r]) of them.
    """

    rows: IntArray
    lengths: IntArray
    blocks: list[Words]


@dataclass(frozen=True)
class Entities:
    """One entity a row: `numbers` (n,), without meaning at the rows of `texts`."""

    numbers: IntArray
    texts: Texts | None


def read_entities(column: pa.Array) -> Entities:
    """Entities of an Arrow array of integers or text.

    A text that is the plain decimal form of an integer below 10^18 in magnitude is that integer, and a
    larger integer is its decimal text; so 42 and "42" are one person, whatever the engine's column type.
    Raises InternalError for nulls and other types: an engine refuses them before it draws.
    """
    if column.null_count:
        raise InternalError("a row without an entity reached the draw")
    if pa.types.is_integer(column.type):
        return _from_integers(column)
    if _is_text(column.type):
        return _from_texts(column.cast(pa.large_string()))
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        return _from_texts(column.cast(pa.large_string()))
    raise InternalError(f"entities of type {column.type} reached the draw")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _from_integers(column: pa.Array) -> Entities:
    values = column.to_numpy(zero_copy_only=True)
    numbers = values.astype(np.int64, copy=False)
    wide = values.dtype.itemsize == 8 and len(values) and (values.max() >= _BOUND or values.min() <= -_BOUND)
    if not wide:
        return Entities(numbers, None)
    rows = np.flatnonzero((values >= _BOUND) | (values <= -_BOUND))
    return Entities(numbers, _texts(rows, column.take(pa.array(rows)).cast(pa.large_string())))


def _from_texts(column: pa.Array) -> Entities:
    numbers = np.zeros(len(column), np.int64)
    plain = _canonical(column)
    if plain.any():
        numbers[plain] = column.filter(pa.array(plain)).cast(pa.int64()).to_numpy()
    rows = np.flatnonzero(~plain)
    if len(rows) == 0:
        return Entities(numbers, None)
    others = column if len(rows) == len(column) else column.filter(pa.array(~plain))
    return Entities(numbers, _texts(rows, others))


def _canonical(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which texts (n,) are the plain decimal form of an integer that fits the number path."""
    import pyarrow.compute as pc

    if (np.diff(_ends(column)) > _LONGEST_NUMBER).all():
        return np.zeros(len(column), bool)
    return np.asarray(pc.match_substring_regex(column, _CANONICAL).to_numpy(zero_copy_only=False))


def _texts(rows: IntArray, column: pa.Array) -> Texts:
    """Cut the texts (m,) at `rows` (m,) into blocks."""
    ends = _ends(column)
    starts, lengths = ends[:-1], np.diff(ends)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order] - ends[0], lengths[order]
    return Texts(rows[order], lengths, _cut(_padded(column.buffers()[2], ends), starts, lengths))


def _ends(column: pa.Array) -> IntArray:
    """Offsets (m + 1,) of texts (m,) in their buffer."""
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def _padded(data: pa.Buffer | None, ends: IntArray) -> npt.NDArray[np.uint8]:
    """The texts' bytes, one after another, with a block of zeros behind."""
    content = np.zeros(int(ends[-1] - ends[0]) + _BLOCK, np.uint8)
    if data is not None:
        content[:-_BLOCK] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return content


def _cut(content: npt.NDArray[np.uint8], starts: IntArray, lengths: IntArray) -> list[Words]:
    """The blocks of texts that lie longest first."""
    # Every 16 bytes at every offset, as one opaque item: a gather then copies whole blocks.
    windows = np.ndarray((len(content) - _BLOCK + 1,), f"V{_BLOCK}", buffer=content, strides=(1,))
    keep = np.tri(_BLOCK + 1, _BLOCK, -1, np.uint8) * np.uint8(255)
    keep = keep.view(f"V{_BLOCK}").ravel()
    blocks = []
    for begin in range(0, int(lengths[0]), _BLOCK):
        active = int(np.count_nonzero(lengths > begin))
        inside = np.minimum(lengths[:active] - begin, _BLOCK)
        taken = windows[starts[:active] + begin].view("<u8") & keep[inside].view("<u8")
        blocks.append(taken.reshape(active, 2))
    return blocks
