"""The bound of protocols that are robust by way of box sets, gone through again as far as that is possible.

With groups s of values, a row v belongs to such a protocol where M(v_s) <= e^ε m(v_s') for all s ≠ s', M and m the
largest and the least mean of v over {R : L <= R <= U, Σ R = 1}. Scaled to the least m = 1, of group s, and with ρ the
least m of all others, a row has M <= e^ε ρ in s, and m >= ρ and M <= e^ε elsewhere. So if D_s are bounds of what
parts are worth at prices λ + κ p, and e^(κ-τ-1) + Σ D_s <= 0, no row is worth more than λ·v by more than τ.

The D_s are checked where groups are small, by all vertices: at one, a coordinate is x, y or 0. Levels move with the
limits along a line, and worth is convex, so the ends decide.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.audit.evidence import Evidence
from funnel.audit.fields import Field
from funnel.audit.findings import broken, counted
from funnel.audit.manifest import Manifest
from funnel.audit.uncertainty import Uncertainty, around

FloatArray = npt.NDArray[np.float64]
FILE = "solution.json"
_LARGEST = 1e9
_MARGIN = 1e-9
"""Nats, and shares of ε: by how much floats may miss."""
_SMALL = 6
"""Values of a group up to which its vertices are listed."""
_MOST = 4_000
"""κ or ρ at most."""
_MOST_WORK = 400_000_000
"""Vertices times κ beyond which nobody waits."""


@dataclass(frozen=True, eq=False)
class OverSets:
    """No row is worth more than λ·v + `peak`, by lists for intervals of ρ and values of κ."""

    duals: FloatArray
    peak: float
    large: int
    rhos: FloatArray
    kappas: FloatArray

    @property
    def bound(self) -> float:
        """Σ λ + peak."""
        return float(self.duals.sum()) + self.peak


def read_over_sets(field: Field, sizes: dict[str, int]) -> OverSets:
    """As it stands in solution.json. Raises AuditFailure."""
    field.keys("duals", "peak", "large", "rhos", "kappas")
    duals, peak = _numbers(field["duals"], sizes["public"]), _number(field["peak"])
    large = field["large"].whole(high=sizes["secret"] - 1)
    return OverSets(duals, peak, large, _numbers(field["rhos"]), _numbers(field["kappas"]))


def _numbers(field: Field, size: int | None = None) -> FloatArray:
    items = field.items()
    if len(items) != size if size is not None else not 0 < len(items) <= _MOST:
        raise field.wrong(f"{size} numbers" if size is not None else f"up to {_MOST} numbers")
    return np.array([_number(item) for item in items])


def _number(field: Field) -> float:
    if type(field.value) not in (int, float) or not -_LARGEST <= field.value <= _LARGEST:
        raise field.wrong("a number")
    return float(field.value)


def over_sets(told: OverSets, evidence: Evidence, manifest: Manifest) -> str:
    """What holds of the bound, and what was not looked at. Raises AuditFailure where it does not hold."""
    words = f"over box sets at most {told.bound:.6f} nats"
    known = around(evidence, manifest)
    if known.order != 2 or max(len(one.places) for one in known.seen) > _SMALL:
        return f"{words}: not checked, for groups are too large, or the order is not 2"
    counts = evidence.dense().sum(axis=0)
    if sum(len(one.places) for one in known.seen) != len(counts) or not counts.all():
        return f"{words}: not checked, for secret values share released ones"
    number = _Lists(told, known, counts / counts.sum(), math.exp(manifest.epsilon)).check()
    return f"{words}: {counted(number, 'vertex', 'vertices')} listed again"


@dataclass(frozen=True, eq=False)
class _Paths:
    """Vertices (k, n) of one group from where they begin to exist to where they end, at shares (k,) of the way."""

    at: tuple[FloatArray, FloatArray]
    z: tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class _Lists:
    """All vertices of all groups, for every interval of ρ."""

    told: OverSets
    known: Uncertainty
    prior: FloatArray
    ratio: float

    def check(self) -> int:
        """How many vertices there are; every one of the large group's has a κ that proves the peak."""
        rhos, number = self.told.rhos, 0
        if rhos[0] > 1 or rhos[-1] < self.ratio * (1 - _MARGIN) or (np.diff(rhos) < 0).any():
            raise broken(
                FILE,
                "intervals of the bound over box sets leave modes out",
                expected=self.ratio,
                found=rhos[-1],
            )
        sets = [_ends(one.chances, 1 / float(one.shrink)) for one in self.known.seen]
        for pair in itertools.pairwise(rhos.tolist()):
            ends, top = np.array(pair), np.full(2, self.ratio)
            roles = [
                [_paths(low, high, *limits) for low, high in sets]
                for limits in ((ends, top), (np.ones(2), self.ratio * ends))
            ]
            number += sum(len(one.z[0]) for role in roles for one in role)
            self._within(roles)
        return number

    @np.errstate(all="ignore")
    def _within(self, roles: list[list[_Paths]]) -> None:
        """No mode of one interval is worth more than the peak. Raises AuditFailure."""
        large, kappas = self.told.large, self.told.kappas
        worth = [[self._worth(s, one) for s, one in enumerate(role)] for role in roles]
        lines = np.array(
            [
                [_line(one, value) for one, value in zip(*pair, strict=True)]
                for pair in zip(roles, worth, strict=True)
            ]
        )
        for special in range(len(roles[0])):
            role = int(special == large)
            rest = lines[0].sum(axis=0) - lines[0][large]
            if special != large:
                rest = rest - lines[0][special] + lines[1][special]
            own, total = roles[role][large], []
            for at, value in zip(own.at, worth[role][large], strict=True):
                total.append(value + (1 - at)[:, None] * rest[0] + at[:, None] * rest[1])
            most = np.maximum(*total)
            tau = np.where(most < 0, kappas - 1 - np.log(-most), np.inf).min(axis=1).max()
            if not tau <= self.told.peak + _MARGIN:
                raise broken(
                    FILE,
                    "some row over box sets is worth more than the certificate allows",
                    expected=f"at most {self.told.peak:.9g} nats",
                    found=f"{tau:.9g} nats",
                )

    def _worth(self, group: int, paths: _Paths) -> list[FloatArray]:
        """Σ p z ln z - (λ + κ p)·z, at both ends, (k, K)."""
        places = self.known.seen[group].places
        prior, duals = self.prior[places], self.told.duals[places]
        found = []
        for z in paths.z:
            entropy = z * np.log(np.where(z > 0, z, 1.0))
            found.append((entropy @ prior - z @ duals)[:, None] - (z @ prior)[:, None] * self.told.kappas)
        return found


