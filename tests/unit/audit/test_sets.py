"""Bounds over box sets are gone through again: by lists of vertices, where groups are small."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from funnel.audit.sets import OverSets, _ends, _Lists
from funnel.audit.uncertainty import Seen, Uncertainty
from funnel.errors import AuditFailure
from funnel.measure.uncertainty import limits
from funnel.optimise.groups import GroupCertificate, maximise_groups
from funnel.optimise.worst_case import Sets

RADIUS, EPSILON = 0.01, 0.5
LARGE = ((40, 20, 12), (300, 120, 90))


@cache
def known(counts: tuple[tuple[int, ...], ...]) -> Uncertainty:
    """A set around counts in which every secret value has the same radius; the values of S and U are released."""
    seen, start = [], 0
    for s, row in enumerate(counts):
        places = np.arange(start, start + len(row))
        share = Fraction(sum(row), sum(map(sum, counts)))
        seen.append(Seen(s, places, np.array(row), share, Fraction(math.exp(-RADIUS))))
        start += len(row)
    return Uncertainty(Fraction(2), Fraction(RADIUS), tuple(seen))


@cache
def certificate(counts: tuple[tuple[int, ...], ...]) -> OverSets:
    """What the solver says of the boxes around these counts."""
    given = [one.chances for one in known(counts).seen]
    ends = [limits(2, RADIUS, row) for row in given]
    size = sum(map(len, given))
    sets = Sets(
        [one.places for one in known(counts).seen], [low for low, _ in ends], [high for _, high in ends], size
    )
    found = maximise_groups(sets, math.exp(EPSILON), prior(counts), budget=60, gap=0.1).certificate
    assert isinstance(found, GroupCertificate)
    listing = found.listing
    return OverSets(found.duals, found.peak, listing.large, listing.rhos, listing.kappas)


def prior(counts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    mass = np.concatenate([np.array(row, float) for row in counts])
    return mass / mass.sum()


def lists(told: OverSets) -> _Lists:
    return _Lists(told, known(LARGE), prior(LARGE), math.exp(EPSILON))


def test_the_auditors_boxes_are_those_of_the_paper() -> None:
    for one in known(LARGE).seen:
        for own, other in zip(
            _ends(one.chances, math.exp(RADIUS)), limits(2, RADIUS, one.chances), strict=True
        ):
            assert own == pytest.approx(other, rel=1e-11)


def test_a_bound_by_lists_is_found_again_and_no_lower_one() -> None:
    told = certificate(LARGE)
    assert told.large == 1
    assert lists(told).check() > 100
    for changed in (
        replace(told, peak=told.peak - 1e-6),
        replace(told, duals=told.duals - 1e-4 * prior(LARGE)),
    ):
        with pytest.raises(AuditFailure, match="some row over box sets is worth more"):
            lists(changed).check()


def test_lists_leave_no_mode_out() -> None:
    told = certificate(LARGE)
    for rhos in (told.rhos[1:], told.rhos[:-1], told.rhos[::-1]):
        with pytest.raises(AuditFailure, match="leave modes out"):
            lists(replace(told, rhos=rhos)).check()
