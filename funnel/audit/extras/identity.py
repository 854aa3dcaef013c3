"""Of which table and people a release is, worked out again from its digest and those of the releases before it.

The ledger composes what was drawn from the same columns about the same people. Which these are it says itself: a
version for each column, a numbering for people. Here the digests are compared once more, person by person, as
`funnel.ledger.identity` describes it; what its entry, and the manifest, say is assumed has to follow from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from funnel.audit.extras.base import Release
from funnel.audit.extras.parts import archived
from funnel.audit.kernel.files import content, parsed, sha256
from funnel.audit.kernel.verdict import Broken, Unchecked, agree
from funnel.format import counts, people
from funnel.format.counts import CountsFile
from funnel.format.journal import NAME, Drawn, Identity, ReleaseEntry, Seen
from funnel.format.manifest import Assumed
from funnel.format.people import PeopleFile
from funnel.format.protocol import ProtocolFile

CLAIM = "ledger-identity"
TITLE = "the columns and people that the ledger takes for those of earlier releases are so, as far as digests show"
PRIVATE = True
_FEW, _MOVED, _OTHER = 20, 0.1, "other"
Text = str | None


def check(opened: Release) -> str | Unchecked:
    """The entry's versions, numbering and assumptions follow from the digests. Raises Broken."""
    *before, entry = opened.entries
    own = Night(opened, entry, opened.protocol)
    if own.people is None:
        raise Broken(people.NAME, "the digest is not there", "people.json", None)
    fits(opened, own.people)
    earlier = [Night(opened, one, archived(opened, one)) for one in reversed(before)]
    private = opened.terms.estimate.kind == "private"
    numbered, since, assumes, seen = (Named if private else Compared)(own, earlier).found()
    told = entry.identity
    identity = Identity(own.people.table, own.people.content, told.people_sha256, numbered, assumes, seen)
    try:
        agree(NAME, [
            *((f"identity.{key}", value, vars(told)[key]) for key, value in vars(identity).items()),
            ("versions of columns", since, [one.since for one in entry.drawn]),
        ])  # fmt: skip
    except Broken:
        if all(one.people is not None for one in earlier):
            raise
        return Unchecked("digests of earlier releases are not kept any more")
    people_seen = "" if seen is None else f", {seen.people:.2%} of the sample were in {seen.since}"
    return f"assumes {' and '.join(assumes) or 'nothing'}{people_seen}"


def fits(opened: Release, file: PeopleFile) -> None:
    """A digest is of the columns and records that were counted. Raises Broken."""
    columns = tuple(chain.from_iterable(opened.manifest.public))
    words, below = [row[0] for row in file.sample], 1 << (63 - file.bits)
    sizes = list(map(len, file.labels))
    agree(people.NAME, [
        ("entity", opened.terms.entity, file.entity),
        ("columns", (opened.manifest.sensitive, columns), (file.secret, file.public)),
        ("words", True, words == sorted(set(words)) and all(one < below for one in words)),
        ("codes", True, len(sizes) == len(file.secret) + len(columns) and all(
            len(row) == len(sizes) + 1 and all(code < size for code, size in zip(row[1:], sizes, strict=True))
            for row in file.sample)),
    ])  # fmt: skip
    if opened.manifest.locked or opened.counts.private is not None:
        return
    if file.entity is None and opened.terms.missing == "drop":
        return  # the digest is of all rows that the filter lets in, of which some are left out
    agree(people.NAME, [("rows", opened.records.rows, file.rows)])
    kept = Counter[Hashable](tuple(labels[code] for labels, code in zip(file.labels, row[1:], strict=True))
                             for row in file.sample)  # fmt: skip
    counted = Counter[Hashable]()
    for values, number in opened.by_label().items():
        counted[tuple(chain.from_iterable(values))] += number
    if kept - counted or (not file.bits and file.entity is not None and kept != counted):
        raise Broken(people.NAME, "the sample is not of the records counted", "values that they have", "others")


