"""Who is not in a release: two published tables of the same people, or one and a promise about everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.trials.attacking.bench import Bench, Table
from tests.trials.attacking.row import Row, nats

NAME = "who is absent"
SOURCE = {"table": "people.parquet", "entity": "id", "missing": "category"}
TERMS: dict[str, Any] = {
    "version": 1, "name": "clinic", "source": SOURCE, "sensitive": ["diagnosis"], "public": ["job"],
    "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"}, "release": {"to": "releases", "private": "private"},
}  # fmt: skip
NOTIONS = {
    "ldp_x": {"privacy": {"notion": "ldp-x", "epsilon": 2.0}, "mechanism": "randomised-response"},
    "lip": {"privacy": {"notion": "lip", "epsilon": 0.2}, "mechanism": "optimal"},
    "ldp": {"privacy": {"notion": "ldp", "epsilon": 1.0}, "mechanism": "optimal"},
    "mutual_information": {
        "privacy": {"notion": "mutual-information", "epsilon": 0.05},
        "mechanism": "greedy-funnel",
    },
}
TWO = 2
ELSEWHERE = "native_country = 'United-States'"


def clinic() -> Table:
    """2,000 people, a few of whom have what nobody should know; of these the job is often missing."""
    rng = np.random.default_rng(7)
    diagnosis = np.array(["none", "flu", "hiv"])[rng.choice(3, 2000, p=[0.6, 0.36, 0.04])].tolist()
    missing = [rng.random() < (0.3 if one == "hiv" else 0.02) for one in diagnosis]
    job = [None if none else f"job {rng.integers(4)}" for none in missing]
    ward = rng.choice(["east", "west"], 2000).tolist()
    return {"id": list(range(2000)), "diagnosis": diagnosis, "job": job, "ward": ward}


def own(folder: Path) -> Iterator[Row]:
    """The secret in a filter, a missing value dropped, a filter on something else; after a release of all, or alone."""
    table = clinic()
    ways = {
        "filter on the secret": (SOURCE | {"filter": "diagnosis <> 'hiv'"}, [s != "hiv" for s in table["diagnosis"]]),
        "missing dropped": (SOURCE | {"missing": "drop"}, [x is not None for x in table["job"]]),
        "filter on a ward": (SOURCE | {"filter": "ward = 'east'"}, [w == "east" for w in table["ward"]]),
    }
    for measure, notion in NOTIONS.items():
        bench = Bench(folder / measure, TERMS | notion)
        for what, (source, present) in ways.items():
            with bench.aside():
                said = bench.night(table, present, source=source)
                yield nats(NAME, f"{measure}: {what}, alone", said, bench.real(measure))
        bench.night(table)
        for what, (source, present) in ways.items():
            with bench.aside():
                said = bench.night(table, present, source=source)
                yield nats(NAME, f"{measure}: {what}, then", said, bench.real(measure))
        yield _others_absent(Bench(folder / f"{measure}-again", TERMS | notion), table, measure)
    for measure in ("lip", "ldp"):
        yield _known_to_be_in(Bench(folder / f"{measure}-in", TERMS), measure)


def _others_absent(bench: Bench, table: Table, measure: str) -> Row:
    """The same rows are answered alike once more, and those who are absent are other people."""
    source, present = SOURCE | {"filter": "ward = 'east'"}, [one == "east" for one in table["ward"]]
    bench.night(table, present, source=source)
    diagnosis = [s if here else ("hiv", "flu", "none")[min(i % 30, 2)] for i, (s, here) in _placed(table, present)]
    said = bench.night({**table, "diagnosis": diagnosis}, present, source=source)
    bench.secrets = [(one,) for one in diagnosis]
    return nats(NAME, f"{measure}: the same rows again, others absent", said, bench.real(measure))


def _known_to_be_in(bench: Bench, measure: str) -> Row:
    """Fresh releases of one ward, where jobs go with what people have, as elsewhere they do not: all together tell more
    of somebody who is known to be there than of anybody."""
    ward = {("flu", "a"): 632, ("flu", "b"): 8, ("none", "a"): 128, ("none", "b"): 32}
    elsewhere = {("flu", "a"): 160, ("flu", "b"): 160, ("none", "a"): 240, ("none", "b"): 240}
    people = [(*one, place) for place, kinds in (("north", ward), ("south", elsewhere))
              for one, many in kinds.items() for _ in range(many)]  # fmt: skip
    table = {"id": list(range(len(people)))} | dict(zip(("diagnosis", "job", "ward"), zip(*people, strict=True),
                                                        strict=True))  # fmt: skip
    terms = {"source": SOURCE | {"filter": "ward = 'north'"}, "draws": {"kind": "fresh"},
             "privacy": {"notion": measure, "epsilon": 0.6}}  # fmt: skip
    for _ in range(4):
        said = bench.night(table, [one == "north" for *_, one in people], **terms)
    return nats(NAME, f"{measure}: fresh releases of who is known to be in them", said, bench.real(measure))


def _placed(table: Table, present: list[bool]) -> Iterator[tuple[int, tuple[str, bool]]]:
    return enumerate(zip(table["diagnosis"], present, strict=True))


def shipped(bench: Bench, table: Table, measure: str) -> Iterator[Row]:
    """A second release of some of its people: those of a value of the secret, or of something else.

    Without one of two values nothing is left to hide, and no run begins.
    """
    secret = bench.terms["sensitive"][0]
    value = table[secret][0]
    ways = {"then of one country": (ELSEWHERE, [one == "United-States" for one in table["native_country"]])}
    if len(set(table[secret])) > TWO:
        ways[f"then without {value}"] = f"{secret} <> '{value}'", [s != value for s in table[secret]]
    few = bench.terms.get("estimate", {}) | {"minimum": 1}  # of fewer people, some values have fewer records
    for what, (only, present) in ways.items():
        with bench.aside():
            said = bench.night(table, present, source=bench.terms["source"] | {"filter": only}, estimate=few)
            yield nats(NAME, what, said, bench.real(measure))
