"""The stage that draws: the protocols over the source's second reading, and a check of what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.data import AnyProtocol, Joint, Protocol
from funnel.data.arrange import Recoder
from funnel.data.joint import IntArray
from funnel.draw.draw import regrouped
from funnel.draw.drawing import Drawing
from funnel.draw.keys import Key
from funnel.draw.splitting import draw_counts
from funnel.draw.tally import Tally, check_distinct
from funnel.engine import Engine, Source
from funnel.engine.base import Kernel, Parts
from funnel.errors import InternalError
from funnel.lock.pinned import with_names
from funnel.plan.count import Counted
from funnel.plan.protect import Protected
from funnel.plan.stages import Draw
from funnel.progress import Report
from funnel.release.named import Aside, Kept

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 18
"""Rows per batch of the drawing kernel: large enough for NumPy, small enough for the cache."""


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Distinct rows of output codes (m, k) in order, with their counts (m,); and for each block a table of counts.

    A table is (inputs, outputs), or (a, a + 1) where sets are drawn, as `Tally` says. `rows` are the rows themselves,
    with their keys and codes; None where they have no names.
    """

    codes: IntArray
    counts: IntArray
    tables: tuple[IntArray, ...]
    rows: Kept | None = None


def draw(
    stage: Draw,
    engine: Engine,
    source: Source,
    key: Key,
    counted: Counted,
    protected: Protected,
    aside: Path,
    progress: Report,
) -> DrawnRows:
    """Answer every record, and check the answers against counts and protocols; rows with a key wait in folder `aside`.

    Raises SourceError where the source is not what was counted, DrawError where its draws are not the protocols'.
    """
    progress(stage.title)
    if stage.statement is None:
        return _for_counts(_truth(counted, protected.protection.joint), protected.protection.protocols)
    provide_codes(stage, engine, counted)
    protocols, total = protected.protection.protocols, counted.joint.rows
    tally, rows = Tally(protocols), None
    drawing = Drawing(
        protocols,
        key,
        tally,
        permanent=stage.kind == "permanent",
        keys=stage.keys,
        recode=recoding(counted, protected),
        told=lambda done: progress(stage.title, done, total),
    )
    if stage.keys:
        sink = Aside(aside, stage.keys, tuple(protocols))
        rows = named(engine, stage.statement, drawing, sink, tally, parts_of(stage, lambda: total))
        rows.check()
    else:
        for found in engine.map(stage.statement, BATCH, drawing):
            tally.merge(found)
    tally.check(_truth(counted, protected.protection.joint))
    source.check_unchanged()
    return DrawnRows(*tally.released, tuple(tally.tables), rows)


def named(
    engine: Engine, statement: str, kernel: Kernel, sink: Aside, tally: Tally, parts: Parts | None
) -> Kept:
    """Rows with a key, answered by a kernel and put aside in order, and added to a tally. Raises SourceError."""
    rows = Kept(sink.folder)
    for found in engine.gather(statement, BATCH, kernel, sink, sink.keys, parts):
        tally.merge(found)
        rows.add(found)
    return rows


def parts_of(stage: Draw, rows: Callable[[], int]) -> Parts | None:
    """Into how many files rows with a key go, once it is known how many there are; None where it is one."""
    most = stage.parted
    return None if most is None else lambda: -(-rows() // most)


def provide_codes(stage: Draw, engine: Engine, counted: Counted) -> None:
    """Make the tables by which rows get the codes of what was counted."""
    for index, block in enumerate(counted.joint.blocks):
        engine.provide(f"alphabet_x{index}", block)
    engine.provide("alphabet_s", counted.joint.secret)
    engine.prepare(stage.codes)


def _for_counts(joint: Joint, protocols: Sequence[AnyProtocol]) -> DrawnRows:
    """Fresh answers for all records of each cell at once."""
    plain = [one for one in protocols if isinstance(one, Protocol)]
    if len(plain) < len(protocols):
        raise InternalError("sets are drawn for records, not for their counts")
    codes, counts, tables = draw_counts(plain, joint)
    check_distinct(len(codes))
    return DrawnRows(codes, counts, tuple(tables))


def names_since(protected: Protected, drawn: DrawnRows, keys: int, private: Path) -> Protected:
    """With how many of so many keys came and went since the lock, where rows have names and it knows of theirs."""
    pinned = protected.pinned
    if pinned is None or drawn.rows is None:
        return protected
    files = [one.path for one in drawn.rows.parts.values()]
    moved = with_names(pinned.drift, private, files, keys)
    return replace(protected, pinned=replace(pinned, drift=moved))


def _truth(counted: Counted, joint: Joint) -> Joint:
    """The records that were drawn for, in the blocks of the joint distribution that the protocol was made for."""
    return joint if counted.estimated is None else counted.estimated.truth(joint)


def recoding(counted: Counted, protected: Protected) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """From a batch in the codes that were counted to one in the codes of the protocols."""
    if protected.pinned is not None and counted.estimated is None:
        return protected.pinned.current.batch
    if len(protected.protection.joint.blocks) == len(counted.joint.blocks):
        return lambda batch: batch
    regroup = Recoder(counted.joint)
    return lambda batch: regrouped(batch, regroup)