@dataclass(frozen=True, eq=False)
class Night:
    """A release of the ledger, with what its evidence and protocol say of it."""

    opened: Release
    entry: ReleaseEntry
    protocol: ProtocolFile | None

    @cached_property
    def people(self) -> PeopleFile | None:
        """The digest; None where it is gone. Raises Broken where it is not the one that was entered."""
        own = self.entry.release == self.opened.manifest.release
        path = (self.opened.folder if own else self.opened.root / self.entry.release) / people.NAME
        if not path.is_file():
            return None
        raw = content(path)
        if sha256(raw) != self.entry.identity.people_sha256:
            what = f"this is not the digest of {self.entry.release} that was entered"
            raise Broken(people.NAME, what, self.entry.identity.people_sha256, sha256(raw))
        return parsed(PeopleFile, people.NAME, raw)

    @cached_property
    def counts(self) -> CountsFile | None:
        """The counts; None where they are gone."""
        own = self.entry.release == self.opened.manifest.release
        path = (self.opened.folder if own else self.opened.root / self.entry.release) / counts.NAME
        return parsed(CountsFile, counts.NAME, content(path)) if path.is_file() else None

    def block(self, columns: tuple[str, ...], base: tuple[str, ...]) -> int | None:
        """The place of a block of such columns."""
        return next(
            (i for i, one in enumerate(self.entry.drawn) if (one.columns, one.base) == (columns, base)), None
        )

    def inputs(self, place: int) -> set[tuple[Text, ...]] | None:
        """The values of a block that have chances; None where the protocol is gone."""
        return None if self.protocol is None else set(self.protocol.blocks[place].inputs)

    def named(self, column: str) -> set[Text]:
        """The values of one column that have chances."""
        blocks = self.protocol.blocks if self.protocol else ()
        return {x[one.columns.index(column)] for one in blocks if column in one.columns for x in one.inputs}

    def versions(self) -> set[tuple[str, str, str]]:
        """Every column with its base and version."""
        return {
            part for one in self.entry.drawn for part in zip(one.columns, one.base, one.since, strict=True)
        }

    def spread(self, column: str) -> Counter[Hashable] | None:
        """Records by secret and value of a column."""
        if self.counts is None:
            return None
        for place, block in enumerate(self.counts.blocks):
            if column in block.columns:
                at, found = block.columns.index(column), Counter[Hashable]()
                for s, *x, number in self.counts.cells:
                    found[self.counts.secret.values[s], block.values[x[place]][at]] += number
                return found
        return None


class Pair:
    """Two digests: what each person in both samples had in tonight's and in the earlier one."""

    def __init__(self, own: Night, then: Night, files: tuple[PeopleFile, PeopleFile]) -> None:
        self.nights, self.files = (own, then), files
        below = 1 << (63 - max(one.bits for one in files))
        self.rows = [{row[0]: row[1:] for row in one.sample if row[0] < below} for one in files]
        self.both = sorted(self.rows[0].keys() & self.rows[1].keys())

    def values(
        self, side: int, word: int, columns: Iterable[str], *, secret: bool = False
    ) -> tuple[Text, ...]:
        """What one person had."""
        file, row = self.files[side], self.rows[side][word]
        start = [0, len(file.secret)][not secret]
        places = [start + (file.secret if secret else file.public).index(name) for name in columns]
        return tuple(file.labels[place][row[place]] for place in places)

    def drawn(self, side: int, word: int, columns: Iterable[str]) -> tuple[Text, ...]:
        """What one person was drawn for."""
        named = [
            (self.known(side, name), value)
            for name, value in zip(columns, self.values(side, word, columns), strict=True)
        ]
        return tuple(_OTHER if value not in known and _OTHER in known else value for known, value in named)

    def known(self, side: int, column: str) -> set[Text]:
        """The values of a column that had a chance on one night."""
        if (side, column) not in self._known:
            self._known[side, column] = self.nights[side].named(column)
        return self._known[side, column]

    @cached_property
    def _known(self) -> dict[tuple[int, str], set[Text]]:
        return {}

    def kept(self, column: str) -> list[bool] | None:
        """Of each person, whether the value is the same: one without a name was drawn for as `other`."""
        if not all(column in one.public for one in self.files):
            return None
        found = []
        for word in self.both:
            values = [self.values(side, word, [column])[0] for side in (0, 1)]
            pooled = [self.drawn(side, word, [column])[0] == _OTHER for side in (0, 1)]
            lost = [values[1 - side] not in self.known(side, column) for side in (0, 1)]
            found.append(values[0] == values[1] or any(map(all, zip(pooled, lost, strict=True))))
        return found

    def secrets(self, side: int) -> list[tuple[Text, ...]]:
        """What they hide."""
        return [self.values(side, word, self.files[side].secret, secret=True) for word in self.both]

    @property
    def comparable(self) -> bool:
        """Whether both digests are about one secret."""
        return self.files[0].secret == self.files[1].secret

    @cached_property
    def same_secret(self) -> bool:
        """Whether most have the secret that they had."""
        mine, theirs = self.secrets(0), self.secrets(1)
        return self.comparable and _most([a == b for a, b in zip(mine, theirs, strict=True)], mine)

    @cached_property
    def same_people(self) -> bool:
        """Whether identifiers are the same people's: enough are in both, and not all that is known of them is new."""
        if not self.both or 2 * len(self.both) < min(map(len, self.rows)):
            return False
        if not self.comparable or self.same_secret:
            return True
        judged = [(self.kept(name), name) for name in self.files[0].public]
        return any(
            kept is not None and _most(kept, [self.values(0, w, [name]) for w in self.both])
            for kept, name in judged
        )

    def same_column(self, column: str) -> bool:
        """Whether most of those who have a value and a secret had the value before."""
        kept, mine = self.kept(column), self.secrets(0)
        groups = (
            [(s, self.drawn(0, word, [column])) for s, word in zip(mine, self.both, strict=True)]
            if kept is not None
            else []
        )
        return kept is not None and _most(kept, groups)

    def new(self, block: Drawn, values: set[tuple[Text, ...]], known: set[tuple[Text, ...]]) -> bool:
        """Whether most of those who have each of these values were not drawn for before."""
        holders = Counter[Hashable](), Counter[Hashable]()
        for word in self.rows[0]:
            label = self.drawn(0, word, block.columns)
            holders[0][label] += 1
            holders[1][label] += word in self.rows[1] and self.drawn(1, word, block.columns) in known
        return all(0 < holders[0][one] >= 2 * holders[1][one] for one in values)

    def seen(self) -> Seen:
        """How many are in both, and how many of these have the same values in all columns of both."""
        kept = [one for name in self.files[0].public if (one := self.kept(name)) is not None]
        same = sum(all(one[place] for one in kept) for place in range(len(self.both)))
        shares = [
            round(len(self.both) / max(len(self.rows[0]), 1), 4),
            round(same / max(len(self.both), 1), 4),
        ]
        return Seen(self.nights[1].entry.release, shares[0], shares[1] if self.both else None)

    def all_same(self, columns: Sequence[str]) -> bool:
        """Whether all people are in both samples with the same values in some columns, and with the same secret."""
        if any(one.bits for one in self.files) or self.rows[0].keys() != self.rows[1].keys():
            return False
        if not all(name in one.public for one in self.files for name in columns):
            return False
        if self.comparable and self.secrets(0) != self.secrets(1):
            return False
        return all(self.values(0, word, columns) == self.values(1, word, columns) for word in self.both)


