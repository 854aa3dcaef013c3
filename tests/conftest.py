"""What several rooms of the tests share."""

from __future__ import annotations

import pytest

import funnel


@pytest.fixture(scope="session")
def key() -> str:
    """A key for permanent draws."""
    return funnel.new_key()
