"""Binary secrets of many values: the optimum of all listed pairs without a list, and a bound that all pairs keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from funnel.errors import SolverError
from funnel.optimise import pairs
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Certificate
from funnel.optimise.cone import Cone
from funnel.optimise.linear.highs import Answer, Program
from funnel.optimise.master import master
from funnel.optimise.pairs import FacetPairs, Paired, best_of_pairs, plane_facets
from funnel.optimise.solve import maximise
from funnel.optimise.utility import information
from tests.support.cones import CONES, census, entropy, ldp, lip, perfect, prior_of, problems
from tests.support.rays import planar_rays
from tests.support.strategies import tables

TABLE = np.array([[9, 8, 7, 0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 9, 8, 7, 6, 5]])


def solved(cone: Cone, prior: np.ndarray) -> tuple[Paired, float]:
    """The protocol of pairs and its I(X;Y)."""
    found = best_of_pairs(cone, prior, budget=Budget())
    assert found is not None
    return found, float(information(found.rows, prior).sum())


def check(cone: Cone, prior: np.ndarray) -> None:
    """Everything that listing all rays can tell."""
    rays = planar_rays(cone, prior)
    found, value = solved(cone, prior)
    assert value == pytest.approx(master(rays, prior, budget=60).value, abs=1e-8)
    assert found.rays == rays.shape[0]
    check_bound(found, rays, prior)
    assert abs(found.certificate.bound - value) <= 1e-8
    check_protocol(found, cone)


def check_bound(found: Paired, rays: csr_array, prior: np.ndarray) -> None:
    """No ray is worth more than the certificate says."""
    worth = information(rays, prior) - rays @ found.certificate.duals
    assert worth.max() <= found.certificate.peak + 1e-9


def check_protocol(found: Paired, cone: Cone) -> None:
    """Columns sum to one, rows lie in the cone, and there are no more of them than values."""
    rows = found.rows.toarray()
    assert len(rows) <= cone.dimension
    assert rows.min() >= 0
    assert np.abs(rows.sum(axis=0) - 1).max() <= 1e-12
    assert cone.violation(rows).max() <= 1e-7


# The same as listing


@settings(deadline=None, max_examples=60)
@given(problems(secrets=2, most=12))
def test_pricing_and_listing_agree(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    check(cone, prior_of(table))


@settings(deadline=None, max_examples=50)
@given(tables(most=12, secrets=2, largest=400_000), st.sampled_from(sorted(CONES)), st.floats(0.01, 5))
def test_rare_values_are_no_trouble(table: np.ndarray, kind: str, epsilon: float) -> None:
    check(CONES[kind](table, epsilon), prior_of(table))


@settings(deadline=None, max_examples=50)
@given(tables(most=12, secrets=2))
def test_an_equality_has_one_facet(table: np.ndarray) -> None:
    check(perfect(table), prior_of(table))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 2), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_any_planar_cone_will_do(rank: int, size: int, seed: int) -> None:
    """Rows that come from no notion."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(rank, size))
    rows -= np.maximum(rows.sum(axis=1), 0)[:, None] + 0.1
    cone, prior = Cone(rows), rng.dirichlet(np.full(size, 0.5)) + 1e-6
    prior /= prior.sum()
    if plane_facets(cone, prior) is not None:
        check(cone, prior)


def test_a_side_that_the_other_makes_needless_has_no_pairs() -> None:
    """Where the first row is met with equality, the second is not: w = (3/4, 0, 1/4) has g = 5/8."""
    cone, prior = Cone(np.array([[1.0, -3.0, -3.0], [1.0, -1.0, -0.5]])), np.full(3, 1 / 3)
    check(cone, prior)
    assert solved(cone, prior)[0].rays == 4


@pytest.mark.parametrize("kind", sorted(CONES))
def test_two_facets_that_are_almost_opposite(kind: str) -> None:
    """A rare secret and a small epsilon: the two are told apart by a ten-billionth, and both must be kept."""
    table = np.array([[2, 0], [0, 2415726]])
    check(CONES[kind](table, 1e-4), prior_of(table))


