"""What a release of many columns is judged by, whoever made it: distances, accuracy, what is learned from its rows.

Columns are coded alike for all: numbers by at most 20 quantiles of the true rows, other values by themselves; or all of
them by their own values. What is not among the true values has a code of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Table = Mapping[str, npt.NDArray[Any]]
TOP = (0.01, 0.02, 0.05, 0.10)
QUANTILES = 20
MISSING = "pip install 'funnel-sanitiser[benchmark]' (scikit-learn, mbi) shows what is missing here"


@dataclass(frozen=True, eq=False)
class Coder:
    """One column of the true rows (n,), and how any value of it is coded."""

    values: npt.NDArray[Any]

    @cached_property
    def _known(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        return np.unique(self.values, return_counts=True)

    @property
    def ordered(self) -> bool:
        """Whether quantiles mean anything."""
        return self.values.dtype.kind in "if"

    def own(self, values: npt.NDArray[Any]) -> Codes:
        """The place of every value among the true ones, behind them where it is not one."""
        known = self._known[0]
        place = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[place] == values, place, len(known))

    def coarse(self, values: npt.NDArray[Any]) -> Codes:
        """The quantile of every number; other values as they are."""
        if not self.ordered:
            return self.own(values)
        known, counts = self._known
        quantile = (np.cumsum(counts) - counts) * QUANTILES // counts.sum()
        place = np.clip(np.searchsorted(known, values, side="right") - 1, 0, None)
        return np.asarray(np.unique(quantile, return_inverse=True)[1][place], np.int64)


@dataclass(frozen=True)
class Distances:
    """Total variation: the mean over columns, the mean and the largest over pairs, the mean over triples."""

    columns: float
    pairs: float
    largest: float
    triples: float


def distances(true: Sequence[Codes], other: Sequence[Codes]) -> Distances:
    """Between two tables of the same columns, all of whose marginals are looked at."""
    each = {
        size: [_variation(true, other, key) for key in combinations(range(len(true)), size)] for size in (1, 2, 3)
    }
    return Distances(
        columns=float(np.mean(each[1])),
        pairs=float(np.mean(each[2])),
        largest=max(each[2]),
        triples=float(np.mean(each[3])),
    )


def _variation(true: Sequence[Codes], other: Sequence[Codes], key: Sequence[int]) -> float:
    """Half the sum of what the shares of some columns' values differ by."""
    sizes = [int(max(true[column].max(), other[column].max())) + 1 for column in key]
    shares = []
    for table in (true, other):
        place = np.ravel_multi_index([table[column] for column in key], sizes)
        shares.append(np.bincount(place, minlength=int(np.prod(sizes))) / len(place))
    return float(np.abs(shares[0] - shares[1]).sum()) / 2


def accuracies(true: Table, rows: Table, *, named: bool) -> dict[str, float]:
    """How often a row shows the person's own value; where rows belong to nobody, one drawn for any person does."""
    found = {}
    for name, values in rows.items():
        coder = Coder(true[name])
        own, shown = coder.own(true[name]), coder.own(values)
        size = int(max(own.max(), shown.max())) + 1
        shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (own, shown)]
        found[name] = float((own == shown).mean()) if named else float(shares[0] @ shares[1])
    return found


def learner() -> Any | None:
    """A gradient-boosted classifier of scikit-learn; None where that is not installed."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        return None
    return HistGradientBoostingClassifier(max_iter=60, random_state=1)


def learned(secret: npt.NDArray[Any], value: str, columns: Sequence[Codes]) -> list[float] | None:
    """Of the 1, 2, 5, 10 % of people whom the classifier believes most to have the value, the share who have it.

    It has learned from one half of the people, whose secret it was told, and is tried on the other.
    """
    model = learner()
    if model is None:
        return None
    outside, inside = np.array_split(np.random.default_rng(1).permutation(len(secret)), 2)
    rows, has = np.column_stack(columns), secret == value
    belief = model.fit(rows[outside], has[outside]).predict_proba(rows[inside])[:, 1]
    order = np.argsort(-belief, kind="stable")
    return [float(has[inside][order[: max(1, round(part * len(order)))]].mean()) for part in TOP]


def ceiling(prior: float, epsilon: float) -> float:
    """The most that a belief may become under LIP."""
    return float(min(np.exp(epsilon) * prior, 1 - np.exp(-epsilon) * (1 - prior)))


def predicts(true: Mapping[str, Codes], rows: Mapping[str, Codes], target: str) -> float | None:
    """Accuracy, on one third of the true rows, of a column predicted from the others; learned on other released rows.

    Rows that belong to nobody are all of them other rows.
    """
    model = learner()
    if model is None or target not in rows:
        return None
    others = [name for name in rows if name != target]
    part = np.random.default_rng(2).permutation(len(true[target]))
    tried, trained = part[: len(part) // 3], part[len(part) // 3 :]
    model.fit(np.column_stack([rows[name][trained] for name in others]), rows[target][trained])
    told = model.predict(np.column_stack([true[name][tried] for name in others]))
    return float((told == true[target][tried]).mean())
