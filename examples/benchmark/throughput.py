"""Sanitising many rows, against DuckDB's plain COPY of the same columns and against a bare scan."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
from pathlib import Path

import duckdb
from sides import in_turn, table

import funnel

POLICY = """version: 1
name: throughput
source: {{table: people.parquet{entity}}}
sensitive: [secret]
public: [category]
privacy: {{notion: lip, epsilon: 0.5}}
mechanism: {mechanism}
draws: {draws}
release: {{to: released, private: private, format: parquet}}
"""


def people(path: Path, rows: int, values: int) -> None:
    """A table whose secret of four values leans on a category of `values` values."""
    duckdb.sql(f"""COPY (
        SELECT i AS id, 'category ' || (hash(i) % {values})::VARCHAR AS category,
               'secret ' || ((hash(i) % {values} + hash(i + 7) % 3) % 4)::VARCHAR AS secret
        FROM range({rows}) t(i)) TO '{path}'""")


def copy(source: Path, columns: str, target: Path) -> None:
    """DuckDB's own COPY."""
    duckdb.sql(f"COPY (SELECT {columns} FROM '{source}') TO '{target}'")


def sanitise(policy: Path) -> None:
    """One release, then remove it so that every round does the same work."""
    funnel.run(policy)
    for folder in ("released", "private"):
        shutil.rmtree(policy.parent / folder)


def main(arguments: list[str]) -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(prog="benchmark throughput", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--values", type=int, default=16, help="values of the public column")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mechanism", default="optimal")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target = folder / "people.parquet", folder / "copy.parquet"
        people(source, options.rows, options.values)
        os.environ["FUNNEL_BENCHMARK_KEY"] = funnel.new_key()
        policies = {}
        for kind, entity, draws in (
            ("permanent", ", entity: id", "{key: env:FUNNEL_BENCHMARK_KEY}"),
            ("fresh", "", "{kind: fresh}"),
        ):
            policies[kind] = folder / f"{kind}.yaml"
            policies[kind].write_text(POLICY.format(entity=entity, draws=draws, mechanism=options.mechanism))
        seconds = in_turn(
            {
                "scan (count by category)": lambda: duckdb.sql(
                    f"SELECT category, count(*) FROM '{source}' GROUP BY 1"
                ).fetchall(),
                "COPY category": lambda: copy(source, "category", target),
                "COPY id, category": lambda: copy(source, "id, category", target),
                "funnel run, fresh draws": lambda: sanitise(policies["fresh"]),
                "funnel run, permanent draws by id": lambda: sanitise(policies["permanent"]),
            },
            options.rounds,
        )
    print(
        f"{options.rows:,} rows, {options.values} values, {os.cpu_count()} cores; "
        "a whole run: check, count, solve, draw, test, write, report, audit, publish"
    )
    print(table(seconds, "COPY id, category"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process, all sides together: {peak:,.0f} MiB")
