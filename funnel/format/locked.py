"""locks/<checksum>.json: the counts that a lock was made from; private, and of no release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Alphabet, Sha256
from funnel.format.schema import Grid

FOLDER = "locks"
"""In the private folder."""


@dataclass(frozen=True)
class LockedFile:
    """Rows [s, x_1, …, x_k, count] as in counts.json, over the lock's blocks; `lock` is the checksum of its text.

    A lock over a private estimate has none: it names the estimate.
    """

    format: Literal["funnel-locked-counts/1"]
    lock: Sha256
    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: Grid
