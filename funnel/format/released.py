"""released.json: the released labels with their counts, which is what is audited; the table is an export of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.schema import Grid

NAME = "released.json"
FORMAT = "funnel-released/1"


@dataclass(frozen=True)
class ReleasedFile:
    """Rows [y_1, …, y_k, count]: how many records were answered (y_1, …, y_k), codes of the blocks' outputs.

    In the order of their codes, each once, with a positive count. `columns` are those of the table, and `types`
    their types there, as SQL names them.
    """

    format: Literal["funnel-released/1"]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Grid
