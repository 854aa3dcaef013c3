"""releases.json: all releases of each policy that signs, so that an older one cannot pass for the newest.

Each policy's list is an in-toto Statement in an envelope of its own: several may share a folder, with different keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from funnel.format import schema
from funnel.format.attestation import STATEMENT, Envelope, Subject, subjects
from funnel.format.canonical import FormatError
from funnel.format.fields import Sha256, Text
from funnel.format.journal import Sequence
from funnel.format.schema import Flaws

NAME = "releases.json"
LISTED: Final = "https://funnel.example/releases/v1"


@dataclass(frozen=True)
class Position:
    """Whose list, and which state of its ledger it tells of: the number of lines, and the hash of the last of them."""

    policy: Text
    sequence: Sequence
    ledger_sha256: Sha256


@dataclass(frozen=True)
class ReleaseList:
    """A policy's releases, oldest first: as subjects their names, with the hash of release.json."""

    _type: Literal["https://in-toto.io/Statement/v1"]
    subject: tuple[Subject, ...]
    predicateType: Literal["https://funnel.example/releases/v1"]  # noqa: N815 - in-toto's name
    predicate: Position

    def flaws(self) -> Flaws:
        """Releases stand in the order of their names, each once, and there is one."""
        names = [one.name for one in self.subject]
        if not names or any(one >= after for one, after in pairwise(names)):
            yield "subject", "releases, oldest first", names

    @property
    def releases(self) -> dict[str, str]:
        """The hash of each release.json."""
        return {one.name: one.digest.sha256 for one in self.subject}

    @property
    def newest(self) -> str:
        """The name of the last one."""
        return self.subject[-1].name


@dataclass(frozen=True)
class FeedFile:
    """The lists, in the order of the policies' names."""

    format: Literal["funnel-feed/1"]
    lists: tuple[Envelope, ...]

    def flaws(self) -> Flaws:
        """One list for a policy, and what is signed are lists."""
        try:
            names = [inside(one).predicate.policy for one in self.lists]
        except FormatError as error:
            yield "lists", error.expected, error.found
            return
        if any(one >= after for one, after in pairwise(names)):
            yield "lists", "one of each policy, in the order of their names", names

    def of(self, policy: str) -> Envelope | None:
        """The list of a policy, signed by whomever."""
        return next((one for one in self.lists if inside(one).predicate.policy == policy), None)


def inside(envelope: Envelope) -> ReleaseList:
    """The list in an envelope, signed or not. Raises FormatError."""
    return schema.read(ReleaseList, NAME, envelope.content)


def listing(releases: dict[str, str], position: Position) -> bytes:
    """The payload that tells of releases with these hashes."""
    return schema.write(ReleaseList(STATEMENT, subjects(releases), LISTED, position))


def feed(lists: dict[str, Envelope]) -> bytes:
    """The file with the lists of policies by their names."""
    return schema.write(FeedFile("funnel-feed/1", tuple(one for _, one in sorted(lists.items()))))
