"""Other policies over the same people in the same folder, and a column under other names: refused, or told of truly.

Each is run as it is, beside the year: it is refused with exit code 4, nothing being released, and is run again with the
promises that it ends accepted by name; or the year's own promise allows it. All that anybody learns of a real person
from all releases and this one is held against what the ledger then says of that promise. The folder is put back.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt
import yaml

from tests.trials.attacking.published import Published, read
from tests.trials.attacking.together import blocks
from tests.trials.nights.shell import Outcome
from tests.trials.nights.table import Table, Truth

if TYPE_CHECKING:
    from tests.trials.nights.attacker import Attacker
    from tests.trials.nights.world import World

DECIDE = 4
BASE: dict[str, Any] = {
    "version": 1, "source": {"table": "people.parquet", "entity": "person"}, "sensitive": ["illness"],
    "mechanism": "randomised-response", "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"},
    "release": {"to": "releases", "private": "private", "identify": ["person"]},
}  # fmt: skip
HIDDEN = "depression"
FILTERED: dict[str, Any] = {
    "name": "well", "source": BASE["source"] | {"filter": f"illness <> '{HIDDEN}'"},
    "public": ["district"], "privacy": {"notion": "lip", "epsilon": 0.3},
}  # fmt: skip
PUBLISHING: dict[str, Any] = {
    "name": "ill", "sensitive": ["district"], "public": ["illness"], "privacy": {"notion": "lip", "epsilon": 0.3},
}
WIDE: dict[str, Any] = {
    "name": "wide", "privacy": {"notion": "lip", "epsilon": 0.5}, "mechanism": "invariant",
    "public": [{"name": "cell", "columns": ["district", "age"], "cells": {"most": 12, "minimum": 50}}],
}  # fmt: skip
@dataclass(frozen=True)
class Further:
    """What one more release tells: of which `kind` everybody is, what each answered, and the chance of an answer."""

    kind: Mapping[int, Any]
    answer: Mapping[int, Any]
    chance: Callable[[Any, Any], float]


def without_some(world: World, attacker: Attacker, table: Table) -> str:
    """A second policy leaves out those who have what it hides."""
    return _second(world, attacker, table, FILTERED, _absent)


def publishing(world: World, attacker: Attacker, table: Table) -> str:
    """A policy with another secret publishes the illness."""
    return _second(world, attacker, table, PUBLISHING, _drawn)


def wide_block(world: World, attacker: Attacker, table: Table) -> str:
    """A policy puts district and age into one wide block."""
    return _second(world, attacker, table, WIDE, _celled)


def relabelled(world: World, attacker: Attacker, table: Table) -> str:
    """All districts are called otherwise for a night."""
    kept = world.source.read_bytes()
    duckdb.sql(f"CREATE OR REPLACE TABLE people AS FROM '{world.source}'")
    duckdb.sql(f"COPY (SELECT * REPLACE ('new ' || district AS district) FROM people) TO '{world.source}'")
    visible = world.visible()
    outcome = world.run()
    world.expect(outcome.code == DECIDE, f"a relabelled column: exit code {outcome.code}, {outcome.err or outcome.out}")
    world.expect(world.visible() == visible, "a relabelled column was released")
    world.source.write_bytes(kept)
    return f"refused: {outcome.error}"


SECONDS: tuple[Callable[[World, Attacker, Table], str], ...] = (without_some, publishing, wide_block, relabelled)


def _second(
    world: World, attacker: Attacker, table: Table, terms: Mapping[str, Any], read_: Callable[..., Further]
) -> str:
    """Refused and then accepted, or let in; and held against what is told: all of it in words."""
    with _beside(world):
        outcome, how = _made(world, BASE | terms)
        if not world.expect(outcome.code == 0, f"{terms['name']}: {outcome.err or outcome.out}"):
            return how
        told = read_(world.to / world.visible()[-1], world, table)
        real = gained(attacker, table.truth(), told)
        (people,) = (one for one in _ledger(world)["promises"] if one["policy"] == "people")
        said = people["used"]
        world.expect(said is None or real <= said, f"{terms['name']}: {real} was gained, the ledger says {said}")
    claimed = "no bound" if said is None else f"at most {said:.4f}"
    return f"{how}: with all others it tells {real:.4f}, the ledger says {claimed}"


def _made(world: World, terms: Mapping[str, Any]) -> tuple[Outcome, str]:
    """A release of a policy, and whether it had to accept what it ends."""
    visible, entered = world.visible(), world.lines()
    outcome = _run(world, terms)
    if outcome.code == 0:
        return outcome, "let in"
    world.expect(outcome.code == DECIDE, f"{terms['name']}: exit code {outcome.code}: {outcome.err or outcome.out}")
    world.expect((world.visible(), world.lines()) == (visible, entered), f"{terms['name']} was refused and entered")
    return _run(world, {**terms, "accept": ["people", "unbounded"]}), "refused"


def _run(world: World, terms: Mapping[str, Any]) -> Outcome:
    path = world.folder / "second.yaml"
    path.write_text(yaml.safe_dump(dict(terms), sort_keys=False))
    return world.shell("run", "--json", "--threads", "1", path.name, FUNNEL_KEY=world.key)


def _ledger(world: World) -> dict[str, Any]:
    return world.funnel("ledger", "--json", world.policy.name).json


@contextmanager
def _beside(world: World) -> Iterator[None]:
    """What is released meanwhile never was."""
    folders = [(one, one.with_name(f"{one.name}-kept")) for one in (world.to, world.private)]
    for folder, kept in folders:
        shutil.copytree(folder, kept, symlinks=True)
    try:
        yield
    finally:
        for folder, kept in folders:
            shutil.rmtree(folder)
            kept.rename(folder)


def _absent(release: Path, world: World, table: Table) -> Further:
    """Who is not in it has what the filter reads: an answer of its own, told by a name that is not there."""
    there, numbers = set(read(release / "data.parquet", "person")["person"].tolist()), table.numbers()
    return Further(
        {one: s for one, (s, _) in table.truth().items()},
        {one: number in there for one, number in numbers.items()},
        lambda present, s: float(present == (s != HIDDEN)),
    )


def _drawn(release: Path, world: World, table: Table) -> Further:
    """The illness as it was drawn."""
    rows, (block,) = read(release / "data.parquet", "person"), blocks(release)
    outputs = [y for (y,) in json.loads((release / "protocol.json").read_text())["blocks"][0]["outputs"]]
    chances = {s: dict(zip(outputs, np.diff((0.0, *ends)), strict=True)) for (s,), ends in block.ends.items()}
    return Further(
        {one: s for one, (s, _) in table.truth().items()},
        _named(table, rows["person"], rows["illness"]),
        lambda y, s: float(chances[s][y]),
    )


def _celled(release: Path, world: World, table: Table) -> Further:
    """The cell that was drawn, of the cell in which a person's district and age are."""
    found, rows = Published.of(release, "person"), read(world.source, "person")
    return Further(
        _named(table, rows["person"], found.cells(rows)),
        _named(table, rows["person"], found.labels),
        lambda y, cell: float(found.chances[y, cell]),
    )


