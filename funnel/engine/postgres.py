"""A PostgreSQL server, reached through ADBC: what it refuses is said in this program's words, without its details.

Passwords come from PGPASSWORD or a pgpass file, by the server's own client library; an address holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funnel.engine.library import library
from funnel.engine.sql import identifier

if TYPE_CHECKING:
    from funnel.errors import FunnelError

SCHEME = "postgresql"
COLUMNS = (
    "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
    "WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
"""Names and types of a table's columns, in order; a type with its length or precision in brackets."""
MOST = 63
"""Bytes of a name in the database."""
SYSTEM = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
"""Columns that every table there has."""
Said = tuple[str, str]
"""What is wrong, and what to do."""
_NO_TABLE = ("the table does not exist", "Name the table after #, as schema.table.")
_REFUSALS: dict[str, Said] = {
    "28": ("the database refuses the role or its password", "Give the password in PGPASSWORD or ~/.pgpass."),
    "3D": ("the database does not exist", "Check the last part of the path."),
    "3F": ("the schema does not exist", "Name the table after #, as schema.table, in a schema that exists."),
    "42P01": _NO_TABLE,
}
"""What states of SQL say, by their first letters, and what to do."""
_OF_ROWS = "22"
"""How states begin that tell of the values that were sent."""
_OF_DRIVER = ("ALREADY_EXISTS", "INVALID_ARGUMENT", "INVALID_DATA", "NOT_FOUND", "NOT_IMPLEMENTED")
"""How complaints begin that the driver has of what it is given, and not of the connection."""
_MIDWAY = (
    "the database broke off in the middle of the rows",
    "See its log: a value may be one that it cannot compute, or the role has too little time (statement_timeout).",
)
_AWAY = ("08", "57", "53")
_BROKEN_OFF = (
    "the statement was broken off: the run was interrupted, or it took longer than the role may (statement_timeout)",
    "Run again, or give the role more time.",
)


@dataclass(frozen=True)
class Address:
    """A table by the address of its database, and its name there."""

    server: str
    table: str

    @classmethod
    def of(cls, text: str) -> Address:
        """From postgresql://user@host/database#schema.table."""
        server, _, table = text.partition("#")
        return cls(server, table)

    @property
    def name(self) -> str:
        """The address as people know it."""
        return f"{self.server}#{self.table}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The schema, where one is named, and the table."""
        return tuple(self.table.split("."))

    @property
    def quoted(self) -> str:
        """The table as SQL names it."""
        return ".".join(map(identifier, self.parts))


@dataclass(frozen=True)
class Refusal:
    """What the server refused: `said` and `advice` for a person; `away` where it cannot be reached any more.

    `undone` is False where it may have done what it was asked all the same, and only its answer was lost; `again`
    is False where asking once more does not help; `never` where what was sent is refused whenever it is sent.
    """

    said: str
    advice: str
    away: bool = False
    undone: bool = True
    again: bool = True
    never: bool = False


@contextmanager
def connected(
    server: str, where: str, raised: Callable[[Refusal], FunnelError], own: dict[str, Said]
) -> Iterator[Any]:
    """A connection in a transaction, which is rolled back unless it is committed.

    What goes wrong inside is `raised` as the caller's error; `own` are words for further states of SQL. Raises
    SourceError where the library is not installed.
    """
    import pyarrow as pa

    driver = library("adbc_driver_postgresql.dbapi", "postgres", where)
    try:
        with closing(driver.connect(_in_unicode(server))) as connection:
            try:
                yield connection
            except (OSError, pa.ArrowException):  # in the middle of its rows, without a state of SQL
                connection.rollback()  # which fails where the server is away
                raise raised(Refusal(*_MIDWAY)) from None
    except driver.Error as error:
        raise raised(_refusal(str(error.sqlstate or ""), str(error), own)) from None


def _in_unicode(server: str) -> str:
    """The address of a session in UTF-8, as statements and rows are sent, whatever a database or a role speaks."""
    server = server.rstrip("?&")
    return f"{server}{'&' if '?' in server else '?'}client_encoding=UTF8"


def _refusal(state: str, told: str, own: dict[str, Said]) -> Refusal:
    """The words for a state of SQL; a connection that fails has none."""
    if "password" in told and not state:
        state = "28"
    never = state.startswith(_OF_ROWS)
    for start, (said, advice) in (own | _REFUSALS).items():
        if state.startswith(start):
            return Refusal(said, advice, never=never)
    if not state and told.startswith(_OF_DRIVER):
        advice = f"A name of more than {MOST} bytes, for one, is cut there, and then is not found."
        return Refusal("the driver of the database refuses it", advice, never=True)
    if not state or state.startswith(_AWAY):
        lost = ("the database cannot be reached, or ended the connection", "Check host and port, and run again.")
        return Refusal(*(_BROKEN_OFF if state == "57014" else lost), away=True)
    return Refusal(f"the database refuses it (SQL state {state})", "See the log of the database.", never=never)
