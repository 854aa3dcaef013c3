"""The policy language, version 1, as frozen models: a policy is data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from funnel.data.alphabet import folded
from funnel.engine import EngineName
from funnel.errors import Problem
from funnel.mechanisms import AnyMechanism, Optimal
from funnel.notions import AnyNotion
from funnel.notions.base import MAX_EPSILON
from funnel.policy.blocks import Block, as_block, spellings
from funnel.policy.columns import Column, Section, Text
from funnel.policy.document import Origin, Path
from funnel.policy.groups import VALUES_SCHEMA
from funnel.policy.metadata import Metadata
from funnel.policy.release import KEY, Columns, Parted, ReleaseSection, check_address, check_settings, several

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*([.][A-Za-z0-9_-]+)*$"
"""Safe as the name of a folder everywhere: no separators, no leading or trailing dot."""
NAME_LENGTH = 64
MOST_RECORDS = 10**12
MOST_BUDGET = 1e6
MOST_STEP = 0.25
"""The widest step of beliefs; wider ones leave nothing to go by."""
UNBOUNDED = "unbounded"
"""What a policy accepts whose own releases may tell more than any bound."""


class Csv(Section):
    """How a CSV is written, where the engine cannot find it out."""

    header: bool | None = Field(
        None, description="Whether the first line holds names; false needs `names`, and without them it does"
    )
    delimiter: str | None = Field(
        None, min_length=1, max_length=1, description="What separates fields, such as ;"
    )
    decimal: Literal[",", "."] | None = Field(None, description="The decimal point of numbers")
    names: tuple[Column, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        description="The columns' names, in order; instead of those in the file",
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        """Without names, the first record would be taken for them."""
        if self.header is False and self.names is None:
            said = "without a header columns have no names: name every column under `names`"
            raise PydanticCustomError("wrong-value", "{said}", {"said": said, "at": ("header",)})
        called = [folded(name) for name in self.names or ()]
        if twice := [place for place, name in enumerate(called) if name in called[:place]]:
            said = "two columns cannot have one name; upper and lower case make no difference"
            raise PydanticCustomError("duplicate-column", "{said}", {"said": said, "at": ("names", twice[0])})
        return self


class SourceSection(Section):
    """Where the records are and which of them count."""

    table: Text = Field(
        description="A CSV, Parquet or JSON lines file (globs allowed), a folder of partitions, or a DuckDB file with "
        "#table, relative to the policy file"
    )
    csv: Csv | None = Field(None, description="How a CSV is written, where sniffing is wrong")
    filter: Text | None = Field(None, description="A predicate over source columns; other rows are left out")
    entity: Column | None = Field(None, description="Column that identifies a person; at most one row each")
    missing: Literal["category", "drop", "error"] = Field(
        "error",
        description="Missing values in a used column: a category of their own, rows dropped, or an error",
    )

    @field_validator("table")
    @classmethod
    def _offered(cls, table: str) -> str:
        """Files, tables of databases by name, and addresses without a password."""
        check_address(table)
        if table.lower().endswith((".duckdb", ".ddb")):
            raise PydanticCustomError(
                "wrong_value",
                "a DuckDB file holds many tables: name one, as in {table}#people",
                {"table": table},
            )
        return table


def _as_text(value: Any) -> Any:
    """A whole number stands for its text, as values are counted."""
    return str(value) if type(value) is int else value


Values = Annotated[tuple[Annotated[str, BeforeValidator(_as_text)], ...], Field(strict=False, min_length=1)]


Budget = Annotated[float, Field(gt=0, le=MOST_BUDGET, allow_inf_nan=False)]


class EstimateSection(Section):
    """How the joint distribution of the secret and the public columns is estimated."""

    minimum: int = Field(
        10, ge=1, le=MOST_RECORDS, description="Records that every value of every public block needs at least"
    )
    kind: Literal["counts", "private"] = Field(
        "counts",
        description="counts: the table's own frequencies; private: those with noise on every count, so that what is "
        "published about the table as a whole hides every single record",
    )
    beliefs: Annotated[float, Field(gt=0, le=MOST_STEP, allow_inf_nan=False)] | None = Field(
        None,
        description="Protocols are made from beliefs rounded outward to steps of at least this, and hold for all that "
        "round alike, so that their weights do not tell counts",
    )
    epsilon: Annotated[float, Field(gt=0, le=MAX_EPSILON, allow_inf_nan=False)] | None = Field(
        None,
        description="private: how much one record may show in the noisy counts, in nats, each time they are estimated: "
        "once within twelve hours, or for a lock",
    )
    budget: Budget | None = Field(
        None, description="private: what all estimates of the private folder together may spend, in nats"
    )
    values: Annotated[dict[Column, Values], WithJsonSchema(VALUES_SCHEMA)] | None = Field(
        None,
        description="private: the values that each column can take, known before the table is; columns with `bins` "
        "need none",
    )


def _as_setting(value: Any) -> Any:
    """Numbers and yes or no stand for their texts, as Spark writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Settings = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^spark\.\S+$")],
        Annotated[str, BeforeValidator(_as_setting), WithJsonSchema({"type": ["string", "number", "boolean"]})],
    ],
    AfterValidator(check_settings),
]


