"""What is known of each night that released something, and what two digests show of the people of both nights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from funnel.data import AnyProtocol
from funnel.data.alphabet import OTHER, Label
from funnel.data.joint import IntArray
from funnel.format.journal import Drawn, Present, Seen
from funnel.format.people import BITS, PeopleFile

Flags = npt.NDArray[np.bool_]
Table = Mapping[tuple[Label, str | None], int]
"""Records by secret and value of one column."""
FEW = 20
"""People who share secret and value from which on they are judged by themselves, and not with the other few."""
SECRET = Fraction(3, 4)
"""Of those with a value of the secret, the part who had it before, where it is the same column."""


@dataclass(frozen=True, eq=False)
class Night:
    """A release as its identity goes: its blocks, with the `protocol` of each, and its digest, `people`.

    `sha256` is the hash of that file. `present` says who is in it, None where that is everybody.
    Either is None where it is lost. `permanent` is the fingerprint of the key of permanent draws. `count` gives the
    records by secret and value of a column, None where they are not known. `secret` are the columns that it hides, of
    the version `hidden`.
    """

    release: str
    drawn: Sequence[Drawn]
    protocol: Callable[[], Sequence[AnyProtocol] | None]
    permanent: str | None
    numbered: str
    table: str
    content: str
    people: Callable[[], PeopleFile | None]
    sha256: str
    count: Callable[[str], Table | None]
    secret: tuple[str, ...]
    hidden: str
    present: Present | None = None

    @cached_property
    def digest(self) -> PeopleFile | None:
        """people.json."""
        return self.people()

    @cached_property
    def named(self) -> list[frozenset[Label] | None]:
        """The values of each block that have a protocol."""
        kept = self.protocol() or (None,) * len(self.drawn)
        return [None if one is None else frozenset(one.inputs.values) for one in kept]

    def column(self, name: str, base: str) -> tuple[Drawn, int] | None:
        """The block that a column of this name and with these values is in, and its place there."""
        for one in self.drawn:
            if (name, base) in zip(one.columns, one.base, strict=True):
                return one, one.columns.index(name)
        return None

    def hides(self) -> Counter[Label] | None:
        """Records by secret; None where they are not known."""
        table = self.count(self.drawn[0].columns[0])
        if table is None:
            return None
        found = Counter[Label]()
        for (secret, _), number in table.items():
            found[secret] += number
        return found

    def values(self, name: str) -> frozenset[str | None]:
        """The values of a column that have a protocol."""
        found = set[str | None]()
        for one, named in zip(self.drawn, self.named, strict=True):
            if name in one.columns:
                found.update(label[one.columns.index(name)] for label in named or ())
        return frozenset(found)


class Shared:
    """The people who are in the samples of tonight's digest and an earlier one, as far as both go."""

    def __init__(self, tonight: Night, earlier: Night, files: tuple[PeopleFile, PeopleFile]) -> None:
        self.nights, self.files = (tonight, earlier), files
        below = 1 << (BITS - max(one.bits for one in files))
        rows = [np.array([row for row in one.sample if row[0] < below], np.int64) for one in files]
        self.rows = [one.reshape(len(one), 1 + len(file.labels)) for one, file in zip(rows, files, strict=True)]
        words = [one[:, 0] for one in self.rows]
        self.sizes = [len(one) for one in words]
        _, *self.places = np.intersect1d(words[0], words[1], assume_unique=True, return_indices=True)

    def __len__(self) -> int:
        return len(self.places[0])

    def texts(
        self, side: int, name: str, *, secret: bool = False, every: bool = False
    ) -> list[str | None] | None:
        """What those shared (or `every` one of a side) have in a column; None where that is not in the digest."""
        file = self.files[side]
        columns = file.secret if secret else file.public
        if name not in columns:
            return None
        place = columns.index(name) + (0 if secret else len(file.secret))
        rows = self.rows[side] if every else self.rows[side][self.places[side]]
        return [file.labels[place][code] for code in rows[:, place + 1].tolist()]

    def drawn(self, side: int, name: str, texts: Sequence[str | None]) -> list[str | None]:
        """The values that they were drawn for: those without a name as `other`, where that is one."""
        named = self.nights[side].values(name)
        return [OTHER if one not in named and OTHER in named else one for one in texts]

    def kept(self, name: str) -> Flags | None:
        """Whether people had the same value of a public column; None where it cannot be compared."""
        found = [self.texts(side, name) for side in (0, 1)]
        if found[0] is None or found[1] is None:
            return None
        sides = [self.drawn(side, name, texts) for side, texts in enumerate(found) if texts is not None]
        named = [night.values(name) for night in self.nights]
        return np.array(
            [
                now == then
                or (was == OTHER and now not in named[1])
                or (is_now == OTHER and then not in named[0])
                for now, then, is_now, was in zip(*found, *sides, strict=True)
            ],
            bool,
        )

    def secrets(self, side: int) -> list[Label]:
        """The values of the secret that they have on one side."""
        columns = [self.texts(side, name, secret=True) or [] for name in self.files[side].secret]
        return list(zip(*columns, strict=True))

    def secret_kept(self) -> Flags | None:
        """Whether people had the same secret; None where it is another one."""
        if self.files[0].secret != self.files[1].secret:
            return None
        return np.array(
            [now == then for now, then in zip(self.secrets(0), self.secrets(1), strict=True)], bool
        )

    @cached_property
    def same_people(self) -> bool:
        """Whether identifiers mean the same people."""
        if 2 * len(self) < min(self.sizes) or not len(self):
            return False
        judged = {name: self.kept(name) for name in self.files[0].public}
        if self.secret_kept() is None or self.same_secret:
            return True
        return any(
            kept is not None and mostly(kept, self.texts(0, name) or []) for name, kept in judged.items()
        )

    @cached_property
    def same_secret(self) -> bool:
        """Whether three in four of those with each secret had it before: of two values half have it by chance."""
        kept = self.secret_kept()
        return kept is not None and mostly(kept, self.secrets(0), SECRET)

    def same_values(self, name: str) -> bool:
        """Whether most of those who share a value and a secret had that value."""
        kept, now = self.kept(name), self.texts(0, name)
        if kept is None or now is None:
            return False
        return mostly(kept, list(zip(self.secrets(0), self.drawn(0, name, now), strict=True)))

    def new_people(self, block: Drawn, values: frozenset[Label], known: frozenset[Label]) -> bool:
        """Whether each of these values is mostly of people who were not drawn for before, for `known` values."""
        now = self._labels(0, block, every=True)
        then = self._labels(1, block, every=False)
        drawn = np.zeros(len(now), bool)
        drawn[self.places[0]] = [label in known for label in then]
        for value in values:
            has = np.array([label == value for label in now], bool)
            if not has.any() or 2 * int((has & drawn).sum()) > int(has.sum()):
                return False
        return True

    def _labels(self, side: int, block: Drawn, *, every: bool) -> list[Label]:
        columns = [
            self.drawn(side, name, self.texts(side, name, every=every) or []) for name in block.columns
        ]
        return list(zip(*columns, strict=True))

    def seen(self) -> Seen:
        """In shares of tonight's sample, and of those who were in the earlier one."""
        judged = [self.secret_kept(), *map(self.kept, self.files[0].public)]
        columns = [kept for kept in judged if kept is not None]
        every = np.logical_and.reduce([np.ones(len(self), bool), *columns])
        people = round(len(self) / max(self.sizes[0], 1), 4)
        return Seen(self.nights[1].release, people, round(float(every.mean()), 4) if len(self) else None)

    def entire(self, names: Sequence[str]) -> bool:
        """Whether all people are in both samples, and have the same values in these columns, and of one secret."""
        whole = not any(file.bits for file in self.files) and self.sizes == [len(self), len(self)]
        secret = self.secret_kept()
        whole = whole and (secret is None or bool(secret.all()))
        found = [[self.texts(side, name) for side in (0, 1)] for name in names]
        return whole and all(one is not None and one == other for one, other in found)


def mostly(kept: Flags, groups: Sequence[object], part: Fraction = Fraction(1, 2)) -> bool:
    """Whether in each group at least a part kept something, half of it; groups of few people count as one."""
    codes = np.array(
        [*map({one: code for code, one in enumerate(dict.fromkeys(groups))}.get, groups)], np.int64
    )
    size: IntArray = np.bincount(codes)
    good: IntArray = np.bincount(codes[kept], minlength=len(size))
    few = size < FEW
    good, size = good * part.denominator, size * part.numerator
    return bool((good[~few] >= size[~few]).all() and good[few].sum() >= size[few].sum())
