"""What seems the same and is not: a column of another table, values under other names, people under other numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests.trials.attacking.bench import Bench, Table
from tests.trials.attacking.row import Row, nats

NAME = "what is the same"
TERMS: dict[str, Any] = {
    "version": 1, "name": "columns", "source": {"table": "people.parquet", "entity": "id"},
    "sensitive": ["s"], "public": ["x"], "privacy": {"notion": "lip", "epsilon": 0.3},
    "mechanism": "randomised-response", "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"},
    "release": {"to": "releases", "private": "private"},
}  # fmt: skip
COUNTS = {("a", "0"): 90, ("a", "1"): 60, ("a", "2"): 50, ("b", "0"): 40, ("b", "1"): 70, ("b", "2"): 90}
NOTIONS: dict[str, Any] = {"lip": TERMS["privacy"], "ldp_x": {"notion": "ldp-x", "epsilon": 0.2}}
NIGHTS = 6
FAR = 100_000


def people() -> Table:
    """400 of them, of two secrets and three values."""
    rows = [one for one, many in COUNTS.items() for _ in range(many)]
    return {"id": list(range(len(rows))), "s": [s for s, _ in rows], "x": [x for _, x in rows]}


def own(folder: Path) -> Iterator[Row]:
    """The findings' own tables."""
    yield _two_tables(folder / "tables")
    for what, notion in NOTIONS.items():
        bench, table = Bench(folder / what, TERMS | {"privacy": notion}), people()
        for night in range(NIGHTS):
            said = bench.night({**table, "x": [f"{'pqrtuv'[night]}{x}" for x in table["x"]]})
        yield nats(NAME, f"{what}: a column relabelled for {NIGHTS} nights", said, bench.real(what))
    bench, table = Bench(folder / "again", TERMS), people()
    bench.night(table)
    yield from _again(bench, table, "lip", "x")
    with bench.aside():
        moved = [str((int(x) + (s == "b")) % 3) for s, x in zip(table["s"], table["x"], strict=True)]
        said = bench.night({**table, "x": moved})
        yield nats(NAME, "x + s on the second night", said, bench.real("lip"))


def shipped(bench: Bench, table: Table, measure: str) -> Iterator[Row]:
    """A second night under other names and numbers."""
    first = bench.terms["public"][0]
    yield from _again(bench, table, measure, first["name"] if isinstance(first, dict) else first)


def _again(bench: Bench, table: Table, measure: str, column: str) -> Iterator[Row]:
    """As on the first night; one column's values called otherwise, or each what another was; people renumbered."""
    values = sorted(set(table[column]))
    turned = dict(zip(values, [*values[1:], values[0]], strict=True))
    entity = bench.terms["source"]["entity"]
    name = [FAR + one for one in table[entity]]
    mixed = np.random.default_rng(5).permutation(table[entity]).tolist()
    for what, changed, numbering, taken in (
        ("once more", {}, 0, None),
        ("relabelled", {column: [f"new {x}" for x in table[column]]}, 0, None),
        ("each value called as another was", {column: [turned[x] for x in table[column]]}, 0, None),
        ("people renumbered", {entity: name}, 1, None),
        ("numbers of others", {entity: mixed}, 1, None),
        ("numbers of others who are alike", {entity: _handed(table, column, entity)}, 1, "identifiers unchanged"),
    ):
        with bench.aside():
            said = bench.night({**table, **changed}, numbering=numbering)
            yield nats(NAME, what, said, bench.real(measure), taken)


def _handed(table: Table, column: str, entity: str) -> list[Any]:
    """Everybody's number goes to the next one with the same values, which no table can tell."""
    alike: dict[Any, list[int]] = {}
    for place, value in enumerate(table[column]):
        alike.setdefault(value, []).append(place)
    turns = (pair for one in alike.values() for pair in zip(one, [*one[1:], one[0]], strict=True))
    given = {place: table[entity][other] for place, other in turns}
    return [given[place] for place in range(len(given))]


def _two_tables(folder: Path) -> Row:
    """The secret is whether two grades differ; each is a column `grade` of its own table."""
    halves = [*product("01", "01")] * 30
    terms = {"privacy": {"notion": "lip", "epsilon": 0.05}, "mechanism": "optimal"}
    bench = Bench(folder, TERMS | terms | {"public": ["grade"]})
    table = {"id": list(range(len(halves))), "s": ["same" if a == b else "other" for a, b in halves]}
    bench.night({**table, "grade": [a for a, _ in halves]})
    source = {"table": "other.parquet", "entity": "id"}
    said = bench.night({**table, "grade": [b for _, b in halves]}, source=source, numbering=1)
    return nats(NAME, "a column grade in each of two tables", said, bench.real("lip"))
