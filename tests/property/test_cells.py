"""A filled row tells of the secret at most what its label tells, whatever ties the secret to columns inside a cell."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.cells.distance import law
from funnel.cells.fill import fill
from funnel.cells.make import Made, make
from tests.support.wide import source

COLUMNS = 3


def tables(seed: int) -> tuple[Made, np.ndarray, np.ndarray]:
    """Cells of a small random table, N[s, cell], and a random protocol Q[cell, label] on cells.

    The secret is a function of the columns, or nearly, and of columns that the tree did not ask for.
    """
    draw = np.random.default_rng(seed)
    values = [draw.integers(0, size, 400) for size in draw.integers(2, 5, COLUMNS)]
    secret = (values[0] + values[-1] + (draw.random(400) < 0.05 * (seed % 3))) % 3
    columns = [source(f"x{place}", [f"v{v}" for v in value], "VARCHAR") for place, value in enumerate(values)]
    made = make("x", columns, most=int(draw.integers(2, 6)), minimum=20, support=5, seed=bytes(32))
    counts = np.zeros((3, len(made.cells)))
    np.add.at(counts, (secret, made.labels), 1)
    return made, counts, draw.dirichlet(np.full(len(made.cells), 0.4), len(made.cells)) + 1e-3


def told(counts: np.ndarray, protocol: np.ndarray) -> np.ndarray:
    """P(s, label)."""
    joint = counts @ (protocol / protocol.sum(axis=1, keepdims=True))
    return np.asarray(joint / joint.sum())


def rows(made: Made) -> np.ndarray:
    """P(row | label), for every row there is."""
    codings = [np.arange(len(column)) for column in made.cells.columns]
    labels = np.eye(len(made.cells))
    key = tuple(range(COLUMNS))
    return np.stack([law(made.cells.profiles, one, codings).marginal(key).ravel() for one in labels])


def leakages(joint: np.ndarray) -> dict[str, float]:
    """What y tells of s, in nats, from P(s, y): beliefs moved up or down, ratios of chances, information."""
    joint = joint[:, joint.sum(axis=0) > 1e-15]
    with np.errstate(divide="ignore"):
        moved = np.log(joint) - np.log(joint.sum(axis=0)) - np.log(joint.sum(axis=1))[:, None]
        chances = np.log(joint / joint.sum(axis=1)[:, None])
    information = np.where(joint > 0, joint * np.where(joint > 0, moved, 0), 0).sum()
    ratios = (chances.max(axis=0) - chances.min(axis=0)).max()
    return {"lip": np.abs(moved).max(), "pml": moved.max(), "ldp": ratios, "mutual information": information}


@pytest.mark.parametrize("seed", range(40))
def test_a_row_tells_no_more_of_the_secret_than_its_label(seed: int) -> None:
    made, counts, protocol = tables(seed)
    label, row = told(counts, protocol), rows(made)
    both = (label[:, :, None] * row).reshape(3, -1)
    bound = leakages(label)
    for found in (leakages(label @ row), leakages(both)):
        assert all(found[name] <= bound[name] + 1e-9 for name in bound)


def test_a_draw_keyed_by_x_inside_a_cell_would_tell_everything() -> None:
    """Two values of one cell, S = X: the label tells nothing, a filling that saw x would tell S."""
    label = np.array([[0.5], [0.5]])
    keyed = np.array([[0.5, 0.0], [0.0, 0.5]])
    assert leakages(label)["lip"] < 1e-12
    assert leakages(keyed)["lip"] == np.inf


def test_rows_are_a_function_of_labels_and_seed() -> None:
    """Other records behind the same labels: the same rows, and no row says which of a cell's records it was."""
    made, _, _ = tables(3)
    again = fill(made.cells.profiles, made.labels, made.cells.seed)
    inside = np.flatnonzero(made.labels == 0)
    own = np.stack([codes[inside] for codes in made.codes])
    rows_of = np.stack([codes[inside] for codes in again])
    draw = np.random.default_rng(1)
    by_chance = [(own[:, draw.permutation(len(inside))] == rows_of).all(axis=0).sum() for _ in range(400)]
    assert (own == rows_of).all(axis=0).sum() <= np.quantile(by_chance, 0.999)
