"""What an output tells whom: protocols as integer weights, and the chances of outputs under what somebody knows.

Blocks are drawn independently given (s, x), so P(y_1, …, y_k | s) = Σ_x P(x|s) Π_j Q_j(y_j | s, x_j): what several
blocks tell together is measured, never added up. Unary encoding, which releases a set of values, is a block for each
value, all drawn for one x; Theorem 1 says which of its 2^a sets tell most, so that they need not be listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, permutations, product

import numpy as np

from funnel.audit.kernel.exact import MOST_CELLS, BoolArray, ExactArray, FloatArray, IntArray
from funnel.audit.kernel.records import Block, Joint, Ratio, by_axis, sums, table
from funnel.audit.kernel.verdict import Broken
from funnel.format.cells import Wide
from funnel.format.fields import Label
from funnel.format.known import NAME, OWN, RELEASED, KnownFile
from funnel.format.manifest import Manifest, Parameters
from funnel.format.robust import RobustFile

SECRETS, ANYONE = slice(None, -1), slice(-1, None)
"""Rows of a view in which the secret is known, and that in which it is not."""
_MOST_BITS = 900
"""Of all weights together: a chance is a whole number below 2^962 over one below 2^62, and so 0 or a float."""
_WORD = 1 << 62
_NEAR = 1 - 1e-9
"""Chances are divided in floats, which err by a relative 10^-15, to see where exact ratios need to be looked at."""


@dataclass(frozen=True, eq=False)
class View:
    """The outputs as one sees them who knows x_J: P(y|s) up to a factor of y, for every s that occurs, and for anyone.

    From masses (c, b), proportional to P(s, y, x_J) for each y, and `totals` (c,), proportional to P(s, x_J).
    """

    masses: ExactArray
    totals: IntArray

    @cached_property
    def chances(self) -> FloatArray:
        """Masses over totals."""
        rows = zip(self.masses, self.totals.tolist(), strict=True)
        return np.array([(row / total).astype(float) for row, total in rows])

    def most(self, above: slice, below: slice) -> Ratio:
        """max over outputs of a chance in rows above over one in rows below; floats say where, integers how large."""
        high, low = self.chances[above].max(axis=0), self.chances[below].min(axis=0)
        if (low[high > 0] == 0).any():
            return None
        ratios = np.divide(high, low, out=np.zeros_like(high), where=low > 0)
        columns = self.masses[:, ratios >= ratios.max() * _NEAR].T.tolist()
        chances = [[*map(Fraction, column, self.totals.tolist())] for column in set(map(tuple, columns))]
        return max(max(column[above]) / min(column[below]) for column in chances)


@dataclass(frozen=True, eq=False)
class Known:
    """Records by s and x (m, 1+k) and by the values (m, l) of each level, 0 where none is told; `number` of each (m,).

    `columns` (l,) are those that the levels tell of. Somebody may know `knows` columns together, whichever they are, or
    those that it names, or all of them; any x_J that at least `minimum` records share.
    """

    columns: tuple[str, ...]
    codes: IntArray
    values: IntArray
    number: IntArray
    knows: int | tuple[str, ...] | None = None
    minimum: int = 1

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Every set J of levels, one of a column at most; the empty one first."""
        columns, knows = list(dict.fromkeys(self.columns)), self.knows
        if isinstance(knows, tuple):
            columns = [column for column in columns if column in knows]
        for size in range((knows if isinstance(knows, int) else len(columns)) + 1):
            for chosen in combinations(columns, size):
                yield from product(*([i for i, one in enumerate(self.columns) if one == name] for name in chosen))

    def groups(self) -> Iterator[IntArray]:
        """The rows of `codes` that agree on x_J, for every J and every x_J that enough records share."""
        for places in map(list, self.sets()):
            told = np.flatnonzero((self.values[:, places] > 0).all(axis=1))
            order = told[np.lexsort(self.values[told][:, places].T)] if places else told
            seen = self.values[order][:, places]
            for rows in np.split(order, np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1):
                if not places or self.number[rows].sum() >= self.minimum:  # who knows nothing is always there
                    yield rows


