"""What it tells in which releases a record is, together with what those release, worked out from population.json.

A record is in the releases whose predicates hold of it: its pattern p. Of a notion that is a worst case over outputs,
the channel that releases (p, y) leaks what the worst of these channels leaks, one for each p: records of another
pattern have a value `elsewhere` in every block, which is released as it is. Each of its outputs is (p, y) or a sum of
outputs (p', y'); a sum of outputs moves no odds further than one of its parts does; and every (p, y) is an output of
the channel of p. Of an average, I(S;P,Y) = I(S;P) + Σ P(p) I(S;Y|p).
Where answers are only bounded, each within one p, what p tells by itself is added to the most of these bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import prod

import numpy as np
import numpy.typing as npt

from funnel.audit.extras.base import Release
from funnel.audit.extras.overlaps import TooLarge
from funnel.audit.extras.parts import DrawnBlock
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.exact import MOST_CELLS, ExactArray, IntArray
from funnel.audit.kernel.notions import NOTIONS, Leakage, information
from funnel.audit.kernel.records import Block
from funnel.audit.kernel.verdict import Broken, agree
from funnel.data.alphabet import folded
from funnel.engine.expressions import ExpressionError, parse
from funnel.engine.sql import BLANKS, identifier, literal
from funnel.format import population, terms
from funnel.format.fields import Alphabet, Label
from funnel.format.journal import NAME, Present, Promise
from funnel.format.manifest import Absent, Parameters
from funnel.format.population import People, PopulationFile
from funnel.format.terms import TermsFile
from funnel.policy.terms import leaves_out

Flags = npt.NDArray[np.bool_]
ELSEWHERE: Label = ("elsewhere",)


@dataclass(frozen=True)
class PromiseTerms:
    """About which secret people are asked, and by which notion; `own`: as the release itself promises."""

    notion: str
    parameters: Parameters
    sensitive: tuple[str, ...]
    own: bool = False

    @classmethod
    def of(cls, opened: Release) -> PromiseTerms:
        """What a release promises."""
        one = opened.manifest
        return cls(one.notion, one.parameters, one.sensitive, own=True)

    @classmethod
    def by(cls, one: Promise) -> PromiseTerms:
        """What another policy promised."""
        return cls(one.notion, one.parameters, one.together.sensitive)


class HistoryChannel(Channel):
    """What several releases tell: where that is too much to be measured, no file is at fault."""

    @property
    def table(self) -> ExactArray:
        """As of any channel. Raises TooLarge where it is not small."""
        if not self.is_small:
            raise TooLarge
        return super().table


@dataclass(frozen=True, eq=False)
class Ground:
    """Records that figures are about: N[s, x_1, …, x_k] over alphabets, and what is asked of them."""

    release: Release
    asked: PromiseTerms
    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    table: IntArray

    @classmethod
    def of(cls, opened: Release, asked: PromiseTerms) -> Ground:
        """The records of a release, asked about its own secret."""
        return cls(opened, asked, opened.counts.secret, opened.counts.blocks, opened.table)

    def channel(self, blocks: Sequence[Block]) -> Channel:
        """These records through some protocols."""
        if self.asked.own and self.table is self.release.table:
            one = self.release.channel
            return HistoryChannel(one.counts, tuple(blocks), one.parameters, one.certificate, one.possible, one.known)
        return HistoryChannel(self.table, tuple(blocks), self.asked.parameters)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Records that are in the same releases: rows (m,) of the people, tonight's release or not, and earlier draws.

    `ground` is None where they are in no release.
    """

    rows: Flags
    here: bool
    earlier: tuple[DrawnBlock, ...]
    ground: Ground | None


