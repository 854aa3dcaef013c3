"""How far the whole table moves beliefs about one of its rows, for who knows the exact counts: a private figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from funnel.data import Joint
from funnel.data.convert import joint_of
from funnel.data.joint import FloatArray
from funnel.format.counts import CountsFile
from funnel.format.released import ReleasedFile
from funnel.measure.figures import round_to, round_up
from funnel.measure.observer import CHANCE, Observed, observed
from funnel.report.facts import Facts
from funnel.report.words import nats_in

_ROUNDED = 1e-8
"""Nats by which moves are widened, and some more."""
TENTH = 1.1
"""How many times the promise is told of by the run itself."""


def observer(t: Facts, released: ReleasedFile, counts: CountsFile, notion: Mapping[str, str]) -> dict[str, Any]:
    """Nats by which beliefs rise and fall and odds move, at most, None where that has no bound; and as estimated.

    `allowed` is what the notion promises of a row's own value, None where it promises nothing of single rows; `above`
    are the rows that may be moved further, `beyond` says whether one may by more than a tenth.
    """
    rows = np.array(released.rows, np.int64)
    found = observed(records(counts), t.protocols, rows[:, :-1], rows[:, -1])
    allowed, guess = _allowed(notion), found.least
    return {
        "how": found.how,
        "chance": CHANCE if found.how == "bound" else None,
        **{name: _up(part) for name, part in _moves(found).items()},
        "estimate": None if guess is None else {name: _near(part) for name, part in _moves(guess).items()},
        "allowed": {name: bound if math.isfinite(bound) else None for name, bound in allowed.items()},
        "rows": int(found.rows.sum()),
        "above": above(found, allowed),
        "above_estimated": None if guess is None else above(guess, allowed),
        "beyond": above(found, {name: TENTH * bound for name, bound in allowed.items()}) > 0,
    }


def records(counts: CountsFile) -> Joint:
    """The records themselves: of a private estimate, what the noise was added to, or what they are under its lock."""
    if counts.private is None:
        return joint_of(counts.secret, counts.blocks, counts.cells)
    cells = np.array(counts.private.cells, np.int64)
    number = cells[:, -3] if counts.private.records is None else np.array(counts.private.records, np.int64)
    kept = np.column_stack([cells[:, :-3], number])[number > 0]
    return joint_of(counts.secret, counts.blocks, kept)


def line(told: Mapping[str, Any]) -> str:
    """The figure for a terminal."""
    guess = told["estimate"]
    about = "" if guess is None else f"; as estimated, up {_by(guess['rises'])} and down {_by(guess['falls'])}"
    return (
        f"who knows the exact counts and sees all rows is moved up {_most(told['rises'])} and down "
        f"{_most(told['falls'])} ({_sure(told)}){about}"
    )


def warning(told: Mapping[str, Any]) -> str | None:
    """What the one who runs it should know where the promise may be passed by more than a tenth."""
    if not told["beyond"]:
        return None
    about = "" if told["estimate"] is None else f", {told['above_estimated']:,} as estimated"
    return (
        f"the whole table may tell more of a row than the promise lets its own value tell, by more than a tenth: "
        f"{told['above']:,} of {told['rows']:,} rows may be concerned{about}"
    )


def _moves(found: Observed) -> dict[str, FloatArray]:
    return {"rises": found.rises(), "falls": found.falls(), "odds": found.odds()}


def _allowed(notion: Mapping[str, str]) -> dict[str, float]:
    """Nats that the promise allows, by what it is about."""
    rises, falls = nats_in(notion["rises"]), nats_in(notion["falls"])
    if notion["kind"] == "average":
        return {}
    return {"odds": rises} if notion["kind"] == "odds" else {"rises": rises, "falls": falls}


def above(found: Observed, allowed: Mapping[str, float]) -> int:
    """Rows that may be moved further than is allowed, and not only by what rounding adds."""
    moves = _moves(found)
    over = [moves[name] > bound + (min(1e-6, 1e-3 * bound) or _ROUNDED) for name, bound in allowed.items()]
    return int(found.rows[np.any(over, axis=0)].sum()) if over else 0


def _up(nats: FloatArray) -> float | None:
    worst = float(nats.max())
    return max(round_up(worst + 1e-9), 0.0) if math.isfinite(worst) else None


def _near(nats: FloatArray) -> float | None:
    worst = float(nats.max())
    return round_to(worst) + 0.0 if math.isfinite(worst) else None


def _most(nats: float | None) -> str:
    return "without a bound" if nats is None else f"by at most {nats:.4f} nats"


def _by(nats: float | None) -> str:
    return "without a bound" if nats is None else f"by {nats:.4f}"


def _sure(told: Mapping[str, Any]) -> str:
    return {
        "exact": "exact",
        "bound": f"proven but for a chance of {CHANCE:.0e} over the draws",
        "ceiling": "what the true values themselves tell",
    }[told["how"]]
