"""What private estimates spend is entered before it is spent, in the one ledger, and what was drawn is taken again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from funnel.draw.histogram import MOST
from funnel.errors import InternalError, LedgerError, ReleaseError
from funnel.ledger import estimates, journal
from funnel.ledger.estimates import EstimateRequest, Spent, charged, estimate, spent, standing
from funnel.ledger.journal import Journal
from tests.support.ledger import an_entry

HALF = Fraction(1, 2)
COUNTS = np.array([5, 0, 3])


def asked(budget: Fraction | None = None, epsilon: Fraction = HALF, terms: str = "a") -> EstimateRequest:
    return EstimateRequest(terms * 64, epsilon, budget)


@pytest.fixture
def ledger(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def test_it_adds_up_over_all_that_is_asked_and_a_budget_is_not_passed(ledger: Journal) -> None:
    assert spent(ledger.lines()) == Spent(0, Fraction(0))
    estimate(ledger, "e1", asked(Fraction(1)), COUNTS)
    ledger.append(an_entry(1))
    estimate(ledger, "e2", asked(Fraction(1), terms="b"), COUNTS)
    assert spent(ledger.lines()) == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match=r"3 estimates of these people would have spent 1.1 nats") as refused:
        estimate(ledger, "e3", asked(Fraction(1), Fraction(1, 10), "c"), COUNTS)
    assert refused.value.code == "budget"
    assert spent(ledger.lines()) == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match=r"2 estimates of these people have spent 1 nats"):
        standing(ledger, asked(Fraction(1, 2), terms="b"), timedelta(hours=1))
    assert len(ledger.releases()) == 1


def test_no_dice_are_rolled_before_the_entry_is_on_the_disk_nor_where_it_is_refused(ledger, monkeypatch) -> None:
    seen = []

    def rolled(counted, rate):
        seen.append(spent(Journal(ledger.path.parent).lines()))
        return np.array(counted)

    monkeypatch.setattr(estimates, "_noisy", rolled)
    estimate(ledger, "e1", asked(HALF), COUNTS)
    with pytest.raises(LedgerError):
        estimate(ledger, "e2", asked(HALF), COUNTS)
    assert seen == [Spent(1, HALF)]


def test_what_was_drawn_is_taken_again_for_the_same_terms_alone(ledger: Journal) -> None:
    assert standing(ledger, asked()) is None
    made = estimate(ledger, "e1", asked(), COUNTS)
    again = standing(ledger, asked(), timedelta(hours=1))
    assert again is not None
    assert (again.name, again.true.tolist(), again.noisy.tolist()) == ("e1", COUNTS.tolist(), made.noisy.tolist())
    assert standing(ledger, asked(terms="b")) is None
    looks = {tuple(standing(ledger, asked()).noisy.tolist()) for _ in range(300)}
    assert looks == {tuple(made.noisy.tolist())}
    assert spent(ledger.lines()).estimates == 1
    newer = estimate(ledger, "e2", asked(), COUNTS)
    assert standing(ledger, asked()).noisy.tolist() == newer.noisy.tolist()


def test_an_estimate_stands_for_hours_whichever_way_the_clock_goes_and_for_a_look_for_good(ledger, monkeypatch):
    estimate(ledger, "e1", asked(), COUNTS)

    class Later(datetime):
        ahead = timedelta(0)

        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + cls.ahead

    monkeypatch.setattr(estimates, "datetime", Later)
    for hours, stands in ((0, True), (11, True), (13, False), (-13, False)):
        Later.ahead = timedelta(hours=hours)
        assert (standing(ledger, asked(), estimates.STANDS) is not None) is stands
        assert standing(ledger, asked()) is not None


def test_an_estimate_was_drawn_when_its_name_says_and_not_when_the_ledger_does(ledger: Journal) -> None:
    """A ledger's times never go back: by these, every run under a clock that was set back would draw anew."""
    for terms, hours, stands in (("a", -13, False), ("b", -11, True), ("c", 11, True), ("d", 13, False)):
        drawn = datetime.now(UTC) + timedelta(hours=hours)
        estimate(ledger, f"estimate-{drawn:%Y%m%dT%H%M%SZ}-3f9a1c", asked(terms=terms), COUNTS)
        found = standing(ledger, asked(terms=terms), estimates.STANDS)
        assert (found is not None) is stands


