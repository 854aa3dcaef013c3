"""The Gaussian privacy funnel ([PF] section V) in the form a table can use.

In whitened directions T = V (X - mean) of [PF] Theorem 2 the components are independent, given S too, with variance 1
and λ_i. Releasing T_i plus noise at the rate r_i = I(T_i; Y_i) leaves the error D_i = e^(-2 r_i) and leaks
-½ ln(λ_i + (1-λ_i) D_i) nats of S. Averages of a Gaussian model: no guarantee for one record, and none at all
where the data are not Gaussian, until the finished channel is measured.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray

MAX_OUTPUTS = 4096
"""Grid points that a channel may have."""
_SINGULAR = 1e-9
"""Least eigenvalue of a correlation matrix under which a column counts as a combination of the others."""
_FREE = 1e-12
"""Distance of λ from 1 that is rounding: such a direction leaks less than 10^-12 nats."""
_NODES = 6
"""Points inside a grid cell at which the next column's distribution is taken."""
_CELLS = 5_000_000
"""Numbers held at a time."""
_NOTHING = 1e-15
"""Probability that is never drawn."""
_JITTER = 1e-12
"""Variance, as a share, that stands for the noise of directions that have none."""


@dataclass(frozen=True, eq=False)
class Directions:
    """`vectors` V (k, k), rows the left eigenvectors of Σ_{x|s} Σ_x⁻¹ with V Σ_x Vᵀ = 1, and their λ (k,), ascending.

    λ is the share of a direction's variance that S leaves open: 1 is uncorrelated with S, 0 is told by S.
    """

    vectors: FloatArray
    kept: FloatArray

    @property
    def back(self) -> FloatArray:
        """V⁻¹: whitened coordinates to original units."""
        return np.asarray(np.linalg.inv(self.vectors))


def covariance(x: FloatArray, counts: npt.ArrayLike) -> FloatArray:
    """Σ_x (k, k) of values (m, k) that occur `counts` (m,) times; divided by n, as for a distribution."""
    weights = np.asarray(counts, float) / np.sum(counts)
    centred = x - weights @ x
    return np.asarray((centred * weights[:, None]).T @ centred)


def given_numbers(x: FloatArray, s: FloatArray, counts: npt.ArrayLike) -> FloatArray:
    """Σ_{x|s} = Σ_x - Σ_xs Σ_s⁻¹ Σ_sx (k, k) for a numeric secret (m, j); redundant columns of S do no harm."""
    k = x.shape[1]
    both = covariance(np.hstack([x, s]), counts)
    explained = both[:k, k:] @ np.linalg.pinv(both[k:, k:], hermitian=True) @ both[k:, :k]
    return np.asarray(both[:k, :k] - explained)


def given_groups(x: FloatArray, groups: npt.NDArray[np.integer], counts: npt.ArrayLike) -> FloatArray:
    """Σ_{x|s} (k, k) for a secret of categories (m,): the covariance within groups, pooled over them.

    That is the numeric formula with one indicator column per category: how the means differ is what S tells, and
    differences in spread between the groups are averaged away.
    """
    indicators = (groups[:, None] == np.unique(groups)).astype(float)
    return given_numbers(x, indicators, counts)


def directions(public: FloatArray, given: FloatArray) -> Directions:
    """The directions of Σ_x and Σ_{x|s} (k, k). Raises ValueError where Σ_x is singular or not a covariance."""
    if not (np.isfinite(public).all() and (np.diag(public) > 0).all()):
        raise ValueError("a public column is constant, so there is nothing to release of it")
    scale = np.sqrt(np.diag(public))
    correlation = public / np.outer(scale, scale)
    if np.linalg.eigvalsh(correlation)[0] < _SINGULAR:
        raise ValueError("a public column is a linear combination of the others; release one of them less")
    whiten = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
    kept, turn = np.linalg.eigh(whiten @ ((given + given.T) / 2) @ whiten.T)
    return Directions(np.asarray(turn.T @ whiten), np.clip(kept, 0.0, 1.0))


def leak_at(error: npt.ArrayLike, kept: npt.ArrayLike) -> FloatArray:
    """I(S;Y_i) = -½ ln(λ + (1-λ) D) in nats at the error D, from 0 to 1 (mathematics, section 6).

    At the rate r = I(X;Y_i), where D = e^(-2r), it is r - ½ ln(1 - λ + λ e^(2r)): increasing and concave in r, with
    the limit -½ ln λ. Infinite where λ and D are zero.
    """
    share = np.asarray(kept, float)
    with np.errstate(divide="ignore"):
        told = -0.5 * np.log(share + (1 - share) * np.asarray(error, float))
    return np.asarray(np.maximum(told, 0.0))


def prices(found: Directions, weights: npt.ArrayLike) -> FloatArray:
    """c_i (k,) with Σ_j weight_j E(X_j - E[X_j|Y])² = Σ_i c_i D_i, for weights of the columns (k,)."""
    return np.asarray(np.asarray(weights, float) @ found.back**2)


def resolution(found: Directions, precision: npt.ArrayLike) -> FloatArray:
    """d_min (k,): the error that rounding columns to multiples of `precision` (k,) makes anyway, in each direction."""
    return np.asarray(np.minimum(found.vectors**2 @ (np.asarray(precision, float) ** 2 / 12), 1.0))


