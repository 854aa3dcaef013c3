"""What a published report may not say: nothing about a group below the minimum, not even by subtraction."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Joint, Protocol
from funnel.data.channel import released_table
from funnel.report import compose, figures, render
from funnel.report.case import expected_records
from funnel.report.disclosure import withheld, withheld_cells
from tests.unit.report.sample import manifest, response


@st.composite
def tables(draw: st.DrawFn, rows: int = 5, columns: int = 5, most: int = 60) -> np.ndarray:
    """A dense table of counts whose rows and columns all occur."""
    c, a = draw(st.integers(2, rows)), draw(st.integers(2, columns))
    cells = draw(st.lists(st.integers(0, most), min_size=c * a, max_size=c * a))
    table = np.array(cells).reshape(c, a)
    table[table.sum(axis=1) == 0, 0] = 1
    table[0, table.sum(axis=0) == 0] = 1
    return table


@st.composite
def protocols(draw: st.DrawFn, joint: Joint) -> Protocol:
    """A protocol with random weights, from nearly silent to the identity."""
    inputs = joint.blocks[0]
    if draw(st.booleans()):
        return response(inputs, draw(st.sampled_from([0.0, 0.5, 2.0, 12.0])))
    a, bits = len(inputs), 8
    cuts = [
        sorted(draw(st.lists(st.integers(0, 1 << bits), min_size=a - 1, max_size=a - 1))) for _ in range(a)
    ]
    weights = np.array([np.diff([0, *cut, 1 << bits]) for cut in cuts]).T
    return Protocol(inputs, inputs, bits, weights[:, None, :])


@st.composite
def releases(draw: st.DrawFn) -> tuple[dict[str, Any], list[Protocol], Joint]:
    """A release of one block, whose secret labels are words that occur nowhere else."""
    joint = Joint.from_table(draw(tables()), "illness", "town")
    names = tuple((f"zq{i}secret",) for i in range(len(joint.secret)))
    joint = Joint(type(joint.secret)(("illness",), names), joint.blocks, joint.cells, joint.counts)
    parts = [draw(protocols(joint))]
    minimum = draw(st.sampled_from([1, 5, 10, 25]))
    about = manifest(joint, parts, draw(st.sampled_from(["lip", "ldp"])))
    return (
        about | {"estimate": {"minimum": minimum, "kind": "counts"}, "epsilon": about["epsilon"] or 1.0},
        parts,
        joint,
    )


def complete(sizes: np.ndarray, hidden: np.ndarray, minimum: float) -> bool:
    """Hidden parts of one whole: every small one, and together none, two or more that suffice, or all."""
    all_small_hidden = bool(hidden[sizes < minimum].all())
    suffices = hidden.sum() >= 2 and sizes[hidden].sum() >= minimum
    return all_small_hidden and (not hidden.any() or bool(suffices) or bool(hidden.all()))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 20))
def test_what_is_hidden_cannot_be_subtracted(sizes: list[int], minimum: int) -> None:
    counts = np.array(sizes)
    assert complete(counts, withheld(counts, minimum), minimum)


@given(st.lists(st.integers(20, 40), min_size=1, max_size=8), st.integers(1, 20))
def test_nothing_is_hidden_without_a_small_group(sizes: list[int], minimum: int) -> None:
    assert not withheld(sizes, minimum).any()


def test_the_smallest_groups_go_first() -> None:
    assert withheld([50, 3, 12, 30], 10).tolist() == [False, True, True, False]


def test_two_small_groups_that_suffice_together_hide_no_other() -> None:
    assert withheld([50, 6, 12, 7], 10).tolist() == [False, True, False, True]


def test_an_empty_group_is_a_small_group() -> None:
    assert withheld([50, 0, 12, 30], 10).tolist() == [False, True, True, False]


@given(tables(), st.integers(1, 30))
def test_every_row_and_column_of_cells_is_complete(table: np.ndarray, minimum: int) -> None:
    hidden = withheld_cells(table.astype(float), withheld(table.sum(axis=1), minimum), minimum)
    assert all(complete(*line, minimum) for line in zip(table, hidden, strict=True))
    assert all(complete(*line, minimum) for line in zip(table.T, hidden.T, strict=True))


@given(tables(), st.integers(1, 30))
def test_subtracting_from_totals_never_gives_a_withheld_cell(table: np.ndarray, minimum: int) -> None:
    """Fill in every row and column with a single unknown, again and again: no small cell comes out."""
    unknown = withheld_cells(table.astype(float), np.zeros(len(table), bool), minimum)
    while True:
        single = unknown & (
            (unknown.sum(axis=1, keepdims=True) == 1) | (unknown.sum(axis=0, keepdims=True) == 1)
        )
        if not single.any():
            break
        unknown &= ~single
    assert unknown[table < minimum].all()


def test_a_row_withheld_stays_withheld() -> None:
    rows = np.array([False, True, False])
    assert withheld_cells(np.full((3, 2), 100.0), rows, 10)[1].all()


@settings(deadline=None, max_examples=30)
@given(releases())
def test_no_label_of_a_small_secret_group_is_published(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    about, _, joint = release
    content = compose(*release, published=True)
    written = json.dumps(content) + render(content)
    for name, count in zip(joint.secret.names(), joint.table().sum(axis=1), strict=True):
        assert count >= about["estimate"]["minimum"] or name not in written


@settings(deadline=None, max_examples=30)
@given(releases())
def test_beliefs_that_are_told_rest_on_enough_people(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    about, parts, joint = release
    minimum = about["estimate"]["minimum"]
    expected = expected_records(released_table(joint, parts), joint.rows)
    for entry in compose(*release, published=True)["measured"]["secrets"]:
        if entry["pooled"]:
            continue
        records = expected[joint.secret.names().index(entry["value"])]
        beliefs = records / expected.sum(axis=0)
        for end, at in (("lowest", beliefs.min()), ("highest", beliefs.max())):
            ties = np.isclose(beliefs, at, rtol=1e-9)
            rest = expected.sum(axis=0)[ties] - records[ties]
            enough = (records[ties] >= minimum) & ((rest >= minimum) | (rest < 1e-6))
            assert entry[end] is None or enough.any()


@settings(deadline=None, max_examples=30)
@given(releases())
def test_the_map_of_beliefs_shows_no_small_cell(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    about, parts, joint = release
    content = compose(*release, published=True)["blocks"][0]["beliefs"]
    if content is None:
        return
    expected = expected_records(released_table(joint, parts), joint.rows)
    for name, row in zip(content["secret"], content["change"], strict=True):
        small = expected[joint.secret.names().index(name)] < about["estimate"]["minimum"]
        assert all(value is None for value, hide in zip(row, small, strict=True) if hide)
        assert all(value is None or (isinstance(value, int) and -5 <= value <= 5) for value in row)


@settings(deadline=None, max_examples=30)
@given(releases())
def test_shares_are_told_only_where_every_value_has_enough(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    about, _, joint = release
    enough = joint.table().sum(axis=0).min() >= about["estimate"]["minimum"]
    shares = compose(*release, published=True)["blocks"][0]["shares"]
    assert all((entry["before"] is None) != enough for entry in shares)
    assert enough or all(entry["after"] is entry["true"] is None for entry in shares)


@settings(deadline=None, max_examples=30)
@given(releases())
def test_a_share_guessed_wrong_is_told_only_of_enough_people(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    about, parts, joint = release
    guess = compose(*release, published=True)["measured"]["guess"]
    expected = expected_records(released_table(joint, parts), joint.rows)
    wrong = joint.rows - expected.max(axis=0).sum()
    assert guess is None or wrong >= about["estimate"]["minimum"]


def integers(content: Any, path: str = "") -> dict[str, int]:
    """Every whole number of a content, by path."""
    if isinstance(content, bool) or content is None or isinstance(content, str | float):
        return {}
    if isinstance(content, int):
        return {path: content}
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    return {place: n for key, value in pairs for place, n in integers(value, f"{path}.{key}").items()}


@settings(deadline=None, max_examples=30)
@given(releases())
def test_the_only_whole_numbers_published_are_no_counts_of_groups(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    allowed = re.compile(
        r"\.(rows|minimum|realised\.resamples)|\.scope\.hidden\.values|\.blocks\.\d+\.(values|outputs|bits|rank|beliefs\.change\.\d+\.\d+)"
    )
    found = integers(compose(*release, published=True))
    assert [place for place in found if not allowed.fullmatch(place)] == []
    assert found[".rows"] == release[2].rows


def test_full_reports_count_everything() -> None:
    joint = Joint.from_table([[40, 3], [20, 37]])
    parts = [response(joint.blocks[0], 1.0)]
    content = compose(manifest(joint, parts), parts, joint, published=False)
    assert [entry["records"] for entry in content["measured"]["secrets"]] == [57, 43]
    assert [entry["records"] for entry in content["blocks"][0]["shares"]] == [60, 40]
    assert content["blocks"][0]["counts"]["records"] == [[40, 3], [20, 37]]


@pytest.mark.parametrize("small", [1, 4, 9])
def test_two_by_two_with_one_small_cell_tells_no_belief(small: int) -> None:
    """Any cell that stayed would give away the small one, by two subtractions at most."""
    joint = Joint.from_table([[60, small], [30, 60]])
    parts = [response(joint.blocks[0], 40.0, bits=62)]
    content = compose(manifest(joint, parts) | {"epsilon": 9.0}, parts, joint, published=True)
    assert all(
        entry["lowest"] is None and entry["highest"] is None for entry in content["measured"]["secrets"]
    )
    assert content["measured"]["guess"] is not None


def test_pooled_values_are_counted_but_not_named() -> None:
    joint = Joint.from_table([[300, 200], [6, 3], [2, 2], [100, 80]])
    parts = [response(joint.blocks[0], 0.5)]
    content = compose(manifest(joint, parts), parts, joint, published=True)
    assert [entry["value"] for entry in content["measured"]["secrets"]] == [
        "s1", "s4", "2 rarest values, with fewer than 10 records",
    ]  # fmt: skip


def test_a_single_small_value_is_pooled_with_the_next() -> None:
    joint = Joint.from_table([[300, 200], [6, 3], [100, 80]])
    parts = [response(joint.blocks[0], 0.5)]
    entries = compose(manifest(joint, parts), parts, joint, published=True)["measured"]["secrets"]
    assert entries[-1] == {
        "value": "2 rarest values, pooled because some have fewer than 10 records",
        "pooled": True,
    }
    assert math.isclose(entries[0]["before"], 0.72)


@given(st.integers(1, 50), st.integers(1, 10**6))
def test_a_step_of_a_published_share_is_the_minimum_in_records(minimum: int, rows: int) -> None:
    found = figures.step(minimum, rows)
    assert found in figures.STEPS
    assert found * rows >= minimum or rows < minimum
    assert found == 0.001 or figures.STEPS[figures.STEPS.index(found) - 1] * rows < minimum


@settings(deadline=None, max_examples=30)
@given(releases())
def test_every_published_share_and_belief_is_a_multiple_of_the_step(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    content = compose(*release, published=True)
    step = content["step"]
    assert step == figures.step(content["minimum"], content["rows"])
    told = [
        entry[key]
        for block in content["blocks"]
        for entry in block["shares"]
        for key in ("before", "after", "true")
    ]
    told += [block["kept"] for block in content["blocks"]] + [content["utility"]["untouched"]]
    told += [*(content["measured"]["guess"] or {}).values()]
    for entry in content["measured"]["secrets"]:
        told += (
            []
            if entry["pooled"]
            else [entry["before"], entry["lowest"], entry["highest"], *entry["promised"]]
        )
    for share in told:
        assert share in (None, 0.0, 1.0) or abs(share / step - round(share / step)) < 1e-6


def test_shares_of_a_small_table_do_not_tell_its_counts() -> None:
    """Tables that differ by a few records have the same published shares and beliefs before."""
    told = []
    for table in ([[40, 21], [22, 37]], [[41, 20], [23, 36]]):
        joint = Joint.from_table(table)
        parts = [response(joint.blocks[0], 1.0)]
        content = compose(manifest(joint, parts), parts, joint, published=True)
        told.append([content["step"], *(one["before"] for one in content["blocks"][0]["shares"]),
                     *(one["before"] for one in content["measured"]["secrets"])])  # fmt: skip
    assert told[0] == told[1] and told[0][0] == 0.1
    page = render(content)
    assert "to steps of 10% at the finest" in page and "counts of people" not in page


@settings(deadline=None, max_examples=30)
@given(releases())
def test_a_change_rounded_up_stays_within_a_promise_that_is_kept(
    release: tuple[dict[str, Any], list[Protocol], Joint],
) -> None:
    about, _, _ = release
    worst = about["leakage"][about["notion"]]
    if worst is None or worst > about["epsilon"]:
        return
    for entry in compose(*release, published=True)["measured"]["secrets"]:
        assert entry["pooled"] or entry["change"] is None or entry["change"] <= about["epsilon"]
