"""The tables that a count is read from."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.engine import Engine
from funnel.plan.stages import Count
from funnel.text import counted


@dataclass(frozen=True)
class Merged:
    """How many values of a column became another one, and of how many records together.

    Not all of these need be rare: where rare ones are too few, the next go with them.
    """

    column: str
    values: int
    records: int

    def words(self) -> str:
        """For the one who runs it."""
        whole = f"{counted(self.values, 'value')} of {counted(self.records, 'record')}"
        return f"{self.column}: {whole}{' together' * (self.values > 1)} became another one"


def tabulate(engine: Engine, stage: Count) -> tuple[Merged, ...]:
    """Run a stage's statements up to its table `cells`; says what became of rare values. Raises SourceError."""
    engine.prepare(stage.statements)
    found: tuple[Merged, ...] = ()
    if stage.rare:
        from funnel.plan.merging import merge

        found = tuple(Merged(one.column, *merge(engine, one, stage.minimum)) for one in stage.rare)
    engine.prepare((stage.labelled,))
    return found
