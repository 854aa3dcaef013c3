"""One line of the trial's table: who attacks what, what was claimed and what is so."""

from __future__ import annotations

import math
from dataclasses import dataclass

NEAR = 1e-9


@dataclass(frozen=True)
class Row:
    """`claimed` is what run, ledger and audit say, `real` what published files tell; `held`: no less is said."""

    attacker: str
    what: str
    claimed: str
    real: str
    held: bool


@dataclass(frozen=True)
class Said:
    """What a run says of all releases: nats, None where it states no bound; the code of its refusal, if it was refused.

    A run that was refused was made again with all that it ends accepted by name. `assumes` is what the figure takes for
    granted, in words; `wrong` tells where ledger, manifest or audit say otherwise.
    """

    figure: float | None
    refused: str | None = None
    assumes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As one cell of the table."""
        figure = "no bound" if self.figure is None else f"{self.figure:.4f}"
        granted = f" if {' and '.join(self.assumes)}" if self.assumes else ""
        return f"refused ({self.refused}); {figure}" if self.refused else figure + granted


def nats(attacker: str, what: str, said: Said, real: float, broken: str | None = None) -> Row:
    """A row that holds where no finite figure is below what is told, unless it takes for granted what is `broken`."""
    honest = said.figure is None or real <= said.figure + NEAR or broken in said.assumes
    told = "certain" if math.isinf(real) else f"{real:.4f}"
    return Row(attacker, "; ".join((what, *said.wrong)), said.text, told, honest and not said.wrong)
