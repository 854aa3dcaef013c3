"""A commented starter policy for a table that nobody has described yet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.engines.duckdb import DuckDB
from funnel.engines.source import find
from funnel.engines.sql import identifier
from funnel.errors import SourceError

_TELLING = (
    "diagnos",
    "disease",
    "health",
    "income",
    "salary",
    "marital",
    "religion",
    "ethnic",
    "race",
    "sex",
    "gender",
    "orientation",
    "party",
    "convict",
    "disab",
)
_FEW = 40


@dataclass(frozen=True)
class Column:
    """A column with its type, number of distinct values, missing values, and least frequent value's count."""

    name: str
    kind: str
    distinct: int
    missing: int
    rarest: int


def starter(table: Path, folder: Path) -> str:
    """A policy for `folder` that `funnel check` accepts, with the choices left to make as comments.

    Raises SourceError.
    """
    source = find(table.absolute())
    with DuckDB(source) as engine:
        rows, columns = _look(engine)
    if rows == 0:
        raise SourceError("source-empty", "the table has no rows", where=str(table))
    entity = next(
        (
            c
            for c in columns
            if c.distinct == rows and not c.missing and c.kind.startswith(("INT", "BIGINT", "VARCHAR"))
        ),
        None,
    )
    usable = [c for c in columns if 2 <= c.distinct <= _FEW]
    if len(usable) < 2:
        raise SourceError(
            "source-unreadable",
            "no two columns have between 2 and 40 values, so there is nothing to propose",
            where=str(table),
            advice="Write the policy by hand: see policies/ for examples.",
        )
    secret = next((c for word in _TELLING for c in usable if word in c.name.lower()), usable[-1])
    public = max(
        (c for c in usable if c is not secret and c.rarest >= 10),
        key=lambda c: c.distinct,
        default=next(c for c in usable if c is not secret),
    )
    return _text(Path(os.path.relpath(table, folder)), rows, columns, entity, secret, public)


def _look(engine: DuckDB) -> tuple[int, list[Column]]:
    """Rows, and what a policy's author wants to know of every column."""
    engine.prepare((f"CREATE TEMP VIEW source AS SELECT * FROM {engine.source.reader}",))
    (rows,) = engine.row("SELECT count(*) FROM source")
    found = []
    for name, kind in engine.schema().items():
        quoted = identifier(name)
        distinct, present = engine.row(f"SELECT count(DISTINCT {quoted}), count({quoted}) FROM source")
        rarest = 0
        if 0 < distinct <= _FEW:
            (rarest,) = engine.row(f"SELECT min(n) FROM (SELECT count(*) AS n FROM source GROUP BY {quoted})")
        found.append(Column(name, kind, distinct, rows - present, rarest))
    return rows, found


def _text(
    table: Path, rows: int, columns: Sequence[Column], entity: Column | None, secret: Column, public: Column
) -> str:
    """The policy file."""
    described = "\n".join(
        f"#   {c.name:<20} {c.kind:<10} {c.distinct:>9,} values"
        + (f", {c.missing:,} missing" if c.missing else "")
        for c in columns
    )
    minimum = min(10, public.rarest)
    note = (
        ""
        if minimum == 10
        else f"   # {public.name} has a value with {public.rarest} records; 10 or more is safer: use `top`"
    )
    missing = "category" if secret.missing or public.missing else "error"
    draws = (
        "draws:\n  kind: permanent              # the same person answers the same way every night\n"
        "  key: env:FUNNEL_KEY          # export FUNNEL_KEY=$(funnel key new)\n"
        if entity
        else "draws:\n  kind: fresh                  # name an entity column above to make draws permanent\n"
    )
    holder = (
        f"  entity: {_yaml(entity.name)}              # identifies a person; at most one row each\n"
        if entity
        else ""
    )
    return f"""# A starter policy for {table.name} ({rows:,} rows). Review every line, above all `sensitive`.
# Columns of the table:
{described}
version: 1
name: {_slug(table)}
description: TODO say what is published, and what stays hidden
source:
  table: {_yaml(str(table))}
{holder}  missing: {missing}               # missing values: category | drop | error
estimate:
  minimum: {minimum}                  # every public value needs this many records{note}
sensitive: [{_yaml(secret.name)}]      # a guess by name: put the secret here; it is never released
public:                        # what is released, sanitised; a column that is not named is not released
  - {_yaml(public.name)}
#  - name: age                 # a number in half-open intervals
#    bins: [0, 25, 45, 65]
#  - name: country             # the ten most frequent values, the rest is "other"
#    top: 10
#  - [education, occupation]   # sanitised together, as one alphabet
privacy:
  notion: lip                  # lip: no belief about the secret moves by more than a factor e^epsilon
  epsilon: 1.0                 # smaller is more private
mechanism: optimal
{draws}release:
  to: releases/{_slug(table)}
  private: private/{_slug(table)}   # counts and evidence; keep it away from readers of the release
  format: parquet
"""


def _slug(table: Path) -> str:
    """A name for policy and folders."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in table.name.split(".")[0].lower())
    return kept.strip("-") or "release"


def _yaml(text: str) -> str:
    """A plain word as it is, anything else in quotes."""
    return (
        text
        if text.replace("_", "a").isalnum() and text[0].isalpha()
        else "'" + text.replace("'", "''") + "'"
    )