class Draws(Section):
    """Whether the same record answers the same way in every release."""

    kind: Literal["permanent", "fresh"] = Field(
        "fresh",
        description="permanent: one answer per person for good (the default where source.entity is given); "
        "fresh: new noise in every release",
    )
    key: Annotated[str, Field(pattern=KEY)] | None = Field(
        None, description="Where the secret key of permanent draws is kept: env:NAME or file:PATH"
    )


Named = Annotated[str, Field(pattern=NAME, max_length=NAME_LENGTH)]
_NAMED = {"type": "string", "pattern": NAME, "maxLength": NAME_LENGTH}
Accepted = Annotated[
    tuple[Named, ...],
    BeforeValidator(several),
    WithJsonSchema({"anyOf": [_NAMED, {"type": "array", "items": _NAMED, "minItems": 1}]}),
]


def _with_options(value: Any) -> Any:
    """A bare name is a mechanism without options."""
    return {"kind": value} if isinstance(value, str) else value


def _exactly_one(value: Any) -> Any:
    """`true` and 1.0 equal 1 in Python, not in a policy."""
    if type(value) is not int:
        raise PydanticCustomError("not_version_1", "`version` must be 1")
    return value


class Policy(Section):
    """What is published about people, what stays hidden, and how well.

    Made by `funnel.policy.load`, which also checks what no single section can see.
    """

    version: Annotated[Literal[1], BeforeValidator(_exactly_one)] = Field(
        description="Version of the policy language"
    )
    name: str = Field(
        pattern=NAME, max_length=NAME_LENGTH, description="Short name: letters, digits, -, _ and dots inside"
    )
    description: str = Field("", description="What this release is for, in a sentence")
    source: SourceSection = Field(description="Where the records are")
    estimate: EstimateSection = Field(default_factory=EstimateSection, description="How the distribution is estimated")
    engine: EngineName = Field(
        "duckdb",
        description="What reads the table: duckdb, on one machine; spark, for tables that outgrow it",
    )
    spark: Settings | None = Field(
        None,
        description="Settings of Spark by name, such as spark.master; others come from its own environment",
    )
    sensitive: Columns = Field(
        strict=False,
        min_length=1,
        description="The secret: one column, or several as their tuple; never released as it is, "
        "and randomised only where `public` names it, too",
    )
    public: tuple[Annotated[Block, BeforeValidator(as_block)], ...] = Field(
        strict=False,
        min_length=1,
        description="Everything that is released: columns, lists of columns (blocks), or wide blocks of cells",
    )
    privacy: AnyNotion = Field(description="The privacy notion that the release keeps, with its parameters")
    mechanism: Annotated[AnyMechanism, BeforeValidator(_with_options)] = Field(
        default_factory=lambda: Optimal(kind="optimal"),
        description="How values are randomised: a mechanism's name, or a mapping with kind and options",
    )
    draws: Draws = Field(default_factory=Draws, description="Whether answers are permanent")
    budget: Budget | None = Field(
        None, description="Nats of composed leakage, in the notion's measure, that all releases together may reach"
    )
    accept: Accepted = Field(
        (),
        strict=False,
        min_length=1,
        description="What a release may end: the promises of other policies, by name; unbounded: this policy's own, so "
        "that what its releases tell together may have no finite bound",
    )
    metadata: Metadata | None = Field(
        None, description="What catalogues tell readers; it promises nothing, and changes no promise"
    )
    release: ReleaseSection = Field(description="Where the release goes")
    _origin: Origin = PrivateAttr(default_factory=Origin)

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, name: str) -> str:
        """`accept: unbounded` is about the policy's own promise, whoever else is in the folder."""
        if name == UNBOUNDED:
            told = "{name} is what `accept` calls a bound that is given up: choose another name"
            raise PydanticCustomError("wrong_value", told, {"name": name})
        return name

    @model_validator(mode="before")
    @classmethod
    def _default_draws(cls, data: Any) -> Any:
        """Draws are permanent where an entity is given, unless the policy says otherwise."""
        if not isinstance(data, dict):
            return data
        source, draws = data.get("source"), data.get("draws", {})
        if isinstance(source, dict) and "entity" in source and isinstance(draws, dict):
            return data | {"draws": {"kind": "permanent"} | draws}
        return data

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The public columns, as the blocks that are sanitised one by one."""
        return self.public

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive and the public columns, in the order of the policy."""
        return (*self.sensitive, *(column for block in self.public for column in block.columns))

    @property
    def parted(self) -> Parted | None:
        """How the table lies in several files: as is asked, or as an engine needs it that writes in many places."""
        several = self.engine == "spark" and (self.release.identify or self.wide)
        return self.release.partition or (Parted() if several else None)

    @property
    def wide(self) -> tuple[Block, ...]:
        """The blocks whose alphabets are cells."""
        return tuple(block for block in self.public if block.cells is not None)

    @property
    def secret_public(self) -> bool:
        """Whether every sensitive column is also among the public ones."""
        public = {folded(column) for block in self.public for column in block.columns}
        return {folded(column) for column in self.sensitive} <= public

    def shares(self) -> tuple[float, ...]:
        """The share of epsilon that each block gets, in the order of `blocks`; they sum to one.

        Equal ones for `split: optimal`: that is where the search begins.
        """
        split = self.privacy.split
        if isinstance(split, str):
            return (1 / len(self.public),) * len(self.public)
        return tuple(
            next(split[name] for name in spellings(block.labels) if name in split) for block in self.public
        )

    @property
    def text(self) -> str:
        """The policy file, verbatim: encoded as UTF-8 these are its bytes."""
        return self._origin.text

    @property
    def files(self) -> Mapping[str, str]:
        """The texts of the files of groups that the policy names, by the name that it gives them."""
        return self._origin.files

    @property
    def sha256(self) -> str:
        """SHA-256 of the policy file's bytes, in hexadecimal."""
        return self._origin.sha256

    @property
    def file(self) -> str:
        """The policy file, as it was named when loaded."""
        return self._origin.file

    @property
    def directory(self) -> FilePath:
        """The folder of the policy file, against which it names others."""
        return self._origin.directory

    def path(self, text: str) -> FilePath:
        """A path named in the policy, seen from the current folder."""
        return self.directory / text

    @property
    def to(self) -> FilePath:
        """The folder of what is published, seen from the current one."""
        return self.path(self.release.to)

    @property
    def private(self) -> FilePath:
        """The folder of counts, ledger and evidence, seen from the current one."""
        return self.path(self.release.private)

    def place(self, column: str) -> Path:
        """The path at which a used column is named, for `problem`; () where it is not."""
        return self._origin.columns.get(folded(column), ())

    def problem(self, path: Path, code: str, message: str, suggestion: str | None = None) -> Problem:
        """A problem found later (unknown column, bad filter) at the place in the file that caused it."""
        return Problem(code, message, self.file, *self._origin.places.of(path), suggestion)
