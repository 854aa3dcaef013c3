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
    folder: Path, *others: str, why: str | None = None, present: Any = None, frames: tuple[str, ...] = ("own",),
    **terms: Any,
) -> str:  # fmt: skip
    """The advice to a release without a finite bound, which ends the promises of `others` as well."""
    policy = load(write_policy(folder, **(PERMANENT | terms)))
    own = promise("test")
    ended = [promise(name, ended="tonight") for name in others]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(LedgerError) as caught:
        patch.setattr(budget, "is_own", lambda one, _: one.policy == "test")
        patch.setattr(budget, "publishes", lambda *_: False)
        patch.setattr(budget, "unproven", lambda frames, _: why if frames else None)
        found = SimpleNamespace(promises=[own, *ended], present=present, frames=frames)
        budget.check_promises(policy, found, "tonight")
    return caught.value.advice or ""


def promise(name: str, ended: str | None = None) -> Any:
    together = Together("lip", ("marital_status",), None, None, "sum", 2, None)
    return SimpleNamespace(policy=name, name=name, together=together, notion="lip", budget=None, ended=ended)


def test_where_nothing_is_proven_of_such_releases_they_are_to_be_alike(tmp_path: Path) -> None:
    for present in (None, SimpleNamespace()):
        found = refused(tmp_path, why="no proof is about them", present=present)
        assert "like the releases before it in this" in found and "leaving nobody out" not in found
        found = refused(tmp_path, why="no proof is about them", present=present, frames=("before", "own"))
        assert "What was told stays told" in found, "those before it are unlike already"


def test_whoever_leaves_people_out_is_told_that_this_may_be_why(tmp_path: Path) -> None:
    assert "leaving nobody out" in refused(tmp_path, present=SimpleNamespace())
    assert "leaving nobody out" not in refused(tmp_path)


def test_all_that_a_policy_has_to_name_is_told_at_once(tmp_path: Path) -> None:
    """And who tells of it: the end of another policy's promise is no matter of the readers of this one."""
    alone = refused(tmp_path)
    assert "`accept: unbounded` into the policy, and every reader is told of it" in alone
    several = refused(tmp_path, "wards", "jobs")
    assert "`accept: [unbounded, wards, jobs]`" in several
    assert "gives up as well what policy wards promises about marital_status (lip) and what policy jobs" in several
    assert "every reader is told and the ledger tells of it" in several
    rest = refused(tmp_path, "wards", accept="unbounded")
    assert "`accept: [unbounded, wards]` into the policy, and the ledger tells of it" in rest
