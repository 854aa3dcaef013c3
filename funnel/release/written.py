"""The table of a release from its published files, whoever writes it: the run, or an auditor who compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from funnel.cells.cells import Cells
from funnel.data.unary import AnyProtocol
from funnel.format.reported import Published
from funnel.release.export import Target, export
from funnel.release.filled import Rows, export_filled
from funnel.release.named import export_named


def write_data(
    shown: Published, protocols: Sequence[AnyProtocol], cells: Sequence[Cells], target: Target,
    rows: Iterable[pa.RecordBatch] | None,
) -> None:  # fmt: skip
    """Write the table; `rows` are its keys and answers, where rows have names. Raises ReleaseError.

    `protocols` and `cells` are those of the files.
    """
    stated, table = shown.manifest, shown.released
    if cells:
        named = None if rows is None else Rows.of(rows, len(stated.identify))
        export_filled(protocols, table, cells, target, stated.identify, named, locked=stated.locked is not None)
    elif rows is not None:
        export_named(protocols, table, stated.identify, rows, target)
    else:
        export(protocols, table, target, counted=stated.rows_of_data == "counts")
