"""Every value that can be released is shared by the support, and nothing else changes."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.cells.columns import Vocabulary, between, nearest
from funnel.cells.rare import MOST_VALUES, merge
from funnel.errors import PlanError
from funnel.plan.merging import of_lock
from funnel.plan.stages import Rare
from tests.support.wide import mixed, source


@pytest.mark.parametrize("seed", range(5))
def test_every_released_value_has_support(seed: int) -> None:
    for one in mixed(seed):
        merged = merge(one, 7)
        counts = np.bincount(merged.codes, minlength=len(merged.column))
        assert counts.min() >= 7
        before = np.bincount(one.codes)
        shown = np.array(merged.column.values, object)[merged.codes]
        own = np.array(one.values, object)[one.codes]
        large = before[one.codes] >= 7
        assert (shown == own)[large].sum() >= 0.9 * large.sum()
        assert merged.records == (shown != own).sum()


def test_other_takes_in_the_next_rarest_until_it_has_support() -> None:
    texts = ["a"] * 50 + ["b"] * 12 + ["c"] * 11 + ["d"]
    merged = merge(source("x", texts, "VARCHAR"), 10)
    assert merged.column.values == ("a", "b", "other")
    assert (merged.values, merged.records) == (2, 12)


def test_rare_numbers_become_bins_that_are_shown_as_their_median() -> None:
    merged = merge(source("x", [0] * 30 + [5, 6, 7, 100] + [50] * 20, "INTEGER"), 3)
    assert merged.column.values == ("0", "6", "50")
    assert merged.column.cuts == ("5", "50")
    assert merged.codes.tolist() == [0] * 30 + [1] * 3 + [2] + [2] * 20


@pytest.mark.parametrize(("kind", "texts"), [
    ("BIGINT", ["5", "9007199254740992", "9007199254740993", "9007199254740994"]),
    ("DECIMAL(38,20)", ["1.00000000000000000010", "1.00000000000000000020", "3.00000000000000000000"]),
    ("TIMESTAMP", ["2020-01-01 00:00:00", "9999-12-31 23:59:59.999998", "9999-12-31 23:59:59.999999"]),
])  # fmt: skip
def test_values_that_floats_do_not_tell_apart_are_different_values(kind: str, texts: list[str]) -> None:
    merged = merge(source("x", texts * 30, kind), 10)
    assert merged.column.values == tuple(texts)
    assert merged.column.places([*texts, texts[1]]).tolist() == [*range(len(texts)), 1]
    assert of_lock(Rare("x", "bin", kind, "", "", None), texts, texts[::-1]) == texts


def test_missing_values_are_values() -> None:
    many = merge(source("x", [1, 2, None] * 10, "INTEGER"), 10)
    assert (many.column.values, many.column.missing) == (("1", "2", None), 2)
    few = merge(source("x", [1] * 9 + [2] * 20 + [None], "INTEGER"), 5)
    assert (few.column.values, few.column.missing, few.values) == (("1", "2"), 1, 1)
    text = merge(source("x", ["a"] * 9 + [None], "VARCHAR"), 5)
    assert (text.column.values, text.column.missing, text.column.other) == (("other",), 0, 0)


def test_long_columns_of_numbers_are_binned_even_where_values_have_support() -> None:
    merged = merge(source("x", list(range(3000)) * 3, "INTEGER"), 3)
    assert 100 <= len(merged.column) <= MOST_VALUES
    assert np.bincount(merged.codes).max() < 200
    with pytest.raises(PlanError, match="more than 128 are joined with their neighbours, though none is rare"):
        merge(source("x", list(range(129)) * 3, "INTEGER"), 3, "error")
    assert merge(source("x", list(range(128)) * 3, "INTEGER"), 3, "error").values == 0
    apart = [one for i in range(129) for one in [i] * (12 if i in (40, 80) else 100)]
    assert merge(source("x", apart, "INTEGER"), 10, "error").values == 0  # between large ones they stand alone


def test_rules() -> None:
    rare = source("x", ["a"] * 20 + ["b"], "VARCHAR")
    for one in (rare, source("x", [1] * 20 + [2], "INTEGER"), source("x", ["true"] * 20 + ["false"], "BOOLEAN")):
        with pytest.raises(PlanError, match="Group or round them, or leave `rare` out"):
            merge(one, 3, "error")
        assert merge(one, 3).values
    with pytest.raises(PlanError, match="rare-values"):
        merge(rare, 3, "bin")
    with pytest.raises(PlanError, match="cells-support"):
        merge(rare, 22)
    assert merge(source("x", [1] * 9 + [2], "INTEGER"), 2, "bin").column.values == ("1",)
    with pytest.raises(PlanError, match="column-type"):
        merge(source("x", ["1", "nan"] * 9, "DOUBLE"), 2)


@pytest.mark.parametrize(
    ("left", "right", "kind", "cut"),
    [
        ("36", "37", "INTEGER", "37"),
        ("36", "52", "INTEGER", "50"),
        ("-7", "3", "INTEGER", "0"),
        ("-7", "-3", "INTEGER", "-3"),
        ("0.12", "0.131", "DOUBLE", "0.13"),
        ("99", "1234", "BIGINT", "1000"),
        ("2019-11-30", "2020-02-05", "DATE", "2020-01-01"),
        ("2020-01-30", "2020-02-05", "DATE", "2020-02-01"),
        ("2020-02-03", "2020-02-05", "DATE", "2020-02-05"),
        ("2020-02-03 10:00:00", "2020-02-03 12:17:00", "TIMESTAMP", "2020-02-03 12:00:00"),
    ],
)
def test_cuts_are_round(left: str, right: str, kind: str, cut: str) -> None:
    assert between(left, right, kind) == cut


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("3", "9" * 38, "DECIMAL(38,0)"),
        ("1" + "0" * 27, "1" + "9" * 27 + "." + "9" * 10, "DECIMAL(38,10)"),
        ("7", "9" * 29 + ".99", "DECIMAL(38,2)"),
    ],
)
def test_cuts_between_long_decimals_are_between_them(left: str, right: str, kind: str) -> None:
    assert Decimal(left) < Decimal(between(left, right, kind)) <= Decimal(right)


@given(
    st.sampled_from([("BIGINT", 2**53, 0), ("BIGINT", 2**62, 0), ("DECIMAL(38,10)", 10**17, 10), ("DOUBLE", 40, 1)]),
    st.lists(st.integers(0, 60), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(-5, 65), max_size=12),
)
def test_the_nearest_is_the_nearest_however_long_numbers_are(
    about: tuple[str, int, int], kept: list[int], others: list[int]
) -> None:
    """Of two as near the lower one, by whole numbers."""
    kind, base, places = about
    own = sorted(base * 10**places + one for one in kept)
    values = [base * 10**places + one for one in others]
    texts = [[str(Decimal(one).scaleb(-places)) for one in side] for side in (values, own)]
    expected = [min(range(len(own)), key=lambda i: (abs(own[i] - one), i)) for one in values]
    assert nearest(*texts, kind).tolist() == expected


@pytest.mark.parametrize(("kind", "text"), [("DOUBLE", "inf"), ("DATE", "10000-01-01"), ("TIME", "24:00:00")])
def test_what_has_no_place_among_the_values_of_a_lock_is_refused_by_name(kind: str, text: str) -> None:
    known = {"DOUBLE": ["1", "2"], "DATE": ["2020-01-01", "2020-02-01"], "TIME": ["10:00:00", "11:00:00"]}[kind]
    rare = Rare("x", "bin", kind, "", "rare", "lock")
    column = Vocabulary("x", kind, tuple(known), (known[1],), None, None)
    for ask in (lambda: of_lock(rare, [*known, text], known), lambda: column.places([*known, text])):
        with pytest.raises(PlanError, match="neither a finite number nor a date"):
            ask()


def test_too_few_numbers_beside_missing_ones_are_missing_too() -> None:
    merged = merge(source("x", [None] * 20 + [1, 2], "INTEGER"), 5)
    assert (merged.column.values, merged.column.cuts, merged.records) == ((None,), (), 2)
    assert merge(source("x", [None] * 20, "INTEGER"), 5).column.values == (None,)
    assert merge(source("x", [None] * 4 + [7] * 4, "INTEGER"), 5).column.values == ("7",)


def test_a_rare_value_of_a_type_without_texts_is_shown_as_the_commonest() -> None:
    merged = merge(source("x", [True] * 3 + [False] * 20, "BOOLEAN"), 5)
    assert merged.column.values == ("False",)