class Everybody:
    """The people of population.json by the secret that is asked about, who counts them all once."""

    def __init__(self, opened: Release, file: PopulationFile, asked: PromiseTerms) -> None:
        self.opened, self.file, self.asked = opened, file, asked
        found = [one for one in file.people if one.secret.columns == asked.sensitive]
        columns = [[one.columns for one in each.blocks] for each in found]
        own = [one.columns for one in opened.counts.blocks]
        agree(population.NAME, [(f"columns of people by {', '.join(asked.sensitive)}", [own], columns)])
        self.people: People = found[0]
        width = 1 + len(self.people.blocks)
        rows = np.array(self.people.cells, np.int64).reshape(len(self.people.cells), width + 2)
        self.codes, self.bits, self.number = rows[:, :width], rows[:, -2], rows[:, -1]

    def holds(self, predicate: str | None) -> Flags | None:
        """Of whom (m,) a predicate holds; None where nobody knows."""
        if predicate is None:
            return np.ones(len(self.number), bool)
        if predicate not in self.file.predicates:
            return None
        return (self.bits >> self.file.predicates.index(predicate)) & 1 > 0

    def named(self) -> Flags:
        """Who has a value of the release in every block (m,)."""
        found = np.ones(len(self.number), bool)
        for axis, (own, block) in enumerate(zip(self.people.blocks, self.opened.counts.blocks, strict=True), start=1):
            known = np.array([False, *(value in set(block.values) for value in own.values)], bool)
            found &= known[self.codes[:, axis]]
        return found

    def present(self) -> Flags:
        """Who is in the release (m,). Raises Broken where its own predicate is not counted by."""
        held = self.holds(self.file.own)
        if held is None:
            what = "its own predicate is none of those counted"
            raise Broken(population.NAME, what, self.file.predicates, self.file.own)
        return held & self.named()

    def known(self, own: Sequence[DrawnBlock], earlier: Sequence[DrawnBlock]) -> list[Flags] | None:
        """Who (m,) is in the release, and in that of each earlier draw; None where that is not known of all."""
        flags = [self.holds(one.who) for one in (own[0], *earlier)]
        known = [one for one in flags if one is not None]
        if len(known) < len(flags):
            return None
        known = [flag & self._asked(own, one) for flag, one in zip(known, (own[0], *earlier), strict=True)]
        return [known[0] & self.named(), *known[1:]]

    def patterns(self, known: Sequence[Flags], earlier: Sequence[DrawnBlock]) -> list[Pattern] | None:
        """Everybody by the releases that they are in; None where that is not known of all."""
        found = list[Pattern]()
        for kind in sorted({tuple(row) for row in np.column_stack(known).tolist()}):
            rows = np.logical_and.reduce([flag == told for flag, told in zip(known, kind, strict=True)])
            draws = tuple(one for one, there in zip(earlier, kind[1:], strict=True) if there)
            asked = kind[0] or bool(draws)
            if asked and (self.codes[rows, 1:] == 0).any():
                return None
            found.append(Pattern(rows, kind[0], draws, self._ground(rows, here=kind[0]) if asked else None))
        return found

    def _asked(self, own: Sequence[DrawnBlock], one: DrawnBlock) -> Flags:
        """Who (m,) was not left out of a draw's release because a lock did not know a value, in any of its blocks."""
        found = np.ones(len(self.number), bool)
        for axis, (block, mine) in enumerate(zip(self.people.blocks, own, strict=True), start=1):
            for other in one.beside if one.drops else ():
                if (other.columns, other.meaning) == (mine.columns, mine.meaning) and other.known is not None:
                    asked = other.known
                    found &= np.array([True, *(value in asked for value in block.values)])[self.codes[:, axis]]
        return found

    def _ground(self, rows: Flags, *, here: bool) -> Ground:
        """The records of some rows, over the values of the release or those that they have."""
        blocks, codes = list[Alphabet](), [self.codes[rows, 0]]
        for axis, own in enumerate(self.people.blocks, start=1):
            seen = sorted({own.values[code - 1] for code in self.codes[rows, axis].tolist()}, key=own.values.index)
            block = self.opened.counts.blocks[axis - 1] if here else Alphabet(own.columns, tuple(seen))
            place = {value: code for code, value in enumerate(block.values)}
            codes.append(np.array([place[own.values[code - 1]] for code in self.codes[rows, axis].tolist()], np.int64))
            blocks.append(block)
        shape = (len(self.people.secret.values), *(len(one.values) for one in blocks))
        if prod(shape) > MOST_CELLS:
            raise OverflowError
        table = np.zeros(shape, np.int64)
        np.add.at(table, tuple(codes), self.number[rows])
        return Ground(self.opened, self.asked, self.people.secret, tuple(blocks), table)

    def ground(self) -> Ground:
        """The records of the release. Raises Broken, OverflowError."""
        return self._ground(self.present(), here=True)

    def where(self, patterns: Sequence[Pattern]) -> IntArray:
        """N[s, p]."""
        table = np.zeros((len(self.people.secret.values), len(patterns)), np.int64)
        for place, one in enumerate(patterns):
            np.add.at(table[:, place], self.codes[one.rows, 0], self.number[one.rows])
        return table

    def told(self, patterns: Sequence[Pattern]) -> Leakage | None:
        """What the pattern tells by itself; None where no finite bound is shown."""
        notion, table = self.asked.notion, self.where(patterns)
        if notion == "ldp-x":
            return self._between_people(patterns)
        if notion == "srlip":
            return self._to_who_knows(patterns)
        return None if notion == "rldp" else NOTIONS[notion].leakage(self._as_it_is(table))

    def _as_it_is(self, table: IntArray) -> Channel:
        """The last axis released as it is, those between in silence."""
        *silent, last = [
            Block(axis, (f"{axis}",), tuple((str(code),) for code in range(size)), 0, np.ones((1, 1, size), np.int64))
            for axis, size in enumerate(table.shape[1:])
        ]
        shown = replace(last, weights=np.eye(table.shape[-1], dtype=np.int64)[:, None, :])
        return HistoryChannel(table, (*silent, shown), replace(self.asked.parameters, knows=None))

    def _between_people(self, patterns: Sequence[Pattern]) -> Leakage | None:
        """Between any two combinations of s and x that occur."""
        codes = self._whole(patterns)
        if codes is None:
            return None
        kinds, code = np.unique(codes, axis=0, return_inverse=True)
        table = np.zeros((len(kinds), len(patterns)), np.int64)
        for place, one in enumerate(patterns):
            mine = one.rows[_union(patterns)]
            np.add.at(table[:, place], code.ravel()[mine], self.number[one.rows])
        return NOTIONS["ldp"].leakage(self._as_it_is(table))

    def _to_who_knows(self, patterns: Sequence[Pattern]) -> Leakage | None:
        """To those who know public columns: LIP given every x_J."""
        shape = (len(self.people.secret.values), *(len(one.values) for one in self.people.blocks), len(patterns))
        if self._whole(patterns) is None or prod(shape) > MOST_CELLS:
            return None
        if self.asked.parameters.knows is not None:
            return None
        table = np.zeros(shape, np.int64)
        for place, one in enumerate(patterns):
            s, *x = self.codes[one.rows].T
            np.add.at(table[..., place], (s, *(code - 1 for code in x)), self.number[one.rows])
        return NOTIONS["srlip"].leakage(self._of_columns(table))

    def _whole(self, patterns: Sequence[Pattern]) -> IntArray | None:
        """The codes of all in some patterns; None where some value has no label."""
        codes = self.codes[_union(patterns)]
        return None if (codes[:, 1:] == 0).any() else codes

    def _of_columns(self, table: IntArray) -> Channel:
        """The same with the blocks' own columns and values, which say what may be known."""
        channel = self._as_it_is(table)
        *silent, last = channel.blocks
        known = [
            replace(one, columns=own.columns, inputs=own.values)
            for one, own in zip(silent, self.people.blocks, strict=True)
        ]
        return replace(channel, blocks=(*known, last))

    def average(self, patterns: Sequence[Pattern], within: Sequence[Channel | None]) -> Leakage:
        """I(S;P) + Σ P(p) I(S;Y|p)."""
        found, rows = information(self.where(patterns)), int(self.number[_union(patterns)].sum())
        for one, channel in zip(patterns, within, strict=True):
            if channel is not None:
                found += Fraction(int(self.number[one.rows].sum()), rows) * information(channel.table)
        return Leakage(f"{float(found):.6f}", lambda bound: found <= bound)

    def apart(self, patterns: Sequence[Pattern], one: Pattern, channel: Channel) -> Channel:
        """The channel of a pattern's records, with those of the others elsewhere."""
        whole, own = self.where([replace(one, rows=_union(patterns))]), self.where([one])
        table = np.pad(channel.counts, [(0, 0), *((0, 1) for _ in channel.counts.shape[1:])])
        table.reshape(len(table), -1)[:, -1] = (whole - own)[:, 0]
        return replace(channel, counts=table, blocks=tuple(map(_elsewhere, channel.blocks)))


