"""A plan: the stages of a run, frozen and typed, with their SQL; without data values, so that it can be hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from funnel.format.canonical import encode


@dataclass(frozen=True)
class Scan:
    """Name the source's rows that the policy lets in.

    `counted` are the columns of which the source counts the distinct rows by itself; None where rows are read.
    """

    title: ClassVar[str] = "scan"
    files: str
    statements: tuple[str, ...]
    counted: str | None = None


@dataclass(frozen=True)
class Inspect:
    """Count rows and present values per used column, before missing values are treated.

    `refused` are columns with labels for which they have no use, whose rows are counted last.
    """

    title: ClassVar[str] = "inspect"
    columns: tuple[str, ...]
    statement: str
    refused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Once:
    """Count and draw in one reading, if the table has no other values than the lock; else as the other steps say.

    `statements` bring in what the lock knows, `undo` takes it away again where the table holds something else.
    """

    title: ClassVar[str] = "count and draw"
    statements: tuple[str, ...]
    statement: str
    undo: tuple[str, ...]


@dataclass(frozen=True)
class Identify:
    """Check that no entity has two rows: that the `listing` has none twice.

    The dense form serves integers in a narrow range, where all rows can be brought together.
    """

    title: ClassVar[str] = "identify"
    column: str
    integer: bool
    spread: str
    dense: str
    listing: str


@dataclass(frozen=True)
class WideBlock:
    """A wide block: its columns with their types, how they are read as texts, and the macro from them to a cell.

    `keys` are the columns' names in the plan's views; an `ordered` column is compared with thresholds.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    ordered: tuple[bool, ...]
    keys: tuple[str, ...]
    macro: str
    statement: str
    most: int
    minimum: int


@dataclass(frozen=True)
class MakeCells:
    """Count what the columns of each wide block hold, without the secret, and partition it into cells.

    The conditions found become a macro, which the statements behind call: a plan knows no values. `support` is how many
    records share a value that is released.
    """

    title: ClassVar[str] = "cells"
    statements: tuple[str, ...]
    blocks: tuple[WideBlock, ...]
    support: int


@dataclass(frozen=True)
class Rare:
    """A column whose rare values become `other`, or (`rule` bin) the nearest of those that stand for enough records.

    `statement` counts the records of every value; what they become is a table of this `name`, of v0 and v1. `known` is
    a table of the values that a lock has, None where there is no lock. `kind` is the column's SQL type.
    """

    column: str
    rule: Literal["other", "bin"]
    kind: str
    statement: str
    name: str
    known: str | None


@dataclass(frozen=True)
class Count:
    """Count N[s, x] over the raw values and turn them into labels; `noise` is ε_est of a private estimate, in nats.

    `labelled` is the last of the statements, once it is known what `rare` values become.
    """

    title: ClassVar[str] = "count"
    statements: tuple[str, ...]
    rare: tuple[Rare, ...]
    labelled: str
    cells: str
    secret: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    minimum: int
    noise: float | None = None


@dataclass(frozen=True)
class Name:
    """Check that the key columns name every row that is released, and no two rows alike. `listing` is all keys."""

    title: ClassVar[str] = "name"
    columns: tuple[str, ...]
    listing: str
    statement: str


@dataclass(frozen=True)
class Know:
    """Count the same records by what somebody may know of them: a level is a column, the level's name, and its text.

    The promise is made against those who know values that `minimum` records share.
    """

    title: ClassVar[str] = "know"
    statement: str
    levels: tuple[tuple[str, str, str], ...]
    minimum: int


@dataclass(frozen=True)
class Everybody:
    """Count the whole source by who is in which release of the folder, those too whom this policy leaves out.

    `own` is the predicate of who is in this one, which `reads` these columns, and None where that is everybody;
    `filtered` are sensitive columns that its filter reads. `classes` are all predicates that the source can be asked,
    this one first. There is one of `counts` for each of `secrets`. `once` lists whom each row is about.
    """

    title: ClassVar[str] = "everybody"
    own: str | None
    reads: tuple[str, ...]
    filtered: tuple[str, ...]
    classes: tuple[str, ...]
    secrets: tuple[tuple[str, ...], ...]
    once: str | None
    statements: tuple[str, ...]
    counts: tuple[str, ...]


@dataclass(frozen=True)
class People:
    """Take a private digest of who is in the table with which values, by which later releases know them again.

    `content` is a hash of all rows, or of their counts where rows are nobody's. Of a sample of the `entities` the
    labels of all columns, `secret` and `public`, are read: by `sampled`, which knows them as a table of the run; the
    two are None where no entity is named.
    """

    title: ClassVar[str] = "people"
    entity: str | None
    secret: tuple[str, ...]
    public: tuple[str, ...]
    content: str
    entities: str | None
    sampled: str | None

    @property
    def of_counts(self) -> bool:
        """Whether the hash is that of a small table, and no row is read."""
        return self.content.endswith("FROM raw")


@dataclass(frozen=True)
class Solve:
    """Compute one protocol per block under the notion.

    `candidates` are the mechanisms that `auto` chooses from; with `search`, the shares are where the search
    for the best split begins. `beliefs` are the steps that beliefs are rounded outward to before anything is solved.
    """

    title: ClassVar[str] = "solve"
    notion: str
    epsilon: float
    mechanism: str
    shares: tuple[float, ...]
    candidates: tuple[str, ...] = ()
    search: bool = False
    beliefs: float | None = None


