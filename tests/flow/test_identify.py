"""Rows with a name: keys published untouched beside what was drawn for them, by the real program."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.audit.kernel.check import UNKNOWABLE
from funnel.data.convert import protocols_of
from funnel.engine import Source
from funnel.format import reported
from funnel.format.manifest import Manifest
from funnel.format.protocol import ProtocolFile
from funnel.format.released import ReleasedFile
from funnel.format.schema import read
from funnel.plan import run
from funnel.release.export import Target
from funnel.release.named import export_named
from funnel.report.catalogue import notes
from tests.flow.conftest import nothing_published
from tests.support.audited import detail, failures
from tests.support.census import CENSUS
from tests.support.forging import Forged
from tests.support.policies import write_policy

OCCUPIED = {
    "sensitive": ["marital_status"],
    "public": ["relationship"],
    "release__identify": "person_id",
}


@pytest.fixture
def released(tmp_path, key, monkeypatch):
    """A release made in this process, of a table in the policy's folder or the census."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def make(**changes) -> Path:
        return Path(str(funnel.run(write_policy(tmp_path, **changes)).release))

    return make


def people(folder: Path, rows: int = 600, suffix: str = "parquet", **columns: str) -> Path:
    """A table whose rows have a key of a text and a number, in no order; `columns` are SQL over i."""
    told = {
        "register": "CASE WHEN i % 2 = 0 THEN 'Ångström' ELSE 'a''b,\"c' END",
        "number": "(i * 7919) % 104729",
        "s": "'s' || (CASE WHEN i % 5 = 0 THEN i // 5 % 3 ELSE i % 4 % 3 END)",
        "x": "'x' || (i % 4)",
        "z": "i % 2",
    } | columns
    target = folder / f"people.{suffix}"
    made = ", ".join(f"{sql} AS {name}" for name, sql in told.items())
    duckdb.sql(f"COPY (SELECT {made} FROM range({rows}) t(i) ORDER BY hash(i)) TO '{target}' (FORMAT {suffix})")
    return target


SMALL = {
    "source": {"table": "people.parquet"},
    "draws": {"kind": "fresh"},
    "sensitive": ["s"],
    "public": ["x", "z"],
    "mechanism": "randomised-response",
    "release__identify": ["register", "number"],
}


@pytest.mark.long
def test_every_person_of_the_census_stands_there_once_with_the_answer_drawn_for_them(command, tmp_path):
    """Permanent draws are a function of person, value and key: without the key column they are the same, in counts."""
    named = command("run", write_policy(tmp_path, **OCCUPIED), "--json")
    assert named.code == 0, named.err
    assert named.json["identify"] == ["person_id"]
    rows = duckdb.sql(f"FROM '{named.json['release']}/data.parquet'")
    assert rows.columns == ["person_id", "relationship"]
    assert rows.types[0] == duckdb.sql(f"SELECT person_id FROM '{CENSUS}'").types[0]
    keys = [key for key, _ in rows.fetchall()]
    assert keys == sorted(keys)
    assert keys == [key for (key,) in duckdb.sql(f"SELECT person_id FROM '{CENSUS}' ORDER BY 1").fetchall()]
    plain = command("run", write_policy(tmp_path, **OCCUPIED | {"release__identify": None}), "--json")
    totals = duckdb.sql(f"FROM '{plain.json['release']}/data.parquet'").fetchall()
    assert Counter(value for _, value in rows.fetchall()) == Counter(value for (value,) in totals)
    audit = command("audit", named.json["release"], "--private", tmp_path / "private")
    assert audit.code == 0, audit.out
    assert "32561 rows read back, each with a key of its own, and the same bytes" in audit.out


