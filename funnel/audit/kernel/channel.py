"""What an output tells whom: protocols as integer weights, and the chances of outputs under what somebody knows.

Blocks are drawn independently given (s, x), so P(y_1, …, y_k | s) = Σ_x P(x|s) Π_j Q_j(y_j | s, x_j): what several
blocks tell together is measured, never added up. Unary encoding, which releases a set of values, is a block for each
value, all drawn for one x; Theorem 1 says which of its 2^a sets tell most, so that they need not be listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, permutations, product

import numpy as np

from funnel.audit.kernel.exact import MOST_CELLS, BoolArray, ExactArray, FloatArray, IntArray
from funnel.audit.kernel.records import Block, Joint, by_axis, sums, table
from funnel.audit.kernel.verdict import Broken
from funnel.format.cells import NAME as CELLS
from funnel.format.cells import Wide
from funnel.format.fields import Alphabet
from funnel.format.known import NAME, OWN, RELEASED, KnownFile
from funnel.format.manifest import Manifest, Parameters
from funnel.format.robust import RobustFile

Ratio = Fraction | None
"""A ratio of chances, None where it is infinite."""
SECRETS, ANYONE = slice(None, -1), slice(-1, None)
"""Rows of a view: P(y|s) for each s, and P(y)."""
_MOST_BITS = 900
"""Of all weights together: masses are below 2^962 and totals below 2^62, so that every chance is 0 or a float."""
_NEAR = 1 - 1e-9
"""Chances are divided in floats, which err by a relative 10^-15, to see where exact ratios need to be looked at."""


@dataclass(frozen=True, eq=False)
class View:
    """P(y|s) up to a factor of y, as `masses` (c, b) over `totals` (c,): rows are all s that occur, the last is P(y).

    Of somebody who knows x_J all chances are given x_J.
    """

    masses: ExactArray
    totals: IntArray

    @cached_property
    def chances(self) -> FloatArray:
        """Masses over totals."""
        return np.asarray(self.masses / self.totals[:, None], float)

    def most(self, above: slice, below: slice) -> Ratio:
        """max of P(y|r)/P(y|q) over all y, rows r of `above` and q of `below`; floats say where, integers how large."""
        high, low = self.chances[above].max(axis=0), self.chances[below].min(axis=0)
        if (low[high > 0] == 0).any():
            return None
        ratios = np.divide(high, low, out=np.zeros_like(high), where=low > 0)
        columns = self.masses[:, ratios >= ratios.max() * _NEAR].T.tolist()
        chances = [[*map(Fraction, column, self.totals.tolist())] for column in set(map(tuple, columns))]
        return max(max(column[above]) / min(column[below]) for column in chances)


@dataclass(frozen=True, eq=False)
class Known:
    """`number` (m,) of records by `codes` [s, x_1, …, x_k] (m, 1+k) and by `values` (m, l) that may be known of them.

    Each of l levels tells the value of one of `columns` (l,), finely or coarsely: 1 and more, or 0 where it tells none.
    Who knows x_J knows one level of each column in J, and any x_J that at least `minimum` records share; J is of up to
    `knows` columns, or of some that it names, or of some of all.
    """

    columns: tuple[str, ...]
    codes: IntArray
    values: IntArray
    number: IntArray
    knows: int | tuple[str, ...] | None = None
    minimum: int = 1

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Every J as places of levels, one of a column at most; the empty one first."""
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
    def is_small(self) -> bool:
        """Whether all outputs together can be listed, and every chance is a float."""
        axes, bits = by_axis(self.blocks), sum(one.bits for one in self.blocks)
        steps = [max(math.prod(len(one.weights) for one in group), group[0].weights.shape[2]) for group in axes]
        return math.prod([len(self.counts), *steps]) <= MOST_CELLS and bits <= _MOST_BITS

    @property
    def table(self) -> ExactArray:
        """T[s, y_1, …, y_k] = Σ_x N[s, x_1, …, x_k] Π_j W_j[y_j, s, x_j], exactly; all y of one axis are one.

        No sum exceeds all records times the sums of weights, so where that fits a word nothing can overflow. Raises
        Broken where it is not small.
        """
        if not self.is_small:
            what = "the blocks together have too many values to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CELLS} combinations", "more")
        silent = {*range(self.counts.ndim - 1)} - {one.axis for one in self.blocks}  # axes that nothing is drawn for
        kind = np.int64 if int(self.counts.sum()) << sum(one.bits for one in self.blocks) < 1 << 62 else object
        table: ExactArray = self.counts.sum(axis=tuple(axis + 1 for axis in silent)).astype(kind)
        for group in by_axis(self.blocks):
            weights = group[0].weights.astype(kind)
            for one in group[1:]:  # every y with every y' of the same x
                weights = (weights[:, None] * one.weights.astype(kind)).reshape(-1, *weights.shape[1:])
            weights = np.broadcast_to(weights, (len(weights), len(table), weights.shape[2]))
            table = np.einsum("sx...,ysx->s...y", table, weights)  # x_j, now first, gives way to y_j, which comes last
        return table

    @cached_property
    def view(self) -> View:
        """The outputs as one sees them who knows nothing yet; of a set alone, those that tell most."""
        counts, odds = _and_anyone(self.counts), self.blocks[0].odds
        masses = telling(counts, odds) if odds and self.counts.ndim == 2 else _and_anyone(self.table)
        return View(masses, counts.sum(axis=1))

    def knowing(self) -> Iterator[View]:
        """The same given x_J, for every x_J that somebody may know.

        But where x_J leaves one s, or one x and draws that do not read s: there all ratios are 1.
        """
        known = self.known or everything(self.counts, self.blocks)
        reads = any(block.reads for block in self.blocks)
        for rows in known.groups():
            secrets, *values = (known.codes[rows] != known.codes[rows[0]]).any(axis=0).tolist()  # are there several?
            if secrets and (reads or any(values)):
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
    """For each two rows s, t of N[s, x] (c, a) the set A of largest P(A|s)/P(A|t): N[·] P(A|·) as (c, c(c-1)).

    Theorem 1 ([DS] section VII, Unary Encoding). Up to a factor of A alone its chance is `low` under x outside A, and
    low + gain = odds·low under x in A. So P(A|s) = low + gain Σ u_x over x in A, u_x = P(x|s); v_x is the same for t.
    Let λ be the largest ratio: gain Σ (u_x - λ v_x) <= (λ-1) low for all A, with equality for one. No A has a larger
    sum than {x : u_x > λ v_x}, so that has ratio λ, or where it is empty all x have. In the order of u/v these come
    first: a beginnings of it are tried, of 2^a sets.
    """
    counts, found = counts.astype(object), []
    low, gain, total = odds.denominator, odds.numerator - odds.denominator, counts.sum(axis=1)
    for s, t in permutations(range(len(counts)), 2):
        u, v = counts[s] * total[t], counts[t] * total[s]  # and low, all times both totals
        order = sorted(range(len(u)), key=lambda x: -Fraction(u[x], v[x]) if v[x] else -math.inf)
        least, sums_of = low * total[s] * total[t], zip(u[order].cumsum(), v[order].cumsum(), strict=True)
        ratios = [Fraction(least + gain * of_s, least + gain * of_t) for of_s, of_t in sums_of]
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
    released = _released((Alphabet(one.columns, one.inputs) for one, *_ in by_axis(blocks)), codes)
    return Known((*released,), codes, np.column_stack([*released.values()]), counts[tuple(codes.T)])