class Compared:
    """A release against those before it, the latest first."""

    def __init__(self, own: Night, earlier: Sequence[Night]) -> None:
        self.own, self.earlier, self._pairs = own, earlier, dict[str, Pair | None]()

    def pair(self, night: Night) -> Pair | None:
        """The two digests, where they can be compared."""
        if night.entry.release not in self._pairs:
            files = self.own.people, night.people
            self._pairs[night.entry.release] = None
            if files[0] and files[1] and files[0].key == files[1].key and files[0].entity and files[1].entity:
                self._pairs[night.entry.release] = Pair(self.own, night, (files[0], files[1]))
        return self._pairs[night.entry.release]

    def found(self) -> tuple[str, list[tuple[str, ...]], tuple[Assumed, ...], Seen | None]:
        """Numbering, versions, what is assumed, and the overlap."""
        self.numbered = self._numbered()
        since = [
            tuple(self._since(one, place) for place in range(len(one.columns)))
            for one in self.own.entry.drawn
        ]
        here = {
            part
            for one, versions in zip(self.own.entry.drawn, since, strict=True)
            for part in zip(one.columns, one.base, versions, strict=True)
        }
        relevant = [one for one in self.earlier if here & one.versions()]
        return self.numbered, since, self._assumes(relevant), self._seen(relevant)

    def _numbered(self) -> str:
        content = self.own.entry.identity.content
        for night in self.earlier:
            if night.entry.identity.content == content:
                return night.entry.identity.numbered
        tried = set[str]()
        for night in self.earlier:
            name = night.entry.identity.numbered
            if name not in tried and (both := self.pair(night)) is not None:
                tried.add(name)
                if both.same_people:
                    return name
        return self.own.entry.release

    def _since(self, mine: Drawn, place: int) -> str:
        column, base = mine.columns[place], mine.base[place]
        versions = dict[str, list[Night]]()
        for night in self.earlier:
            for name, hashed, since in (
                part
                for one in night.entry.drawn
                for part in zip(one.columns, one.base, one.since, strict=True)
            ):
                if (name, hashed) == (column, base):
                    versions.setdefault(since, []).append(night)
        for since, nights in versions.items():
            fitting = [one for one in nights if one.block(mine.columns, mine.base) is not None] or nights
            last = next((one for one in fitting if one.people is not None or self._same_rows(one)), None)
            if last is not None and self._same(last, mine, column):
                return since
        return self.own.entry.release

    def _same(self, night: Night, mine: Drawn, column: str) -> bool:
        both = self.pair(night)
        if both is not None and night.entry.identity.numbered == self.numbered:
            if mine.reads is not None and not both.same_secret:
                return False
            return both.same_column(column) and self._known(night, mine, both)
        if self._same_rows(night):
            return True
        told, own = night.entry.identity, self.own.entry.identity
        now, then = self.own.spread(column), night.spread(column)
        if told.table != own.table or now is None or then is None:
            return False
        moved = sum(
            abs(now[cell] / now.total() - then[cell] / then.total()) for cell in now.keys() | then.keys()
        )
        return moved <= 2 * _MOVED and self._known(night, mine, None)

    def _same_rows(self, night: Night) -> bool:
        """Whether the two tables are one, as the ledger has it: also where a digest is gone."""
        return night.entry.identity.content == self.own.entry.identity.content

    def _known(self, night: Night, mine: Drawn, both: Pair | None) -> bool:
        """Whether nobody has a value now that the earlier protocol had no chances for, but new people."""
        place, own = night.block(mine.columns, mine.base), self.own.entry.drawn.index(mine)
        if place is None or night.entry.drawn[place].meaning != mine.base:
            return True
        then, now = night.inputs(place), self.own.inputs(own) or set()
        if then is None or now <= then:
            return True
        return both is not None and both.new(mine, now - then, then)

    def _assumes(self, relevant: Sequence[Night]) -> tuple[Assumed, ...]:
        columns = [name for one in self.own.entry.drawn for name in one.columns]
        open_ = [one for one in relevant if not self._shown(one, columns)]
        key, numbered = self.own.entry.key_fingerprint, self.numbered
        again = key and any(
            (one.entry.key_fingerprint, one.entry.identity.numbered) == (key, numbered) for one in open_
        )
        found: list[Assumed] = ["identifiers unchanged"] if again else []
        hidden = any(one.entry.present and not self._left_out_alike(one.entry) for one in self.earlier)
        hidden = hidden or any(one.together.how == "repeated" for one in self.own.entry.promises)
        return tuple([*found, "values unchanged", "comings and goings tell nothing"] if open_ or hidden else [])

    def _left_out_alike(self, other: ReleaseEntry) -> bool:
        """Whether the rows are the same, let in by the same predicate: no digest is of those who were left out."""
        own = self.own.entry
        if other.present is None or own.present is None:
            return False
        same = other.present.predicate == own.present.predicate
        return same and other.identity.content == own.identity.content

    def _shown(self, night: Night, columns: Sequence[str]) -> bool:
        if self.own.people is None or self.own.people.entity is None:
            return False
        if night.entry.identity.content == self.own.entry.identity.content:
            return True
        both = self.pair(night)
        return both is not None and both.all_same(columns)

    def _seen(self, relevant: Sequence[Night]) -> Seen | None:
        nights = (one for one in relevant if one.entry.identity.numbered == self.numbered)
        pairs = (self.pair(one) for one in nights)
        return next((one.seen() for one in pairs if one is not None), None)


