"""A proof by boxes for an optimum that was found by listing rays: then nobody need trust the list."""

from __future__ import annotations

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.branching import peak
from funnel.optimise.columns.pricing import Slice
from funnel.optimise.cone import Cone

_MOST = 200_000
"""Boxes that are worth a second look, in the auditor's hands."""


def boxed(
    cone: Cone, prior: FloatArray, certificate: Certificate, *, tolerance: float, deadline: float
) -> Certificate | None:
    """The duals of a certificate with a proof that no row is worth more than they and `tolerance` say (nats).

    None where there is not time for it before `deadline` (monotonic seconds), or the cone is a lifted one.
    """
    if cone.lift is not None:
        return None
    duals, most = certificate.duals, max(certificate.peak, 0.0) + tolerance
    found = peak(
        Slice(cone, prior), duals / prior, tolerance=most, deadline=deadline, most=_MOST, enough=_MOST
    )
    if found.proof is None or found.bound > most:
        return None
    return Certificate(duals, found.bound, tolerance, found.nodes, found.proof)
