"""Whether columns, values and identifiers of earlier releases are tonight's, as far as private digests show it.

What the ledger composes takes x for what earlier releases drew from. That is so where a column is of the same table and
its values mean the same, and where an identifier is the same person. Both are a promise of the source; what speaks
against it is looked for here, in a sample of people that is the same ones every night (`funnel.format.people`):

- Identifiers are other people's where fewer than half of the smaller sample are in the other one, or where secret and
  columns are others for most of them. Then nothing is known of how permanent draws go together, and x itself bounds
  them.
- A column is another one where most of those who have a value now, and share a secret, had another value then (where
  they are few, all such few count as one group); or where most who have a value that the earlier protocol did not know
  were drawn for then, as another value; or where both digests know people, and nobody can be compared: the key of their
  words is another one, or one sample has none of the other's. Where rows are nobody's, it is the same in a table of the
  same name with counts that hardly moved, and not otherwise.

Over a private estimate nothing that is published or said may follow from tonight's rows but through noise. So nothing
is looked for there: tables of one name are taken for the same, and every figure says that it takes that for granted.

A column that is another one begins a version of its own, named by its first release, and identifiers a numbering. Draws
of other versions are no function of tonight's values. So it is with the secret: counts by tonight's say nothing of what
releases tell about another one that was called alike.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from funnel.format.journal import Drawn, Seen
from funnel.format.manifest import Assumed
from funnel.format.people import PeopleFile
from funnel.ledger.nights import Night, Shared

MOVED = 0.1
"""Of all records, the part that may have moved from one night to the other where nobody can be compared."""
UNCHANGED: tuple[Assumed, ...] = ("values unchanged", "comings and goings tell nothing")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Identified:
    """What the earlier releases are to tonight's: its numbering and versions, and what its figures assume."""

    numbered: str
    secret: str
    since: tuple[tuple[str, ...], ...]
    assumes: tuple[Assumed, ...]
    seen: Seen | None


def identify(
    tonight: Night, earlier: Sequence[Night], *, blind: bool = False, finer: bool = False
) -> Identified:
    """Compare a release with those before it, oldest first; `blind` by the names of their tables alone.

    `finer`: others may know values that are finer than those released, which only the hash of all rows is of.
    `numbered`, `since` and `hidden` of `tonight` are not looked at.
    """
    return (_ByName if blind else _Comparison)(tonight, earlier, finer=finer).found()


def least_assumed(
    tonight: Night, earlier: Sequence[Night], numbered: str, since: Sequence[Sequence[str]], *,
    blind: bool = False, finer: bool = False,
) -> tuple[Assumed, ...]:  # fmt: skip
    """What a release of such a numbering and such versions assumes of some earlier ones: of more, it is no less."""
    found = (_ByName if blind else _Comparison)(tonight, earlier, finer=finer)
    return found.assumed(numbered, since)


