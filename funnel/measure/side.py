"""Side knowledge: what is left to tell about the secret for someone who knows some of the public columns.

Attributes are columns: whoever is protected against may know any of them, whatever the blocks. Groups of records that
agree on what is known are measured many at a time: floats say which of them leaks most, whole numbers how much.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np

from funnel.data.channel import measured
from funnel.data.finer import RARE, Finer
from funnel.data.joint import FloatArray, IntArray, Joint
from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable
from funnel.data.unary import AnyProtocol
from funnel.measure import clock

NEAR = 1e-9
"""Relative width in which ratios of chances, which floats know to 1e-13, are looked at exactly."""
_AT_ONCE = 1 << 22
"""Numbers that are worked on together."""
_MOST_CODE = 1 << 40
"""A code of several columns that is counted on in this range; larger ones are numbered anew."""

Likelihoods = Mapping[int, FloatArray]
"""By block, the chance of y given s and x up to a factor of y alone, (b, c or 1, a)."""


@dataclass(frozen=True)
class Knowledge:
    """Which columns somebody may know: those of `names` (None: any), and at most so many together (None: all)."""

    names: frozenset[str] | None = None
    most: int | None = None

    def sets(self, finer: Finer) -> Iterator[tuple[int, ...]]:
        """Every set J of levels that may be known together, one a column, the empty one first."""
        by_column = finer.columns()
        for columns in self.columns(list(by_column)):
            yield from product(*(by_column[column] for column in columns))

    @classmethod
    def of(cls, knows: int | Sequence[str] | None) -> Knowledge:
        """As policies write it: so many columns together, whichever they are; or those named; or all."""
        if isinstance(knows, int):
            return cls(most=knows)
        return cls(None if knows is None else frozenset(knows))

    @property
    def all(self) -> bool:
        """Whether every set of columns may be known."""
        return self.names is None and self.most is None

    def conditions(self, sizes: Sequence[int]) -> int:
        """How many x_J there can be, of columns (or blocks) of so many values each."""
        counts = [1]
        for size in sizes:
            counts = [more + size * fewer for more, fewer in zip([*counts, 0], [0, *counts], strict=True)]
            counts = counts if self.most is None else counts[: self.most + 1]
        return sum(counts)

    def covers(self, other: Knowledge) -> bool:
        """Whether every set of columns that `other` has is one of these, whatever columns there are."""
        if self.all:
            return True
        if self.names is not None:
            return other.names is not None and other.names <= self.names
        size = other.most if other.names is None else len(other.names)
        return size is not None and size <= (self.most or 0)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Every set of columns."""
        known = [name for name in names if self.names is None or name in self.names]
        most = len(known) if self.most is None else min(self.most, len(known))
        for size in range(most + 1):
            yield from combinations(known, size)


