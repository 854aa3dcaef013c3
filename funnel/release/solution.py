"""What the solver found, for the private evidence: how, the bounds, and the certificate of an optimum."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from funnel.format import solution as files
from funnel.mechanisms import Solved
from funnel.mechanisms.base import Totals
from funnel.optimise.certificate import Proof

MOST_BYTES = 1 << 28
"""Of a proof before it is packed: what the auditor reads at most."""
_LEVEL = 1
"""Multipliers hardly pack, and more effort is lost on them."""


def solution_file(
    solved: Sequence[Solved], budgets: Sequence[float]
) -> tuple[files.SolutionFile, bytes | None]:
    """solution.json; and proof.bin where the one block there is has a proof that is not too large to read."""
    one = solved[0] if len(solved) == 1 else None
    certificate = None if one is None else one.certificate
    packed = None if certificate is None or certificate.proof is None else _packed(certificate.proof)
    return files.SolutionFile(
        "funnel-solution/1",
        how=tuple(each.how for each in solved),
        upper_bounds=tuple(each.bound for each in solved),
        budgets=tuple(budgets),
        certificate=None if one is None else _certificate(one, packed),
        totals=tuple(_totals(each.totals) for each in solved if each.totals is not None),
    ), packed


def _certificate(solved: Solved, packed: bytes | None) -> files.Certificate | None:
    """The certificate's figures; the proof goes into its own file."""
    known = solved.certificate
    if known is None:
        return None
    proof = None if known.proof is None or packed is None else _proof(known.proof, packed)
    return files.Certificate(solved.about, _floats(known.duals), known.peak, known.nodes, proof)


def _totals(told: Totals) -> files.Totals:
    """What shows that totals stay, every side once."""
    if told.prices is None:
        return files.Totals(told.deviation, told.optimum, None, (), ())
    sides, place = np.unique(told.prices.facets, axis=0, return_inverse=True)
    binding = zip(told.prices.owner.tolist(), place.ravel().tolist(), told.prices.multipliers.tolist(), strict=True)
    return files.Totals(
        told.deviation, told.optimum, _floats(told.prices.totals), tuple(map(_floats, sides)), tuple(binding)
    )


def _proof(proof: Proof, packed: bytes) -> files.Proof:
    sizes = (len(proof.inequalities), proof.boxes, len(proof.value))
    return files.Proof(hashlib.sha256(packed).hexdigest(), *sizes)


def _floats(array: np.ndarray[Any, Any]) -> tuple[float, ...]:
    return tuple(map(float, array.tolist()))


def _packed(proof: Proof) -> bytes | None:
    """proof.bin: arrays one after the other, little-endian, in one zlib stream. None where it is too large to read."""
    raw = b"".join(part.astype(kind).tobytes() for kind, part in _layout(proof))
    return None if len(raw) > MOST_BYTES else zlib.compress(raw, _LEVEL)


def _layout(proof: Proof) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays of proof.bin: inequalities, then one entry per box, per multiplier, and per box again."""
    of_boxes: list[tuple[str, np.ndarray[Any, Any]]] = [
        ("<i4", proof.parent),
        ("<i4", proof.which),
        ("<f8", proof.at),
        ("u1", proof.upper),
        ("<u4", np.diff(proof.starts)),
    ]
    return [
        ("<f8", proof.inequalities),
        *of_boxes,
        ("<u4", proof.index),
        ("<f8", proof.value),
        ("<f8", proof.level),
    ]
