"""What can be asked of a release, and how well: the errors of the counts of each column's values."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from funnel.data.joint import IntArray
from funnel.format.released import ReleasedFile
from funnel.measure.functionals import Inverted, Tally, tabulated
from funnel.measure.recovery import is_vague
from funnel.release.reading import GROUPS, MOST_TABULATED, WORK, Reading, readings
from funnel.report import words
from funnel.report.facts import Facts
from funnel.text import argument, human

LARGE = 1_000_000
"""Chances of a protocol above which errors are not worked out here."""
SHOWN = 2
"""Columns in the example of a command."""


def told(t: Facts, released: ReleasedFile) -> dict[str, Any]:
    """Sentences, commands, and for every column how its counts are read and with which error."""
    rows = np.array(released.rows, np.int64)
    columns = [{"name": t_key, "values": None, "known": None, "error": 0.0} for t_key in _keys(t)]
    blocks = readings(t.m, t.protocols, released, t.wide)
    for place, block in enumerate(blocks):
        columns += list(_columns(block, rows[:, place], rows[:, -1]))
    return {
        "sentences": words.paragraphs("asked.txt", t=t),
        "columns": columns,
        "commands": [] if t.certain else list(_commands(t, blocks, rows)),
    }


def _keys(t: Facts) -> Iterator[str]:
    yield from (human(one.name) for one in t.m.identify)


def _commands(t: Facts, blocks: Sequence[Reading], rows: IntArray) -> Iterator[str]:
    """Of questions by columns one that is answered: by one column where the first of them are too much together."""
    folder = argument(t.m.release)
    yield f"funnel estimate {folder}"
    asked = (t.released[:most] for most in range(SHOWN, 0, -1))
    if (names := next((one for one in asked if _answered(one, blocks, rows)), None)) is not None:
        yield f"funnel estimate {folder} --by {shlex.quote(','.join(names))} --csv"


def _answered(names: Sequence[str], blocks: Sequence[Reading], rows: IntArray) -> bool:
    """Whether the command can tell names of columns apart, and a question by them is within what one may take."""
    if len(names) > 1 and any("," in name or name != name.strip() for name in names):
        return False
    own = [(place, block) for place, block in enumerate(blocks) if set(names) & set(block.columns)]
    groups = math.prod(len(block.fine([name]).values) for _, block in own for name in names if name in block.columns)
    answers = math.prod(len(block.told(rows[:, place])) for place, block in own)
    return groups <= GROUPS and answers <= MOST_TABULATED and answers * groups <= WORK


def _columns(block: Reading, codes: IntArray, counts: IntArray) -> Iterator[dict[str, Any]]:
    """Of each column how many values it has, of how many the number of records can be estimated, and the error.

    That is the quadratic mean of their standard errors, in records; None where none is known, or of use.
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
    found = [one for row in fine.chances if (one := tally.functional(row)) is not None]
    squares = [tally.covariance(one, one) for one in found]
    count, most = np.array([tally.total(one) for one in found]), np.array([one.most for one in found])
    vague = block.face is None and is_vague(count, np.sqrt(squares), most).any()
    error = float(f"{math.sqrt(sum(squares) / len(squares)):.2g}") if squares and not vague else None
    return len(squares), error, len(fine.values)


def _tally(block: Reading, codes: IntArray, counts: IntArray) -> Tally:
    if block.face is not None:
        return Tally(tabulated(codes[:, None], counts, [len(block.face.weights)]), block.face)
    told = block.told(codes)
    place = np.searchsorted(told, codes)
    return Tally(tabulated(place[:, None], counts, [len(told)]), Inverted([block.inverse(told)]))
