"""release.json: what a release says about itself, and the hash of every other published file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from funnel.format.fields import Count, Fingerprint, Nats, ReleaseId, Sha256, Share, Text, Time
from funnel.format.released import Type
from funnel.format.schema import Flaws, InRange, Matches

NAME = "release.json"
REPORTS = ("report.json", "report.html")
_FOLDER, _PART = "[A-Za-z0-9_.~%-]+=[A-Za-z0-9_.~%-]*", "part-(?:0|[1-9][0-9]*)"
CATALOGUES = ("datapackage.json", "croissant.json", "dcat.jsonld")
"""What catalogues of data read: a function of all other published files, as the report is of some."""
DECIMALS = 4
"""Most digits after the point of a published figure: a leakage is rounded up, anything else to the nearest."""


_NEAR = 1e-9
"""Shares of epsilon are written as decimals."""


def decimals(rows: int, minimum: int) -> int:
    """Digits of the published figures of so many records: a step of the last is at least 2 minimum / rows.

    A figure about counts moves by about one part in `rows` with each record. Finer steps would show fewer records than
    `estimate.minimum`, and several figures together the table (mathematics.md, section 9); twice, for the weights tell
    of small tables, too (tests/property/test_withheld.py).
    """
    return min(DECIMALS, len(str(rows // (2 * minimum))) - 1)


@dataclass(frozen=True)
class Draws:
    """How values were drawn; the fingerprint names the key of permanent draws."""

    kind: Literal["permanent", "fresh"]
    key_fingerprint: Fingerprint | None

    def flaws(self) -> Flaws:
        """Permanent draws have a key, fresh ones none."""
        if (self.kind == "permanent") != (self.key_fingerprint is not None):
            yield "key_fingerprint", f"that of {self.kind} draws", self.key_fingerprint


@dataclass(frozen=True)
class Estimate:
    """What the joint distribution was estimated from.

    Of a private estimate also ε_est, how often these people were estimated so far, and what that spent, in nats.
    `beliefs` are the steps that beliefs were rounded outward to, at least, before protocols were made of them; None
    where they were not rounded.
    """

    minimum: Count
    kind: Literal["counts", "private"]
    epsilon: Nats | None
    estimates: Count | None
    spent: Nats | None
    beliefs: Share | None = None

    def flaws(self) -> Flaws:
        """A private estimate says what it spent; beliefs are rounded of counts alone."""
        if {one is not None for one in (self.epsilon, self.estimates, self.spent)} != {self.kind == "private"}:
            yield "kind", "private where an estimate spent something, and only there", self.kind
        if self.beliefs is not None and (self.kind != "counts" or not self.beliefs):
            yield "beliefs", "a step above zero, of counts alone", self.beliefs


@dataclass(frozen=True)
class Parameters:
    """What defines a notion beside ε; None where it has no such parameter.

    `solve` and `knows` (so many columns, or which) of srlip; `order`, `confidence` and `radius` (nats) of rldp;
    `lower` (nats) of alip.
    """

    solve: Literal["auto", "joint", "sequential", "per-attribute"] | None = None
    order: Nats | None = None
    confidence: Share | None = None
    radius: Nats | None = None
    lower: Nats | None = None
    knows: Annotated[int, InRange(1, 64)] | tuple[Text, ...] | None = None

    @property
    def named(self) -> set[str]:
        """Those that the notion has."""
        return {key for key, value in vars(self).items() if value is not None}

    def flaws(self) -> Flaws:
        """What would divide by zero is not zero, no confidence is certainty, and who knows columns knows one."""
        if self.confidence in (0, 1) or self.order == 0:
            yield "order", "a ball around the estimate", (self.order, self.confidence)
        if self.knows == ():
            yield "knows", "one column or more", self.knows


@dataclass(frozen=True)
class Utility:
    """I(X;Y) and H(X) in nats, their ratio, and a certified upper bound of that ratio, None where none is claimed.

    All None where figures have no decimals: to the nearest nat they would say nothing that is so.
    """

    mutual_information: Nats | None
    entropy: Nats | None
    normalised: Share | None
    upper_bound: Nats | None


@dataclass(frozen=True)
class Sizes:
    """Number of values of S, and of each block before and after drawing."""

    sensitive: Count
    public: tuple[Count, ...]
    released: tuple[Count, ...]


Assumed = Literal["identifiers unchanged", "values unchanged", "comings and goings tell nothing"]
"""What is taken for granted where digests do not show it."""


How = Literal["exact", "unchanged", "ceiling", "sum", "repeated", "before"]
"""How a figure about several releases was found; `before`: an earlier one stated it, and now it is no more."""


@dataclass(frozen=True)
class Composed:
    """What this release and all before it in the ledger tell together, in nats; None: no finite bound.

    `assumes` is what the figure takes for granted of identifiers and values where nothing shows it.
    """

    leakage: Nats | None
    how: How
    releases: Annotated[int, InRange(1, 1 << 62)]
    assumes: tuple[Assumed, ...]


Way = Literal["filter", "missing", "unseen"]
"""How a policy may leave people out: by its filter, where values are missing, or new to a lock."""


@dataclass(frozen=True)
class Absent:
    """How the policy leaves people out, whether or not there are any.

    `secret` are sensitive columns that its filter reads: being absent tells of them, and nothing bounds how much.
    """

    by: tuple[Way, ...]
    secret: tuple[Text, ...]


Period = Literal["day", "week", "month", "quarter", "year"]
"""What dates are rounded to."""


@dataclass(frozen=True)
class Coarsened:
    """A released column whose numbers or dates were made coarser before anything was counted, which none of them shows.

    Rounded to multiples of `step`, what lies beyond the ends of `clip` taken for these first, or to the period that a
    date lies in; and with `rare`, each that stood for few records became the nearest that stands for enough, or inside
    cells was joined with its neighbours. With `other`, rare ones of what is rounded became `other`.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"other"})

    name: Text
    step: float | Period | None
    clip: tuple[float, float] | None
    rare: bool
    other: bool = False


