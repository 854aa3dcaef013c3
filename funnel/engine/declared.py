"""Counts over the values that a policy declares, whichever of them occur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.data import Label
from funnel.data.domain import Domain
from funnel.data.joint import IntArray
from funnel.engine.base import Engine
from funnel.engine.counting import quoted
from funnel.errors import SourceError
from funnel.text import some

_SHOWN = 8


def declared_counts(engine: Engine, cells: str, domain: Domain) -> IntArray:
    """Records of each of the domain's cells (m,), most of them perhaps none.

    Raises SourceError undeclared-value where a record has another value: no protocol may depend on it.
    """
    (distinct,) = engine.row("SELECT count(*) FROM cells")
    if distinct > len(domain.cells):
        raise _undeclared("the table holds more combinations of values than the policy declares")
    widths = [len(alphabet.columns) for alphabet in (domain.secret, *domain.blocks)]
    ends = np.cumsum(widths).tolist()
    counts, unknown = np.zeros(len(domain.cells), np.int64), list[str]()
    for row in engine.rows(cells):
        labels = tuple(tuple(row[end - width : end]) for width, end in zip(widths, ends, strict=True))
        place = domain.place.get(labels)
        if place is None:
            unknown += _unknown(domain, labels)
        else:
            counts[place] += row[-1]
    if unknown:
        names = some(list(dict.fromkeys(unknown)), _SHOWN)
        raise _undeclared("values that the policy does not declare", names)
    return counts


def _unknown(domain: Domain, labels: Sequence[Label]) -> list[str]:
    """The columns and values of a combination that are not declared."""
    found = []
    for alphabet, label in zip((domain.secret, *domain.blocks), labels, strict=True):
        for place, (column, part) in enumerate(zip(alphabet.columns, label, strict=True)):
            if all(value[place] != part for value in alphabet.values):
                found.append(f"{column} {'(missing)' if part is None else quoted(part)}")
    return found


def _undeclared(what: str, values: str | None = None) -> SourceError:
    return SourceError(
        "undeclared-value",
        what,
        values=values,
        advice="Declare every value that can occur under `estimate.values`, from what is known about the column and "
        "not from this table: which values occur is not to show. Or leave such rows out of the source.",
    )
