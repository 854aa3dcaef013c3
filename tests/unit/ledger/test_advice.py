"""What a refused release is told to do, where that can be done."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from funnel.errors import LedgerError
from funnel.format.journal import Together
from funnel.ledger import budget
from funnel.policy import load
from tests.support.policies import write_policy

PERMANENT = {"source__entity": "id", "draws__key": "env:FUNNEL_KEY"}


def refused(
    folder: Path, *drawn: str, why: str | None = None, present: Any = None, since: str = "first", **terms: Any
) -> str:
    """The advice to a release without a finite bound, after releases that drew from these columns."""
    policy = load(write_policy(folder, **(terms or PERMANENT)))
    versions = [*((name, "first") for name in drawn), ("education", since)]
    frames = [SimpleNamespace(drawn=[SimpleNamespace(columns=(name,), since=(one,))]) for name, one in versions]
    together = Together("lip", ("marital_status",), None, None, "sum", len(frames), None)
    own = SimpleNamespace(policy="test", name="test", together=together, notion="lip", budget=None, ended=None)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(LedgerError) as caught:
        patch.setattr(budget, "breaks", lambda _: True)
        patch.setattr(budget, "is_own", lambda *_: True)
        patch.setattr(budget, "unproven", lambda *_: why)
        budget.check_promises(policy, SimpleNamespace(promises=[own], present=present, frames=frames), "tonight")
    return caught.value.advice or ""


def test_an_earlier_protocol_is_spoken_of_only_where_there_is_one(tmp_path: Path) -> None:
    assert "The protocol of the release before" in refused(tmp_path, "education")
    for others in ((), ("occupation",)):
        found = refused(tmp_path, *others)
        assert "the release before" not in found and "another private folder" in found


def test_an_earlier_protocol_is_not_spoken_of_where_it_would_add_as_much(tmp_path: Path) -> None:
    """Where the column is taken for another one, and where every release draws anew."""
    for found in (refused(tmp_path, "education", since="tonight"),
                  refused(tmp_path, "education", draws={"kind": "fresh"})):  # fmt: skip
        assert "the release before" not in found and "another private folder" in found


def test_where_nothing_is_proven_of_such_releases_no_protocol_helps(tmp_path: Path) -> None:
    for present in (None, SimpleNamespace()):
        found = refused(tmp_path, "education", why="no proof is about them", present=present)
        assert "like the releases before it in this" in found and "The protocol" not in found and "Leave" not in found
