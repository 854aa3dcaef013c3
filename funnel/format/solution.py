"""solution.json: what the solver found, and the certificate of an optimum; its boxes lie in proof.bin.

Private, for prices and boxes are functions of the counts. It shows the bound on utility, which is no privacy claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Count, Nats, Sha256, Share

NAME = "solution.json"
PROOF = "proof.bin"
MOST_BYTES = 1 << 28
"""Of a proof before it is packed, and once it is unpacked."""


@dataclass(frozen=True)
class Proof:
    """proof.bin: its hash, and how many inequalities, boxes and multipliers it holds."""

    sha256: Sha256
    inequalities: Count
    boxes: Count
    multipliers: Count

    def layout(self, size: int) -> list[tuple[str, str, int]]:
        """Its arrays in one zlib stream, little-endian: name, NumPy's kind and length; inequalities of `size` values.

        One entry for each box, for each multiplier, and for each box again; `counts` are multipliers of a box.
        """
        of_boxes = [("parent", "<i4"), ("which", "<i4"), ("at", "<f8"), ("upper", "u1"), ("counts", "<u4")]
        return [
            ("inequalities", "<f8", self.inequalities * size),
            *((name, kind, self.boxes) for name, kind in of_boxes),
            *((name, kind, self.multipliers) for name, kind in (("index", "<u4"), ("value", "<f8"))),
            ("level", "<f8", self.boxes),
        ]


@dataclass(frozen=True)
class Certificate:
    """Dual prices η and the largest reduced cost `peak` in nats: I(X;Y) <= η·p + peak (mathematics, column generation).

    `about`: rows over public values, or over those of the secret (then I(X;Y) <= H(X|S) + I(S;Y)).
    """

    about: Literal["public", "secret"]
    duals: tuple[float, ...]
    peak: float
    boxes: Count
    proof: Proof | None


@dataclass(frozen=True)
class Totals:
    """A block of least expected distance Σ p_x d(y, x) Q(y|x), whose totals stay: `optimum` of the real protocols.

    `deviation` is the largest |E[M_y] - N_y| in records; None where totals are free. `prices` of the totals (a,), and
    for row y of a protocol and side k of `sides` (inequalities f·v <= 0 on rows, some equations) in `binding` the price
    of that row's keeping it: they show the optimum. None and empty where other blocks are released beside.
    """

    deviation: Nats | None
    optimum: Share
    prices: tuple[float, ...] | None
    sides: tuple[tuple[float, ...], ...]
    binding: tuple[tuple[Count, Count, float], ...]


@dataclass(frozen=True)
class SolutionFile:
    """For every block how it was solved, a certified bound of I(X;Y) in nats (None: none claimed), and its ε.

    `totals` for every block of a mechanism that is about them, else empty.
    """

    format: Literal["funnel-solution/1"]
    how: tuple[str, ...]
    upper_bounds: tuple[Nats | None, ...]
    budgets: tuple[Nats, ...]
    certificate: Certificate | None
    totals: tuple[Totals, ...] = ()
