"""Small random tables of mixed columns for cells, and Adult's as the issue of a census office."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.cells.columns import Source


def source(name: str, values: Sequence[object], kind: str) -> Source:
    """A column from its records' values, as SQL casts them; None is missing."""
    texts = [None if one is None else str(one) for one in values]
    distinct = tuple(dict.fromkeys(texts))
    place = {text: code for code, text in enumerate(distinct)}
    ordered = kind not in {"VARCHAR", "BOOLEAN"}
    return Source(name, kind, ordered, distinct, np.array([place[one] for one in texts], np.int32))


def mixed(seed: int, rows: int = 2000) -> tuple[Source, ...]:
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


def table(sources: Sequence[Source]) -> list[tuple[str | None, ...]]:
    """The records of some columns, as texts."""
    return list(zip(*([one.values[code] for code in one.codes] for one in sources), strict=True))
