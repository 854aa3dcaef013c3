"""Spark beside DuckDB on the cores of this machine: what it costs a run and a row, and what that is on a cluster."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
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
WRITING = {"Spark, named rows": ("publish",)}
ALONE = ("write", "audit", "publish")
"""Stages that are done in the one process of the job, whatever the cluster; others write and audit named rows."""
Measured = dict[str, list[dict[str, float]]]
"""Of each side what its rounds took: processor seconds by stage, and of `all`; and seconds by the clock (`wall`)."""
_TICKS = os.sysconf("SC_CLK_TCK")
_SPENT = dict[int, float]()
"""Processor seconds of every process that was ever seen: Spark ends those of its own that wait for a minute."""


def processor() -> float:
    """Processor seconds of this process and of all that it began, Java and Spark's Python among them.

    On a machine that others use, these tell what seconds by the clock do not.
    """
    spent, parents = dict[int, float](), dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = path.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(path.parent.name)
        parents[pid], spent[pid] = int(told[1]), sum(map(int, told[11:13])) / _TICKS
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    _SPENT.update((pid, spent[pid]) for pid in own if pid in spent)
    return sum(_SPENT.values())


def sanitise(policy: Path) -> dict[str, float]:
    """What a release took, by stage, which is removed so that every round does the same work."""
    seconds, clock, begun = dict[str, float](), time.perf_counter(), processor()
    now, since = "start", begun

    def told(stage: str, *_: object) -> None:
        nonlocal now, since
        if stage != now:
            spent = processor()
            seconds[now] = seconds.get(now, 0.0) + spent - since
            now, since = stage, spent

    funnel.run(policy, progress=told)
    told("end")
    for folder in ("released", "private"):
        shutil.rmtree(policy.parent / folder)
    return seconds | {"all": processor() - begun, "wall": time.perf_counter() - clock}


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
    """Every side in every round, in turn; each is told as soon as it is there, with what DuckDB took just before."""
    found: Measured = {name: [] for name in policies}
    for _ in range(rounds):
        for name, policy in policies.items():
            found[name].append(sanitise(policy))
            print(told(name, found[name][-1:], found["DuckDB, counts"][-1:]), flush=True)
    return found


def told(side: str, runs: list[dict[str, float]], base: list[dict[str, float]]) -> str:
    """A line of what a side took, against what DuckDB did, and where it went."""
    seconds, clock = median(runs, whole), median(runs, lambda run: run["wall"])
    names = [stage for stage in runs[0] if stage not in ("all", "wall")]
    stages = {stage: median(runs, lambda run, s=stage: run.get(s, 0.0)) for stage in names}
    parts = ", ".join(f"{stage.split(':')[0]} {s:.2f}" for stage, s in stages.items() if s >= 0.05)
    ratios = f"{clock / median(base, lambda run: run['wall']):>7.2f}, {seconds / median(base, whole):>6.2f}"
    return f"  {side:<20}{clock:>8.1f} s, {seconds:>7.1f} of processors; to DuckDB's {ratios}: {parts}"


def median(found: list[dict[str, float]], what: Callable[[dict[str, float]], float]) -> float:
    """Of a figure of all rounds."""
    return statistics.median(map(what, found))


def whole(one: dict[str, float]) -> float:
    """Processor seconds of a run."""
    return one["all"]


def alone(stages: Sequence[str], one: dict[str, float]) -> float:
    """Processor seconds of a run that no cluster makes less: of these stages."""
    return sum(one.get(stage, 0.0) for stage in stages)


def line(sizes: tuple[int, int], found: tuple[float, float]) -> tuple[float, float]:
    """Seconds whatever the rows, and for each row, neither below none: the line through two measurements."""
    slope = max(0.0, (found[1] - found[0]) / (sizes[1] - sizes[0]))
    return max(0.0, found[0] - slope * sizes[0]), slope


def estimates(sizes: tuple[int, int], found: tuple[Measured, Measured], rows: int, cores: int) -> list[str]:
    """What so many rows take on so many cores: what is done in parts is divided, what one process does is not."""
    lines = []
    for name in SIDES:
        fixed, each = line(sizes, (median(found[0][name], whole), median(found[1][name], whole)))
        text = f"  {name:<20}{fixed:>8.1f} s a run, {each * 1e9:>8.1f} ns a row"
        if name.startswith("Spark"):
            own = partial(alone, WRITING.get(name, ALONE))
            one = line(sizes, (median(found[0][name], own), median(found[1][name], own)))[1]
            divided = max(0.0, each - one) * rows / cores
            total = fixed + divided + one * rows
            text += (
                f"; {rows:,} rows on {cores} cores: {total / 60:,.1f} min "
                f"({fixed:.0f} s + {divided:,.0f} s in parts + {one * rows:,.0f} s by the one of the job)"
            )
        lines.append(text)
    return lines


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
    sizes, found = (options.rows // 5, options.rows), list[Measured]()
    print(f"{CORES} cores of this machine, {options.values} values, {options.rounds} rounds in turn", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for rows in sizes:
            made = policies(Path(name) / str(rows), rows, options.values)
            if not found:
                begun = sanitise(made["Spark, counts"])["all"]
            print(f"\n{rows:,} rows, {os.getloadavg()[0]:.1f} processes at work on this machine", flush=True)
            found.append(turns(made, options.rounds))
    if options.rounds > 1:
        for rows, one in zip(sizes, found, strict=True):
            print(f"\n{rows:,} rows, medians")
            print("\n".join(told(side, runs, one["DuckDB, counts"]) for side, runs in one.items()))
    more = begun - median(found[0]["Spark, counts"], whole)
    print(f"\nThe first run of a process begins Spark: {more:.1f} s more. Of each side, in processor seconds:")
    print("\n".join(estimates(sizes, (found[0], found[1]), options.estimate, options.cores)))
