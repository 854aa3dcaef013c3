"""Searches that learn from each other: the same answers, and nothing taken on trust."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.optimise import memory
from funnel.optimise.cone import Cone
from funnel.optimise.solve import Solution, maximise
from tests.support.cones import CONES, census, entropy, lifted_ldp, lip, perfect, prior_of
from tests.support.strategies import tables

EPSILONS = st.floats(0.05, 3)


def priced(cone: Cone, prior: np.ndarray, **options: np.ndarray) -> Solution:
    """The optimum, within a minute."""
    return maximise(cone, prior, budget=60, **options)


def same(one: Solution, other: Solution, prior: np.ndarray) -> None:
    close = 2e-6 * entropy(prior) + 1e-9
    assert one.value == pytest.approx(other.value, abs=close)
    assert one.bound >= other.value - 1e-9
    assert other.bound >= one.value - 1e-9


@settings(deadline=None, max_examples=6)
@given(tables(), st.sampled_from(sorted(CONES)), st.lists(EPSILONS, min_size=2, max_size=4))
def test_a_search_that_remembers_finds_the_same(table: np.ndarray, kind: str, epsilons: list[float]) -> None:
    """In any order of epsilon, and whatever notion was asked before."""
    prior = prior_of(table)
    with memory.remembering():
        for epsilon in epsilons:
            for one in (kind, "lip"):
                cone = CONES[one](table, epsilon)
                after = priced(cone, prior)
                assert after.protocol.min() >= 0
                assert np.abs(after.protocol.sum(axis=0) - 1).max() <= 1e-9
                assert cone.violation(after.protocol).max() <= 1e-9
    same(after, priced(cone, prior), prior)


@settings(deadline=None, max_examples=25)
@given(tables(), st.sampled_from(sorted(CONES)), EPSILONS, EPSILONS)
def test_what_is_recalled_is_allowed(table: np.ndarray, kind: str, before: float, now: float) -> None:
    prior, cone = prior_of(table), CONES[kind](table, now)
    with memory.remembering():
        memory.keep(CONES[kind](table, before), prior, priced(CONES[kind](table, before), prior).protocol)
        found = memory.recall(cone, prior)
    assert np.allclose(found @ prior, 1)
    assert found.size == 0 or found.min() >= 0
    assert (cone.violation(found) <= 1e-9).all()


@settings(deadline=None, max_examples=25)
@given(tables(most=4), st.sampled_from(sorted(CONES)), EPSILONS, st.integers(0, 2**32 - 1))
def test_rows_to_begin_with_may_be_any(table: np.ndarray, kind: str, epsilon: float, seed: int) -> None:
    """Outside the cone, below zero, zero, repeated: none of it changes what is found."""
    prior, cone = prior_of(table), CONES[kind](table, epsilon)
    rows = np.random.default_rng(seed).normal(size=(6, len(prior)))
    rows = np.vstack([rows, np.abs(rows), np.eye(len(prior)), np.zeros_like(prior), np.ones_like(prior)])
    same(priced(cone, prior, start=rows), priced(cone, prior), prior)


def test_all_that_a_smaller_epsilon_found_is_allowed_by_a_larger_one() -> None:
    table = census("marital_status", "relationship")
    prior = prior_of(table)
    small, large = lip(table, 0.5), lip(table, 0.6)
    rows = maximise(small, prior, budget=60).protocol
    with memory.remembering():
        memory.keep(small, prior, rows)
        found = memory.recall(large, prior)
    scaled = rows / (rows @ prior)[:, None]
    assert all((np.abs(found - row).max(axis=1) <= 1e-9).any() for row in scaled)
    assert len(found) > len(rows), "and some ray of the larger cone stands where one of the smaller stood"


def test_lifted_cones_remember_too() -> None:
    table = census("marital_status", "relationship")
    prior = prior_of(table)
    with memory.remembering():
        memory.keep(lifted_ldp(table, 0.5), prior, priced(lifted_ldp(table, 0.5), prior).protocol)
        found = memory.recall(lifted_ldp(table, 1.0), prior)
        after = priced(lifted_ldp(table, 1.0), prior)
    assert len(found)
    assert (lifted_ldp(table, 1.0).violation(found) <= 1e-9).all()
    same(after, priced(lifted_ldp(table, 1.0), prior), prior)


def test_nothing_is_kept_where_nobody_remembers() -> None:
    table = census("marital_status", "relationship")
    prior, cone = prior_of(table), lip(table, 0.5)
    memory.keep(cone, prior, np.ones((1, len(prior))))
    assert len(memory.recall(cone, prior)) == 0
    with memory.remembering():
        with memory.remembering():
            memory.keep(cone, prior, np.ones((1, len(prior))))
        assert len(memory.recall(cone, prior))
    assert len(memory.recall(cone, prior)) == 0


def test_another_alphabet_is_another_matter() -> None:
    one, other = census("marital_status", "relationship"), census("occupation", "relationship")
    with memory.remembering():
        memory.keep(lip(one, 0.5), prior_of(one), np.ones((1, one.shape[1])))
        assert len(memory.recall(lip(one, 1.0), prior_of(one)))
        table = np.vstack([other, other[:1] * 2])
        assert len(memory.recall(lip(table, 1.0), prior_of(table))) == 0


def test_perfect_privacy_recalls_rows_that_tell_nothing() -> None:
    table = np.array([[30, 10, 20], [15, 5, 10], [2, 9, 4]])
    prior, cone = prior_of(table), perfect(table)
    with memory.remembering():
        first = priced(cone, prior)
        again = priced(cone, prior)
        found = memory.recall(cone, prior)
    same(first, again, prior)
    assert (cone.violation(found) <= 1e-9).all()
