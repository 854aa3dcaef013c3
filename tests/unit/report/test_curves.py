"""The picture of utility against epsilon: higher is more, names never overlap, and no figure is not zero."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.report.curves import Curve, Spot, page, picture
from funnel.text import printable

SVG = "{http://www.w3.org/2000/svg}"
EPSILONS = (0.25, 0.5, 1.0, 2.0)
SHARES = st.one_of(st.none(), st.floats(0, 1))
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).map(printable)


@st.composite
def curves(draw: st.DrawFn) -> list[Curve]:
    spots = st.tuples(*(st.builds(Spot, st.just(epsilon), SHARES) for epsilon in EPSILONS))
    drawn = draw(st.lists(st.tuples(NAMES, spots, st.booleans()), min_size=1, max_size=7))
    return [Curve(f"{name} {place}", spot, dashed) for place, (name, spot, dashed) in enumerate(drawn)]


def parts(given_curves: list[Curve], name: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(picture("title", "note", given_curves))
    return [node for node in root.iter(f"{SVG}{name}") if kind in node.attrib.get("class", "").split()]


@given(curves())
def test_every_figure_has_a_dot_and_every_missing_one_a_cross_below_the_axis(some: list[Curve]) -> None:
    spots = [spot for curve in some for spot in curve.spots]
    dots, crosses = parts(some, "circle", "dot"), parts(some, "path", "hole")
    assert len(dots) == sum(spot.share is not None for spot in spots)
    assert len(crosses) == sum(spot.share is None for spot in spots)
    grounds = [float(node.attrib["y1"]) for node in parts(some, "line", "grid")]
    for cross in crosses:
        top = float(cross.attrib["d"].split()[1].split("l")[0])
        assert top > sorted(grounds)[-len(EPSILONS) - 1]


@pytest.mark.long
@given(curves())
def test_a_larger_share_is_higher_and_all_is_on_the_paper(some: list[Curve]) -> None:
    figures = [spot.share for curve in some for spot in curve.spots if spot.share is not None]
    heights = [float(node.attrib["cy"]) for node in parts(some, "circle", "dot")]
    assert all(0 < height < 440 for height in heights)
    ordered = sorted(zip(figures, heights, strict=True))
    assert all(low[1] >= high[1] - 1e-9 for low, high in pairwise(ordered))


@given(curves())
def test_every_curve_has_its_name_and_none_lies_on_another(some: list[Curve]) -> None:
    names = parts(some, "text", "name")
    assert sorted(node.text or "" for node in names) == sorted(curve.name for curve in some)
    heights = sorted(float(node.attrib["y"]) for node in names)
    assert all(after - before >= 16.9 for before, after in pairwise(heights))
    assert heights[0] > 0
    assert heights[-1] < 440


def test_only_references_are_dashed() -> None:
    spots = (Spot(0.5, 0.2), Spot(1.0, 0.4))
    lines = parts([Curve("kept", spots), Curve("less", spots, dashed=True)], "line", "curve")
    assert ["dashed" in node.attrib["class"] for node in lines] == [False, True]


def test_a_gap_is_not_bridged() -> None:
    spots = (Spot(0.5, 0.2), Spot(1.0, None, "too slow"), Spot(2.0, 0.4))
    assert not parts([Curve("one", spots)], "line", "curve")
    assert "too slow" in picture("t", "n", [Curve("one", spots)])


def test_the_page_escapes_what_it_shows() -> None:
    shown = page(picture("<b>", "&", [Curve("<i>", (Spot(1.0, 0.5),))]), "<script>", "</pre><script>")
    assert "<script" not in shown
    assert "<i>" not in shown