def test_where_more_is_spent_than_the_budget_nothing_more_is_made_of_an_estimate(ledger: Journal) -> None:
    estimate(ledger, "e1", asked(), COUNTS)
    with pytest.raises(LedgerError) as refused:
        standing(ledger, asked(Fraction(1, 4)), timedelta(hours=1))
    assert refused.value.code == "budget"
    assert standing(ledger, asked(Fraction(1, 4))) is not None, "a look makes nothing new of it"


def test_a_crash_between_entry_and_noise_leaves_the_entry_which_counts(ledger: Journal, monkeypatch) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    for point in ("_noisy", "keep"):
        monkeypatch.setattr(estimates, point, crash)
        with pytest.raises(KeyboardInterrupt):
            estimate(ledger, f"e-{point}", asked(Fraction(3, 2)), COUNTS)
        monkeypatch.undo()
        assert standing(ledger, asked()) is None, "nobody has seen any of it"
    estimate(ledger, "e3", asked(Fraction(3, 2)), COUNTS)
    assert spent(ledger.lines()) == Spent(3, Fraction(3, 2))
    with pytest.raises(LedgerError):
        estimate(ledger, "e4", asked(Fraction(3, 2)), COUNTS)


def test_an_estimate_that_cannot_be_read_stops_the_next_one(ledger: Journal) -> None:
    estimate(ledger, "e1", asked(), COUNTS)
    path = ledger.path.parent / "estimates" / "e1.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LedgerError, match="the estimate e1 cannot be read") as refused:
        standing(ledger, asked())
    assert "backup" in (refused.value.advice or "")


@pytest.mark.parametrize("size", [1 << 45, -(1 << 45), 1 << 80, -(1 << 80)])
def test_noise_of_any_size_is_taken_and_what_is_beyond_all_counts_becomes_the_largest(ledger, monkeypatch, size):
    monkeypatch.setattr(estimates, "discrete_laplace", lambda rate, dice: size)
    made = estimate(ledger, "e1", asked(), COUNTS)
    assert made.noisy.tolist() == [MOST if size > 0 else -MOST] * 3
    assert standing(ledger, asked()).noisy.tolist() == made.noisy.tolist()


def test_what_a_crash_left_of_an_entry_does_not_count_and_is_written_over(ledger: Journal) -> None:
    """Half a line is of an estimate whose noise was never drawn; a whole one behind the head may have been."""
    estimate(ledger, "r1", asked(), COUNTS)
    head, first = ledger.head_path.read_bytes(), ledger.path.read_bytes()
    estimate(ledger, "r2", asked(), COUNTS)
    whole = ledger.path.read_bytes()
    ledger.head_path.write_bytes(head)
    assert spent(ledger.lines()).estimates == 2
    ledger.path.write_bytes(whole[:-9])
    assert spent(ledger.lines()).estimates == 1
    estimate(ledger, "r3", asked(), COUNTS)
    assert [line.entry.name for line in ledger.lines()] == ["r1", "r3"]
    assert ledger.path.read_bytes().startswith(first)


def test_a_disk_that_refuses_the_entry_stops_the_estimate(ledger: Journal, monkeypatch) -> None:
    estimate(ledger, "r1", asked(), COUNTS)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal.os, "fsync", full)
    monkeypatch.setattr(estimates, "_noisy", lambda *_: pytest.fail("dice were rolled"))
    with pytest.raises(ReleaseError, match="No space left"):
        estimate(ledger, "r2", asked(), COUNTS)
    monkeypatch.undo()
    assert spent(ledger.lines()) == Spent(1, HALF)


def test_an_estimate_is_found_by_its_name(ledger: Journal) -> None:
    estimate(ledger, "lock-1", asked(), COUNTS)
    estimate(ledger, "r2", asked(), COUNTS)
    assert charged(ledger, "lock-1") == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match="lock-2 is not in the ledger") as refused:
        charged(ledger, "lock-2")
    assert "backup" in (refused.value.advice or "")


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_an_estimate_that_spends_nothing_is_not_one(epsilon: Fraction, ledger: Journal) -> None:
    with pytest.raises(InternalError, match="epsilon should be a text"):
        estimate(ledger, "r", asked(epsilon=epsilon), COUNTS)
    assert ledger.lines() == ()
