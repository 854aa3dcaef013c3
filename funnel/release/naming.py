"""Names of releases: a time and a random end, in the order in which the releases were made, whatever the clock says."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from funnel.format.fields import RELEASE_ID, named_at
from funnel.format.journal import ReleaseEntry

TOLERATED = timedelta(minutes=1)
"""A clock may lag this far behind the last release before anybody is told: two quick releases, or a clock set right."""

_NO_YEAR = 9000


def new_release_id(now: datetime) -> str:
    """UTC time to the second and six random hex digits, such as 20261121T112034Z-3f9a1c."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def last_named(to: Path, entries: Sequence[ReleaseEntry]) -> datetime | None:
    """The latest time in a name, of the ledger's entries and of the release that `latest` in a published folder shows.

    That one may be of another ledger: where no clock says such a time, no name has to come after it.
    """
    latest = to / "latest"
    times = [_time(entry.release) for entry in entries]
    if latest.is_symlink() and latest.is_dir():
        shown = _time(latest.readlink().name)
        times += [shown] if shown is not None and shown.year < _NO_YEAR else []
    return max((time for time in times if time is not None), default=None)


def next_time(now: datetime, last: datetime | None) -> tuple[datetime, str | None]:
    """When a release that begins now says that it was made: after the last one; and what to tell of a clock gone back.

    A nightly job has to go on when a clock was set back, and readers go by the order of the names. So the release is
    named one second after the last, and the operator is told.
    """
    if last is None or now >= last + timedelta(seconds=1):
        return now, None
    told = (
        f"the clock says {now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, and the last release was made at "
        f"{last:%Y-%m-%d %H:%M:%S}: this one is named one second after it, so that the order holds; check the clock"
    )
    return last + timedelta(seconds=1), told if last - now > TOLERATED else None


def _time(name: str) -> datetime | None:
    """The time in a name; None where there is none that another can follow."""
    if not re.fullmatch(RELEASE_ID, name):
        return None
    try:
        found = named_at(name)
    except ValueError:
        return None
    return found if found.replace(tzinfo=None) < datetime.max - 2 * TOLERATED else None
