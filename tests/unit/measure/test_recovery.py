"""Errors of estimated totals: nothing where draws leave a total alone, and told as vague where chance hides them."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.measure.recovery import choices, recover

BITS = 10


def test_a_total_that_no_draw_leaves_is_exact_however_many_answers_others_have() -> None:
    """The first value answers as itself alone, and no other one as it; the other four as any of them."""
    weights = np.zeros((5, 5), np.int64)
    weights[0, 0] = 1 << BITS
    weights[1:, 1:] = (1 << BITS) // 8
    weights[1:, 1:] += np.eye(4, dtype=np.int64) * ((1 << BITS) // 2)
    found = recover(weights, BITS, np.array([208, 100, 90, 80, 70]), 5)
    assert found.count[0] == pytest.approx(208)
    assert found.error[0] == found.one[0] == pytest.approx(0, abs=1e-6)
    assert (found.error[1:] > 1).all() and not found.vague.any()
    answers, starts = choices(weights > 0)
    assert sorted(map(sorted, (part.tolist() for part in np.split(answers, starts[1:])))) == [[0], [1, 2, 3, 4]]


@pytest.mark.parametrize("told", [0, 1, 2, 60])
def test_an_error_that_rests_on_answers_that_few_show_is_vague(told: int) -> None:
    """A value that is hardly ever told as itself: where none is, the error looks small, and is not."""
    weights = np.array([[1024, 1022], [0, 2]], np.int64)
    found = recover(weights, BITS, np.array([600 - told, told]), 2)
    assert found.one[1] == pytest.approx(512)
    assert bool(found.vague[1]) == (told < 3)
