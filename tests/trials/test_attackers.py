"""Attackers in small: no claim falls, and they are worth their name, as what is not claimed falls to them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.trials import attackers
from tests.trials.attacking import absent, columns, hidden, noisy, wide
from tests.trials.attacking.learner import beliefs, ceiling, right
from tests.trials.attacking.linker import link
from tests.trials.attacking.row import Row, Said, nats

ASKED = wide.Asked(
    people=3000, cells=12, most=1, columns=("age", "education", "marital_status", "sex", "hours_per_week")
)


@pytest.mark.parametrize("name", attackers.OWN)
def test_no_less_is_claimed_than_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "NOTIONS", {"ldp_x": absent.NOTIONS["ldp_x"]})
    monkeypatch.setattr(columns, "NOTIONS", {"ldp_x": columns.NOTIONS["ldp_x"]})
    monkeypatch.setattr(columns, "NIGHTS", 2)
    monkeypatch.setattr(noisy, "LOOKS", 5)
    rows = list(attackers.attacked([name], [], tmp_path))
    assert rows
    assert [one for one in rows if not one.held] == []


def test_counts_in_words_and_an_observer_of_the_counts_of_a_shipped_policy(tmp_path: Path) -> None:
    """What hides in a report is found in the published folder alone."""
    rows = list(attackers.attacked(["whole", "hidden", "counts"], ["perfect"], tmp_path))[3:]
    assert [one.attacker for one in rows] == ["the whole table", *["counts in words"] * 2, "counts from figures"]
    assert all(one.held for one in rows)
    assert "perfect: report.html" in attackers.text(rows)
    assert hidden.spelled(32_561).split() == ["thirty", "two", "thousand", "five", "hundred", "sixty", "one"]


def test_a_figure_below_what_is_told_is_false_unless_it_says_what_it_assumes() -> None:
    low = Said(0.3, assumes=("values unchanged",))
    assert not nats("a", "b", low, 0.5).held
    assert nats("a", "b", low, 0.5, "values unchanged").held
    assert nats("a", "b", Said(None), float("inf")) == Row("a", "b", "no bound", "certain", True)
    assert not nats("a", "b", Said(None, wrong=("the ledger says 0.3",)), 0.2).held


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> wide.Trial:
    return wide.run(ASKED, ["lip", "knows-1"], tmp_path_factory.mktemp("wide"))


def test_no_claim_falls(trial: wide.Trial) -> None:
    assert trial.findings == []
    claimed = [(one.claim, one.knows, one.vague) for one in trial.linked if one.claimed is not None]
    assert claimed == [("lip", 0, False), ("knows-1", 0, False), ("knows-1", 1, False), ("knows-1", 1, True)]
    for one in trial.linked:
        if one.claimed is not None:
            assert one.real <= one.claimed
            assert one.real > 0.9 or one.vague or one.knows < wide.NOTIONS[one.claim][1], (
                "attacks come near to the claim"
            )
            assert one.beyond == one.anyone == (0, 0)
    assert json.loads(json.dumps(trial.as_dict(), allow_nan=False))["findings"] == []
    assert wide.text(trial).endswith("all held")


def test_who_knows_a_column_moves_beliefs_that_lip_says_nothing_of(trial: wide.Trial) -> None:
    (knowing,) = [one for one in trial.linked if (one.claim, one.knows, one.vague) == ("lip", 1, False)]
    assert knowing.real > 1.5 * ASKED.epsilon
    assert knowing.anyone[0] > 0.1
    as_if_claimed = wide.Trial([replace(knowing, claimed=ASKED.epsilon)])
    assert len(list(wide.judged(as_if_claimed))) == 1


def test_beliefs_are_those_of_bayes() -> None:
    secret, cells, labels = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0]), np.array([0, 1, 0, 1, 1])
    chances, group = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([0, 0, 0, 0, 1])
    moved = link([group], secret, cells, labels, chances, 2)
    assert moved.covered.tolist() == [0, 1, 2, 3]
    after = {0: [2 / 3, 1 / 3], 1: [0.4, 0.6]}  # (.75 + .25, .25 + .25) and (.25 + .75, .75 + .75)
    nats = [max(abs(np.log(belief / 0.5)) for belief in after[y]) for y in (0, 1, 0, 1)]
    assert moved.nats == pytest.approx(nats)
    assert moved.worst == pytest.approx(max(nats))
    assert link([group], secret, cells, labels, np.eye(2), 2).worst == np.inf


def test_a_classifier_learns_what_columns_tell_and_no_row_may_tell_more_than_the_bound() -> None:
    draw = np.random.default_rng(2)
    secret = draw.integers(0, 2, 4000)
    half = np.arange(2000)
    belief = beliefs([np.where(draw.random(4000) < 0.9, secret, 1 - secret)], secret, half, half + 2000)
    shares = [share for _, share in right(belief[1], secret[2000:] == 1)]
    assert min(shares) > 0.8
    assert ceiling(0.5, 1.0) == pytest.approx(1 - 0.5 / np.e)
    row = wide.Learned("lip", "1", 200, ceiling(0.5, 0.1), shares[-1])
    assert len(list(wide.judged(wide.Trial(learned=[row])))) == 1
