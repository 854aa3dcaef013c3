"""Totals that stay: by how much an expected one moves, and that no protocol of the notion answers nearer to the truth.

For any prices π of totals, and μ >= 0 of conditions C·v <= 0 that a row y has to keep, a protocol with totals
T_y = Σ_x p_x Q(y|x) has Σ p_x d(y,x) Q(y|x) >= Σ_x min_y { p_x (d(y,x) - π_y) + Σ_k μ_k C_kx } + Σ_y π_y T_y: so only
the conditions have to be trusted, and those are built from the counts. Everything is a whole number; prices are taken
to a grid. A protocol on integers whose totals are off by δ_y records may be better than that by Σ |π_y δ_y| / n.

How far a released value is from the true one, as the policy asks, is worked out in whole numbers, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from math import lcm

import numpy as np

from funnel.audit.extras.base import Release, array
from funnel.audit.extras.boxes import FloatArray
from funnel.audit.extras.conditions import conditions
from funnel.audit.extras.cones import Rows, robust_rows
from funnel.audit.extras.pinned import counts_then
from funnel.audit.kernel.exact import ExactArray, IntArray
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.data import alphabet
from funnel.format.fields import Alphabet
from funnel.format.protocol import Weights
from funnel.format.solution import NAME, Totals
from funnel.policy.groups import climb

CLAIM = "totals"
TITLE = (
    "every expected total is as near to that of counts.json (under a lock to that of its night), and every row as near"
    " to its own, as is stated"
)
PRIVATE = True
_POINT, _HALF = 256, 128
"""Binary digits behind the point of prices, and of sides that are no fractions of counts."""
_FLOAT = 1e-9
_STAYS = Fraction(1, 10)
"""By how many records an expected total may be off that is said to stay."""
_NEAR = Fraction(1, 10**6)
"""By how much an optimum may lie above what its prices show: the solver's tolerances."""
Ways = Callable[[str], tuple[str, ...]]
"""From a value to what holds it, outermost first."""


def check(opened: Release) -> str | Unchecked:
    """Of every block. Raises Broken."""
    told = opened.solution.totals
    if not told or opened.manifest.locked is not None:
        return _untold(opened)
    if len(told) != len(opened.protocol.blocks):
        raise Broken(NAME, "totals are told of another number of blocks", len(opened.protocol.blocks), len(told))
    found = [_block(opened, index, one) for index, one in enumerate(told)]
    unsure = next((one for one in found if isinstance(one, Unchecked)), None)
    return unsure or "; ".join(map(str, found))


def _untold(opened: Release) -> str | Unchecked:
    """Why nothing is told of totals; under a lock they stay at the counts of its night. Raises Broken."""
    manifest = opened.manifest
    if manifest.totals is None:
        return Unchecked(NOT_CLAIMED + "the mechanism is not about totals")
    if manifest.locked is None:
        raise Broken(NAME, "nothing is told of totals", f"what shows that they are {manifest.totals}", "nothing")
    agree(NAME, [("blocks of which totals are told, where a lock fixed them", 0, len(opened.solution.totals))])
    if manifest.totals == "free":
        return Unchecked(NOT_CLAIMED + "the protocol is that of a lock, and totals may move")
    if manifest.locked.fixed is not None:
        return Unchecked("the protocol was fixed at counts of another night than its lock’s, which are not looked at")
    if (then := counts_then(opened)) is None:
        return Unchecked("the counts of the lock’s night are not kept any more")
    off = max(max(map(abs, _off(block, then.of_axis(axis)))) for axis, block in enumerate(_plain(opened), start=1))
    return f"at the counts of the lock’s night {_kept(off)}"


def _plain(opened: Release) -> list[Weights]:
    """The protocol's blocks. Raises Broken where one is none that totals are told of."""
    blocks = [one for one in opened.protocol.blocks if isinstance(one, Weights) and one.secret is None]
    if len(blocks) < len(opened.protocol.blocks):
        raise Broken(NAME, "totals are told of a block", "plain values that are drawn from x alone", "another kind")
    return blocks


def _off(block: Weights, records: IntArray) -> Sequence[Fraction]:
    """By how many records each expected total (a,) is off, where so many have each value."""
    weights, each = _square(block), records.astype(object)
    return list((weights @ each - each * (1 << block.bits)) / Fraction(1 << block.bits))