@dataclass(frozen=True)
class Pin:
    """Take the protocols of a lock and measure them at the current counts; nothing is solved.

    Over a private estimate (`noise`, its ε_est in nats) they are measured at the noisy counts that the lock pins.
    `beliefs` are the steps of beliefs that they were made from.
    """

    title: ClassVar[str] = "measure the lock"
    lock: str
    notion: str
    epsilon: float
    mechanism: str
    noise: float | None = None
    beliefs: float | None = None


@dataclass(frozen=True)
class Draw:
    """Stream the rows as codes and draw each block's released value.

    `keys` are the columns of a row's name in that stream, which is then in their order. Fresh values for rows without
    a name are drawn for the counts instead: there is no `statement` then, and no record is read again. `whose`: it has
    a hash of every row as well, and in the same reading nobody is found twice and the table's people are digested.
    `parted`: the rows of a file of the table, where the stream says of each row in which it will be.
    """

    title: ClassVar[str] = "draw"
    kind: str
    codes: tuple[str, ...]
    statement: str | None
    keys: tuple[str, ...] = ()
    whose: bool = False
    parted: int | None = None


@dataclass(frozen=True)
class Write:
    """Write the released rows, sorted by released value; or by their `keys`, which stand before all other columns.

    `sets`: blocks of unary encoding are written as one list of values ("set") or as a 0/1 column for each value
    ("bits"), under names that the values give, so that no `statement` is known yet; None where every mechanism in
    question releases plain values. Nor is there a statement where rows have keys: they come as they are drawn.
    `counted`: each distinct row stands there once, with the number of its records behind it. `partition`: the column
    whose values have folders of their own, if any, and the rows of a file; None where the table is one file.
    """

    title: ClassVar[str] = "write"
    columns: tuple[str, ...]
    types: tuple[str, ...]
    format: str
    statement: str | None
    sets: str | None = None
    keys: tuple[str, ...] = ()
    key_types: tuple[str, ...] = ()
    counted: bool = False
    partition: tuple[str | None, int] | None = None


@dataclass(frozen=True)
class Audit:
    """Check the draws against the protocol, then every claim from the files written."""

    title: ClassVar[str] = "audit"


@dataclass(frozen=True)
class Publish:
    """Make the release visible, whole, in the published folder; then the table in a database where one is named.

    Both folders by the names that they have whatever folder a run is asked from. `old` is what becomes of the table
    that stands there, None where no database is named.
    """

    title: ClassVar[str] = "publish"
    to: str
    private: str
    also: str | None = None
    old: Literal["replace", "keep"] | None = None


_ABSENT = ("noise", "keys", "whose", "key_types", "beliefs", "counted", "partition", "parted", "also", "old")
"""Fields that a plan does not tell of where they are empty."""

Stage = (
    Scan | Once | Inspect | Identify | MakeCells | Count | Name | Know | Everybody | People
    | Solve | Pin | Draw | Write | Audit | Publish
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What will be done for a policy, stage by stage; `policy_sha256` ties it to the file that was compiled.

    `once` is None where one reading would not do, `identify` where no entity is named, `cells` where no block is wide,
    `naming` where rows have no key, `know` where no promise asks for it, `everybody` where nobody can be absent from
    any release of the folder; `protect` solves, or takes the protocols of a lock.
    """

    name: str
    policy_sha256: str
    scan: Scan
    once: Once | None
    inspect: Inspect
    identify: Identify | None
    cells: MakeCells | None
    count: Count
    naming: Name | None
    know: Know | None
    everybody: Everybody | None
    people: People
    protect: Solve | Pin
    draw: Draw
    write: Write
    audit: Audit
    publish: Publish

    @property
    def may_be_read_once(self) -> bool:
        """Whether one reading can count and draw, once a lock says beforehand which values there are."""
        more = (self.know, self.everybody, self.count.noise)
        return self.draw.kind == "permanent" and not any(more)

    def reads(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Those of a source's columns that some statement may name: the same letters somewhere are enough."""
        text = json.dumps(self.as_dict(), ensure_ascii=False).casefold()
        odd = {'"', "\\"}
        return tuple(name for name in columns if name.casefold() in text or odd & set(name))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order in which they are carried out."""
        late = self.draw.whose
        counting = (self.scan, self.once, self.inspect, None if late else self.identify, self.cells, self.count,
                    self.naming, self.know, self.everybody, self.protect)  # fmt: skip
        drawing = (self.draw, self.identify, self.people) if late else (self.people, self.draw)
        told = (one for one in (*counting, *drawing) if one is not None)
        return (*told, self.write, self.audit, self.publish)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: each stage with its name and fields; nothing of noise or keys where there are none."""
        stages = [{"step": stage.title} | asdict(stage) for stage in self.stages]
        for stage in stages:
            for name in [key for key in _ABSENT if key in stage and not stage[key]]:
                del stage[name]
        return {
            "format": "funnel-plan/1",
            "name": self.name,
            "policy_sha256": self.policy_sha256,
            "steps": stages,
        }

    def text(self) -> str:
        """The JSON text that is hashed and kept as evidence."""
        return encode(self.as_dict()).decode()

    @property
    def sha256(self) -> str:
        """Hash of `text`."""
        return hashlib.sha256(self.text().encode()).hexdigest()