@dataclass(frozen=True, eq=False)
class KnownRecords:
    """The records that share the values of some columns.

    `cells` (m, 1+k) and `counts` (m,) are those of the joint distribution.
    """

    cells: IntArray
    counts: IntArray

    def tells(self, index: int, protocol: AnyProtocol) -> bool:
        """Whether what a block puts out says anything here: else its x is known, and what follows from it is noise."""
        return protocol.reads_secret or len(np.unique(self.cells[:, 1 + index])) > 1


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """All groups of records that agree on some x_J, of which more than one secret value is left to tell.

    `cells` (e, 1+k) and `counts` (e,) of group g stand at `starts[g]` up to `starts[g + 1]`, of a joint distribution of
    this `shape`. A group that holds the same records as another stands there once.
    """

    shape: tuple[int, ...]
    cells: IntArray
    counts: IntArray
    starts: IntArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def one(self, group: int) -> KnownRecords:
        """The records of a group."""
        inside = slice(*self.starts[group : group + 2])
        return KnownRecords(self.cells[inside], self.counts[inside])

    def each(self) -> Iterator[KnownRecords]:
        """All of them, within the time allowed."""
        return clock.in_time(self.one(group) for group in range(len(self)))

    @cached_property
    def varying(self) -> IntArray:
        """Whether each block takes more than one value in each group (g, k), as bits of one number (g,)."""
        first, public = self.starts[:-1], self.cells[:, 1:]
        varies = np.minimum.reduceat(public, first) != np.maximum.reduceat(public, first)
        return np.asarray(varies @ (1 << np.arange(public.shape[1])), np.int64)

    def tables(
        self, sent: Likelihoods, kept: Sequence[int] = (), last: int | None = None
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Some groups (g,) and their T[s, x_kept…, y_sent…] (g, c, …) as floats, until there were all.

        What a block answers whose x is the same throughout a group is left out, unless its answers read the secret, or
        it is the `last` one.
        """
        reading = sum(1 << j for j, one in sent.items() if one.shape[1] > 1 or j == last)
        patterns = self.varying | reading
        for pattern in np.unique(patterns).tolist():
            members = np.flatnonzero(patterns == pattern)
            telling = {j: one for j, one in sent.items() if pattern >> j & 1}
            for part in np.array_split(members, self._parts(len(members), telling, kept)):
                clock.check()
                table = self._dense(part, [*kept, *telling])
                for axis, one in enumerate(telling.values(), start=2 + len(kept)):
                    table = _through(table, axis, one)
                yield part, table

    def _parts(self, groups: int, sent: Likelihoods, kept: Sequence[int]) -> int:
        """Into how many parts to divide so many groups."""
        whole = self.shape[0] * prod(self.shape[1 + j] for j in kept)
        largest = whole * prod(max(len(one), self.shape[1 + j]) for j, one in sent.items())
        return min(groups, 1 + groups * largest // _AT_ONCE)

    def _dense(self, groups: IntArray, blocks: Sequence[int]) -> FloatArray:
        """Counts N[g, s, x_j…] of some groups, over some blocks."""
        sizes = self.starts[groups + 1] - self.starts[groups]
        owner = np.repeat(np.arange(len(groups)), sizes)
        entry = np.arange(sizes.sum()) + np.repeat(self.starts[groups] - np.cumsum(sizes) + sizes, sizes)
        table = np.zeros((len(groups), self.shape[0], *(self.shape[1 + j] for j in blocks)))
        cells = self.cells[entry]
        np.add.at(table, (owner, cells[:, 0], *(cells[:, 1 + j] for j in blocks)), self.counts[entry])
        return table


@lru_cache(maxsize=4)
def side_knowledge(joint: Joint, knowledge: Knowledge, everything: bool = False) -> KnownGroups:
    """Every x_J that may be known, for every set J, the empty set first.

    Only where enough records share it, and more than one secret value occurs: else there is nothing to tell. Groups of
    which all of x is known are left out unless `everything`: then a draw that reads x alone tells no more.
    """
    seen, found = joint.known(), _Found(joint)
    for levels in knowledge.sets(seen):
        clock.check()
        found.add(seen, levels, everything=everything)
    return found.groups()


def uncovered(seen: Finer, knowledge: Knowledge) -> tuple[int, int, int]:
    """People of whom some x_J is shared by fewer than the minimum, the pairs of such a person and J, and how many J.

    J are sets of columns by their own values.
    """
    finest = {places[0] for places in seen.columns().values()}
    sets = [levels for levels in knowledge.sets(seen) if finest.issuperset(levels)]
    missed = np.zeros(len(seen.counts), np.int64)
    for levels in sets:
        known = seen.known[:, levels]
        common = (known != RARE).all(axis=1)
        owner = _numbered(known[common])
        enough = np.bincount(owner, weights=seen.counts[common]) >= (seen.minimum if levels else 0)
        missed += 1
        missed[np.flatnonzero(common)[enough[owner]]] -= 1
    return int(seen.counts[missed > 0].sum()), int(missed @ seen.counts), len(sets)


class _Found:
    """Groups as they are found, each of different records once."""

    def __init__(self, joint: Joint) -> None:
        self.shape = joint.shape
        self.parts: list[tuple[IntArray, IntArray, IntArray]] = []
        self.met: set[bytes] = set()

    def add(self, seen: Finer, levels: tuple[int, ...], *, everything: bool) -> None:
        """The groups of one set of columns."""
        known = seen.known[:, levels]
        common = (known != RARE).all(axis=1)
        owner = _numbered(known[common])
        cells, counts = seen.placed[common], seen.counts[common]
        enough = np.bincount(owner, weights=counts) >= (seen.minimum if levels else 0)
        owner, cells, counts = (one[enough[owner]] for one in (owner, cells, counts))
        if len(owner):
            self._keep(*_by_group(owner, cells, counts), everything=everything)

    def _keep(self, cells: IntArray, counts: IntArray, starts: IntArray, *, everything: bool) -> None:
        """Those in which something is left to tell, and that were not met before."""
        varies = np.minimum.reduceat(cells, starts) != np.maximum.reduceat(cells, starts)
        useful = varies[:, 0] & (varies[:, 1:].any(axis=1) | everything)
        ends = np.append(starts[1:], len(cells))
        rows = np.column_stack([cells, counts])
        for group in np.flatnonzero(useful):
            inside = slice(starts[group], ends[group])
            told = hashlib.blake2b(rows[inside].tobytes(), digest_size=24).digest()
            useful[group] = told not in self.met
            self.met.add(told)
        sizes = ends - starts
        kept = np.repeat(useful, sizes)
        self.parts.append((cells[kept], counts[kept], sizes[useful]))

    def groups(self) -> KnownGroups:
        """All of them."""
        cells = np.concatenate([np.empty((0, len(self.shape)), np.int64), *(one for one, _, _ in self.parts)])
        counts, sizes = (np.concatenate([[0][:0], *(one[k] for one in self.parts)]) for k in (1, 2))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return KnownGroups(self.shape, cells, counts.astype(np.int64), starts)


def _by_group(owner: IntArray, cells: IntArray, counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Cells and counts sorted by their groups, those of one group that are alike added up; where each group starts."""
    rows = np.column_stack([owner, cells])
    code = _numbered(rows)
    first = np.zeros(code.max() + 1, np.int64)
    first[code] = np.arange(len(code))
    total = np.zeros(len(first), np.int64)
    np.add.at(total, code, counts)
    ordered = rows[first]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:, 0] != ordered[:-1, 0]]))
    return ordered[:, 1:], total, starts


