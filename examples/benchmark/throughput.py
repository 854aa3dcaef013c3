"""Whole releases of many rows, beside DuckDB's plain COPY of the columns that they read, and beside other libraries."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import peers

POLICY = """version: 1
name: throughput
source: {{table: {table}{entity}}}
sensitive: [secret]
public: [category]
privacy: {{notion: lip, epsilon: 0.5}}
mechanism: {mechanism}
draws: {draws}
release: {{to: released, private: private, format: parquet, rows: {rows}}}
"""
PERMANENT = ", entity: id", "{key: env:FUNNEL_BENCHMARK_KEY}"
FRESH = "", "{kind: fresh}"
RUNS: dict[str, tuple[tuple[str, str], str, bool, str, float]] = {
    "fresh, counts": (FRESH, "counts", False, "category, secret", 0.7),
    "fresh, records": (FRESH, "records", False, "category, secret", 1.0),
    "permanent, locked": (PERMANENT, "records", True, "id, category, secret", 1.0),
    "permanent": (PERMANENT, "records", False, "id, category, secret", 1.3),
}
"""Of each kind of release: entity and draws, rows, whether it is locked, the columns it reads, and the ratio asked."""
COPIES = ("category", "category, secret", "id, category", "id, category, secret")
EXPONENT, MEMORY = 1.05, 1024
"""Of the time in rows, and MiB at most: what is asked."""


def people(path: Path, rows: int, values: int) -> None:
    """A table whose secret of four values leans on a category of `values` values."""
    duckdb.sql(f"""COPY (
        SELECT i AS id, 'category ' || (hash(i) % {values})::VARCHAR AS category,
               'secret ' || ((hash(i) % {values} + hash(i + 7) % 3) % 4)::VARCHAR AS secret
        FROM range({rows}) t(i)) TO '{path}'""")


def alone(side: Sequence[str], folder: Path) -> dict[str, Any]:
    """What a side measures of itself, in a process of its own: wall and processor seconds, stages, peak memory."""
    program = [sys.executable, str(Path(__file__)), *side]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(side)}\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


class _NoPandas:
    """As where pandas is not installed, which Spark alone needs: pyarrow brings it in wherever it finds it."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def measured(work: Callable[[Callable[..., None]], object]) -> dict[str, Any]:
    """Seconds of some work, of the processors, and of each stage that it reports; peak memory in MiB.

    Time begins before the imports that the work makes; the interpreter's own start is no part of it.
    """
    sys.meta_path.insert(0, _NoPandas())
    seconds, now = dict[str, float](), [""]
    wall, processor = time.perf_counter(), time.process_time()
    last = [wall]

    def told(stage: str, *_: object) -> None:
        if stage != now[0]:
            seconds[now[0]] = seconds.get(now[0], 0.0) + time.perf_counter() - last[0]
            now[0], last[0] = stage, time.perf_counter()

    work(told)
    told("end")
    spent = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor, "memory": _peak()}
    return spent | {"stages": {("start" if not one else one.split(":")[0]): s for one, s in seconds.items()}}


def _peak() -> float:
    """The most memory of this process in MiB; what the system says of children would be that of their parent."""
    told = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    return int(told.split()[0]) / 1024


def release(policy: str) -> dict[str, Any]:
    """One whole release: check, count, solve or not, draw, test, write, report, audit, publish."""

    def work(told: Callable[..., None]) -> object:
        from funnel.__main__ import begin

        begin()
        from funnel.lock.pin import lock_of
        from funnel.plan.run import execute
        from funnel.policy import load

        loaded = load(Path(policy))
        locked = Path(policy).with_suffix(".lock.yaml").exists()
        return execute(loaded, lock=lock_of(loaded) if locked else None, progress=told)

    return measured(work)


def copy(columns: str, table: str) -> dict[str, Any]:
    """DuckDB's own COPY."""
    return measured(lambda _: duckdb.sql(f"COPY (SELECT {columns} FROM '{table}') TO 'copied.parquet'"))


def prepared(folder: Path, table: Path, mechanism: str) -> dict[str, list[str]]:
    """The policies, with their locks, and by name what each side runs."""
    import funnel

    os.environ["FUNNEL_BENCHMARK_KEY"] = funnel.new_key()
    sides = {f"COPY {columns}": ["copy", columns, str(table)] for columns in COPIES}
    for name, ((entity, draws), rows, locked, _, _) in RUNS.items():
        policy = folder / f"{name.replace(', ', '-')}" / "policy.yaml"
        policy.parent.mkdir()
        policy.write_text(POLICY.format(table=table, entity=entity, draws=draws, rows=rows, mechanism=mechanism))
        if locked:
            funnel.make_lock(policy)
        sides[f"funnel {name}"] = ["release", str(policy)]
    return sides


def cleared(side: Sequence[str]) -> None:
    """Every round does the same work: a release finds none before it."""
    if side[0] == "release":
        folder = Path(side[1]).parent
        for path in [*folder.glob("released/*"), *folder.glob("private/*")]:
            if path.name != "locks":
                subprocess.run(["rm", "-r", str(path)], check=True)


