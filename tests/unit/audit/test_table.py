"""Reading the released table: every text survives, in either format, and the order is judged rightly."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit import table as audited_table
from funnel.audit.manifest import read_manifest
from funnel.audit.protocols import Block, read_protocol
from funnel.audit.table import Run, Table, encode, ordered, read_columns, read_rows
from funnel.errors import AuditFailure
from tests.unit.audit import samples
from tests.unit.audit.forge import RELEASE, Forgery, forge, keep_or_spread, write_table

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
AWKWARD = st.sampled_from(
    ["", "NULL", "null", '"', '""', ",", "\n", "\r\n", "a\nb", " ", "'", "\\", "#", "é", "1.0", "\ufeff"]
)
VALUES = st.none() | TEXTS | AWKWARD
NAMES = ['say "hi"', "a,b", "it's", "select", "c0", "place", "file_row_number", "é ∞", " ", "count(*)"]
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=12)  # type: ignore[arg-type]
)


def table_of(form: str, rows: list[tuple[Any, ...]], columns: list[str]) -> Table:
    """Write rows and read them as the auditor does."""
    forgery = samples.one_block(data=form)
    forgery.manifest |= {"public": [columns], "rows": len(rows)}
    forgery.rows, forgery.columns = rows, columns
    with tempfile.TemporaryDirectory() as home:
        folder = forgery.write(Path(home)).folder
        manifest, _ = read_manifest(folder)
        source, _ = read_columns(folder / f"data.{form}", manifest)
        table, _ = read_rows(source, manifest)
    return table


@pytest.mark.parametrize("form", ["parquet", "csv"])
@given(rows=ROWS)
@settings(max_examples=40, deadline=None)
def test_every_text_and_every_gap_is_read_as_it_was_written(form: str, rows: list[tuple[Any, ...]]) -> None:
    table = table_of(form, rows, [f"column {i}" for i in range(len(rows[0]))])
    assert Counter({run.row: run.count for run in table.runs}) == Counter(rows)
    assert table.rows == len(rows)
    assert [run.first for run in table.runs] == sorted(rows.index(run.row) for run in table.runs)
    assert {run.row: run.last for run in table.runs} == {row: place for place, row in enumerate(rows)}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("column", NAMES)
def test_a_column_may_have_any_name(form: str, column: str) -> None:
    table = table_of(form, [("1",), ("2",), ("2",)], [column])
    assert [(run.row, run.count) for run in table.runs] == [(("1",), 1), (("2",), 2)]


def block(outputs: list[str | None], weights: list[list[int]] | None = None, name: str = "x") -> Block:
    """A block of one column as the auditor holds it; by default every output can occur."""
    import numpy as np

    labels = tuple((label,) for label in outputs)
    grid = np.array(weights if weights else [[1]] * len(outputs), np.int64)[:, None, :]
    return Block((name,), None, None, (("in",),), labels, 8, grid)


def laid_out(rows: list[tuple[str | None, ...]]) -> Table:
    """A table whose rows stand as given."""
    runs = [
        Run(row, rows.count(row), rows.index(row), len(rows) - 1 - rows[::-1].index(row))
        for row in dict.fromkeys(rows)
    ]
    return Table("data.parquet", len(rows), tuple(runs))


FIXED = {
    "by output": ("in the order of the protocol's outputs", [("c",), ("a",), ("a",), (None,), ("b",)]),
    "by text": ("by text, missing values last", [("a",), ("b",), ("c",), (None,)]),
    "missing first": ("by text, missing values first", [(None,), ("a",), ("c",)]),
    "a single value": ("in the order of the protocol's outputs", [("b",), ("b",)]),
}


@pytest.mark.parametrize("kind", FIXED)
def test_a_fixed_order_is_recognised(kind: str) -> None:
    name, rows = FIXED[kind]
    assert ordered(laid_out(rows), (block(["c", "a", None, "b"]),)) == name  # type: ignore[arg-type]


LOOSE = {
    "no order at all": [("b",), ("c",), ("a",)],
    "an output's rows in two places": [("c",), ("a",), ("c",)],
    "by output but backwards": [("b",), (None,), ("a",), ("c",)],
    "missing in the middle": [("a",), (None,), ("b",), ("c",)],
}


@pytest.mark.parametrize("kind", LOOSE)
def test_any_other_order_may_tell_something_and_fails(kind: str) -> None:
    with pytest.raises(AuditFailure):
        ordered(laid_out(LOOSE[kind]), (block(["c", "a", None, "b"]),))  # type: ignore[arg-type]


def test_several_blocks_are_ordered_from_the_first_to_the_last() -> None:
    blocks = (block(["z", "y"]), block(["1", "0"], name="w"))
    assert (
        ordered(laid_out([("z", "1"), ("z", "0"), ("y", "1")]), blocks)
        == "in the order of the protocol's outputs"
    )
    assert ordered(laid_out([("y", "0"), ("y", "1"), ("z", "0")]), blocks) == "by text, missing values last"
    with pytest.raises(AuditFailure, match="not sorted"):
        ordered(laid_out([("z", "0"), ("z", "1"), ("y", "1")]), blocks)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["0", None])), min_size=2, max_size=8))
@settings(deadline=None)
def test_an_order_passes_just_when_it_is_one_that_the_values_fix(rows: list[tuple[str, str | None]]) -> None:
    blocks = (block(["b", "c", "a"]), block([None, "0"], name="w"))
    by_output = sorted(rows, key=lambda row: ("bca".index(row[0]), row[1] is not None))
    by_text = sorted(rows, key=lambda row: (row[0], row[1] is None))
    gaps_first = sorted(rows, key=lambda row: (row[0], row[1] is not None))
    if rows in (by_output, by_text, gaps_first):
        assert ordered(laid_out(rows), blocks)  # type: ignore[arg-type]
    else:
        with pytest.raises(AuditFailure):
            ordered(laid_out(rows), blocks)  # type: ignore[arg-type]


def test_values_become_output_codes_block_by_block() -> None:
    wide = Block(
        ("v", "w"), None, None, (("i", "i"),), (("p", None), (None, "q")), 8, block(["x", "y"]).weights
    )
    table = laid_out([("b", None, "q"), ("b", None, "q"), ("a", "p", None)])
    counts, _ = encode(table, (block(["a", "b"]), wide))
    assert counts == {(1, 1): 2, (0, 0): 1}


def test_an_output_that_no_input_can_produce_is_no_output() -> None:
    ghost = block(["a", "b"], [[256], [0]])
    assert encode(laid_out([("a",)]), (ghost,))[0] == {(0,): 1}
    with pytest.raises(AuditFailure, match="cannot produce"):
        encode(laid_out([("a",), ("b",)]), (ghost,))


def test_a_combination_of_possible_parts_must_itself_be_an_output() -> None:
    pairs = Block(
        ("v", "w"), None, None, (("i", "i"),), (("p", "q"), ("r", "s")), 8, block(["x", "y"]).weights
    )
    with pytest.raises(AuditFailure, match="row 1"):
        encode(laid_out([("p", "s")]), (pairs,))


def test_an_output_of_weight_zero_in_the_released_table_fails_the_release(tmp_path: Path) -> None:
    forgery = forge(samples.ONE, [keep_or_spread(["x"], [["a"], ["b"], ["c"], ["d"]], 8, 128)])
    protocol = forgery.protocol["blocks"][0]
    protocol["outputs"] = [*protocol["outputs"], ["e"]]
    protocol["weights"].append([0, 0, 0, 0])
    forgery.manifest["alphabet"]["released"] = [5]
    assert samples.lies(forgery, tmp_path / "unused").passed
    forgery = relabelled(forgery)
    assert "data-values" in samples.failures(samples.lies(forgery, tmp_path / "used"))


def relabelled(forgery: Forgery) -> Forgery:
    """The last row answers with the output that has no weight."""
    forgery.rows[-1] = ("e",)
    return forgery


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_more_distinct_rows_than_any_alphabet_holds_are_refused(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forged table of distinct texts must not be held in memory row by row."""
    rows: list[tuple[Any, ...]] = [(str(i),) for i in range(9)]
    monkeypatch.setattr(audited_table, "MOST_TUPLES", 9)
    assert len(table_of(form, rows, ["x"]).runs) == 9
    monkeypatch.setattr(audited_table, "MOST_TUPLES", 8)
    with pytest.raises(AuditFailure, match="too many distinct"):
        table_of(form, rows, ["x"])


def test_a_file_is_read_by_itself_though_its_name_would_match_others(tmp_path: Path) -> None:
    folder = tmp_path / "a[bc]"
    forgery = samples.one_block()
    place = forgery.write(folder)
    twin = tmp_path / "ab" / "releases" / RELEASE
    twin.mkdir(parents=True)
    write_table(twin / "data.parquet", ["education"], [("10th",)])
    assert samples.audited(place).passed


def test_all_blocks_of_a_protocol_are_read_in_order(tmp_path: Path) -> None:
    blocks, told = read_protocol(samples.two_blocks().write(tmp_path).folder)
    assert [block.columns for block in blocks] == [("sex",), ("occupation", "hours")]
    assert [block.weights.shape for block in blocks] == [(2, 1, 2), (3, 1, 3)]
    assert blocks[1].possible == (("clerk", "40"), ("clerk", None), (None, "60"))
    assert told == "2 blocks: 2 to 2 at 2^16, 3 to 3 at 2^16"
