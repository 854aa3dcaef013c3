"""Small random tables of mixed columns for cells, and Adult's as the issue of a census office."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from funnel.cells.columns import SourceColumn
from funnel.cells.distance import Distances
from funnel.cells.law import Marginal


def source(name: str, values: Sequence[object], kind: str) -> SourceColumn:
    """A column from its records' values, as SQL casts them; None is missing."""
    texts = [None if one is None else str(one) for one in values]
    distinct = tuple(dict.fromkeys(texts))
    place = {text: code for code, text in enumerate(distinct)}
    ordered = kind not in {"VARCHAR", "BOOLEAN"}
    return SourceColumn(name, kind, ordered, distinct, np.array([place[one] for one in texts], np.int32))


def mixed(seed: int, rows: int = 2000) -> tuple[SourceColumn, ...]:
    """Numbers, decimals, dates, texts: skewed, with rare and missing values, depending on one another."""
    draw = np.random.default_rng(seed)
    hidden = draw.integers(0, 4, rows)
    age = 17 + draw.poisson(10 + 6 * hidden)
    wage = np.round(draw.lognormal(2 + hidden / 3, 0.7, rows), 2)
    town = np.minimum(draw.geometric(0.25, rows) + hidden, 30)
    days = np.datetime64("2019-12-20") + draw.integers(0, 500, rows) * (hidden + 1)
    trade = (town + draw.integers(0, 3, rows)) % 9
    some = draw.random((rows, 3)) < 0.03
    return (
        source("age", [None if gone else int(v) for v, gone in zip(age, some[:, 0], strict=True)], "INTEGER"),
        source("wage", [f"{v:.2f}" for v in wage], "DECIMAL(18,2)"),
        source(
            "town", [None if gone else f"t'{v}" for v, gone in zip(town, some[:, 1], strict=True)], "VARCHAR"
        ),
        source("since", [None if gone else str(v) for v, gone in zip(days, some[:, 2], strict=True)], "DATE"),
        source("trade", [f"trade {v}" for v in trade], "VARCHAR"),
    )


def table(sources: Sequence[SourceColumn]) -> list[tuple[str | None, ...]]:
    """The records of some columns, as texts."""
    return list(zip(*([one.values[code] for code in one.codes] for one in sources), strict=True))


def marginals(columns: int, triples: int, draw: np.random.Generator) -> list[Marginal]:
    """All single columns and pairs, and of the triples at most so many, drawn without repetition."""
    found = [key for size in (1, 2) for key in combinations(range(columns), size)]
    every = list(combinations(range(columns), 3))
    chosen = draw.permutation(len(every))[:triples]
    return found + [every[place] for place in sorted(chosen)]


def between(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], codings: Sequence[np.ndarray], keys: Iterable[Marginal]
) -> Distances:
    """Distances between two tables, given by the codes (n,) of their columns."""
    return Distances({key: _variation(first, second, codings, key) for key in keys})


def _variation(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], codings: Sequence[np.ndarray], key: Marginal
) -> float:
    """Half the sum of absolute differences of the shares of some columns' coded values."""
    shape = [int(codings[column].max()) + 1 for column in key]
    shares = []
    for table in (first, second):
        place = np.ravel_multi_index([codings[column][table[column]] for column in key], shape)
        shares.append(np.bincount(place, minlength=int(np.prod(shape))) / len(place))
    return float(np.abs(shares[0] - shares[1]).sum()) / 2
