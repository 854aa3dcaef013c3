"""A protocol that could be the last one again is the last one again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import funnel
from funnel.plan import protect
from tests.support.policies import write_policy

PEOPLE = (
    "SELECT i AS id, ['u', 'v'][((i % 4) * 2 + i % 7 > 6)::INT + 1] AS answer, "
    "['a', 'b', 'c', 'd'][i % 4 + 1] AS colour, i % 3 AS size FROM range({n}) t(i)"
)
CHANGES: dict[str, dict[str, Any]] = {
    "one block": {"public": ["colour"]},
    "two blocks": {"public": ["colour", "size"]},
    "sets": {"public": ["colour"], "mechanism": "unary-encoding"},
    "robust": {"public": ["colour"], "privacy": {"notion": "rldp", "epsilon": 0.9}},
    "auto": {"public": ["colour"], "mechanism": "auto"},
    "totals": {"public": ["colour"], "mechanism": "invariant"},
    "totals of cells": {
        "public": [{"name": "cell", "columns": ["colour", "size"], "cells": 4}],
        "mechanism": "invariant",
    },
    "cells": {"public": [{"name": "cell", "columns": ["colour", "size"], "cells": 4}]},
}


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends elsewhere every time: each finds what half of the bound before it allows."""
    honest, rate = protect.choose, [1.0]

    def ended(joint: Any, notion: Any, *rest: Any, **more: Any) -> Any:
        found = honest(joint, notion.model_copy(update={"epsilon": notion.epsilon * rate[0]}), *rest, **more)
        rate[0] /= 2
        arranged = replace(found.arranged, notion=found.notion.model_copy(update={"epsilon": notion.epsilon}))
        solved = tuple(one.unproven() for one in found.solved)
        if (
            solved[0].totals is not None
        ):  # its prices are those of the whole bound, whatever was found in time
            priced = honest(joint, notion, *rest, **more).solved[0].totals
            solved = (replace(solved[0], totals=replace(priced, deviation=solved[0].totals.deviation)),)
        return replace(found, arranged=arranged, solved=solved)

    monkeypatch.setattr(protect, "choose", ended)


def policy(folder: Path, people: int = 420, **changes: Any) -> Path:
    duckdb.sql(f"COPY ({PEOPLE.format(n=people)}) TO '{folder / 'people.parquet'}'")
    rest = {"sensitive": ["answer"], "privacy": {"notion": "lip", "epsilon": 0.2}} | changes
    return write_policy(folder, source={"table": "people.parquet", "entity": "id"}, **rest)


def released(path: Path) -> tuple[bytes, float | None]:
    """The protocol, and what all releases tell together."""
    found = funnel.run(path)
    return (Path(found.release) / "protocol.json").read_bytes(), funnel.read_ledger(path).as_dict()[
        "composed"
    ]


@pytest.mark.long
@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.usefixtures("another")
def test_the_same_counts_and_terms_have_the_same_protocol_and_add_nothing(
    tmp_path, monkeypatch, case
) -> None:
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    path = policy(tmp_path, **CHANGES[case])
    first = released(path)
    assert released(path) == first
    assert released(path) == first
    audited = funnel.audit_release(tmp_path / "releases" / "latest", tmp_path / "private")
    assert [one.claim for one in audited.of("failed")] == []


@pytest.mark.usefixtures("another")
def test_other_counts_or_terms_are_solved_anew(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    path = policy(tmp_path, accept=["unbounded"], public=["colour"])
    first, _ = released(path)
    policy(tmp_path, people=424, accept=["unbounded"], public=["colour"])
    second, _ = released(path)
    assert second != first
    policy(
        tmp_path,
        people=424,
        accept=["unbounded"],
        public=["colour"],
        privacy={"notion": "lip", "epsilon": 0.21},
    )
    assert released(path)[0] != second


def test_a_protocol_of_a_lock_is_not_said_to_be_made_for_the_counts_of_its_last_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made with room to drift, perhaps on another night."""
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    path = policy(tmp_path, public=["colour"])
    funnel.make_lock(path, room=0.5)
    locked, free = funnel.run(path, locked=True), funnel.run(path)
    assert free.measured.normalised == locked.measured.normalised
    told = str(free.as_dict()["blocks"])
    assert "under its lock, at the same counts" in told
    assert "made for" not in told
    pages = [(Path(str(one.release)) / "report.json").read_text(encoding="utf-8") for one in (locked, free)]
    assert "or within the part of it that the lock took" in pages[0]
    assert "was not settled" not in pages[1] and "in the time allowed" not in pages[1]
    assert "this is the best, or as near to it as the ceiling says" in pages[1]


LOCKED: dict[str, dict[str, Any]] = {
    "totals": {"mechanism": "invariant"},
    "auto": {"mechanism": "auto"},
    "beliefs": {"estimate": {"minimum": 1, "beliefs": 0.05}},
    "formula": {
        "public": [["answer", "colour"]],
        "privacy": {"notion": "rldp", "epsilon": 0.9},
        "mechanism": "secret-randomised-response",
    },
}


@pytest.mark.parametrize("case", LOCKED)
def test_what_is_said_of_a_protocol_for_these_counts_is_not_said_of_one_of_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Totals would not stay, and the audit would refuse what has another form, or is not the best of several."""
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    asked = {"public": ["colour"], "accept": ["unbounded"], "privacy": {"notion": "lip", "epsilon": 0.5}} | LOCKED[case]
    path = policy(tmp_path, **asked)
    funnel.make_lock(path, room=0.4)
    policy(tmp_path, people=433, **asked)
    locked, free = funnel.run(path, locked=True), funnel.run(path)
    off = [one.totals.deviation for one in free.protection.solved if one.totals is not None]
    assert off == [] or max(off) <= 0.1
    assert free.protection.protocols[0].fingerprint != locked.protection.protocols[0].fingerprint


def test_a_protocol_that_was_a_lock_s_is_not_said_to_be_made_for_its_counts_two_nights_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release between had no lock, and took it once more."""
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    path = policy(tmp_path, public=["colour"])
    funnel.make_lock(path, room=0.5)
    funnel.run(path, locked=True)
    funnel.run(path)
    third = funnel.run(path)
    assert third.protection.solved[0].how.endswith("which was drawn from at the same counts")
