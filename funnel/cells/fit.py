"""Profiles from what is told: tables of cells and groups, made to agree with the tables of all pairs of columns.

A step asks, for every group of a column in a cell, by how much rows with it come too rarely in the pairs of the whole
table, on average over the other columns, and gives it as much more (the expectation and maximisation of mixtures: A.
P. Dempster, N. M. Laird, D. B. Rubin, Journal of the Royal Statistical Society B 39, 1977, for one pair; here of all
pairs side by side). Cells keep their sizes, groups their totals, and what is impossible stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.law import RowLaw
from funnel.cells.pooling import ratio
from funnel.data.joint import FloatArray

Pairs = Mapping[tuple[int, int], FloatArray]
"""Tables (groups of a, groups of b) of the columns a > b."""
_STEPS = 8
_SWEEPS = 12
_LAST = 100
"""Sweeps by which the totals of what is published are brought to those of the table."""
_BOLD = 4.0
"""A step goes further than the average over columns asks for: what one pair needs, most others do not mind."""
_LARGEST = 3.0
_WORTH = 0.97


@dataclass(frozen=True, eq=False)
class Fitted:
    """Masses (m, groups) of every column's groups, and (m, groups of the parent, groups) of its links."""

    tables: tuple[FloatArray, ...]
    links: tuple[FloatArray, ...]


def fit(tables: Sequence[FloatArray], pairs: Pairs, parents: Sequence[int]) -> Fitted:
    """The best of some steps, by the sum of distances of pairs."""
    now = _linked(tables, pairs, parents)
    best, least = now, np.inf
    for step in range(_STEPS + 1):
        asked, distance = _asked(now, pairs, parents)
        if distance >= _WORTH * least:
            break
        best, least = now, distance
        if step < _STEPS:
            bold = min(_BOLD, max(1.0, (len(tables) - 1) / 3))
            moved = [_raked(t * a**bold, t) for t, a in zip(now.tables, asked, strict=True)]
            now = _linked(moved, pairs, parents)
    exact = [_raked(table, like, _LAST) for table, like in zip(best.tables, tables, strict=True)]
    return _linked(exact, pairs, parents)


def _asked(now: Fitted, pairs: Pairs, parents: Sequence[int]) -> tuple[list[FloatArray], float]:
    """By what every mass should be multiplied, on average over pairs, and the sum of distances of pairs."""
    law = RowLaw(
        now.tables[0].sum(axis=1),
        parents,
        [ratio(one, one.sum(axis=2, keepdims=True)) for one in now.links],
        [np.broadcast_to(np.eye(t.shape[1]), (len(t), t.shape[1], t.shape[1])) for t in now.tables],
    )
    found, distance = [np.zeros(table.shape) for table in now.tables], 0.0
    for (a, b), wanted in pairs.items():
        middle = law.middle((a, b))
        of_a, of_b = law.given(middle, a), law.given(middle, b)
        masses = law.groups(middle)[:, :, None]
        expected = np.tensordot(masses * of_a, of_b, ((0, 1), (0, 1)))
        distance += float(np.abs(expected - wanted).sum())
        more = np.minimum(ratio(wanted, expected), _LARGEST)
        for column, one, other in ((a, of_a, of_b @ more.T), (b, of_b, of_a @ more)):
            masses_of = masses * one
            found[column] += ratio((masses_of * other).sum(axis=1), masses_of.sum(axis=1))
    number = np.bincount(np.array(list(pairs), np.int64).ravel(), minlength=len(found))
    return [one / of if of else np.ones(one.shape) for one, of in zip(found, number, strict=True)], distance


def _linked(tables: Sequence[FloatArray], pairs: Pairs, parents: Sequence[int]) -> Fitted:
    """Links that repeat the tables of cells and groups, and those of columns and their parents."""
    links = [_links(tables, pairs, parent, column) for column, parent in enumerate(parents)]
    return Fitted(tuple(tables), tuple(links))


def _links(tables: Sequence[FloatArray], pairs: Pairs, parent: int, column: int) -> FloatArray:
    own = tables[column]
    if parent < 0:
        return own[:, None, :]
    pair = pairs[parent, column] if parent > column else pairs[column, parent].T
    found = tables[parent][:, :, None] * own[:, None, :] / own.sum(axis=1)[:, None, None]
    for _ in range(_SWEEPS):
        found *= ratio(pair, found.sum(axis=0))[None]
        found *= ratio(tables[parent], found.sum(axis=2))[:, :, None]
        found *= ratio(own, found.sum(axis=1))[:, None, :]
    lost = (found.sum(axis=2) <= 0) & (tables[parent] > 0)
    found[lost] = np.repeat(own[:, None, :], found.shape[1], axis=1)[lost]
    return np.asarray(found)


def _raked(masses: FloatArray, like: FloatArray, sweeps: int = _SWEEPS) -> FloatArray:
    """Masses (m, groups) brought to the sizes of cells and the totals of groups that another table has."""
    for _ in range(sweeps):
        masses = masses * ratio(like.sum(axis=0), masses.sum(axis=0))
        masses = masses * ratio(like.sum(axis=1), masses.sum(axis=1))[:, None]
    return masses