def rounds(folder: Path, sides: dict[str, list[str]], times: int) -> dict[str, list[dict[str, Any]]]:
    """What each side measured in every round, the sides in turn."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for _ in range(times):
        for name, side in sides.items():
            cleared(side)
            found[name].append(alone(side, folder))
    return found


def middle(found: Sequence[dict[str, Any]], what: str) -> float:
    """The median of one figure."""
    return statistics.median(one[what] for one in found)


def ratio(found: Sequence[dict[str, Any]], against: Sequence[dict[str, Any]], what: str) -> float:
    """The median ratio, round by round."""
    return statistics.median(a[what] / b[what] for a, b in zip(found, against, strict=True))


def lines(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """A table of the sides: seconds, processor seconds, memory, and ratios to COPY of what a release reads."""
    head = ("side", "seconds", "processor", "MiB", "to COPY of what it reads", "asked", "processor", "to COPY category")
    rows = [f"  {head[0]:<28}{head[1]:>9}{head[2]:>11}{head[3]:>7}{head[4]:>26}{head[5]:>7}{head[6]:>11}{head[7]:>18}"]
    for name, one in found.items():
        told = f"  {name:<28}{middle(one, 'seconds'):>9.2f}{middle(one, 'processor'):>11.2f}"
        told += f"{middle(one, 'memory'):>7.0f}"
        if (run := RUNS.get(name.removeprefix("funnel "))) is not None:
            base = found[f"COPY {run[3]}"]
            told += f"{ratio(one, base, 'seconds'):>26.2f}{run[4]:>7.1f}{ratio(one, base, 'processor'):>11.2f}"
            told += f"{ratio(one, found['COPY category'], 'seconds'):>18.2f}"
        rows.append(told)
    return rows


def where(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Where the seconds of each release go."""
    told = []
    for name, runs in found.items():
        stages = runs[0]["stages"]
        median = {one: statistics.median(run["stages"].get(one, 0.0) for run in runs) for one in stages}
        parts = ", ".join(f"{one} {s:.2f}" for one, s in sorted(median.items(), key=lambda x: -x[1]) if s >= 0.01)
        told += [f"  {name}: {parts}"] if name.startswith("funnel") else []
    return told


def together(sizes: dict[int, dict[str, list[dict[str, Any]]]]) -> list[str]:
    """Of each kind of release the ratios at every size, of seconds and of processor seconds, and the most memory."""
    told = []
    for name, (_, _, _, read, asked) in RUNS.items():
        ratios = []
        for found in sizes.values():
            mine, base = found[f"funnel {name}"], found[f"COPY {read}"]
            ratios.append(f"{ratio(mine, base, 'seconds'):.2f} ({ratio(mine, base, 'processor'):.2f})")
        most = max(one["memory"] for found in sizes.values() for one in found[f"funnel {name}"])
        told.append(f"  {name:<20}{', '.join(ratios)}; asked {asked}; {most:,.0f} MiB of {MEMORY:,} at most")
    return told


def exponents(sizes: dict[int, dict[str, list[dict[str, Any]]]]) -> list[str]:
    """The slope of log seconds in log rows, by least squares; below 1 where a start is paid once."""
    x = [math.log(rows) for rows in sizes]
    told = []
    for name in next(iter(sizes.values())):
        for what in ("seconds", "processor"):
            slope = statistics.linear_regression(x, [math.log(middle(one[name], what)) for one in sizes.values()]).slope
            told.append(f"  {name}: {slope:.3f} ({what})")
    return told


def main(arguments: list[str]) -> None:
    """Run the comparison and print the tables."""
    parser = argparse.ArgumentParser(prog="benchmark throughput", description=__doc__)
    parser.add_argument("--rows", default="5", help="millions of rows, such as 20,50,100,200")
    parser.add_argument("--values", type=int, default=16, help="values of the public column")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mechanism", default="optimal")
    parser.add_argument("--folder", type=Path, help="where tables are made: 200 million rows take 2 GB")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    options = parser.parse_args(arguments)
    print(f"whole releases, each in a process of its own; {options.values} values, {os.cpu_count()} cores, "
          f"medians of {options.rounds} rounds in turn; processor: seconds of all cores together")  # fmt: skip
    sizes = dict[int, dict[str, list[dict[str, Any]]]]()
    for millions in options.rows.split(","):
        rows = round(float(millions) * 1e6)
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            people(folder / "people.parquet", rows, options.values)
            sides = prepared(folder, folder / "people.parquet", options.mechanism)
            sizes[rows] = rounds(folder, sides, options.rounds)
            print(f"\n{rows:,} rows, {os.getloadavg()[0]:.1f} processes at work on this machine in the last minute")
            print("\n".join([*lines(sizes[rows]), "where the seconds go", *where(sizes[rows])]), flush=True)
            if not options.no_peers and len(sizes) == 1:
                fresh = sizes[rows]["funnel fresh, records"]
                print("\n".join(peers.compared(rows / middle(fresh, "processor"), options.values)), flush=True)
    print(f"\nratios to COPY at {', '.join(f'{rows:,}' for rows in sizes)} rows (processor seconds in brackets)")
    print("\n".join(together(sizes)))
    if len(sizes) > 1:
        print(f"\nexponent of the time in rows (at most {EXPONENT} asked)")
        print("\n".join(exponents(sizes)))


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    print(json.dumps({"release": release, "copy": copy}[kind](*rest)))
