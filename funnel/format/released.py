"""released.json: the released labels with their counts, which is what is audited; the table is an export of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from funnel.format.fields import Text
from funnel.format.schema import Grid, Pattern

NAME = "released.json"
Type = Annotated[str, Pattern(r"[A-Z]+(\([0-9]+,[0-9]+\))?")]
"""The name of a type in SQL."""


@dataclass(frozen=True)
class ReleasedFile:
    """Rows [y_1, …, y_k, count]: how many records were answered (y_1, …, y_k), codes of the blocks' outputs.

    In the order of their codes, each once, with a positive count. `columns` are those of the table, and `types`
    their types there, as SQL names them.
    """

    format: Literal["funnel-released/1"]
    columns: tuple[Text, ...]
    types: tuple[Type, ...]
    rows: Grid
