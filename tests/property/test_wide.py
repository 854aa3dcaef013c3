"""Whatever ties the secret to columns inside a cell, a filled row tells at most what its cell tells: by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.cells.distance import law
from funnel.cells.make import Made, make
from funnel.data import Alphabet, Joint
from funnel.errors import SolverError
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from tests.support.wide import source

EPSILON = 0.4


def people(seed: int, rows: int = 90) -> tuple[Made, np.ndarray, np.ndarray]:
    """Cells of three small columns; and of every record the secret, which depends on all three, and one more column."""
    draw = np.random.default_rng(seed)
    hidden = draw.integers(0, 3, rows)
    columns = [(hidden + draw.integers(0, size, rows)) % 4 for size in (2, 3, 4)]
    made = make(
        "person",
        [source(f"c{place}", column.tolist(), "INTEGER") for place, column in enumerate(columns)],
        most=4, minimum=10, support=2, seed=bytes(32),
    )  # fmt: skip
    # Inside a cell, too, the columns give the secret away, and with the other block more than either alone.
    other = draw.integers(0, 2, rows)
    secret = (columns[0] * 4 + columns[1] + columns[2] * other + (draw.random(rows) < 0.2)) % 2
    return made, secret.astype(np.int64), other


def joint(made: Made, secret: np.ndarray, other: np.ndarray) -> Joint:
    cells, counts = np.unique(np.column_stack([secret, made.labels, other]), axis=0, return_counts=True)
    public = Alphabet(("person",), tuple((label,) for label in made.cells.labels()))
    alphabets = (Alphabet(("s",), (("0",), ("1",))), public, Alphabet(("z",), (("0",), ("1",))))
    return Joint(alphabets[0], alphabets[1:], cells.astype(np.int64), counts.astype(np.int64))


def rows_of_cells(made: Made) -> np.ndarray:
    """The chance of every row (rows,) that a cell can be filled in with, (m, rows)."""
    codings = [np.arange(len(column)) for column in made.cells.columns]
    alone = np.eye(len(made.cells))
    return np.array([law(made.cells.profiles, one, codings).marginal((0, 1, 2)).ravel() for one in alone])


@pytest.mark.long
@pytest.mark.parametrize("notion", ["lip", "ldp", "pml", "mutual-information"])
@pytest.mark.parametrize("mechanism", ["optimal", "invariant", "randomised-response"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_a_row_and_another_block_tell_no_more_than_the_bound(notion, mechanism, seed):
    made, secret, other = people(seed)
    one = MECHANISMS[mechanism]
    if one.misfit(notion, secret_public=False) is not None or len(set(secret.tolist())) < 2:
        return
    try:
        found = protect(
            joint(made, secret, other),
            NOTIONS[notion](notion=notion, epsilon=EPSILON),
            one(kind=mechanism),
            (0.5, 0.5),
        )
    except SolverError as error:
        assert error.code == "nothing-to-release"
        return
    wide, plain = found.protocols
    answers = [int(value[0] or 0) - 1 for value in wide.outputs.values]
    filled = wide.probabilities()[:, 0].T @ rows_of_cells(made)[answers]
    # Each record's chances of every (row, other answer), by its own true values and nothing of the protocol's making.
    each = np.einsum("ir,iz->irz", filled[made.labels], plain.probabilities()[:, 0].T[other]).reshape(
        len(secret), -1
    )
    given_s = np.array([each[secret == s].mean(axis=0) for s in (0, 1)])
    anyone = each.mean(axis=0)
    seen = anyone > 0
    told = given_s[:, seen] / anyone[seen]
    if notion == "mutual-information":
        prior = np.bincount(secret) / len(secret)
        terms = np.where(told > 0, told * np.log(np.where(told > 0, told, 1)), 0)
        assert float(prior @ (terms @ anyone[seen])) <= EPSILON + 1e-9
        return
    with np.errstate(divide="ignore"):
        rises, falls = np.log(told).max(), -np.log(told).min()
        odds = np.abs(np.log(told[0]) - np.log(told[1])).max() if (told > 0).all() else np.inf
    assert {"lip": max(rises, falls), "ldp": odds, "pml": rises}[notion] <= EPSILON + 1e-9
