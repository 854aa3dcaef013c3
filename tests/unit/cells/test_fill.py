"""Rows of a label follow its profile, spread evenly, the same ones everywhere."""

from __future__ import annotations

import hashlib

import numpy as np

from funnel.cells import record
from funnel.cells.distance import law
from funnel.cells.fill import fill, fill_in_order
from funnel.cells.make import Made, make
from funnel.cells.profile import BITS
from funnel.format import schema
from funnel.format.cells import CellsFile
from tests.support.wide import mixed

SEED = bytes(range(32))


def made(seed: int = 1) -> Made:
    return make("person", mixed(seed), most=20, minimum=40, support=8, seed=SEED)


def test_the_same_rows_come_out_always() -> None:
    labels = np.repeat(np.arange(20), 7)
    rows = fill(made().cells.profiles, labels, SEED)
    assert (
        hashlib.sha256(np.stack(rows).astype("<i4").tobytes()).hexdigest()
        == hashlib.sha256(
            np.stack(fill(made().cells.profiles, labels, SEED)).astype("<i4").tobytes()
        ).hexdigest()
    )
    assert any(
        (a != b).any() for a, b in zip(rows, fill(made().cells.profiles, labels, SEED[::-1]), strict=True)
    )


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
