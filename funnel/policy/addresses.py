"""Addresses that a policy may name: of a known kind, and without a password."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from funnel.policy.document import shortened

SCHEMES = ("postgresql", "s3", "gs", "abfs", "hdfs")
"""Where tables may be beside files of this machine."""


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
            "wrong_value", "no password belongs into a policy: give it in PGPASSWORD or in ~/.pgpass"
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