def _named(table: Table, numbers: npt.NDArray[Any], values: npt.NDArray[Any]) -> dict[int, Any]:
    """What stands beside everybody's number."""
    found = dict(zip(numbers.tolist(), values.tolist(), strict=True))
    return {one: found[number] for one, number in table.numbers().items()}


def gained(attacker: Attacker, truth: Truth, further: Further) -> float:
    """max |ln P(s|all answers)/P(s)| over people whose values stayed the same, one more release being among them."""
    kinds = Counter((s, *values, further.kind[one]) for one, (s, values) in truth.items())
    secrets = sorted({kind[0] for kind in kinds})
    table = np.zeros((len(secrets), len(kinds)))
    for place, (kind, many) in enumerate(kinds.items()):
        table[secrets.index(kind[0]), place] = many
    prior, worst = table.sum(axis=1) / table.sum(), 0.0
    known = (one for one in truth if one in attacker.people and len(attacker.people[one].values) == 1)
    for (one, two), answer in {(attacker.people[who].seen(), further.answer[who]) for who in known}:
        given = [
            float(attacker.chance(one, x1) * attacker.chance(two, x2)) * further.chance(answer, kind)
            for _, x1, x2, kind in kinds
        ]
        weights = table @ np.array(given)
        with np.errstate(divide="ignore"):
            worst = max(worst, float(np.abs(np.log(weights / weights.sum() / prior)).max()))
    return worst
