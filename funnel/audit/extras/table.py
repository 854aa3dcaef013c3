"""The first thing that nobody can know from the files: that the counts are the source's. With the source one can."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from typing import Any

from funnel.audit.extras.base import Release
from funnel.audit.extras.policy import PLAN
from funnel.audit.extras.reading import key_columns, read_table
from funnel.audit.extras.wide import inside
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree
from funnel.cells.cells import Cells
from funnel.format import population
from funnel.format.distances import DistancesFile
from funnel.format.fields import Label
from funnel.format.known import NAME as KNOWN
from funnel.format.people import NAME as PEOPLE
from funnel.format.people import PeopleFile
from funnel.format.population import PopulationFile
from funnel.release.named import digest

CLAIM = "source-counts"
TITLE = (
    "counts, plan (but for its steps scan and publish), digests, distances of wide blocks and, but under a lock, their"
    " cells are those of the table given, by the policy"
)
PRIVATE = True
AGAIN = "--table FILE counts all again but what a lock or an estimate was made from"
COUNTED = (
    "that the table counted again is the source, what it says of people is true, files of groups are the policy's, and"
    " counts that a lock or an estimate was made from were the source's"
)
RARE = False
"""What stands for a value that too few records share."""
Known = tuple[str | bool | None, ...]
_PLACES = ("scan", "publish")
"""Steps that name where files lie and how they are read: an auditor may keep them elsewhere, and in another form."""


@dataclass(frozen=True)
class Recounted:
    """The plan of the policy for the source (JSON), and records by the labels of s and of all public columns.

    `known`: the same by what somebody may know too, the value of each of `levels` or RARE, where a notion asks.
    `names`: the number of keys and their digest, where rows have names. `wide`: the cells made of wide blocks, none
    where a lock has fixed them; `distances`: what distances.json has to say, where the published cells are those.
    `population`: everybody in the source, where the release has that.
    `people`: the digest of who is in the source, by the key in the private folder or, where that is gone, by another.
    """

    plan: dict[str, Any]
    cells: Counter[tuple[Label, Label]]
    levels: tuple[tuple[str, str], ...] = ()
    known: Counter[tuple[Label, Label, Known]] = field(default_factory=Counter)
    names: tuple[int, str] | None = None
    wide: tuple[Cells, ...] = ()
    distances: DistancesFile | None = None
    population: PopulationFile | None = None
    people: PeopleFile | None = None


def check(opened: Release) -> str | Unchecked:
    """N[s, x] of the records released is what the source holds; the plan is the policy's for it. Raises Broken."""
    if opened.recount is None:
        return Unchecked(NOT_CLAIMED + "nobody can know it from the files; --table FILE counts the source again")
    found = opened.recount(opened)
    wide = inside(opened, found.wide, found.distances)
    kept = Counter[tuple[Label, Label]]()
    for (secret, *values), number in opened.by_label().items():
        kept[secret, tuple(chain.from_iterable(values))] += number
    if kept != found.cells:
        wrong = (kept - found.cells) + (found.cells - kept)
        what = f"{len(wrong)} cells have another number of records in the source"
        raise Broken("counts.json", what, "those of the source", f"{wrong.total()} records more or fewer")
    if opened.manifest.parameters.knows is not None:
        _check_known(opened, found)
    if population.NAME in opened.evidence.files and found.population != opened.population:
        raise Broken(population.NAME, "everybody is not who the source has", "those of the source", "others")
    steps = [[step for step in plan["steps"] if step["step"] not in _PLACES]
             for plan in (json.loads(opened.read(PLAN)), found.plan)]  # fmt: skip
    if steps[0] != steps[1]:
        raise Broken(PLAN, "the plan is not the policy's for this source", "the same SQL", "another")
    named = "" if found.names is None else _named(opened, *found.names)
    told = f"{len(kept)} cells of {opened.records.rows} records counted again{named}{wide}"
    return f"{told}{_digested(opened, found.people)}"


def _named(opened: Release, rows: int, names: str) -> str:
    """Whether the table's keys are the source's, in words; a lock may leave rows out. Raises Broken."""
    if rows != opened.manifest.rows:
        return "; their keys not, for some rows of the source are left out"
    _, batches = read_table(opened)
    if digest(key_columns(opened, batches)) != (rows, names):
        raise Broken(opened.manifest.data, "the keys are not those of the source", f"{rows} keys", "others")
    return ", and their keys"


def _digested(opened: Release, found: PeopleFile | None) -> str:
    """Whether the digest of people is the source's, in words; hashes are those of one version of the engine."""
    stated = parsed(PeopleFile, PEOPLE, opened.read(PEOPLE))
    if found is None:
        return "; the digest of people not, for the key that it was made with is not there"
    known = found.key == stated.key
    same = opened.manifest.versions.get("duckdb") == version("duckdb") and stated.entity is not None
    told = ["entity", "rows", "bits", "secret", "public", *(["labels", "sample"] if known else [])]
    for key in [*told, *(["content"] if known and same else [])]:
        if getattr(found, key) != getattr(stated, key):
            raise Broken(PEOPLE, f"{key} is not that of the source", "the source's", "another")
    if not known:
        return "; of the digest of people columns and numbers alone, for the key that it was made with is not there"
    return ", and the digest of people but for the table's name" + ("" if same else " and its hash of all rows")


def _check_known(opened: Release, found: Recounted) -> None:
    """What may be known of the records is what the source says of them. Raises Broken."""
    known, alphabets = opened.known_file, opened.joint.alphabets
    told = tuple((level.column, level.level) for level in known.levels)
    agree(KNOWN, [("levels", found.levels, told)])
    kept = Counter[tuple[Label, Label, Known]]()
    for s, *codes, number in known.cells:
        x, values = codes[: len(alphabets) - 1], codes[len(alphabets) - 1 :]
        labels = chain.from_iterable(one.values[code] for one, code in zip(alphabets[1:], x, strict=True))
        named = (level.values[code - 1] if code else RARE for level, code in zip(known.levels, values, strict=True))
        kept[alphabets[0].values[s], tuple(labels), tuple(named)] += number
    if kept != found.known:
        wrong = len((kept - found.known) + (found.known - kept))
        raise Broken(KNOWN, f"{wrong} rows have another number of records in the source", len(found.known), len(kept))
