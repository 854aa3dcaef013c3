"""What the published files tell of each block: its protocol, what was released, and what that says of the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funnel.data import AnyProtocol, Label
from funnel.data.joint import FloatArray, IntArray
from funnel.format.released import ReleasedFile
from funnel.measure.recovery import Recovered, recovered
from funnel.report import figures
from funnel.report.facts import Facts, kept, names
from funnel.report.tongue import figure
from funnel.report.truth import as_released, estimated
from funnel.text import label

MATRIX_CELLS = 4096
"""Largest protocol, in cells, that the report spells out; protocol.json always holds it."""
LARGE = 1_000_000
"""Cells of a protocol above which the report does not work out true totals; `funnel estimate` does."""
PICTURES = 3
"""Most secret values whose own chances are shown, where a draw reads the secret."""
RARE = 0.1
"""A value that is released as itself with a smaller chance can be estimated only with a wide error."""
NAMES = 6
"""Most values named in a sentence."""


def block(t: Facts, index: int, released: ReleasedFile) -> dict[str, Any]:
    """What the report says of one block."""
    protocol = t.protocols[index]
    seen, found = _recovered(protocol, np.array(released.rows, np.int64)[:, [index, -1]])
    totals = _told(protocol.inputs.values, protocol.told.values, seen.tolist(), found)
    return {
        "name": t.names[index],
        "columns": list(protocol.inputs.columns),
        "values": len(protocol.inputs),
        "outputs": len(protocol.outputs),
        "bits": protocol.bits,
        "reads_secret": protocol.reads_secret,
        "as_is": t.as_is[index],
        "sets": protocol.coins is not None,
        "rank": totals.pop("rank"),
        "seldom": [] if t.as_is[index] or t.certain else _seldom(t, protocol),
        "protocol": _pictures(protocol),
        "totals": totals,
        "truth": as_released(protocol, seen) if t.totals_stay else estimated(protocol, found),
    }


def _pictures(protocol: AnyProtocol) -> dict[str, Any] | None:
    """Labels and Q(y|x) to four decimals, for the first secret values where a draw reads the secret; None if large."""
    drawn = protocol.telling()
    if drawn[:, 0, :].size > MATRIX_CELLS:
        return None
    secrets = [None] if protocol.secret is None else [label(value) for value in protocol.secret.values]
    shown = secrets[:PICTURES]
    return {
        "inputs": [label(value) for value in protocol.inputs.values],
        "outputs": names(protocol),
        "pictures": [
            {"secret": secret, "chances": rounded(drawn[:, s, :], 4)} for s, secret in enumerate(shown)
        ],
        "left": len(secrets) - len(shown),
    }


def rounded(table: FloatArray, decimals: int) -> list[Any]:
    """Figures of a table, without negative zeros."""
    return [[round(figure, decimals) + 0.0 for figure in row] for row in table.tolist()]


def _seldom(t: Facts, protocol: AnyProtocol) -> list[str]:
    """Values that are released as themselves with a small chance, and that chance: the first few, and how many more."""
    few = [
        f"{label(value)} ({figure(figures.share(chance), t.language)})"
        for value, chance in zip(protocol.inputs.values, kept(protocol).max(axis=0).tolist(), strict=True)
        if chance < RARE
    ]
    rest = len(few) - NAMES
    return few if rest <= 0 else [*few[:NAMES], f"{rest} {t.say('other' if rest == 1 else 'others')}"]


def _recovered(protocol: AnyProtocol, rows: IntArray) -> tuple[IntArray, Recovered | None]:
    """The released totals of rows (m, 2) of output codes and counts, and what they tell of the true ones.

    None where the protocol is too large for a report.
    """
    seen = protocol.times_told(*rows.T)
    large = protocol.telling_weights.size > LARGE
    return seen, None if large else recovered(protocol, seen, int(rows[:, 1].sum()))


def _told(
    inputs: Sequence[Label], outputs: Sequence[Label], seen: list[int], told: Recovered | None
) -> dict[str, Any]:
    """Totals as the content holds them: an entry for each estimate, one for each output in none, the rank.

    No error is told where it would be of no use, and might be far too small.

    Several values may read alike: NULL and a text `(missing)`.
    """
    count = dict(zip(outputs, seen, strict=True))
    groups = [] if told is None else [[inputs[x] for x in group] for group in told.members()]
    entries = []
    for place, group in enumerate(groups):
        estimate, error = (
            significant(float(told.count[place]), float(told.error[place])) if told else (0.0, 0.0)
        )
        vague = told is not None and bool(told.vague[place])
        entries.append(
            {"values": [*map(label, group)], "released": sum(count.get(value, 0) for value in group),
             "estimate": estimate, "error": None if vague else error}
        )  # fmt: skip
    named = {value for group in groups for value in group}
    entries += [
        {"values": [label(value)], "released": released, "estimate": None, "error": None}
        for value, released in count.items()
        if value not in named
    ]
    complete = len(groups) == len(inputs)
    return {"entries": entries, "complete": complete, "rank": None if told is None else told.rank}


def significant(estimate: float, error: float) -> tuple[float, float]:
    """An estimate and its standard error, to the second significant digit of that, the estimate to whole records.

    No more would mean anything, and no less would be the same on every machine.
    """
    places = 1 - math.floor(math.log10(error)) if error > 0 else 0
    return round(estimate, min(places, 0)) + 0.0, round(error, places) + 0.0