def allocate(kept: FloatArray, price: FloatArray, budget: float, least: npt.ArrayLike) -> FloatArray:
    """Errors D (k,) in [d_min, 1] that minimise Σ c_i D_i with Σ leak_at(D_i, λ_i) <= budget nats.

    Convex, so its stationary point is its minimum: D_i = clip(ν/(2c_i) - λ_i/(1-λ_i), d_min, 1) with the ν at which
    the budget is used up, found by bisection; d_min everywhere where the budget allows that. A direction that tells
    nothing (λ = 1) gets d_min. `least` is d_min, one number or (k,), positive; prices are positive.
    """
    floor = np.broadcast_to(np.asarray(least, float), kept.shape)
    hidden = 1 - kept > _FREE
    open_share = np.where(hidden, 1 - kept, 1.0)

    def errors(level: float) -> FloatArray:
        wanted = np.clip(level / (2 * price) - kept / open_share, floor, 1.0)
        return np.where(hidden, wanted, floor)

    def fits(level: float) -> bool:
        return float(leak_at(errors(level), np.where(hidden, kept, 1.0)).sum()) <= budget

    low, high = 0.0, float((2 * price / open_share).max()) * (1 + 1e-9)
    if fits(low):
        return errors(low)
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if fits(middle) else (middle, high)
    return errors(high)


def channel(
    x: FloatArray, mean: FloatArray, found: Directions, errors: FloatArray, precision: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Q (b, a) and its outputs (b, k): the estimate E[X|Y] of each x (a, k), rounded to multiples of `precision` (k,).

    With T_i plus noise of variance D/(1-D), the estimate is mean + V⁻¹((1-D)(T + noise)): it tells all that Y does,
    stays near the data where noise alone would not, errs least, and exists where a direction is not released at all
    (D = 1). It is drawn towards the mean, by 1-D in each direction: divide by that for an unbiased value.
    Outputs reach from the least to the largest value of each column, and what falls beyond goes to the end. One
    column is exact; of several, each is drawn given where in their cells those before it are, to _NODES points.
    Raises ValueError where that takes more than MAX_OUTPUTS outputs.
    """
    step = np.asarray(precision, float)
    shrink = found.back * (1 - errors) @ found.vectors
    centre = mean + (x - mean) @ shrink.T
    noise = found.back * (errors * (1 - errors)) @ found.back.T
    grids = _grids(x, step)
    # The finest column first: inside one of its cells the next one moves by little of its own cell.
    spread = np.sqrt(np.diag(noise)) + _JITTER * np.ptp(x, axis=0)
    order = np.argsort(step / spread, kind="stable")
    ordered, root = [grids[j] for j in order], _root(noise[np.ix_(order, order)])
    at_once = max(_CELLS // math.prod(len(grid) * _NODES for grid in grids), 1)
    parts = (centre[start : start + at_once, order] for start in range(0, len(x), at_once))
    matrix = np.concatenate([_drawn(part, root, ordered) for part in parts])
    matrix = np.moveaxis(matrix, 1 + np.arange(len(order)), 1 + order).reshape(len(x), -1).T
    seen = (matrix > _NOTHING).any(axis=1)
    points = np.array(list(itertools.product(*grids)))[seen]
    return matrix[seen] / matrix[seen].sum(axis=0), points


def _grids(x: FloatArray, step: FloatArray) -> list[FloatArray]:
    """Multiples of each column's step from its least to its largest value."""
    first, last = np.floor(x.min(axis=0) / step + 0.5), np.floor(x.max(axis=0) / step + 0.5)
    if float(np.prod(last - first + 1)) > MAX_OUTPUTS:
        sizes = " x ".join(f"{size:,.0f}" for size in last - first + 1)
        raise ValueError(
            f"at this precision there are {sizes} outputs, of {MAX_OUTPUTS:,} at most; round more"
        )
    return [np.arange(lo, hi + 1) * width for lo, hi, width in zip(first, last, step, strict=True)]


def _root(noise: FloatArray) -> FloatArray:
    """L with L Lᵀ = noise up to a trace of more, so that a direction without noise is no exception."""
    trace = _JITTER * max(float(np.diag(noise).max()), _JITTER)
    return np.asarray(np.linalg.cholesky(noise + trace * np.eye(len(noise))))


def _drawn(centre: FloatArray, root: FloatArray, grids: list[FloatArray]) -> FloatArray:
    """P(cell_1, …, cell_k) (a, b_1, …, b_k) of centre + root z, column by column.

    `inside` are z so far, (a, cells…, nodes, columns): one point for each node of each cell.
    """
    from scipy.special import ndtr, ndtri

    chance, inside = np.ones((len(centre), 1)), np.zeros((len(centre), 1, 0))
    shape = [len(centre)]
    for column, grid in enumerate(grids):
        middle = centre[:, [column]] + inside @ root[column, :column]
        edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
        below = ndtr((edges - middle[..., None]) / root[column, column])
        widths = np.diff(below, axis=-1)
        here = chance[..., None] * widths
        shape.append(len(grid))
        if column == len(grids) - 1:
            chance = here[..., None]
            break
        quantile = below[..., :-1, None] + widths[..., None] * (np.arange(_NODES) + 0.5) / _NODES
        z = np.clip(ndtri(quantile), -38.0, 38.0)
        inside = _beside(inside, z).reshape(len(centre), -1, column + 1)
        chance = np.repeat(here[..., None] / _NODES, _NODES, axis=-1).reshape(len(centre), -1)
    nodes = [_NODES] * (len(grids) - 1)
    split = [len(centre), *(n for pair in zip(shape[1:-1], nodes, strict=True) for n in pair), shape[-1]]
    return np.asarray(chance.reshape(split).sum(axis=tuple(range(2, 2 * len(grids) - 1, 2))))


def _beside(inside: FloatArray, z: FloatArray) -> FloatArray:
    """Earlier coordinates (a, m, j) repeated beside new ones (a, m, cells, nodes): (a, m, cells, nodes, j+1)."""
    earlier = np.broadcast_to(inside[:, :, None, None, :], (*z.shape, inside.shape[-1]))
    return np.concatenate([earlier, z[..., None]], axis=-1)
