"""The data file against what its writer makes of its rows: equal bytes leave no room for anything else."""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.audit.findings import Unchecked, broken, shown
from funnel.audit.manifest import Manifest
from funnel.audit.parquet import read_layout
from funnel.audit.table import Source, Table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def nothing_beside(source: Source, table: Table, manifest: Manifest) -> str | Unchecked:
    """The data file is, byte for byte, what the same version of its writer makes of the same rows.

    Another version may pack the same rows otherwise: then a Parquet file's layout is all that is looked at,
    and the claim is left open. Raises AuditFailure.
    """
    if source.is_parquet:
        return _parquet(source.path, table)
    return _csv(source, manifest)


def _parquet(path: Path, table: Table) -> str | Unchecked:
    import pyarrow as pa

    layout = read_layout(path, table.rows)
    if layout.writer != f"parquet-cpp-arrow version {pa.cpp_version}":
        return Unchecked(
            f"pages and footer are all there is, but only Arrow of the same version ({shown(layout.writer)}) "
            "can tell what the pages hold beside the rows"
        )
    with tempfile.TemporaryDirectory(prefix="funnel-audit-") as folder:
        again = Path(folder) / path.name
        _write_parquet(path, table, again)
        return _compare(path, again, layout.writer)


def _write_parquet(path: Path, table: Table, again: Path) -> None:
    """The same rows, row group by row group: texts by a dictionary in the order in which they first occur."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            known = {
                name: _dictionary(table, place)
                for place, name in enumerate(file.schema_arrow.names)
                if pa.types.is_string(file.schema_arrow.field(place).type)
            }
            schema = pa.schema(
                (field.name, pa.dictionary(pa.int32(), pa.string()) if field.name in known else field.type)
                for field in file.schema_arrow
            )
            with pq.ParquetWriter(again, schema, compression="zstd", store_schema=False) as writer:
                for batch in _groups(file, schema, known):
                    writer.write_batch(batch)
    except (pa.ArrowException, OSError) as error:
        raise broken(
            path.name, "the table cannot be written again", expected="plain rows", found=str(error)
        ) from error


def _dictionary(table: Table, place: int) -> pa.Array:
    import pyarrow as pa

    texts = dict.fromkeys(run.row[place] for run in table.runs)
    return pa.array([text for text in texts if text is not None], pa.string())


def _groups(file: pq.ParquetFile, schema: pa.Schema, known: dict[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for group in range(file.num_row_groups):
        columns = []
        for name, column in zip(schema.names, file.read_row_group(group).columns, strict=True):
            values = column.combine_chunks()
            if name in known:
                values = pa.DictionaryArray.from_arrays(pc.index_in(values, known[name]), known[name])
            columns.append(values)
        yield pa.record_batch(columns, schema=schema)


def _csv(source: Source, manifest: Manifest) -> str | Unchecked:
    """Which texts stand in quotes follows from the texts."""
    import duckdb

    writer = f"DuckDB {manifest.versions.get('duckdb')}"
    if writer != f"DuckDB {duckdb.__version__}":
        return Unchecked(f"only the same version of its writer ({shown(writer)}) quotes texts alike")
    with tempfile.TemporaryDirectory(prefix="funnel-audit-") as folder:
        again = Path(folder) / source.path.name
        source.copy(again, source.columns)
        return _compare(source.path, again, writer)


def _compare(path: Path, again: Path, writer: str) -> str:
    if not filecmp.cmp(path, again, shallow=False):
        raise broken(
            path.name,
            "the file is not what its writer makes of its rows, so it may say more than they do",
            expected=f"the {again.stat().st_size} bytes that {writer} writes",
            found=f"other bytes, {path.stat().st_size} of them",
        )
    return f"byte for byte what {writer} writes for these rows"
