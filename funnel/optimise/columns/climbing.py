"""Rows that are worth more than their price, near others: hops from row to row over a slice's linear programs."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.columns.pricing import divergence
from funnel.optimise.linear.bases import GIVEN_UP, OPTIMAL, Answers, Bases, BoolArray, Objectives

_FLOOR = 1e-9
"""Share of the prior from which the logarithm is taken as it is; below, slopes stop falling."""
_HOPS = 60
"""Hops from one start; far fewer are needed."""


class Climbable(Protocol):
    """A slice {w >= 0 : Σ w = 1, w / prior in a cone}, as far as it is known, and how many starts go `together`."""

    prior: FloatArray
    together: int

    def solve(self, objectives: Objectives) -> Answers:
        """max slope·w over what is known of the slice."""

    def land(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Rows w of the slice near a solver's points (k, a…), and which points were cut off since (k,)."""


def climb(room: Climbable, starts: FloatArray, eta: FloatArray, fine: float, budget: Budget) -> FloatArray:
    """Rows w (m, a) near starts (k, a), m <= k, of high price D(w || prior) - eta·w, eta one or each its own.

    Each hop leads towards what is best for the tangent at the row before, until that is better by no more than `fine`,
    or the price stops rising; or with the budget. Starts may be outside.
    """
    eta = np.broadcast_to(eta, starts.shape)
    found = [np.zeros((0, starts.shape[1]))]
    for place in range(0, len(starts), room.together):
        if budget.over:
            break
        some = slice(place, place + room.together)
        budget.spend(len(starts[some]))
        found.append(_together(room, starts[some], eta[some], fine, budget))
    return np.concatenate(found)


def _together(room: Climbable, starts: FloatArray, eta: FloatArray, fine: float, budget: Budget) -> FloatArray:
    """The ends of the ways from all starts."""
    count, size = starts.shape
    here, reached = starts.copy(), np.full(count, -np.inf)
    active, bases = np.arange(count), Bases.none(count, 1)
    for _ in range(_HOPS):
        slope = np.log(np.maximum(here[active] / room.prior, _FLOOR)) - eta[active]
        answers = room.solve(Objectives.anywhere(slope, bases, patient=False))
        ahead = np.einsum("na,na->n", slope, answers.point[:, :size] - here[active])
        go = (answers.how == OPTIMAL) & ((ahead > fine) | np.isneginf(reached[active]))
        rows, on = room.land(answers.point[go])
        tried = active[go]
        worth = divergence(rows, room.prior) - np.einsum("na,na->n", rows, eta[tried])
        up = worth > reached[tried]
        here[tried[up]], reached[tried[up]] = rows[up], worth[up]
        further = answers.how == GIVEN_UP
        further[go] = up | on
        active, bases = active[further], answers.bases[further]
        if not len(active) or budget.over:
            break
    return here[~np.isneginf(reached)]