def test_who_got_which_answer_is_kept(released, tmp_path):
    """With ε large nearly every row shows its own value: the share is what the protocol says, row by row."""
    people(tmp_path)
    release = released(**SMALL, privacy__epsilon=30.0, privacy__notion="ldp")
    true = f"SELECT register, number, x AS a, z AS b FROM '{tmp_path}/people.parquet'"
    same = duckdb.sql(
        f"SELECT count(*) FROM '{release}/data.parquet' JOIN ({true}) USING (register, number) WHERE x = a AND z = b"
    ).fetchall()
    assert same == [(600,)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "mechanism"),
    [
        ("parquet", "randomised-response"),
        ("csv", {"kind": "unary-encoding", "release": "set"}),
        ("parquet", {"kind": "unary-encoding", "release": "bits"}),
    ],
    ids=["values", "sets", "bits"],
)
def test_keys_stand_first_sorted_and_whatever_is_drawn_behind_them(released, tmp_path, form, mechanism):
    people(tmp_path)
    release = released(**SMALL | {"mechanism": mechanism, "public": ["x"]}, release__format=form)
    table = duckdb.sql(f"FROM '{release}/data.{form}'")
    assert table.columns[:2] == ["register", "number"]
    keys = [row[:2] for row in table.fetchall()]
    assert keys == sorted(keys)
    assert len(set(keys)) == 600
    audit = funnel.audit_release(release, tmp_path / "private")
    assert audit.passed, audit.text()
    assert "read back, each with a key of its own, and the same bytes" in detail(audit, "data-export")
    stated = json.loads((release / "release.json").read_text())
    assert [key["name"] for key in stated["identify"]] == ["register", "number"]


def test_a_key_keeps_its_zeros_and_its_digits_in_a_text_file(released, tmp_path):
    """A number that was guessed would lose them: what stands there is published."""
    people(tmp_path, suffix="csv", register="lpad(CAST(i AS VARCHAR), 6, '0')",
           number="CAST(12345678901234567000 + i AS VARCHAR)")  # fmt: skip
    release = released(**SMALL | {"source": {"table": "people.csv"}})
    first = duckdb.sql(f"FROM '{release}/data.parquet' LIMIT 2").fetchall()
    assert [row[:2] for row in first] == [("000000", "12345678901234567000"), ("000001", "12345678901234567001")]


def test_only_the_rows_kept_need_a_name(released, tmp_path):
    """Rows that the filter or a missing value leaves out may have none, or somebody else's."""
    people(tmp_path, number="CASE WHEN i < 10 THEN NULL WHEN i < 20 THEN 7919 * 21 ELSE i * 7919 END",
           x="CASE WHEN i BETWEEN 10 AND 19 THEN NULL ELSE 'x' || (i % 4) END")  # fmt: skip
    source = {"table": "people.parquet", "filter": "number IS NOT NULL", "missing": "drop"}
    release = released(**SMALL | {"source": source, "release__identify": "number"})
    counted = duckdb.sql(f"SELECT count(*), count(DISTINCT number) FROM '{release}/data.parquet'")
    assert counted.fetchall() == [(580, 580)]


def test_rows_that_a_lock_leaves_out_take_their_names_with_them(command, tmp_path):
    people(tmp_path)
    changes = SMALL | {"public": [{"name": "x", "unseen": "drop"}, "z"], "accept": "unbounded"}
    path = write_policy(tmp_path, **changes)
    assert command("lock", path).code == 0
    people(tmp_path, x="CASE WHEN i % 10 = 3 THEN 'new' ELSE 'x' || (i % 4) END")
    run = command("run", path, "--locked", "--json")
    assert run.code == 0, run.err
    kept = duckdb.sql(f"SELECT number FROM '{tmp_path}/people.parquet' WHERE x <> 'new' ORDER BY 1").fetchall()
    assert duckdb.sql(f"SELECT number FROM '{run.json['release']}/data.parquet' ORDER BY 1").fetchall() == kept
    assert command("audit", run.json["release"], "--private", tmp_path / "private").code == 0


def test_how_many_keys_came_and_went_since_the_lock_is_for_the_private_folder(command, tmp_path):
    """Seventy-five rows of the lock's night are gone, and twenty-five have come; only the publisher is told."""
    people(tmp_path, number="i")
    path = write_policy(tmp_path, **SMALL)
    assert command("lock", path).code == 0
    people(tmp_path, rows=550, number="i + 100 * (i % 2) * (i // 500)")
    night = command("run", path, "--locked", "--json")
    assert night.code == 0, night.err
    assert (night.json["locked"]["new_keys"], night.json["locked"]["gone_keys"]) == (25, 75)
    private = tmp_path / "private" / Path(night.json["release"]).name
    said = "25 rows have a register and number that was not there then; 75 of then have no row now."
    assert said in json.loads((private / "report.json").read_bytes())["evidence"]["drift"]
    assert "not there then" not in (Path(night.json["release"]) / "report.html").read_text()
    (kept,) = (tmp_path / "private" / "locks").glob("*.parquet")
    assert kept.stat().st_mode & 0o077 == 0
    assert command("audit", night.json["release"], "--private", tmp_path / "private").code == 0
    kept.write_bytes(b"none")
    refused = command("run", path, "--locked")
    assert (refused.code, "[lock-damaged]" in refused.err) == (1, True)
    kept.unlink()
    silent = command("run", path, "--locked", "--json")
    assert (silent.code, silent.json["locked"]["new_keys"]) == (0, None)


