"""What the solver found, for the private evidence: how, the bounds, and the certificate of an optimum."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funnel.format import solution as files
from funnel.format.solution import MOST_BYTES
from funnel.mechanisms import Solved
from funnel.mechanisms.base import Totals
from funnel.optimise.certificate import Proof

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
        certificate=None if one is None else _certificate(one, packed and packed[0]),
        totals=tuple(_totals(each.totals) for each in solved if each.totals is not None),
    ), packed and packed[1]


def _certificate(solved: Solved, proof: files.Proof | None) -> files.Certificate | None:
    """The certificate's figures; the proof goes into its own file."""
    known = solved.certificate
    if known is None:
        return None
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


def _floats(array: np.ndarray[Any, Any]) -> tuple[float, ...]:
    return tuple(map(float, array.tolist()))


def _packed(proof: Proof) -> tuple[files.Proof, bytes] | None:
    """What is told of proof.bin, and its bytes. None where it is too large to read."""
    told = files.Proof("", len(proof.inequalities), proof.boxes, len(proof.value))
    arrays = vars(proof) | {"counts": np.diff(proof.starts)}
    raw = b"".join(arrays[name].astype(kind).tobytes() for name, kind, _ in told.layout(proof.inequalities.shape[1]))
    if len(raw) > MOST_BYTES:
        return None
    packed = zlib.compress(raw, _LEVEL)
    return replace(told, sha256=hashlib.sha256(packed).hexdigest()), packed
