"""Adult, twelve columns public and one hidden: releases side by side, judged by the same code.

Those of funnel have named rows: a wide block, its cells at epsilon 0, a block for each of four columns, every column by
an invariant protocol of its own (whose bounds hold one by one, not together). Synthetic rows by MST and AIM are
nobody's. `--scaling` measures a whole run against rows and columns instead.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import judging
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import synthetic
from judging import Coder, Distances
from measuring import processor

import funnel
from funnel.cells.fill import fill
from funnel.cells.record import opened
from funnel.data import Joint
from funnel.format.cells import NAME as CELLS
from funnel.format.cells import CellsFile
from funnel.format.schema import read
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS

CENSUS = Path(__file__).parent.parent / "census" / "census.parquet"
COLUMNS = (
    "age", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "capital_gain",
    "capital_loss", "hours_per_week", "native_country",
)  # fmt: skip
NARROW = ("education", "relationship", "race", "sex")
SURE = {"income": ">50K", "marital_status": "Never-married", "occupation": "Exec-managerial"}
"""The value that the classifier looks for."""
KEY = "FUNNEL_BENCHMARK_KEY"
POLICY = """version: 1
name: {name}
source: {{table: {table}, entity: person_id}}
estimate: {{minimum: 10}}
sensitive: [{secret}]
public: [{public}]
privacy: {{notion: lip, epsilon: {epsilon}}}
mechanism: invariant
draws: {{kind: permanent, key: env:FUNNEL_BENCHMARK_KEY}}
release: {{to: {folder}/{name}, private: {folder}/private/{name}, identify: [person_id]}}
"""
Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Side:
    """Rows as released, in the order of the people where they are `named`; coded ones are quantiles already.

    `labels` is the share of people whose labels are unchanged; `label` (n,) is released beside the columns; `bounded`
    where the bound is measured for all that a row tells.
    """

    rows: Table
    seconds: float
    named: bool = True
    coded: bool = False
    labels: float | None = None
    label: npt.NDArray[Any] | None = None
    bounded: bool = False


@dataclass(frozen=True)
class Row:
    """What is printed of one side; None where it does not apply, or the package for it is not installed."""

    side: str
    columns: int
    seconds: float | None = None
    quantiles: Distances | None = None
    own: Distances | None = None
    labels: float | None = None
    accuracy: float | None = None
    each: Mapping[str, float] = field(default_factory=dict)
    learned: list[float] | None = None
    bound: float | None = None
    predicts: float | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Truth:
    """The table, its secret, and how its columns are coded."""

    people: Table
    secret: str
    epsilon: float
    cells: int

    @property
    def public(self) -> tuple[str, ...]:
        """The columns that are released."""
        names = [*COLUMNS, "income"] if self.secret != "income" else COLUMNS
        return tuple(name for name in names if name != self.secret)

    def coder(self, name: str) -> Coder:
        """How a column is coded."""
        return Coder(self.people[name])

    def coarse(self) -> dict[str, npt.NDArray[np.int64]]:
        """All public columns by 20 quantiles."""
        return {name: self.coder(name).coarse(self.people[name]) for name in self.public}


def table(path: Path) -> Table:
    """A Parquet file, sorted by person."""
    return {name: np.asarray(one) for name, one in
            duckdb.sql(f"SELECT * FROM '{path}' ORDER BY person_id").fetchnumpy().items()}  # fmt: skip


def released(truth: Truth, folder: Path, name: str, public: str) -> tuple[Any, float]:
    """Run a policy with these public blocks: its summary, and the seconds of the whole run."""
    policy = folder / f"{name}.yaml"
    told = {"table": folder / "people.parquet", "secret": truth.secret, "epsilon": truth.epsilon}
    policy.write_text(POLICY.format(name=name, public=public, folder=folder, **told))
    begun = time.perf_counter()
    return funnel.run(policy), time.perf_counter() - begun


def wide(truth: Truth, folder: Path) -> Iterator[tuple[str, Side]]:
    """The wide block, and the same cells at epsilon 0."""
    block = f"{{name: cell, columns: [{', '.join(truth.public)}], cells: {truth.cells}}}"
    summary, seconds = released(truth, folder, "wide", block)
    path = Path(summary.release)
    rows = table(path / "data.parquet")
    label = rows.pop("cell").astype(np.int64) - 1
    del rows["person_id"]
    unchanged = summary.measured.faithful.unchanged
    yield f"wide block, {truth.cells} cells", Side(rows, seconds, labels=unchanged, label=label, bounded=True)
    cells = opened(read(CellsFile, CELLS, (path / CELLS).read_bytes()).blocks[0])
    chances = cells.shares / cells.shares.sum()
    begun = time.perf_counter()
    label = np.random.default_rng().choice(len(cells), len(label), p=chances)
    texts = cells.texts(fill(cells.profiles, label, os.urandom(32)))
    nobody = {column.name: np.array(text).astype(rows[column.name].dtype)
              for column, text in zip(cells.columns, texts, strict=True)}  # fmt: skip
    seconds = time.perf_counter() - begun
    yield "the same cells, ε = 0", Side(nobody, seconds, labels=float((chances**2).sum()), label=label)


def narrow(truth: Truth, folder: Path) -> Iterator[tuple[str, Side]]:
    """A block for each of a handful of columns, epsilon shared out by what is measured of all together."""
    names = [name for name in NARROW if name != truth.secret]
    public = ", ".join(f"{{name: {name}, rare: other}}" for name in names)
    summary, seconds = released(truth, folder, "narrow", public)
    rows = table(Path(summary.release) / "data.parquet")
    del rows["person_id"]
    unchanged = summary.measured.faithful.unchanged
    yield f"{len(names)} narrow blocks", Side(rows, seconds, labels=unchanged, bounded=True)


def one_by_one(truth: Truth) -> Iterator[tuple[str, Side]]:
    """Every column by the optimal invariant protocol of its own at the same epsilon."""
    begun, rows = time.perf_counter(), dict[str, npt.NDArray[Any]]()
    secrets, s = np.unique(truth.people[truth.secret], return_inverse=True)
    for name in truth.public:
        values, x = np.unique(truth.people[name], return_inverse=True)
        counts = np.bincount(s * len(values) + x, minlength=len(secrets) * len(values)).reshape(
            len(secrets), -1
        )
        joint = Joint.from_table(counts)
        notion = NOTIONS["lip"](notion="lip", epsilon=truth.epsilon)
        protocol = protect(joint, notion, MECHANISMS["invariant"](kind="invariant"), (1.0,)).protocols[0]
        drawn = np.random.default_rng().integers(0, 1 << protocol.bits, len(x))
        ends = np.cumsum(protocol.probabilities()[:, 0, :] * (1 << protocol.bits), axis=0)
        places = [joint.blocks[0].values.index(value) for value in protocol.outputs.values]
        rows[name] = values[np.array(places)[(drawn >= ends[:, x]).sum(axis=0)]]
    yield "column by column (PRAM)", Side(rows, time.perf_counter() - begun)


def nobodys(truth: Truth, seconds: float) -> Iterator[tuple[str, Side | str]]:
    """MST and AIM at the same number epsilon; a text where there is nothing to show."""
    for name, mechanism in (("MST", synthetic.mst), ("AIM", synthetic.aim)):
        if not synthetic.installed():
            yield name, judging.MISSING
            continue
        begun = time.perf_counter()
        try:
            rows = mechanism(truth.coarse(), truth.epsilon, seconds)
        except synthetic.NotFinishedError:
            yield name, f"not finished in {seconds:g} s"
            continue
        yield name, Side(rows, time.perf_counter() - begun, named=False, coded=True)


def true_rows(truth: Truth) -> Iterator[tuple[str, Side]]:
    """What nothing can be better than, and as many rows drawn from the true ones."""
    rows = {name: truth.people[name] for name in truth.public}
    yield "the true rows", Side(rows, 0.0)
    drawn = np.random.default_rng().integers(
        0, len(truth.people[truth.secret]), len(truth.people[truth.secret])
    )
    yield (
        "a bootstrap of them",
        Side({name: values[drawn] for name, values in rows.items()}, 0.0, named=False),
    )


def judge(truth: Truth, name: str, side: Side | str) -> Row:
    """All figures of a side."""
    if isinstance(side, str):
        return Row(name, 0, note=side)
    true = {column: truth.coder(column).coarse(truth.people[column]) for column in side.rows}
    coarse = {
        column: codes if side.coded else truth.coder(column).coarse(codes)
        for column, codes in side.rows.items()
    }
    people = true if side.coded else truth.people
    each = judging.accuracies(people, side.rows, named=side.named)
    secret, value = truth.people[truth.secret], SURE[truth.secret]
    told = [*coarse.values(), *([] if side.label is None else [side.label])]
    target = "sex"
    return Row(
        name,
        len(side.rows),
        side.seconds,
        judging.distances(list(true.values()), list(coarse.values())),
        None if side.coded else _own(truth, side),
        side.labels,
        float(np.mean(list(each.values()))),
        each,
        judging.learned(secret, value, told) if side.named else None,
        judging.ceiling(float((secret == value).mean()), truth.epsilon) if side.bounded else None,
        judging.predicts(true, coarse, target) if len(side.rows) == len(truth.public) else None,
        "by 20 quantiles" if side.coded else "",
    )


def _own(truth: Truth, side: Side) -> Distances:
    """Distances where every value counts for itself."""
    coders = {name: truth.coder(name) for name in side.rows}
    true = [coder.own(truth.people[name]) for name, coder in coders.items()]
    return judging.distances(true, [coder.own(side.rows[name]) for name, coder in coders.items()])


def compare(truth: Truth, seconds: float) -> Iterator[Row]:
    """The rows of the table as they come."""
    os.environ.setdefault(KEY, funnel.new_key())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people = truth.people
        columns = pa.table({name: pa.array(values) for name, values in people.items()})
        pq.write_table(columns, folder / "people.parquet")
        for sides in (true_rows(truth), wide(truth, folder), narrow(truth, folder), one_by_one(truth),
                      nobodys(truth, seconds)):  # fmt: skip
            for side, found in sides:
                yield judge(truth, side, found)


def line(row: Row) -> str:
    """One line of the table."""
    if row.quantiles is None:
        return f"{row.side:<25}{row.note}"
    return (
        f"{row.side:<25}{row.columns:>4}{_seconds(row.seconds)}{_distances(row.quantiles)}{_distances(row.own)}"
        f"{_share(row.labels)}{_share(row.accuracy)}{_tops(row.learned)}{_share(row.bound)}{_share(row.predicts)}"
    )


def _seconds(value: float | None) -> str:
    return f"{value:>8.1f}" if value else f"{'-':>8}"


def _share(value: float | None) -> str:
    return f"{'-':>7}" if value is None else f"{value:>7.3f}"


def _tops(found: list[float] | None) -> str:
    return f"{'-':>24}" if found is None else "  " + " ".join(f"{one:.3f}" for one in found).rjust(22)


def _distances(found: Distances | None) -> str:
    if found is None:
        return f"{'-':>32}"
    return f"{found.columns:>8.4f}{found.pairs:>8.4f}{found.largest:>8.4f}{found.triples:>8.4f}"


HEAD = (
    f"{'':<37}{'distances by 20 quantiles':>32}{'by own values':>32}{'unch.':>7}{'accu-':>7}"
    f"{'learned of S, top 1 2 5 10 %':>24}{'bound':>7}{'pre-':>7}\n"
    f"{'':<25}{'cols':>4}{'seconds':>8}" + f"{'columns':>8}{'pairs':>8}{'largest':>8}{'triples':>8}" * 2
    + f"{'':>7}{'racy':>7}{'':>24}{'':>7}{'dicts':>7}"
)  # fmt: skip


def made(rows: int, columns: int, path: Path) -> None:
    """A table whose columns depend on one another and on a hidden one, with ten to forty values each."""
    some = ", ".join(
        f"((h + hash(i * {j} + 1) % {3 + j % 7}) % {10 + j % 31})::INTEGER AS c{j}" if j % 2 else
        f"'v' || ((h * {j} + hash(i * {j} + 2) % 5) % {10 + j % 21})::VARCHAR AS c{j}"
        for j in range(1, columns + 1)
    )  # fmt: skip
    duckdb.sql(
        f"COPY (SELECT i AS person_id, 's' || ((h + hash(i + 3) % 3) % 4)::VARCHAR AS secret, {some} "
        f"FROM (SELECT i, hash(i) % 12 AS h FROM range({rows}) t(i))) TO '{path}'"
    )


def timed(rows: int, columns: int) -> float:
    """Processor seconds of a whole run on such a table, which other work on the machine does not lengthen."""
    os.environ.setdefault(KEY, funnel.new_key())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made(rows, columns, folder / "people.parquet")
        block = f"{{name: cell, columns: [{', '.join(f'c{j}' for j in range(1, columns + 1))}], cells: 200}}"
        begun = processor()
        released(Truth({}, "secret", 1.0, 200), folder, "wide", block)
        return processor() - begun


def scaling(rows: list[int], columns: list[int]) -> Iterator[str]:
    """Processor seconds against rows (first number of columns) and columns (first number of rows); the exponents."""
    for what, sizes in (
        ("rows", [(n, columns[0]) for n in rows]),
        ("columns", [(rows[0], d) for d in columns]),
    ):
        seconds = []
        for n, d in sizes:
            seconds.append(timed(n, d))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            bar = "#" * round(4 * math.log2(1 + seconds[-1]))
            yield f"{n:>10,} rows {d:>4} columns {seconds[-1]:>8.1f} s  {peak:>7,.0f} MiB so far  {bar}"
        grown = [math.log(size[what == "columns"]) for size in sizes]
        if len(sizes) > 1:
            yield f"time grows with {what} to the power {np.polyfit(grown, np.log(seconds), 1)[0]:.2f}"


def main(arguments: list[str]) -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(prog="benchmark wide", description=__doc__)
    parser.add_argument("--secret", choices=SURE, default="income")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--people", type=int, default=0, help="the first so many (all)")
    parser.add_argument("--seconds", type=float, default=600.0, help="for MST, and for AIM (600)")
    parser.add_argument("--json", action="store_true", help="one JSON object per row, as they come")
    parser.add_argument("--scaling", action="store_true", help="processor seconds against rows and columns")
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000, 200_000, 400_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 20, 40])
    asked = parser.parse_args(arguments)
    if asked.scaling:
        for told in scaling(asked.rows, asked.columns):
            print(told, flush=True)
        return
    people = {name: values[: asked.people or None] for name, values in table(CENSUS).items()}
    if not asked.json:
        print(f"{len(people[asked.secret]):,} people, {asked.secret} hidden, ε = {asked.epsilon:g}\n{HEAD}")
    for row in compare(Truth(people, asked.secret, asked.epsilon, asked.cells), asked.seconds):
        print(json.dumps(asdict(row)) if asked.json else line(row), flush=True)
    if judging.learner() is None and not asked.json:
        print(judging.MISSING)
