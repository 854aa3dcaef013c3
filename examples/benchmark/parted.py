"""Spark beside DuckDB on the cores of this machine: what it costs a run and a row, and what that is on a cluster."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from throughput import PERMANENT, POLICY, people

import funnel

CORES = 2
SPARK = f"engine: spark\nspark: {{spark.master: 'local[{CORES}]', spark.sql.files.maxPartitionBytes: 16m}}\n"
SIDES = {
    "DuckDB, counts": ("", "counts", ""),
    "Spark, counts": (SPARK, "counts", ""),
    "Spark, records": (SPARK, "records", ""),
    "Spark, named rows": (SPARK, "records", ", identify: [id]"),
}
"""Of each side: its engine, the rows it releases, and by what they are named."""
WRITING = ("write", "audit", "publish")
"""Stages that are done in the one process of the job, whatever the cluster; of named rows all that comes back, too."""
Measured = dict[str, list[dict[str, float]]]
"""Of each side what its rounds took: seconds by stage, and `all` of them."""


def sanitise(policy: Path) -> dict[str, float]:
    """Seconds of a release, by stage, which is removed so that every round does the same work."""
    seconds, begun = dict[str, float](), time.perf_counter()
    now, since = "start", begun

    def told(stage: str, *_: object) -> None:
        nonlocal now, since
        if stage != now:
            seconds[now] = seconds.get(now, 0.0) + time.perf_counter() - since
            now, since = stage, time.perf_counter()

    funnel.run(policy, progress=told)
    told("end")
    for folder in ("released", "private"):
        shutil.rmtree(policy.parent / folder)
    return seconds | {"all": time.perf_counter() - begun}


def policies(folder: Path, rows: int, values: int) -> dict[str, Path]:
    """A table of so many rows, and for each side a policy over it."""
    folder.mkdir()
    people(folder / "people.parquet", rows, values)
    found = dict[str, Path]()
    for name, (engine, kind, keys) in SIDES.items():
        entity, draws = PERMANENT
        text = POLICY.format(table="../people.parquet", entity=entity, draws=draws, rows=kind, mechanism="optimal")
        found[name] = folder / name.replace(", ", "-").replace(" ", "-") / "policy.yaml"
        found[name].parent.mkdir()
        found[name].write_text(engine + text.replace("rows: records}", f"rows: records{keys}}}"))
    return found


def turns(policies: dict[str, Path], rounds: int) -> Measured:
    """Every side in every round, in turn."""
    found: Measured = {name: [] for name in policies}
    for _ in range(rounds):
        for name, policy in policies.items():
            found[name].append(sanitise(policy))
    return found


def median(found: list[dict[str, float]], what: Callable[[dict[str, float]], float]) -> float:
    """Of a figure of all rounds."""
    return statistics.median(map(what, found))


def whole(one: dict[str, float]) -> float:
    """Seconds of a run."""
    return one["all"]


def writing(one: dict[str, float]) -> float:
    """Seconds of a run that no cluster makes less."""
    return sum(one.get(stage, 0.0) for stage in WRITING)


def line(sizes: tuple[int, int], found: tuple[float, float]) -> tuple[float, float]:
    """Seconds whatever the rows, and for each row, neither below none: the line through two measurements."""
    slope = max(0.0, (found[1] - found[0]) / (sizes[1] - sizes[0]))
    return max(0.0, found[0] - slope * sizes[0]), slope


def estimates(sizes: tuple[int, int], found: tuple[Measured, Measured], rows: int, cores: int) -> list[str]:
    """What so many rows take on so many cores: what is done in parts is divided, what one process writes is not."""
    named = [median(one["Spark, named rows"], whole) for one in found]
    gathered = line(sizes, (named[0], named[1]))[1]
    told = []
    for name in SIDES:
        fixed, each = line(sizes, (median(found[0][name], whole), median(found[1][name], whole)))
        alone = line(sizes, (median(found[0][name], writing), median(found[1][name], writing)))[1]
        if name == "Spark, named rows":
            alone = max(alone, gathered - line(sizes, _of("Spark, records", found))[1])
        text = f"  {name:<20}{fixed:>8.1f} s a run, {each * 1e9:>8.1f} ns a row"
        if name.startswith("Spark"):
            divided = max(0.0, each - alone) * CORES * rows / cores
            total = fixed + divided + alone * rows
            text += (
                f"; {rows:,} rows on {cores} cores: {total / 60:,.1f} min "
                f"({fixed:.0f} s + {divided:,.0f} s in parts + {alone * rows:,.0f} s by the one that writes)"
            )
        told.append(text)
    return told


def _of(name: str, found: tuple[Measured, Measured]) -> tuple[float, float]:
    return median(found[0][name], whole), median(found[1][name], whole)


def main(arguments: list[str]) -> None:
    """Run the comparison and print the tables."""
    parser = argparse.ArgumentParser(prog="benchmark spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--values", type=int, default=16, help="values of the public column")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where tables are made: 50 million rows take half a GB")
    parser.add_argument("--estimate", type=int, default=10_000_000_000, help="rows of the table to say the time of")
    parser.add_argument("--cores", type=int, default=100, help="of the cluster that it is on")
    options = parser.parse_args(arguments)
    os.environ["FUNNEL_BENCHMARK_KEY"] = funnel.new_key()
    sizes = (options.rows // 5, options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        made = [policies(Path(name) / str(rows), rows, options.values) for rows in sizes]
        begun = sanitise(made[0]["Spark, counts"])["all"]
        found = turns(made[0], options.rounds), turns(made[1], options.rounds)
    print(f"{CORES} cores of this machine, {options.values} values, medians of {options.rounds} rounds in turn")
    for rows, one in zip(sizes, found, strict=True):
        print(f"\n{rows:,} rows")
        base = median(one["DuckDB, counts"], whole)
        for side, runs in one.items():
            stages = {stage: median(runs, lambda run, s=stage: run.get(s, 0.0)) for stage in runs[0] if stage != "all"}
            parts = ", ".join(f"{stage.split(':')[0]} {s:.2f}" for stage, s in stages.items() if s >= 0.05)
            print(f"  {side:<20}{median(runs, whole):>8.2f} s{median(runs, whole) / base:>8.2f} of DuckDB's: {parts}")
    more = begun - _of("Spark, counts", found)[0]
    print(f"\nThe first run of a process begins Spark: {more:.1f} s more. Of each side:")
    print("\n".join(estimates(sizes, found, options.estimate, options.cores)))
