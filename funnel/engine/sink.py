"""A released table in a database: written in one transaction, so that readers see the old one or the new one, whole.

Only tables that hold a release of the same policy are replaced: a comment on the table says which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from funnel.engine.postgres import COLUMNS, MOST, Address, Refusal, Said, connected
from funnel.engine.sql import identifier, listed, literal

if TYPE_CHECKING:
    import pyarrow as pa

    from funnel.errors import FunnelError

_PLAIN = {
    "BOOLEAN": ("BOOLEAN", "boolean"),
    **dict.fromkeys(("TINYINT", "UTINYINT", "SMALLINT"), ("SMALLINT", "smallint")),
    **dict.fromkeys(("USMALLINT", "INTEGER"), ("INTEGER", "integer")),
    **dict.fromkeys(("UINTEGER", "BIGINT"), ("BIGINT", "bigint")),
    "UBIGINT": ("DECIMAL(20,0)", "numeric(20,0)"),
    "FLOAT": ("FLOAT", "real"),
    "DOUBLE": ("DOUBLE", "double precision"),
    "DATE": ("DATE", "date"),
    "TIME": ("TIME", "time without time zone"),
    "TIMESTAMP": ("TIMESTAMP", "timestamp without time zone"),
}
_TOO_LONG = "1min"
"""How long readers of the old table are waited for."""
_FOUND = (
    "SELECT relkind::text, coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class "
    "WHERE oid = to_regclass($1)"
)
_GRANTS = (
    "SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END, "
    "is_grantable FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) "
    "WHERE oid = to_regclass($1) AND grantee <> quote_ident(current_user)::regrole ORDER BY 1, 2"
)
"""Of everybody but the role that writes, which owns the new table; the old one may be that of a group of roles."""
_OWN: dict[str, Said] = {
    "42501": (
        "the role may not write the table",
        "Grant it USAGE and CREATE on the schema; it must own the old table.",
    ),
    "2BP01": (
        "something there depends on the old table (a view, a key, a function), whose columns are others",
        "Drop that, and make it anew afterwards.",
    ),
    "22021": (
        "a text of it holds the character U+0000, which no text there can",
        "Take it out of the source, or leave `release.also` out.",
    ),
    "55P03": ("others hold on to the old table", "Run again when they are done with it."),
    "42P07": ("there is a table of the old one's new name already", "Rename it."),
    "53100": ("the disk of the database is full", "Free space there."),
}


@dataclass(frozen=True)
class TableComment:
    """What the comment on a table says of it: which release it is, of which policy."""

    release: str
    policy: str

    @property
    def text(self) -> str:
        """The comment."""
        return f"funnel release {self.release} of {self.policy}"

    @classmethod
    def of(cls, comment: str) -> TableComment | None:
        """From a comment; None where it is of something else."""
        found = re.fullmatch(r"funnel release ([0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}) of (\S+)", comment)
        return None if found is None else cls(*found.groups())


def stored(kind: str) -> tuple[str, str]:
    """The type in which a column of a release is sent, as the engine names it, and that which it has there."""
    if kind.startswith("DECIMAL"):
        return kind, kind.lower().replace("decimal", "numeric").replace(" ", "")
    return _PLAIN.get(kind, ("VARCHAR", "text"))


@dataclass(frozen=True)
class Sink:
    """A table of a database that a release is written to; `old` says what becomes of the one before it."""

    address: Address
    old: Literal["replace", "keep"]
    raised: Callable[[Refusal], FunnelError]

    def write(
        self,
        told: TableComment,
        columns: Sequence[tuple[str, str]],
        rows: int,
        reader: Callable[[], pa.RecordBatchReader],
    ) -> bool:
        """Write the rows of a release, whose columns have these names and types there; False where it was there before.

        Raises what `raised` makes of a refusal, and then the old table stands there as before, if it is `undone`.
        """
        committing = False

        def raised(refusal: Refusal) -> FunnelError:
            return self.raised(replace(refusal, undone=not (committing and refusal.away)))

        try:
            with self._cursor(raised) as (connection, cursor):
                cursor.execute(f"SET LOCAL lock_timeout = {literal(_TOO_LONG)}")
                before = self._before(cursor, told)
                if before == told and self._rows(cursor) == rows:
                    return False
                self._make_room(cursor, before, columns, keep=self.old == "keep" and before != told)
                cursor.execute(f"COMMENT ON TABLE {self.address.quoted} IS {literal(told.text)}")
                schema, table = (None, *self.address.parts)[-2:]
                cursor.adbc_ingest(table, reader(), mode="append", db_schema_name=schema)
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what triggers wait with until the commit
                there = self._rows(cursor)  # they may leave out rows that were sent
                if there != rows or self._before(cursor, told) != told:
                    said = f"the table took {there:,} of {rows:,} rows" if there != rows else "its comment is another"
                    raise raised(Refusal(said, "Look for triggers on it, and at the log of the database."))
                committing = True
                connection.commit()
        except KeyboardInterrupt:
            raise raised(Refusal("the run was interrupted", "", away=True)) from None
        return True

    @contextmanager
    def _cursor(self, raised: Callable[[Refusal], FunnelError]) -> Iterator[tuple[Any, Any]]:
        with (
            connected(self.address.server, self.address.name, raised, _OWN) as connection,
            closing(connection.cursor()) as cursor,
        ):
            yield connection, cursor

    def _rows(self, cursor: Any) -> int:
        """How many rows the table has."""
        cursor.execute(f"SELECT count(*) FROM ONLY {self.address.quoted}")
        return int(cursor.fetchone()[0])

    def _before(self, cursor: Any, told: TableComment) -> TableComment | None:
        """The release that stands there; None where there is no table. Raises where it is not ours to replace."""
        cursor.execute(_FOUND, (self.address.quoted,))
        found = cursor.fetchone()
        if found is None:
            return None
        kind, comment = found
        before = TableComment.of(comment)
        if kind != "r" or before is None:
            said, advice = (
                "what stands there is no release, and is left alone",
                "Rename it, or name another table.",
            )
            raise self.raised(Refusal(said, advice))
        if before.policy != told.policy:
            said = f"the table holds a release of another policy, {before.policy}"
            raise self.raised(Refusal(said, "Name another table, or drop this one."))
        if before.release > told.release:
            said = f"the table holds a newer release, {before.release}"
            advice = "Nothing need be done; but where that one was taken back, drop the table, then call `funnel also`."
            raise self.raised(Refusal(said, advice, again=False))
        return before

    def _make_room(
        self, cursor: Any, before: TableComment | None, columns: Sequence[tuple[str, str]], *, keep: bool
    ) -> None:
        """An empty table of these columns. One of the same columns is emptied, which keeps its views and indexes; those
        who may read the old table may read the new one.
        """
        table, grants = self.address.quoted, list[tuple[str, str, bool]]()
        if before is not None:
            cursor.execute(COLUMNS, (table,))
            if not keep and cursor.fetchall() == [*columns]:
                cursor.execute(f"TRUNCATE ONLY {table}")
                return
            cursor.execute(_GRANTS, (table,))
            grants = cursor.fetchall()
            if keep:
                cursor.execute(
                    f"ALTER TABLE {table} RENAME TO {identifier(dated(self.address.parts[-1], before))}"
                )
            else:
                cursor.execute(f"DROP TABLE {table}")
        cursor.execute(
            f"CREATE TABLE {table} ({listed(f'{identifier(name)} {kind}' for name, kind in columns)})"
        )
        for right, role, passed_on in grants:
            cursor.execute(f"GRANT {right} ON {table} TO {role}{' WITH GRANT OPTION' if passed_on else ''}")


def dated(table: str, told: TableComment) -> str:
    """The name under which a table is kept: its own, cut where it is long, and the time of its release."""
    time = f"_{told.release[:16]}"
    return table.encode()[: MOST - len(time)].decode(errors="ignore") + time