def _block(opened: Release, index: int, told: Totals) -> str | Unchecked:
    """One block: the deviation as stated, and what its prices show. Raises Broken."""
    block, counts = _plain(opened)[index], opened.by_block(index)
    weights, each = _square(block), counts.sum(axis=0).astype(object)
    off = _off(block, counts.sum(axis=0))
    kept = _as_stated(max(map(abs, off)), told.deviation, opened.manifest.totals)
    distance, whole = distances(opened, index)
    changed = Fraction(int((weights * distance).sum(axis=0) @ each), whole * int(each.sum()) << block.bits)
    said = f"{', '.join(block.columns)}: totals {kept}, expected distance {float(changed):.6f}"
    if told.prices is None:
        return f"{said}, no bound of it claimed"
    loose = sum(abs(Fraction(price) * one) for price, one in zip(told.prices, off, strict=True)) / int(each.sum())
    if Fraction(told.optimum) > changed + (0 if told.deviation is None else loose) + _NEAR:
        raise Broken(NAME, "the protocol is better than the optimum that is stated", told.optimum, float(changed))
    proven = _proven(opened, index, counts, told)
    if isinstance(proven, Unchecked):
        return proven
    if Fraction(told.optimum) > proven + _NEAR:
        raise Broken(NAME, "the prices show less than the optimum that is stated", told.optimum, float(proven))
    least = proven if told.deviation is None else proven - loose
    if changed < least:
        raise Broken(NAME, "the protocol is better than its prices allow", float(least), float(changed))
    shown = math.floor(least * 10**6) / 10**6
    asked = "the promise" if told.deviation is None else "the promise and totals"
    prices = counted(len(told.binding), "price")
    return f"{said}, at least {shown:.6f} for any protocol that keeps {asked}, by {prices}"


def _as_stated(largest: Fraction, stated: float | None, said: str | None) -> str:
    """The largest deviation of an expected total, in words. Raises Broken where another one is stated.

    Where totals are `said` to be kept that is a tenth of a record at most, and one that nobody states may be anything.
    """
    found = "free" if stated is None else "kept"
    if said != found:
        raise Broken(NAME, "totals are stated otherwise than in release.json", said, found)
    if stated is None:
        return "free"
    kept = _kept(largest)
    if abs(float(largest) - stated) > _FLOAT * max(1.0, float(largest)):
        raise Broken(NAME, "the largest deviation of a total is another", float(largest), stated)
    return kept


def _kept(largest: Fraction) -> str:
    """The largest deviation of a total that is said to stay, in words. Raises Broken where it does not."""
    if largest > _STAYS + Fraction(_FLOAT):
        what = "the largest deviation of a total that is said to stay"
        raise Broken(NAME, what, "0.1 records at most", float(largest))
    return f"off by at most {math.ceil(largest * 10**4) / 10**4:.4f} records"


def _square(block: Weights) -> ExactArray:
    """W[y, x] (a, a) with a row for every value, answered or not."""
    place = {value: x for x, value in enumerate(block.inputs)}
    if not set(block.outputs) <= set(place):
        raise Broken(NAME, "totals are told of a block", "inputs as outputs", "others")
    found = np.zeros((len(place), len(place)), object)
    found[[place[value] for value in block.outputs]] = array(block)[:, 0, :]
    return found


def _proven(opened: Release, index: int, counts: IntArray, told: Totals) -> Fraction | Unchecked:
    """What the prices show of the expected distance of any protocol that keeps totals. Raises Broken."""
    a, each = counts.shape[1], counts.sum(axis=0).astype(object)
    prices = np.array([_on_grid(Fraction(price)) for price in told.prices or ()], object)
    if len(prices) != a or any(row >= a or side >= len(told.sides) for row, side, _ in told.binding):
        raise Broken(NAME, "prices are told of other values or sides", a, len(prices))
    if told.deviation is None and prices.any():
        raise Broken(NAME, "totals are free, yet have prices", 0, max(told.prices or ()))
    if not each.all():
        return Unchecked("a public value does not occur, so no row can be priced")
    distance, whole = distances(opened, index)
    sides = _sides(opened, index, counts, np.array(told.sides, float).reshape(-1, a))
    if isinstance(sides, Unchecked):
        return sides
    n = int(each.sum())
    left = each * (distance * (1 << _POINT) - prices[:, None] * whole)
    for row, side, price in told.binding:
        left[row] += n * whole * sides[side].times(price)
    shown = Fraction(int(left.min(axis=0).sum()), n * whole) + Fraction(int(prices @ each), n)
    return shown / (1 << _POINT)


@dataclass(frozen=True, eq=False)
class _Inequality:
    """What a side that was given says: C·v <= 0, or = 0, in whole numbers (a,); it is `size` times as large."""

    coefficients: ExactArray
    size: Fraction
    equal: bool

    def times(self, price: float) -> ExactArray:
        """What a price of the given side adds, on the grid. Raises Broken where it would be one of the other way."""
        if price < 0 and not self.equal:
            raise Broken(NAME, "a price of an inequality is negative", "0 or more", price)
        return np.asarray(_on_grid(Fraction(price) * self.size) * self.coefficients)


