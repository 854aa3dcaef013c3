"""A manifest must claim what the kept policy asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from funnel.audit import audit_release
from tests.unit.audit import samples

OTHER_TERMS = {
    "a smaller epsilon": {"privacy": {"notion": "lip", "epsilon": 0.5}},
    "another notion": {"privacy": {"notion": "ldp", "epsilon": 1.0}},
    "another secret": {"sensitive": ["income"]},
    "another column": {"public": ["somewhere else"]},
    "another minimum": {"estimate": {"minimum": 7}},
    "another mechanism": {"mechanism": {"kind": "conditional-reporting"}},
    "permanent draws": {"draws": {"kind": "permanent"}},
    "another format": {"release": {"format": "csv"}},
    "no epsilon": {"privacy": {"notion": "lip"}},
    "no secret": {"sensitive": None},
}


@pytest.mark.parametrize("what", OTHER_TERMS)
def test_a_policy_with_other_terms_fails(what: str, tmp_path: Path) -> None:
    forgery = samples.one_block()
    policy = yaml.safe_load(forgery.terms) | OTHER_TERMS[what]
    forgery.policy = yaml.safe_dump(policy).encode()
    assert {finding.claim for finding in _failed(forgery, tmp_path)} == {"policy-terms"}


@pytest.mark.parametrize("policy", [b"[", b"\xff\xfe", b"- a\n- b\n", b"text", b"version: 1\n"])
def test_what_is_not_a_policy_fails(policy: bytes, tmp_path: Path) -> None:
    forgery = samples.one_block()
    forgery.policy = policy
    assert {finding.claim for finding in _failed(forgery, tmp_path)} == {"policy-terms"}


def test_every_spelling_of_the_same_terms_passes(tmp_path: Path) -> None:
    forgery = samples.one_block()
    policy = yaml.safe_load(forgery.terms)
    epsilon = policy["privacy"]["epsilon"]
    policy["privacy"]["epsilon"] = f"{epsilon:e}"
    policy["sensitive"] = policy["sensitive"][0]
    policy["mechanism"] = {"kind": policy["mechanism"], "time_limit": 5}
    forgery.policy = yaml.safe_dump(policy).encode()
    assert not _failed(forgery, tmp_path)


def _failed(forgery, home: Path) -> tuple:  # type: ignore[no-untyped-def, type-arg]
    place = forgery.write(home)
    return audit_release(place.folder, place.private).of("failed")
