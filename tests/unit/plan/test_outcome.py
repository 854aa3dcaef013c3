"""What programs are told of a run: a release that everybody can see is named, whatever went wrong after it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from funnel.errors import AGAIN, FunnelError, ReleaseError
from funnel.plan.outcome import Outcome


@pytest.mark.parametrize(
    ("error", "release"),
    [
        (ReleaseError("also-write", "it is published, but is not in the database", release="out/1"), "out/1"),
        (ReleaseError("disk-full", "the disk is full"), None),
    ],
)
def test_a_release_that_was_published_before_an_error_is_named(error: FunnelError, release: str | None) -> None:
    told = Outcome(Path("p.yaml"), datetime(2026, 11, 22, tzinfo=UTC), 1.0, None, None, error).as_dict()
    assert (told["release"], told["code"], told["error"]["code"]) == (release, AGAIN, error.code)