@pytest.mark.parametrize("kind", sorted(CONES))
def test_two_hundred_values(kind: str) -> None:
    table = np.random.default_rng(1).dirichlet(np.full(400, 0.2)).reshape(2, 200) + 1e-9
    check(CONES[kind](table, 0.5), prior_of(table))


def test_ties_and_values_that_tell_all() -> None:
    """A few shares of the secret among some eighty values, many of them 0 or 1."""
    table = np.random.default_rng(2).multinomial(150, np.full(200, 1 / 200)).reshape(2, 100)
    table = table[:, table.any(axis=0)]
    for cone in (lip(table, 0.3), ldp(table, 0.3), perfect(table)):
        check(cone, prior_of(table))


# Numbers that were computed elsewhere


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("lip", (0.93465426, 0.96553650, 0.98836826)), ("ldp", (0.91466155, 0.94470823, 0.97915636))],
)
def test_golden_numbers_lie_between_value_and_bound(kind: str, expected: tuple[float, ...]) -> None:
    """Dirichlet(½), seed 0, as a census of 32,561 records drawn from it with the same generator."""
    rng = np.random.default_rng(0)
    table = rng.multinomial(32561, rng.dirichlet(np.full(200, 0.5))).reshape(2, 100)
    prior = prior_of(table)
    for epsilon, share in zip((0.5, 1.0, 2.0), expected, strict=True):
        found, value = solved(CONES[kind](table, epsilon), prior)
        kept = np.array([value, found.certificate.bound]) / entropy(prior)
        assert kept == pytest.approx(share, abs=6e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_a_thousand_values_against_the_formulas_of_the_interval(epsilon: float) -> None:
    """The certificate, ray by ray, from r = P(s1|x) and the interval [l, h] of LIP alone, without cones."""
    table = np.random.default_rng(0).dirichlet(np.full(2000, 0.5)).reshape(2, 1000)
    prior, share = prior_of(table), table[0] / table.sum(axis=0)
    solution = maximise(lip(table, epsilon), prior, budget=60)
    assert (solution.method, solution.gap <= 1e-8) == ("planar", True)
    one, two = table.sum(axis=1)
    low = max(one * np.exp(-epsilon), 1 - np.exp(epsilon) * two)
    high = min(one * np.exp(epsilon), 1 - np.exp(-epsilon) * two)
    proof = solution.certificate
    assert proof is not None
    inside = (share >= low) & (share <= high)
    eta = proof.duals / prior
    price, number = (-np.log(prior) - eta)[inside], int(inside.sum())
    for cut in (low, high):
        x, other = np.flatnonzero(share < cut), np.flatnonzero(share > cut)
        mass = (share[other] - cut) / (share[other] - share[x, None])
        gain = mass * (np.log(mass / prior[x, None]) - eta[x, None])
        gain += (1 - mass) * (np.log((1 - mass) / prior[other]) - eta[other])
        price, number = np.append(price, gain.max()), number + gain.size
    assert price.max() <= proof.peak + 1e-9
    assert number == solution.rays == proof.nodes
    assert solution.bound == pytest.approx(proof.bound, abs=1e-9)


# What makes it fast makes no difference


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_one_facet_needs_one_sweep(size: int, seed: int) -> None:
    """Costs per unit of moment are supermodular, and fall with the distance inside: no other pairs are needed."""
    rng = np.random.default_rng(seed)
    row = rng.integers(-5, 6, size=size).astype(float)
    row[0] -= max(row.sum(), 0) + 1
    cone, prior = Cone(row[None, :]), rng.dirichlet(np.full(size, 0.5)) + 1e-6
    prior /= prior.sum()
    rays = planar_rays(cone, prior)
    facets = plane_facets(cone, prior)
    assert facets is not None
    side = FacetPairs.of(facets[0])
    swept = (
        {(int(side.outer[i]), int(side.inner[j])) for i, j in side.sweep(prior)} if len(side.outer) else set()
    )
    kept = [k for k in range(rays.shape[0]) if is_single(rays, k) or support(rays, k) in swept]
    whole, part = (master(part, prior, budget=60).value for part in (rays, rays[kept]))
    assert part == pytest.approx(whole, abs=1e-8)


def support(rays: csr_array, k: int) -> tuple[int, ...]:
    """The values of a ray, the one outside first."""
    return tuple(map(int, rays.indices[rays.indptr[k] : rays.indptr[k + 1]]))


def is_single(rays: csr_array, k: int) -> bool:
    """Whether a ray has a single value."""
    return len(support(rays, k)) == 1


def test_the_start_only_saves_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FacetPairs, "sweep", lambda *_: np.zeros((0, 2), np.int64))
    for cone in (lip(TABLE, 0.3), ldp(TABLE, 0.3), perfect(TABLE)):
        check(cone, prior_of(TABLE))


