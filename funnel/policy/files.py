"""The CSV files of groups that a policy names: they are part of it, and read with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from funnel.errors import Problem
from funnel.policy.document import Path, shortened
from funnel.policy.groups import read_levels
from funnel.policy.mention import members

Opener = Callable[[str], str]
"""The text of a file by its name in the policy. It raises OSError or ValueError where there is none."""
MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Inlined:
    """A policy's plain data in which levels stand for the files that it names; `texts` are these, by name.

    `problems` are those of the files' lines, `amiss` the places of files that cannot be read, and why.
    """

    data: Any
    texts: Mapping[str, str]
    problems: tuple[Problem, ...]
    amiss: tuple[tuple[Path, str], ...]


def inlined(data: Any, opened: Opener) -> Inlined:
    """Read the files of groups that public columns name; groups that cannot be read are left out of the data."""
    public = list(members(data))
    texts: dict[str, str] = {}
    amiss: list[tuple[Path, str]] = []
    for place, name in (one for path, item in public for one in _named(path, item)):
        try:
            texts[name] = texts[name] if name in texts else opened(name)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            amiss.append((place, f"the groups in `{shortened(name)}` cannot be read: {why}"))
    found = {name: read_levels(name, text) for name, text in texts.items()}
    whole = {name: levels for name, (levels, wrong) in found.items() if not wrong}
    for path, item in public:
        if named := [name for _, name in _named(path, item)]:
            changed = {key: one for key, one in item.items() if key != "groups"}
            if whole.keys() >= set(named):
                changed["groups"] = _levels(item["groups"], whole)
            data = _replaced(data, path, changed)
    return Inlined(data, texts, tuple(one for _, wrong in found.values() for one in wrong), tuple(amiss))


def _named(path: Path, item: Any) -> Iterator[tuple[Path, str]]:
    """The files that an attribute's groups are in, and where it says so."""
    given = item.get("groups") if isinstance(item, dict) else None
    if isinstance(given, str):
        yield (*path, "groups"), given
    for i, one in enumerate(given if isinstance(given, list) else ()):
        if isinstance(one, str):
            yield (*path, "groups", i), one


def _levels(given: Any, read: Mapping[str, list[Any]]) -> list[Any]:
    """The levels that an attribute names, with those of a file in the file's place."""
    several = given if isinstance(given, list) else [given]
    return [level for one in several for level in (read[one] if isinstance(one, str) else [one])]


def _replaced(data: Any, path: Path, value: Any) -> Any:
    """Plain data with another value at a path."""
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = _replaced(data[path[0]], path[1:], value)
    return copy


def on_disk(folder: FilePath) -> Opener:
    """How files are read that a policy in this folder names."""

    def opened(name: str) -> str:
        with (folder / name).open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("it is not in UTF-8") from None

    return opened


def kept(texts: Mapping[str, str]) -> Opener:
    """How files are read whose texts are at hand by name."""

    def opened(name: str) -> str:
        if name not in texts:
            raise ValueError("it was not kept")
        return texts[name]

    return opened
