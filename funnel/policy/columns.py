"""The public columns of a policy, each as it is or reduced."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import date
from decimal import Decimal
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from funnel.policy.groups import LEVELS_SCHEMA, Level, as_levels, climb

SHOWN = r"\S"
"""What every text has: one letter that is no blank."""
Text = Annotated[str, Field(min_length=1, pattern=SHOWN)]
Column = Annotated[Text, Field(description="Name of a column of the source table")]
COLUMN_SCHEMA = {"type": "string", "minLength": 1, "pattern": SHOWN}
Calendar = Literal["day", "week", "month", "quarter", "year"]
CALENDAR: tuple[Calendar, ...] = ("day", "week", "month", "quarter", "year")
REDUCTIONS = ("bins", "round", "top", "groups")
"""Keys that make other values of a column's own; they exclude each other."""
MOST_VALUES = 1_000_000
MOST_DECIMALS = 9
"""Digits after the point of rounded numbers: as many stand before it in what is released."""
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LEAST_STEP, _MOST_STEP = 1e-9, 1e15


def _wrong(said: str, *at: str | int) -> PydanticCustomError:
    """A value that its type allows and its sense does not; `at` is the way to it from where it is noticed."""
    return PydanticCustomError("wrong-value", "{said}", {"said": said, "at": at})


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _edge(given: Any) -> float | date:
    """An edge of bins: a finite number, or a date as ISO 8601 writes it."""
    if isinstance(given, date):
        return given
    if isinstance(given, str) and re.fullmatch(_DATE, given):
        with suppress(ValueError):
            return date.fromisoformat(given)
    elif _is_number(given) and math.isfinite(given):
        # The name of a bin is its edge: one of more digits would be another edge to whoever reads the name.
        if float(text := edge_text(edge := float(given))) != edge:
            raise PydanticCustomError("bins", "{said}", {"said": f"an edge has at most 15 digits: write {text}"})
        return edge
    said = "an edge is a finite number without quotes, or a date such as 2026-01-31"
    raise PydanticCustomError("bins", "{said}", {"said": said})


def _step(given: Any) -> float | Calendar:
    """What values are rounded to: multiples of a number that can be printed, or a part of the calendar."""
    if isinstance(given, str):
        for part in CALENDAR:
            if given == part:
                return part
    if not _is_number(given):
        raise PydanticCustomError("wrong-type", f"it is a number, or one of {', '.join(CALENDAR)}")
    if not _LEAST_STEP <= given <= _MOST_STEP:
        raise _wrong(f"it must be between {_LEAST_STEP:g} and {_MOST_STEP:g}")
    if -int(Decimal(repr(given)).normalize().as_tuple().exponent) > MOST_DECIMALS:
        raise _wrong(f"it has more than {MOST_DECIMALS} digits after the point")
    return float(given)


