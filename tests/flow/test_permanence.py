"""The same key, person, value, block and protocol: the same answer, whatever else of a run is different.

Every run here is a whole one, audited and published; what each person answered in it is written down at the kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import funnel
from funnel.draw.draw import Drawer
from funnel.plan import draw as drawing
from tests.support.policies import write_policy
from tests.trials.drawing.tails import two_sided

PEOPLE = 6_000
CHANCE = 1e-9
"""With which each of the statistical tests here fails though all is well; the keys are new every time."""

JOBS = ["baker", "clerk", "farmer", "smith", None]
TOWNS = ["Ahlen", "Bonn, Rhein", "Celle"]

Answers = dict[tuple[str, str], tuple[str, str]]
"""By person and block: the value and what was answered."""


def table(people: int = PEOPLE) -> pa.Table:
    """People with a job, a town and a secret, in no order."""
    random = np.random.default_rng(7)
    jobs = random.integers(0, len(JOBS), people)
    return pa.table(
        {
            "id": pa.array(random.permutation(people).astype(np.int64) * 17 - 5_000),
            "s": pa.array([f"s{place}" for place in random.integers(0, 2, people)]),
            "job": pa.array([JOBS[place] for place in jobs], pa.string()),
            "town": pa.array([TOWNS[place] for place in random.integers(0, len(TOWNS), people)]),
            "age": pa.array(random.integers(18, 90, people)),
        }
    )


def stored(folder: Path, rows: pa.Table, name: str = "t.parquet") -> Path:
    """A policy in a folder with a table; randomised response, whose protocol needs the alphabets alone."""
    folder.mkdir(parents=True, exist_ok=True)
    if name.endswith(".parquet"):
        pa.parquet.write_table(rows, folder / name, row_group_size=700)
    else:
        with pa.OSFile(str(folder / "t.csv"), "wb") as file:
            pa.csv.write_csv(rows, file)
        if name.endswith(".gz"):
            with pa.CompressedOutputStream(str(folder / name), "gzip") as packed:
                packed.write((folder / "t.csv").read_bytes())
    return policy(folder, source__table=name)


def policy(folder: Path, **changes: object) -> Path:
    plain = {
        "source": {"table": "t.parquet", "entity": "id", "missing": "category"},
        "sensitive": ["s"],
        "public": ["job", "town"],
        "privacy": {"notion": "ldp-x", "epsilon": 2.0},
        "mechanism": "randomised-response",
    }
    return write_policy(folder, **plain | changes)


@contextmanager
def written_down() -> Iterator[Answers]:
    """What everybody answers in the runs inside."""
    answers: Answers = {}
    original = Drawer.draw

    def draw(self: Drawer, batch: pa.RecordBatch) -> pa.RecordBatch:
        drawn = original(self, batch)
        who = batch.column("entity").cast(pa.string()).to_pylist() if "entity" in batch.schema.names else []
        for block, protocol in enumerate(self._protocols):
            name = "+".join(protocol.inputs.columns)
            inputs, outputs = self.inputs(batch)[block].tolist(), drawn.column(block).to_pylist()
            for person, x, y in zip(who, inputs, outputs, strict=True):
                assert (person, name) not in answers, "nobody is drawn for twice in a run"
                answers[person, name] = (str(protocol.inputs.values[x]), str(protocol.outputs.values[y]))
        return drawn

    with patch.object(Drawer, "draw", draw):
        yield answers


def run(path: Path, **options: Any) -> Answers:
    """A run, audited by itself, and its answers."""
    with written_down() as answers:
        made = funnel.run(path, **options)
    assert funnel.audit_release(made.release, path.parent / "private").passed
    return answers


def told(path: str) -> None:
    """The answers of a run as JSON on standard output."""
    print(json.dumps(sorted([*key, *value] for key, value in run(Path(path)).items())))


@pytest.fixture(autouse=True)
def _with_key(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNNEL_KEY", key)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, key: str) -> Answers:
    """The first night."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FUNNEL_KEY", key)
        answers = run(stored(tmp_path_factory.mktemp("first"), table()))
    assert len(answers) == 2 * PEOPLE
    assert 0.1 < np.mean([x != y for x, y in answers.values()]) < 0.9, "answers that say nothing test nothing"
    return answers


