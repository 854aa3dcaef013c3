"""What a wide block asks of the rest of a policy: its own name, no secret inside, a mechanism that answers cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from funnel.data.alphabet import folded
from funnel.mechanisms import MECHANISMS
from funnel.policy.blocks import CellLimits
from funnel.policy.document import Document, Finding, Path, shortened
from funnel.policy.mention import at, inside, keys, mechanism_of, mentions, named, notion_of, wide_blocks
from funnel.policy.model import EstimateSection

_APART = "Release these columns as plain blocks"


def wide(document: Document) -> Iterator[Finding]:
    """Everything that is wrong about the wide blocks, seen beside the rest."""
    data, found = document.data, list(wide_blocks(document.data))
    known = {folded(one.column): one.path for one in mentions(data)}
    for path, item in found:
        yield from _name(document, path, item, known)
        yield from _columns(path, item)
        yield from _support(data, path, item)
        yield from _estimate(data, path)
    yield from _weights(data, [item.get("name") for _, item in found])
    yield from (one for path, item in found for one in _secrets(data, path, item))
    if found:
        yield from _mechanism(data)


def _name(document: Document, path: Path, item: dict[str, Any], known: dict[str, Path]) -> Iterator[Finding]:
    """The block has a name that nothing else has; `known` are those met so far, with their places."""
    name = item.get("name")
    if name is None:
        said = f"`name` is missing in `public[{path[-1]}]`: a wide block needs one"
        yield Finding((*path, "name"), "missing-key", said, "Such as `name: person`.", key=True)
    elif isinstance(name, str) and (first := known.setdefault(folded(name), (*path, "name"))) != (*path, "name"):
        line, _ = document.places.of(first)
        said = f"the wide block `{shortened(name)}` has the name of another column or block (line {line})"
        yield Finding((*path, "name"), "duplicate-column", said, "Give the block a name of its own.")


def _weights(data: Any, blocks: list[Any]) -> Iterator[Finding]:
    """No column is called as one that says what a row counts for, whether or not this release will have that."""
    taken = {folded(name) for name in ("weight", *(f"{block}_weight" for block in blocks))} if blocks else set()
    for one in (*mentions(data), *keys(data)):
        if one.role in ("public", "identify") and folded(one.column) in taken:
            said = f"`{shortened(one.column)}` is the column that says what a row of a wide block counts for"
            yield Finding(one.path, "duplicate-column", said, "Rename it in a view of the table.")


def _columns(path: Path, item: dict[str, Any]) -> Iterator[Finding]:
    """There is more than one column."""
    columns = item["columns"]
    if isinstance(columns, list) and len(columns) == 1:
        said = "a wide block of one column: its values are an alphabet already"
        yield Finding((*path, "columns"), "wrong-value", said, "Write the column as an item of `public` by itself.")


def _secrets(data: Any, path: Path, item: dict[str, Any]) -> Iterator[Finding]:
    """No sensitive column lies inside, under no notion: cells are split and filled without the secret."""
    notion = notion_of(data)
    if notion is None or not notion.secret_may_be_public:
        return  # no public column is sensitive then, which another check says
    hidden = named(data, "sensitive")
    for place, member in inside(item, path):
        name = member.get("name") if isinstance(member, dict) else member
        if isinstance(name, str) and folded(name) in hidden:
            said = f"`{shortened(name)}` is sensitive, so it cannot be a column of a wide block"
            yield Finding(place, "sensitive-public", said, "Release it as a block of its own, or not at all.")


def _support(data: Any, path: Path, item: dict[str, Any]) -> Iterator[Finding]:
    """A cell holds at least as many records as any value that is released."""
    cells, least = item.get("cells"), at(data, "estimate", "minimum")
    own = cells.get("minimum") if isinstance(cells, dict) else None
    own = CellLimits.model_fields["minimum"].default if own is None else own
    least = EstimateSection.model_fields["minimum"].default if least is None else least
    if isinstance(own, int) and isinstance(least, int) and own < least:
        said = f"cells of {own} records are smaller than the {least} of `estimate.minimum`"
        yield Finding((*path, "cells"), "wrong-value", said, f"Write `cells: {{minimum: {least}}}` or more.")


def _estimate(data: Any, path: Path) -> Iterator[Finding]:
    """The cells, their profiles and which rare values survive are made from the records themselves."""
    if at(data, "estimate", "kind") == "private":
        said = "the cells of a wide block are made from the records themselves, and have no noise"
        yield Finding((*path, "columns"), "unsupported", said, f"{_APART}, or write `kind: counts`.")


def _mechanism(data: Any) -> Iterator[Finding]:
    """What the mechanism answers with can be filled in: single cells, and neither sets nor numbers."""
    kind, path = mechanism_of(data)
    mechanism = MECHANISMS[kind or "optimal"]
    if mechanism.plain:
        return
    what = "numbers, which cells are not" if mechanism.needs_numbers else "sets of values, which no row can show"
    said = f"`{kind}` releases {what}"
    yield Finding(path, "mechanism-notion", said, f"{_APART}, or name another mechanism.")
