"""From a file to a policy, or to everything that is wrong with it.

The CSV files of groups that a policy names are part of it, and read with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from funnel.data.alphabet import folded
from funnel.errors import InternalError, PolicyError, Problem
from funnel.policy.checks import check
from funnel.policy.document import Document, Finding, Origin, Path, shortened
from funnel.policy.groups import read_levels
from funnel.policy.mention import members, mentions
from funnel.policy.model import Policy
from funnel.policy.reader import MAX_BYTES, read

_FILES = "Groups in a file are named by its path, relative to the policy."
Opener = Callable[[str], str]
"""The text of a file by its name in the policy. It raises OSError or ValueError where there is none."""
MOST_BYTES = 4 << 20
_TOP = re.compile(rf"\b({'|'.join(Policy.model_fields)})\b[\"']?\s*:")
"""Top-level keys of a policy, wherever they stand in a text."""
_INIT = "`funnel init` writes a policy to start from."
_NONE = "this is no policy: it has hardly any of the keys of one"
_FEW = 2
"""Keys that a policy has which is only begun."""


def load(path: str | FilePath) -> Policy:
    """The policy in a file. Raises PolicyError with all its problems, each with line and column."""
    try:
        with FilePath(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refused("policy-unreadable", f"the policy cannot be read: {error.strerror}", path) from None
    except ValueError:
        raise _refused("policy-unreadable", "no file can have this name", path) from None
    if len(content) > MAX_BYTES:
        raise _refused("policy-too-large", f"the policy is larger than {MAX_BYTES // 1024} KiB", path)
    return loads(_decoded(content, path), path)


def loads(text: str, path: str | FilePath = "policy.yaml", opened: Opener | None = None) -> Policy:
    """The policy in a text; `path` names its file in messages, and its folder is where its paths start.

    `opened` reads the files of groups that it names, of a policy that is kept away from its place, so that its folders
    are others; without, they are read from that folder, and folders are looked at.
    Raises PolicyError with all problems, those of such files at their lines.
    """
    try:
        return _loaded(text, str(path), opened)
    except PolicyError as error:
        if len({*_TOP.findall(text)}) >= _FEW:
            raise
        # Of a table that was taken for a policy nothing is shown.
        told = (
            one if one.code == "policy-too-large" else replace(one, message=_NONE, suggestion=_INIT)
            for one in error.problems
        )
        raise PolicyError(list(dict.fromkeys(told))) from None


def _loaded(text: str, file: str, opened: Opener | None) -> Policy:
    document = read(text, file)
    folder = FilePath(file).parent
    named = inlined(document.data, opened or on_disk(folder))
    document.data = named.data
    policy, wrong = _validated(document)
    unread = [Finding(place, "policy-unreadable", said, _FILES) for place, said in named.amiss]
    findings = [*wrong, *unread, *check(document, folder if opened is None else None)]
    problems = [document.problem(finding) for finding in findings if not document.is_broken(finding.path)]
    if problems := [*document.problems, *problems, *named.problems]:
        raise PolicyError(list(dict.fromkeys(problems)))
    if policy is None:
        raise InternalError("a policy was refused without a reason")
    columns = {folded(mention.column): mention.path for mention in mentions(document.data)}
    policy._origin = Origin(file, text, document.places, columns, named.texts)
    return policy


def kept_policy(text: bytes, path: str | FilePath, groups: bytes | None) -> Policy:
    """A policy as evidence keeps it, with the files of groups that it names in groups.json, None where it names none.

    Raises PolicyError, UnicodeDecodeError, FormatError.
    """
    from funnel.format import groups as files
    from funnel.format import schema

    texts = {} if groups is None else schema.read(files.GroupsFile, files.NAME, groups).files
    return loads(text.decode(), path, kept(texts))


def _validated(document: Document) -> tuple[Policy | None, list[Finding]]:
    """The policy, or what its models find wrong."""
    if not isinstance(document.data, dict):
        said = "a policy is a mapping of keys to values"
        return None, [Finding((), "wrong-type", said, _INIT)]
    try:
        return Policy.model_validate(document.data), []
    except ValidationError as error:
        from funnel.policy.words import beside_tag, translate

        return None, [*translate(error, document.data), *beside_tag(document.data)]


def _decoded(content: bytes, path: str | FilePath) -> str:
    """The text of a file in UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        problem = Problem(
            "policy-unreadable",
            "the policy is not in UTF-8",
            str(path),
            line,
            column,
            "Save the file in UTF-8.",
        )
        raise PolicyError([problem]) from None


def _refused(code: str, message: str, path: str | FilePath) -> PolicyError:
    """The error of a file as a whole."""
    return PolicyError([Problem(code, message, str(path))])


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
