"""A notion or mechanism that is half there is not there: file, union and example policy belong together."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

import funnel
from funnel.mechanisms import MECHANISMS, AnyMechanism
from funnel.notions import NOTIONS, AnyNotion

ROOT = Path(__file__).parents[3]
POLICIES = sorted((ROOT / "policies").glob("*.yaml"))
HELPERS = {
    "notions": {"__init__", "base", "believed", "change", "implications", "known", "robust", "shape", "tables"},
    "mechanisms": {
        "__init__", "base", "believed", "choice", "distance", "exactly_robust", "naming", "product", "single", "split",
    },
}


def files(room: str) -> set[str]:
    paths = (ROOT / "funnel" / room).glob("*.py")
    return {path.stem.replace("_", "-") for path in paths if path.stem not in HELPERS[room]}


def test_every_file_is_registered_and_every_name_has_its_file():
    assert files("notions") == set(NOTIONS)
    assert files("mechanisms") == set(MECHANISMS)


def test_every_registered_class_is_in_the_union_that_policies_are_read_by():
    assert set(get_args(get_args(AnyNotion)[0])) == set(NOTIONS.values())
    assert set(get_args(get_args(AnyMechanism)[0])) == set(MECHANISMS.values())


def test_every_notion_and_mechanism_has_a_ready_policy():
    loaded = [funnel.load(path) for path in POLICIES]
    assert {policy.privacy.notion for policy in loaded} == set(NOTIONS)
    assert {policy.mechanism.kind for policy in loaded} == set(MECHANISMS)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_a_ready_policy_says_when_to_use_it(path):
    comment = path.read_text().split("version:")[0]
    assert comment.startswith("# ")
    assert "Use this where" in comment or "Use this as" in comment
