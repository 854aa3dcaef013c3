"""A second policy in the same private folder: by another notion, of another secret; and a protocol solved anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.trials.attacking.bench import Bench, Table
from tests.trials.attacking.row import Row, Said, nats

NAME = "a second policy"
FIRST: dict[str, Any] = {
    "version": 1, "name": "first", "source": {"table": "people.parquet", "entity": "id"},
    "sensitive": ["s"], "public": ["x"], "privacy": {"notion": "lip", "epsilon": 0.5}, "budget": 0.5,
    "mechanism": "randomised-response", "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"},
    "release": {"to": "releases", "private": "private"},
}  # fmt: skip
ON_AVERAGE: dict[str, Any] = {
    "name": "average", "public": ["z"], "privacy": {"notion": "mutual-information", "epsilon": 0.5},
    "mechanism": "greedy-funnel", "budget": None,
}  # fmt: skip
OTHER_SECRET: dict[str, Any] = {
    "name": "other", "sensitive": ["w"], "public": ["s"], "privacy": {"notion": "lip", "epsilon": 3.0},
    "mechanism": "optimal", "budget": None,
}  # fmt: skip
NEARBY: dict[str, Any] = {
    "name": "nearby", "sensitive": ["w"], "public": ["z"], "privacy": {"notion": "lip", "epsilon": 0.1},
    "mechanism": "randomised-response",
}  # fmt: skip


def people() -> Table:
    """400: x leans on s, z on w, and z2 tells s."""
    ids = range(400)
    return {
        "id": list(ids),
        "s": [f"s{i % 2}" for i in ids],
        "x": [f"x{(i % 2 + (0 if i % 10 < 6 else i % 3)) % 3}" for i in ids],
        "w": [f"w{(i // 3 if i % 16 < 5 else i // 7) % 2}" for i in ids],
        "z": ["z2" if i % 20 == 0 else f"z{(i // 7 if i % 5 < 3 else i // 3) % 2}" for i in ids],
    }


def own(folder: Path) -> Iterator[Row]:
    """What each second policy tells of what the first one hides."""
    table, bench = people(), Bench(folder / "two", FIRST)
    bench.night(table)
    for what, changes in (
        ("on average, of a value that tells s", ON_AVERAGE),
        ("which publishes s", OTHER_SECRET),
        ("of another secret", NEARBY),
    ):
        yield _second(bench, table, what, changes, "lip")
    bench = Bench(folder / "anew", FIRST | {"public": ["x", "z"], "budget": None})
    bench.night(table)
    with bench.aside():
        said = bench.night(table, mechanism="optimal")
        yield nats(NAME, "the same policy, solved in another way", said, bench.real("lip"))
    bench = Bench(folder / "back", FIRST | {"privacy": {"notion": "lip", "epsilon": 0.1}, "budget": None})
    bench.night(table)
    bench.night({**table, "s": [f"s{i % 2 if i % 3 else i // 2 % 2}" for i in range(len(table["s"]))]})
    yield nats(NAME, "the first release again, after one of other secrets", bench.night(table), bench.real("lip"))
    fresh = {"draws": {"kind": "fresh"}, "source": {"table": "people.parquet"}, "budget": None}
    bench = Bench(folder / "fresh", FIRST | fresh)
    bench.night(table)
    yield nats(NAME, "the same policy, drawn afresh", bench.night(table), bench.real("lip"))


def shipped(bench: Bench, table: Table, measure: str) -> Iterator[Row]:
    """A policy that publishes what the shipped one hides."""
    hidden = next(name for name in ("race", "sex", "income") if name not in bench.terms["sensitive"])
    publishing = {
        "name": "publishing", "sensitive": [hidden], "public": [{"name": bench.terms["sensitive"][0], "rare": "other"}],
        "mechanism": "randomised-response", "privacy": {"notion": "lip", "epsilon": 5.0}, "budget": None,
    }  # fmt: skip
    yield _second(bench, table, "which publishes the secret", publishing, measure)


def _second(bench: Bench, table: Table, what: str, changes: dict[str, Any], measure: str) -> Row:
    """The first policy's promise after another one's release, against what both tell of its secret."""
    with bench.aside():
        said: Said = bench.night(table, **changes)
        told = replace(said, figure=bench.left())
        return nats(NAME, what, told, bench.real(measure))