class _Comparison:
    def __init__(self, tonight: Night, earlier: Sequence[Night], *, finer: bool) -> None:
        self.tonight, self.latest, self.finer = tonight, list(reversed(earlier)), finer
        self.known = dict[str, Shared | None]()
        self.entire = dict[str, bool]()
        """By the SHA-256 of an earlier digest: whether it shows all people and values to be the same."""

    def shared(self, night: Night) -> Shared | None:
        """The people of both; None where one of the two digests is lost, or they are of other entities or keys.

        Nor can anybody be compared where a sample has no words that the other one, of more people, would have.
        """
        if night.release not in self.known:
            own = self.tonight.digest
            file = None if own is None or own.entity is None else night.digest
            self.known[night.release] = None
            if own and file and _alike(own, file):
                both = Shared(self.tonight, night, (own, file))
                self.known[night.release] = both if all(both.sizes) else None
        return self.known[night.release]

    def _apart(self, night: Night) -> bool:
        """Whether both digests know people, and nobody in them can be compared: like counts show nothing then."""
        own, then = self.tonight.digest, night.digest
        known = own is not None and then is not None and None not in (own.entity, then.entity)
        return known and self.shared(night) is None

    def found(self) -> Identified:
        """Numbering first: by it versions are told."""
        numbered = self._numbered()
        since = tuple(
            tuple(self._since(one, place, numbered) for place in range(len(one.columns)))
            for one in self.tonight.drawn
        )
        relevant = [night for night in self.latest if self._relevant(night, since)]
        secret, assumes = self._secret(numbered), self._assumes(relevant, numbered)
        return Identified(numbered, secret, since, assumes, self._seen(relevant, numbered))

    def assumed(self, numbered: str, since: Sequence[Sequence[str]]) -> tuple[Assumed, ...]:
        """What no digest shows of those that drew from tonight's columns, by a numbering and versions that are told."""
        return self._assumes([night for night in self.latest if self._relevant(night, since)], numbered)

    def _numbered(self) -> str:
        """The first release with the same identifiers; tonight's where none has."""
        same = next((night for night in self.latest if night.content == self.tonight.content), None)
        if same is not None:
            return same.numbered
        for nights in _by(self.latest, lambda one: one.numbered):
            both = next((one for night in nights if (one := self.shared(night)) is not None), None)
            if both is not None and both.same_people:
                return both.nights[1].numbered
        return self.tonight.release

    def _secret(self, numbered: str) -> str:
        """The version of the secret, of which the last release that can be compared shows the same."""
        having = [night for night in self.latest if night.secret == self.tonight.secret]
        for nights in _by(having, lambda one: one.hidden):
            last = next((one for one in nights if one.content == self.tonight.content or one.digest), None)
            if last is not None and self._same_secret(last, numbered):
                return last.hidden
        return self.tonight.release

    def _same_secret(self, night: Night, numbered: str) -> bool:
        """Whether the secret of an earlier release is tonight's."""
        both = self.shared(night)
        if both is not None and night.numbered == numbered:
            return both.same_secret
        if night.content == self.tonight.content:
            return True
        if self._apart(night):
            return False
        tables = self.tonight.hides(), night.hides()
        close = tables[0] is not None and tables[1] is not None and moved(tables[0], tables[1]) <= MOVED
        return night.table == self.tonight.table and close

    def _since(self, mine: Drawn, place: int, numbered: str) -> str:
        """The version of a column: the first of which the last release that can be compared shows the same."""
        name, base = mine.columns[place], mine.base[place]
        having = [(night, one[0].since[one[1]]) for night in self.latest if (one := night.column(name, base))]
        for pairs in _by(having, lambda pair: pair[1]):
            alike = [night for night, _ in pairs if self._block(night, mine) is not None]
            fitting = alike or [night for night, _ in pairs]
            last = next((one for one in fitting if one.content == self.tonight.content or one.digest), None)
            if last is not None and self._same(last, mine, name, numbered):
                return pairs[0][1]
        return self.tonight.release

    @staticmethod
    def _block(night: Night, mine: Drawn) -> Drawn | None:
        return next(
            (one for one in night.drawn if (one.columns, one.base) == (mine.columns, mine.base)), None
        )

    def _same(self, night: Night, mine: Drawn, name: str, numbered: str) -> bool:
        """Whether a column of an earlier release is tonight's."""
        both = self.shared(night)
        if both is not None and night.numbered == numbered:
            read = mine.reads is None or both.same_secret
            return read and both.same_values(name) and self._known(night, mine, both)
        if night.content == self.tonight.content:
            return True
        if self._apart(night):
            return False
        tables = self.tonight.count(name), night.count(name)
        close = tables[0] is not None and tables[1] is not None and moved(tables[0], tables[1]) <= MOVED
        return night.table == self.tonight.table and close and self._known(night, mine, None)

    def _known(self, night: Night, mine: Drawn, both: Shared | None) -> bool:
        """Whether all values of a block had a protocol then, or are of people who were not there."""
        block = self._block(night, mine)
        if block is None or block.meaning != block.base:
            return True
        named = [one for other, one in zip(night.drawn, night.named, strict=True) if other is block]
        own = [
            one for other, one in zip(self.tonight.drawn, self.tonight.named, strict=True) if other is mine
        ]
        if named[0] is None or own[0] is None or own[0] <= named[0]:
            return True
        return both is not None and both.new_people(mine, own[0] - named[0], named[0])

    def _relevant(self, night: Night, since: Sequence[Sequence[str]]) -> bool:
        """Whether a release drew from a column of tonight's."""
        here = {
            column
            for one, versions in zip(self.tonight.drawn, since, strict=True)
            for column in zip(one.columns, one.base, versions, strict=True)
        }
        return any(here & {*zip(one.columns, one.base, one.since, strict=True)} for one in night.drawn)

    def _assumes(self, relevant: Sequence[Night], numbered: str) -> tuple[Assumed, ...]:
        """What no digest shows of them; where one night does not show it, those before it need not be read."""
        key = self.tonight.permanent
        again = [key is not None and (one.permanent, one.numbered) == (key, numbered) for one in relevant]
        if any(asked and not self._shown(night) for night, asked in zip(relevant, again, strict=True)):
            return ("identifiers unchanged", *UNCHANGED)
        rest = (night for night, asked in zip(relevant, again, strict=True) if not asked)
        # What they had who are absent is in no digest, nor whether those who are absent now were there.
        hidden = bool(self.latest) and any(night.present is not None for night in (self.tonight, *self.latest))
        return UNCHANGED if hidden or any(not self._shown(night) for night in rest) else ()

    def _shown(self, night: Night) -> bool:
        """Whether all people and values are the same. Rows that are nobody's may be the same with values traded."""
        own = self.tonight.digest
        if own is None or own.entity is None:
            return False
        if night.content == self.tonight.content:
            return True
        if self.finer:
            return False
        if night.sha256 not in self.entire and (both := self.shared(night)) is not None:
            self.entire[night.sha256] = both.entire([name for one in self.tonight.drawn for name in one.columns])
        return self.entire.get(night.sha256, False)

    def _seen(self, relevant: Sequence[Night], numbered: str) -> Seen | None:
        """The last of them that can be compared."""
        for night in relevant:
            if night.numbered == numbered and (both := self.shared(night)) is not None:
                return both.seen()
        return None


