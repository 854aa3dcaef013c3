"""A wide release: who knows nothing, who has learned from outsiders, who knows some true columns.

The table is released under lip, under srlip with `knows: 1`, and with `knows: 2` (`--claims`). Each attacker has the
published folder, is told which row is whose, knows the distribution of everybody's true records, and has code of its
own. Linkers know any 0, 1, … `--most` true columns of a person by their own values, and become surer by exact Bayes;
a person is covered where at least ten share what is known. A second kind of them knows some of the columns, two at
most, only as rare values of it are put together in the release (`vague`): they are covered alike. The classifier knows
nothing true of the person: naive Bayes learned from one half of the people, whose secret it is told, tried on the rest.

Held: nobody who is covered is moved beyond e^ε by whoever a claim is about, by the label that was released or by any
other; and whom the classifier believes most in have the value no more often than the bound allows (five deviations).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import funnel
from tests.trials.attacking.bench import CENSUS
from tests.trials.attacking.learner import beliefs, ceiling, right
from tests.trials.attacking.linker import Levels, Moved, link, sets
from tests.trials.attacking.published import Columns, Published, coarse, numbered, read
from tests.trials.attacking.row import NEAR

LEAST = 10
SECONDS = 900
VAGUE = 2
DEVIATIONS = 5.0
COLUMNS = (
    "age", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "capital_gain",
    "capital_loss", "hours_per_week", "native_country",
)  # fmt: skip
POLICY = """version: 1
name: attacked
source: {{table: {table}, entity: person_id}}
estimate: {{minimum: {least}}}
sensitive: [{secret}]
public: [{{name: cell, columns: [{columns}], cells: {{most: {cells}, minimum: 50}}}}]
privacy: {{{notion}, epsilon: {epsilon}}}
mechanism: {{kind: invariant, time_limit: {seconds}}}
draws: {{kind: permanent, key: env:FUNNEL_TRIAL_KEY}}
release: {{to: {folder}/released, private: {folder}/private, identify: [person_id]}}
"""
NOTIONS = {
    "lip": ("notion: lip", 0, 200),
    "knows-1": ("notion: srlip, knows: 1", 1, 200),
    "knows-2": ("notion: srlip, knows: 2", 2, 60),
}
"""How a policy writes each claim, how many true columns it is about, and with how many cells it is tried at most."""


@dataclass(frozen=True)
class Asked:
    """What is released, and how much others know at most."""

    secret: str = "income"
    columns: tuple[str, ...] = COLUMNS
    epsilon: float = 1.0
    cells: int = 200
    people: int = 0
    most: int = 3


@dataclass(frozen=True)
class Linked:
    """Who knows any `knows` true columns, over all such sets: `claimed` and `real` nats, shares of people moved.

    `covered` is the part of the pairs (person, set); `beyond` are the shares of these moved beyond e^ε and e^2ε,
    `anyone` those of the people whom some set moves so far. `claimed` is None where nothing is.
    """

    claim: str
    knows: int
    vague: bool
    sets: int
    covered: float
    claimed: float | None
    real: float
    beyond: tuple[float, float]
    anyone: tuple[float, float]


@dataclass(frozen=True)
class Learned:
    """Of the `people` for whom the classifier believes most in `value`: the share who have it, and the bound."""

    claim: str
    value: str
    people: int
    claimed: float
    real: float


@dataclass
class Trial:
    """What was found."""

    linked: list[Linked] = field(default_factory=list)
    learned: list[Learned] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """JSON form; a belief that becomes certain has moved by null nats."""
        linked = [asdict(one) | {"real": one.real if np.isfinite(one.real) else None} for one in self.linked]
        return {"linked": linked, "learned": [asdict(one) for one in self.learned], "findings": self.findings}


def release(asked: Asked, claim: str, folder: Path) -> tuple[Columns, Published]:
    """The true table, and the folder that was published of it under a claim."""
    folder.mkdir(parents=True)
    table, some = folder / "people.parquet", f"LIMIT {asked.people}" if asked.people else ""
    duckdb.sql(f"COPY (FROM '{CENSUS}' ORDER BY person_id {some}) TO '{table}'")
    policy = folder / "attacked.yaml"
    fields = asdict(asked) | {
        "notion": NOTIONS[claim][0],
        "cells": min(asked.cells, NOTIONS[claim][2]),
        "columns": ", ".join(asked.columns),
    }
    policy.write_text(POLICY.format(table=table, folder=folder, least=LEAST, seconds=SECONDS, **fields))
    os.environ.setdefault("FUNNEL_TRIAL_KEY", funnel.new_key())
    return read(table, "person_id"), Published.of(Path(funnel.run(policy).release), "person_id")


def levels(people: Columns, published: Published) -> Levels:
    """Own values of every column, and the released ones where these are coarser."""
    found = {}
    for name, released in zip(published.columns, published.released(people), strict=True):
        own = numbered(people[name])
        found[name] = [own] if own.max() == numbered(released).max() else [own, released]
    return found


def linkers(asked: Asked, claim: str, people: Columns, published: Published) -> Iterator[Linked]:
    """Whoever knows so many true columns, for every number up to the most; then those who know some vaguely."""
    secret, cells = numbered(people[asked.secret]), published.cells(people)
    known = levels(people, published)
    for vague in (False, True):
        for size in range(int(vague), min(asked.most, VAGUE if vague else asked.most) + 1):
            found = [
                link([codes for codes, _ in one], secret, cells, published.labels, published.chances, LEAST)
                for one in sets(known, size)
                if vague == any(level > 0 for _, level in one)
            ]
            yield summed(asked, claim, vague, found, (size, len(secret)))


def summed(asked: Asked, claim: str, vague: bool, found: Sequence[Moved], sizes: tuple[int, int]) -> Linked:
    """All sets of one size together; `sizes` are that and the number of people."""
    size, people = sizes
    pairs = sum(len(one.covered) for one in found)
    most = np.zeros(people)
    for one in found:
        most[one.covered] = np.maximum(most[one.covered], one.nats)
    limits = asked.epsilon + NEAR, 2 * asked.epsilon + NEAR
    beyond = [sum(int((one.nats > limit).sum()) for one in found) / max(pairs, 1) for limit in limits]
    return Linked(
        claim,
        size,
        vague,
        len(found),
        pairs / max(people * len(found), 1),
        asked.epsilon if size <= NOTIONS[claim][1] else None,
        max((one.worst for one in found), default=0.0),
        (beyond[0], beyond[1]),
        (float((most > limits[0]).mean()), float((most > limits[1]).mean())),
    )


def learners(asked: Asked, claim: str, people: Columns, published: Published) -> Iterator[Learned]:
    """Each value of the secret, for the people whom the classifier believes to have it most."""
    names, secret = np.unique(people[asked.secret], return_inverse=True)
    half = np.random.default_rng(1).permutation(len(secret))
    outside, inside = np.split(half, [len(half) // 2])
    rows = [published.labels, *(coarse(published.rows[name]) for name in published.columns)]
    belief = beliefs(rows, secret, outside, inside)
    for value, name in enumerate(names):
        bound = ceiling(float((secret == value).mean()), asked.epsilon)
        for size, share in right(belief[value], secret[inside] == value):
            yield Learned(claim, str(name), size, bound, share)


def judged(trial: Trial) -> Iterator[str]:
    """What should not be."""
    for one in trial.linked:
        if one.claimed is not None and (one.real > one.claimed + NEAR or max(one.anyone) > 0):
            yield f"{one.claim}: who knows {one.knows} columns moves a belief by {one.real:.4f} nats"
    for row in trial.learned:
        slack = DEVIATIONS * (row.claimed * (1 - row.claimed) / row.people) ** 0.5
        if row.real > row.claimed + slack:
            yield f"{row.claim}: {row.real:.1%} of {row.people} believed to be {row.value} are, above {row.claimed:.1%}"


def run(asked: Asked, claims: Sequence[str], folder: Path) -> Trial:
    """Release and attack under each claim."""
    trial = Trial()
    for claim in claims:
        people, published = release(asked, claim, folder / claim)
        trial.linked += linkers(asked, claim, people, published)
        trial.learned += learners(asked, claim, people, published)
    trial.findings += judged(trial)
    return trial


def text(trial: Trial) -> str:
    """Two tables and the findings."""
    lines = [
        "linkers: factors of belief at the worst label; shares of (person, set) and of people moved beyond"
    ]
    lines += [f"{'claim':<9}{'knows':<14}{'sets':>6}{'covered':>9}{'claimed':>9}{'real':>11}"
              f"{'e^ε':>8}{'e^2ε':>8}{'anyone':>9}{'e^2ε':>8}"]  # fmt: skip
    for one in trial.linked:
        knows = f"{one.knows}{', vaguely' if one.vague else ''}"
        claimed = "-" if one.claimed is None else f"{np.exp(one.claimed):.4f}"
        real = f"{np.exp(one.real):,.4f}" if np.isfinite(one.real) else "certain"
        shares = f"{one.beyond[0]:8.2%}{one.beyond[1]:8.2%}{one.anyone[0]:9.2%}{one.anyone[1]:8.2%}"
        lines.append(
            f"{one.claim:<9}{knows:<14}{one.sets:>6}{one.covered:>9.1%}{claimed:>9}{real:>11}{shares}"
        )
    lines += ["", "classifier: of the people for whom it believes most in a value, the share who have it"]
    for row in trial.learned:
        people = f"{row.people:>7,} people, claimed at most {row.claimed:6.1%}, real {row.real:6.1%}"
        lines.append(f"{row.claim:<9}{row.value:<24}{people}")
    return "\n".join([*lines, "", *(trial.findings or ["all held"])])


def options(parser: argparse.ArgumentParser) -> None:
    """What the command line asks about the wide release."""
    parser.add_argument(
        "--secret", default=Asked.secret, help="a column of the census that is not public (income)"
    )
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--cells", type=int, default=200, help="cells at most (200)")
    parser.add_argument("--people", type=int, default=0, help="the first so many (all)")
    parser.add_argument("--most", type=int, default=3, help="true columns that linkers know at most (3)")
    parser.add_argument("--claims", nargs="+", choices=NOTIONS, default=list(NOTIONS))


def asked(given: dict[str, Any]) -> Asked:
    """What was asked."""
    columns = tuple(one for one in COLUMNS if one != given["secret"])
    names = ("secret", "epsilon", "cells", "people", "most")
    return Asked(columns=columns, **{name: given[name] for name in names})