@dataclass(frozen=True, eq=False)
class Channel:
    """All blocks together, seen from counts N[s, x_1, …, x_k]; of a robust notion its proof, and which x go with s.

    `known`: what somebody may know of the records, where the notion says that; else any column's released values.
    """

    counts: IntArray
    blocks: tuple[Block, ...]
    parameters: Parameters
    certificate: RobustFile | None = None
    possible: BoolArray | None = None
    known: Known | None = None

    @property
    def table(self) -> ExactArray:
        """T[s, y_1, …, y_k] = Σ_x N[s, x_1, …, x_k] Π_j W_j[y_j, s, x_j], exactly; all y of one axis are one.

        No sum exceeds all records times the sums of weights, so where that fits a word nothing can overflow. Raises
        Broken where it is too large to be measured.
        """
        axes, bits = by_axis(self.blocks), sum(one.bits for one in self.blocks)
        steps = [max(math.prod(len(one.weights) for one in group), group[0].weights.shape[2]) for group in axes]
        if (size := math.prod([len(self.counts), *steps])) > MOST_CELLS or bits > _MOST_BITS:
            what = "the blocks together have too many values to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CELLS} combinations", size)
        silent = {*range(self.counts.ndim - 1)} - {one.axis for one in self.blocks}  # axes that nothing is drawn for
        kind = np.int64 if int(self.counts.sum()) << bits < _WORD else object
        table: ExactArray = self.counts.sum(axis=tuple(axis + 1 for axis in silent)).astype(kind)
        for group in axes:  # x_j, by now the first axis beside s, gives way to y_j, which becomes the last
            rows = group[0].weights.astype(kind)
            for one in group[1:]:
                rows = (rows[:, None] * one.weights.astype(kind)).reshape(-1, *rows.shape[1:])
            table = np.stack([part @ rows[:, s % len(rows[0])].T for s, part in enumerate(np.moveaxis(table, 1, -1))])
        return table

    @cached_property
    def view(self) -> View:
        """The outputs as one sees them who knows nothing yet; of a set alone, those that tell most."""
        counts, odds = _and_anyone(self.counts), self.blocks[0].odds
        alone = telling(counts, odds) if odds is not None and self.counts.ndim == 2 else None
        return View(_and_anyone(self.table) if alone is None else alone, counts.sum(axis=1))

    def knowing(self) -> Iterator[View]:
        """The same for all that somebody may know beforehand.

        Who knows s learns nothing of it, and who knows all of x nothing from draws that do not read s.
        """
        known = self.known or everything(self.counts, self.blocks)
        reads = any(block.reads for block in self.blocks)
        for rows in known.groups():
            hidden, *shown = (known.codes[rows] != known.codes[rows[0]]).any(axis=0).tolist()
            if hidden and (reads or any(shown)):
                yield self.within(known.codes[rows], known.number[rows]).view

    def within(self, codes: IntArray, number: IntArray) -> Channel:
        """The channel of some records alone, [s, x_1, …, x_k] (m, 1+k), and of the values that they have."""
        axes = [np.unique(one, return_inverse=True) for one in codes.T]
        places, blocks = np.column_stack([place for _, place in axes]), list[Block]()
        for one in self.blocks:
            weights = one.weights.take(axes[one.axis + 1][0], 2)
            blocks.append(replace(one, weights=weights.take(axes[0][0], 1) if one.reads else weights))
        counts = sums(places, number, [len(values) for values, _ in axes])
        return replace(self, counts=counts, blocks=tuple(blocks))


