"""What releases tell together where they leave people out: of each record also in which of them it is.

A record answers with the pattern p of the releases that it is in, and with what those release. With N[s, x, p] the
records of the whole source,

    P(p, y | s) = P(p | s) P(y | s, p),     P(p, y) = P(p) P(y | p),

and P(y | s, p) is the channel of the releases in p over the records of pattern p alone.

exact   T[s, (p, y)], the tables of all patterns side by side with one denominator, is the table of a channel, measured
        like any other.
sum     Every ratio of a worst case is a product of one of the pattern and one of the answers within it, each of which
        is bounded by itself; and I(S;P,Y) = I(S;P) + Σ P(p) I(S;Y|p). So what all tell is at most what the pattern
        tells and the most that is told within one.

Readers know these distributions of the whole source, or, of somebody whom they know to be in some release, those of its
table: the figure is that of the worst of them, for N is of all records, or of those in one of the releases. Who knows
more of who is where knows more than that.

Which pattern a record has is known where each predicate can be evaluated tonight, on the values that it has tonight,
which are those of the one table that all releases are of (`unlike`). Where one cannot, or a record was in a release
under a value that tonight's rules have no name for, no finite bound is known. A lock that leaves out values it does not
know is no predicate: there the answer is that some value is unknown, in whichever block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, lcm
from typing import Literal, Protocol

import numpy as np

from funnel.data import Alphabet, AnyProtocol, Joint
from funnel.data.channel import MAX_CELLS, released_table
from funnel.data.finer import added_up
from funnel.data.joint import IntArray
from funnel.data.population import NO_LABEL, Flags, Population
from funnel.data.sending import ExactArray
from funnel.data.subsets import Subsets
from funnel.ledger.records import DrawRecord
from funnel.ledger.stated import own_figure
from funnel.measure.exact import rational
from funnel.measure.figures import round_up
from funnel.measure.leakage import AnyLeakage
from funnel.notions import Notion

Way = Literal["exact", "ceiling", "sum"]
Figure = tuple[float | None, Way]
"""A bound in nats, None where none is known, and how it was found."""
_PATTERN = "the releases that somebody is in"


class Inside(Protocol):
    """What the releases of one pattern tell about its records."""

    def best(self) -> Figure:
        """The smallest bound."""

    def channel(self) -> list[AnyProtocol] | None:
        """What all of them release of each block, as one protocol; None where that is not known exactly."""


History = Callable[[Joint, bool, Sequence[DrawRecord]], Inside]
"""From records, whether tonight's release has them, and the earlier draws for them."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Records (a population's `rows`, (m,)) that are in the same releases; `inside` is None where they are in none."""

    rows: Flags
    joint: Joint | None
    inside: Inside | None

    @cached_property
    def bound(self) -> float | None:
        """The most that their releases tell about them, in nats; None where no finite bound is known."""
        return 0.0 if self.inside is None else self.inside.best()[0]

    @cached_property
    def answers(self) -> ExactArray | None:
        """T[s, y] (c, b) of the records; None where it cannot be listed, and where they are in no release."""
        blocks = None if self.inside is None else self.inside.channel()
        if blocks is None or self.joint is None:
            return None
        table = released_table(self.joint, blocks)
        return None if isinstance(table, Subsets) else table.reshape(len(table), -1)


def is_absent(draws: Sequence[DrawRecord]) -> bool:
    """Whether some release leaves somebody out."""
    return any(one.present is not None for one in draws)


def with_absence(
    notion: Notion,
    joint: Joint,
    own: Sequence[DrawRecord],
    earlier: Sequence[DrawRecord],
    everybody: Population | None,
    history: History,
) -> Figure:
    """The leakage of a release over `joint` and of `earlier` ones, about all whom the source has.

    It is no less than what they tell to those who know already that somebody is in one of them. The figure is None
    where no finite bound is known.
    """
    if everybody is None or (notion.between_values and _uncounted(own, earlier)):
        # Of two values of another column, or of one inside a cell, nobody knows how they go with who is absent.
        return None, "sum"
    known = _present(joint, own, earlier, everybody)
    found = None if known is None else patterns(joint, known, earlier, everybody, history)
    if known is None or found is None:
        return None, "sum"
    readers = {rows.tobytes(): rows for rows in (np.ones(len(everybody.counts), bool), *known) if rows.any()}
    figures = [_Divided(notion, everybody, rows, found).best() for rows in readers.values()]
    return max(figures, key=lambda one: inf if one[0] is None else one[0])


def _uncounted(own: Sequence[DrawRecord], earlier: Sequence[DrawRecord]) -> bool:
    """Whether some columns are inside cells, or earlier draws were from such, by what their values mean, as none of
    tonight's is."""
    here, before = (
        {pair for one in draws for pair in zip(one.columns, one.meaning, strict=True)} for draws in (own, earlier)
    )
    return bool(before - here) or any(one.inside for one in own)


def _present(
    joint: Joint, own: Sequence[DrawRecord], earlier: Sequence[DrawRecord], everybody: Population
) -> list[Flags] | None:
    """Who (m,) is in the release, and in that of each earlier draw; None where that is not known of all."""
    flags = [everybody.holds(one.present.predicate if one.present else None) for one in (own[0], *earlier)]
    known = [one for one in flags if one is not None]
    if len(known) < len(flags):
        return None
    known = [flag & _asked(everybody, own, one) for flag, one in zip(known, (own[0], *earlier), strict=True)]
    return [known[0] & everybody.named(joint.blocks), *known[1:]]


