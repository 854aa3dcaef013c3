"""What the entry says that its values stand for: draws of several nights are put together by these hashes.

A ledger that calls the same values others, or others the same, would have the composed leakage measured on the wrong
channel.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken
from funnel.format.canonical import encode
from funnel.format.cells import Wide
from funnel.format.journal import NAME, Drawn
from funnel.format.schema import as_json
from funnel.format.terms import Attribute

CLAIM = "ledger-drawn"
TITLE = "the entry's columns, their meanings and its entity are what terms.json makes of those of protocol.json"
PRIVATE = True
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def check(opened: Release) -> str:
    """The entry's columns mean what terms.json makes of them, drawn for its entity. Raises Broken."""
    entry, terms = opened.entries[-1], opened.terms
    entity = terms.entity if terms.draws == "permanent" else None
    known = {one.name.translate(LOWER): one for block in terms.public for one in block}
    wide = {one.name: one for one in opened.partitioned}
    drawn = tuple(_drawn(block, known, wide) for block in opened.protocol.blocks)
    told = tuple(replace(one, since=()) for one in entry.drawn)
    for what, expected, found in (("entity", entity, entry.entity), ("drawn", drawn, told)):
        if expected != found:
            raise Broken(NAME, f"{what} is not what the terms make of it", expected, found)
    return f"{sum(len(one.columns) for one in drawn)} columns"


def _drawn(block: Any, known: dict[str, Attribute], wide: dict[str, Wide]) -> Drawn:
    """What an entry has to say of one block."""
    attributes = [known.get(column.translate(LOWER)) for column in block.columns]
    parts = list(zip(attributes, zip(*block.inputs, strict=True), strict=True))
    if None in attributes:
        raise Broken("terms.json", "a column is drawn for that no term is about", sorted(known), block.columns)
    cells = {name: _of_cells(wide[name]) for name in block.columns if name in wide}
    meaning = tuple(cells.get(one.name) or _meaning(one, values) for one, values in parts if one is not None)
    base = tuple(cells.get(one.name) or _hash(_options(one)) for one in attributes if one is not None)
    secret = getattr(block, "secret", None)
    inside = tuple(column.name for name in cells for column in wide[name].columns)
    return Drawn(block.columns, meaning, base, None if secret is None else secret.columns, inside, ())


def _of_cells(wide: Wide) -> str:
    """What the labels of cells stand for: vocabularies and conditions, without shares and how rows are filled in."""
    columns, nodes = as_json(wide.columns), as_json(wide.nodes)
    for node in nodes:
        node.pop("share", None)
    return hashlib.sha256(encode({"columns": columns, "nodes": nodes})).hexdigest()[:16]


def _meaning(one: Attribute, values: Iterable[str | None]) -> str:
    """With which values were named, where others are put under `other`."""
    told = _options(one)
    if one.top is not None or one.rare in ("other", "bin") or one.unseen == "other":
        told |= {"values": sorted(json.dumps(value) for value in set(values))}
    kept = {"top": one.top, "rare": one.rare}
    return _hash(told | {name: value for name, value in kept.items() if value is not None})


def _options(one: Attribute) -> dict[str, Any]:
    """What is done to a column before it is counted."""
    told = {name: getattr(one, name) for name in ("bins", "round", "clip", "groups")}
    return {name: value for name, value in told.items() if value is not None} | ({"trim": True} if one.trim else {})


def _hash(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


