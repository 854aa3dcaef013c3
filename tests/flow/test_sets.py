"""Releases of sets: written, read back, estimated and audited, in either form and either file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.errors import FunnelError, PolicyError
from tests.support.census import census
from tests.support.forging import Forged, edit, seal
from tests.support.policies import write_policy

UNARY = {"kind": "unary-encoding", "release": "set"}
BITS = {"kind": "unary-encoding", "release": "bits"}


@pytest.fixture
def released(tmp_path, key, monkeypatch):
    """A release made in this process, and where its evidence is."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def make(**changes) -> tuple[funnel.Summary, Path, Path]:
        changes = {"mechanism": UNARY, "public": ["relationship"]} | changes
        summary = funnel.run(write_policy(tmp_path, **changes))
        return summary, Path(summary.release), tmp_path / "private"

    return make


def data(release: Path) -> Path:
    return next(path for path in release.iterdir() if path.name.startswith("data."))


def failed(release: Path, private: Path) -> set[str]:
    found = funnel.audit_release(release, private).findings
    return {one.claim for one in found if one.status == "failed"}


@pytest.mark.long
@pytest.mark.parametrize("form", ["set", "bits"])
@pytest.mark.parametrize("file", ["parquet", "csv"])
def test_a_release_of_sets_is_audited_and_estimated(released, form, file):
    _, release, private = released(mechanism=UNARY | {"release": form}, release__format=file)
    report = funnel.audit_release(release, private)
    assert report.passed, report.text()
    assert {one.claim for one in report.unchecked} <= {"utility-bound"}

    joint = census("marital_status", "relationship")
    values, true = joint.blocks[0].values, joint.table().sum(axis=0)
    (block,) = funnel.estimate_counts(release).blocks
    assert [one.values for one in block.estimates] == [(value,) for value in values]
    for one, count in zip(block.estimates, true, strict=True):
        assert abs(one.count - count) < 5 * one.standard_error
        assert one.low < one.count < one.high
    assert block.outputs == 1 << len(values)

    rows = duckdb.sql(f"SELECT * FROM '{data(release)}'")
    if form == "set":
        assert rows.columns == ["relationship"]
        sets = [json.loads(text) for (text,) in rows.fetchall()]
        held = [sum(value in one for one in sets) for (value,) in values]
    else:
        assert rows.columns == [f"relationship={value}" for (value,) in values]
        table = np.array(rows.fetchall(), int)
        assert set(np.unique(table)) == {0, 1}
        assert (np.lexsort(table.T[::-1]) == np.arange(len(table))).all()
        held = table.sum(axis=0).tolist()
    assert held == [one.released for one in block.estimates]


def test_both_forms_hold_the_same_sets(released):
    _, as_sets, _ = released()
    _, as_bits, _ = released(mechanism=BITS)
    texts = [json.loads(text) for (text,) in duckdb.sql(f"SELECT * FROM '{data(as_sets)}'").fetchall()]
    rows = duckdb.sql(f"SELECT * FROM '{data(as_bits)}'")
    names = [name.removeprefix("relationship=") for name in rows.columns]
    assert texts == [[n for n, bit in zip(names, row, strict=True) if bit] for row in rows.fetchall()]


