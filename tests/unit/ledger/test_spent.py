"""What private estimates spent is on record before it is spent, as firmly as the ledger."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from funnel.errors import LedgerError, ReleaseError
from funnel.ledger import journal as ledger
from funnel.ledger.spending import Spent, charge, charged, record, spent

HALF = Fraction(1, 2)


def test_it_adds_up_and_a_budget_is_not_passed(tmp_path: Path) -> None:
    assert spent(tmp_path) == Spent.nothing()
    assert charge(tmp_path, "r1", HALF, Fraction(1)) == Spent(1, HALF)
    assert charge(tmp_path, "r2", HALF, Fraction(1)) == spent(tmp_path) == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match=r"to 1.1 nats \(2 before it\)") as refused:
        charge(tmp_path, "r3", Fraction(1, 10), Fraction(1))
    assert refused.value.code == "budget"
    assert spent(tmp_path) == Spent(2, Fraction(1))


def test_what_a_crash_left_of_an_entry_does_not_count_and_is_written_over(tmp_path: Path) -> None:
    """Half a line is of an estimate whose noise was never drawn; a whole one behind the head may have been."""
    charge(tmp_path, "r1", HALF, None)
    chain, head = record(tmp_path), record(tmp_path).head_path.read_bytes()
    first = chain.path.read_bytes()
    charge(tmp_path, "r2", HALF, None)
    whole = chain.path.read_bytes()
    chain.head_path.write_bytes(head)
    assert spent(tmp_path).estimates == 2
    chain.path.write_bytes(whole[:-9])
    assert spent(tmp_path).estimates == 1
    charge(tmp_path, "r3", HALF, None)
    assert [entry["release"] for entry in chain.entries()] == ["r1", "r3"]
    assert chain.path.read_bytes().startswith(first)


def test_a_disk_that_refuses_the_entry_stops_the_estimate(tmp_path: Path, monkeypatch) -> None:
    charge(tmp_path, "r1", HALF, None)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger.os, "fsync", full)
    with pytest.raises(ReleaseError, match="No space left"):
        charge(tmp_path, "r2", HALF, None)
    monkeypatch.undo()
    assert spent(tmp_path) == Spent(1, HALF)


def test_an_estimate_is_found_by_its_name(tmp_path: Path) -> None:
    charge(tmp_path, "lock-1", HALF, None)
    charge(tmp_path, "r2", HALF, None)
    assert charged(tmp_path, "lock-1") == Spent(2, Fraction(1))
    with pytest.raises(LedgerError, match="lock-2 is not on the record") as refused:
        charged(tmp_path, "lock-2")
    assert "backup" in (refused.value.advice or "")


@pytest.mark.parametrize("entry", [{"release": "r"}, {"release": "r", "epsilon": "0"}, {"release": 1, "epsilon": "1"},
                                   {"release": "r", "epsilon": "1/0"}, {"release": "r", "epsilon": [1]}])  # fmt: skip
def test_an_entry_that_spends_nothing_is_not_one(entry: dict[str, object], tmp_path: Path) -> None:
    record(tmp_path).append(entry)
    with pytest.raises(
        LedgerError, match="line 1 of the record of private estimates is not one that funnel wrote"
    ):
        spent(tmp_path)
