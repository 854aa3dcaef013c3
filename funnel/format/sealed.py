"""Text with one fact a line: YAML in which every value is JSON, sealed by a checksum in its last line.

It is written so that `git diff` shows facts, and read by a few lines of code that accept nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

SEAL = "checksum"
_LINE = re.compile(r"(?P<indent> *)(?:- (?P<item>.+)|(?P<key>[A-Za-z][\w.+-]*):(?: (?P<value>.+))?)")
_SEALED = re.compile(rf'{SEAL}: "([0-9a-f]{{64}})"')
_STEP = 2


class SealError(ValueError):
    """The text is not what was sealed."""


def sealed(facts: Mapping[str, Any], comment: str) -> str:
    """The text: a comment, one fact a line, the checksum of all before it.

    A mapping becomes a section, a tuple one item a line, anything else JSON.
    """
    said = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    body = said + "".join(line + "\n" for line in _lines(facts, 0))
    return body + f'{SEAL}: "{_digest(body)}"\n'


def unsealed(text: str) -> tuple[dict[str, Any], str]:
    """Inverse of `sealed`, lists for tuples; and the checksum. Raises SealError, with the line where there is one."""
    body, found, last = text.removesuffix("\n").rpartition("\n")
    seal = _SEALED.fullmatch(last)
    if not found or seal is None:
        raise SealError("its last line is not a checksum")
    if seal[1] != _digest(body + "\n"):
        raise SealError("its checksum is not that of its text")
    lines = [
        _Line(number, line)
        for number, line in enumerate(body.split("\n"), start=1)
        if line.strip() and not line.startswith("#")
    ]
    value, rest = _section(lines, 0)
    if rest or not isinstance(value, dict):
        raise SealError(f"line {rest[0].number if rest else 1} does not belong where it stands")
    return value, seal[1]


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _lines(facts: Mapping[str, Any], indent: int) -> Iterator[str]:
    space = " " * indent
    for key, value in facts.items():
        if isinstance(value, Mapping) and value:
            yield f"{space}{key}:"
            yield from _lines(value, indent + _STEP)
        elif isinstance(value, tuple) and value:
            yield f"{space}{key}:"
            yield from (f"{space}{' ' * _STEP}- {_json(item)}" for item in value)
        else:
            yield f"{space}{key}: {_json(value)}"


def _json(value: Any) -> str:
    """JSON on one line of printable text: what no screen shows is escaped, by pairs beyond 16 bits."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


class _Line:
    """One line, taken apart. Raises SealError."""

    def __init__(self, number: int, text: str) -> None:
        found = _LINE.fullmatch(text)
        if found is None:
            raise SealError(f"line {number} is no fact")
        self.number, self.indent, self.key = number, len(found["indent"]), found["key"]
        self.opens = found["item"] is None and found["value"] is None
        self.value = None if self.opens else _value(found["item"] or found["value"], number)


def _value(text: str, number: int) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise SealError(f"line {number} holds something else than JSON") from None


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _section(lines: Sequence[_Line], indent: int) -> tuple[dict[str, Any] | list[Any], Sequence[_Line]]:
    """The facts at one depth, and the lines that follow them."""
    items: list[Any] = []
    facts: dict[str, Any] = {}
    place = 0
    while place < len(lines) and lines[place].indent == indent:
        line = lines[place]
        place += 1
        if line.key is None:
            items.append(line.value)
        elif line.key in facts:
            raise SealError(f"line {line.number} repeats {line.key}")
        elif line.opens:
            facts[line.key], rest = _section(lines[place:], indent + _STEP)
            place = len(lines) - len(rest)
        else:
            facts[line.key] = line.value
    if items and facts:
        raise SealError(f"line {lines[0].number} begins a list that is also a mapping")
    return (items if items else facts), lines[place:]
