"""Sanitising many rows by Spark on two cores of this machine, beside DuckDB; and where Spark's seconds go."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from sides import in_turn, table
from throughput import POLICY, people

import funnel
from funnel.progress import Report, silent

SPARK = "engine: spark\nspark: {spark.master: 'local[2]', spark.sql.files.maxPartitionBytes: 16m}\n"


def sanitise(policy: Path, progress: Report = silent) -> None:
    """One release, then remove it so that every round does the same work."""
    funnel.run(policy, progress=progress)
    for folder in ("released", "private"):
        shutil.rmtree(policy.parent / folder)


class Stages:
    """Seconds of each stage of the runs that report to it."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self._stage, self._since = "", 0.0

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """A stage goes on, or another one begins."""
        now = time.perf_counter()
        if stage != self._stage:
            if self._stage:
                self.seconds.setdefault(self._stage, []).append(now - self._since)
            self._stage, self._since = stage, now

    def text(self) -> str:
        """Medians of the stages that take long enough to matter."""
        medians = {stage: statistics.median(values) for stage, values in self.seconds.items()}
        return ", ".join(f"{stage} {value:.2f} s" for stage, value in medians.items() if value >= 0.05)


def main(arguments: list[str]) -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(prog="benchmark spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--values", type=int, default=16, help="values of the public column")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder, stages = Path(name), Stages()
        people(folder / "people.parquet", options.rows, options.values)
        os.environ["FUNNEL_BENCHMARK_KEY"] = funnel.new_key()
        policies = {}
        for kind, entity, draws in (
            ("permanent", ", entity: id", "{key: env:FUNNEL_BENCHMARK_KEY}"),
            ("fresh", "", "{kind: fresh}"),
        ):
            for engine, settings in (("DuckDB", ""), ("Spark", SPARK)):
                (folder / engine / kind).mkdir(parents=True)
                policy = folder / engine / kind / "policy.yaml"
                told = {"entity": entity, "draws": draws, "mechanism": "optimal"}
                text = POLICY.format(table="people.parquet", rows="records", **told)
                policy.write_text(settings + text.replace("people.parquet", "../../people.parquet"))
                policies[f"{engine}, {kind} draws"] = policy
        sides = {name: lambda policy=policy: sanitise(policy) for name, policy in policies.items()}
        sides["Spark, permanent draws"] = lambda: sanitise(policies["Spark, permanent draws"], stages)
        seconds = in_turn(sides, options.rounds)
    print(f"{options.rows:,} rows, {options.values} values, two cores; whole runs, of which the first does not count")
    print(table(seconds, "DuckDB, permanent draws"))
    print(f"Spark, permanent draws: {stages.text()}")
