"""A published folder as an attacker reads it, with code of its own: labels, their chances, a true record's cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Columns = dict[str, npt.NDArray[Any]]
QUANTILES = 20


def read(table: Path, order: str) -> Columns:
    """The columns (n,) of a table, sorted by one of them."""
    return dict(duckdb.sql(f"SELECT * FROM '{table}' ORDER BY {order}").fetchnumpy())


def numbered(values: npt.NDArray[Any]) -> Codes:
    """Every value's number (n,)."""
    return np.asarray(np.unique(np.asarray(values), return_inverse=True)[1], np.int64)


def coarse(values: npt.NDArray[Any]) -> Codes:
    """Numbers by their quantile (n,), other values by themselves."""
    codes = numbered(values)
    if np.asarray(values).dtype.kind not in "if":
        return codes
    counts = np.bincount(codes)
    return ((np.cumsum(counts) - counts) * QUANTILES // len(codes))[codes]


@dataclass(frozen=True, eq=False)
class Published:
    """One wide block: the label (n,) of everyone, the chances (m, m) of a label y given a cell t, rows as released."""

    columns: tuple[str, ...]
    labels: Codes
    chances: Floats
    rows: Columns
    told: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, key: str) -> Published:
        """A folder with one wide block, whose rows are named by `key`."""
        (told,) = json.loads((folder / "cells.json").read_text())["blocks"]
        (protocol,) = json.loads((folder / "protocol.json").read_text())["blocks"]
        rows = read(folder / "data.parquet", key)
        names = [value for (value,) in protocol["outputs"]]
        if (
            names != [str(cell + 1) for cell in range(len(names))]
            or protocol["inputs"] != protocol["outputs"]
        ):
            raise ValueError("labels are not the cells in order")
        chances = np.array(protocol["weights"], float) / (1 << protocol["bits"])
        columns = tuple(column["name"] for column in told["columns"])
        return cls(columns, rows.pop(told["name"]).astype(np.int64) - 1, chances, rows, told)

    def released(self, people: Columns) -> list[Codes]:
        """By which value of its vocabulary every true value goes, column by column (n,)."""
        return [_coded(column, people[column["name"]]) for column in self.told["columns"]]

    def cells(self, people: Columns) -> Codes:
        """The cell (n,) of true records."""
        found = np.zeros(len(self.labels), np.int64)
        everyone = np.arange(len(found))
        _walk(
            iter(self.told["nodes"]), iter(range(len(self.chances))), self.released(people), everyone, found
        )
        return found


def _coded(column: dict[str, Any], values: npt.NDArray[Any]) -> Codes:
    """Codes (n,) of a column of numbers or texts."""
    if column["cuts"] is not None:
        return np.asarray(np.searchsorted(np.array(column["cuts"], float), values, side="right"), np.int64)
    code = {value: place for place, value in enumerate(column["values"])}
    return np.array([code.get(value, column["other"]) for value in values.tolist()], np.int64)


def _walk(
    nodes: Iterator[dict[str, Any]], cells: Iterator[int], codes: Sequence[Codes], rows: Codes, found: Codes
) -> None:
    """Write the cells of the records `rows` below the next node."""
    node = next(nodes)
    if node["kind"] == "cell":
        found[rows] = next(cells)
        return
    code = codes[node["column"]][rows]
    left = code < node["below"] if node["kind"] == "below" else np.isin(code, node["codes"])
    _walk(nodes, cells, codes, rows[left], found)
    _walk(nodes, cells, codes, rows[~left], found)
