"""The public columns of a policy: attributes, and the blocks that are sanitised as one alphabet."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Column = Annotated[Text, Field(description="Name of a column of the source table")]
Edge = Annotated[float, Field(allow_inf_nan=False)]
COLUMN_SCHEMA = {"type": "string", "minLength": 1, "pattern": r"\S"}
MOST_VALUES = 1_000_000


class Section(BaseModel):
    """A part of a policy: frozen, strict about types, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Attribute(Section):
    """A public column: as it is, cut into bins, or reduced to its most frequent values."""

    name: Column
    bins: tuple[Edge, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        description="Increasing edges of half-open intervals [a, b) of numbers; the last interval is open",
    )
    top: int | None = Field(
        None, ge=1, le=MOST_VALUES, description="Keep this many most frequent values; the rest is `other`"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        """A plain text is an attribute's name."""
        return {"name": data} if isinstance(data, str) else data

    @field_validator("bins")
    @classmethod
    def _increasing(cls, edges: tuple[float, ...] | None) -> tuple[float, ...] | None:
        """Point at the first edge that is not above the one before it."""
        for index, (low, high) in enumerate(pairwise(edges or ()), start=1):
            if not low < high:
                raise PydanticCustomError(
                    "bins",
                    "the edges must increase, but {high} follows {low}",
                    {"at": (index,), "low": f"{low:g}", "high": f"{high:g}"},
                )
        return edges

    @model_validator(mode="after")
    def _one_reduction(self) -> Self:
        """Bins and top exclude each other."""
        if self.bins is not None and self.top is not None:
            raise PydanticCustomError("wrong-value", "`bins` and `top` exclude each other", {"at": ("top",)})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see both spellings."""
        schema = handler(core)
        target = handler.resolve_ref_schema(schema)
        plain = COLUMN_SCHEMA | {"description": "A column as it is"}
        mapping = dict(target) | {"not": {"required": ["bins", "top"]}}
        target.clear()
        target.update(description=mapping.pop("description"), title="Attribute", anyOf=[plain, mapping])
        return schema


class Block(Section):
    """Public columns that are sanitised together, as one alphabet; most blocks hold a single column."""

    attributes: tuple[Attribute, ...] = Field(strict=False, min_length=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the block's columns."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def name(self) -> str:
        """The columns joined by +, as `split` names the block."""
        return "+".join(self.columns)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see an item of the list `public`."""
        schema = handler(core)
        target = handler.resolve_ref_schema(schema)
        many = target["properties"]["attributes"]
        many |= {"title": "Block", "description": target["description"]}
        target.clear()
        said = "One attribute, or a list of attributes that form a block"
        target.update(title="Public item", description=said, anyOf=[many["items"], many])
        return schema


def as_block(item: Any) -> Any:
    """An item of `public` is a block of itself, a list is a block of its members."""
    if isinstance(item, Block):
        return item
    return {"attributes": item if isinstance(item, list | tuple) else (item,)}


def spellings(columns: tuple[str, ...]) -> tuple[str, str]:
    """How a split may name a block: occupation+hours or occupation,hours."""
    return "+".join(columns), ",".join(columns)


def adds_up(shares: list[float]) -> bool:
    """Whether positive shares sum to one."""
    return math.isclose(math.fsum(shares), 1.0, rel_tol=0, abs_tol=1e-9)


def folded(column: str) -> str:
    """DuckDB's identity of a column name: ASCII letters match in either case, no others do."""
    return column.translate(_LOWER)


_LOWER = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