class _ByName(_Comparison):
    """What can be said without a look at who is in the tables."""

    def shared(self, night: Night) -> None:
        """Nobody."""

    def _numbered(self) -> str:
        return next((one.numbered for one in self.latest if one.table == self.tonight.table), self.tonight.release)

    def _secret(self, numbered: str) -> str:
        having = (one for one in self.latest if one.secret == self.tonight.secret)
        return next((one.hidden for one in having if one.table == self.tonight.table), self.tonight.release)

    def _since(self, mine: Drawn, place: int, numbered: str) -> str:
        having = ((one, one.column(mine.columns[place], mine.base[place])) for one in self.latest)
        named = (found for one, found in having if one.table == self.tonight.table and found is not None)
        return next((block.since[there] for block, there in named), self.tonight.release)

    def _shown(self, night: Night) -> bool:
        return False


def moved(now: Mapping[Any, int], then: Mapping[Any, int]) -> float:
    """The part of all records that cannot have stayed where it was: the total variation of two tables."""
    total = [max(sum(one.values()), 1) for one in (now, then)]
    cells = now.keys() | then.keys()
    return sum(abs(now.get(one, 0) / total[0] - then.get(one, 0) / total[1]) for one in cells) / 2


def _alike(one: PeopleFile, other: PeopleFile) -> bool:
    """Whether the words of two digests can be compared: whatever the column is called, a number is a number."""
    return one.key == other.key and None not in (one.entity, other.entity)


def _by(items: Sequence[T], key: Callable[[T], object]) -> Iterator[list[T]]:
    """In groups, each where its first is."""
    found: dict[object, list[T]] = {}
    for one in items:
        found.setdefault(key(one), []).append(one)
    yield from found.values()