def _sides(opened: Release, index: int, counts: IntArray, given: FloatArray) -> list[_Inequality] | Unchecked:
    """What follows from the counts in place of the sides given (k, a). Raises Broken where one of them does not."""
    manifest, block = opened.manifest, opened.alphabets[index]
    if manifest.notion == "rldp":
        return _robust(opened, index, counts, given)
    known = None if manifest.parameters.knows is None else opened.knowledge
    asked = conditions(manifest, block, counts, known)
    if asked is None:
        return Unchecked(f"what {manifest.notion} asks of a row cannot be written out here")
    found, scale = Rows(np.array([one.floats() for one in asked]).reshape(-1, len(block.values))).match(given)
    _check_found(found, manifest.notion)
    exact = {place: asked[place].coefficients() for place in set(found.tolist())}
    largest = {place: max(map(abs, one)) for place, one in exact.items()}
    return [
        _Inequality(exact[place], Fraction(size) / largest[place], asked[place].equal)
        for place, size in zip(found.tolist(), scale.tolist(), strict=True)
    ]


def _robust(opened: Release, index: int, counts: IntArray, given: FloatArray) -> list[_Inequality] | Unchecked:
    """The same of pairs of distributions that occur together: a row in floats, each rounded to where it asks less."""
    prior = counts.sum(axis=0) / counts.sum()
    block = opened.alphabets[index]
    own = robust_rows(opened.manifest, opened.secret, block, counts.astype(float), given / prior)
    if own is None:
        return Unchecked("pairs of distributions cannot be read back where the secret is not released beside the rest")
    found, scale = own.match(given / prior)
    _check_found(found, opened.manifest.notion)
    rows = [[_on_grid(Fraction(value), _HALF) for value in row] for row in (own.rows[found] * prior).tolist()]
    return [
        _Inequality(np.array(row, object), Fraction(size) / (1 << _HALF), equal=False)
        for row, size in zip(rows, scale.tolist(), strict=True)
    ]


def _check_found(found: IntArray, notion: str) -> None:
    if strange := int((found < 0).sum()):
        what = f"{strange} inequalities are none that {notion} asks for"
        raise Broken(NAME, what, "inequalities that follow from the counts", "others")


def _on_grid(number: Fraction, point: int = _POINT) -> int:
    """A number in units of 2^-point, rounded down."""
    return number.numerator * (1 << point) // number.denominator


def distances(opened: Release, index: int) -> tuple[ExactArray, int]:
    """d(y, x) in whole numbers (a, a), and what they are divided by: as the policy asks. Raises Broken."""
    block, asked = opened.alphabets[index], opened.terms.mechanism.get("distance", "match")
    if asked == "match":
        return np.asarray(1 - np.eye(len(block.values), dtype=np.int64), object), 1
    rules = [asked if isinstance(asked, str) else asked.get(name, "match") if isinstance(asked, dict) else "none"
             for name in block.columns]  # fmt: skip
    parts = [_of_column(block, place, rule, _ways(opened, name))
             for place, (name, rule) in enumerate(zip(block.columns, rules, strict=True))]  # fmt: skip
    shared = lcm(*(most for _, most in parts))
    return sum((part * (shared // most) for part, most in parts), np.zeros(1, object)), shared * len(parts)


def _of_column(block: Alphabet, place: int, rule: str, ways: Ways | None) -> tuple[ExactArray, int]:
    """The distance of one column, in whole numbers, and the largest there is; `ways` lead to values from a root.

    Raises Broken for other rules.
    """
    values = [value[place] for value in block.values]
    differ = np.array([[int(y != x) for x in values] for y in values], object)
    if rule == "match":
        return differ, 1
    if rule != "order":
        raise Broken("terms.json", "this distance is unknown", "match or order", rule)
    if ways is not None:
        return _in_tree([() if value is None else (*ways(value), value) for value in values])
    ranks = alphabet.Alphabet(block.columns, block.values).ranks(place)
    most = max(len({rank for rank in ranks if rank is not None}) - 1, 1)
    numbers = np.array([-1 if rank is None else rank for rank in ranks], object)
    both = np.logical_and.outer(numbers >= 0, numbers >= 0)
    return np.where(both, abs(np.subtract.outer(numbers, numbers)), differ * most), most


def _in_tree(ways: Sequence[tuple[str, ...]]) -> tuple[ExactArray, int]:
    """The part of the longer way from the root that two values do not have in common."""
    most = lcm(*(len(way) or 1 for way in ways))
    apart = [[0 if y == x else most - most * _shared(y, x) // max(len(y), len(x)) for x in ways] for y in ways]
    return np.array(apart, object), most


def _shared(one: Sequence[str], two: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _ways(opened: Release, column: str) -> Ways | None:
    """From a value to the groups above it, or the nodes of its cell, outermost first; None where nothing holds it."""
    for cells in opened.wide:
        if cells.name == column:
            return cells.ways().__getitem__
    for one in (one for block in opened.terms.public for one in block):
        if one.name == column and len(levels := one.groups or ()) > 1:
            return lambda value: tuple(reversed(climb(value, levels[1:])))
    return None
