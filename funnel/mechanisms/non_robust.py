"""The optimum of LDP on whole records in closed form: what robustness costs is measured against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from funnel.data import Joint
from funnel.data.joint import FloatArray
from funnel.data.records import Records
from funnel.measure import clock
from funnel.mechanisms.base import Mechanism, Solved
from funnel.mechanisms.naming import round_named
from funnel.notions import Demand

if TYPE_CHECKING:
    from funnel.optimise.cone import Cone

_TIME = 60.0


class NonRobust(Mechanism):
    """NR: the optimal ε-LDP release of X = (S, U) at the estimate alone (mathematics, section 1).

    By the functional representation of U: draw T from the optimal LDP channel on S, and release it with a Z that
    is independent of S and T and tells U once S is known. Its information is H(U|S) + max I(S;T), which no robust
    protocol exceeds. It keeps no promise for any other distribution than the estimate.
    """

    releases_secret: ClassVar[bool] = True
    serves: ClassVar[frozenset[str]] = frozenset({"ldp"})
    reference_for: ClassVar[frozenset[str]] = frozenset({"rldp"})

    kind: Literal["non-robust"]

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Rays in closed form, as few as there are values, then rounded inward to integers. Raises SolverError."""
        from funnel.optimise.master import master, too_rare
        from funnel.optimise.staircase import staircase

        records, counts = Records.of(joint), joint.table()
        prior, secret = counts.sum(axis=0) / joint.rows, counts.sum(axis=1) / joint.rows
        on_secret = staircase(secret, demand.notion.ratio)
        rows = _rows(on_secret.protocol, prior, secret, records)
        if not np.isfinite(rows).all():
            raise too_rare()
        clock.check()
        found = master(rows / (rows @ prior)[:, None], prior, budget=_TIME)
        hidden = float(-(prior @ np.log(prior / secret[records.s])))
        cone: Cone = demand.cone()
        rounded = round_named(found.protocol, cone, joint, demand)
        how = f"closed form, {len(rows):,} rays"
        return Solved(rounded, hidden + on_secret.bound, how, on_secret.certificate, about="secret")


def _rows(on_secret: FloatArray, prior: FloatArray, secret: FloatArray, records: Records) -> FloatArray:
    """Rows P((t, z) | s, u) for all outputs t of the channel on S and all cells z of the common refinement, (k, a).

    For each s the unit interval is cut at the cumulative P(u|s); Z is uniform on it, and u is the piece it is in.
    """
    given = prior / secret[records.s]
    pieces = []
    for s in range(len(secret)):
        mine = np.flatnonzero(records.s == s)
        ends = np.cumsum(given[mine])
        ends[-1] = 1.0
        pieces.append((mine, ends))
    cuts = np.unique(np.concatenate([ends for _, ends in pieces]))
    widths, middles = np.diff(cuts, prepend=0.0), cuts - np.diff(cuts, prepend=0.0) / 2
    fine = np.zeros((len(cuts), len(prior)))
    for mine, ends in pieces:
        owner = mine[np.searchsorted(ends, middles)]
        fine[np.arange(len(cuts)), owner] = widths / given[owner]
    fine = fine[widths > 0]
    return np.asarray((on_secret[:, records.s][:, None, :] * fine[None]).reshape(-1, len(prior)))
