"""What the entry says that its values stand for: draws of several nights are put together by these hashes.

A ledger that calls the same values others, or others the same, would have the composed leakage measured on the wrong
channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from funnel.audit.extras.base import Release
from funnel.audit.extras.parts import reads
from funnel.audit.kernel.verdict import Broken
from funnel.data.alphabet import folded
from funnel.format.journal import NAME
from funnel.ledger.records import by_name
from funnel.ledger.records import drawn as drawn_of

CLAIM = "ledger-drawn"
TITLE = "the entry's columns, their meanings and its entity are what terms.json makes of those of protocol.json"
PRIVATE = True


def check(opened: Release) -> str:
    """The entry's columns mean what terms.json makes of them, drawn for its entity. Raises Broken."""
    entry, terms = opened.entries[-1], opened.terms
    entity = terms.entity if terms.draws == "permanent" else None
    noisy = terms.estimate.kind == "private"
    _same([
        ("entity", entity, entry.entity), ("identify", terms.identify, entry.identify), ("noisy", noisy, entry.noisy)
    ])  # fmt: skip
    blocks, known = opened.protocol.blocks, by_name(terms)
    for block in blocks:
        if any(folded(column) not in known for column in block.columns):
            raise Broken("terms.json", "a column is drawn for that no term is about", sorted(known), block.columns)
    drawn = tuple(drawn_of(block.columns, block.inputs, reads(block), known, opened.wide) for block in blocks)
    _same([("drawn", drawn, tuple(replace(one, since=()) for one in entry.drawn))])
    return f"{sum(len(one.columns) for one in drawn)} columns"


def _same(told: Sequence[tuple[str, object, object]]) -> None:
    for what, expected, found in told:
        if expected != found:
            raise Broken(NAME, f"{what} is not what the terms make of it", expected, found)
