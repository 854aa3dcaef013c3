"""Unbiased figures about groups of records, within blocks and across them, from the published files alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from funnel.analyst.axes import Measure, axis_of, keyed, lifted, only
from funnel.analyst.domain import Domain, Factor, columns_in, named
from funnel.analyst.figures import Figure, Flag, Tabulated, coarsened, ratio, total
from funnel.analyst.opened import Data
from funnel.data.alphabet import Label
from funnel.data.joint import FloatArray
from funnel.errors import ReleaseError
from funnel.measure.functionals import Functional, Inverted, Tally, tabulated
from funnel.release.reading import GROUPS, MOST_TABULATED, WORK

MODEL = (
    "columns inside cells are read by what cells.json says of each cell, in which values that it does not list are "
    "others, and which is pooled, fitted and rounded: how far that is off, and how columns go together beyond it, is "
    "not in the release, and in no error"
)


@dataclass(frozen=True)
class Question:
    """What is asked: figures of the records `where` a condition holds, for each group `by` the values of columns.

    Always their number; and sums, means and shares (conditions).
    """

    by: tuple[str, ...] = ()
    where: str | None = None
    sums: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All expressions."""
        return (*((self.where,) if self.where is not None else ()), *self.sums, *self.means, *self.shares)


def tabulate(data: Data, question: Question, confidence: float) -> Tabulated:
    """Figures for each group. Raises ReleaseError: `question` for what the release cannot answer."""
    asked = _Query(data, question)
    figures = [one for group in asked.groups for one in asked.figures(group, confidence)]
    manifest = data.manifest
    notes = *((MODEL,) if asked.modelled else ()), *coarsened(manifest, asked.names)
    return Tabulated(manifest.release, manifest.rows, confidence, asked.by, question.where, tuple(figures), notes)


def covariances(data: Data, question: Question) -> FloatArray:
    """Of the same figures in the same order, (f, f); NaN where one is unknown. Raises as `tabulate` does."""
    asked = _Query(data, question)
    found = [asked.linear(group, measure) for group in asked.groups for measure in asked.measures]
    asked.bear(len(found) ** 2)
    table = np.full((len(found), len(found)), np.nan)
    for i, one in enumerate(found):
        for j, other in enumerate(found[: i + 1]):
            if one is not None and other is not None:
                table[i, j] = table[j, i] = asked.tally.covariance(one, other)
    return table


