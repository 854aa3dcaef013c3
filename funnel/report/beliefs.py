"""What is believed about the secret before and after the release: P(s) and P(s|y)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funnel.data import Protocol
from funnel.data.channel import MAX_CELLS
from funnel.data.joint import FloatArray
from funnel.data.subsets import Subsets
from funnel.report import figures, text
from funnel.report.case import Case, expected_records
from funnel.report.disclosure import Mask, withheld_cells

BANDS = 5
"""A published map of beliefs tells the direction of a change in this many steps of what it can show."""

MAP_CELLS = 3600
"""Largest map of beliefs, in cells."""


def secrets(case: Case) -> list[dict[str, Any]]:
    """One entry per secret value, most frequent first: belief before, lowest and highest after all blocks."""
    order = [int(s) for s in np.argsort(-case.secret_counts, kind="stable") if not case.unnamed[s]]
    pool = [_pool(case)] if case.unnamed.any() else []
    if isinstance(case.table, Subsets):
        return [*_over_sets(case, case.table, order), *pool]
    expected = expected_records(case.table, case.joint.rows)
    hidden = _hidden(case, expected)
    return [_secret(case, s, expected, hidden) for s in order] + pool


def _over_sets(case: Case, table: Subsets, order: list[int]) -> list[dict[str, Any]]:
    """The same where sets are released; few records have the set that says most, so it is for the full report."""
    prior = case.secret_counts / case.joint.rows
    ends = np.stack(table.changes(), axis=1) * prior[:, None]
    return [
        _entry(case, s, float(prior[s]), [None, None] if case.published else ends[s].tolist()) for s in order
    ]


def _hidden(case: Case, expected: FloatArray) -> Mask:
    """Cells (c, b) that the readers of this report are not told about."""
    if not case.published:
        return np.zeros(expected.shape, bool)
    return withheld_cells(expected, case.unnamed, case.minimum)


def _secret(case: Case, s: int, expected: FloatArray, hidden: Mask) -> dict[str, Any]:
    """Belief in one value. `moves` are its lowest and highest change as parts of the bound, `change` the
    larger of the two in nats; figures whose cells are withheld are None.
    """
    prior = expected[s].sum() / expected.sum()
    after = expected[s] / expected.sum(axis=0)
    ends = [_told(after, hidden[s], int(at)) for at in (after.argmin(), after.argmax())]
    return _entry(case, s, prior, ends)


def _entry(case: Case, s: int, prior: float, ends: list[float | None]) -> dict[str, Any]:
    """What is told of one secret value, whose belief ranges between two `ends`."""
    entry: dict[str, Any] = {"value": text.label(case.joint.secret.values[s]), "pooled": False}
    if not case.published:
        entry["records"] = int(case.secret_counts[s])
    return (
        entry
        | {
            "before": figures.belief(prior, case.published, case.step),
            "lowest": None if ends[0] is None else figures.belief(ends[0], case.published, case.step),
            "highest": None if ends[1] is None else figures.belief(ends[1], case.published, case.step),
            "promised": _promised(case, float(prior)),
        }
        | _moves(case, prior, ends)
    )


def _promised(case: Case, prior: float) -> list[float] | None:
    """The beliefs that the promise allows; None where it bounds an average only."""
    within = case.notion.within
    return None if within is None else figures.around(*within(prior, case.epsilon), case.step)


def _told(after: FloatArray, hidden: Mask, at: int) -> float | None:
    """The belief at one released value; None where it and all that tie with it are withheld."""
    ties = np.isclose(after, after[at], rtol=1e-9, atol=0)
    return None if hidden[ties].all() else float(after[at])


def _moves(case: Case, prior: float, ends: list[float | None]) -> dict[str, Any]:
    """`change`, rounded up but never past a bound on it, None where unbounded; `moves`. Both None where withheld."""
    if None in ends:
        return {"change": None, "moves": None}
    moves = _changes(case, np.array([prior]), np.array(ends, float))
    worst = float(np.abs(moves).max())
    parts = np.clip(moves / case.width, -1, 1) if case.width else np.zeros(2)
    told = {"moves": [figures.share(float(part), max(case.step, 0.01)) for part in parts]}
    if not math.isfinite(worst):
        return {"change": None} | told
    change = figures.nats(worst, max(case.step / 10, 1e-4))
    if case.notion.worst_case:
        change = min(change, max(figures.nats(worst), case.epsilon))
    return {"change": change} | told


def _changes(case: Case, before: FloatArray, after: FloatArray) -> FloatArray:
    """The notion's change of belief in nats; 0 where a belief is certain before and after."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(case.notion.change(before, after), nan=0.0, posinf=math.inf, neginf=-math.inf)


