"""Engines: where tables live and work is done. Nothing above this room knows which one runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from funnel.engine.base import Engine, EngineName, Kernel
from funnel.engine.sources import Dialect, Source, changed, find

if TYPE_CHECKING:
    from funnel.engine.spark import Parted


def found_for(
    engine: EngineName, settings: Mapping[str, str], table: str, directory: Path, dialect: Dialect
) -> Source:
    """The table that a policy in `directory` names, for the engine that it names, with the engine's own settings.

    Raises SourceError where it is not there, or the engine does not read such tables.
    """
    if engine == "duckdb":
        return find(table, directory, dialect)
    from funnel.engine.spark import parted

    return parted(table, directory, dialect, settings)


def open_engine(
    source: Source, *, memory: str = "2GB", threads: int | None = None, scratch: Path | None = None
) -> Engine:
    """The engine that serves a source, with the memory and threads it may use."""
    if source.is_parted:
        from funnel.engine.spark import Spark

        return Spark(cast("Parted", source), memory=memory, threads=threads, scratch=scratch)
    from funnel.engine.duckdb import DuckDB

    return DuckDB(source, memory=memory, threads=threads, scratch=scratch)


__all__ = ["Dialect", "Engine", "EngineName", "Kernel", "Source", "changed", "find", "found_for", "open_engine"]
