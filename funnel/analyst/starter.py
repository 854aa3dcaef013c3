"""A commented starter policy for a table that nobody has described yet."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import normalize

from funnel.analyst.glance import ColumnProfile, Glance, glance, records
from funnel.data.alphabet import folded
from funnel.engine import Dialect, Engine, Source, find, open_engine
from funnel.errors import SourceError
from funnel.plan.columns import BINNED
from funnel.plan.fit import opaque
from funnel.policy.model import NAME_LENGTH

_TELLING = (
    *("secret", "sensitive", "confidential", "private", "diagnos", "disease", "health", "medic", "treatment"),
    *("income", "salary", "wage", "debt", "benefit", "marital", "religio", "belief", "ethnic", "race", "sex"),
    *("gender", "orientation", "party", "vote", "union", "convict", "crim", "offen", "disab", "pregnan"),
    *("krank", "gesund", "einkommen", "gehalt", "lohn", "schuld", "familienstand", "konfession", "herkunft"),
    *("geschlecht", "partei", "gewerkschaft", "straf", "behinder", "schwanger"),
)
"""Parts of names, in English and German, that columns have which people want hidden."""
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no policy can name."""
_WEIGHT = "weight"
"""The column of a release with a wide block that says what a row counts for."""
_FEW = 40
_MINIMUM = 10
_CELLS, _CELL = 20, 50
"""Cells of the wide block at most, few since a program against two known columns is large; and records of each."""
_PAIRS = 100
"""Columns of which any two may be known before their pairs are too many."""


@dataclass(frozen=True)
class Proposal:
    """The roles of a table's columns: `kept` are names that tell of something people want hidden, `keys` who it is.

    `guess` says why this is the secret; `names` are those that a CSV is given, `headed` whether its first line seems
    to hold others; `rare` is whether a single public column has values of too few records; `trim`, that blanks around
    texts are left out.
    """

    table: Path
    seen: Glance
    entity: ColumnProfile | None
    secret: ColumnProfile
    public: tuple[ColumnProfile, ...]
    kept: tuple[ColumnProfile, ...]
    keys: tuple[ColumnProfile, ...]
    guess: str
    names: Sequence[str] = ()
    headed: bool = False
    trim: bool = False
    rare: bool = False


def starter(table: Path, folder: Path, *, names: Sequence[str] = (), trim: bool = False) -> str:
    """A policy for `folder` that `funnel check` accepts once its author has said what it is for.

    `names` are the columns of a CSV whose header lacks them, or that has none; with `trim`, blanks around texts are
    left out.
    Raises SourceError.
    """
    if len({folded(name) for name in names}) < len(names):
        raise SourceError(
            "source-header",
            "two columns cannot have one name; upper and lower case make no difference",
            where=str(table),
            advice="Name each column, in order.",
        )
    source = find(table.absolute(), dialect=Dialect(names=tuple(names)) if names else None)
    headed = bool(names) and source.is_headed()
    if headed:
        source = find(table.absolute(), dialect=Dialect(header=True, names=tuple(names)))
    with open_engine(source) as engine:
        engine.fetch(tuple(engine.schema(texts=source.is_text)))
        seen = glance(engine, source)
        _check_rows(seen.rows, table)
        if any(column.comma for column in seen.columns):
            seen = seen.read_as(_types(table, names, headed=headed))
        found = _proposal(Path(os.path.relpath(table, folder)), seen)
        found = replace(_supported(found, engine, source), names=names, headed=headed, trim=trim)
    return _text(found)


def _types(table: Path, names: Sequence[str], *, headed: bool) -> Mapping[str, str]:
    """The types of a CSV with decimal commas, which is to read it again: 1,5 makes numbers of 1,234, texts of 1.5."""
    dialect = Dialect(headed if names else None, decimal=",", names=tuple(names) or None)
    with open_engine(find(table.absolute(), dialect=dialect)) as engine:
        return engine.schema()


def _check_rows(rows: int, table: Path) -> None:
    """Two values of enough records each are the least that can be released. Raises SourceError."""
    if rows == 0:
        raise SourceError("source-empty", "the table has no rows", where=str(table))
    if rows < 2 * _MINIMUM:
        raise SourceError(
            "nothing-to-propose",
            f"the table has {rows} row{'s' if rows > 1 else ''}, too few for two values of {_MINIMUM} records each",
            where=str(table),
            advice="Take more records; fewer than that would show single people.",
        )