def patterns(
    joint: Joint,
    known: Sequence[Flags],
    earlier: Sequence[DrawRecord],
    everybody: Population,
    history: History,
) -> list[Pattern] | None:
    """Everybody by the releases that they are in; None where not all in one have a label."""
    kinds, kind = np.unique(np.column_stack(known), axis=0, return_inverse=True)
    found = list[Pattern]()
    for place, (here, *there) in enumerate(kinds.tolist()):
        rows = kind.ravel() == place
        draws = [one for one, present in zip(earlier, there, strict=True) if present]
        if not here and not draws:
            found.append(Pattern(rows, None, None))
            continue
        if (everybody.cells[rows] == NO_LABEL).any():
            return None
        inside = everybody.among(rows, joint.blocks if here else None)
        found.append(Pattern(rows, inside, history(inside, here, draws)))
    return found


def _asked(everybody: Population, own: Sequence[DrawRecord], one: DrawRecord) -> Flags:
    """Who (m,) has values that all blocks of a draw's release knew, as far as tonight's labels say so."""
    found = np.ones(len(everybody.counts), bool)
    for mine, block, codes in zip(own, everybody.blocks, everybody.cells[:, 1:].T, strict=True):
        for columns, meaning, labels in one.asks:
            if (columns, meaning) == (mine.columns, mine.meaning):
                # The last one is of those without a label: under which value they were there, if any, nobody knows.
                found &= np.array([*(value in labels for value in block.values), True])[codes]
    return found


def who_is_in(one: DrawRecord) -> object:
    """Equal for draws of releases that the same records are in, as far as a ledger tells."""
    return None if one.present is None else (one.present.predicate, one.present.unseen > 0)


@dataclass(frozen=True, eq=False)
class _Divided:
    """Some of a population (`rows`, (m,)), divided into those of the `every` patterns that they have."""

    notion: Notion
    everybody: Population
    rows: Flags
    every: list[Pattern]

    @cached_property
    def patterns(self) -> list[Pattern]:
        """Theirs; each is theirs as a whole, or not at all."""
        return [one for one in self.every if self.rows[one.rows].any()]

    def best(self) -> Figure:
        """The smallest bound as a figure, and how it was found."""
        found, exact = list[tuple[float, Way]](), self._exact()
        if exact is not None and (figure := own_figure(exact, self.notion)) is not None:
            found.append((figure, "exact"))
        if not found:
            found += self._sum()
        if (most := self.notion.most(self._where)) is not None:
            found.append((round_up(most.nats), "ceiling"))
        if not found:
            return None, "sum" if exact is None else "exact"
        return min(found, key=lambda one: one[0])

    @cached_property
    def _code(self) -> IntArray:
        """The pattern of every row."""
        code: IntArray = np.argmax(np.stack([one.rows[self.rows] for one in self.patterns]), axis=0)
        return code

    @cached_property
    def _names(self) -> Alphabet:
        return Alphabet((_PATTERN,), tuple((str(place),) for place in range(len(self.patterns))))

    @cached_property
    def _where(self) -> Joint:
        """N[s, p]."""
        return self._with([])

    @property
    def _whole(self) -> Joint | None:
        """N[s, x_1, …, x_k, p]; None where some value has no label."""
        axes = range(len(self.everybody.blocks))
        return None if (self.everybody.cells[self.rows] == NO_LABEL).any() else self._with(axes)

    def _with(self, axes: Sequence[int]) -> Joint:
        """The records by the secret, some blocks, and the pattern."""
        one = self.everybody
        codes = np.column_stack([one.cells[self.rows][:, [0, *(1 + axis for axis in axes)]], self._code])
        blocks = (*(one.blocks[axis] for axis in axes), self._names)
        return Joint(one.secret, blocks, *added_up(codes, one.counts[self.rows]), complete=False)

    def _exact(self) -> AnyLeakage | None:
        """The channel of patterns and answers, measured; None where it is too large, or the notion asks for more."""
        found = list[ExactArray]()
        for place, one in enumerate(self.patterns):
            table = self._where.table()[:, place : place + 1] if one.joint is None else one.answers
            if table is None or sum(part.size for part in found) + table.size > MAX_CELLS:
                return None
            found.append(table)
        records = self._where.table().sum(axis=0).tolist()
        return self.notion.of_answers(side_by_side(found, records))

    def _sum(self) -> Iterator[tuple[float, Way]]:
        """What the pattern tells, and the most that is told within one."""
        told = self.notion.of_absence(self._where, self._whole)
        if told is None or told.nats == inf:
            return
        within = [one.bound for one in self.patterns]
        finite = [one for one in within if one is not None]
        if len(finite) == len(within):
            yield round_up(float(rational(told.nats) + rational(max(finite)))), "sum"


def side_by_side(tables: Sequence[ExactArray], records: Sequence[int]) -> ExactArray:
    """Tables T_p[s, y] (c, b_p), each a multiple of so many records, as one (c, Σ b_p) with one denominator."""
    exact = [table.astype(object) for table in tables]
    times = [int(table.sum()) // number for table, number in zip(exact, records, strict=True)]
    whole = lcm(*times)
    found = np.concatenate([table * (whole // own) for table, own in zip(exact, times, strict=True)], axis=1)
    return found.astype(np.int64) if int(found.sum()).bit_length() <= 62 else found
