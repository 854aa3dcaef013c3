"""What lies in a folder of partitions, and what a pattern goes through: the engine leaves some of it out in silence."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from funnel.engine.sources.base import refused
from funnel.engine.sources.lake import lake_among, lake_of, no_lake

_PARQUET = b"PAR1"
"""What a Parquet file begins with."""
_PACKED = (".bz2", ".xz", ".lz4", ".snappy", ".br", ".zip", ".7z")
"""How files end that are packed in ways that are not read."""


def pattern_of(folder: Path, endings: Sequence[str]) -> str:
    """The pattern of the one kind of files that a folder of partitions holds. Raises SourceError."""
    every = [*_below(folder)]
    no_lake(lake_among(one.relative_to(folder) for one in every), folder)
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
    elif one.is_symlink() and (one.is_dir() or (not one.exists() and "." not in one.name)):
        advice = f"Have the folder itself there, or name a pattern: folder/**/*{ending} goes through no links."
        raise refused(f"{said}, a link to a folder, and what lies there would be left out", folder, advice)
    elif one.name.endswith(ending) or not one.is_file():
        return
    elif one.name.lower().endswith((ending, *_PACKED)) or _is_parquet(one):
        raise refused(f"{said}, and files are read whose names end in {ending}", folder, "Rename it, or move it away.")


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        return is_parquet(opened.read(len(_PARQUET)))


def check_reached(pattern: str) -> None:
    """All that a pattern goes through can be listed, and no link on its way leads nowhere. Raises SourceError."""
    parts = Path(pattern).parts
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    places = [Path(*parts[:first])]
    for left, part in zip(reversed(range(len(parts) - first)), parts[first:], strict=True):
        if part == "**":
            fitting = (one for place in places for one in _below(place) if fnmatchcase(one.name, parts[-1]))
            _check_there(pattern, fitting)
            return
        places = [one for place in places if place.is_dir() for one in _fitting(place, part)]
        _check_there(pattern, (one for one in places if not left or "." not in one.name))


def _check_there(pattern: str, found: Iterator[Path]) -> None:
    """None of what may be part of a table is a link to what is not there. Raises SourceError."""
    dead = (one for one in found if one.is_symlink() and not one.exists() and not one.name.startswith("."))
    if lost := next(dead, None):
        said = f"{lost} is a link to what is not there, and would be left out"
        raise refused(said, pattern, "Bring back what it points to, or take the link away.")


def _fitting(folder: Path, part: str) -> Iterator[Path]:
    """What a part of a pattern finds in a folder. Raises SourceError."""
    try:
        if glob.has_magic(part):
            yield from (one for one in folder.iterdir() if fnmatchcase(one.name, part))
        elif os.lstat(folder / part):
            yield folder / part
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        _unlisted(error)


def _below(folder: Path) -> Iterator[Path]:
    """Everything below a folder, through no links. Raises SourceError."""

    def unlisted(error: OSError) -> None:
        gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
        if not gone and not is_aside(Path(error.filename).relative_to(folder).parts):
            _unlisted(error)

    for place, folders, files in os.walk(folder, onerror=unlisted):
        yield from (Path(place, name) for name in (*folders, *files))


def _unlisted(error: OSError) -> NoReturn:
    said = f"a folder of the table cannot be read: {error.strerror}"
    raise refused(said, error.filename, "Run as a user who may read all of the table, or narrow the pattern.") from None


def check_apart(pattern: str, files: Sequence[Path]) -> None:
    """No file that a pattern found is another one's double, or lies in what writers keep. Raises SourceError."""
    first = next(place for place, part in enumerate(Path(pattern).parts) if glob.has_magic(part))
    base = Path(*Path(pattern).parts[:first])
    inside = {one: Path(os.path.relpath(one, base)).parts for one in files}  # the engine takes `..` away
    if not is_aside(Path(pattern).parts[first:]):
        odd = next((one for one, parts in inside.items() if is_aside(parts[:-1]) or parts[-1].startswith(".")), None)
        if odd is not None:
            said = f"the pattern also matches {odd}, such as copying tools and writers leave behind"
            raise refused(said, pattern, "Remove it, or narrow the pattern: its rows would count as people.")
    for folder in {above for file in files for above in file.parents}:
        no_lake(lake_of(folder), folder)
    known = dict[tuple[int, int], Path]()
    for one in files:
        stat = one.stat()
        if (other := known.setdefault((stat.st_dev, stat.st_ino), one)) is not one:
            said = f"{other} and {one} are one file, and its rows would count twice"
            raise refused(said, pattern, "Take the link away, or narrow the pattern.")
