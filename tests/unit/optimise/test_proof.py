"""A branch and bound written down: anyone can go through it again without a solver, and nobody can bend it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Proof
from funnel.optimise.columns import pricing, tree
from funnel.optimise.columns.pricing import Peak, Slice, price
from funnel.optimise.columns.search import columns
from funnel.optimise.cone import Cone
from funnel.optimise.linear.highs import Program
from tests.support.cones import CONES, census, ldp, lifted_ldp, lip, perfect, prior_of, problems
from tests.support.proofs import MARGIN, excess
from tests.support.rays import listed_rays
from tests.support.strategies import tables


def search(cone: Cone, prior: np.ndarray, eta: np.ndarray, tolerance: float, most: int = 10_000) -> Peak:
    return Slice(cone, prior).peak(eta, tolerance=tolerance, budget=Budget(nodes=most), enough=10**9)


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(problems(), st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_a_search_can_be_gone_through_again(problem: tuple[np.ndarray, Cone], seed: int, most: int) -> None:
    """Whenever it ends: after some boxes, or when all that exceeds a tolerance has been found."""
    table, cone = problem
    prior, random = prior_of(table), np.random.default_rng(seed)
    eta = random.normal(size=len(prior))
    linear = np.log(prior) + eta
    for tolerance in (-np.inf, -float(eta @ prior) + float(random.exponential(scale=0.1))):
        found = search(cone, prior, eta, tolerance, most)
        assert found.proof is not None
        assert excess(found.proof, linear, found.bound) <= MARGIN


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(tables(most=5, secrets=3), st.integers(0, 2**32 - 1))
def test_equations_have_multipliers_of_any_sign(table: np.ndarray, seed: int) -> None:
    cone, prior = perfect(table), prior_of(table)
    eta = np.random.default_rng(seed).normal(size=len(prior))
    found = search(cone, prior, eta, -float(eta @ prior) + 0.01)
    assert found.proof is not None
    assert found.proof.equalities == len(found.proof.inequalities)
    assert excess(found.proof, np.log(prior) + eta, found.bound) <= MARGIN


@pytest.mark.parametrize("kind", sorted(CONES))
@pytest.mark.parametrize("widest", [0, 64])
def test_the_certificate_of_an_optimum_holds(kind: str, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With programs solved one by one, and all at once."""
    monkeypatch.setattr(pricing, "_WIDEST", widest)
    table = census("marital_status", "relationship")
    prior = prior_of(table)
    cone = CONES[kind](table, 1.0)
    found = columns(cone, prior, budget=Budget(60), tolerance=1e-5, ceiling=np.inf)
    certificate = found.certificate
    assert certificate.proof is not None
    linear = np.log(prior) + certificate.duals / prior
    assert excess(certificate.proof, linear, certificate.peak) <= MARGIN
    expected = cone.constraints(prior)
    given = certificate.proof.inequalities
    assert given / np.abs(given).max(axis=1, keepdims=True) == pytest.approx(expected, abs=1e-12)


def forged(proof: Proof, random: np.random.Generator) -> dict[str, Proof]:
    """A proof with something wrong about it."""
    leaf = int(random.choice(np.setdiff1d(np.arange(proof.boxes), proof.parent)))
    used = [box for box in range(proof.boxes) if proof.starts[box + 1] > proof.starts[box]]
    value = proof.value.copy()
    value[proof.starts[used[0]] : proof.starts[used[0] + 1]] = 0.0
    cut = np.maximum(proof.at, 0.5) * 0.0
    return {
        "no multipliers": replace(proof, value=np.zeros_like(proof.value)),
        "a level too low": replace(
            proof, level=np.where(np.arange(proof.boxes) == leaf, proof.level + 1e6, proof.level)
        ),
        "all cut at zero": replace(proof, at=cut),
        "weaker inequalities": replace(proof, inequalities=proof.inequalities - 1.0),
    }


def test_a_proof_that_was_tampered_with_does_not_hold() -> None:
    table = census("marital_status", "relationship")
    cone, prior = lip(table, 0.5), prior_of(table)
    found = columns(cone, prior, budget=Budget(60), tolerance=1e-5, ceiling=np.inf)
    proof, linear = found.certificate.proof, np.log(prior) + found.certificate.duals / prior
    assert proof is not None
    assert excess(proof, linear, found.certificate.peak) <= MARGIN
    for what, wrong in forged(proof, np.random.default_rng(0)).items():
        assert excess(wrong, linear, found.certificate.peak) > MARGIN, what
    assert excess(proof, linear, found.certificate.peak - 1e-3) > MARGIN, "a lower peak"
    assert excess(proof, linear - 0.01, found.certificate.peak) > MARGIN, "other duals"


def test_a_solver_that_calls_everything_empty_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box is closed by multipliers only, never by a solver's word."""
    table = np.array([[30, 10, 5], [20, 40, 5]])
    prior, random = prior_of(table), np.random.default_rng(0)
    for cone in (ldp(table, 0.5), lifted_ldp(table, 0.5)):
        mass = listed_rays(ldp(table, 0.5), prior).toarray() * prior
        best = float(price(mass, prior, np.zeros(3)).max())
        room = Slice(cone, prior)
        with monkeypatch.context() as patch:
            patch.setattr(Program, "_status", lambda _: "empty")
            patch.setattr(Program, "_ray", lambda self: random.normal(size=self._solver.getNumRow()))
            found = room.peak(np.zeros(3), tolerance=0.0, budget=Budget(nodes=50), enough=10**9)
        assert found.bound >= best - 1e-9


def test_long_searches_are_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    table = census("marital_status", "relationship")
    prior = prior_of(table)
    eta = np.zeros(len(prior))
    assert search(lip(table, 0.5), prior, eta, 0.01).proof is not None
    assert search(lifted_ldp(table, 0.5), prior, eta, 0.01, most=3).proof is None
    monkeypatch.setattr(tree, "MOST", 5)
    assert search(lip(table, 0.5), prior, eta, 0.01).proof is None