def test_blocks_of_one_pair_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = prior_of(TABLE)
    whole = solved(lip(TABLE, 0.3), prior)
    monkeypatch.setattr(pairs, "_BLOCK", 1)
    parts = solved(lip(TABLE, 0.3), prior)
    assert parts[1] == whole[1]
    assert parts[0].certificate.bound == pytest.approx(whole[0].certificate.bound, abs=1e-12)


# When it cannot be done


def test_three_secrets_are_not_planar() -> None:
    table = census("marital_status", "relationship")
    assert best_of_pairs(lip(table, 0.5), prior_of(table), budget=Budget()) is None


def test_no_time_at_all_releases_nothing_and_says_so() -> None:
    prior = prior_of(TABLE)
    found = best_of_pairs(lip(TABLE, 0.3), prior, budget=Budget(-1))
    assert found is not None
    assert found.rows.toarray().tolist() == [[1.0] * 9]
    assert found.certificate.bound == pytest.approx(entropy(prior))
    check_bound(found, planar_rays(lip(TABLE, 0.3), prior), prior)


class Ticking(Budget):
    """A budget of which every look takes a second."""

    @property
    def over(self) -> bool:
        self.nodes -= 1
        return self.nodes < 0


def test_whenever_time_ends_there_is_a_protocol_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that ticks at every look, and a poor start, so that there is much to interrupt."""
    cone, prior = lip(TABLE, 0.3), prior_of(TABLE)
    rays, (_, best) = planar_rays(cone, prior), solved(cone, prior)
    monkeypatch.setattr(FacetPairs, "sweep", lambda *_: np.zeros((0, 2), np.int64))
    monkeypatch.setattr(pairs, "_BLOCK", 1)
    values = []
    for ticks in range(0, 200, 3):
        found = best_of_pairs(cone, prior, budget=Ticking(nodes=ticks))
        assert found is not None
        check_protocol(found, cone)
        check_bound(found, rays, prior)
        values.append(float(information(found.rows, prior).sum()))
        assert values[-1] <= best + 1e-8 <= found.certificate.bound + 2e-8
    assert values == sorted(values)
    assert len(set(np.round(values, 6))) >= 3, "nothing, something, all"
    assert values[-1] == pytest.approx(best, abs=1e-8)


def test_time_that_ends_inside_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Answer("time", np.zeros(0))
    monkeypatch.setattr(Program, "solve", lambda *_: late)
    found = best_of_pairs(lip(TABLE, 0.3), prior_of(TABLE), budget=Budget())
    assert found is not None
    assert isinstance(found.certificate, Certificate)
    assert found.rows.shape == (1, 9)


def test_a_solver_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "solve", lambda *_: Answer("failed", np.zeros(0)))
    with pytest.raises(SolverError, match="failed") as caught:
        best_of_pairs(lip(TABLE, 0.3), prior_of(TABLE), budget=Budget())
    assert (caught.value.code, caught.value.status) == ("solver-failed", "failed")
