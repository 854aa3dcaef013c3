"""What a policy file says, before it means anything: plain data, where each part stands, what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path as FilePath
from typing import Any

from funnel.errors import Problem
from funnel.text import listed as joined

Path = tuple[str | int, ...]
"""The way to a part of a policy: keys and list positions, e.g. ("public", 1, "bins", 0)."""

MOST_LISTED = 16
"""Names in one message."""

Mark = tuple[int, int]
"""Line and column, both from 1."""


@dataclass
class Places:
    """Where the key and the value of each path begin."""

    keys: dict[Path, Mark] = field(default_factory=dict)
    values: dict[Path, Mark] = field(default_factory=dict)

    def of(self, path: Path, *, key: bool = False) -> Mark:
        """The mark of a path's value (or key), or of the nearest part around it; (0, 0) where unknown."""
        for length in range(len(path), -1, -1):
            part = path[:length]
            mark = self.keys.get(part) if key else None
            mark = mark or self.values.get(part)
            if mark:
                return mark
        return (0, 0)


@dataclass(frozen=True)
class Finding:
    """Something wrong at a path; `key` says that the key rather than the value is at fault."""

    path: Path
    code: str
    message: str
    suggestion: str | None = None
    key: bool = False


@dataclass(frozen=True)
class Origin:
    """Name and text of a policy file, where its parts stand, and the texts of files that it names.

    All origins are equal: two policies are equal when they say the same, wherever they were written.
    """

    file: str = field(default="policy.yaml", compare=False)
    text: str = field(default="", compare=False, repr=False)
    places: Places = field(default_factory=Places, compare=False, repr=False)
    columns: Mapping[str, Path] = field(default_factory=dict, compare=False, repr=False)
    files: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes, in hexadecimal."""
        return sha256(self.text.encode("utf-8")).hexdigest()

    @property
    def directory(self) -> FilePath:
        """The folder that holds the file."""
        return FilePath(self.file).parent


@dataclass
class Document:
    """Plain data, its places, the problems met while reading, and the paths whose values mean nothing."""

    file: str
    data: Any = None
    places: Places = field(default_factory=Places)
    problems: list[Problem] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)

    def refuse(self, mark: Mark, code: str, message: str, suggestion: str | None = None) -> None:
        """Note a problem at a mark."""
        self.problems.append(Problem(code, message, self.file, *mark, suggestion))

    def is_broken(self, path: Path) -> bool:
        """Whether the path lies in a part that is already known to be wrong."""
        return any(path[:length] in self.broken for length in range(len(path) + 1))

    def problem(self, finding: Finding) -> Problem:
        """A finding with the place it belongs to."""
        mark = self.places.of(finding.path, key=finding.key)
        return Problem(finding.code, finding.message, self.file, *mark, finding.suggestion)


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: public[1].bins[0]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{shortened(part)}" for part in path)
    return text.removeprefix(".") or "the policy"


def shortened(text: str, length: int = 60) -> str:
    """A text fit for one line of a message: what cannot be seen, or would steer a terminal, stands as its number."""
    line = "".join(
        letter if letter.isprintable() else f"\\u{ord(letter):04x}"
        for letter in text[: length + 1].replace("\r", "⏎").replace("\n", "⏎")
    )
    return line if len(line) <= length else f"{line[:length]}…"


def described(value: Any) -> str:
    """What stands there, in words: the number 3, the text 'abc', a list."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text '{shortened(value)}'"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def nearest(word: str, allowed: Collection[str]) -> str | None:
    """The allowed word that was probably meant."""
    folded = {one.lower(): one for one in allowed}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def choice(word: str, allowed: Collection[str]) -> str:
    """A suggestion for a word that is not allowed: the one that was meant, or all there are, if any."""
    if not allowed:
        return "Leave it out."
    meant = nearest(word, allowed)
    return f"Did you mean `{shortened(meant)}`?" if meant else f"Use {listed(allowed)}."


def listed(words: Collection[str], last: str = "or") -> str:
    """`a`, `b` or `c`; a long list is cut."""
    quoted = [f"`{shortened(word)}`" for word in words]
    if len(quoted) > MOST_LISTED:
        quoted[MOST_LISTED:] = [f"{len(quoted) - MOST_LISTED} more"]
    return joined(quoted, last)
