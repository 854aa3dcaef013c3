"""What the audit asks of the figure about the whole table, where what it finds itself has no end on one side."""

from __future__ import annotations

import json

import numpy as np
import pytest

from funnel.audit.extras import observer
from funnel.audit.kernel.verdict import Broken
from funnel.measure.observer import Observed

TOLD = {"how": "exact", "rises": 0.39, "falls": 0.65, "odds": 1.04}


class Opened:
    """A release of which only the private report is read."""

    counts = None

    def read(self, name: str) -> str:
        return json.dumps({"evidence": {"observer": TOLD}})


@pytest.fixture
def found(monkeypatch):
    """Sets what the audit finds, P(s|y,M)/P(s) from below and above, (c, m)."""

    def put(low: np.ndarray, high: np.ndarray) -> None:
        monkeypatch.setattr(observer, "records", lambda _: None)
        monkeypatch.setattr(observer, "_found", lambda *_: Observed("bound", low, high, np.array([1])))

    return put


def test_bounds_that_ask_for_nothing_let_every_figure_stand(found):
    """Of totals that were unlikely a belief's bound may be nothing at all, whose logarithm is no endless rise."""
    found(np.array([[2.0], [2.0]]), np.zeros((2, 1)))
    assert observer.check(Opened()).startswith("up by 0.39 nats")


def test_a_finite_figure_where_a_belief_falls_without_end_is_too_little(found):
    gone = np.array([[0.0], [1.0]])
    found(gone, gone)
    with pytest.raises(Broken, match="falls"):
        observer.check(Opened())