@dataclass(frozen=True)
class Candidate:
    """A mechanism that was compared: its I(X;Y)/H(X), or the reason why it was not solved."""

    mechanism: str
    normalised: Share | None
    reason: str | None


@dataclass(frozen=True)
class Locked:
    """The lock that fixes the protocol: the checksum of its text, and when it was made.

    `fixed` is when the protocol was, where that was in a lock before, which this one keeps; else None.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"fixed"})

    checksum: Sha256
    made: Time
    fixed: Time | None = None


@dataclass(frozen=True)
class Signed:
    """Which key signed the manifest."""

    algorithm: Literal["ed25519"]
    public_key: Annotated[str, Matches(r"[0-9a-f]{32}")]


@dataclass(frozen=True)
class Key:
    """A column that is published untouched, and its type in the table, as SQL names it."""

    name: Text
    type: Type


@dataclass(frozen=True)
class Partition:
    """The column whose values name the folders of the table, and at most how many rows a file there has.

    Without a column the table is files alone. A row that has a name is in the one that a hash of its key says, so that
    files have about as many rows; of rows that are nobody's each file but the last has so many.
    """

    column: Text | None
    rows: Annotated[int, InRange(1, 1 << 62)]

    def parts(self, rows: int) -> int:
        """How many files a table of so many rows is, where it has no folders; some may be empty, and not there."""
        return -(-rows // self.rows)


@dataclass(frozen=True)
class Owner:
    """Who publishes, and where to find them."""

    name: Text
    url: Text | None


@dataclass(frozen=True)
class Metadata:
    """The publisher's own words, for catalogues; none of them is a claim that anybody can check.

    `url` is where the folder of releases can be read, `license` an identifier of the SPDX list or an address, `columns`
    what released columns mean.
    """

    title: Text | None
    description: Text | None
    url: Text | None
    license: Text | None
    publisher: Owner | None
    columns: dict[str, Text]


@dataclass(frozen=True)
class FileEntry:
    """What is said of another file."""

    sha256: Sha256
    bytes: Count


@dataclass(frozen=True)
class Manifest:
    """release.json.

    `leakage` is in nats by measure, rounded up, None where infinite; among them that which ε bounds. `split` is each
    block's share of ε. `totals`, of a mechanism that is about them: whether each stays as it is on average, at the
    counts that the protocol was made for. `absent` is None where everybody in the source is in the table.
    `identify` are the columns by which a row has a name, before all others in the table, and rows are sorted by them;
    none where rows belong to nobody. `files` are all others of the folder, but for an attestation. `partition` is None
    where the table is one file. `coarsened` names the released columns that were. `language` is that of the report.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"coarsened"})

    format: Literal["funnel-release/1"]
    release: ReleaseId
    created: Time
    name: Text
    description: str
    sensitive: tuple[Text, ...]
    public: tuple[tuple[Text, ...], ...]
    notion: Text
    epsilon: Nats
    parameters: Parameters
    mechanism: Text
    totals: Literal["kept", "free"] | None
    candidates: tuple[Candidate, ...] | None
    split: tuple[Share, ...]
    draws: Draws
    absent: Absent | None
    estimate: Estimate
    rows: Count
    identify: tuple[Key, ...]
    format_of_data: Literal["parquet", "csv"]
    rows_of_data: Literal["records", "counts"]
    leakage: dict[str, Nats | None]
    composed: Composed | None
    utility: Utility
    alphabet: Sizes
    locked: Locked | None
    signed: Signed | None
    policy_sha256: Sha256
    terms_sha256: Sha256
    plan_sha256: Sha256
    versions: dict[str, str]
    files: dict[str, FileEntry]
    partition: Partition | None = None
    metadata: Metadata | None = None
    coarsened: tuple[Coarsened, ...] = ()
    language: Literal["en", "de"] = "en"

    def flaws(self) -> Flaws:
        """Its parts fit each other."""
        columns = [name for block in self.public for name in block]
        keys = [key.name for key in self.identify]
        listed = {"protocol.json", "released.json", *REPORTS, *CATALOGUES}
        for part, holds, expected in (
            ("created", re.sub("[-:]", "", self.created) == self.release[:16], "the time that the release is named by"),
            ("public", columns and all(self.public) and len({*columns}) == len(columns), "distinct columns"),
            ("sensitive", self.sensitive and len({*self.sensitive}) == len(self.sensitive), "distinct columns"),
            ("identify", len({*keys} - {*columns, *self.sensitive}) == len(keys), "distinct columns beside the others"),
            ("epsilon", (self.epsilon > 0) != (self.notion == "perfect"), "zero of perfect privacy, else more"),
            ("split", len(self.split) == len(self.public) and all(self.split) and abs(sum(self.split) - 1) <= _NEAR,
             "a share for each block, in all one"),
            ("alphabet", len(self.public) == len(self.alphabet.public) == len(self.alphabet.released), "all blocks"),
            ("rows", self.rows > 0 and self.estimate.minimum > 0, "one or more, and a minimum"),
            ("rows_of_data", self.rows_of_data == "records" or not (self.identify or "cells.json" in self.files),
             "records, where rows have names or are filled in"),
            ("files", {*self.files} - {"cells.json", *self.tables} == listed and self.tables,
             f"those of {', '.join(sorted({self.data, *listed}))}"),
        ):  # fmt: skip
            if not holds:
                yield part, expected, getattr(self, part)

    @property
    def figures(self) -> set[float | None]:
        """All that were rounded."""
        shares = (candidate.normalised for candidate in self.candidates or ())
        composed = (self.composed.leakage,) if self.composed else ()
        return {*self.leakage.values(), *vars(self.utility).values(), *composed, *shares}

    @property
    def decimals(self) -> int:
        """Digits after the point of the figures here."""
        return decimals(self.rows, self.estimate.minimum)

    @property
    def step(self) -> Fraction:
        """One in the last digit of a figure here."""
        return Fraction(1, 10**self.decimals)

    @property
    def folders(self) -> str | None:
        """The column that is in the names of the table's folders alone; None where it has none."""
        return None if self.partition is None else self.partition.column

    @property
    def data(self) -> str:
        """The name of the released table's file, or of the folder of its files."""
        return f"data.{self.format_of_data}" if self.partition is None else "data"

    @property
    def tables(self) -> tuple[str, ...]:
        """The files of the released table among those listed."""
        folders = "" if self.folders is None else f"{_FOLDER}/"
        wanted = re.escape(self.data) if self.partition is None else f"data/{folders}{_PART}.{self.format_of_data}"
        return tuple(name for name in self.files if re.fullmatch(wanted, name))

    def without_files(self) -> Manifest:
        """What the report is made of: the manifest names the report's hash, so the report cannot name the files'."""
        return replace(self, files={})
