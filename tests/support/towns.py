"""People of some towns, for wide blocks: numbers, texts, dates, rare and missing values that depend on one another."""

from __future__ import annotations

from pathlib import Path

import duckdb

PEOPLE = """
SELECT i AS id,
       17 + (hash(i) % 40 + 20 * (hash(i + 7) % 2))::SMALLINT AS age,
       CASE WHEN i % 250 = 0 THEN 'Oslo' WHEN hash(i + 7) % 2 = 0 THEN 'Bergen' ELSE 'Rome' || hash(i, 4) % 3
       END AS town,
       DATE '2020-01-01' + (hash(i, 5) % 300)::INTEGER AS since,
       CAST(hash(i, 6) % 3 AS INTEGER) * CAST(1.5 AS DECIMAL(4, 1)) AS wage,
       CASE WHEN (hash(i, 8) % 10 < 7) = (hash(i + 7) % 2 = 0) THEN 'ill' ELSE 'well' END AS health,
       CASE WHEN hash(i, 9) % 5 = 0 THEN 'yes' ELSE 'no' END AS votes
FROM range({rows}) t(i)
"""
INNER = ["age", "town", "since", "wage"]
WIDE = {
    "source__table": "people.parquet",
    "source__entity": "id",
    "sensitive": ["health"],
    "public": [{"name": "person", "columns": INNER, "cells": {"most": 10, "minimum": 60}}],
    "mechanism": "randomised-response",
}
"""Changes of `write_policy` for these people."""


def people(folder: Path, rows: int = 1500, change: str = "*") -> Path:
    """The table in a folder; `change` is what is selected from it, such as `* REPLACE (…)`."""
    target = folder / "people.parquet"
    duckdb.sql(f"COPY (SELECT {change} FROM ({PEOPLE.format(rows=rows)})) TO '{target}'")
    return target