def _numbered(rows: IntArray) -> IntArray:
    """The number (m,) of each row of codes (m, w) among the distinct ones, in their order; no code is negative."""
    code, size = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        width = int(column.max(initial=0)) + 1
        if size * width > _MOST_CODE:
            size, code = _renumbered(code)
        code, size = code * width + column, size * width
    return _renumbered(code)[1]


def _renumbered(code: IntArray) -> tuple[int, IntArray]:
    """How many distinct numbers there are, and the place of each among them."""
    distinct, place = np.unique(code, return_inverse=True)
    return len(distinct), place.ravel().astype(np.int64)


def _through(table: FloatArray, axis: int, likelihood: FloatArray) -> FloatArray:
    """Replace axis x_j of T[g, s, …] by y_j."""
    moved = np.moveaxis(table, axis, -1)
    if likelihood.shape[1] == 1:
        sent: Any = moved @ likelihood[:, 0, :].T
    else:
        sent = np.stack([moved[:, s] @ likelihood[:, s, :].T for s in range(moved.shape[1])], axis=1)
    return np.asarray(np.moveaxis(sent, -1, axis))


def chances(protocol: AnyProtocol) -> FloatArray:
    """The likelihoods of a block's outputs as floats."""
    return normalised(protocol.likelihoods()[0])


def normalised(weights: Any) -> FloatArray:
    """Weights W[y, s|1, x] as floats of at most one."""
    return np.asarray((weights / max(int(weights.max()), 1)).astype(float))


def changes(table: FloatArray) -> FloatArray:
    """max over s, y and conditions of P(y|s)/P(y) or its inverse (g,), from T[g, s, conditions, y]; may be infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        given = table / table.sum(axis=3, keepdims=True)
        whole = table.sum(axis=1, keepdims=True)
        ratio = given / (whole / whole.sum(axis=3, keepdims=True))
        worst = np.fmax(ratio, 1 / ratio)
    return np.asarray(np.fmax.reduce(worst.reshape(len(table), -1), axis=1, initial=1.0))


def tables_given(
    joint: Joint, known: KnownRecords, released: Mapping[int, AnyProtocol], index: int
) -> Iterator[ExactArray]:
    """N[s, x_index] (c, a) given x_J and every combination of what other blocks put out.

    What a block puts out whose columns are all known is noise, unless its protocol reads the secret.
    """
    active = {j: protocol for j, protocol in released.items() if known.tells(j, protocol)}
    table = _released(joint, known, active, [index])
    flat = table.reshape(len(table), table.shape[1], -1)
    for y in range(flat.shape[2]):
        one = flat[:, :, y]
        if (one.any(axis=1)).sum() > 1:
            yield one


def released_given(joint: Joint, known: KnownRecords, protocols: Sequence[AnyProtocol]) -> ReleasedTable:
    """T[s, y…] given x_J, over the blocks whose outputs say anything; (c,) where none does."""
    active = {j: one for j, one in enumerate(protocols) if known.tells(j, one)}
    if len(active) == 1:
        ((block, single),) = active.items()
        return single.released(_counted(joint, known, [block]))
    return _released(joint, known, active, [])


def _released(joint: Joint, known: KnownRecords, active: Mapping[int, AnyProtocol], kept: list[int]) -> ExactArray:
    """Counts over (s, x_kept…, y_active…) of the records known."""
    table = _counted(joint, known, [*kept, *active])
    return measured(table, dict(enumerate(active.values(), start=1 + len(kept))))


def _counted(joint: Joint, known: KnownRecords, blocks: Sequence[int]) -> IntArray:
    """Counts N[s, x_j…] of the records known, over some blocks."""
    table = np.zeros((len(joint.secret), *(len(joint.blocks[j]) for j in blocks)), np.int64)
    np.add.at(table, (known.cells[:, 0], *(known.cells[:, 1 + j] for j in blocks)), known.counts)
    return table
