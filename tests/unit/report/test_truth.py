"""How true rows are said to be, from released totals alone: not at all where these cannot tell how far they are off."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.data import Alphabet, Protocol
from funnel.measure.recovery import recovered
from funnel.report.truth import estimated

VALUES = Alphabet(("x",), (("a",), ("b",), ("c",)))


def told(chances: list[list[float]], seen: list[int]):
    protocol = Protocol(VALUES, VALUES, 10, np.rint(np.array(chances) * 1024).astype(np.int64)[:, None, :])
    return estimated(protocol, recovered(protocol, np.array(seen), sum(seen)))


@pytest.mark.parametrize("rare", [0, 1, 2])
def test_an_answer_that_hardly_anybody_has_leaves_totals_open_whether_somebody_has_it_or_nobody(rare: int) -> None:
    """One record of the answer c counts for so many of the value c that no error of its total is known."""
    chances = [[0.75, 0.25, 0.5], [0.25, 0.75, 0.4990234375], [0.0, 0.0, 0.0009765625]]
    assert told(chances, [780, 720 - rare, rare]) is None


def test_totals_that_every_answer_tells_of_have_errors() -> None:
    """A record answers its value with 3/4, another one with 1/8: raw totals vary so, estimates 8/5 times as far."""
    found = told([[0.75, 0.125, 0.125], [0.125, 0.75, 0.125], [0.125, 0.125, 0.75]], [600, 500, 400])
    true = np.array([660, 500, 340])  # of which 600, 500 and 400 are what is expected
    vary = true * 3 / 16 + (1500 - true) * 7 / 64
    assert found is not None
    assert found["error"] == float(f"{1.6 * np.sqrt(vary.mean()):.2g}")
