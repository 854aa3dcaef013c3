"""The items of `public`: blocks of columns that are sanitised as one alphabet, of values or of cells."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from funnel.policy.columns import COLUMN_SCHEMA, Attribute, Column, Section

MOST_CELLS = 2_048
"""What a protocol holds of any alphabet."""


class CellLimits(Section):
    """How finely the columns of a wide block are told apart."""

    most: int = Field(200, ge=2, le=MOST_CELLS, description="Cells of the block at most")
    minimum: int = Field(50, ge=1, le=10**12, description="Records that every cell needs at least")

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, data: Any) -> Any:
        """A plain number is how many there may be."""
        return {"most": data} if isinstance(data, int | float | str) else data


class Block(Section):
    """Public columns that are sanitised together, as one alphabet; most blocks hold a single column.

    A wide block has a name and `cells`: its alphabet are the cells of a partition of what its columns hold together.
    """

    attributes: tuple[Attribute, ...] = Field(alias="columns", strict=False, min_length=1)
    given: Column | None = Field(None, alias="name")
    cells: CellLimits | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read and released."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its alphabet's columns: its own columns, or the name of a wide block."""
        return self.columns if self.given is None else (self.given,)

    @property
    def name(self) -> str:
        """The alphabet's columns joined by +, as `split` names the block."""
        return "+".join(self.labels)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see an item of the list `public`."""
        schema = handler(core)
        target = handler.resolve_ref_schema(schema)
        many, cells = (target["properties"][key] for key in ("columns", "cells"))
        wide = {
            "type": "object",
            "title": "Wide block",
            "description": "Many columns as one alphabet of cells",
            "additionalProperties": False,
            "required": ["name", "columns"],
            "properties": {
                "name": COLUMN_SCHEMA | {"description": "Name of the block, and of its alphabet's column"},
                "columns": many | {"title": "Columns", "description": "The block's columns", "minItems": 2},
                "cells": _or_number(cells),
            },
        }
        many |= {"title": "Block", "description": target["description"]}
        target.clear()
        said = "One attribute, a list of attributes that form a block, or a wide block"
        target.update(title="Public item", description=said, anyOf=[many["items"], many, wide])
        return schema


def _or_number(cells: JsonSchemaValue) -> JsonSchemaValue:
    """The section, or the number that is its `most`."""
    sections = [one for one in cells["anyOf"] if one != {"type": "null"}]
    number = {"type": "integer", "minimum": 2, "maximum": MOST_CELLS, "description": "Cells at most"}
    return {"anyOf": [number, *sections], "description": "How many cells, and of how many records each"}


def is_wide(item: Any) -> bool:
    """Whether an item of `public`, as plain data, is a wide block."""
    return isinstance(item, dict) and "columns" in item


def as_block(item: Any) -> Any:
    """An item of `public` is a block of itself, a list is a block of its members, one with `columns` is wide."""
    if isinstance(item, Block):
        return item
    if is_wide(item):
        return {"cells": {}} | item
    return {"columns": item if isinstance(item, list | tuple) else (item,)}


def spellings(columns: tuple[str, ...]) -> tuple[str, str]:
    """How a split may name a block: occupation+hours or occupation,hours."""
    return "+".join(columns), ",".join(columns)


def adds_up(shares: list[float]) -> bool:
    """Whether positive shares sum to one."""
    return math.isclose(math.fsum(shares), 1.0, rel_tol=0, abs_tol=1e-9)
