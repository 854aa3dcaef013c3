"""distances.json: how near the columns of a wide release come to those of the table; private, made from its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Count, Share, Text

NAME = "distances.json"


@dataclass(frozen=True)
class ColumnAccuracy:
    """Rare `values` that were merged, and their `records`; shares of records that show their own value.

    `label`: with the true cell; `own`: in the release; `at_zero`: with the same totals at ε = 0.
    """

    name: Text
    values: Count
    records: Count
    label: Share
    own: Share
    at_zero: Share


@dataclass(frozen=True)
class BlockDistances:
    """A wide block. `release` and `at_zero` hold how far every two columns' expected joint distribution is off.

    A single release is further off as a rule. That is half the sum of absolute differences, in shares of records,
    numbers coded by `quantiles`; of a column by itself on the diagonal.
    """

    name: Text
    quantiles: Count
    columns: tuple[ColumnAccuracy, ...]
    release: tuple[tuple[Share, ...], ...]
    at_zero: tuple[tuple[Share, ...], ...]


@dataclass(frozen=True)
class DistancesFile:
    """distances.json."""

    format: Literal["funnel-distances/1"]
    blocks: tuple[BlockDistances, ...]
