"""Documents against the published JSON Schema."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from funnel.policy import json_schema

SCHEMA = json_schema()


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether the jsonschema library accepts a value."""
    return Draft202012Validator(schema).is_valid(value)
