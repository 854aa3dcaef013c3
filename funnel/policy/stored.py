"""What a table in a database asks of the rest of a policy: names that its columns can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from funnel.policy.document import Finding, shortened
from funnel.policy.mention import at, keys, mentions, wide_blocks


def storable(data: Any) -> Iterator[Finding]:
    """Every name that the database of `release.also` would cut, or has in every table already."""
    if at(data, "release", "also") is None:
        return
    from funnel.engine.postgres import MOST, SYSTEM  # a policy without a database does not wait for it

    named = [(one.column, one.path) for one in (*mentions(data), *keys(data)) if one.role in ("public", "identify")]
    blocks = [*wide_blocks(data)]
    more = "_weight" if len(blocks) > 1 else ""
    named += [(f"{block.get('name')}{more}", (*path, "name")) for path, block in blocks]
    for name, path in named:
        if name in SYSTEM or len(name.encode()) > MOST:
            said = f"`{shortened(name)}` can be no column of a table in the database that `release.also` names"
            advice = f"Give it another name: {MOST} bytes at most, and none of {', '.join(SYSTEM)}."
            yield Finding(path, "wrong-value", said, advice)
