"""Wide blocks in a report: their columns and cells, how true a row is column by column, and how near to the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from funnel.cells import condition
from funnel.cells.accuracy import accuracies, chances, law_of_labels
from funnel.cells.cells import Cells
from funnel.data import Protocol
from funnel.format.distances import BlockDistances
from funnel.format.released import ReleasedFile
from funnel.release.weights import Weights, all_weights, uneven, weight_name
from funnel.report import words
from funnel.report.facts import Facts
from funnel.report.figures import nearest
from funnel.text import human, printable

SUFFERED = 5
"""Columns named as those that came out worst."""


def told(t: Facts, released: ReleasedFile) -> list[dict[str, Any]]:
    """What the published files tell of each wide block."""
    rows = np.array(released.rows, np.int64)
    weights = all_weights(t.wide, t.protocols, rows, locked=t.m.locked is not None)
    return [_said(t, one, _block(t, one, _totals(t, one, weights.get(one.name)))) for one in t.wide]


def _block(t: Facts, cells: Cells, totals: str) -> dict[str, Any]:
    total = int(cells.shares.sum())
    columns = [
        {
            "name": human(column.name),
            "type": column.type,
            "values": sum(value is not None for value in column.values),
            "other": column.other is not None and column.values[column.other] == "other",
        }
        for column in cells.columns
    ]
    return {
        "name": human(cells.name),
        "columns": columns,
        "fixed": t.fixed,  # as the lock's night had them are the shares of cells
        "cells": [
            {
                "cell": label,
                "words": condition.words(cells, place, t.say),
                "share": nearest(int(cells.shares[place]) / total, 4),
            }
            for place, label in enumerate(cells.labels())
        ],
        "totals": totals,
        "accuracy": _accuracy(t, cells),
    }


def _said(t: Facts, cells: Cells, one: dict[str, Any]) -> dict[str, Any]:
    """With how its rows are to be read."""
    weight = printable(weight_name(cells.name, len(t.wide)))
    return one | {"said": words.said("wide.txt", t=t, one=one, weight=weight)}


def _own(t: Facts, cells: Cells) -> Protocol | None:
    """The protocol of the block's labels where these are all that it draws for; None where there is more."""
    found = next((one for one in t.protocols if one.inputs.columns == (cells.name,)), None)
    return found if isinstance(found, Protocol) and not found.reads_secret else None


def _totals(t: Facts, cells: Cells, weights: Weights | None) -> str:
    """How the table is read.

    The totals are `true`, right at `face` value, `near` to it, by `weight`, or by `estimate` where none of them does.
    `weights` are those of the block, None where there are none.
    """
    if weights is not None and uneven(weights):
        return "weight"
    if cells.name in t.true_cells:  # under a lock as well: whatever moves in the table shows whole
        return "true"
    if t.m.totals == "kept":
        return "face"
    if weights is None:
        return "estimate"
    return "face" if t.m.locked is None and all(one == 1 for one in weights) else "near"


def _accuracy(t: Facts, cells: Cells) -> list[dict[str, Any]] | None:
    """Of each column the share of records that show their own value, as far as published files tell.

    They know the shares of the cells, and of their columns what rows are filled from. None where the protocol draws
    for more than the cell.
    """
    own = _own(t, cells)
    if own is None:
        return None
    counts = cells.shares[[int(value[0] or 0) - 1 for value in own.inputs.values]]
    law, filled = law_of_labels(cells.name, len(cells), own, counts[None, :]), chances(cells.profiles)
    shown = accuracies(law, filled, filled)
    return [
        _column(column.name, one.label, one.own, one.at_zero)
        for column, one in zip(cells.columns, shown, strict=True)
    ]


def _column(name: str, label: float, own: float, at_zero: float) -> dict[str, Any]:
    figures = {"label": label, "own": own, "at_zero": at_zero}
    return {"name": human(name)} | {key: nearest(value, 4) for key, value in figures.items()}


def near(block: BlockDistances) -> dict[str, Any]:
    """What the records tell of a wide block: accuracy, distances of columns and pairs, what suffered most."""
    names = [human(column.name) for column in block.columns]
    release, nobody = np.array(block.release), np.array(block.at_zero)
    return {
        "name": human(block.name),
        "quantiles": block.quantiles,
        "columns": names,
        "accuracy": [_column(one.name, one.label, one.own, one.at_zero) for one in block.columns],
        "merged": [
            {"name": name, "values": one.values, "records": one.records}
            for name, one in zip(names, block.columns, strict=True)
            if one.values
        ],
        "distances": release.round(4).tolist(),
        "at_zero": nobody.round(4).tolist(),
        "figures": {"release": _figures(release), "at_zero": _figures(nobody)},
        "suffered": [names[place] for place in np.argsort(-release.mean(axis=0), kind="stable")[:SUFFERED]],
    }


def _figures(table: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Mean and largest distance of single columns, and of pairs."""
    singles, pairs = table.diagonal(), table[np.triu_indices(len(table), 1)]
    found = {"single": singles.mean(), "single_most": singles.max(), "pair": pairs.mean(), "pair_most": pairs.max()}
    return {name: round(float(value), 4) for name, value in found.items()}
