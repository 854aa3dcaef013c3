"""What lies in a folder of partitions, and what a pattern goes through: the engine leaves some of it out in silence."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from funnel.engine.sources.base import refused

_PARQUET = b"PAR1"
"""What a Parquet file begins with."""


def pattern_of(folder: Path, endings: Sequence[str]) -> str:
    """The pattern of the one kind of files that a folder of partitions holds. Raises SourceError."""
    every = [*_below(folder)]
    names = {one.name.lower() for one in every if one.is_file() and not is_aside(one.relative_to(folder).parts)}
    found = {ending for ending in endings if any(name.endswith(ending) for name in names)}
    if len(found) != 1:
        held = f"files of several kinds: {', '.join(sorted(found))}" if found else "no table"
        raise refused(f"the folder holds {held}", folder, "Name a pattern, such as folder/**/*.parquet.")
    (ending,) = found
    for one in every:
        _check_inside(one, folder, ending)
    return f"{glob.escape(str(folder))}/**/*{ending}"


def is_aside(parts: Sequence[str]) -> bool:
    """Whether writers of lakes left this for themselves: names in _ and . are not part of a table."""
    return any(part.startswith(("_", ".")) for part in parts)


def is_parquet(start: bytes) -> bool:
    """Whether a file that begins so is Parquet, whatever it is called."""
    return start.startswith(_PARQUET)


def _check_inside(one: Path, folder: Path, ending: str) -> None:
    """Refuse what the pattern reads and is none of the table, or leaves out and may be some. Raises SourceError."""
    said = f"the folder holds {one.relative_to(folder)}"
    if is_aside(one.relative_to(folder).parts):
        if one.name.endswith(ending):
            advice = "Run again when it is done, or name a pattern that leaves it out."
            raise refused(f"{said}, such as writers leave while they are at work", folder, advice)
    elif one.is_dir():
        if one.is_symlink():
            advice = f"Have the folder itself there, or name a pattern: folder/**/*{ending} goes through no links."
            raise refused(f"{said}, a link to a folder, and what lies there would be left out", folder, advice)
    elif one.name.lower().endswith(ending):
        if not one.name.endswith(ending):
            raise refused(f"{said}, and files are read whose names end in {ending}", folder, "Rename it.")
    elif "." not in one.name and one.is_file() and _is_parquet(one):
        raise refused(f"{said}, a Parquet file, and files are read whose names end in {ending}", folder, "Rename it.")


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        return is_parquet(opened.read(len(_PARQUET)))


def check_reached(pattern: str) -> None:
    """All that a pattern goes through can be listed, and no link on its way leads nowhere. Raises SourceError."""
    parts = Path(pattern).parts
    for place, part in enumerate(parts):
        if not glob.has_magic(part):
            continue
        before = glob.iglob(str(Path(*parts[:place])))  # noqa: PTH207 - Path.glob takes no absolute pattern
        for folder in filter(os.path.isdir, before):
            for one in _below(Path(folder)) if part == "**" else _in(Path(folder)):
                known = part == "**" or fnmatchcase(one.name, part)
                if known and one.is_symlink() and not one.exists() and not is_aside([one.name]):
                    said = f"{one} is a link to what is not there, and would be left out"
                    raise refused(said, pattern, "Bring back what it points to, or take the link away.")
        if part == "**":
            return


def _in(folder: Path) -> Iterator[Path]:
    """What lies in a folder itself. Raises SourceError."""
    try:
        yield from folder.iterdir()
    except OSError as error:
        _unlisted(error)


def _below(folder: Path) -> Iterator[Path]:
    """Everything below a folder, through no links. Raises SourceError."""
    for place, folders, files in os.walk(folder, onerror=_unlisted):
        yield from (Path(place, name) for name in (*folders, *files))


def _unlisted(error: OSError) -> NoReturn:
    said = f"a folder of the table cannot be read: {error.strerror}"
    raise refused(said, error.filename, "Run as a user who may read all of the table, or narrow the pattern.") from None
