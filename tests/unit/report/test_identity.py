"""Whose row it is, and what ε buys beside the table that could be had at ε = 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funnel.data import Protocol
from funnel.format.manifest import Key
from funnel.measure.faithful import at_zero, faithful
from funnel.report import page
from tests.unit.report import sample
from tests.unit.report.sample import Sample, joint_of

SAMPLES = {name: getattr(sample, name)() for name in ("one_block", "two_blocks", "awkward", "independent")}
KEYS = (Key("company_id", "BIGINT"), Key("site", "VARCHAR"))


def named(release: Sample, keys: int = 1) -> Sample:
    return release.stating(identify=KEYS[:keys])


def limits(content: dict[str, Any]) -> dict[str, str]:
    return {one["title"]: one["text"] for one in content["limits"]}


@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
@pytest.mark.parametrize("name", SAMPLES)
def test_without_a_key_the_first_paragraph_says_that_rows_are_nobodys(name: str, public: bool) -> None:
    content = SAMPLES[name].content(public)
    assert "by this table alone a row is nobody’s" in content["promise"]["identity"]
    head = page(content).split("<nav")[0]
    assert content["promise"]["identity"] in head
    assert not content["scope"]["key"]
    assert all("company id" not in text for text in limits(content).values())


@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
@pytest.mark.parametrize(("keys", "told"), [(1, "company id"), (2, "company id and site")])
def test_with_a_key_everybody_is_taken_to_know_whose_row_it_is(keys: int, told: str, public: bool) -> None:
    content = named(SAMPLES["one_block"], keys).content(public)
    said = content["promise"]["identity"]
    assert said.startswith(f"Each row carries {told}, so everybody is taken to know whose row it is")
    assert f"{told} {'tell by themselves' if keys > 1 else 'tells by itself'} is not covered" in said
    assert said in page(content).split("<nav")[0]
    assert f"identifiers but {told}" in content["scope"]["withheld"]
    assert f"the table is sorted by {told}" in content["scope"]["withheld"]
    assert f"Published untouched</th><td>{told}" in page(content)
    assert "a sector or a year in the digits" in limits(content)[f"What {told} {'tell' if keys > 1 else 'tells'}"]
    assert "Every row says whose it is" in limits(content)["Being recognised"]
    assert "Key" in {one["term"] for one in content["glossary"]}


def test_the_full_report_has_the_shares_of_the_counts() -> None:
    release = SAMPLES["two_blocks"]
    content = release.full()
    own, nobody = faithful(release.joint, release.protocols), at_zero(release.joint)
    shown = {one["name"]: one for block in content["evidence"]["blocks"] for one in block["truth"]["columns"]}
    for name, one in shown.items():
        assert (one["own"], one["at_zero"]) == pytest.approx((own.accuracy[name], nobody.accuracy[name]), abs=5.1e-4)
    assert content["evidence"]["untouched_at_zero"] == pytest.approx(nobody.unchanged, abs=1e-6)
    assert f"it would be {100 * nobody.unchanged:.1f}%" in content["evidence"]["unchanged"]


def test_the_published_report_has_them_from_the_released_totals_alone() -> None:
    """Within the noise of the draws: a per cent for some thirty thousand records."""
    release = SAMPLES["two_blocks"]
    own, nobody = faithful(release.joint, release.protocols), at_zero(release.joint)
    for index, block in enumerate(release.published()["blocks"]):
        for one in block["truth"]["columns"]:
            told = own.accuracy[one["name"]], nobody.accuracy[one["name"]]
            assert (one["own"], one["at_zero"]) == pytest.approx(told, abs=0.01)
        expected = float(np.sqrt(np.mean(nobody.errors[index] ** 2)))
        assert block["truth"]["error_at_zero"] == pytest.approx(expected, rel=0.1)


def test_where_totals_stay_they_are_taken_as_they_stand() -> None:
    """Chances that leave the totals alone, too mixed to be undone: half of a value's records go anywhere."""
    joint = joint_of([(("s",), ("a",))] * 600 + [(("t",), ("b",))] * 300 + [(("t",), ("c",))] * 300, [("s",), ("x",)])
    weights = np.array([[2, 2, 2], [1, 1, 1], [1, 1, 1]], np.int64)[:, None, :]
    protocol = Protocol(joint.blocks[0], joint.blocks[0], 2, weights)
    release = sample.sample(joint, [protocol], totals="kept", mechanism="invariant")
    (block,) = release.published()["blocks"]
    own, nobody = faithful(joint, [protocol]), at_zero(joint)
    assert block["truth"]["unchanged"] == pytest.approx(own.unchanged, abs=0.02)
    assert block["truth"]["error"] == pytest.approx(own.error, rel=0.1)
    assert block["truth"]["error"] == block["truth"]["error_at_zero"]
    assert own.unchanged == pytest.approx(nobody.unchanged)
    assert "read as it stands" in " ".join(release.published()["truth"])
    free = sample.sample(joint, [protocol], totals="free", mechanism="invariant")
    assert free.published()["blocks"][0]["truth"] is None


def test_what_totals_cannot_tell_is_left_out() -> None:
    """Different mixtures with the same chances; sets, which show several values."""
    for release in (SAMPLES["independent"], sample.sets()):
        content = release.published()
        assert [block["truth"] for block in content["blocks"]] == [None] * len(content["blocks"])
        assert "records that show their own value" not in page(content)
