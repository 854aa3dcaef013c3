"""A Parquet file holds its table and nothing beside it: every byte belongs to a page or to a plain footer.

Libraries that read Parquet skip what they do not know, and gaps between pages; so the footer and the page
headers are taken apart here (Thrift's compact protocol), and every field is one that a plain table needs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from funnel.audit.findings import broken
from funnel.errors import AuditFailure

MAGIC = b"PAR1"
_LONGEST_FOOTER = 1 << 26
_LONGEST_HEADER = 1 << 20
_LARGEST_GROUP = 1 << 20
_DEEPEST = 12
_WRITER = re.compile(rb"parquet-cpp-arrow version \d{1,4}\.\d{1,4}\.\d{1,4}")
_ZSTD = 6

Plan = dict[int, Any]
"""Thrift fields that are known: by number, the plan of a struct within, or None where there is none."""

_UNIT: Plan = {1: {}, 2: {}, 3: {}}
_LOGICAL: Plan = {
    1: {},
    6: {},
    14: {},
    15: {},
    5: {1: None, 2: None},
    7: {1: None, 2: _UNIT},
    8: {1: None, 2: _UNIT},
    10: {1: None, 2: None},
}
_SCHEMA: Plan = {**dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8)), 10: _LOGICAL}
_STATISTICS: Plan = dict.fromkeys(range(1, 9))
_SIZES: Plan = dict.fromkeys((1, 2, 3))
_COLUMN: Plan = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 9, 11)),
    12: _STATISTICS,
    13: dict.fromkeys((1, 2, 3)),
    16: _SIZES,
}
_CHUNK: Plan = {2: None, 3: _COLUMN}
_GROUP: Plan = {1: _CHUNK, **dict.fromkeys((2, 3, 5, 6, 7))}
_FILE: Plan = {1: None, 2: _SCHEMA, 3: None, 4: _GROUP, 6: None, 7: {1: {}}}
"""Without metadata of any kind, encryption, sorting columns, indexes, bloom filters, or paths to other files."""

_HEADER: Plan = {
    **dict.fromkeys((1, 2, 3)),
    5: {**dict.fromkeys((1, 2, 3, 4)), 5: _STATISTICS},
    7: dict.fromkeys((1, 2, 3)),
}
"""A page header: data pages of the first version and dictionary pages."""


@dataclass(frozen=True)
class Layout:
    """What a sound file says of itself: its writer's version string, rows per row group, number of pages."""

    writer: str
    groups: tuple[int, ...]
    pages: int


def read_layout(path: Path, rows: int) -> Layout:
    """The layout, once header, pages and footer tile the whole file. Raises AuditFailure."""
    try:
        with path.open("rb") as file:
            return _layout(file, path, rows)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise _refuse(path, f"{type(error).__name__}: {error}") from error


def _layout(file: BinaryIO, path: Path, rows: int) -> Layout:
    size = path.stat().st_size
    end, footer = _footer(file, size)
    if not _WRITER.fullmatch(footer.get(6, b"")):
        raise _refuse(path, "another writer than Arrow's is named", footer.get(6, b""))
    if footer[2][0] != {3: 0, 4: b"schema", 5: len(footer[2]) - 1}:
        raise _refuse(path, "the root of the schema is not a plain one", footer[2][0])
    groups = tuple(group[3] for group in footer[4])
    if sum(groups) != rows or footer[3] != rows or _uneven(groups):
        raise _refuse(path, "the row groups are not equal parts of the table", groups)
    at, pages = len(MAGIC), 0
    for group in footer[4]:
        for chunk in group[1]:
            at, found = _chunk(file, at, chunk)
            pages += found
    if at != end:
        raise _refuse(path, "there are bytes between the pages and the footer", end - at)
    return Layout(footer[6].decode(), groups, pages)


def _uneven(groups: tuple[int, ...]) -> bool:
    """All row groups are of one size, but for a smaller last one."""
    return len(set(groups[:-1])) > 1 or not 0 < groups[-1] <= groups[0] <= _LARGEST_GROUP


def _footer(file: BinaryIO, size: int) -> tuple[int, dict[int, Any]]:
    """Where the footer begins, and what it says."""
    head = file.read(4)
    file.seek(max(size - 8, 4))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    start = size - 8 - length
    if head != MAGIC or tail[4:] != MAGIC or start < 4 or length > _LONGEST_FOOTER:
        raise ValueError("no Parquet file with a plain footer")
    file.seek(start)
    reader = _Thrift(file.read(length))
    footer = reader.struct(_FILE)
    if reader.at != length:
        raise ValueError("the footer is followed by other bytes")
    return start, footer