def known(file: KnownFile, joint: Joint, manifest: Manifest, wide: Sequence[Wide] = ()) -> Known:
    """The same counts by what may be known, as known.json tells it. Raises Broken where they are other counts.

    A public column that numbers cells nobody knows, but the columns inside, of which the file alone tells. Of any other
    labels say what is released, whatever the file says, and the file what more it was before, and is in groups.
    """
    knows, axes = manifest.parameters.knows, len(joint.shape)
    rows = table(NAME, file.cells, [*joint.shape, *(len(level.values) + 1 for level in file.levels)])
    codes, told, number = rows[:, :axes], rows[:, axes:-1], rows[:, -1]
    if (sums(codes, number, joint.shape) != joint.dense()).any():
        raise Broken(NAME, "records are counted otherwise than in counts.json", joint.rows, int(number.sum()))
    inside = [column.name for one in wide for column in one.columns]
    cells, names = {one.name for one in wide}, [*chain.from_iterable(manifest.public), *inside]
    if len(cells) < len(wide) or not all(one.columns for one in wide) or len({*names}) < len(names):
        raise Broken(CELLS, "a block of cells has another's name, or no columns of its own", "distinct columns", names)
    released = {name: x for name, x in _released(joint.alphabets[1:], codes).items() if name not in cells}
    told_of = [*released.items(), *((one.column, v) for one, v in zip(file.levels, told.T, strict=True)
        if one.level not in (OWN, RELEASED) or one.column not in released
        or len(p := {*zip(released[one.column][v > 0], v[v > 0], strict=True)}) > len({x for x, _ in p}))]  # fmt: skip
    columns, values = zip(*told_of, strict=True)
    if missing := {*inside, *(knows if isinstance(knows, tuple) else ())} - {*columns}:
        raise Broken(NAME, "nothing is told of a column that may be known", min(missing), "no level")
    return Known(columns, codes, np.column_stack(values), number, knows, manifest.estimate.minimum)


def _released(alphabets: Iterable[Alphabet], codes: IntArray) -> dict[str, IntArray]:
    """What the labels of x say of each column: a code from 1 on for every row (m,)."""
    found = dict[str, IntArray]()
    for one, x in zip(alphabets, codes[:, 1:].T, strict=True):
        for name, values in zip(one.columns, zip(*one.values, strict=True), strict=True):
            code = {value: place for place, value in enumerate(values, start=1)}
            found[name] = np.array([code[value] for value in values])[x]
    return found
