"""How far a long step has come, for whoever waits for it."""

from __future__ import annotations

from typing import Protocol


class Report(Protocol):
    """Told how far a stage has come: `done` of `total` (rows, or unknown)."""

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Report."""


def silent(stage: str, done: int = 0, total: int | None = None) -> None:
    """Report to nobody."""
