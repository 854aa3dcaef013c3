"""Synthetic rows by two mechanisms of the usual differential privacy of a whole table, written with `mbi`.

MST: McKenna, Miklau, Sheldon, "Winning the NIST Contest", Journal of Privacy and Confidentiality 11(3), 2021.
AIM: McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism", PVLDB 15(11), 2022, Algorithm 4.
Their promise is (ε, δ) about the presence of a record, not about a named secret, and their rows are nobody's.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Marginal = tuple[str, ...]
DELTA = 1e-9
STEPS = 500
MODEL = 1.0
"""MiB that AIM's model may take."""


class NotFinishedError(Exception):
    """The time is over."""


def installed() -> bool:
    """Whether `mbi` is there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mbi  # noqa: F401
    except ImportError:
        return False
    return True


def rho(epsilon: float, delta: float = DELTA) -> float:
    """The zCDP that gives (ε, δ): ρ + 2 √(ρ ln 1/δ) = ε."""
    root = math.sqrt(-math.log(delta))
    return (math.sqrt(root**2 + epsilon) - root) ** 2


class Rows:
    """True rows by code, and what was measured of them with noise."""

    def __init__(self, codes: Mapping[str, Codes], seconds: float) -> None:
        import mbi

        self.names, self.sizes = list(codes), {name: int(one.max()) + 1 for name, one in codes.items()}
        self.codes, self.rows = codes, len(next(iter(codes.values())))
        self.domain = mbi.Domain(tuple(self.names), tuple(self.sizes.values()))
        self.draw, self.measured = np.random.default_rng(), list[Any]()
        self.until = time.monotonic() + seconds

    def table(self, key: Marginal) -> Floats:
        """The true marginal, flat."""
        shape = tuple(self.sizes[name] for name in key)
        place = np.ravel_multi_index(tuple(self.codes[name] for name in key), shape)
        return np.bincount(place, minlength=math.prod(shape)).astype(float)

    def measure(self, key: Marginal, sigma: float) -> None:
        """Add a marginal with Gaussian noise."""
        import mbi

        true = self.table(key)
        noisy = true + self.draw.normal(0, sigma, len(true))
        self.measured.append(mbi.LinearMeasurement(noisy, key, stddev=sigma))

    def choose(self, quality: Mapping[Marginal, float], epsilon: float, sensitivity: float = 1.0) -> Marginal:
        """One of the marginals, by the exponential mechanism."""
        keys, worth = list(quality), np.array(list(quality.values()))
        noise = self.draw.gumbel(size=len(keys))
        return keys[int(np.argmax(epsilon * worth / (2 * sensitivity) + noise))]

    def model(self, steps: int = STEPS, start: Any = None) -> Any:
        """The graphical model of what was measured. Raises NotFinishedError."""
        from mbi.estimation import MirrorDescent

        if time.monotonic() > self.until:
            raise NotFinishedError
        return MirrorDescent().estimate(
            self.domain, self.measured, known_total=float(self.rows), warm_start=start, iters=steps
        )

    def sample(self, model: Any) -> dict[str, Codes]:
        """As many rows as there are, from a model."""
        drawn = model.synthetic_data(rows=self.rows).to_dict()
        return {name: np.asarray(drawn[name], np.int64) for name in self.names}


def mst(codes: Mapping[str, Codes], epsilon: float, seconds: float) -> dict[str, Codes]:
    """Columns one by one, then the pairs of a tree that is chosen by how far they are from independence."""
    rows, third = Rows(codes, seconds), rho(epsilon) / 3
    for name in rows.names:
        rows.measure((name,), math.sqrt(len(rows.names) / (2 * third)))
    shares = {one.clique[0]: np.clip(one.noisy_measurement, 0, None) for one in rows.measured}
    shares = {name: share / share.sum() for name, share in shares.items()}
    far = {
        (a, b): float(np.abs(rows.table((a, b)) - rows.rows * np.outer(shares[a], shares[b]).ravel()).sum())
        for a, b in combinations(rows.names, 2)
    }
    edges = len(rows.names) - 1
    for pair in _tree(rows, far, math.sqrt(8 * third / edges)):
        rows.measure(pair, math.sqrt(edges / (2 * third)))
    return rows.sample(rows.model(4 * STEPS))


def _tree(rows: Rows, far: Mapping[Marginal, float], epsilon: float) -> list[Marginal]:
    """Pairs that join all columns, chosen one after the other."""
    part, chosen = {name: name for name in rows.names}, list[Marginal]()
    while len(chosen) < len(rows.names) - 1:
        a, b = rows.choose({pair: q for pair, q in far.items() if part[pair[0]] != part[pair[1]]}, epsilon)
        chosen.append((a, b))
        old = part[b]
        part = {name: part[a] if one == old else one for name, one in part.items()}
    return chosen


def aim(codes: Mapping[str, Codes], epsilon: float, seconds: float) -> dict[str, Codes]:
    """Round by round the marginal (of up to three columns) that the model knows worst. Raises NotFinishedError."""
    rows, left = Rows(codes, seconds), rho(epsilon)
    rounds = 16 * len(rows.names)
    sigma, chosen = math.sqrt(rounds / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left / rounds)
    for name in rows.names:
        rows.measure((name,), sigma)
        left -= 1 / (2 * sigma**2)
    workload = [key for size in (1, 2, 3) for key in combinations(rows.names, size)]
    overlap = {key: float(sum(len(set(key) & set(one)) for one in workload)) for key in workload}
    model = rows.model()
    while left > 0:
        spent = 1 / (2 * sigma**2) + chosen**2 / 8
        if left < 2 * spent:
            sigma, chosen = 1 / math.sqrt(2 * 0.9 * left), math.sqrt(8 * 0.1 * left)
            spent = left
        left = left - spent if left - spent > 1e-12 else 0.0
        key = _worst(rows, model, overlap, sigma, chosen)
        before = np.asarray(model.project(key).datavector())
        rows.measure(key, sigma)
        model = rows.model(start=model)
        moved = np.abs(np.asarray(model.project(key).datavector()) - before).sum()
        if moved <= sigma * math.sqrt(2 / math.pi) * len(before):
            sigma, chosen = sigma / 2, 2 * chosen
    return rows.sample(model)


def _worst(
    rows: Rows, model: Any, overlap: Mapping[Marginal, float], sigma: float, epsilon: float
) -> Marginal:
    """The marginal chosen in a round, of those that keep the model small. Raises NotFinishedError."""
    quality = {}
    for key in _small(rows, list(overlap)):
        if time.monotonic() > rows.until:
            raise NotFinishedError
        shown = np.asarray(model.project(key).datavector())
        noise = math.sqrt(2 / math.pi) * sigma * len(shown)
        quality[key] = overlap[key] * (float(np.abs(rows.table(key) - shown).sum()) - noise)
    return rows.choose(quality, epsilon, max(overlap[key] for key in quality))


def _small(rows: Rows, keys: Sequence[Marginal]) -> list[Marginal]:
    """Marginals with which the model stays small enough."""
    from mbi import junction_tree

    measured = [one.clique for one in rows.measured]
    size = {key: junction_tree.hypothetical_model_size(rows.domain, [*measured, key]) for key in keys}
    return [key for key in keys if len(key) == 1 or size[key] <= MODEL]
