"""Integer vectors on exact equations: the whole lattice, by short vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import SolverError
from funnel.optimise.rounding.lattice import MAX_DIMENSION, kernel, nearest, reduce, round_exactly
from funnel.optimise.solve import maximise
from tests.support.cones import census, perfect, prior_of
from tests.support.strategies import tables


def determinant(matrix: np.ndarray) -> Fraction:
    """By exact elimination."""
    rows = [[Fraction(int(number)) for number in row] for row in matrix]
    result = Fraction(1)
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            return Fraction(0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        result *= rows[i][i] * (-1 if pivot != i else 1)
        for j in range(i + 1, len(rows)):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return result


def gram(basis: np.ndarray) -> np.ndarray:
    """Inner products of the rows."""
    return basis @ basis.T


@st.composite
def bases(draw: st.DrawFn) -> np.ndarray:
    """Independent integer vectors, some of them long and nearly parallel."""
    size = draw(st.integers(1, 6))
    numbers = draw(st.lists(st.integers(-(10**6), 10**6), min_size=size * size, max_size=size * size))
    lower = np.tril(np.array(numbers, object).reshape(size, size), -1)
    return lower + np.diag(draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)))


@given(bases())
def test_reduction_keeps_the_lattice(basis: np.ndarray) -> None:
    """Same determinant, and every old vector is an integer combination of the new ones."""
    short = reduce(basis)
    assert abs(determinant(short)) == abs(determinant(basis))
    for old in basis:
        for i in range(len(short)):
            swapped = short.copy()
            swapped[i] = old
            assert (determinant(swapped) / determinant(short)).denominator == 1


@given(bases())
def test_reduced_vectors_are_short(basis: np.ndarray) -> None:
    """The product of the lengths exceeds the determinant by at most 2^(d(d-1)/4)."""
    short = reduce(basis)
    product = np.prod([Fraction(int(row @ row)) for row in short])
    d = len(basis)
    assert product <= determinant(basis) ** 2 * 2 ** (d * (d - 1) // 2 + 1)


@settings(deadline=None)
@given(tables(secrets=3, most=6))
def test_the_kernel_is_the_whole_lattice(table: np.ndarray) -> None:
    """It meets the equalities, has the full dimension, and no vector is a multiple of a missing one."""
    cone = perfect(table)
    basis = kernel(cone.equalities, cone.dimension)
    equalities = np.array(cone.equalities, object)
    assert not (equalities @ basis.T).any()
    rank = np.linalg.matrix_rank(equalities.astype(float) / max(1.0, float(abs(equalities).max())))
    assert len(basis) == cone.dimension - rank
    for prime in (2, 3, 5, 7):
        assert rank_modulo(basis, prime) == len(basis), "a saturated lattice stays independent modulo a prime"


def rank_modulo(basis: np.ndarray, prime: int) -> int:
    """The rank of integer rows over a prime field."""
    rows, rank = [[int(number) % prime for number in row] for row in basis], 0
    for column in range(basis.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, prime)
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] * inverse
            rows[i] = [(a - factor * b) % prime for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def test_census_kernels_are_short() -> None:
    """One equality with numbers of nine digits on sixteen values: entries of two digits suffice."""
    cone = perfect(census("sex", "education"))
    assert max(map(abs, cone.equalities[0])) > 10**6
    assert abs(kernel(cone.equalities, cone.dimension)).max() < 100


def test_long_bases_are_reduced_in_parts() -> None:
    numbers = np.random.default_rng(0).integers(-(10**8), 10**8, 70)
    numbers[0] -= numbers.sum()
    basis = kernel([numbers.tolist()], 70)
    assert len(basis) == 69
    assert not (basis @ numbers.astype(object)).any()
    assert abs(basis).max() < 10**3


@given(bases(), st.integers(0, 2**32 - 1))
def test_the_nearest_plane_is_near(basis: np.ndarray, seed: int) -> None:
    """Within half the lengths of the basis vectors, and in the lattice."""
    short = reduce(basis)
    target = np.random.default_rng(seed).normal(0, 1e7, size=(2, basis.shape[1]))
    found = nearest(short, target)
    bound = sum(float(row @ row) for row in short) ** 0.5 / 2
    assert np.linalg.norm((found - np.round(target)).astype(float), axis=1).max() <= bound * (1 + 1e-6) + 1e-6
    for vector in found:
        coefficients = np.linalg.solve(short.T.astype(float), vector.astype(float))
        assert (np.round(coefficients).astype(np.int64).astype(object) @ short == vector).all()


def test_too_few_bits_give_nothing() -> None:
    table = census("marital_status", "education")
    cone = perfect(table)
    basis = kernel(cone.equalities, cone.dimension)
    protocol = maximise(cone, prior_of(table), budget=60).protocol
    coarse = round_exactly(protocol, basis, 6)
    assert coarse is None or all(len(set(row)) == 1 for row in coarse.tolist())
    weights = round_exactly(protocol, basis, 30)
    assert weights is not None
    assert (weights.sum(axis=0) == 1 << 30).all()
    assert weights.min() >= 0


def test_a_lattice_beyond_reach_is_refused() -> None:
    numbers = [1, -1] * MAX_DIMENSION
    with pytest.raises(SolverError) as caught:
        kernel([numbers], len(numbers))
    assert (caught.value.code, caught.value.status) == ("solver-size", "size")
