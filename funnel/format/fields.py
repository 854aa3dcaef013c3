"""What several files have in common: names of releases, times, hashes, figures, labels, alphabets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from funnel.format.schema import Flaws, InRange, Matches, unlike

Sha256 = Annotated[str, Matches(r"[0-9a-f]{64}")]
Fingerprint = Annotated[str, Matches(r"[0-9a-f]{16}")]
RELEASE_ID = r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}"
LATEST = "latest"
"""What leads to the newest release, in a folder of them."""
ReleaseId = Annotated[str, Matches(RELEASE_ID)]
"""The time at which the release was made, and six random digits."""
Time = Annotated[str, Matches(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")]
Positive = Annotated[str, Matches(r"[1-9][0-9]{0,3999}(/[1-9][0-9]{0,3999})?")]
"""An exact number above zero, `num` or `num/den`, as Python's Fraction writes it."""
Text = Annotated[str, Matches(r"(?s).+")]
Count = Annotated[int, InRange(0, (1 << 63) - 1)]
Nats = Annotated[float, InRange(0, 1e308)]
Share = Annotated[float, InRange(0, 1)]
Label = tuple[str | None, ...]
"""One value: a text for each column, None where the column is missing."""


@dataclass(frozen=True)
class Alphabet:
    """Columns and the distinct values that they take together; the place of a value is its code."""

    columns: tuple[Text, ...]
    values: tuple[Label, ...]

    def flaws(self) -> Flaws:
        """Columns and values are distinct, and fit each other."""
        return unlike(self.columns, values=self.values)


def named_at(name: str) -> datetime:
    """The time in UTC that a release's name begins with. Raises ValueError where there is none."""
    return datetime.strptime(name[: len("20261121T112034Z")], "%Y%m%dT%H%M%S%z")