def telling(counts: ExactArray, odds: Fraction) -> ExactArray:
    """For each two rows of N[s, x] (c, a) the set that most favours the first: P(set|s) N[s], (c, c(c-1)).

    Up to a factor of the set alone: its chance is `high` where it holds the true value, `low` where it lacks it.
    Theorem 1 ([DS] section VII, Unary Encoding). With u, v the chances of x under two rows and gain = high - low, a set
    has P/P' = (low + gain Σ u)/(low + gain Σ v), sums over its values. That exceeds λ where Σ (u - λv) exceeds
    (λ-1) low/gain, so most by the set of just the x with u > λv: the best holds those of the largest u/v, however many.
    """
    counts, found = counts.astype(object), []
    low, gain, total = odds.denominator, odds.numerator - odds.denominator, counts.sum(axis=1)
    for one, other in permutations(range(len(counts)), 2):
        u, v = counts[one] * total[other], counts[other] * total[one]
        order = sorted(range(len(u)), key=lambda x: -Fraction(u[x], v[x]) if v[x] else -math.inf)
        least, steps = low * total[one] * total[other], zip(u[order].cumsum(), v[order].cumsum(), strict=True)
        ratios = [Fraction(least + gain * more, least + gain * less) for more, less in steps]
        held = order[: ratios.index(max(ratios)) + 1]
        found.append(total * low + counts[:, held].sum(axis=1) * gain)
    return np.stack(found, axis=1)


def _and_anyone(rows: ExactArray) -> ExactArray:
    """Its rows, whatever its shape, that are not empty, and last their sum."""
    seen = rows.reshape(len(rows), -1)
    seen = seen[seen.any(axis=1)]
    return np.concatenate([seen, seen.sum(axis=0, keepdims=True)])


def everything(counts: IntArray, blocks: Sequence[Block]) -> Known:
    """Of records N[s, x_1, …, x_k] any columns, as they are released."""
    codes = np.argwhere(counts)
    columns, values = zip(*_released([(one.columns, one.inputs) for one, *_ in by_axis(blocks)], codes), strict=True)
    return Known(columns, codes, np.column_stack(values), counts[tuple(codes.T)])


def known(file: KnownFile, joint: Joint, manifest: Manifest, wide: Sequence[Wide] = ()) -> Known:
    """The same counts by what may be known of columns, and of those inside cells, of which only the file tells."""
    knows, axes = manifest.parameters.knows, len(joint.shape)
    rows = table(NAME, file.cells, [*joint.shape, *(len(level.values) + 1 for level in file.levels)])
    codes, told, number = rows[:, :axes], rows[:, axes:-1], rows[:, -1]
    if (sums(codes, number, joint.shape) != joint.dense()).any():
        raise Broken(NAME, "records are counted otherwise than in counts.json", joint.rows, int(number.sum()))
    inside = {one.name: [column.name for column in one.columns] for one in wide}
    labels = _released([(one.columns, one.values) for one in joint.alphabets[1:]], codes)
    plain = {name: values for name, values in labels if name not in inside}
    # What the file says is released of a plain column is what its labels say: these are taken.
    shown = {level.column: place for place, level in enumerate(file.levels) if level.level in (OWN, RELEASED)}
    more = [place for place, one in enumerate(file.levels) if one.column not in plain or place != shown.get(one.column)]
    columns = (*plain, *(file.levels[place].column for place in more))
    asked = {*chain.from_iterable(inside.values()), *(knows if isinstance(knows, tuple) else ())}
    if missing := asked - {*columns}:
        raise Broken(NAME, "nothing is told of a column that may be known", min(missing), "no level")
    values = np.column_stack([*plain.values(), *told[:, more].T])
    return Known(columns, codes, values, number, knows, manifest.estimate.minimum)


def _released(
    alphabets: Sequence[tuple[tuple[str, ...], tuple[Label, ...]]], codes: IntArray
) -> Iterator[tuple[str, IntArray]]:
    """What the labels of x say of each column: a code from 1 on for every row (m,)."""
    for (columns, labels), x in zip(alphabets, codes[:, 1:].T, strict=True):
        for name, values in zip(columns, zip(*labels, strict=True), strict=True):
            code = {value: place for place, value in enumerate(values, start=1)}
            yield name, np.array([code[value] for value in values])[x]