def _proposal(table: Path, seen: Glance) -> Proposal:
    """Who is who, and what is hidden: by names and numbers of values alone. Raises SourceError."""
    named = [c for c in seen.columns if not _CONTROL.search(c.name)]
    keys = tuple(c for c in named if c.tells_who(seen.rows))
    entity = next((c for c in keys if c.unique and c.kind in ("INTEGER", "BIGINT", "VARCHAR")), None)
    usable = [c for c in named if c not in keys and c.told >= 2 and not opaque(c.kind)]
    few = [c for c in usable if c.distinct <= _FEW]
    telling = [c for word in _TELLING for c in few if word in c.name.lower()]
    secret = telling[0] if telling else few[-1] if few else None
    public = tuple(c for c in usable if c is not secret and c not in telling and not _is_weight(c))
    if secret is None or not public:
        raise SourceError(
            "nothing-to-propose",
            f"no column of 2 to {_FEW} values is left to release beside one to hide, so there is nothing to propose",
            where=str(table),
            advice="Write the policy by hand: see policies/ for examples.",
        )
    kept = tuple(c for c in dict.fromkeys(telling) if c is not secret)
    guess = "a guess by name" if telling else "no name gave the secret away: CHOOSE"
    return Proposal(table, seen, entity, secret, public, kept, keys, guess)


def _supported(found: Proposal, engine: Engine, source: Source) -> Proposal:
    """A single public column is no block of cells: its rare values are merged. Raises SourceError where all are."""
    only, *more = found.public
    if more:
        return found
    counts = records(engine, source, only.name) if only.distinct <= _FEW else []
    rare = sum(one < _MINIMUM for one in counts)
    while 0 < rare < len(counts) and sum(counts[:rare]) < _MINIMUM:
        rare += 1
    if counts and len(counts) - rare + (rare > 0) < 2:
        raise SourceError(
            "nothing-to-propose",
            f"`{_printable(only.name)}`, the only column left to release, has no two values of {_MINIMUM} records",
            where=str(found.table),
            advice="Take more columns or more records; fewer than that would show single people.",
        )
    return replace(found, rare=rare > 0 or only.distinct > _FEW)


def _text(found: Proposal) -> str:
    """The policy file."""
    slug, seen = _slug(found.table), found.seen
    missing = "category" if any(c.missing for c in (found.secret, *found.public)) else "error"
    described = "\n".join(_described(found, c) for c in seen.columns)
    called = _printable(found.table.name)
    return f"""# A starter policy for {called} ({seen.rows:,} rows). Review every line, above all `sensitive`.
# Columns of the table (numbers of values are near):
{described}
version: 1
name: {slug if slug[0].isalpha() and slug not in _WORDS else json.dumps(slug)}
description: TODO say what is published, and what stays hidden
source:
  table: {_yaml(str(found.table))}
{_dialect(found)}{_entity(found)}  missing: {missing}               # missing values: category | drop | error
estimate:
  minimum: {_MINIMUM}                  # every public value needs this many records
sensitive: [{_yaml(found.secret.name)}]      # WARNING: {found.guess}; it is never released
public:                        # what is released, sanitised; a column that is not named is not released
{_public(found)}
privacy:
  notion: srlip                # no belief about the secret moves by more than a factor e^epsilon,
  epsilon: 1.0                 # nats; smaller is more private
  knows: {_known(found.public)}                     # nor of who knows so many of the person's true public columns
mechanism:
  kind: invariant              # raw totals stay right on average; `optimal` keeps more information
{_draws(found)}release:
  to: releases/{slug}
  private: private/{slug}   # counts and evidence; keep it away from readers of the release
  format: parquet
{_named(found)}"""


def _described(found: Proposal, column: ColumnProfile) -> str:
    """A line on a column, with its role."""
    missing = f", {column.missing:,} missing" if column.missing else ""
    if column.blanks:
        missing += f", {column.blanks:,} with blanks at an end"
        missing += " (left out)" if found.trim else " (`init --trim` leaves these out)"
    if _dates_as_texts(column):
        missing += ", dates as texts, which `round` and `bins` read"
    if column.day_first:
        missing += ", texts to funnel, which reads dates as 1987-12-31"
    roles = {
        "it tells who somebody is: left out": column in found.keys,
        "the secret": column is found.secret,
        "left out too, for its name: add it if it may be known": column in found.kept,
        "the same in every row: left out": column.told < 2,
        "no plain values: left out": opaque(column.kind),
        "left out, for a release calls so what its rows count for: add it under another name": _is_weight(column),
    }
    role = next((f"; {words}" for words, so in roles.items() if so), "")
    kind = "VARCHAR" if _dates_as_texts(column) else column.kind
    return f"#   {_printable(column.name):<20} {kind:<10} {column.distinct:>9,} values{missing}{role}"


