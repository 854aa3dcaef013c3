"""The release in a database beside its folder: from the published files, once they are audited and visible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Broken
from funnel.engine.library import library
from funnel.engine.postgres import Address, Refusal
from funnel.engine.sink import Sink, TableComment, stored
from funnel.engine.sql import identifier, listed, literal
from funnel.errors import ReleaseError
from funnel.files import sha256_file
from funnel.format.manifest import NAME as MANIFEST
from funnel.format.released import with_count
from funnel.ledger.journal import Journal
from funnel.policy import Policy
from funnel.policy.release import Also
from funnel.release.export import BATCH, connected
from funnel.release.folders import escaped, in_order
from funnel.release.holding import alone

if TYPE_CHECKING:
    import duckdb

_WRONG = "`funnel audit` says what is wrong with it, or that its data were pruned."


@dataclass(frozen=True)
class Sent:
    """A release in a database; `written`: not before."""

    release: str
    table: str
    written: bool

    def text(self) -> str:
        """A line for a person."""
        return f"{self.release} {'written to' if self.written else 'is in'} {self.table}"

    def as_dict(self) -> dict[str, object]:
        """JSON form."""
        return vars(self)


def check_also(policy: Policy) -> None:
    """That what writes to the database is installed: better missed now than after the draws. Raises SourceError."""
    if policy.release.also is not None:
        library("adbc_driver_postgresql.dbapi", "postgres", policy.release.also.table)


def send_newest(policy: Policy) -> Sent:
    """Write the newest release of a policy to the database that it names. Raises FunnelError."""
    also = policy.release.also
    if also is None:
        said = "the policy names no table of a database"
        raise ReleaseError("wrong-value", said, where=policy.file, advice="Name one under `release.also`.")
    with alone(policy.private):
        entries = Journal(policy.private).releases()
        mine = [one for one in entries if one.name == policy.name and (policy.to / one.release).is_dir()]
        if not mine:
            said = "there is no release of this policy"
            raise ReleaseError("release-unreadable", said, where=str(policy.to), advice="`funnel run` makes one.")
        folder = policy.to / mine[-1].release
        path = folder / MANIFEST
        if path.is_file() and sha256_file(path) != mine[-1].manifest_sha256:
            said = "release.json is not the one that was audited and entered in the ledger"
            raise ReleaseError("release-unreadable", said, where=str(folder), advice=_WRONG)
        return send(also, folder)


def send(also: Also, folder: Path) -> Sent:
    """Write a published release to a database. Raises ReleaseError, and then the old table is whole."""
    opened, address = Opened(folder), Address.of(also.table)
    try:
        manifest = opened.manifest
        opened.unchanged(folder, {name: manifest.files[name] for name in manifest.tables})
    except Broken as broken:
        raise ReleaseError("release-unreadable", str(broken), where=str(folder), advice=_WRONG) from None
    sink = Sink(address, also.old, partial(_unwritten, also, folder))
    told = TableComment(manifest.release, manifest.name)
    try:
        with connected(folder / manifest.data) as engine:
            relation, columns = _table(engine(), opened)
            rows = len(relation)
            written = sink.write(told, columns, rows, lambda: relation.to_arrow_reader(BATCH))
    except KeyboardInterrupt:
        raise _unwritten(also, folder, Refusal("the run was interrupted", "")) from None
    return Sent(manifest.release, also.table, written)


def _unwritten(also: Also, folder: Path, refusal: Refusal) -> ReleaseError:
    """The error of a database that does not take a release which everybody can see already."""
    but, there = (
        ("was not written to the database", "is as it was")
        if refusal.undone
        else ("may not have been written to the database", "is as it was, or holds the release, whole")
    )
    if refusal.never:
        later = " As it stands, the database does not take this release."
    elif refusal.again:
        later = " Then `funnel also` writes the release, where it is not; so does the next run with its own."
    else:
        later = ""
    return ReleaseError(
        "also-write" if refusal.again and not refusal.never else "also-refused",
        f"release {folder.name} was published, whole and audited, but {but}: {refusal.said}",
        where=also.table,
        advice=f"{refusal.advice} The table there {there}.{later}".strip(),
        release=str(folder),
    )


def _table(
    connection: duckdb.DuckDBPyConnection, opened: Opened
) -> tuple[duckdb.DuckDBPyRelation, list[tuple[str, str]]]:
    """The released rows in types that both sides have, and the columns there, with their types."""
    manifest, released = opened.manifest, opened.released
    paths = f"[{listed(literal(str(opened.release / name)) for name in in_order(manifest.tables))}]"
    types = {key.name: key.type for key in manifest.identify}
    counted = manifest.rows_of_data == "counts"
    types |= dict(zip(*with_count(released.columns, released.types, counted=counted), strict=True))
    folders = f"hive_partitioning = {manifest.folders is not None}, hive_types_autocast = false"
    if manifest.format_of_data == "parquet":
        reader = f"read_parquet({paths}, {folders})"
    else:
        reader = (
            f"read_csv({paths}, header = true, all_varchar = true, delim = ',', quote = '\"', escape = '\"', "
            f"allow_quoted_nulls = false, {folders})"
        )
    columns = [(name, *stored(kind)) for name, kind in types.items()]
    in_files = {} if manifest.folders is None else {manifest.folders: escaped(manifest.folders)}
    cast = listed(
        f"CAST({identifier(in_files.get(name, name))} AS {sent}) AS {identifier(name)}" for name, sent, _ in columns
    )
    return connection.sql(f"SELECT {cast} FROM {reader}"), [(name, kind) for name, _, kind in columns]