def _union(patterns: Sequence[Pattern]) -> Flags:
    """The rows (m,) of some patterns together."""
    rows: Flags = np.logical_or.reduce([one.rows for one in patterns])
    return rows


def _elsewhere(block: Block) -> Block:
    """A protocol with one more value, which is released as it is."""
    outputs, secrets, inputs = block.weights.shape
    weights = np.zeros((outputs + 1, secrets, inputs + 1), block.weights.dtype)  # of Python's integers, where large
    weights[:-1, :, :-1] = block.weights
    weights[-1, :, -1] = 1 << block.bits
    return replace(block, inputs=(*block.inputs, ELSEWHERE * len(block.columns)), weights=weights)


def check_predicate(opened: Release, place: str, told: str | None) -> None:
    """It lets in whom the terms do: of whom the filter holds and, with `missing: drop`, no used column is missing.

    In which way values are missing goes by the types of columns, which the files do not tell. Raises Broken.
    """
    asked, drops = opened.terms, opened.terms.missing == "drop"
    try:
        own = None if told is None else parse(told)
        kept = None if asked.filter is None else parse(asked.filter)
    except ExpressionError as error:
        raise Broken(place, "who is in the release is told by no predicate", "a condition", str(error)) from None
    if own is None or not drops:
        fits = (own and own.sql) == (kept and kept.sql) and not (own is None and drops)
    else:
        columns = (one.name for block in (*asked.public, *(wide.columns for wide in asked.wide)) for one in block)
        used = {*map(folded, chain(asked.sensitive, columns))} - {folded(one.name) for one in asked.wide}
        # Among other conditions a conjunction has no parentheses of its own.
        begins = ("(",) if kept is None else (f"({kept.sql} AND ", f"{kept.sql[:-1]} AND ")
        begin = next((one for one in begins if own.sql.startswith(one)), None)
        present = {name: _present(name) for name in own.columns if folded(name) in used}
        fits = begin is not None and used == _named(own.sql[len(begin) : -1], present)
    if not fits:
        raise Broken(place, "the predicate of who is in the release is not the policy's", asked.filter, told)