Number = Annotated[float, Field(allow_inf_nan=False)]
Edge = Annotated[
    float | date,
    PlainValidator(_edge),
    PlainSerializer(lambda edge: edge if isinstance(edge, float) else edge_text(edge), when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": _DATE}]}),
]
_STEP_SCHEMA = {
    "anyOf": [{"type": "number", "minimum": _LEAST_STEP, "maximum": _MOST_STEP}, {"enum": [*CALENDAR]}]
}
Step = Annotated[float | Calendar, PlainValidator(_step), WithJsonSchema(_STEP_SCHEMA)]
Levels = Annotated[tuple[Level, ...], BeforeValidator(as_levels), WithJsonSchema(LEVELS_SCHEMA)]


def edge_text(edge: float | date) -> str:
    """The end of a bin, in labels and in SQL."""
    return edge.isoformat() if isinstance(edge, date) else format(edge, ".15g")


def both_spellings(
    handler: GetJsonSchemaHandler, core: CoreSchema, plain: JsonSchemaValue, more: JsonSchemaValue | None = None
) -> JsonSchemaValue:
    """The schema of a mapping that may be written `plain`; `more` is said of the mapping."""
    schema = handler(core)
    target = handler.resolve_ref_schema(schema)
    mapping = target | (more or {})
    target.clear()
    target.update(description=mapping.pop("description"), title=mapping["title"], anyOf=[plain, mapping])
    return schema


class Section(BaseModel):
    """A part of a policy: frozen, strict about types, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Attribute(Section):
    """A public column: as it is, cut into bins, rounded, grouped by meaning, or reduced to its most frequent values.

    `groups` are levels, lowest first, from names to the names above them: what is released are those of the first.
    """

    name: Column
    bins: tuple[Edge, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        description="Increasing edges of half-open intervals [a, b) of numbers or dates; the last interval is open",
    )
    round: Step | None = Field(
        None,
        description="Round numbers to multiples of this, or dates to their day, week, month, quarter or year; what is "
        "released has that precision",
    )
    clip: tuple[Number, Number] | None = Field(
        None, strict=False, description="Numbers below the first or above the second become that end"
    )
    top: int | None = Field(
        None, ge=1, le=MOST_VALUES, description="Keep this many most frequent values; the rest is `other`"
    )
    groups: Levels | None = Field(
        None,
        strict=False,
        description="Values merged by meaning: groups with their values, or a CSV file of value,group; in a list each "
        "level groups the names of the one before. Values not named keep their own name",
    )
    rare: Literal["error", "other", "bin"] | None = Field(
        None,
        description="Values of fewer than estimate.minimum records: an error (the default where a block is not wide), "
        "the value `other`, or (numbers, dates) `bin`, the nearest value that stands for as many; in a wide block "
        "numbers and dates are joined with their neighbours",
    )
    trim: bool = Field(False, description="Leave out blanks around texts; a text of nothing else is missing")
    unseen: Literal["error", "other", "drop"] = Field(
        "error",
        description="Under a lock, values that it does not know: an error, the value `other`, or rows dropped; not "
        "asked where `top` or `rare` has a place for every value",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        """A plain text is an attribute's name."""
        return {"name": data} if isinstance(data, str) else data

    @field_validator("bins")
    @classmethod
    def _increasing(cls, edges: tuple[float | date, ...] | None) -> tuple[float | date, ...] | None:
        """Point at the first edge that is not above the one before it."""
        for index, (low, high) in enumerate(pairwise(edges or ()), start=1):
            if type(low) is not type(high):
                said = "edges are all numbers or all dates"
                raise PydanticCustomError("bins", "{said}", {"at": (index,), "said": said})
            if not low < high:  # type: ignore[operator]  # of one type
                said = f"the edges must increase, but {edge_text(high)} follows {edge_text(low)}"
                raise PydanticCustomError("bins", "{said}", {"at": (index,), "said": said})
        return edges

    @field_validator("clip", mode="before")
    @classmethod
    def _two_ends(cls, ends: Any) -> Any:
        """A list of another length."""
        if isinstance(ends, list | tuple) and len(ends) != 2:
            raise _wrong("it needs two numbers, the first end and the second")
        return ends

    @model_validator(mode="after")
    def _one_reduction(self) -> Self:
        """What excludes what, and what needs what."""
        given = [name for name in REDUCTIONS if getattr(self, name) is not None]
        if len(given) > 1:
            raise _wrong(f"`{given[0]}` and `{given[1]}` exclude each other", given[1])
        if self.clip is not None and not isinstance(self.round, float):
            raise _wrong("`clip` needs `round` by a number", "clip")
        if self.clip is not None and not self.clip[0] < self.clip[1]:
            raise _wrong("the first end of `clip` must be below the second", "clip")
        if self.unseen == "other" and (self.is_measured or self.rare == "bin"):
            raise _wrong("numbers and dates have no value `other`; use `error` or `drop`", "unseen")
        if self.merges_rare and self.top is not None:
            raise _wrong("`top` makes one value of all others already; leave one of the two out", "rare")
        if self.rare == "bin" and (not self.keeps_kind or self.round in ("month", "quarter")):
            raise _wrong(f"what `{given[0]}` makes are no numbers or dates; use `other`", "rare")
        if self.trim and self.is_measured:
            raise _wrong("numbers and dates have no blanks to leave out", "trim")
        return self

    @property
    def reduced(self) -> bool:
        """Whether values are put together, so that what is released of a column is coarser than its own."""
        return self.is_measured or self.top is not None or self.groups is not None or self.merges_rare

    @property
    def is_number(self) -> bool:
        """Whether the source column must hold numbers."""
        return isinstance(self.round, float) or (self.bins is not None and isinstance(self.bins[0], float))

    @property
    def is_date(self) -> bool:
        """Whether the source column must hold dates, or texts that are dates."""
        return self.is_measured and not self.is_number

    @property
    def is_measured(self) -> bool:
        """Whether the column's values are numbers or dates by what becomes of them."""
        return self.bins is not None or self.round is not None

    @property
    def keeps_kind(self) -> bool:
        """Whether what it stands for are numbers, dates or texts like the column's own, and no names of several."""
        return self.bins is None and self.top is None and self.groups is None

    @property
    def follows_table(self) -> str | None:
        """The key by which it depends on the table which values are told apart; None where the policy settles it."""
        return "top" if self.top is not None else "rare" if self.merges_rare else None

    @property
    def merges_rare(self) -> bool:
        """Whether rare values become another one."""
        return self.rare in ("other", "bin")

    def names(self, value: str) -> tuple[str, ...]:
        """The groups of a value at every level, lowest first; () without groups."""
        return climb(value, self.groups or ())

    def above(self, released: str) -> tuple[str, ...]:
        """The groups above a released value, lowest first; () where there is one level, or none."""
        return climb(released, (self.groups or ())[1:])

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see both spellings."""
        together = [{"required": [*pair]} for pair in combinations(REDUCTIONS, 2)]
        alone = {"required": ["clip"], "not": {"required": ["round"]}}
        plain = COLUMN_SCHEMA | {"description": "A column as it is"}
        return both_spellings(handler, core, plain, {"not": {"anyOf": [*together, alone]}})
