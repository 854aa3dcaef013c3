"""What a person or a program is told of an exception, wherever it arose."""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from funnel.errors import AccessError, FunnelError, InternalError, ReleaseError
from funnel.text import shown

_DUCKDB = re.compile(r'"([^"\n]+)": Permission denied')
"""How DuckDB says it, which has no exception of its own for it."""
GONE = {
    errno.EIO, errno.ENOTCONN, errno.ESTALE, errno.ENODEV, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH,
    errno.ENETUNREACH, errno.ENETDOWN,
}  # fmt: skip
"""What a system says of disks and shares that do not answer; ENXIO it says of sockets in place of files, too."""
_NO_PATHS = {errno.ENAMETOOLONG, errno.ELOOP}
_NAME = "Name another file or folder: a name has 255 bytes at most, and a link leads to something."
REACH = "Check the disk, or the share that it lies on, then run again."
"""What helps where one does not answer."""
AWAY = frozenset({"source-missing", "source-unreachable", "unreachable"})
"""Codes of errors that say nothing of what was to be read: it is not there, or not within reach."""


def as_error(error: Exception) -> FunnelError:
    """The error itself; or what lies behind it, where this user may not use a file; or that it is our bug."""
    if isinstance(error, ReleaseError) and error.release is not None:
        return error  # that it is published all the same says more than what was refused
    refused = next((path for one in _behind(error) if (path := _refused(one)) is not None), None)
    # What a release could not be written for says more here, too: the folder, and what helps.
    gone = None if isinstance(error, ReleaseError) else next(filter(_is_gone, _behind(error)), None)
    if refused is not None:
        told: FunnelError = _access(refused)
    elif isinstance(gone, OSError):
        told = _unreachable(gone)
    elif isinstance(error, OSError) and error.errno in _NO_PATHS and error.filename is not None:
        told = AccessError(
            "no-path", f"it cannot be a path: {error.strerror}", where=shown(os.fsdecode(error.filename)), advice=_NAME
        )
    elif isinstance(error, FunnelError):
        return error
    else:
        told = InternalError(type(error).__name__, values=str(error))
    told.__cause__ = error
    return told


def _unreachable(error: OSError) -> AccessError:
    """What lies on a disk or a share that has gone away."""
    return AccessError(
        "unreachable",
        f"it cannot be reached: {error.strerror}",
        where=os.fsdecode(error.filename),
        advice=REACH,
    )


def _is_gone(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in GONE and error.filename is not None


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that it arose from, also where they were left out of its traceback."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _refused(error: BaseException) -> Path | None:
    """What an exception says that this user may not use; None where it says nothing of that."""
    if isinstance(error, PermissionError):
        return None if error.filename is None else Path(os.fsdecode(error.filename))
    said = _DUCKDB.search(str(error)) if type(error).__module__.endswith("duckdb") else None
    return None if said is None else Path(said[1])


def _access(path: Path) -> AccessError:
    """Who may not do what, where the path ends for this user; and what helps."""
    path = path.absolute()
    at, may_not = path, "use"
    for folder in reversed(path.parents):
        if folder.is_dir() and not _may(folder, os.X_OK):
            at, may_not = folder, "enter"
            break
    else:
        if not os.path.lexists(path):
            at, may_not = path.parent, "write into"
        elif not _may(path, os.R_OK):
            may_not = "read"
        elif not _may(path, os.W_OK):
            may_not = "write"
        elif not _may(path.parent, os.W_OK):
            at, may_not = path.parent, "write into"
    return AccessError(
        "permission",
        f"user {_named(os.geteuid())} may not {may_not} it{_owned(at)}",
        where=str(at),
        advice="Give this user the right (chown, chmod, setfacl), or run funnel as somebody who has it. Nothing says "
        "that what lies there is damaged.",
    )


def _may(path: Path, right: int) -> bool:
    return os.access(path, right, effective_ids=os.access in os.supports_effective_ids)


def _owned(path: Path) -> str:
    """Whose a path is and its mode, where this user may see so much."""
    try:
        told = path.stat()
    except OSError:
        return ""
    return f"; it belongs to user {_named(told.st_uid)}, mode {stat.S_IMODE(told.st_mode):04o}"


def _named(user: int) -> str:
    """The number of a user, with the name where the system has one."""
    try:
        return f"{user} ({pwd.getpwuid(user).pw_name})"
    except KeyError:
        return str(user)