def _present(column: str) -> tuple[str, ...]:
    """Each condition that a column may have which is not missing, in canonical text."""
    name = identifier(column)
    ways = f"{name} IS NOT NULL", f"NOT isnan({name})", f"trim({name}, {literal(BLANKS)}) <> ''"
    return tuple(parse(one).sql for one in ways)


def _named(sql: str, present: Mapping[str, Sequence[str]]) -> set[str] | None:
    """The columns that a conjunction has to be `present`, each somehow; None where it says anything else."""
    found, rest = set[str](), sql + " AND "
    while rest:
        heads = ((name, f"{one} AND ") for name, ways in present.items() for one in ways)
        name, head = next((each for each in heads if rest.startswith(each[1])), ("", ""))
        if not head:
            return None
        found.add(folded(name))
        rest = rest[len(head) :]
    return found


def leaving_out(asked: TermsFile, *, locked: bool) -> Absent | None:
    """Whom such terms leave out. Raises Broken where the filter is none."""
    try:
        return leaves_out(asked, locked=locked)
    except ExpressionError as error:
        raise Broken(terms.NAME, "the filter is none", "a condition", str(error)) from None


def entered(opened: Release, people: Everybody | None, told: Present | None) -> None:
    """What the entry says of who is absent is what was counted, and what the filter reads. Raises Broken."""
    stated = leaving_out(opened.terms, locked=opened.entries[-1].lock is not None)
    if told is not None and told.predicate is not None:
        check_predicate(opened, NAME, told.predicate)
    agree(NAME, [("sensitive columns of the filter", () if stated is None else stated.secret, told.secret)]
          if told else [])  # fmt: skip
    if people is None:
        # Whom nobody counted the entry has absent all the same, for filter and missing values leave out whom they do.
        out = stated is not None and bool({"filter", "missing"} & {*stated.by})
        said = told is not None and told.predicate is not None
        what = "that some may be absent, of whom nobody counted how many"
        agree(NAME, [(what, (out, None), (said, told and told.absent))])
        return
    held, present = people.holds(people.file.own), people.present()
    total, inside = int(people.number.sum()), int(people.number[present].sum())
    unseen = 0 if held is None else int(people.number[held].sum()) - inside
    found = None if total == inside else (people.file.own, unseen, total - inside)
    agree(NAME, [("who is present", found, told and (told.predicate, told.unseen, told.absent))])
