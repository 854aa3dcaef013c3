"""What a notion promises beyond its epsilon, as the manifest says it: parameters, and the mechanisms compared."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from funnel.audit.fields import Field

MEASURES = {
    "lip": "lip", "perfect": "lip", "ldp": "ldp", "srlip": "srlip", "ldp-x": "ldp_x", "rldp": "rldp",
    "mutual-information": "mutual_information", "pml": "pml", "alip": "alip",
}  # fmt: skip
"""The leakage that epsilon bounds, by notion, as manifest and evidence name it."""

WAYS = ("joint", "sequential", "per-attribute")
_MOST_ORDER = 1e6
_MOST_RADIUS = 1e6
_LONGEST_REASON = 2000


Told = tuple[Fraction | None, str, int]
"""The composed leakage in nats (None: no finite bound), how it was found, and of how many releases."""


@dataclass(frozen=True)
class Parameters:
    """What defines a notion beside epsilon.

    `solve` of srlip; `order`, `confidence` and `radius` (nats) of rldp; `lower` (nats) of alip, None for no such bound.
    """

    solve: str | None = None
    order: Fraction | None = None
    confidence: Fraction | None = None
    radius: Fraction | None = None
    lower: Fraction | None = None


@dataclass(frozen=True)
class Candidate:
    """A mechanism that `auto` compared: its I(X;Y)/H(X), None where `reason` says why it was not solved."""

    mechanism: str
    normalised: Fraction | None
    reason: str | None


def read_parameters(root: Field, notion: str) -> Parameters:
    """The parameters of a notion; releases of the first notions may leave the key out. Raises AuditFailure."""
    if "parameters" not in root.value and notion in ("lip", "ldp", "perfect"):
        return Parameters()
    field = root["parameters"]
    if notion == "srlip":
        field.keys("solve")
        return Parameters(solve=field["solve"].among(*WAYS))
    if notion == "alip":
        field.keys("lower")
        return Parameters(lower=None if field["lower"].value is None else field["lower"].number())
    if notion != "rldp":
        field.keys()
        return Parameters()
    field.keys("order", "confidence", "radius")
    order, confidence = field["order"].number(high=_MOST_ORDER), field["confidence"]
    if order == 0:
        raise field["order"].wrong("a positive number")
    asked = None if confidence.value is None else confidence.number(high=1)
    if asked in (0, 1):
        raise confidence.wrong("a number between 0 and 1")
    return Parameters(order=order, confidence=asked, radius=field["radius"].number(high=_MOST_RADIUS))


def read_candidates(root: Field) -> tuple[Candidate, ...] | None:
    """The mechanisms compared, None where the policy named one. Raises AuditFailure."""
    if "candidates" not in root.value or root["candidates"].value is None:
        return None
    found = tuple(_candidate(field) for field in root["candidates"].items())
    names = [one.mechanism for one in found]
    if not names or len(set(names)) != len(names):
        raise root["candidates"].wrong("one or more distinct mechanisms")
    return found


def _candidate(field: Field) -> Candidate:
    field.keys("mechanism", "normalised", "reason")
    share, reason = field["normalised"], field["reason"]
    return Candidate(
        field["mechanism"].text(r"[a-z][a-z-]{0,63}"),
        None if share.value is None else share.number(high=1),
        None if reason.value is None else reason.text(rf"(?s).{{1,{_LONGEST_REASON}}}"),
    )


def read_composed(root: Field) -> Told | None:
    """What the manifest says of this release and all before it; None of the first. Raises AuditFailure."""
    if "composed" not in root.value or root["composed"].value is None:
        return None
    field = root["composed"]
    field.keys("leakage", "how", "releases")
    figure = None if field["leakage"].value is None else field["leakage"].number()
    return figure, field["how"].among("exact", "ceiling", "sum"), field["releases"].whole(2)
