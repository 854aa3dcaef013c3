"""No count follows from published figures: every small table is tried, with every figure of release.json worked out."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from funnel.data import Alphabet, Joint, Protocol
from funnel.format.manifest import decimals
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import Protection, protect
from funnel.notions import NOTIONS
from funnel.release.measured import measure, stated_leakage, stated_utility

SHAPE, RECORDS, MINIMUM = (2, 3), 24, 3
EVERY = np.diff(
    [[-1, *bars, RECORDS + 5] for bars in combinations(range(RECORDS + 5), 5)], axis=1
).reshape(-1, *SHAPE) - 1  # fmt: skip


def solved(table: np.ndarray[Any, Any]) -> Protection:
    """The optimum at 1 nat of LIP."""
    names = [Alphabet((name,), tuple((f"{name}{i}",) for i in range(size)))
             for name, size in zip("sx", SHAPE, strict=True)]  # fmt: skip
    joint = Joint(names[0], (names[1],), np.argwhere(table > 0), table[table > 0])
    return protect(joint, NOTIONS["lip"](notion="lip", epsilon=1.0), MECHANISMS["optimal"](kind="optimal"), (1.0,))


def entropy(chances: np.ndarray[Any, Any]) -> Any:
    return -(chances * np.log(np.where(chances > 0, chances, 1))).sum(axis=-1)


def figures(tables: np.ndarray[Any, Any], chances: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Leakages (3, k), rounded up where they are published, and utilities (3, k), of tables (k, 2, 3), all in nats."""
    sent = tables @ chances.T / RECORDS
    secret, public, out = tables.sum(axis=2) / RECORDS, tables.sum(axis=1) / RECORDS, sent.sum(axis=1)
    given = sent / secret[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.abs(np.log(np.where(out[:, None] > 0, given / out[:, None], 1)))
        odds = np.abs(np.log(np.where(out > 0, given[:, 0] / given[:, 1], 1)))
    hidden = entropy(secret) + entropy(out) - entropy(sent.reshape(len(sent), -1))
    kept = entropy(out) - public @ entropy(chances.T)
    leakage = np.stack([change.max(axis=(1, 2)), odds.max(axis=1), hidden])
    return leakage, np.stack([kept, entropy(public), kept / entropy(public)])


def alike(tables: np.ndarray[Any, Any], own: np.ndarray[Any, Any], chances: np.ndarray[Any, Any], digits: int) -> Any:
    """The tables whose published figures are those of `own`."""
    (leakage, utility), (mine, kept) = figures(tables, chances), figures(own[None], chances)
    steps = 10**digits
    same = (np.ceil(leakage * steps - 1e-6) == np.ceil(mine * steps - 1e-6)).all(axis=0)
    if digits:
        same &= (np.round(utility * steps) == np.round(kept * steps)).all(axis=0)
    return tables[same]


@pytest.mark.parametrize("seed", range(5))
def test_every_count_keeps_a_range_of_the_minimum_given_all_published_figures(seed: int) -> None:
    """With the chances at hand. Four decimals, which were published before, leave a table or two."""
    known = EVERY[(EVERY.sum(axis=1) >= MINIMUM).all(axis=1) & (EVERY.sum(axis=2) > 0).all(axis=1)]
    table = known[np.random.default_rng(seed).integers(len(known))]
    found = solved(table)
    (protocol,) = found.protocols
    assert isinstance(protocol, Protocol)
    chances, digits = protocol.probabilities()[:, 0, :], decimals(RECORDS, MINIMUM)
    left = alike(known, table, chances, digits)
    assert (left.max(axis=0) - left.min(axis=0) >= MINIMUM).all()
    assert len(alike(known, table, chances, 4)) < len(left) / 10


@pytest.mark.parametrize("counts", [[[3, 14, 0], [3, 0, 4]], *range(3)])
def test_so_it_does_of_a_minimum_of_two(counts: Any) -> None:
    """One decimal, which is as fine as one minimum of records, would leave less of the first: zeros of a table that is
    nearly told by its weights."""
    known = EVERY[(EVERY.sum(axis=1) >= 2).all(axis=1) & (EVERY.sum(axis=2) > 0).all(axis=1)]
    seed = counts if isinstance(counts, int) else None
    table = np.array(counts) if seed is None else known[np.random.default_rng(seed).integers(len(known))]
    (protocol,) = solved(table).protocols
    assert isinstance(protocol, Protocol)
    chances, digits = protocol.probabilities()[:, 0, :], decimals(RECORDS, 2)
    left = alike(known, table, chances, digits)
    assert (left.max(axis=0) - left.min(axis=0) >= 2).all()
    finer = alike(known, table, chances, digits + 1)
    assert seed is not None or (finer.max(axis=0) - finer.min(axis=0)).min() < 2


def test_the_figures_tried_are_those_that_are_published() -> None:
    table = np.array([[5, 2, 1], [1, 4, 11]])
    found = solved(table)
    (protocol,) = found.protocols
    assert isinstance(protocol, Protocol)
    leakage, utility = figures(table[None], protocol.probabilities()[:, 0, :])
    told = measure(found)
    stated, useful = stated_leakage(told, found.notion, 4), stated_utility(told, 4)
    exact = np.array([stated["lip"], stated["ldp"], stated["mutual_information"]])
    assert (exact - leakage[:, 0] > -1e-9).all() and (exact - leakage[:, 0] < 1.001e-4).all()
    kept = [useful.mutual_information, useful.entropy, useful.normalised]
    np.testing.assert_allclose(np.array(kept, float), utility[:, 0], atol=0.51e-4)
    assert set(vars(stated_utility(told, 0)).values()) == {None}
