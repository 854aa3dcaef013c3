"""Rows of a label follow its profile, spread evenly, the same ones everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from funnel.cells import record
from funnel.cells.distance import law
from funnel.cells.fill import fill, fill_in_order
from funnel.cells.make import Made, make
from funnel.cells.profile import BITS, Profile
from funnel.format import schema
from funnel.format.canonical import FormatError
from funnel.format.cells import CellsFile, Wide
from tests.support.wide import mixed

SEED = bytes(range(32))
GOLDEN = [[2, 1, 2, 1, 0, 0, 2, 2, 1, 0, 1, 0], [1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]]


@cache
def made(seed: int = 1) -> Made:
    return make("person", mixed(seed), most=20, minimum=40, support=8, seed=SEED)


def test_the_same_rows_come_out_always_and_everywhere() -> None:
    """Of two columns, the second by the first: written down once, so that no version of anything changes a table."""
    first = Profile(-1, np.array([0, 1, 1]), weights([[[1, 3]], [[2, 2]]]), weights([[4, 1, 3], [4, 4, 0]]))
    second = Profile(
        0, np.array([0, 1]), weights([[[4, 0], [1, 3]], [[0, 4], [2, 2]]]), weights([[4, 4], [4, 4]])
    )
    rows = fill([first, second], np.array([0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0]), SEED)
    assert [column.tolist() for column in rows] == GOLDEN
    other = fill([first, second], np.array([0] * 12), SEED[::-1])
    assert [column.tolist() for column in other] != [
        column.tolist() for column in fill([first, second], np.array([0] * 12), SEED)
    ]


def weights(quarters: list[object]) -> np.ndarray:
    """Weights of sum 2^BITS from quarters of it."""
    return np.array(quarters, np.int64) << (BITS - 2)


def test_values_are_spread_evenly_over_the_rows_of_a_label() -> None:
    one = made()
    profiles, rows = one.cells.profiles, fill(one.cells.profiles, one.labels, SEED)
    for profile, values in zip(profiles, rows, strict=True):
        group = profile.groups[values]
        above = (
            np.zeros_like(group)
            if profile.parent < 0
            else profiles[profile.parent].groups[rows[profile.parent]]
        )
        for cell in range(len(one.cells)):
            inside = one.labels == cell
            for context in np.unique(above[inside]):
                drawn = group[inside & (above == context)]
                even(drawn, profile.links[cell, context])
            for own in np.unique(group[inside]):
                weights = np.where(profile.groups == own, profile.values[cell], 0)
                even(values[inside & (group == own)], weights)


def even(drawn: np.ndarray, weights: np.ndarray) -> None:
    """Every code was drawn as often as its weight says, rounded up or down."""
    assert weights.sum() == 1 << BITS
    wanted = len(drawn) * weights / (1 << BITS)
    assert (np.abs(np.bincount(drawn, minlength=len(wanted)) - wanted) < 1).all()


def test_on_average_over_seeds_rows_follow_their_profile() -> None:
    one, labels = made(), np.repeat(np.arange(20), 3)
    codings = [np.arange(len(column)) for column in one.cells.columns]
    rows_of = law(one.cells.profiles, np.eye(20)[7], codings)
    pair = np.zeros_like(rows_of.marginal((2, 4)))
    for seed in range(600):
        rows = fill(one.cells.profiles, labels[21:24], seed.to_bytes(32))
        pair[rows[2][0], rows[4][0]] += 1
    assert np.abs(pair / 600 - rows_of.marginal((2, 4))).sum() < 0.35
    assert np.abs(pair.sum(axis=0) / 600 - rows_of.marginal((4,))).max() < 0.08


def test_rows_with_names_do_not_depend_on_how_they_are_sorted() -> None:
    one = made()
    labels, keys = one.labels[:300], [f"k{i}" for i in range(300)]
    rows = fill_in_order(one.cells.profiles, labels, keys, SEED)
    order = np.random.default_rng(1).permutation(300)
    again = fill_in_order(one.cells.profiles, labels[order], [keys[i] for i in order], SEED)
    assert all((a[order] == b).all() for a, b in zip(rows, again, strict=True))


def test_cells_are_written_and_read_again() -> None:
    one = made().cells
    raw = schema.write(record.file_of([one]))
    again = record.opened(schema.read(CellsFile, "cells.json", raw).blocks[0])
    assert schema.write(record.file_of([again])) == raw
    labels = np.repeat(np.arange(20), 5)
    for a, b in zip(
        fill(one.profiles, labels, one.seed), fill(again.profiles, labels, again.seed), strict=True
    ):
        assert (a == b).all()


SPOILT: list[Callable[[dict[str, Any]], object]] = [
    lambda wide: wide["nodes"].pop(),
    lambda wide: wide["nodes"].append(wide["nodes"][-1]),
    lambda wide: wide["nodes"].clear(),
    lambda wide: wide["nodes"][0].update(column=99),
    lambda wide: next(node for node in wide["nodes"] if node["kind"] == "below").update(below=0),
    lambda wide: next(node for node in wide["nodes"] if node["kind"] == "among").update(codes=[999]),
    lambda wide: next(node for node in wide["nodes"] if node["kind"] == "cell").update(share=0),
    lambda wide: wide["columns"][0]["values"].reverse(),
    lambda wide: wide["columns"][2]["values"].append(wide["columns"][2]["values"][0]),
    lambda wide: wide["columns"][0].update(cuts=[]),
    lambda wide: wide["columns"][0].update(missing=99),
    lambda wide: wide["profiles"].pop(),
    lambda wide: wide["profiles"][0].update(groups=[0]),
    lambda wide: wide["profiles"][0].update(parent=77),
    lambda wide: wide["profiles"][1]["values"].pop(),
    lambda wide: wide["profiles"][1]["values"][0].pop(),
    lambda wide: wide["profiles"][1]["values"].__setitem__(0, [1, 65536, 0, 65536]),
    lambda wide: wide["profiles"][1]["links"].pop(),
    lambda wide: [cell.__setitem__(0, []) for cell in wide["profiles"][1]["links"]],
    lambda wide: wide["profiles"][1]["links"][0].__setitem__(0, [0, 5]),
    lambda wide: wide["profiles"][1]["links"].__setitem__(0, [0] * len(wide["profiles"][1]["links"][0])),
    lambda wide: wide["profiles"][1]["values"].__setitem__(0, [[0, 65536]]),
    lambda wide: wide["profiles"][1].update(groups=[[0]]),
    lambda wide: wide["profiles"][1]["values"].__setitem__(0, [0, 1 << 63 - 1, 1, 1 << 63 - 1]),
]


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_record_that_contradicts_itself_is_refused(spoil: Callable[[dict[str, Any]], object]) -> None:
    wide = json.loads(schema.write(record.written(made().cells)))
    spoil(wide)
    with pytest.raises(FormatError):
        record.opened(schema.typed(Wide, "cells.json", wide))


def test_columns_that_depend_on_one_another_in_a_ring_are_refused() -> None:
    wide = json.loads(schema.write(record.written(made().cells)))
    child = next(place for place, one in enumerate(wide["profiles"]) if one["parent"] is not None)
    parent = wide["profiles"][child]["parent"]
    wide["profiles"][parent]["parent"] = child
    number = max(wide["profiles"][child]["groups"]) + 1
    for cell in wide["profiles"][parent]["links"]:
        cell[:] = [cell[0]] * number
    with pytest.raises(FormatError, match="does not depend"):
        record.opened(schema.typed(Wide, "cells.json", wide))
