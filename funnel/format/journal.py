"""ledger.jsonl: one line for everything that tells more about the same people, each bound to the line before it.

Releases, private estimates and agreed changes of key stand in one chain. ledger.head says how far it reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from funnel.format.fields import Count, Fingerprint, Nats, Positive, ReleaseId, Sha256, Share, Text, Time
from funnel.format.manifest import Assumed, How, Parameters
from funnel.format.schema import InRange, Matches

NAME = "ledger.jsonl"
HEAD = "ledger.head"
START = "0" * 64
"""What the first line names as the one before it."""
Sequence = Annotated[int, InRange(1, 1 << 62)]
Blind = Annotated[str, Matches("[0-9a-f]{32}")]


@dataclass(frozen=True)
class Drawn:
    """One block of a release: its columns, a hash of what each one's values mean, and which secret columns it reads.

    `base` is the same hash without which values were put under `other`. Of a wide block `columns` is its name, the
    hashes are of its cells, and `inside` are its own columns; of any other there are none. `since` names for each
    column the first release whose values were of the same things about the same people, as far as digests show.
    """

    columns: tuple[Text, ...]
    meaning: tuple[str, ...]
    base: tuple[str, ...]
    reads: tuple[Text, ...] | None
    inside: tuple[Text, ...]
    since: tuple[ReleaseId, ...]


@dataclass(frozen=True)
class Seen:
    """How a sample compares with that of an earlier release, `since`: the least of both that can be compared.

    `people` is the share of tonight's who were read for it, also where its lock left them out, `unchanged` the share
    of these whose values are the same in all columns that both have; None where nobody was.
    """

    since: ReleaseId
    people: Share
    unchanged: Share | None


@dataclass(frozen=True)
class Identity:
    """Of which table and of whom a release is, as far as its own digest and those before it show.

    `table` is a hash of the table's name, `content` one of all rows (both as people.json has them, whose own hash is
    `people_sha256`), `numbered` the first release whose identifiers mean the same people, `secret` the first whose
    secret is the same column. `assumes` is what the composed figures take for granted beside: nothing where all people
    and values are the same as in every earlier release whose draws follow from tonight's values. `lost` are earlier
    releases of whose digest and counts this one found not both: of those it took neither.
    """

    table: Sha256
    content: Sha256
    people_sha256: Sha256
    numbered: ReleaseId
    secret: ReleaseId
    assumes: tuple[Assumed, ...]
    seen: Seen | None
    lost: tuple[ReleaseId, ...] = ()

    LATER: ClassVar[frozenset[str]] = frozenset({"lost"})


@dataclass(frozen=True)
class Together:
    """The composed leakage of all releases so far: in nats, rounded up (`figure`) and as measured; None: no bound.

    `varying` is the usual LDP of the whole history in nats (None: no bound), which times k bounds what is told of a
    record that had k values, where it is known in which releases each of its columns was the same.
    """

    measure: Text
    sensitive: tuple[Text, ...]
    figure: Nats | None
    measured: Nats | None
    how: Literal["exact", "unchanged", "ceiling", "sum", "repeated"]
    releases: Sequence
    varying: Nats | None

    @property
    def asked(self) -> tuple[str, tuple[str, ...]]:
        """In which measure it is, and about which secret."""
        return self.measure, self.sensitive

    @property
    def found(self) -> How:
        """How the figure was found, not what was `measured`: `before` by an earlier release, which had to tell more."""
        return self.how if self.figure == self.measured else "before"

    def stated(self, step: Fraction) -> How:
        """The same of figures rounded up to a step: what is published says no more of tonight's counts than these."""
        rounded = {one if one is None else -(-Fraction(str(one)) // step) for one in (self.figure, self.measured)}
        return self.how if len(rounded) == 1 else "before"


@dataclass(frozen=True)
class Present:
    """Who of the source is in a release, where not everybody is: absence is told by the release as well.

    `predicate` is SQL over the source's columns, with a comment that names their types, None where all are let in;
    `columns` are those that it reads, `secret` the sensitive ones that the policy's filter reads. `unseen` records were
    left out because a lock did not know their values; `absent` are all that were left out, None where nobody counted
    them.
    """

    predicate: Text | None
    columns: tuple[Text, ...]
    secret: tuple[Text, ...]
    unseen: Count
    absent: Count | None


@dataclass(frozen=True)
class Promise:
    """What the policy of this name promised about a secret, and what all releases so far tell of that together.

    `budget` is what its policy lets them reach, in nats. `since` is the first release that was made under it; `ended`
    the one that told more than its budget, without any bound, or what it hides: an ended promise stays ended.
    """

    policy: Text
    notion: Text
    epsilon: Nats
    parameters: Parameters
    budget: Positive | None
    since: ReleaseId
    ended: ReleaseId | None
    together: Together

    @property
    def name(self) -> tuple[str, str, tuple[str, ...]]:
        """What makes it one and the same from release to release."""
        return self.policy, *self.together.asked


@dataclass(frozen=True)
class ReleaseEntry:
    """A release, entered before it becomes visible.

    `promises` are all that policies of this ledger have made by now, the release's own first. `present` is None where
    everybody in the source is in it; `entity` is the column that permanent draws are keyed by; `lock` the checksum of
    the lock, None where there is none; `identify` are the columns that it publishes as they are; `noisy` whether its
    figures are of the counts of a private estimate.
    """

    release: ReleaseId
    name: Text
    policy_sha256: Sha256
    manifest_sha256: Sha256
    evidence_sha256: Sha256
    protocol_sha256: Sha256
    notion: Text
    epsilon: Nats
    leakage: dict[str, Nats | None]
    draws: Literal["permanent", "fresh"]
    key_fingerprint: Fingerprint | None
    entity: Text | None
    drawn: tuple[Drawn, ...]
    present: Present | None
    promises: tuple[Promise, ...]
    identity: Identity
    lock: Sha256 | None
    identify: tuple[Text, ...] = ()
    noisy: bool = False
    kind: Literal["release"] = "release"

    @property
    def own(self) -> Promise:
        """The promise of the release's own policy."""
        return self.promises[0]


@dataclass(frozen=True)
class EstimateEntry:
    """A private estimate, entered before its noise is drawn: its name, ε_est in nats, and SHA-256 of what is counted.

    What the estimates of these people had cost by some release is the sum of those before its entry.
    """

    name: Text
    epsilon: Positive
    terms: Sha256
    kind: Literal["estimate"] = "estimate"


@dataclass(frozen=True)
class KeyEntry:
    """Somebody meant it: the next release of policy `name` may be drawn with the key `new` instead of `old`."""

    name: Text
    old: Fingerprint
    new: Fingerprint
    kind: Literal["key"] = "key"


Entry = ReleaseEntry | EstimateEntry | KeyEntry


@dataclass(frozen=True)
class Line:
    """One line: its number from 1, when it was written, the SHA-256 of the line before it, and what it tells.

    A line's hash is over all its bytes, the newline at its end among them; the first line names `START`. The hash is
    published in attestations: what the line tells nobody can find by trying, for `blind` is random and stays private.
    """

    sequence: Sequence
    written: Time
    previous: Sha256
    blind: Blind
    entry: Entry


@dataclass(frozen=True)
class Head:
    """ledger.head: how many lines are confirmed, and the hash of the last of them."""

    sequence: Sequence
    sha256: Sha256
