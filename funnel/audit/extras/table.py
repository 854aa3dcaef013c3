"""The first thing that nobody can know from the files: that the counts are the source's. With the source one can."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any

from funnel.audit.extras.base import Release
from funnel.audit.extras.policy import PLAN
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked
from funnel.format.fields import Label

CLAIM = "source-counts"
TITLE = "the counts are those of the source, counted again as the policy says"
PRIVATE = True
NOBODY = "that the counts are the source's: --table FILE counts it again"
_PLACES = ("scan", "publish")
"""Steps that name where files lie, which an auditor may keep elsewhere."""


@dataclass(frozen=True)
class Recounted:
    """The plan of the policy for the source (JSON), and records by the labels of s and of all public columns."""

    plan: dict[str, Any]
    cells: Counter[tuple[Label, Label]]


def check(opened: Release) -> str | Unchecked:
    """N[s, x] of the records released is what the source holds; the plan is the policy's for it. Raises Broken."""
    if opened.recount is None:
        return Unchecked(NOT_CLAIMED + "nobody can know it from the files; --table FILE counts the source again")
    found, joint = opened.recount(opened), opened.records
    kept = Counter[tuple[Label, Label]]()
    for (s, *x), number in zip(joint.cells.tolist(), joint.number.tolist(), strict=True):
        values = (one.values[code] for one, code in zip(joint.alphabets[1:], x, strict=True))
        kept[joint.alphabets[0].values[s], tuple(chain.from_iterable(values))] += number
    if kept != found.cells:
        wrong = (kept - found.cells) + (found.cells - kept)
        what = f"{len(wrong)} cells have another number of records in the source"
        cell = min(wrong, key=str)
        raise Broken("counts.json", what, f"{found.cells[cell]} for {cell}", kept[cell])
    steps = [[step for step in plan["steps"] if step["step"] not in _PLACES]
             for plan in (json.loads(opened.read(PLAN)), found.plan)]  # fmt: skip
    if steps[0] != steps[1]:
        raise Broken(PLAN, "the plan is not the policy's for this source", "the same SQL", "another")
    return f"{len(kept)} cells of {joint.rows} records counted again"
