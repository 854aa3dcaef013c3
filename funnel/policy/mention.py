"""A column as a policy names it."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.policy.document import Path


@dataclass(frozen=True)
class Mention:
    """A column, where it is named and as what: entity, sensitive or public."""

    column: str
    path: Path
    role: str