@pytest.mark.parametrize(
    ("columns", "identify", "code", "said"),
    [
        ({"number": "i // 2"}, "number", "identify-repeated", "300 of 600 rows repeat the number of another row"),
        ({"number": "i // 4"}, ["register", "number"], "identify-repeated", "300 of 600 rows repeat the register + n"),
        ({"number": "nullif(i, 417)"}, "number", "identify-null", "1 of 600 rows have no number"),
        ({}, "nubmer", "unknown-column", "Did you mean number?"),
        ({"number": "[i]"}, "number", "identify", "which cannot name a row"),
        ({"number": "i / 2"}, "number", "identify", "DOUBLE, which cannot name a row"),
        ({}, "S", "identify", "`S` is sensitive (line 6), so it cannot be published untouched"),
        ({}, ["number", "z"], "identify", "`z` is public (line 9), so it cannot be published untouched"),
        ({}, ["number", "NUMBER"], "duplicate-column", "`NUMBER` is named twice"),
        ({}, [], "wrong-value", "must not be empty"),
        ({}, [1], "wrong-type", "must be a text"),
    ],
)
def test_keys_that_cannot_name_rows_are_refused_by_run_and_plan(command, tmp_path, columns, identify, code, said):
    people(tmp_path, **columns)
    path = write_policy(tmp_path, **SMALL | {"release__identify": identify})
    for verb in ("plan", "run"):
        refused = command(verb, path)
        assert refused.code == 1, refused.out
        assert f"[{code}]" in refused.err
        assert said in refused.err
        assert "417" not in refused.err
    assert nothing_published(tmp_path)


def test_keys_that_a_spreadsheet_would_carry_out_are_refused_without_being_told(released, tmp_path):
    people(tmp_path, number="CASE WHEN i = 5 THEN '=1+cmd' ELSE CAST(i AS VARCHAR) END")
    with pytest.raises(funnel.FunnelError, match=r"1 values of register . number would stand") as refused:
        released(**SMALL, release__format="csv")
    assert "cmd" not in str(refused.value)
    assert nothing_published(tmp_path)
    released(**SMALL, release__format="csv", release__formulas="keep")


def test_a_lock_is_of_one_table_keys_and_all(command, released, tmp_path, monkeypatch):
    """A table exchanged while the protocol is searched has other keys than those of the rows that were counted."""
    people(tmp_path, number="i")
    path = write_policy(tmp_path, **SMALL)
    honest = run.protect

    def meanwhile(*given):
        people(tmp_path, number="i + 1000")
        return honest(*given)

    monkeypatch.setattr(run, "protect", meanwhile)
    with pytest.raises(funnel.FunnelError, match="changed or vanished") as refused:
        funnel.make_lock(path)
    assert refused.value.code == "source-changed"
    assert not path.with_suffix(".lock.yaml").exists()


def test_keys_that_change_between_the_two_readings_end_the_run(released, tmp_path, monkeypatch):
    """Not one count is another; only the names are. Nothing tells but their order, where the files seem untouched."""
    people(tmp_path)
    honest = run.protect

    def meanwhile(*given):
        people(tmp_path, number="1", register="'somebody'")
        return honest(*given)

    monkeypatch.setattr(run, "protect", meanwhile)
    monkeypatch.setattr(Source, "check_unchanged", lambda _: None)
    with pytest.raises(funnel.FunnelError, match="changed between counting and drawing") as refused:
        released(**SMALL)
    assert refused.value.code == "source-changed"
    assert nothing_published(tmp_path)
    assert not list((tmp_path / "private").glob(".spill*"))


def rewritten(path: Path, change) -> None:
    """The table with other rows, written as the writer writes: texts that were drawn are dictionary-encoded."""
    table = change(pq.read_table(path))
    for place, name in enumerate(table.column_names):
        if name == "x":
            table = table.set_column(place, name, pc.dictionary_encode(table.column(name)))
    with pq.ParquetWriter(path, table.schema.remove_metadata(), compression="zstd", store_schema=False) as writer:
        writer.write_table(table)


