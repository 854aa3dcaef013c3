"""Where a release goes: folders, and a database beside them.

Addresses that a policy may name are of a known kind, and without a password.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, field_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from funnel.policy.columns import COLUMN_SCHEMA, Column, Section, Text, both_spellings
from funnel.policy.document import shortened

KEY = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.*\S.*)$"
_DATABASES = ("postgresql",)
SCHEMES = ("postgresql", "s3", "gs", "abfs", "hdfs")
"""Where tables may be beside files of this machine."""


def several(value: Any) -> Any:
    """A single column may be written without brackets."""
    return (value,) if isinstance(value, str) else value


Columns = Annotated[
    tuple[Column, ...],
    BeforeValidator(several),
    WithJsonSchema({"anyOf": [COLUMN_SCHEMA, {"type": "array", "items": COLUMN_SCHEMA, "minItems": 1}]}),
]


class Also(Section):
    """A table of a database that the released one is written to."""

    table: Text = Field(description="postgresql://user@host/database#schema.table")
    old: Literal["replace", "keep"] = Field(
        "replace",
        description="The table of the release before: replaced, or kept under a name with the date of its release",
    )

    @field_validator("table")
    @classmethod
    def _a_database(cls, table: str) -> str:
        """A table of a database, without a password."""
        if "://" not in table:
            told = "`also` names a table of a database: postgresql://user@host/database#schema.table"
            raise PydanticCustomError("wrong_value", "{told}", {"told": told})
        return check_address(table, _DATABASES)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see both spellings."""
        plain = {"type": "string", "pattern": "^postgresql://", "description": "The table"}
        return both_spellings(handler, core, plain)


class Parted(Section):
    """Folders by the values of a column, with files of bounded size; or such files alone."""

    column: Column | None = Field(None, description="A released column of few values; none: no folders")
    rows: int = Field(
        1_000_000, gt=0, description="Rows of a file, at most; about as many, where there are names and no folders"
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors see both spellings."""
        return both_spellings(handler, core, dict(COLUMN_SCHEMA))


def _alone(key: str) -> BeforeValidator:
    """A bare text is a mapping with nothing but this key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class ReleaseSection(Section):
    """Where a release goes."""

    to: Text = Field(description="Folder of what is published, relative to the policy file")
    private: Text = Field(description="Folder of counts, ledger and audit evidence; never inside `to`")
    format: Literal["parquet", "csv"] = Field("parquet", description="Format of the published table")
    rows: Literal["records", "counts"] = Field(
        "records",
        description="records: a row of the table for each record; counts: each distinct row once, with a column "
        "`count` of how many records it stands for",
    )
    identify: Columns = Field(
        (),
        strict=False,
        min_length=1,
        description="Key columns, published untouched beside the sanitised ones, so that a row has a name; rows are "
        "sorted by them",
    )
    formulas: Literal["refuse", "keep"] = Field(
        "refuse",
        description="Values that spreadsheets would carry out as formulas, in a CSV file: refuse them, or keep them as "
        "they are",
    )
    partition: Annotated[Parted, _alone("column")] | None = Field(
        None,
        description="A released column: the table lies in a folder for each of its values; or `rows` alone: it is "
        "several files, as it always is with `engine: spark` where rows have names or are filled in from cells",
    )
    also: Annotated[Also, _alone("table")] | None = Field(
        None,
        description="A table of a database that the released one is written to, too, once it is published",
    )
    sign: Annotated[str, Field(pattern=KEY)] | None = Field(
        None, description="Where the private key that signs releases is kept: env:NAME or file:PATH"
    )

    language: Literal["en", "de"] = Field(
        "en", description="Language of the privacy report and of what catalogues read: English or German"
    )

    @property
    def refuses_formulas(self) -> bool:
        """Whether the table is a file in which no value may be a formula."""
        return self.format == "csv" and self.formulas == "refuse"


def check_address(table: str, offered: tuple[str, ...] = SCHEMES) -> str:
    """The address, or path, of a table. Raises PydanticCustomError, which repeats no password."""
    scheme, found, rest = table.partition("://")
    if found and scheme not in offered:
        raise PydanticCustomError(
            "unsupported",
            "tables behind {scheme}:// are not offered in this version of funnel; it takes {offered}",
            {"scheme": shortened(scheme), "offered": ", ".join(f"{one}://" for one in offered)},
        )
    person, told, _ = rest.partition("/")[0].rpartition("@")
    if (told and ":" in person) or (found and "password" in rest.lower()):
        raise PydanticCustomError(
            "wrong_value", "no password belongs into a policy: a database has it from PGPASSWORD or ~/.pgpass, an "
            "object store from AWS_… and its like"
        )
    if scheme.startswith("postgres") and not rest.partition("#")[2]:
        raise PydanticCustomError(
            "wrong_value", "a database holds many tables: name one behind the address, as #schema.table"
        )
    return table


def check_settings(settings: dict[str, str]) -> dict[str, str]:
    """Settings of Spark that a policy may hold. Raises PydanticCustomError, which repeats no password."""
    hidden = ("password", "secret", "token", "access.key", "account.key")
    if any(word in name.lower() for name in settings for word in hidden):
        raise PydanticCustomError(
            "wrong_value", "no password belongs into a policy: give it in Spark's own configuration (SPARK_CONF_DIR)"
        )
    return settings