def _is_weight(column: ColumnProfile) -> bool:
    return column.name.lower() == _WEIGHT


def _known(public: Sequence[ColumnProfile]) -> int:
    """How many true columns somebody may know: two, where their pairs are not too many."""
    return min(2 if len(public) <= _PAIRS else 1, len(public))


def _entity(found: Proposal) -> str:
    if found.entity is None:
        return ""
    return f"  entity: {_yaml(found.entity.name)}              # identifies a person; at most one row each\n"


def _dialect(found: Proposal) -> str:
    """How a CSV is read whose columns are named here, or that has numbers with a decimal comma."""
    header = f"header: {str(found.headed).lower()}, names: [{', '.join(map(_yaml, found.names))}]"
    said = [header] if found.names else []
    said += ['decimal: ","'] if any(column.comma for column in found.seen.columns) else []
    taken = f"   # the first line is {'left out' if found.headed else 'a record'}" if found.names else ""
    return f"  csv: {{{', '.join(said)}}}{taken}\n" if said else ""


def _public(found: Proposal) -> str:
    """One wide block of all public columns, or the only one that there is."""
    if len(found.public) == 1:
        return "\n".join([f"  - {_item(found, found.public[0], rare=found.rare)}", *_HINTS])
    minimum = max(_MINIMUM, min(_CELL, found.seen.rows // 20))
    names = {c.name.lower() for c in found.seen.columns}
    block = next(
        name
        for name in ("record", "row", *(f"record{i}" for i in range(len(names) + 1)))
        if not names & {name, f"{name}_{_WEIGHT}"}
    )
    return "\n".join(
        [
            f"  - name: {block}               # a wide block: all these columns as one alphabet of cells;",
            "    columns:                   # values of too few records become `other`, numbers join neighbours",
            *(f"      - {_item(found, c)}" for c in found.public),
            f"    cells: {{most: {_CELLS}, minimum: {minimum}}}   # more cells: truer rows, and longer runs",
            *_HINTS,
        ]
    )


_HINTS = (
    "#  - name: age                 # a number in half-open intervals; `round: 5` and `round: month` are others",
    "#    bins: [0, 25, 45, 65]",
    "#  - name: country             # values by meaning, here or in a CSV file of value,group",
    "#    groups: {North: [Oslo, Bergen]}",
    "#    rare: other               # values of fewer records than `minimum`; numbers: bin",
    "#    unseen: drop              # values that a lock does not know: error | other | drop",
)


def _dates_as_texts(column: ColumnProfile) -> bool:
    return column.is_text and column.kind == "DATE"


def _item(found: Proposal, column: ColumnProfile, *, rare: bool = False) -> str:
    """A column, coarser where it is dates that stand there as texts, or a single one with values of few records."""
    changes = {}
    if _dates_as_texts(column):
        changes["round"] = "month"
    if rare:  # months are no dates any more, to which another one is near
        changes["rare"] = "bin" if column.kind.startswith(BINNED) and not changes else "other"
    if found.trim and column.blanks and column.kind == "VARCHAR":
        changes["trim"] = "true"
    name = _yaml(column.name)
    return f"{{name: {name}, {', '.join(f'{key}: {value}' for key, value in changes.items())}}}" if changes else name


def _draws(found: Proposal) -> str:
    if found.entity is None:
        return (
            "draws:\n  kind: fresh                  # name an entity column above to make draws permanent\n"
        )
    later = "" if len(found.public) == 1 else "  # for more than one release: `funnel lock`, then `run --locked`\n"
    return (
        "draws:\n  kind: permanent              # same key, protocol and values: the same answer\n" + later +
        "  key: env:FUNNEL_KEY          # export FUNNEL_KEY=$(funnel key new)\n"
    )  # fmt: skip


def _named(found: Proposal) -> str:
    keys = [c for c in found.keys if c.unique and not c.missing]
    if not keys:
        return ""
    said = "publishes this key beside each row, untouched, so that rows have a name"
    return f"#  identify: [{_yaml(keys[0].name)}]        # {said}\n"


def _slug(table: Path) -> str:
    """A name for policy and folders, of letters that a policy's name may have."""
    plain = normalize("NFKD", table.name.split(".")[0].lower()).encode("ascii", "ignore").decode()
    kept = "".join(letter if letter.isalnum() else " " for letter in plain)
    return "-".join(kept.split())[:NAME_LENGTH].strip("-") or "release"


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
