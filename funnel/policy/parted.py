"""What a table in folders asks of the rest of a policy: a column that is released, plain, and not alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from funnel.policy.document import Finding, Path, choice, shortened
from funnel.policy.mention import at, keys, mentions

SETS = "unary-encoding"
"""What answers with sets of values."""


def partition(data: Any) -> str | None:
    """The column whose values have folders, where a policy names one."""
    named = at(data, "release", "partition")
    named = named.get("column") if isinstance(named, dict) else named
    return named if isinstance(named, str) else None


def parted(data: Any) -> Iterator[Finding]:
    """Everything that is wrong about the column of `release.partition`, seen beside the rest."""
    path: Path = ("release", "partition")
    if isinstance(at(data, "release", "partition"), dict):
        path = (*path, "column")
    named = partition(data)
    if named is None:
        return
    public = [one.column for one in mentions(data) if one.role == "public"]
    kind = at(data, "mechanism", "kind") or at(data, "mechanism")
    alone = len(public) == 1 and at(data, "release", "rows") != "counts" and not any(keys(data))
    if named not in public:
        said = f"`{shortened(named)}` is no public column, whose values could have folders"
        yield Finding(path, "unknown-column", said, "Leave `partition` out." if alone else choice(named, public))
    elif alone:
        said = f"`{shortened(named)}` is all that is released, and a file would have no column"
        yield Finding(path, "unsupported", said, "Write `rows: counts`, or leave `partition` out.")
    if kind == SETS:
        said = f"`{SETS}` answers with sets of values, and a folder stands for one"
        yield Finding(path, "unsupported", said, "Leave `partition` out, or name another mechanism.")
