"""released.json: the released labels with their counts, which is what is audited; the table is an export of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from funnel.format.fields import Text
from funnel.format.schema import Matches, Rows

NAME = "released.json"
COUNT = "count"
"""The column of a table of distinct rows that says how many records each stands for."""
_COUNT_TYPE = "BIGINT"
Type = Annotated[str, Matches(r"[A-Z]+(\([0-9]+,[0-9]+\))?")]
"""The name of a type in SQL."""


@dataclass(frozen=True)
class ReleasedFile:
    """Rows [y_1, …, y_k, count]: how many records were answered (y_1, …, y_k), codes of the blocks' outputs.

    `columns` are those of the table, and `types` their types there, as SQL names them; a table of distinct rows has the
    counts behind them, as COUNT.
    """

    format: Literal["funnel-released/1"]
    columns: tuple[Text, ...]
    types: tuple[Type, ...]
    rows: Rows


def with_count(
    columns: Sequence[str], types: Sequence[str], *, counted: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and types of the table's columns, with the one that counts where there is one."""
    more = [(COUNT, _COUNT_TYPE)] if counted else []
    return (*columns, *(name for name, _ in more)), (*types, *(kind for _, kind in more))
