"""The public columns of a policy, each as it is or reduced."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Column = Annotated[Text, Field(description="Name of a column of the source table")]
Edge = Annotated[float, Field(allow_inf_nan=False)]
COLUMN_SCHEMA = {"type": "string", "minLength": 1, "pattern": r"\S"}
MOST_VALUES = 1_000_000
MOST_DECIMALS = 9
"""Digits after the point of rounded numbers: as many stand before it in what is released."""


def _wrong(said: str, *at: str) -> PydanticCustomError:
    """A value that its type allows and its sense does not; `at` is the way to it from where it is noticed."""
    return PydanticCustomError("wrong-value", "{said}", {"said": said, "at": at})


class Section(BaseModel):
    """A part of a policy: frozen, strict about types, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Attribute(Section):
    """A public column: as it is, cut into bins, rounded, or reduced to its most frequent values."""

    name: Column
    bins: tuple[Edge, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        description="Increasing edges of half-open intervals [a, b) of numbers; the last interval is open",
    )
    round: Annotated[float, Field(ge=1e-9, le=1e15, allow_inf_nan=False)] | None = Field(
        None, description="Round numbers to multiples of this; what is released are numbers of that precision"
    )
    clip: tuple[Edge, Edge] | None = Field(
        None, strict=False, description="Numbers below the first or above the second become that end"
    )
    top: int | None = Field(
        None, ge=1, le=MOST_VALUES, description="Keep this many most frequent values; the rest is `other`"
    )
    unseen: Literal["error", "other", "drop"] = Field(
        "error",
        description="Under a lock, values that it does not know: an error, the value `other`, or rows dropped",
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

    @field_validator("round")
    @classmethod
    def _printable(cls, step: float | None) -> float | None:
        """What is released are exact decimal numbers."""
        if step is not None and -int(Decimal(repr(step)).normalize().as_tuple().exponent) > MOST_DECIMALS:
            raise _wrong(f"it has more than {MOST_DECIMALS} digits after the point")
        return step

    @field_validator("clip", mode="before")
    @classmethod
    def _two_ends(cls, ends: Any) -> Any:
        """A list of another length."""
        if isinstance(ends, list | tuple) and len(ends) != 2:
            raise _wrong("it needs two numbers, the first end and the second")
        return ends

    @model_validator(mode="after")
    def _one_reduction(self) -> Self:
        """Bins, rounding and top exclude each other; only rounded numbers are clipped."""
        given = [name for name in ("bins", "round", "top") if getattr(self, name) is not None]
        if len(given) > 1:
            raise _wrong(f"`{given[0]}` and `{given[1]}` exclude each other", given[1])
        if self.clip is not None and self.round is None:
            raise _wrong("`clip` needs `round`", "clip")
        if self.clip is not None and not self.clip[0] < self.clip[1]:
            raise _wrong("the first end of `clip` must be below the second", "clip")
        if self.unseen == "other" and self.is_number:
            raise _wrong("numbers have no value `other`; use `error` or `drop`", "unseen")
        return self

    @property
    def reduced(self) -> bool:
        """Whether values are put together, so that what is released of a column is coarser than its own."""
        return self.is_number or self.top is not None

    @property
    def is_number(self) -> bool:
        """Whether the source column must hold numbers."""
        return self.bins is not None or self.round is not None

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see both spellings."""
        schema = handler(core)
        target = handler.resolve_ref_schema(schema)
        plain = COLUMN_SCHEMA | {"description": "A column as it is"}
        mapping = dict(target) | {
            "not": {
                "anyOf": [
                    *({"required": pair} for pair in (["bins", "top"], ["bins", "round"], ["round", "top"])),
                    {"required": ["clip"], "not": {"required": ["round"]}},
                ]
            }
        }
        target.clear()
        target.update(description=mapping.pop("description"), title="Attribute", anyOf=[plain, mapping])
        return schema