def _chunk(file: BinaryIO, at: int, chunk: dict[int, Any]) -> tuple[int, int]:
    """Where a column chunk that begins at `at` ends, and its number of pages; it holds its pages only."""
    column = chunk[3]
    offsets = [column[number] for number in (11, 9) if number in column]
    if column[4] != _ZSTD:
        raise ValueError("a column chunk is not packed by Zstandard")
    if chunk.get(2, 0) not in (0, at) or offsets[0] != at:
        raise ValueError(f"a column chunk does not begin where the one before ends: {offsets[0]}, not {at}")
    end, values, pages = at + column[7], 0, 0
    while at < end:
        file.seek(at)
        reader = _Thrift(file.read(_LONGEST_HEADER))
        header = reader.struct(_HEADER)
        if header[1] != (2 if 11 in column and not pages else 0) or header[3] < 0:
            raise ValueError(f"a page of kind {header[1]} where none belongs")
        if pages < len(offsets) and offsets[pages] != at:
            raise ValueError("a page is not where the footer says")
        values += header[5][1] if header[1] == 0 else 0
        file.seek(at + reader.at)
        _one_frame(file.read(header[3]), header[3])
        at, pages = at + reader.at + header[3], pages + 1
    if at != end or values != column[5]:
        raise ValueError(f"the pages of a column chunk hold {values} values and end at {at}, not {end}")
    return at, pages


def _one_frame(packed: bytes, size: int) -> None:
    """A page is one Zstandard frame (RFC 8878) from its first byte to its last: no frame is skipped."""
    if len(packed) != size or packed[:4] != b"\x28\xb5\x2f\xfd":
        raise ValueError("a page is no Zstandard frame")
    flags = packed[4]
    single = flags >> 5 & 1
    at = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + ((1 if single else 0), 2, 4, 8)[flags >> 6]
    last = 0
    while not last:
        block = int.from_bytes(packed[at : at + 3], "little")
        last, kind, length = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == 1 else length)
        if at > size:
            raise ValueError("a page is cut off")
    if at + 4 * (flags >> 2 & 1) != size:
        raise ValueError("a page holds more than one Zstandard frame")


class _Thrift:
    """Thrift's compact protocol, of fields that a plan names."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def struct(self, plan: Plan | None, depth: int = 0) -> dict[int, Any]:
        """The fields by number. Raises ValueError at one that the plan does not name, or that comes twice."""
        found: dict[int, Any] = {}
        number = 0
        while byte := self.byte():
            number = number + (byte >> 4) if byte >> 4 else self.signed()
            if plan is None or number not in plan or number in found or depth > _DEEPEST:
                raise ValueError(f"a field that a plain table does not need: {number} at depth {depth}")
            found[number] = self.value(byte & 15, plan[number], depth + 1)
        return found

    def value(self, kind: int, plan: Plan | None, depth: int) -> Any:
        """A value of a Thrift type."""
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self.byte()
            case 4 | 5 | 6:
                return self.signed()
            case 8:
                return self.bytes(self.unsigned())
            case 9:
                return self.list(plan, depth)
            case 12:
                return self.struct(plan, depth)
        raise ValueError(f"a value of Thrift type {kind}")

    def list(self, plan: Plan | None, depth: int) -> list[Any]:
        """The elements of a list."""
        byte = self.byte()
        size = byte >> 4 if byte >> 4 < 15 else self.unsigned()
        if size > len(self.raw):
            raise ValueError("a list that is longer than the file")
        return [self.value(byte & 15, plan, depth) for _ in range(size)]

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self.raw[self.at - 1]

    def bytes(self, size: int) -> bytes:
        """The next bytes."""
        self.at += size
        if self.at > len(self.raw):
            raise ValueError("a text is cut off")
        return self.raw[self.at - size : self.at]

    def unsigned(self) -> int:
        """A variable-length whole number below 2^64, in as few bytes as it takes."""
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        if shift > 63 or (byte == 0 and shift):
            raise ValueError("a number is longer than it needs to be")
        return number

    def signed(self) -> int:
        """A zigzag number."""
        number = self.unsigned()
        return number >> 1 ^ -(number & 1)


def _refuse(path: Path, why: str, found: object = None) -> AuditFailure:
    return broken(
        path.name, "the file carries more than its table", expected="pages and a plain footer, no metadata",
        found=why if found is None else f"{why}: {found!r}",
    )  # fmt: skip
