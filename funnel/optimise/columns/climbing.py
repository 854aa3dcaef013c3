"""Local searches from many starts: hops from vertex to vertex of the slice of a cone, while the price rises."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.columns.pricing import FLOOR, HOPS, RISE, Slice, climb, key, price
from funnel.optimise.linear.bases import GIVEN_UP, OPTIMAL, Bases
from funnel.optimise.linear.many import Programs

_AT_ONCE = 256
"""Starts that are climbed from together."""


def climbs(
    room: Slice, starts: FloatArray, eta: FloatArray, deadline: float
) -> Iterator[tuple[FloatArray, float]]:
    """Where climbs from starts (k, a) end, with the price there; each way is gone once only, until the time is over."""
    seen: set[bytes] = set()
    step = 1 if room.programs is None else _AT_ONCE
    for place in range(0, len(starts), step):
        if time.monotonic() >= deadline:
            return
        if room.programs is not None:
            yield from _together(room, room.programs, starts[place : place + step], eta, seen)
        elif (found := climb(room, starts[place], eta, seen)) is not None:
            yield found


def _together(
    room: Slice, programs: Programs, starts: FloatArray, eta: FloatArray, seen: set[bytes]
) -> Iterator[tuple[FloatArray, float]]:
    """`climb` from all starts at once."""
    points, worth, known = starts, np.full(len(starts), -np.inf), np.zeros(len(starts), bool)
    bases: Bases | None = None
    for _ in range(2 * HOPS):
        slope = np.log(np.maximum(points / room.prior, FLOOR)) - eta
        bases = programs.fresh(slope) if bases is None else bases
        least, box = np.full(len(points), -np.inf), (np.zeros_like(points), np.ones_like(points))
        answers = programs.solve(*box, slope, bases, least, patient=False)
        here = room.all_inside(np.where((answers.how == OPTIMAL)[:, None], answers.point, room.prior))
        now = price(here, room.prior, eta)
        rises = (answers.how == OPTIMAL) & (now > worth + RISE)
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
