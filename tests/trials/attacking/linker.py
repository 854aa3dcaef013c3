"""Someone who knows some true columns of a person, the distribution of everybody, and which row is the person's.

Beliefs are exact but for floating point: P(s | y, x_J) is in proportion to the sum over cells t of N[s, t, x_J] Q(y|t).
The label y is all that a row tells: the columns are filled in from it, with a seed that is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from tests.trials.attacking.published import Codes, Floats

Levels = Mapping[str, Sequence[Codes]]
"""How each column may be known: codes (n,) of its own values, and of coarser ones."""


@dataclass(frozen=True, eq=False)
class Moved:
    """What knowing one set of columns gives: nats that each covered person's belief moves; the most any label gives."""

    covered: Codes
    nats: Floats
    worst: float


def sets(levels: Levels, size: int) -> Iterator[tuple[tuple[Codes, int], ...]]:
    """Every set of so many columns, each at each of its levels: codes, and which level that is."""
    for names in combinations(levels, size):
        ways = ([(codes, level) for level, codes in enumerate(levels[name])] for name in names)
        yield from product(*ways)


def link(
    known: Sequence[Codes], secret: Codes, cells: Codes, labels: Codes, chances: Floats, least: int
) -> Moved:
    """Beliefs about the secret (n,) of everyone whose known values at least so many records share."""
    group = np.zeros(len(secret), np.int64)
    for codes in known:
        group = np.unique(group * (codes.max() + 1) + codes, return_inverse=True)[1]
    many = np.bincount(group)
    covered = np.flatnonzero(many[group] >= least)
    if not len(covered):
        return Moved(covered, np.zeros(0), 0.0)
    place = np.unique(group[covered], return_inverse=True)[1]
    shape = int(secret.max()) + 1, int(place.max()) + 1, len(chances)
    table = np.zeros(shape)
    np.add.at(table, (secret[covered], place, cells[covered]), 1.0)
    nats = moves(table.sum(axis=2), table @ chances.T)
    return Moved(covered, nats[place, labels[covered]], float(nats.max()))


def moves(before: Floats, after: Floats) -> Floats:
    """The largest |ln P(s|y,g)/P(s|g)| over values s that occur in the group (c, g); 0 where y is never answered."""
    chances = before / before.sum(axis=0)
    told = after.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log(after / told / chances[:, :, None]))
    ratio[before == 0] = 0
    return np.asarray(np.where(told > 0, ratio.max(axis=0), 0.0))
