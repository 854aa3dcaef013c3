"""Pictures: colours and places say what the numbers say, and any text fits."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.report import pictures, svg
from funnel.report.figures import factor
from funnel.report.tongue import Tongue
from funnel.text import printable

TEXT = st.text(st.characters(codec="utf-8"), max_size=60).map(printable)


def rectangles(picture: str) -> list[dict[str, str]]:
    return [dict(node.attrib) for node in ElementTree.fromstring(f"<g>{picture}</g>").iter("rect")]


def protocol_map(chances: list[list[float]]) -> str:
    inputs, outputs = [f"x{i}" for i in range(len(chances[0]))], [f"y{i}" for i in range(len(chances))]
    return pictures.protocol_map(Tongue(), {"inputs": inputs, "outputs": outputs}, chances)


def brightness(colour: str) -> int:
    return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@given(TEXT, TEXT)
def test_any_text_is_escaped(text: str, attribute: str) -> None:
    node = ElementTree.fromstring(svg.element("text", text, title=attribute))
    assert (node.text or "") == text
    assert node.attrib["title"] == attribute


@given(TEXT, st.floats(20, 300))
def test_shortened_texts_fit(text: str, most: float) -> None:
    short = svg.shortened(text, 11, most)
    assert svg.width(short, 11) <= most + 11
    assert short == text or short.endswith("…")


def test_wide_letters_count_twice_and_marks_not_at_all() -> None:
    assert svg.width("漢", 10) == 10.0
    assert svg.width("e\u0301", 10) == svg.width("e", 10)


def test_numbers_lose_needless_digits() -> None:
    assert svg.element("rect", x=1.0, y=2.25, width=10.129, class_="a", font_size=9, fill=None) == (
        '<rect x="1" y="2.25" width="10.13" class="a" font-size="9"/>'
    )


def test_likelier_is_darker_and_zero_is_left_out() -> None:
    picture = protocol_map([[0.9, 0.4, 0.0], [0.1, 0.6, 1.0]])
    cells = {node.find("title").text: node.attrib["fill"]
             for node in ElementTree.fromstring(f"<g>{picture}</g>").iter("rect")
             if node.find("title") is not None}  # fmt: skip
    ordered = ["x0 → y1: 10.0%", "x1 → y0: 40.0%", "x1 → y1: 60.0%", "x0 → y0: 90.0%", "x2 → y1: 100.0%"]
    assert sorted(cells, key=lambda name: -brightness(cells[name])) == ordered


def test_cells_lie_in_the_row_of_their_true_value() -> None:
    picture = protocol_map([[1.0, 0.0], [0.0, 1.0]])
    frame, first, second, *_ = rectangles(picture)
    assert float(first["x"]) < float(second["x"]) and float(first["y"]) < float(second["y"])
    assert float(first["x"]) >= float(frame["x"]) and float(first["y"]) >= float(frame["y"])


def beliefs(change: list[list[float | None]]) -> dict[str, object]:
    secret, released = [f"s{i}" for i in range(len(change))], [f"y{i}" for i in range(len(change[0]))]
    about = {"secret": secret, "released": released, "bound": 1.0, "quantity": "q", "change": change}
    factors = [[None if one is None else factor(abs(one)) for one in row] for row in change]
    return about | {"after": [[0.5 for _ in row] for row in change], "factor": factors}


def test_falling_and_rising_beliefs_differ_in_colour() -> None:
    fills = [cell["fill"] for cell in rectangles(pictures.belief_map(Tongue(), beliefs([[-1.0, 0.0, 1.0]])))[1:4]]
    red, blue = ([int(fill[i : i + 2], 16) for fill in fills] for i in (1, 5))
    assert red[0] > blue[0] and red[2] < blue[2]
    assert red[1] == blue[1]


def test_a_change_without_bound_is_told_as_certainty() -> None:
    shown = beliefs([[0.1, None, None]])
    shown["after"] = [[0.5, 1.0, 0.0]]
    picture = pictures.belief_map(Tongue(), shown)
    assert "certain" in picture and "ruled out" in picture


def test_changes_are_written_with_true_signs() -> None:
    picture = pictures.belief_map(Tongue(), beliefs([[-0.5, 0.001, 0.0, 0.25]]))
    texts = re.findall(r">([^<>]*)</text>", picture)
    assert [text for text in texts if re.fullmatch(r"(≈ )?[−+]?\d(\.\d+)?", text)] == ["−0.50", "≈ 0", "0", "+0.25"]


def test_only_a_belief_that_stays_is_called_unchanged() -> None:
    shown = beliefs([[-0.0001, 0.0, 0.0001]])
    shown["bound"] = 1e-6
    titles = re.findall(r"<title>([^<>]*)</title>", str(pictures.belief_map(Tongue(), shown)))
    assert ["unchanged" in title for title in titles[1:]] == [False, True, False]


def test_only_certainty_is_written_as_a_hundred() -> None:
    picture = protocol_map([[0.996, 0.004], [0.004, 0.996], [0.0, 0.0]])
    assert re.findall(r">(\d+)</text>", picture) == ["99", "99"]
    assert ">100</text>" in protocol_map([[1.0]])


def test_a_move_of_the_whole_bound_fills_the_bar() -> None:
    allowed, bar, tick = rectangles(pictures.belief_range([-1.0, 1.0], [-1.0, 1.0]))
    assert (allowed["width"], bar["x"], bar["width"]) == ("180", "0", "180")
    assert float(tick["x"]) + float(tick["width"]) / 2 == pytest.approx(90)
    assert len(rectangles(pictures.belief_range([0.0, 0.1], None))) == 2
    allowed, *_ = rectangles(pictures.belief_range([-0.5, 0.1], [-1.0, 0.2]))
    assert (allowed["x"], allowed["width"]) == ("0", "108"), "of falls more is allowed than of rises"


@given(st.floats(0, 1), st.floats(0, 1))
def test_bars_are_in_proportion(before: float, after: float) -> None:
    longest = max(before, after, 1e-3)
    widths = [float(bar["width"]) for bar in rectangles(pictures.bars(before, after, longest))]
    for share, width in zip((before, after), widths, strict=True):
        assert width == pytest.approx(max(170 * share / longest, 0.75), abs=0.01)


def test_an_estimate_below_nothing_has_no_bar() -> None:
    assert len(rectangles(pictures.bars(10, -4, 10))) == len(rectangles(pictures.bars(10, None, 10))) == 1


def places(picture: str) -> list[list[tuple[float, float]]]:
    """The corners of each band."""
    bands = [node.attrib["d"] for node in ElementTree.fromstring(picture).iter("path")][:2]
    return [[tuple(map(float, one.split())) for one in band[1:-1].split("L")] for band in bands]


@pytest.mark.parametrize("kind", ["factor", "odds"])
def test_what_was_measured_lies_within_what_was_promised(kind: str) -> None:
    measured = {"kind": kind, "falls": 1.0, "rises": 1.0, "measure": "lip", "leakage": {"lip": 0.4}}
    measured["rises_alone"] = False
    promised, found = places(pictures.reach(Tongue(), measured))
    heights = zip(promised[:41], found[:41], promised[::-1][:41], found[::-1][:41], strict=True)
    for most, highest, least, lowest in heights:
        assert most[1] <= highest[1] <= lowest[1] <= least[1]


def test_without_a_bound_on_the_fall_the_band_reaches_the_ground() -> None:
    measured = {"kind": "factor", "falls": None, "rises": 1.0, "measure": "pml", "rises_alone": True}
    promised, found = places(pictures.reach(Tongue(), measured | {"leakage": {"pml": None, "lip": None}}))
    assert promised == found and promised[::-1][10][1] == pytest.approx(220.0)


def test_a_measured_rise_says_nothing_of_the_fall() -> None:
    """What was measured both ways bounds it: ln 10 where beliefs of a quarter fall to a fortieth."""
    measured = {"kind": "factor", "falls": None, "rises": 1.0, "measure": "pml", "rises_alone": True,
                "leakage": {"pml": 0.3, "lip": math.log(10)}}  # fmt: skip
    _, found = places(pictures.reach(Tongue(), measured))
    assert found[10][1] == pytest.approx(220 - 210 * 0.25 * math.exp(0.3), abs=0.1)
    assert found[::-1][10][1] == pytest.approx(220 - 210 * 0.025, abs=0.1)


@given(st.lists(TEXT, min_size=1, max_size=5), st.lists(TEXT, min_size=1, max_size=5))
def test_labels_of_any_kind_make_a_well_formed_picture(inputs: list[str], outputs: list[str]) -> None:
    chances = [[1 / len(outputs)] * len(inputs) for _ in outputs]
    picture = pictures.protocol_map(Tongue(), {"inputs": inputs, "outputs": outputs}, chances)
    assert len(rectangles(picture)) == 1 + len(inputs) * len(outputs) + 5


def test_very_many_cells_have_no_tooltips() -> None:
    few, many = (protocol_map([[1 / n] * n] * n) for n in (10, 60))
    assert few.count("<title>") == 101 and many.count("<title>") == 1


@pytest.mark.parametrize("values", [3, 20, 60, 200, 1800])
def test_labels_over_columns_can_be_read_beside_each_other(values: int) -> None:
    names = [str(value + 1) for value in range(values)]
    row = [0.1] * values
    picture = {"secret": ["a"], "released": names, "bound": 1.0, "change": [row], "after": [row],
               "factor": [["1.11"] * values]}  # fmt: skip
    drawn = str(pictures.belief_map(Tongue(), picture))
    places = [float(x) for x in re.findall(r"translate\(([0-9.]+) [0-9.]+\) rotate", drawn)]
    assert len(places) == values or all(after - before >= 13 for before, after in itertools.pairwise(places))
    assert values > 20 or len(places) == values
    assert float(ElementTree.fromstring(f"<g>{drawn}</g>")[0].attrib["width"]) <= 900
