"""Values of a column merged by meaning: groups, groups of groups, and the CSV files in which they may stand."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from funnel.errors import Problem
from funnel.policy.document import Path, shortened

Level = dict[str, str]
"""From the names at one level to those at the next; a name that is not a key keeps its own."""
MOST_NAMES = 20_000
_VALUES = {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
VALUES_SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": _VALUES}
_LEVEL = VALUES_SCHEMA | {"description": "Groups by name, each with the values that it holds"}
_FILE = {"type": "string", "minLength": 1, "description": "A CSV file with the columns value,group(,group2…)"}
LEVELS_SCHEMA: dict[str, Any] = {
    "anyOf": [_FILE, _LEVEL, {"type": "array", "minItems": 1, "items": {"anyOf": [_FILE, _LEVEL]}}]
}


def as_levels(given: Any) -> tuple[Level, ...]:
    """The levels, lowest first, of what a policy says, its files read. Raises PydanticCustomError at the place."""
    if not isinstance(given, list | tuple | dict):
        raise _wrong("it must be a mapping of groups, the name of a CSV file, or a list of them")
    several = isinstance(given, list | tuple)
    levels: list[Level] = []
    for place, one in enumerate(given if several else [given]):
        levels.append(_level(one, (place,) if several else ()))
        _check_above(levels, (place,) if several else ())
    if not levels or not any(levels):
        raise _wrong("it names no group")
    return tuple({name: one[name] for name in sorted(one) if one[name] != name} for one in levels)


def _level(given: Any, at: Path) -> Level:
    """One level, from groups with their members."""
    if not isinstance(given, dict):
        raise _wrong("it must be a mapping of groups to lists of values", *at)
    found: Level = {}
    for group, members in given.items():
        if not group.strip() or not isinstance(members, list | tuple) or not members:
            raise _wrong("each group needs a name and a list of values", *at, group)
        for index, member in enumerate(members):
            name = str(member) if type(member) is int else member
            if not isinstance(name, str):
                raise _wrong("values are texts; put numbers with a point into quotes", *at, group, index)
            if name in found:
                raise _wrong(
                    f"`{shortened(name)}` stands in `{shortened(found[name])}` already", *at, group, index
                )
            found[name] = group
    chained = [
        name for name, group in found.items() if group in found and found[group] != group and name != group
    ]
    if chained:
        group = found[chained[0]]
        said = f"the group `{shortened(group)}` is itself put into another; write a second level for that"
        raise _wrong(said, *at, group)
    return found


def _check_above(levels: list[Level], at: Path) -> None:
    """What stands at a level is what the level below makes of values."""
    below = levels[-2] if len(levels) > 1 else {}
    gone = next(
        (name for name in levels[-1] if below.get(name, name) != name and name not in below.values()), None
    )
    if gone is not None:
        said = f"`{shortened(gone)}` is in `{shortened(below[gone])}` by now, one level below"
        raise _wrong(said, *at, levels[-1][gone])


def _wrong(said: str, *at: str | int) -> PydanticCustomError:
    return PydanticCustomError("wrong-value", "{said}", {"said": said, "at": at})


def climb(value: str, levels: Sequence[Level]) -> tuple[str, ...]:
    """The names of a value at every level, lowest first."""
    names: list[str] = []
    for level in levels:
        value = level.get(value, value)
        names.append(value)
    return tuple(names)


def read_levels(file: str, text: str) -> tuple[list[dict[str, list[str]]], list[Problem]]:
    """The levels in a CSV file of value,group(,group2…), as a policy would write them; or its problems, by line."""
    try:
        found = list(_rows(text))
    except csv.Error as error:
        return [], [Problem("wrong-value", f"this is not a CSV file: {error}", file, 1, 1)]
    head = [one.strip().lower() for one in found[0][1]] if found else []
    expected = ["value", "group", *(f"group{place}" for place in range(2, len(head)))]
    if len(head) < 2 or head != expected:
        said = "the first line must be `value,group` (and `group2`, `group3`… for more levels)"
        return [], [Problem("wrong-value", said, file, 1, 1)]
    problems = [*_shapes(file, found[1:], len(head))]
    levels = [_up(file, found[1:], place, problems) for place in range(len(head) - 1)] if not problems else []
    return ([], problems) if problems else (levels, [])


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line and fields of every row that is not empty."""
    reader = csv.reader(io.StringIO(text, newline=""))
    for row in reader:
        if any(one.strip() for one in row):
            yield reader.line_num, row


def _shapes(file: str, rows: list[tuple[int, list[str]]], width: int) -> Iterator[Problem]:
    if not rows or len(rows) > MOST_NAMES:
        said = f"it holds {len(rows):,} values; between 1 and {MOST_NAMES:,} are read"
        yield Problem("wrong-value", said, file, rows[-1][0] if rows else 1, 1)
    for line, row in rows:
        if len(row) != width or not all(one.strip() for one in row):
            yield Problem("wrong-value", f"this line needs {width} fields, none of them empty", file, line, 1)


def _up(
    file: str, rows: list[tuple[int, list[str]]], place: int, problems: list[Problem]
) -> dict[str, list[str]]:
    """From the column at `place` to the next one: each name stands under one name only."""
    seen: dict[str, tuple[str, int]] = {}
    groups: dict[str, list[str]] = {}
    for line, row in rows:
        name, group = row[place], row[place + 1]
        above, first = seen.setdefault(name, (group, line))
        if above != group or (place == 0 and first != line):
            said = f"`{shortened(name)}` is in `{shortened(group)}` here and in `{shortened(above)}` on line {first}"
            problems.append(
                Problem("wrong-value", said, file, line, 1, "Give each name one line and one group.")
            )
        elif first == line:
            groups.setdefault(group, []).append(name)
    return groups
