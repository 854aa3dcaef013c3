"""The policy language as JSON Schema, for editors that complete and check while one types."""

from __future__ import annotations

from typing import Any

from funnel.mechanisms import MECHANISMS
from funnel.policy.model import Policy

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAMES = {"notion": "Name of the privacy notion", "kind": "Name of the mechanism"}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of one policy file, made from the models that the loader validates with.

    It accepts every policy that the loader accepts; what shows between values alone, and how numbers are written, is
    left to the loader.
    """
    schema: dict[str, Any] = _without_null(Policy.model_json_schema())
    for definition in (schema, *schema["$defs"].values()):
        _describe(definition)
    mechanism = schema["properties"]["mechanism"]
    bare = {"enum": list(MECHANISMS), "description": "A mechanism without options"}
    mechanism |= {"anyOf": [bare, *mechanism.pop("oneOf")], "default": "optimal"}
    del mechanism["discriminator"], schema["properties"]["privacy"]["discriminator"]
    return {"$schema": _DIALECT} | schema | {"title": "funnel policy, version 1"}


def _describe(definition: dict[str, Any]) -> None:
    """First lines of docstrings only, words for `notion` and `kind`."""
    definition["description"] = definition["description"].partition("\n")[0]
    properties = definition.get("properties", {})
    for name, said in _NAMES.items():
        properties.get(name, {}).setdefault("description", said)


def _without_null(schema: Any) -> Any:
    """An optional key is left out, never null; a default of null is no default to show."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    cleaned = {key: _without_null(value) for key, value in schema.items() if value is not None}
    alternatives = cleaned.get("anyOf", [])
    if len(alternatives) == 1:
        del cleaned["anyOf"]
        return alternatives[0] | cleaned
    return cleaned