class _Query:
    """A question worked out on the fine values that its columns take."""

    def __init__(self, data: Data, question: Question) -> None:
        self.by = tuple(dict.fromkeys(named(one, data.columns, "by") for one in question.by))
        self.names = names = [*self.by, *columns_in(question.texts, data.columns)]
        keys = [key for key in data.keys if key in names]
        blocks = [
            (place, own) for place, block in enumerate(data.blocks)
            if (own := [name for name in block.columns if name in names])
        ]  # fmt: skip
        labels, rows = data.weighted(keys)
        fine = [data.blocks[place].fine(own) for place, own in blocks]
        kinds = {key.name: key.type for key in data.manifest.identify}
        parts = [Factor(tuple(keys), tuple(labels), tuple(kinds[key] for key in keys))] if keys else []
        parts += [
            Factor(one.columns, one.values, tuple(data.blocks[place].types[name] for name in one.columns))
            for (place, _), one in zip(blocks, fine, strict=True)
        ]
        self.measures = list(_measures(Domain(parts), question))
        self.modelled = any(data.blocks[place].inner.intersection(own) for place, own in blocks)
        answers = [rows[:, 1 + place] for place, _ in blocks]
        told = zip(blocks, parts[len(parts) - len(blocks) :], answers, fine, strict=True)
        axes = [axis_of(data.blocks[place], part, seen, one.chances, self.by) for (place, _), part, seen, one in told]
        if keys:
            axis, self.measures, code = keyed(parts[0], self.measures, self.by)
            axes, answers = [axis, *axes], [code[rows[:, 0]], *answers]
        self._axes = axes
        places = [np.searchsorted(axis.codes, seen) for axis, seen in zip(axes, answers, strict=True)]
        self._face = data.blocks[blocks[0][0]].face if len(axes) == 1 and blocks else None
        sizes = [len(axis.codes) for axis in axes]
        if self._face is not None:
            places, sizes = answers, [len(self._face.weights)]
        if prod(sizes) * max(1, len(self.measures)) > MOST_TABULATED:
            raise _too_much(prod(sizes))
        codes = np.column_stack(places) if places else np.zeros((len(rows), 0), np.int64)
        self._counts = tabulated(codes, rows[:, -1], sizes)
        self.groups = list(self._groups())
        self.bear(len(self.groups))

    @property
    def tally(self) -> Tally:
        """All answers, undone for functions of the values of whole blocks."""
        return Tally(self._counts, self._face or Inverted([axis.inverse for axis in self._axes]))

    def bear(self, times: int) -> None:
        """Refuse what would take too long. Raises ReleaseError."""
        if self._counts.size * times > WORK:
            raise _too_much(self._counts.size * times)

    def figures(self, group: tuple[int, ...], confidence: float) -> Iterator[Figure]:
        """Those of one group."""
        label = self._label(group)
        for one in self.measures:
            known = self._known(group, one)
            if known is not None:
                yield Figure(label, one.name, known, 0.0, known, known, None)
                continue
            found = Figure(label, one.name, *self._figure(group, one, confidence))
            yield replace(found, flag="modelled") if self.modelled and found.flag is None else found

    def linear(self, group: tuple[int, ...], measure: Measure) -> Functional | None:
        """A total as a function; a ratio as the function that it moves with, near what it is."""
        above = self._whole(group, measure.above)
        if self._known(group, measure) is not None:
            return Functional(above, np.full(self._counts.shape, above.flat[0]))
        if measure.below is None:
            return self.tally.functional(above)
        below = self._whole(group, measure.below)
        over, under = self.tally.functional(above), self.tally.functional(below)
        if over is None or under is None or (number := self.tally.total(under)) <= 0:
            return None
        return self.tally.functional((above - self.tally.total(over) / number * below) / number)

    def _figure(
        self, group: tuple[int, ...], measure: Measure, confidence: float
    ) -> tuple[float | None, float | None, float | None, float | None, Flag | None]:
        tally, (above, *below) = self._of(group, [measure.above, *([] if measure.below is None else [measure.below])])
        if below and not below[0].any():
            return None, None, None, None, "nothing fits"
        if not below and not above.any():
            return 0.0, 0.0, 0.0, 0.0, None if self._fits(group) else "nothing fits"
        over = tally.functional(above)
        if over is None:
            return None, None, None, None, "unknown"
        if not below:
            rows, each = float(self._counts.sum()), measure.above
            least, most = rows * min(float(each.min()), 0.0), rows * max(float(each.max()), 0.0)
            swing, variance = tally.swing(over.c), tally.covariance(over, over)
            return total(tally.total(over), variance, least, most, confidence, over.most, swing)
        under = tally.functional(below[0])
        if under is None:
            return None, None, None, None, "unknown"
        spread = (tally.covariance(over, over), tally.covariance(under, under), tally.covariance(over, under))
        a, b = tally.total(over), tally.total(under)
        swing = tally.swing(over.c - a / b * under.c) if b > 0 else 0.0
        return ratio(a, b, spread, confidence, under.most, measure.span, swing)

    def _known(self, group: tuple[int, ...], measure: Measure) -> float | None:
        """A total to which every record adds the same, whatever it holds, and so one without error; None of another."""
        if measure.below is not None:
            return None
        held = self._held(group, measure.above)
        each = float(held.flat[0])
        return each * float(self._counts.sum()) if each and (held == each).all() else None

    def _fits(self, group: tuple[int, ...]) -> bool:
        """Whether some value of the group is meant."""
        return bool(self._whole(group, self.measures[0].above).any())

    def _of(self, group: tuple[int, ...], functions: Sequence[FloatArray]) -> tuple[Tally, list[FloatArray]]:
        """A tally, and functions of fine values as it takes them: those of the group, and zero elsewhere."""
        if self._face is not None:
            return self.tally, [self._whole(group, one) for one in functions]
        inside = [np.flatnonzero(axis.group == own) for axis, own in zip(self._axes, group, strict=True)]
        inverses = [
            axis.inverse if axis.lift is not None else only(axis.inverse, own)
            for axis, own in zip(self._axes, inside, strict=True)
        ]
        lifts = [None if axis.lift is None else axis.lift[own] for axis, own in zip(self._axes, inside, strict=True)]
        own = [lifted(one[np.ix_(*inside)], lifts) for one in functions]
        return Tally(self._counts, Inverted(inverses)), own

    def _whole(self, group: tuple[int, ...], function: FloatArray) -> FloatArray:
        """A function of fine values, zero outside the group, as one of the values that the whole tally knows."""
        return lifted(self._held(group, function), [axis.lift for axis in self._axes])

    def _held(self, group: tuple[int, ...], function: FloatArray) -> FloatArray:
        """A function of fine values, zero outside the group."""
        held = function
        for place, (axis, own) in enumerate(zip(self._axes, group, strict=True)):
            held = held * (axis.group == own).reshape([-1 if i == place else 1 for i in range(held.ndim)])
        return held

    def _groups(self) -> Iterator[tuple[int, ...]]:
        """Groups that some value fits, in the order of the columns asked for."""
        there = self.measures[0].above if self.measures else np.ones(())
        found = []
        sizes = [len(axis.labels) for axis in self._axes]
        if prod(sizes) > GROUPS:
            raise ReleaseError(
                "question", f"these columns make {prod(sizes):,} groups; at most {GROUPS:,} can be asked for at once",
                where="by", advice="Ask for fewer columns at once, or for a condition.",
            )  # fmt: skip
        for axis in self._axes:  # the first axis goes, and comes back last as groups
            own = np.eye(len(axis.labels))[axis.group]
            there = np.tensordot(there != 0, own, (0, 0)) if there.ndim else there
        for group in product(*map(range, sizes)):
            if not self.by or there[group]:
                found.append(group)
        ranks = [self._ranks(name) for name in self.by]

        def place(group: tuple[int, ...]) -> list[int]:
            return [rank[part] for rank, part in zip(ranks, self._label(group), strict=True)]

        yield from sorted(found, key=place)

    def _ranks(self, name: str) -> dict[str | None, int]:
        part = next(axis.part for axis in self._axes if name in axis.part.columns)
        place = part.columns.index(name)
        return {text: rank for rank, text in enumerate(dict.fromkeys(value[place] for value in part.values))}

    def _label(self, group: tuple[int, ...]) -> Label:
        """The values of the columns asked for."""
        told: dict[str, str | None] = {}
        for axis, own in zip(self._axes, group, strict=True):
            columns = [name for name in axis.part.columns if name in self.by]
            told |= dict(zip(columns, axis.labels[own], strict=True))
        return tuple(told[name] for name in self.by)


def _measures(domain: Domain, question: Question) -> Iterator[Measure]:
    """Arrays over fine values (z_1, …, z_r): the records meant, and what is asked of them."""
    held = np.ones(domain.shape)
    if question.where is not None:
        held = np.nan_to_num(domain.condition(question.where))
    yield Measure("count", held)
    for name, texts, read, divided in (
        ("sum", question.sums, domain.numbers, False),
        ("mean", question.means, domain.numbers, True),
        ("share", question.shares, domain.condition, True),
    ):
        for text in texts:
            values = read(text)
            known = held * ~np.isnan(values) if name == "mean" else held
            yield Measure(f"{name} {text}", held * np.nan_to_num(values), known if divided else None)


def _too_much(numbers: int) -> ReleaseError:
    return ReleaseError(
        "question", f"this would take {numbers:,} numbers, which is more than {WORK:,}",
        where="by", advice="Ask for fewer columns or fewer groups at once.",
    )  # fmt: skip
