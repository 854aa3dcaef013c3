"""draws.json: which values were drawn for which, as counts; private, since it says how many records had each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.schema import Rows

NAME = "draws.json"


@dataclass(frozen=True)
class DrawsFile:
    """For every block rows [input, output, count].

    An input is x, or s*a + x where the protocol reads the secret. Of a block that releases sets the output is a value
    x' and the count how many sets held it; output a counts the records themselves.
    """

    format: Literal["funnel-draws/1"]
    blocks: tuple[Rows, ...]
