"""Whom the policy leaves out stands in the head of the report, and what being absent tells."""

from __future__ import annotations

from typing import Literal

import pytest

from funnel.format.manifest import Absent, Composed, Way
from funnel.report import page
from tests.unit.report import sample

RELEASE = sample.one_block()
BY_SECRET = "The filter reads marital status, which is what the table hides"


@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
def test_nothing_is_said_where_nobody_is_left_out(public: bool) -> None:
    assert not RELEASE.content(public)["promise"]["absent"]


@pytest.mark.long
@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
@pytest.mark.parametrize(
    ("by", "said"),
    [
        (("filter",), "by the policy’s filter, if any are; the promise is about the others"),
        (("missing",), "where a value is missing, if any are; the promise"),
        (("filter", "missing"), "by the policy’s filter and where a value is missing, if any are; the promise"),
        (("filter", "missing", "unseen"), "missing and where the lock does not know a value, if any are; the"),
    ],
)
def test_how_people_are_left_out_is_in_the_head(by: tuple[Way, ...], said: str, public: bool) -> None:
    content = RELEASE.stating(absent=Absent(by, ())).content(public)
    head = page(content).split("<nav")[0]
    assert said in content["promise"]["absent"]
    assert content["promise"]["absent"] in head
    assert "Being absent can tell something of marital status too" in head
    assert BY_SECRET not in head


@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
def test_absence_without_a_bound_is_not_called_counted(public: bool) -> None:
    """As over a private estimate, where those who are absent are not counted."""
    absent = Absent(("missing",), ())
    bounded, unbounded = (
        RELEASE.stating(absent=absent, composed=Composed(figure, "sum", 1, ())).content(public)["promise"]["absent"]
        for figure in (0.9, None)
    )
    assert "what all releases so far tell together counts it." in bounded
    assert "no finite bound is known of what all releases so far tell together." in unbounded


@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
def test_a_filter_that_reads_the_secret_has_no_bound(public: bool) -> None:
    filtered = RELEASE.stating(absent=Absent(("filter",), RELEASE.manifest.sensitive),
                               composed=Composed(None, "exact", 1, ()))  # fmt: skip
    content = filtered.content(public)
    assert BY_SECRET in page(content).split("<nav")[0]
    limits = " ".join(one["text"] for one in content["limits"])
    assert "What this release tells about a person whose values stay the same, by being absent too," in limits
    assert "has no finite bound" in limits


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_filter_on_the_secret_is_counted_where_that_has_a_bound(language: Literal["en", "de"]) -> None:
    """As under a notion by which a value may be ruled out."""
    filtered = RELEASE.stating(absent=Absent(("filter",), RELEASE.manifest.sensitive), language=language,
                               composed=Composed(1.7, "exact", 1, ()))  # fmt: skip
    said = filtered.published()["promise"]["absent"]
    assert ("which ε does not bound: what all releases so far tell together counts it" in said) == (language == "en")
    assert ("das begrenzt ε nicht: Was alle bisherigen" in said) == (language == "de")