def shuffled(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(np.random.default_rng(1).permutation(rows.num_rows)))


def as_text(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "id", rows["id"].cast(pa.string()))


def as_decimal(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "id", rows["id"].cast(pa.decimal128(38, 0)))


def packed(rows: pa.Table) -> pa.Table:
    return rows.set_column(2, "job", rows["job"].combine_chunks().dictionary_encode())


def wider(rows: pa.Table) -> pa.Table:
    return rows.select(["town", "age", "s", "id", "job"]).append_column(
        "more", pa.array(range(rows.num_rows))
    )


STORED: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "in another order": (shuffled, "t.parquet"),
    "with identifiers as text": (as_text, "t.parquet"),
    "with identifiers as decimals": (as_decimal, "t.parquet"),
    "with values as codes of a dictionary": (packed, "t.parquet"),
    "with other columns around": (wider, "t.parquet"),
    "as CSV": (shuffled, "t.csv"),
    "as packed CSV": (shuffled, "t.csv.gz"),
}


@pytest.mark.long
@pytest.mark.parametrize("how", STORED)
def test_however_the_table_is_stored(how: str, first: Answers, tmp_path: Path) -> None:
    change, name = STORED[how]
    rows = change(table())
    if not name.endswith(".parquet"):
        filled = rows["job"].combine_chunks().fill_null("")
        rows = rows.set_column(rows.schema.get_field_index("job"), "job", filled)
    assert run(stored(tmp_path, rows, name)) == first


