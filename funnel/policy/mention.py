"""The columns that a policy names, found in its plain data whatever else is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from funnel.data.alphabet import folded
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS, Notion
from funnel.policy.blocks import is_wide
from funnel.policy.document import Path


@dataclass(frozen=True)
class Mention:
    """A column, where it is named and as what: entity, sensitive, public or identify."""

    column: str
    path: Path
    role: str


def mentions(data: Any) -> Iterator[Mention]:
    """Every column that the policy names, the entity first."""
    entity, sensitive = at(data, "source", "entity"), at(data, "sensitive")
    if isinstance(entity, str):
        yield Mention(entity, ("source", "entity"), "entity")
    for path, item in [(("sensitive",), sensitive), *items(sensitive, ("sensitive",))]:
        if isinstance(item, str):
            yield Mention(item, path, "sensitive")
    for path, member in members(data):
        yield from attribute(member, path)


def keys(data: Any) -> Iterator[Mention]:
    """Every column of `release.identify`; these may be the entity, too."""
    path, named = ("release", "identify"), at(data, "release", "identify")
    for place, item in [(path, named), *items(named, path)]:
        if isinstance(item, str):
            yield Mention(item, place, "identify")


def attribute(item: Any, path: Path) -> Iterator[Mention]:
    """The column of a public attribute in either spelling."""
    if isinstance(item, dict):
        item, path = item.get("name"), (*path, "name")
    if isinstance(item, str):
        yield Mention(item, path, "public")


def members(data: Any) -> Iterator[tuple[Path, Any]]:
    """Every public attribute, also inside a block, with its path."""
    for path, item in items(at(data, "public"), ("public",)):
        yield from inside(item, path)


def inside(item: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The attributes of one item of `public`, with their paths."""
    if is_wide(item):
        yield from items(item["columns"], (*path, "columns"))
    else:
        yield from items(item, path) if isinstance(item, list) else [(path, item)]


def wide_blocks(data: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The wide blocks among the items of `public`, with their paths."""
    yield from ((path, item) for path, item in items(at(data, "public"), ("public",)) if is_wide(item))


def named(data: Any, role: str) -> set[str]:
    """The columns that are mentioned in a role, folded."""
    return {folded(one.column) for one in mentions(data) if one.role == role}


def notion_of(data: Any) -> type[Notion] | None:
    """The notion that is named; None where there is no such."""
    return NOTIONS.get(str(at(data, "privacy", "notion")))


def mechanism_of(data: Any) -> tuple[str | None, Path]:
    """The kind of mechanism that is named, None where there is no such; and where it says so."""
    told = at(data, "mechanism")
    kind, path = (told.get("kind"), ("mechanism", "kind")) if isinstance(told, dict) else (told, ("mechanism",))
    return (kind if isinstance(kind, str) and kind in MECHANISMS else None), path


def at(data: Any, *keys: str) -> Any:
    """The value at a path of keys, None where there is no such thing."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def items(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The items of a list with their paths."""
    if isinstance(value, list):
        yield from (((*path, index), item) for index, item in enumerate(value))
