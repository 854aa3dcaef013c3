"""Engines: where tables live and work is done. Nothing above this room knows which one runs."""

from __future__ import annotations

from pathlib import Path

from funnel.engine.base import Engine
from funnel.engine.sources import Dialect, Source, changed, find


def open_engine(
    source: Source, *, memory: str = "2GB", threads: int | None = None, scratch: Path | None = None
) -> Engine:
    """The engine that serves a source, with the memory and threads it may use."""
    from funnel.engine.duckdb import DuckDB

    return DuckDB(source, memory=memory, threads=threads, scratch=scratch)


__all__ = ["Dialect", "Engine", "Source", "changed", "find", "open_engine"]
