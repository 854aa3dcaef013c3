"""From frozen dataclasses to JSON and back, strictly: a key too many or too few, or a wrong type, is a FormatError.

A record's fields are the keys of its object, all of them always written; those that its `LATER` names may be missing
where a version that did not know them wrote the file, and have their defaults. Types may be str, int, float (which
takes whole numbers too), bool, None, Literal, unions, `tuple[T, ...]`, `dict[str, T]`, other records, `Grid` and
`Rows`; a `Matches` or an `InRange` in `Annotated` narrows text and numbers; `Any` is taken as it is. Records in a
union are told apart by `kind`. Where parts of a record have to fit each other, its method `flaws` says which do not.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from funnel.format.canonical import FormatError, decode, encode

T = TypeVar("T")


@dataclass(frozen=True)
class Matches:
    """Text that matches a regular expression as a whole."""

    expression: str


@dataclass(frozen=True)
class InRange:
    """A number from `low` to `high`."""

    low: float
    high: float


class _Nested:
    """Marks `Grid`."""


class _Counted:
    """Marks `Rows`."""


Grid = Annotated[tuple[Any, ...], _Nested()]
"""Whole numbers from 0 to 2^63 - 1 in lists of any depth: weights, counts."""
Rows = Annotated[tuple[tuple[int, ...], ...], _Counted()]
"""Rows [code, …, count], one or more and as long as each other: in the order of their codes, each once.

Counts are positive, and below 2^62 together, so that no sum of them overflows a word."""
MOST = (1 << 63) - 1
Flaws = Iterator[tuple[str, str, object]]
"""Of a record: which part is wrong, what it should be, and what it is."""

Reader = Callable[[str, str, Any], Any]
"""From file, path and JSON value to the typed value."""


def read(record: type[T], file: str, raw: bytes) -> T:
    """The record in a file's bytes. Raises FormatError where they are not canonical, or not of the record's schema."""
    try:
        return typed(record, file, decode(file, raw))
    except RecursionError:
        raise FormatError(file, "", "lists in few lists", "lists in hundreds of lists") from None


def typed(record: type[T], file: str, value: Any) -> T:
    """The record in a JSON value. Raises FormatError where it is not of the record's schema."""
    found: T = _reader(record)(file, "", value)
    return found


def write(record: Any) -> bytes:
    """The canonical bytes of a record."""
    return encode(as_json(record))