def _set(table: pa.Table, column: str, values: list) -> pa.Table:
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


def _repeated(table: pa.Table) -> pa.Table:
    told = table.column("number").to_pylist()
    return _set(table, "number", [told[0], told[0], *told[2:]])


TAMPERED = {
    "a key twice": (_repeated, "rows are not sorted by key, each key once"),
    "a key missing": (lambda t: _set(t, "number", [None, *t.column("number").to_pylist()[1:]]), "not sorted by key"),
    "two rows in another order": (lambda t: t.take([1, 0, *range(2, len(t))]), "not sorted by key"),
    "a row less": (lambda t: t.slice(1), "not answered as often as was released"),
    "another answer": (lambda t: _set(t, "x", ["x0" if x != "x0" else "x1" for x in t.column("x").to_pylist()[:1]]
                                      + t.column("x").to_pylist()[1:]), "not answered as often"),
    "an answer that there is not": (lambda t: _set(t, "x", ["x9", *t.column("x").to_pylist()[1:]]),
                                    "values that were not released"),
    "a column beside": (lambda t: t.append_column("y", t.column("x")), "these are not the columns"),
    "a key of another type": (lambda t: t.set_column(1, "number", t.column("number").cast(pa.int32())),
                              "number has another type"),
    "no key": (lambda t: t.drop_columns(["number"]), "these are not the columns"),
}  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    """One release of rows with names, whose copies are tampered with."""
    folder = tmp_path_factory.mktemp("named")
    people(folder)
    return Path(str(funnel.run(write_policy(folder, **SMALL)).release))


@pytest.mark.parametrize("case", TAMPERED)
def test_a_table_that_is_not_what_was_released_fails_by_name(honest, tmp_path, case):
    """Whoever changes the table is caught by its hash; whoever changes the hash too, by what the table says."""
    change, said = TAMPERED[case]
    copy = forged(honest, tmp_path, lambda path: rewritten(path, change))
    audit = funnel.audit_release(copy)
    assert "data-export" in failures(audit)
    assert said in detail(audit, "data-export")


def test_names_are_compared_with_those_of_the_source(honest, tmp_path):
    """Somebody else's rows under their own names: what no file shows, the source does."""
    private, source = honest.parent.parent / "private", honest.parent.parent / "people.parquet"
    told = funnel.audit_release(honest, private, table=source)
    assert told.passed, told.text()
    assert "counted again, and their keys" in detail(told, "source-counts")
    people(tmp_path, number="(i * 7919) % 104729 + i // 599")
    other = funnel.audit_release(honest, private, table=tmp_path / "people.parquet")
    assert failures(other) == {"source-counts"}
    assert "the keys are not those of the source" in detail(other, "source-counts")


def test_swapped_names_are_what_no_file_can_show(honest, tmp_path):
    """Two keys that change places keep every total: the audit finds nothing, and its kernel says that it would not."""
    told = read(ProtocolFile, "protocol.json", (honest / "protocol.json").read_bytes())
    stated = read(Manifest, "release.json", (honest / "release.json").read_bytes())
    answers = read(ReleasedFile, "released.json", (honest / "released.json").read_bytes())
    table = pq.read_table(honest / "data.parquet")
    codes = [
        [one.outputs.index((str(value),)) for value in table.column(one.columns[0]).to_pylist()] for one in told.blocks
    ]
    one, other = next((i, j) for i in range(9) for j in range(i) if codes[0][i] != codes[0][j])
    for block in codes:
        block[one], block[other] = block[other], block[one]
    keys = [table.column(key.name).combine_chunks() for key in stated.identify]
    rows = pa.record_batch([*keys, *map(pa.array, codes)], names=["k0", "k1", "y0", "y1"])

    def write(path: Path) -> None:
        shown = notes(reported.read(reported.Published, honest))
        export_named(protocols_of(told), answers, stated.identify, [rows], Target(path, "parquet", notes=shown))

    audit = funnel.audit_release(forged(honest, tmp_path, write))
    assert audit.passed, audit.text()
    assert "that answers stand beside the keys of those for whom they were drawn" in UNKNOWABLE


def forged(release: Path, folder: Path, write: Callable[[Path], None]) -> Path:
    """A copy whose table is another, with its hash wherever one is told; the totals are those released."""
    copy = folder / release.name
    shutil.copytree(release, copy)
    write(copy / "data.parquet")
    Forged(copy, folder / "nothing kept").list_files()
    return copy
