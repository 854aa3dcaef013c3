"""Who knows the exact counts and sees all rows: the full report's figure, worked out again from counts and rows.

P(s | y, M) = Σ_x P(s|x) E[K_xy | M] / M_y (mathematics, section 9). What is told as exact, or as a bound, may not be
below what `measure.observer` finds in that way; what is told as estimated proves nothing.
"""

from __future__ import annotations

import json
import math

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken
from funnel.data.convert import protocols_of
from funnel.data.joint import Joint
from funnel.measure.observer import CHANCE, Observed, bounds, observed, whole_of
from funnel.report.observer import records

CLAIM = "whole-table"
TITLE = "who knows the exact counts and sees all rows is moved by no more than the full report says"
PRIVATE = True
REPORT = "report.json"
_NEAR = 1e-4
_WHY = {
    "exact": "as all outcomes show",
    "bound": f"a bound but for a chance of {CHANCE:g} over the draws",
    "ceiling": "which is what the true values themselves tell",
}


def check(opened: Release) -> str:
    """What the private report tells of the whole table follows from the files. Raises Broken."""
    joint = records(opened.counts)  # first: where the private folder is another one, that is what is wrong
    told = json.loads(opened.read(REPORT))["evidence"]["observer"]
    found = _found(opened, joint, told["how"])
    for name, moved in (("rises", found.rises()), ("falls", found.falls()), ("odds", found.odds())):
        nats, stated = float(moved.max()), math.inf if told[name] is None else told[name]
        if not stated >= nats - _NEAR:
            raise Broken(REPORT, f"what is told of the whole table is too little: {name}", nats, told[name])
    rises, falls = ("without a bound" if told[name] is None else f"by {told[name]} nats" for name in ("rises", "falls"))
    return f"up {rises}, down {falls}, {_WHY[found.how]}"


def _found(opened: Release, joint: Joint, how: str) -> Observed:
    """What is told in such a way; an estimate, which would take longest, is not made."""
    protocols = protocols_of(opened.protocol)
    codes, rows = opened.rows[:, :-1], opened.rows[:, -1]
    whole = whole_of(joint, protocols, codes, rows) if how == "bound" else None
    if whole is None:
        return observed(joint, protocols, codes, rows)
    low, high = (one / whole.prior[:, None] for one in bounds(whole))
    return Observed("bound", low, high, whole.seen[whole.told].astype(np.int64))
