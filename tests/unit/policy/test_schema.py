"""The JSON Schema for editors says what the loader says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.policy import json_schema
from funnel.policy.reader import read
from tests.unit.policy.pages import GOOD, MARK, good
from tests.unit.policy.test_policy import SMALL
from tests.unit.policy.test_problems import SPOILT

SCHEMA = json_schema()
_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "number": int | float, "integer": int}
_KNOWN = {
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "default",
    "type",
    "properties",
    "required",
    "items",
    "pattern",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "prefixItems",
    "maxItems",
    "minItems",
    "minLength",
    "maxLength",
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """The part of JSON Schema 2020-12 that our schema uses."""
    if "$ref" in schema and not fits(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]):
        return False
    checks: dict[str, Callable[[Any], object]] = {
        "type": lambda said: isinstance(value, _TYPES[said]) and not isinstance(value, bool),
        "enum": lambda said: value in said,
        "const": lambda said: value == said and type(value) is type(said),
        "anyOf": lambda said: any(fits(value, one) for one in said),
        "oneOf": lambda said: sum(fits(value, one) for one in said) == 1,
        "not": lambda said: not fits(value, said),
        "pattern": lambda said: not isinstance(value, str) or re.search(said, value),
        "minLength": lambda said: not isinstance(value, str) or len(value) >= said,
        "maxLength": lambda said: not isinstance(value, str) or len(value) <= said,
        "minItems": lambda said: not isinstance(value, list) or len(value) >= said,
        "minimum": lambda said: not isinstance(value, int | float) or value >= said,
        "maximum": lambda said: not isinstance(value, int | float) or value <= said,
        "exclusiveMinimum": lambda said: not isinstance(value, int | float) or value > said,
        "exclusiveMaximum": lambda said: not isinstance(value, int | float) or value < said,
        "maxItems": lambda said: not isinstance(value, list) or len(value) <= said,
        "prefixItems": lambda said: (
            not isinstance(value, list)
            or all(fits(one, each) for one, each in zip(value, said, strict=False))
        ),
        "items": lambda said: not isinstance(value, list) or all(fits(one, said) for one in value),
        "required": lambda said: not isinstance(value, dict) or all(key in value for key in said),
    }
    return all(check(schema[word]) for word, check in checks.items() if word in schema) and _entries_fit(
        value, schema
    )


def _entries_fit(value: Any, schema: dict[str, Any]) -> bool:
    """Each entry of a mapping fits its property, or what is said of further ones."""
    if not isinstance(value, dict):
        return True
    named, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    return all(
        fits(one, named[key]) if key in named else others is True or (others and fits(one, others))
        for key, one in value.items()
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


def test_it_uses_only_words_that_these_tests_understand() -> None:
    assert {word for part in parts(SCHEMA) for word in part} <= _KNOWN


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
    "perfect": good(notion="  notion: perfect", epsilon=""),
    "split": good(split="  split: {education: 0.4, age: 0.2, country: 0.2, occupation+hours: 0.2}"),
    "block of attributes": GOOD.replace("[occupation, hours]", "[{name: occupation, top: 3}, hours]"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_the_loader_accepts_the_schema_accepts(case: str) -> None:
    assert fits(read(ACCEPTED[case], "f").data, SCHEMA)


BETWEEN_SECTIONS = (
    "bins falling",
    "bins equal",
    "bins without end",
    "split short",
    "split without",
    "split of",
    "split naming",
    "split empty",
    "a mechanism that",
    "rounding with digits",
    "radius of next",
    "sensitive ",
    "public twice",
    "entity ",
    "permanent ",
    "key that",
    "private ",
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
    "object store",
    "DuckDB",
)


@pytest.mark.parametrize("case", [case for case in SPOILT if not case.startswith(BETWEEN_SECTIONS)])
def test_what_a_single_section_shows_the_schema_refuses(case: str) -> None:
    data = read(SPOILT[case][0].replace(MARK, ""), "f").data
    assert not fits(data, SCHEMA)
