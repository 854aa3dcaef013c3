"""What the solver found, for the private evidence: how, the bounds, and the certificate of an optimum."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from funnel.files import write_json, writing
from funnel.mechanisms import Solved
from funnel.optimise.certificate import Proof
from funnel.optimise.groups import GroupCertificate

FORMAT = "funnel-solution/1"
PROOF = "proof.bin"
MOST_BYTES = 1 << 28
"""Of a proof before it is packed: what the auditor reads at most."""
_LEVEL = 1
"""Multipliers hardly pack, and more effort is lost on them."""


def write_solution(folder: Path, solved: Sequence[Solved], budgets: Sequence[float]) -> dict[str, Any] | None:
    """solution.json, and proof.bin where the one block there is has a proof; returns its certificate's figures.

    Raises ReleaseError.
    """
    certificate = _certificate(folder, solved[0]) if len(solved) == 1 else None
    content = {
        "format": FORMAT,
        "how": [one.how for one in solved],
        "upper_bounds": [one.bound for one in solved],
        "budgets": list(budgets),
        "certificate": certificate,
    }
    if len(solved) == 1 and solved[0].over_sets is not None:
        content["over_sets"] = _over_sets(solved[0].over_sets)
    write_json(folder / "solution.json", content)
    return certificate


def _over_sets(told: GroupCertificate) -> dict[str, Any]:
    """The bound of protocols that are robust by way of box sets, and the lists of vertices that it rests on."""
    listing = told.listing
    return {
        "duals": told.duals.tolist(),
        "peak": told.peak,
        "large": listing.large,
        "rhos": listing.rhos.tolist(),
        "kappas": listing.kappas.tolist(),
    }


def _certificate(folder: Path, solved: Solved) -> dict[str, Any] | None:
    """The certificate's figures; the proof goes into its own file."""
    certificate = solved.certificate
    if certificate is None:
        return None
    return {
        "about": solved.about,
        "duals": certificate.duals.tolist(),
        "peak": certificate.peak,
        "boxes": certificate.nodes,
        "proof": None if certificate.proof is None else _keep(folder / PROOF, certificate.proof),
    }


def _keep(path: Path, proof: Proof) -> dict[str, Any] | None:
    """proof.bin: arrays one after the other, little-endian, in one zlib stream. None where it is too large to read."""
    raw = b"".join(part.astype(kind).tobytes() for kind, part in _layout(proof))
    if len(raw) > MOST_BYTES:
        return None
    packed = zlib.compress(raw, _LEVEL)
    with writing(path.parent):
        path.write_bytes(packed)
    return {
        "sha256": hashlib.sha256(packed).hexdigest(),
        "inequalities": len(proof.inequalities),
        "boxes": proof.boxes,
        "multipliers": len(proof.value),
    }


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