def _line(paths: _Paths, worth: list[FloatArray]) -> FloatArray:
    """A linear function over all vertices, by its two ends (2, K)."""
    line = np.array(
        [value[at == side].max(axis=0) for side, (at, value) in enumerate(zip(paths.at, worth, strict=True))]
    )
    over = [
        (value - (1 - at)[:, None] * line[0] - at[:, None] * line[1]).max(axis=0)
        for at, value in zip(paths.at, worth, strict=True)
    ]
    return np.asarray(line + np.maximum(np.maximum(*over), 0.0))


def _ends(chances: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
    """L and U of every P(x|s) ([RLDP] eq. (29)): the roots of e^B R² - (e^B + 2ρ - 1) R + ρ² = 0."""
    middle = power + 2 * chances - 1
    root = np.sqrt(np.maximum(middle**2 - 4 * power * chances**2, 0.0))
    upper = np.minimum((middle + root) / (2 * power), 1.0)
    return chances**2 / (power * np.maximum(upper, chances)), upper


@np.errstate(all="ignore")
def _paths(lower: FloatArray, upper: FloatArray, lows: FloatArray, highs: FloatArray) -> _Paths:
    """The vertices of {z >= 0 : m(z) >= low, M(z) <= high} as the limits go from end to end."""
    labels = np.array(list(itertools.product((0, 1, 2), repeat=len(lower))))
    labels = labels[(labels == 1).any(axis=1)]
    at_x, at_y = (labels == 1) * 1.0, (labels == 2) * 1.0
    spare, width = max(1.0 - lower.sum(), 0.0), upper - lower
    wide_x, wide_y, wide_0 = at_x @ width, at_y @ width, (1 - at_x - at_y) @ width
    top_x, bottom_0 = np.minimum(wide_x, spare), np.minimum(wide_0, spare)
    top_y, bottom_y = np.minimum(wide_y, spare - top_x), np.minimum(wide_y, spare - bottom_0)
    bottom_x = np.minimum(wide_x, spare - bottom_0 - bottom_y)
    most = np.array([at_x @ lower + top_x, at_y @ lower + top_y])
    least = np.array([at_x @ lower + bottom_x, at_y @ lower + bottom_y])
    cross, two = most[0] * least[1] - most[1] * least[0], at_y.any(axis=1)
    high, low = highs[:, None], lows[:, None]
    x, y = (high * least[1] - low * most[1]) / cross, (most[0] * low - least[0] * high) / cross
    up, down = high / most[0], low / least[0]
    begin, end = np.zeros(len(labels)), np.ones(len(labels))
    for first, last in (np.where(two, x - y, up - down), np.where(two, y, 1.0)):
        crossing = first / (first - last)
        begin = np.where(first < 0, np.where(last >= 0, np.maximum(begin, crossing), 2.0), begin)
        end = np.where(last < 0, np.where(first >= 0, np.minimum(end, crossing), -1.0), end)
    found: list[tuple[FloatArray, ...]] = []
    for level, ok in ((np.where(two, x, up), begin <= end), (down, (begin <= end) & ~two)):
        kept = np.flatnonzero(ok & np.isfinite(level).all(axis=0) & (np.isfinite(y).all(axis=0) | ~two))
        levels = [
            tuple(
                one[0, kept] + at[kept] * (one[1, kept] - one[0, kept])
                for one in (level, np.where(two, y, 0.0))
            )
            for at in (begin, end)
        ]
        z = [
            np.maximum(u, 0)[:, None] * at_x[kept] + np.maximum(v, 0)[:, None] * at_y[kept] for u, v in levels
        ]
        found.append((begin[kept], end[kept], *z))
    parts = [np.concatenate(one) for one in zip(*found, strict=True)]
    return _Paths((parts[0], parts[1]), (parts[2], parts[3]))
