"""What several rooms of the tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

import funnel

# No assertion depends on time. A judged run repeats what the last one tried; at the desk, every run tries anew.
settings.register_profile("funnel", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.register_profile("thorough", parent=settings.get_profile("funnel"), max_examples=300)
settings.load_profile("funnel")


@pytest.fixture(scope="session")
def key() -> str:
    """A key for permanent draws."""
    return funnel.new_key()
