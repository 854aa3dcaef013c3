"""Local searches from many starts: hops from vertex to vertex of the slice of a cone, while the price rises."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.columns.pricing import Slice, key, price
from funnel.optimise.linear.bases import GIVEN_UP, OPTIMAL, Bases, Objectives

_FLOOR = 1e-9
"""Share of the prior from which the logarithm is taken as it is; below, slopes stop falling."""
_RISE = 1e-10
"""Rise of the price (nats) up to which a hop got nowhere."""
_HOPS = 60
"""Hops from one start; far fewer are needed."""
_AT_ONCE = 256
"""Starts that are climbed from together, where programs are."""


def climbs(
    room: Slice, starts: FloatArray, eta: FloatArray, budget: Budget
) -> Iterator[tuple[FloatArray, float]]:
    """Where climbs from starts (k, a) end, with the price there (nats); each way is gone once, while the budget lasts.

    Each hop leads to the vertex that is best for the tangent at the one before, until the price stops rising. Starts
    may be outside the cone.
    """
    seen: set[bytes] = set()
    step = _AT_ONCE if room.programs.batched else 1
    for place in range(0, len(starts), step):
        if budget.over:
            return
        some = starts[place : place + step]
        budget.spend(len(some))
        yield from _together(room, some, eta, seen)


def _together(
    room: Slice, starts: FloatArray, eta: FloatArray, seen: set[bytes]
) -> Iterator[tuple[FloatArray, float]]:
    """The ends of the ways from all starts that lead over no vertex of `seen`, which takes up those on them."""
    points, worth, known = starts, np.full(len(starts), -np.inf), np.zeros(len(starts), bool)
    bases = Bases.none(len(starts), 1)
    for _ in range(_HOPS):
        slope = np.log(np.maximum(points / room.prior, _FLOOR)) - eta
        answers = room.programs.solve(Objectives.anywhere(slope, bases, patient=False))
        solved = answers.how == OPTIMAL
        here = room.prior + np.zeros_like(points)
        here[solved] = room.inside(answers.point[solved])
        now = price(here, room.prior, eta)
        rises = solved & (now > worth + _RISE)
        later = answers.how == GIVEN_UP
        for place in np.flatnonzero(~rises & ~later & known):
            yield points[place], float(worth[place])
        rises[[place for place in np.flatnonzero(rises) if not _new(here[place], seen)]] = False
        points, worth = np.where(rises[:, None], here, points), np.where(rises, now, worth)
        on = rises | later
        points, worth, known, bases = points[on], worth[on], (known | rises)[on], answers.bases[on]
        if not on.any():
            return
    yield from ((points[place], float(worth[place])) for place in np.flatnonzero(known))


def _new(row: FloatArray, seen: set[bytes]) -> bool:
    """Whether a row was never seen before; now it was."""
    name = key(row)
    if name in seen:
        return False
    seen.add(name)
    return True
