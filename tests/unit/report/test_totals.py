"""What the report says of raw totals: to be read as they stand, or only a part of what moved, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.data import Joint
from funnel.format.manifest import Locked
from funnel.mechanisms import Invariant
from funnel.notions import Ldp, Lip
from funnel.report.facts import slope
from tests.support.census import census
from tests.unit.report.sample import one_block, two_blocks

LOCKED = Locked("0" * 64, "2026-11-20T00:00:00Z")


def said(sample, **changes) -> str:
    told = sample.stating(mechanism="invariant", **changes).published()
    return " ".join([*told["utility"]["sentences"], *told["drawing"]["sentences"]])


def test_kept_totals_may_be_read_as_they_stand():
    text = said(one_block(), totals="kept")
    assert "may be read as they stand" in text
    assert "comes back to it from others" in text
    assert "Do not read" not in text


def test_between_blocks_only_a_part_shows():
    assert "shows as a part only" in said(two_blocks(), totals="kept")


def test_under_a_lock_a_part_of_the_change_shows():
    text = said(one_block(), totals="kept", locked=LOCKED)
    assert "the released totals show a part of the difference only" in text
    assert "may be read as they stand" not in text


def test_free_totals_are_not_to_be_read():
    text = said(one_block(), totals="free")
    assert "Do not read the released totals" in text
    assert "totals may move" in text


@pytest.mark.parametrize(("notion", "epsilon", "part"), [(Ldp, 0.5, 0.185), (Lip, 1.0, 0.632)])
def test_the_printed_slopes(notion, epsilon, part):
    joint = census("occupation", "sex")
    demand = notion(notion=notion.__name__.lower(), epsilon=epsilon).demand(joint, {}, 0)
    assert slope(Invariant(kind="invariant").solve(joint, demand).protocol) == pytest.approx(part, abs=5e-4)


def test_a_sum_of_totals_is_not_said_to_be_nearer_than_its_parts():
    """Thirteen totals, each off by less than a tenth of a record: some of them together are off by more."""
    counts = np.random.default_rng(2).integers(20, 4000, (2, 13))
    joint = Joint.from_table(counts.tolist())
    protocol = Invariant(kind="invariant").solve(joint, Lip(notion="lip", epsilon=0.3).demand(joint, {}, 0)).protocol
    totals = joint.table().sum(axis=0)
    off = protocol.probabilities()[:, 0, :] @ totals - totals
    assert abs(off).max() <= 0.1 < off[off > 0].sum()
    assert "a sum of several within a block to within as many tenths" in said(one_block(), totals="kept")
