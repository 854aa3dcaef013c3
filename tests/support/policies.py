"""Policies for tests, written as a person would write them."""

from __future__ import annotations

import copy
from pathlib import Path

import yaml

from tests.support.census import CENSUS


def write_policy(folder: Path, **changes) -> Path:
    """A policy over the census in a folder; dotted keys change or (None) remove parts of it."""
    policy = {
        "version": 1,
        "name": "test",
        "source": {"table": str(CENSUS), "entity": "person_id"},
        "sensitive": ["marital_status"],
        "public": ["education"],
        "privacy": {"notion": "lip", "epsilon": 1.0},
        "mechanism": "optimal",
        "draws": {"key": "env:FUNNEL_KEY"},
        "release": {"to": "releases", "private": "private"},
    }
    for dotted, value in copy.deepcopy(changes).items():  # the next one may change a part of it
        *path, last = dotted.split("__")
        part = policy
        for key in path:
            part = part.setdefault(key, {})
        if value is None:
            part.pop(last, None)
        else:
            part[last] = value
    target = folder / "policy.yaml"
    target.write_text(yaml.safe_dump(policy, sort_keys=False))
    return target


def finished(text: str) -> str:
    """A starter policy whose author has said what it is for."""
    assert text.count("TODO") == 1
    return text.replace("TODO say", "says")
