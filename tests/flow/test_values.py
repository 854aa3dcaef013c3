"""What is refused is told in numbers: whose values it is about is for a terminal, and only when it is asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.errors import BUG, FunnelError, SourceError
from tests.support.policies import write_policy

PEOPLE = "SELECT i AS id, 's' || (i % 2) AS s, {} FROM range(99) t(i)"
RARE = PEOPLE.format("if(i < 3, 'Smith', 'x') AS x")
FORMULA = PEOPLE.format("if(i < 33, '=Smith()', 'x') AS x")
NUMBERS = PEOPLE.format("if(i = 7, 'Smith', '' || i % 5) AS x")
TOGETHER = PEOPLE.format("'a' || i // 9 AS x, 'b' || i % 9 AS y, 'Smith' || i % 5 AS z")
ROBUST = {"privacy": {"notion": "rldp", "epsilon": 1.0}, "mechanism": "polyopt", "public": ["x", "y", "z"]}
REFUSED = {
    "rare": (RARE, {}, "1 of 2 values of x has fewer than 10 records", "'Smith' (3)"),
    "combinations": (TOGETHER, ROBUST, "combinations of x + y + z have counts below 5", "Smith0"),
    "no number": (NUMBERS, {"source__filter": "CAST(x AS INTEGER) < 9"}, "what cannot be read", "Smith"),
    "formula": (FORMULA, {"release__format": "csv"}, "for formulas", "=Smith()"),
}  # fmt: skip


@pytest.fixture
def refused(tmp_path: Path):
    """A policy whose run refuses its table, by the name of the refusal."""

    def write(name: str) -> Path:
        query, changes, *_ = REFUSED[name]
        duckdb.sql(f"COPY ({query}) TO '{tmp_path}/table.parquet'")
        minimum = {"estimate": {"minimum": 5}} if name == "combinations" else {}
        source = {"source": {"table": "table.parquet", "entity": "id"}, "sensitive": ["s"], "public": ["x"]}
        return write_policy(tmp_path, **source | minimum | changes)

    return write


@pytest.mark.long
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_numbers_and_nobodys_values(name: str, refused, command) -> None:
    path = refused(name)
    for asked in ("run", "plan", "check", "lock"):
        for json_ in ((), ("--json",)):
            said = command(asked, path, *json_)
            assert said.code == 1, (asked, said)
            assert "Smith" not in said.err + said.out, asked
    run = command("run", path, "--json")
    assert REFUSED[name][2] in run.err
    assert "at a terminal, --show-values names them" in run.err
    assert REFUSED[name][2] in json.loads(run.out)["error"]["message"]


@pytest.mark.parametrize("name", REFUSED)
def test_values_are_named_where_somebody_asks_at_a_terminal(name: str, refused, command, monkeypatch) -> None:
    path = refused(name)
    elsewhere = command("run", path, "--show-values")
    assert (elsewhere.code, "is for a terminal" in elsewhere.err, "Smith" in elsewhere.err) == (2, True, False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    asked = command("run", path, "--show-values", "--json")
    assert (asked.code, REFUSED[name][3] in asked.err) == (1, True), asked.err
    assert "Smith" not in asked.out


def test_an_exception_that_nobody_catches_names_no_values(refused, key, monkeypatch) -> None:
    monkeypatch.setenv("FUNNEL_KEY", key)
    with pytest.raises(FunnelError) as caught:
        funnel.run(refused("rare"))
    assert "Smith" not in str(caught.value)
    assert isinstance(caught.value, SourceError) and "Smith" in (caught.value.values or "")


def test_neither_does_a_fault_of_the_program(refused, command, monkeypatch) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise KeyError("Smith")

    monkeypatch.setattr("funnel.api.run", stumble)
    said = command("run", refused("rare"))
    assert (said.code, "KeyError" in said.err, "Smith" in said.err) == (BUG, True, False)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_both_zeros_are_one_value(form: str, tmp_path: Path, command) -> None:
    """A small negative that was rounded is -0.0, which SQL holds for 0.0; the text of it is another one."""
    balance = "CASE i % 4 WHEN 0 THEN -0.0::DOUBLE WHEN 1 THEN 0.0 WHEN 2 THEN 1.5 ELSE -1.0 END AS balance"
    query = f"SELECT i AS id, 's' || (i % 3 % 2) AS s, {balance}, 'c' || (i % 5) AS c FROM range(600) t(i)"
    table = tmp_path / f"table.{form}"
    duckdb.sql(f"COPY ({query}) TO '{table}'")
    assert "-0.0" in str(duckdb.sql(f"SELECT DISTINCT CAST(balance AS VARCHAR) FROM '{table}'").fetchall())
    cells = {"name": "w", "columns": ["balance", "c"], "cells": {"most": 12, "minimum": 20}}
    source = {"table": f"table.{form}", "entity": "id"}
    policy = write_policy(tmp_path, source=source, sensitive=["s"], public=[cells])
    assert command("check", policy).code == 0
    assert command("lock", policy).code == 0
    done = command("run", policy, "--locked", "--json")
    assert done.code == 0, done.err
    release = Path(done.json["release"])
    (block,) = json.loads((release / "cells.json").read_text())["blocks"]
    assert block["columns"][0]["values"] == ["-1.0", "0.0", "1.5"]
    audited = command("audit", release, "--private", tmp_path / "private" / release.name, "--table", table)
    assert audited.code == 0, audited.out
