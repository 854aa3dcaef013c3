"""Why a bound over groups holds, written down for whoever wants to go through it again."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Certificate


@dataclass(frozen=True, eq=False)
class Piece:
    """Modes with ρ between two values: one κ, and what parts of each group are worth at most at prices λ + κ p.

    `plain` and `special` (2, c) bound the D_s at both ends, and linearly between them, of groups that are not special
    and of one that is (`proof`).
    """

    least: float
    most: float
    kappa: float
    plain: FloatArray
    special: FloatArray


@dataclass(frozen=True, eq=False)
class Listing:
    """The large group whose vertices are taken one by one, ends of intervals of ρ, and values of κ (`listed`)."""

    large: int
    rhos: FloatArray
    kappas: FloatArray


@dataclass(frozen=True, eq=False)
class GroupCertificate(Certificate):
    """A certificate that rests on pieces, or on lists of vertices."""

    pieces: tuple[Piece, ...] = ()
    listing: Listing | None = None