def test_the_program_says_what_it_did(command, tmp_path):
    path = write_policy(tmp_path, mechanism=UNARY)
    run = command("run", path, "--json")
    assert run.code == 0, run.err
    summary = run.json
    assert summary["mechanism"] == "unary-encoding"
    assert 0.999 <= summary["leakage"]["lip"] <= 1
    assert summary["utility"]["normalised"] == pytest.approx(0.182, abs=5e-4)
    assert summary["alphabet"]["released"] == 1 << 16
    assert "alpha" in summary["blocks"][0]["solver"]
    release, private = summary["release"], tmp_path / "private"
    assert command("audit", release, "--private", private).code == 0
    assert "known" in command("estimate", release).out
    (block,) = json.loads((Path(release) / "protocol.json").read_text())["blocks"]
    assert block["kind"] == "unary"
    assert 2 * block["present"] == 1 << block["bits"]
    assert command("report", release, "--private", private, "--to", tmp_path / "full").code == 0
    full = json.loads((tmp_path / "full" / "report.json").read_text())
    changes = [one["change"] for one in full["evidence"]["secrets"]]
    assert max(changes) == pytest.approx(1, abs=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("notion", ["ldp", "ldp-x", "srlip"])
def test_other_notions_are_audited_too(released, notion):
    public = [["relationship", "sex"]] if notion == "srlip" else ["relationship"]
    summary, release, private = released(privacy__notion=notion, public=public, estimate__minimum=1)
    assert funnel.audit_release(release, private).passed
    assert not summary.measured.own.nats > 1


@pytest.mark.long
def test_two_blocks_of_sets_together(released):
    _, release, private = released(public=["relationship", "sex"], mechanism=BITS)
    assert funnel.audit_release(release, private).passed
    assert len(funnel.estimate_counts(release).blocks) == 2


def test_above_what_the_values_give_away_they_are_released_as_they_are(released):
    summary, release, private = released(
        sensitive=["sex"], public=["education_num"], privacy__epsilon=3.0, estimate__minimum=1
    )
    assert "released as they are" in summary.as_dict()["blocks"][0]["solver"]
    assert summary.measured.normalised == pytest.approx(1)
    rows = duckdb.sql(f"SELECT * FROM '{data(release)}'")
    assert (rows.columns, str(rows.types[0])) == (["education_num"], "SMALLINT")
    assert funnel.audit_release(release, private).passed


@pytest.mark.long
@pytest.mark.parametrize("form", ["set", "bits"])
@pytest.mark.parametrize("file", ["parquet", "csv"])
def test_odd_values_come_back(tmp_path, released, form, file):
    """Missing values, empty ones, quotes, commas, brackets; alone and as part of pairs."""
    random = np.random.default_rng(1)
    odd = np.array([None, "", 'say "hi"', "a, b", '["x"]', "null", "é\u2028"], object)
    place = random.integers(0, len(odd), 4_000)
    table = pa.table(
        {
            "s": pa.array(np.where(random.random(4_000) < 0.3 + 0.05 * place, "yes", "no")),
            "odd": pa.array(odd[place].tolist(), pa.string()),
            "n": pa.array((place % 2).tolist()),
        }
    )
    pq.write_table(table, tmp_path / "odd.parquet")
    _, release, private = released(
        source={"table": "odd.parquet", "missing": "category"},
        draws={"kind": "fresh"},
        sensitive=["s"],
        public=[["odd", "n"]],
        privacy__epsilon=0.2,
        mechanism=UNARY | {"release": form},
        release__format=file,
    )
    report = funnel.audit_release(release, private)
    assert report.passed, report.text()
    (block,) = funnel.estimate_counts(release).blocks
    for one in block.estimates:
        ((text, number),) = one.values
        true = sum(odd[p] == text and str(p % 2) == number for p in place)
        assert abs(one.count - true) < 5 * one.standard_error


def test_bits_of_values_that_differ_in_case_alone_have_no_names(tmp_path, released):
    random = np.random.default_rng(1)
    x = random.integers(0, 3, 900)
    s = np.where(random.random(900) < 0.2 + 0.2 * x, "y", "n")
    pq.write_table(pa.table({"s": s, "x": np.array(["A", "a", "b"])[x]}), tmp_path / "t.parquet")
    options = {
        "source": {"table": "t.parquet"},
        "draws": {"kind": "fresh"},
        "sensitive": ["s"],
        "public": ["x"],
        "privacy__epsilon": 0.1,
    }
    with pytest.raises(FunnelError) as caught:
        released(**options, mechanism=BITS)
    assert caught.value.code == "duplicate-column"
    assert "release: set" in caught.value.advice
    assert "two released columns would be named 'x=…'" in caught.value.text()  # what stands behind it is a person's
    assert "'x=A'" in caught.value.text(values=True)
    _, release, private = released(**options)
    assert funnel.audit_release(release, private).passed


def test_too_many_values_are_refused_with_advice(released):
    with pytest.raises(FunnelError) as caught:
        released(public=["age"], estimate__minimum=1)
    assert caught.value.code == "alphabet-too-large"
    assert "bins" in caught.value.advice


def test_side_knowledge_asks_for_one_block(tmp_path):
    path = write_policy(
        tmp_path, privacy__notion="srlip", public=["relationship", "sex"], mechanism="unary-encoding"
    )
    with pytest.raises(PolicyError) as caught:
        funnel.load(path)
    assert caught.value.code == "mechanism-notion"
    assert "one block" in caught.value.text()


def reseal(release: Path, private: Path) -> None:
    """Make hashes fit again, as someone would who may write all files."""
    seal([Forged(release, private / release.name)])


def flip_a_column(release: Path) -> None:
    path = data(release)
    lines = path.read_text().splitlines()
    flipped = [f"{1 - int(line[0])}{line[1:]}" for line in lines[1:]]
    path.write_text("\n".join([lines[0], *sorted(flipped)]) + "\n")


def unsort(release: Path) -> None:
    path = data(release)
    head, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([head, *rest, first]) + "\n")


def coins(**change: Callable[[dict], int]) -> Callable[[Path], None]:
    """Other coins in the protocol, made from those there are."""

    def tamper(release: Path) -> None:
        def other(document: dict) -> None:
            block = document["blocks"][0]
            block.update({key: make(dict(block)) for key, make in change.items()})

        edit(release / "protocol.json", other)

    return tamper


@pytest.mark.long
@pytest.mark.parametrize(
    ("tamper", "claims"),
    [
        (flip_a_column, {"data-export"}),
        (unsort, {"data-export"}),
        (coins(present=lambda old: old["absent"], absent=lambda old: old["present"]), {"protocol"}),
        (coins(absent=lambda old: old["absent"] // 2), {"leakage-bound", "leakage-stated", "draw-fit"}),
        (coins(present=lambda old: old["present"] + 1), {"mechanism"}),
    ],
    ids=["a column flipped", "not sorted", "swapped", "louder", "no half"],
)
def test_what_was_altered_is_found(released, tamper, claims):
    _, release, private = released(mechanism=BITS, release__format="csv")
    tamper(release)
    assert "file-hashes" in failed(release, private)
    reseal(release, private)
    assert claims <= failed(release, private)


def test_a_set_spelt_otherwise_is_found(released):
    _, release, private = released(release__format="csv")
    path = data(release)
    head, *rows = path.read_text().splitlines()
    place = next(i for i, row in enumerate(rows) if '"",""' in row)
    rows[place] = rows[place].replace('"",""', '"", ""', 1)
    path.write_text("\n".join([head, *rows]) + "\n")
    reseal(release, private)
    assert "data-export" in failed(release, private)
