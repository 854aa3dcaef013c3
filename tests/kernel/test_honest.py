"""Honest releases of every kind: every claim that they make is looked at, and holds."""

from __future__ import annotations

import pytest

from funnel.audit.kernel.check import verdict
from tests.kernel.samples import KINDS, judged, sample
from tests.support.kernel import check


@pytest.mark.parametrize("kind", KINDS)
def test_every_claim_of_an_honest_release_holds(kind, tmp_path):
    found = judged(*sample(**KINDS[kind]).write(tmp_path))
    assert [one.text() for one in found if one.status == "failed"] == []
    assert [one.text() for one in found if one.status == "not checked" and one.claimed] == []
    assert verdict(found).startswith("every claim")


def test_without_the_private_folder_only_what_is_published_is_looked_at(tmp_path):
    public, _ = sample().write(tmp_path)
    found = {one.claim: one.status for one in check(public)}
    assert {claim for claim, status in found.items() if status == "passed"} == {
        "manifest", "file-list", "file-hashes", "protocol", "released", "stated-bound",
    }  # fmt: skip
    assert "failed" not in found.values()