class Named(Compared):
    """Over a private estimate nothing may follow from tonight's rows: tables of one name are taken for the same."""

    def pair(self, night: Night) -> None:
        """Nobody is compared."""

    def _numbered(self) -> str:
        return self._first(self.earlier, lambda one: one.entry.identity.numbered)

    def _since(self, mine: Drawn, place: int) -> str:
        name, base = mine.columns[place], mine.base[place]
        told = {id(one): {part[:2]: part[2] for part in one.versions()} for one in self.earlier}
        having = [one for one in self.earlier if (name, base) in told[id(one)]]
        return self._first(having, lambda one: told[id(one)][name, base])

    def _first(self, nights: Iterable[Night], of: Callable[[Night], str]) -> str:
        table = self.own.entry.identity.table
        return next((of(one) for one in nights if one.entry.identity.table == table), self.own.entry.release)

    def _shown(self, night: Night, columns: Sequence[str]) -> bool:
        return False


def _most(kept: Sequence[bool], groups: Sequence[Hashable]) -> bool:
    """Whether half of each group kept something, all groups of few people being one."""
    size = Counter(groups)
    good = Counter(group for group, same in zip(groups, kept, strict=True) if same)
    few = [group for group in size if size[group] < _FEW]
    large = all(2 * good[group] >= size[group] for group in size if size[group] >= _FEW)
    return large and 2 * sum(good[group] for group in few) >= sum(size[group] for group in few)
