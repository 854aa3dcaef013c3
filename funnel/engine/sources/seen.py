"""How coarsely statements see a column: where they see two values alike, a database may count these as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal


@dataclass(frozen=True)
class Between:
    """Only between which edges a number or a date lies; the edges increase."""

    edges: tuple[float, ...] | tuple[date, ...]


@dataclass(frozen=True)
class Nearest:
    """Only which multiple of a step a number is nearest to: floor(value / step + 1/2) in double precision."""

    step: float


@dataclass(frozen=True)
class Within:
    """Only in which day, week, month, quarter or year a date lies."""

    part: Literal["day", "week", "month", "quarter", "year"]


@dataclass(frozen=True)
class Compared:
    """Only how it compares with constants, texts of these types of DuckDB; without `order` only which it equals."""

    constants: tuple[tuple[str, str], ...]
    order: bool


Seen = Between | Nearest | Within | Compared
Columns = Mapping[str, Seen | None]
"""By the name of a column; None: every value is seen."""
