"""What can be asked of a release, and how well: the errors of the counts of each column's values."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np

from funnel.data.joint import IntArray
from funnel.format.released import ReleasedFile
from funnel.measure.functionals import Inverted, Tally, tabulated
from funnel.release.reading import Reading, readings
from funnel.report import words
from funnel.report.facts import Facts
from funnel.text import human

LARGE = 1_000_000
"""Chances of a protocol above which errors are not worked out here."""
SHOWN = 2
"""Columns in the example of a command."""


def told(t: Facts, released: ReleasedFile) -> dict[str, Any]:
    """Sentences, commands, and for every column how its counts are read and with which error."""
    rows = np.array(released.rows, np.int64)
    columns = [{"name": t_key, "values": None, "known": None, "error": 0.0} for t_key in _keys(t)]
    for place, block in enumerate(readings(t.m, t.protocols, released, t.wide)):
        columns += list(_columns(block, rows[:, place], rows[:, -1]))
    names = [name for block in t.m.public for name in block] if not t.wide else list(t.released)
    return {
        "sentences": words.paragraphs("asked.txt", t=t),
        "columns": columns,
        "commands": [] if t.certain else list(_commands(t, names[:SHOWN])),
    }


def _keys(t: Facts) -> Iterator[str]:
    yield from (human(one.name) for one in t.m.identify)


def _commands(t: Facts, names: list[str]) -> Iterator[str]:
    folder, by = shlex.quote(t.m.release), shlex.quote(",".join(names))
    yield f"funnel estimate {folder}"
    yield f"funnel estimate {folder} --by {by} --csv"


def _columns(block: Reading, codes: IntArray, counts: IntArray) -> Iterator[dict[str, Any]]:
    """Of each column how many values it has, of how many the number of records can be estimated, and the error.

    That is the quadratic mean of their standard errors, in records; None where none is known.
    """
    inner = {cells.name for cells in block.cells}
    for name in block.columns:
        if name not in inner:
            known, error, values = _errors(block, name, codes, counts)
            yield {"name": human(name), "values": values, "known": known, "error": error}


def _errors(block: Reading, name: str, codes: IntArray, counts: IntArray) -> tuple[int, float | None, int]:
    fine = block.fine([name])
    if block.protocol.telling_weights.size > LARGE:
        return 0, None, len(fine.values)
    tally = _tally(block, codes, counts)
    found = [tally.functional(row) for row in fine.chances]
    squares = [tally.covariance(one, one) for one in found if one is not None]
    error = float(f"{math.sqrt(sum(squares) / len(squares)):.2g}") if squares else None
    return len(squares), error, len(fine.values)


def _tally(block: Reading, codes: IntArray, counts: IntArray) -> Tally:
    if block.face is not None:
        return Tally(tabulated(codes[:, None], counts, [len(block.face.weights)]), block.face)
    told = block.told(codes)
    place = np.searchsorted(told, codes)
    return Tally(tabulated(place[:, None], counts, [len(told)]), Inverted([block.inverse(told)]))