def _pool(case: Case) -> dict[str, Any]:
    """The entry for all values that are not named: only the promise speaks of them."""
    number = int(case.unnamed.sum())
    some = "with" if (case.secret_counts[case.unnamed] < case.minimum).all() else "pooled because some have"
    return {
        "value": f"{figures.counted(number, 'rarest value', 'rarest values')}, {some} fewer than "
                 f"{figures.counted(case.minimum, 'record')}",
        "pooled": True,
    }  # fmt: skip


def belief_map(case: Case, block: int) -> dict[str, Any] | None:
    """How each released value of one block alone moves the belief in each named secret value.

    Published: steps of a fifth of the case's width, -5 to 5, None where withheld. Full: the notion's change in
    nats, None where infinite, and P(s|y). None where nothing can move, or the map would have over MAP_CELLS cells.
    """
    table, protocol = case.block_tables[block], case.protocols[block]
    if isinstance(table, Subsets) or not isinstance(protocol, Protocol):
        return None
    expected = expected_records(table, case.joint.rows)
    if expected.size > MAP_CELLS or expected.shape[1] == 1 or case.width == 0 or case.unnamed.all():
        return None
    hidden = _hidden(case, expected)
    after = expected / expected.sum(axis=0)
    changes = _changes(case, expected.sum(axis=1, keepdims=True) / expected.sum(), after)
    order = [int(s) for s in np.argsort(-case.secret_counts, kind="stable") if not case.unnamed[s]]
    occurs = table.sum(axis=0) > 0
    outputs = protocol.outputs.values
    cell = _band if case.published else _nats
    content: dict[str, Any] = {
        "secret": [text.label(case.joint.secret.values[s]) for s in order],
        "released": [text.label(value) for value, seen in zip(outputs, occurs, strict=True) if seen],
        "unit": "band" if case.published else "nats",
        "quantity": case.notion.quantity,
        "bound": case.width,
        "change": [[None if unsaid else cell(change, case.width)
                    for change, unsaid in zip(changes[s].tolist(), hidden[s].tolist(), strict=True)]
                   for s in order],
    }  # fmt: skip
    if case.published:
        return content
    chances = [[figures.belief(chance, published=False) for chance in after[s].tolist()] for s in order]
    return content | {"after": chances}


def _band(change: float, bound: float) -> int:
    """A step from -BANDS to BANDS; 0 within half a step of no change."""
    part = float(np.clip(change / bound, -1, 1))
    return round(part * BANDS)


def _nats(change: float, _: float) -> float | None:
    """A change at four decimals, with no negative zero."""
    return round(change, 4) + 0.0 if math.isfinite(change) else None


def guess(case: Case) -> dict[str, float] | None:
    """Share of records whose secret is guessed right by always naming the likeliest value, before and after.

    None where a published report names no secret value, or fewer than the minimum would be guessed wrong; and where
    there are too many sets to go through.
    """
    if isinstance(case.table, Subsets):
        if case.table.size > MAX_CELLS:
            return None
        expected = case.table.chances() * case.joint.rows
    else:
        expected = expected_records(case.table, case.joint.rows)
    total = expected.sum()
    few = total - expected.max(axis=0).sum() < case.minimum
    if case.published and (few or case.unnamed.all()):
        return None
    before, after = expected.sum(axis=1).max() / total, expected.max(axis=0).sum() / total
    return {"before": figures.share(before, case.step), "after": figures.share(after, case.step)}
