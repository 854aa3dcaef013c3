"""A private estimate takes no value from the table: every one is declared in the policy, or a bin."""

from __future__ import annotations

from itertools import pairwise

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, counted
from funnel.data.alphabet import folded
from funnel.format.counts import NAME

CLAIM = "estimate-declared"
TITLE = "which values a private estimate is about follows from the policy alone"
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """The values of every column are those of estimate.values, or its bins. Raises Broken."""
    terms = opened.terms
    if opened.counts.private is None:
        return Unchecked(NOT_CLAIMED + "the counts are the table’s own")
    bins = {
        folded(one.name): {f"[{low}, {high})" for low, high in pairwise([*one.edges, "∞"])}
        for block in terms.public for one in block if one.bins
    }  # fmt: skip
    declared = {folded(name): set(values) for name, values in (terms.estimate.values or {}).items()} | bins
    missing: set[str | None] = {None} if terms.missing == "category" else set()
    for alphabet in opened.joint.alphabets:
        for column, parts in zip(alphabet.columns, zip(*alphabet.values, strict=True), strict=True):
            name, values = folded(column), set(parts)
            right = declared.get(name, set()) | missing
            if values != right:
                raise Broken(NAME, f"the values of {column} are not those declared", right, values)
    return counted(sum(len(one.columns) for one in opened.joint.alphabets), "column")
