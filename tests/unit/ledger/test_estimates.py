"""What private estimates spend is entered before it is spent, in the one ledger."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from funnel.errors import InternalError, LedgerError, ReleaseError
from funnel.ledger import journal
from funnel.ledger.estimates import Spent, charge, charged, spent
from funnel.ledger.journal import Journal
from tests.support.ledger import an_entry

HALF = Fraction(1, 2)


@pytest.fixture
def ledger(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def test_it_adds_up_and_a_budget_is_not_passed(ledger: Journal) -> None:
    assert spent(ledger.lines()) == Spent(0, Fraction(0))
    assert charge(ledger, "r1", HALF, Fraction(1)) == Spent(1, HALF)
    ledger.append(an_entry(1))
    assert charge(ledger, "r2", HALF, Fraction(1)) == spent(ledger.lines()) == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match=r"to 1.1 nats \(2 before it\)") as refused:
        charge(ledger, "r3", Fraction(1, 10), Fraction(1))
    assert refused.value.code == "budget"
    assert spent(ledger.lines()) == Spent(2, Fraction(1))
    assert len(ledger.releases()) == 1


def test_what_a_crash_left_of_an_entry_does_not_count_and_is_written_over(ledger: Journal) -> None:
    """Half a line is of an estimate whose noise was never drawn; a whole one behind the head may have been."""
    charge(ledger, "r1", HALF, None)
    head, first = ledger.head_path.read_bytes(), ledger.path.read_bytes()
    charge(ledger, "r2", HALF, None)
    whole = ledger.path.read_bytes()
    ledger.head_path.write_bytes(head)
    assert spent(ledger.lines()).estimates == 2
    ledger.path.write_bytes(whole[:-9])
    assert spent(ledger.lines()).estimates == 1
    charge(ledger, "r3", HALF, None)
    assert [line.entry.name for line in ledger.lines()] == ["r1", "r3"]
    assert ledger.path.read_bytes().startswith(first)


def test_a_disk_that_refuses_the_entry_stops_the_estimate(ledger: Journal, monkeypatch) -> None:
    charge(ledger, "r1", HALF, None)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal.os, "fsync", full)
    with pytest.raises(ReleaseError, match="No space left"):
        charge(ledger, "r2", HALF, None)
    monkeypatch.undo()
    assert spent(ledger.lines()) == Spent(1, HALF)


def test_an_estimate_is_found_by_its_name(ledger: Journal) -> None:
    charge(ledger, "lock-1", HALF, None)
    charge(ledger, "r2", HALF, None)
    assert charged(ledger, "lock-1") == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match="lock-2 is not in the ledger") as refused:
        charged(ledger, "lock-2")
    assert "backup" in (refused.value.advice or "")


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_an_estimate_that_spends_nothing_is_not_one(epsilon: Fraction, ledger: Journal) -> None:
    with pytest.raises(InternalError, match="epsilon should be a text"):
        charge(ledger, "r", epsilon, None)
    assert ledger.lines() == ()
