"""Where a policy publishes, and where it keeps what nobody is to see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from funnel.format.fields import LATEST, RELEASE_ID
from funnel.policy.document import Finding, dotted
from funnel.policy.mention import at


def folders(data: Any, directory: Path) -> Iterator[Finding]:
    """Nothing private lies in the folder that is published, which no reader could take for anything else.

    Symbolic links are followed where they exist.
    """
    to = at(data, "release", "to")
    if not isinstance(to, str) or "\0" in to:
        return
    outer = Path(os.path.realpath(directory / to))
    yield from _hidden(data, directory, outer)
    if any(name == LATEST or re.fullmatch(RELEASE_ID, name) for name in (Path(to).name, outer.name)):
        said = "`release.to` has a name that releases have in such a folder, and would be taken for one"
        yield Finding(("release", "to"), "release-path", said, "Give the folder another name.")
    private = at(data, "release", "private")
    if isinstance(private, str) and "\0" not in private:
        root = Path(os.path.realpath(directory / private))
        inside = outer.relative_to(root).parts if outer.is_relative_to(root) else ()
        if inside and _is_kept(inside[0]):
            said = "`release.to` lies where the private folder keeps what is its own"
            yield Finding(("release", "to"), "release-path", said, "Choose a place outside of it.")


def _is_kept(name: str) -> bool:
    """Whether a private folder keeps something by this name, of one release or of all, or a run has it aside."""
    # Few policies publish inside their private folder, and no other check waits for this.
    from funnel.format import estimated, journal, locked, people, protocol, pruned

    files, kept = (journal.NAME, journal.HEAD, people.KEY), (protocol, locked, estimated, pruned)
    own = name in files or any(name == one.FOLDER for one in kept)
    return own or name[0] == "." or bool(re.fullmatch(RELEASE_ID, name))


def _hidden(data: Any, directory: Path, outer: Path) -> Iterator[Finding]:
    """Nothing private lies in the published folder `outer`."""
    inside: dict[tuple[str, str], Any] = {("release", "private"): at(data, "release", "private")}
    for place in (("draws", "key"), ("release", "sign")):
        key = at(data, *place)
        if isinstance(key, str) and key.startswith("file:"):
            inside[place] = key.removeprefix("file:")
    table = at(data, "source", "table")
    if isinstance(table, str) and "://" not in table:
        inside["source", "table"] = _before_glob(table)
    for path, text in inside.items():
        if isinstance(text, str) and "\0" not in text:
            inner = Path(os.path.realpath(directory / text))
            if inner.is_relative_to(outer):
                said = f"`{dotted(path)}` {'is' if inner == outer else 'lies in'} the published folder"
                yield Finding(path, "release-path", f"{said} `release.to`", "Choose a place outside of it.")


def _before_glob(table: str) -> str:
    """The fixed part of a path with wildcards: the folder before the first of them."""
    fixed = re.split(r"[*?\[]", table, maxsplit=1)[0]
    return fixed if fixed == table else fixed[: fixed.rfind("/") + 1]
