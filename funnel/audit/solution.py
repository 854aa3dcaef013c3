"""solution.json: the bound that the solver certified, and proof.bin: why it holds; both read strictly."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.boxes import Tree
from funnel.audit.fields import Field, IntArray, parse
from funnel.audit.files import content
from funnel.audit.findings import broken
from funnel.audit.sets import OverSets, read_over_sets
from funnel.errors import AuditFailure

FORMAT = "funnel-solution/1"
PROOF = "proof.bin"
_KEYS = ("format", "how", "upper_bounds", "budgets")
_LATER = ("certificate", "over_sets")
"""Keys that the first releases lack."""
_SHA = r"[0-9a-f]{64}"
MOST_BYTES = 1 << 28
"""Of a proof once it is unpacked."""
_MOST_BOXES, _MOST_ENTRIES = 1 << 20, 1 << 26
"""Five times the boxes that a writer keeps; inequalities, and multipliers."""
_LARGEST = 1e9
_ABOUT = ("public", "secret")

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certificate:
    """λ = `duals` of public values, or of secret ones by `about`; no row is worth more than λ·v + `peak` (nats)."""

    about: str
    duals: FloatArray
    peak: float
    proof: Proof | None

    @property
    def bound(self) -> float:
        """Σ λ + peak."""
        return float(self.duals.sum()) + self.peak


@dataclass(frozen=True, eq=False)
class Proof:
    """Inequalities (m, a) on w, and the boxes that they close."""

    inequalities: FloatArray
    tree: Tree


@dataclass(frozen=True, eq=False)
class Solution:
    """Upper bounds of I(X_j;Y_j) in nats, None where none is claimed, and what they rest on.

    `over_sets` bounds protocols that are robust by way of box sets only.
    """

    upper_bounds: tuple[float | None, ...]
    certificate: Certificate | None
    over_sets: OverSets | None = None


def read_solution(folder: Path, sizes: dict[str, int], blocks: int) -> Solution:
    """What the solver left; `sizes` are the numbers of public and of secret values. Raises AuditFailure."""
    root = parse("solution.json", content(folder / "solution.json"))
    root["format"].among(FORMAT)
    root.keys(*_KEYS, optional=_LATER)
    bounds = tuple(
        None if field.value is None else _real(field, low=0.0) for field in root["upper_bounds"].items()
    )
    if len(bounds) != blocks:
        raise root["upper_bounds"].wrong(f"{blocks} bounds")
    told = root["certificate"] if "certificate" in root.value else None
    given = told is not None and told.value is not None
    beside = read_over_sets(root["over_sets"], sizes) if "over_sets" in root.value else None
    return Solution(bounds, _certificate(told, folder, sizes) if told is not None and given else None, beside)


def _certificate(field: Field, folder: Path, sizes: dict[str, int]) -> Certificate:
    field.keys("about", "duals", "peak", "boxes", "proof")
    about = field["about"].among(*_ABOUT)
    field["boxes"].whole()
    duals = np.array([_real(item) for item in field["duals"].items()])
    if len(duals) != sizes[about]:
        raise field["duals"].wrong(f"{sizes[about]} numbers")
    proof = None if field["proof"].value is None else _proof(field["proof"], folder, sizes[about])
    return Certificate(about, duals, _real(field["peak"]), proof)


def _real(field: Field, low: float = -_LARGEST) -> float:
    """A finite number."""
    if type(field.value) not in (int, float) or not low <= field.value <= _LARGEST:
        raise field.wrong(f"a number from {low:g} to {_LARGEST:g}")
    return float(field.value)


def _proof(field: Field, folder: Path, size: int) -> Proof:
    """proof.bin, of exactly the size that its parts take. Raises AuditFailure."""
    field.keys("sha256", "inequalities", "boxes", "multipliers")
    rows = field["inequalities"].whole(high=_MOST_ENTRIES)
    boxes, entries = field["boxes"].whole(1, _MOST_BOXES), field["multipliers"].whole(high=_MOST_ENTRIES)
    layout = _layout(size, rows, boxes, entries)
    whole = sum(count * np.dtype(kind).itemsize for kind, count in layout)
    if whole > MOST_BYTES:
        raise field.wrong(f"a proof of at most {MOST_BYTES} bytes")
    packed = content(folder / PROOF, MOST_BYTES)
    if hashlib.sha256(packed).hexdigest() != field["sha256"].text(_SHA):
        raise _ill("the proof is not the one that was kept", f"SHA-256 {field['sha256'].value[:16]}…")
    parts = _parts(_unpacked(packed, whole), layout)
    inequalities = next(parts).astype(float).reshape(rows, size)
    parent, which, at, upper, counts, index, value, level = parts
    starts = np.concatenate([[0], counts.astype(np.int64).cumsum()])
    if (upper > 1).any() or starts[-1] != entries or (index >= rows).any():
        raise _ill("the proof's parts do not fit together", "halves, counts and inequalities that exist")
    tree = Tree(
        *(_whole(parent), _whole(which), at.astype(float), upper.astype(bool)),
        *(starts, _whole(index), value.astype(float), level.astype(float)),
    )
    return Proof(inequalities, tree)


def _layout(size: int, rows: int, boxes: int, entries: int) -> list[tuple[str, int]]:
    """Kinds and lengths of the arrays, little-endian, one after the other."""
    of_boxes = [("<i4", boxes), ("<i4", boxes), ("<f8", boxes), ("u1", boxes), ("<u4", boxes)]
    return [("<f8", rows * size), *of_boxes, ("<u4", entries), ("<f8", entries), ("<f8", boxes)]


def _unpacked(packed: bytes, whole: int) -> bytes:
    """Exactly `whole` bytes; nothing beyond them is ever unpacked. Raises AuditFailure."""
    try:
        reader = zlib.decompressobj()
        found = reader.decompress(packed, whole + 1)
        found += (
            reader.decompress(reader.unconsumed_tail, 1) if len(found) == whole and not reader.eof else b""
        )
    except zlib.error as error:
        raise _ill(f"the proof cannot be unpacked: {error}", "a zlib stream") from error
    if len(found) != whole or not reader.eof or reader.unused_data:
        raise _ill("the proof has another size than its parts", f"{whole} bytes")
    return found


def _parts(raw: bytes, layout: list[tuple[str, int]]) -> Iterator[npt.NDArray[Any]]:
    """The arrays of a layout."""
    place = 0
    for kind, count in layout:
        yield np.frombuffer(raw, kind, count, place)
        place += count * np.dtype(kind).itemsize


def _whole(values: npt.NDArray[Any]) -> IntArray:
    return values.astype(np.int64)


def _ill(what: str, expected: str) -> AuditFailure:
    return broken(PROOF, what, expected=expected, found="something else")
