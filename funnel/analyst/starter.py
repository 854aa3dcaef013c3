"""A commented starter policy for a table that nobody has described yet."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.engine import Engine, Source, find, open_engine
from funnel.engine.sql import identifier
from funnel.errors import SourceError

_TELLING = (
    *("secret", "sensitive", "confidential", "private", "diagnos", "disease", "health", "medic", "treatment"),
    *("income", "salary", "wage", "debt", "benefit", "marital", "religio", "belief", "ethnic", "race", "sex"),
    *("gender", "orientation", "party", "vote", "union", "convict", "crim", "offen", "disab", "pregnan"),
)
"""Parts of names that columns have which people want hidden."""
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no policy can name."""
_FEW = 40
_MINIMUM = 10


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
    with open_engine(source) as engine:
        rows, columns = _look(engine, source)
    if rows == 0:
        raise SourceError("source-empty", "the table has no rows", where=str(table))
    named = [c for c in columns if not _CONTROL.search(c.name)]
    entity = next(
        (c for c in named if c.distinct == rows and c.kind in ("INTEGER", "BIGINT", "VARCHAR")), None
    )
    usable = [c for c in named if c is not entity and 2 <= c.distinct <= _FEW]
    telling = [c for word in _TELLING for c in usable if word in c.name.lower()]
    secret = telling[0] if telling else usable[-1] if usable else None
    safe = [c for c in usable if c is not secret and c not in telling]
    if secret is None or not safe:
        raise SourceError(
            "nothing-to-propose",
            f"no column of 2 to {_FEW} values is left to release beside one to hide, so there is nothing to propose",
            where=str(table),
            advice="Write the policy by hand: see policies/ for examples.",
        )
    public = max(safe, key=lambda c: (c.rarest >= _MINIMUM, c.distinct))
    guess = "a guess by name" if telling else "no name gave the secret away: CHOOSE"
    return _text(Path(os.path.relpath(table, folder)), rows, columns, entity, secret, public, guess)


def _look(engine: Engine, source: Source) -> tuple[int, list[Column]]:
    """Rows, and what a policy's author wants to know of every column."""
    engine.prepare((f"CREATE TEMP VIEW source AS SELECT * FROM {source.reader}",))
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
    table: Path,
    rows: int,
    columns: Sequence[Column],
    entity: Column | None,
    secret: Column,
    public: Column,
    guess: str,
) -> str:
    """The policy file."""
    described = "\n".join(
        f"#   {_printable(c.name):<20} {c.kind:<10} {c.distinct:>9,} values"
        + (f", {c.missing:,} missing" if c.missing else "")
        for c in columns
    )
    called, minimum = _printable(table.name), min(_MINIMUM, public.rarest)
    note = (
        ""
        if minimum == _MINIMUM
        else f"   # {_printable(public.name)} has a value with {public.rarest} records; 10 or more is safer: use `top`"
    )
    missing = "category" if secret.missing or public.missing else "error"
    draws = (
        "draws:\n  kind: permanent              # same key, protocol and values: the same answer\n"
        "  key: env:FUNNEL_KEY          # export FUNNEL_KEY=$(funnel key new)\n"
        if entity
        else "draws:\n  kind: fresh                  # name an entity column above to make draws permanent\n"
    )
    holder = (
        f"  entity: {_yaml(entity.name)}              # identifies a person; at most one row each\n"
        if entity
        else ""
    )
    return f"""# A starter policy for {called} ({rows:,} rows). Review every line, above all `sensitive`.
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
sensitive: [{_yaml(secret.name)}]      # {guess}; it is never released
public:                        # what is released, sanitised; a column that is not named is not released
  - {_yaml(public.name)}
#  - name: age                 # a number in half-open intervals
#    bins: [0, 25, 45, 65]
#  - name: country             # the ten most frequent values, the rest is "other"
#    top: 10
#    unseen: drop              # values that a lock does not know: error | other | drop
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
    """A plain word as it is, anything else in double quotes, as JSON but for letters beyond 16 bits."""
    plain = text.isascii() and text.replace("_", "a").isalnum() and text[0].isalpha()
    if plain and text.lower() not in _WORDS:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in quoted)


def _printable(text: str) -> str:
    """A name on one line, whatever it holds."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
