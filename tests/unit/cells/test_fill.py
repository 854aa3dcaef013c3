"""Rows of a label follow its profile, spread evenly, the same ones everywhere."""

from __future__ import annotations

import hashlib

import numpy as np

from funnel.cells import record
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
    rows = fill(one.cells.profiles, one.labels, SEED)
    for profile, column in zip(one.cells.profiles, rows, strict=True):
        if profile.parent >= 0:
            continue
        for cell in range(len(one.cells)):
            inside = column[one.labels == cell]
            wanted = len(inside) * profile.weights[cell, 0] / (1 << BITS)
            assert (np.abs(np.bincount(inside, minlength=len(wanted)) - wanted) < 1).all()


def test_on_average_over_seeds_a_row_follows_its_profile() -> None:
    one, labels = made(), np.repeat(np.arange(20), 3)
    profile = one.cells.profiles[4]
    total = np.zeros_like(profile.weights[:, 0], float)
    for seed in range(400):
        column = fill(one.cells.profiles, labels, seed.to_bytes(32))[4][::3]
        total[np.arange(20), column] += 1
    assert (
        np.abs(total / 400 - profile.weights.sum(axis=1) / profile.weights.sum(axis=(1, 2))[:, None]).max()
        < 0.12
    )


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
