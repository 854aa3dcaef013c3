"""What the entry says that its values stand for: draws of several nights are put together by these hashes.

A ledger that calls the same values others, or others the same, would have the composed leakage measured on the wrong
channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from funnel.audit.extras.base import Release
from funnel.audit.extras.parts import reads
from funnel.audit.kernel.verdict import Broken
from funnel.cells.cells import Cells
from funnel.data.alphabet import folded
from funnel.format.journal import NAME, Drawn
from funnel.format.protocol import Sets, Weights
from funnel.format.terms import Attribute
from funnel.ledger.records import by_name
from funnel.ledger.records import drawn as drawn_of

CLAIM = "ledger-drawn"
TITLE = "the entry's columns, their meanings and its entity are what terms.json makes of those of protocol.json"
PRIVATE = True


def check(opened: Release) -> str:
    """The entry's columns mean what terms.json makes of them, drawn for its entity. Raises Broken."""
    known = _known(opened)
    drawn = tuple(_drawn(block, known, opened.wide) for block in opened.protocol.blocks)
    _same([("drawn", drawn, tuple(replace(one, since=()) for one in opened.entries[-1].drawn))])
    return f"{sum(len(one.columns) for one in drawn)} columns"


def check_without_cells(opened: Release) -> None:
    """The same of a release whose cells.json is gone: but for what its cells stand for. Raises Broken."""
    known, wide = _known(opened), {one.name: tuple(column.name for column in one.columns) for one in opened.terms.wide}
    for block, own in zip(opened.protocol.blocks, opened.entries[-1].drawn, strict=True):
        inside = tuple(name for column in block.columns for name in wide.get(column, ()))
        if inside:
            told = replace(own, columns=block.columns, reads=reads(block), inside=inside)
        else:
            told = replace(_drawn(block, known, ()), since=own.since)
        _same([("drawn", told, own)])


def _drawn(block: Weights | Sets, known: Mapping[str, Attribute], cells: Sequence[Cells]) -> Drawn:
    return drawn_of(block.columns, block.inputs, reads(block), known, cells)


def _known(opened: Release) -> dict[str, Attribute]:
    """The columns that terms are about, once the entry has their entity and all that is drawn. Raises Broken."""
    entry, terms = opened.entries[-1], opened.terms
    entity = terms.entity if terms.draws == "permanent" else None
    noisy = terms.estimate.kind == "private"
    _same([
        ("entity", entity, entry.entity), ("identify", terms.identify, entry.identify), ("noisy", noisy, entry.noisy)
    ])  # fmt: skip
    known = by_name(terms)
    for block in opened.protocol.blocks:
        if any(folded(column) not in known for column in block.columns):
            raise Broken("terms.json", "a column is drawn for that no term is about", sorted(known), block.columns)
    return known


def _same(told: Sequence[tuple[str, object, object]]) -> None:
    for what, expected, found in told:
        if expected != found:
            raise Broken(NAME, f"{what} is not what the terms make of it", expected, found)