def as_json(value: Any) -> Any:
    """A record as JSON values: records become objects, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, tuple) and value and not isinstance(value[0], int):
        return [as_json(one) for one in value]
    return value


def _reader(kind: Any) -> Reader:
    """How a value of this type is read; worked out once."""
    return _readers(kind)


@cache
def _readers(kind: Any) -> Reader:
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    if kind is Any:
        return lambda file, path, value: value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _narrowed(arguments[0], arguments[1])
    if origin is Literal:
        return _among(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _list(_reader(arguments[0])) if arguments[1:] == (...,) else _fixed([*map(_reader, arguments)])
    if origin is dict:
        return _mapping(_reader(arguments[1]))
    return _plain(kind)


def _record(kind: Any) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    readers = {one.name: _reader(hints[one.name]) for one in dataclasses.fields(kind)}
    later: frozenset[str] = getattr(kind, "LATER", frozenset())

    def reader(file: str, path: str, value: Any) -> Any:
        if not isinstance(value, dict) or not readers.keys() - later <= value.keys() <= readers.keys():
            found = sorted(value) if isinstance(value, dict) else value
            raise FormatError(file, path, f"an object of {', '.join(sorted(readers))}", found)
        inside = f"{path}." if path else ""
        found = kind(**{name: one(file, inside + name, value[name]) for name, one in readers.items() if name in value})
        if flaw := _flaw(found):
            raise FormatError(file, inside + flaw[0], *flaw[1:])
        return found

    return reader


def _flaw(record: Any) -> tuple[str, str, object] | None:
    """The first part of a record that does not fit the others."""
    try:
        return next(iter(record.flaws()), None) if hasattr(record, "flaws") else None
    except (TypeError, ValueError, LookupError):
        return "numbers", "lists of one shape", "others"


def _plain(kind: Any) -> Reader:
    names = {
        str: "a text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        type(None): "null",
    }
    if kind not in names:
        raise TypeError(f"no JSON form of {kind}")

    def reader(file: str, path: str, value: Any) -> Any:
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        raise FormatError(file, path, names[kind], value)

    return reader


def _narrowed(kind: Any, rule: Any) -> Reader:
    if isinstance(rule, _Nested | _Counted):
        return _grid if isinstance(rule, _Nested) else _rows
    inner = _reader(kind)

    def reader(file: str, path: str, value: Any) -> Any:
        found = inner(file, path, value)
        if isinstance(rule, Matches) and not re.fullmatch(rule.expression, found):
            raise FormatError(file, path, f"a text like {rule.expression}", found)
        if isinstance(rule, InRange) and not rule.low <= found <= rule.high:
            raise FormatError(file, path, f"a number from {rule.low:g} to {rule.high:g}", found)
        return found

    return reader


def _among(choices: tuple[Any, ...]) -> Reader:
    def reader(file: str, path: str, value: Any) -> Any:
        if any(type(value) is type(one) and value == one for one in choices):
            return value
        raise FormatError(file, path, " or ".join(map(repr, choices)), value)

    return reader


def _union(kinds: tuple[Any, ...]) -> Reader:
    """The first type that fits; among several records the one whose `kind` fits."""
    readers = [(one is type(None), _reader(one)) for one in kinds]
    records = [one for one in kinds if dataclasses.is_dataclass(one)]
    by_kind = {
        name: _reader(one)
        for one in (records if len(records) > 1 else [])
        for name in get_args(get_type_hints(one)["kind"])
    }

    def reader(file: str, path: str, value: Any) -> Any:
        kind = value.get("kind") if by_kind and isinstance(value, dict) else None
        if isinstance(kind, str) and kind in by_kind:
            return by_kind[kind](file, path, value)
        if value is None and any(null for null, _ in readers):
            return None
        failed = FormatError(file, path, "a known kind", value)
        for null, one in readers:
            try:
                return one(file, path, value)
            except FormatError as error:
                # What is said of a value is what its own type says of it, not that it is not null.
                failed = failed if null else error
        raise failed

    return reader


def _items(file: str, path: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(file, path, "a list", value)
    return value


def _list(inner: Reader) -> Reader:
    def reader(file: str, path: str, value: Any) -> Any:
        return tuple(
            inner(file, f"{path}[{place}]", one) for place, one in enumerate(_items(file, path, value))
        )

    return reader


def _fixed(inner: list[Reader]) -> Reader:
    def reader(file: str, path: str, value: Any) -> Any:
        items = _items(file, path, value)
        if len(items) != len(inner):
            raise FormatError(file, path, f"a list of {len(inner)}", value)
        return tuple(one(file, f"{path}[{place}]", items[place]) for place, one in enumerate(inner))

    return reader


def _mapping(inner: Reader) -> Reader:
    def reader(file: str, path: str, value: Any) -> Any:
        if not isinstance(value, dict):
            raise FormatError(file, path, "an object", value)
        return {key: inner(file, f"{path}.{key}", one) for key, one in value.items()}

    return reader


def _grid(file: str, path: str, value: Any) -> Any:
    """Nested lists of whole numbers; by far the largest part of most files, so without a path for every number."""
    items = _items(file, path, value)
    if any(isinstance(one, list) for one in items):
        return tuple(_grid(file, f"{path}[{place}]", one) for place, one in enumerate(items))
    if any(type(one) is not int or not 0 <= one <= MOST for one in items):
        raise FormatError(file, path, "whole numbers from 0 to 2^63 - 1", value)
    return tuple(items)


def _rows(file: str, path: str, value: Any) -> Any:
    """A table of counts: see `Rows`."""
    rows = _grid(file, path, value)
    numbers = all(isinstance(row, tuple) and row and isinstance(row[0], int) for row in rows)
    if not rows or not numbers or len({*map(len, rows)}) > 1:
        raise FormatError(file, path, "rows of whole numbers, one or more, of one length", value)
    codes, counts = [row[:-1] for row in rows], [row[-1] for row in rows]
    if any(before >= after for before, after in pairwise(codes)):
        raise FormatError(file, path, "rows in the order of their codes, each once", "others")
    if min(counts) == 0 or sum(counts) >= 1 << 62:
        raise FormatError(file, path, "positive counts, below 2^62 together", "others")
    return rows


def unlike(columns: tuple[str, ...], **labels: tuple[tuple[str | None, ...], ...]) -> Flaws:
    """Columns that are not distinct; labels of them that are none, not distinct, or not one text for each."""
    if not columns or len(set(columns)) < len(columns):
        yield "columns", "distinct names, one or more", columns
    for part, values in labels.items():
        if not values or len(set(values)) < len(values) or {*map(len, values)} != {len(columns)}:
            yield part, "distinct values, one or more, each with a text for every column", values


def outside(rows: tuple[tuple[int, ...], ...], sizes: list[int], more: int = 1) -> bool:
    """Whether rows are not of as many codes, below these sizes, with so many numbers behind."""
    codes = [*zip(*rows, strict=True)][:-more]
    return len(codes) != len(sizes) or any(max(one) >= size for one, size in zip(codes, sizes, strict=True))