def test_in_several_files(first: Answers, tmp_path: Path) -> None:
    rows = shuffled(table())
    for number in range(3):
        pa.parquet.write_table(rows.slice(2_000 * number, 2_000), tmp_path / f"part-{number}.parquet")
    assert run(policy(tmp_path, source__table="part-*.parquet")) == first


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 97, 1 << 20])
def test_whatever_the_batches(
    rows: int, first: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of one row for a part of the people, as 6,000 of them would take long."""
    monkeypatch.setattr(drawing, "BATCH", rows)
    found = run(stored(tmp_path, table() if rows > 1 else table().slice(0, 600)))
    assert found == {key: first[key] for key in found}
    assert len(found) == (1_200 if rows == 1 else 2 * PEOPLE)


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [{"memory": "100MB", "threads": 1}, {"threads": 2}, {"memory": "1GB", "threads": 7}]
)
def test_whatever_memory_and_threads(options: dict[str, Any], first: Answers, tmp_path: Path) -> None:
    assert run(stored(tmp_path, table()), **options) == first


def test_whoever_else_is_in_the_table(first: Answers, tmp_path: Path) -> None:
    """A filter, and people who came: the answers of the others are theirs."""
    path = stored(tmp_path / "fewer", table())
    fewer = run(policy(path.parent, source__filter="age < 40 AND town <> 'nowhere'"))
    assert 1_000 < len(fewer) < PEOPLE
    assert fewer == {key: first[key] for key in fewer}
    came = table(people=700)
    came = came.set_column(0, "id", pa.array(np.arange(700) + 10**9))
    more = run(stored(tmp_path / "more", pa.concat_tables([came, table()])))
    assert len(more) == 2 * (PEOPLE + 700)
    assert {key: more[key] for key in first} == first


@pytest.mark.long
def test_whatever_the_release_is_called_and_whichever_night(first: Answers, tmp_path: Path) -> None:
    path = stored(tmp_path, table())
    named = policy(path.parent, name="other", description="x", release__to="elsewhere", release__format="csv")
    assert run(named) == first
    assert run(named) == first


@pytest.mark.long
def test_in_another_process(first: Answers, tmp_path: Path) -> None:
    """With another seed of Python's hashes, another place and another time zone."""
    path = stored(tmp_path, table())
    root = Path(funnel.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import told; told({str(path)!r})"],
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {(who, block): (x, y) for who, block, x, y in json.loads(done.stdout)} == first


def test_blocks_in_another_order_or_alone(first: Answers, tmp_path: Path) -> None:
    """With the same share of epsilon each block has the protocol that it had."""
    turned = stored(tmp_path / "turned", table())
    assert run(policy(turned.parent, public=["town", "job"])) == first
    alone = stored(tmp_path / "alone", table())
    found = run(policy(alone.parent, public=["town"], privacy__epsilon=1.0))
    assert found == {key: value for key, value in first.items() if key[1] == "town"}


def test_the_key_as_a_file(first: Answers, key: str, tmp_path: Path) -> None:
    path = stored(tmp_path, table())
    (tmp_path / "a.key").write_text(key + "\n")
    (tmp_path / "a.key").chmod(0o600)
    assert run(policy(path.parent, draws__key="file:a.key")) == first


def chances(path: Path) -> dict[str, dict[tuple[str, str], float]]:
    """Q(y|x) of the newest release, by block."""
    blocks = json.loads((path.parent / "releases" / "latest" / "protocol.json").read_text())["blocks"]
    return {
        "+".join(block["columns"]): {
            (str(tuple(x)), str(tuple(y))): block["weights"][row][column] / 2 ** block["bits"]
            for row, y in enumerate(block["outputs"])
            for column, x in enumerate(block["inputs"])
        }
        for block in blocks
    }


def independent(
    pairs: list[tuple[tuple[str, str], tuple[str, str]]], law: dict[tuple[str, str], float]
) -> float:
    """The least chance of the counts of two answers given two values, each exact, times their number."""
    found: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
    for (x, y), (again, other) in pairs:
        cell = found.setdefault((x, again), {})
        cell[y, other] = cell.get((y, other), 0) + 1
    outputs, least, tests = sorted({y for _, y in law}), 1.0, 0
    for (x, again), cells in found.items():
        total = sum(cells.values())
        for y in outputs:
            for other in outputs:
                share = law[x, y] * law[again, other]
                least = min(least, float(two_sided(cells.get((y, other), 0), total, share)))
                tests += 1
    return least * tests


def test_another_key_answers_independently(
    first: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(tmp_path, table())
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    other = run(path)
    assert {key: x for key, (x, _) in other.items()} == {key: x for key, (x, _) in first.items()}
    for block, law in chances(path).items():
        pairs = [(first[key], other[key]) for key in first if key[1] == block]
        assert independent(pairs, law) > CHANCE / 2
        same = [(first[key], first[key]) for key in first if key[1] == block]
        assert independent(same, law) < CHANCE, "the test sees answers that are no new ones"


def test_a_changed_value_is_answered_anew_and_the_old_one_as_it_was(first: Answers, tmp_path: Path) -> None:
    """Half of the people change their job: independent of what they answered. Their towns answer as they did.
    Who goes back to the old job gives the old answer, not a third one."""
    rows = table()
    jobs = np.array([JOBS.index(job) for job in rows["job"].to_pylist()])
    moved = np.where(np.arange(PEOPLE) % 2 == 0, (jobs + 1 + np.arange(PEOPLE) % 3) % len(JOBS), jobs)
    changed_jobs = pa.array([JOBS[place] for place in moved], pa.string())
    path = stored(tmp_path / "moved", rows.set_column(2, "job", changed_jobs))
    later = run(path)
    changed = {key for key in first if first[key][0] != later[key][0]}
    assert len(changed) == PEOPLE // 2
    assert {block for _, block in changed} == {"job"}
    assert all(later[key] == first[key] for key in first if key not in changed)
    law = chances(path)["job"]
    assert independent([(first[key], later[key]) for key in changed], law) > CHANCE / 2
    assert np.mean([first[key][1] == later[key][1] for key in changed]) < 0.9
    assert run(stored(tmp_path / "back", rows)) == first


def test_the_released_table_is_what_was_answered(first: Answers, tmp_path: Path) -> None:
    path = stored(tmp_path, table())
    assert run(path) == first
    for block in ("job", "town"):
        rows = duckdb.sql(f"SELECT {block} FROM '{path.parent}/releases/latest/data.parquet'").fetchall()
        assert sorted(map(str, rows)) == sorted(y for (_, name), (_, y) in first.items() if name == block)


def test_the_same_night_twice_is_the_same_file(tmp_path: Path) -> None:
    """Bytes, not only counts."""
    seen = set()
    for name in ("a", "b"):
        path = stored(tmp_path / name, table() if name == "a" else shuffled(table()))
        run(path)
        seen.add(
            hashlib.sha256((path.parent / "releases" / "latest" / "data.parquet").read_bytes()).hexdigest()
        )
    assert len(seen) == 1
