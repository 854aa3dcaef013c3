"""The JSON Schema for editors says what the loader says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.policy.reader import read
from tests.support.schemas import SCHEMA, fits
from tests.support.small import SMALL
from tests.support.spoilt import SPOILT
from tests.unit.policy.pages import GOOD, MARK, good, wide

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(
    path
    for folder in ("policies", "examples")
    for path in (ROOT / folder).rglob("*.yaml")
    if not path.name.endswith(".lock.yaml")
)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from parts(item)
    elif isinstance(schema, dict):
        yield schema
        for word, inner in schema.items():
            if word in {"properties", "$defs"}:
                yield from (part for one in inner.values() for part in parts(one))
            elif word in {"items", "not", "anyOf", "oneOf", "prefixItems", "additionalProperties"}:
                yield from parts(inner)


def test_it_is_json_and_names_its_dialect() -> None:
    assert json.loads(json.dumps(SCHEMA, allow_nan=False)) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_it_is_a_schema_of_its_dialect() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_policy_that_ships_is_accepted(path: Path) -> None:
    data = read(path.read_text(encoding="utf-8"), path.name).data
    assert [one.message for one in Draft202012Validator(SCHEMA).iter_errors(data)] == []


def test_every_reference_leads_somewhere() -> None:
    references = {part["$ref"] for part in parts(SCHEMA) if "$ref" in part}
    assert references <= {f"#/$defs/{name}" for name in SCHEMA["$defs"]}


def test_every_key_is_described_in_one_line() -> None:
    for part in parts(SCHEMA):
        for name, said in part.get("properties", {}).items():
            assert said.get("description"), name
            assert "\n" not in said["description"]


def test_no_mapping_takes_unknown_keys() -> None:
    for part in parts(SCHEMA):
        if "properties" in part:
            assert part["additionalProperties"] is False


def test_it_knows_every_notion_and_mechanism() -> None:
    constants = {part["const"] for part in parts(SCHEMA) if "const" in part}
    assert constants >= NOTIONS.keys() | MECHANISMS.keys()
    assert SCHEMA["properties"]["mechanism"]["anyOf"][0]["enum"] == list(MECHANISMS)


ACCEPTED = {
    "good": GOOD,
    "small": SMALL,
    "mechanism with options": good(mechanism="mechanism: {kind: optimal, time_limit: 2.5}"),
    "split that is searched for": good(split="  split: optimal"),
    "perfect": good(notion="  notion: perfect", epsilon=""),
    "split": good(split="  split: {education: 0.4, age: 0.2, country: 0.2, occupation+hours: 0.2}"),
    "wide blocks": wide("cells: 20"),
    "wide blocks with more to say": wide("cells: {minimum: 20}", "[a, {name: b, bins: [1, 2]}]"),
    "dates": good(bins="    bins: [2020-01-01, 2021-01-01]", top="    round: quarter"),
    "groups": good(top="    groups: {North: [Oslo, 7]}\n    rare: other\n    trim: true"),
    "levels": good(top="    groups: [{}, {North: [Oslo]}]"),
    "block of attributes": GOOD.replace("[occupation, hours]", "[{name: occupation, top: 3}, hours]"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_the_loader_accepts_the_schema_accepts(case: str) -> None:
    assert fits(read(ACCEPTED[case], "f").data, SCHEMA)


BETWEEN_SECTIONS = (
    "a budget that may be infinite",
    "blanks beside",
    "bins falling",
    "bins equal",
    "bins of dates and numbers",
    "bins of a day",
    "bins of falling",
    "bins of bins",
    "clip of dates",
    "groups of nothing",
    "groups that overlap",
    "groups in",
    "levels that",
    "rare beside",
    "rare months",
    "rare values",
    "trim of",
    "bins without end",
    "split short",
    "split without",
    "split of",
    "split naming",
    "split empty",
    "a mechanism that",
    "a distance of no column",
    "rounding with digits",
    "radius of next",
    "sensitive ",
    "wide beside: ",
    "counts beside ",
    "public twice",
    "entity ",
    "permanent ",
    "key that",
    "private ",
    "to ",
    "an epsilon for the table",
    "a private estimate without",
    "a budget for less",
    "values ",
    "a value twice",
    "top values",
    "key file",
    "source pub",
    "equal keys",
    "leading zeros",
    "nothing ",
    "epsilon infinite",
    "epsilon overflowing",
    "epsilon of 400",
    "time without",
    "PostgreSQL",
    "DuckDB",
    "a password",
    "credentials",
    "another scheme",
)
NOT_JSON = ("version 1.0", "epsilon not a number", "perfect with not a number")
"""To JSON Schema 1.0 is the whole number 1, and JSON has nothing that is not a number."""


@pytest.mark.parametrize(
    "case", [case for case in SPOILT if not case.startswith((*BETWEEN_SECTIONS, *NOT_JSON))]
)
def test_what_a_single_section_shows_the_schema_refuses(case: str) -> None:
    data = read(SPOILT[case][0].replace(MARK, ""), "f").data
    assert not fits(data, SCHEMA)
