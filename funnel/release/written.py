"""The table of a release from its published files, whoever writes it: the run, or an auditor who compares.

A table in several files without folders is written file by file: each is a function of the published files and of its
own rows, whoever writes it, and however often. What fills its rows in goes by a seed of its own.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any
from uuid import uuid4

import pyarrow as pa

from funnel.cells.cells import Cells
from funnel.data.unary import AnyProtocol
from funnel.files import writing
from funnel.format.manifest import Manifest
from funnel.format.reported import Published
from funnel.release.export import Target, Window, export
from funnel.release.filled import Rows, export_filled
from funnel.release.named import export_named

Part = tuple[int, Iterable[pa.RecordBatch] | None]
"""The number of a file, and its rows, keys and answers, where rows have names."""
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Does some work for each of some items, wherever that is done, and tells in their order what came of it."""
_TRIALS = ".trials"


def write_data(
    shown: Published, protocols: Sequence[AnyProtocol], cells: Sequence[Cells], target: Target,
    rows: Iterable[Part] | None, each: Each = map,
) -> None:  # fmt: skip
    """Write the table; `rows` are its keys and answers, where rows have names. Raises ReleaseError, SourceError.

    `protocols` and `cells` are those of the files. Every trial of a file has a name of its own, and the one that is
    told gets the file's: what others leave, of processes that were lost, never comes among the files.
    """
    folders = shown.manifest.partition
    if folders is None or folders.column is not None:
        own = None if rows is None else chain.from_iterable(batches for _, batches in rows if batches is not None)
        named = None if folders is None or folders.column is None else (folders.column, folders.rows)
        _write(shown, protocols, cells, replace(target, folders=named), own)
        return
    trials = target.path / _TRIALS
    with writing(target.path.parent):
        trials.mkdir(parents=True)
    parts = rows if rows is not None else [(part, None) for part in range(folders.parts(in_table(shown)))]
    for part, name in each(partial(_try, shown, protocols, cells, replace(target, path=trials)), parts):
        with writing(target.path):
            (trials / name).rename(target.path / f"part-{part}.{target.form}")
    with writing(target.path):
        shutil.rmtree(trials)


def in_table(shown: Published) -> int:
    """The rows of the table: where they stand for counts, only distinct ones are there."""
    return len(shown.released.rows) if shown.manifest.rows_of_data == "counts" else shown.manifest.rows


def window(stated: Manifest, part: int, rows: int) -> Window:
    """Which rows of a table of so many, that are nobody's, are in a file."""
    most = 0 if stated.partition is None else stated.partition.rows
    return part * most, min((part + 1) * most, rows)


def of_part(cells: Sequence[Cells], part: int) -> list[Cells]:
    """The cells, with the seed by which they fill the rows of a file."""
    seeds = (hashlib.sha256(b"funnel/cells/part " + one.seed + str(part).encode()).digest() for one in cells)
    return [replace(one, seed=seed) for one, seed in zip(cells, seeds, strict=True)]


def _try(
    shown: Published, protocols: Sequence[AnyProtocol], cells: Sequence[Cells], target: Target, part: Part
) -> tuple[int, str]:
    number, rows = part
    name = f"{number}-{uuid4().hex}"
    own = window(shown.manifest, number, in_table(shown))
    _write(shown, protocols, of_part(cells, number), replace(target, path=target.path / name), rows, own)
    return number, name


def _write(
    shown: Published, protocols: Sequence[AnyProtocol], cells: Sequence[Cells], target: Target,
    rows: Iterable[pa.RecordBatch] | None, own: Window | None = None,
) -> None:  # fmt: skip
    stated, table = shown.manifest, shown.released
    if cells:
        named = None if rows is None else Rows.of(rows, len(stated.identify))
        locked = stated.locked is not None
        export_filled(protocols, table, cells, target, stated.identify, named, locked=locked, window=own)
    elif rows is not None:
        export_named(protocols, table, stated.identify, rows, target)
    else:
        export(protocols, table, target, counted=stated.rows_of_data == "counts", window=own)
