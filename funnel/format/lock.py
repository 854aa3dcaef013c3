"""NAME.lock.yaml: what `funnel lock` pinned, beside its policy; sealed text, in which a protocol stands row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from funnel.format.fields import Count, Label, Nats, Sha256, Share, Text, Time

LOCKED = ".lock.yaml"
"""How the name of a lock ends, beside its policy."""
FORMAT = "funnel-lock/1"


@dataclass(frozen=True, kw_only=True, eq=False)
class LockFacts:
    """What a lock says beside its protocols, in the order in which it is written.

    `policy` is the policy's name, `funnel` the version that made the lock; `terms` are the policy's, `parameters` those
    of the settled notion, `mechanism` the one used; `room` is the part of epsilon left to drift. `leakage` and
    `utility` are the figures of the night it was made (nats, rounded up, and shares). `secret` names the values of S
    that had the minimum of records, of `secrets` in all. `counts` is a keyed hash of the counts, None without a key.
    `fixed` is when the protocol was solved, where a lock before was made of it and this one keeps it; else None.
    Of a private estimate, `estimated` is the name under which its cost is on record and `noisy` the hash of its noisy
    counts, to which all figures belong; else both are None, and not written.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"fixed", "estimated", "noisy"})

    policy: Text
    made: Time
    fixed: Time | None = None
    funnel: Text
    terms: dict[str, Any]
    parameters: dict[str, Any]
    mechanism: Text
    room: Share
    shares: tuple[float, ...]
    budgets: tuple[float, ...]
    rows: Count
    counts: Sha256 | None
    estimated: Text | None = None
    noisy: Sha256 | None = None
    leakage: dict[str, Nats | None]
    utility: dict[str, float | None]
    secrets: Count
    secret: tuple[Label, ...]
