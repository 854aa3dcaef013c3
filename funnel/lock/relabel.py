"""Current records in the alphabets that a lock fixed on another night, and what became of values it does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from funnel.data import Alphabet, Joint, Label
from funnel.data.alphabet import OTHER, readable
from funnel.data.arrange import Recoder, together
from funnel.data.finer import Finer, finer
from funnel.data.joint import IntArray
from funnel.errors import InternalError, SourceError
from funnel.format.drift import Unseen
from funnel.format.known import OWN, RELEASED, TONIGHT, Level
from funnel.text import counted, some

Rule = Literal["error", "other", "drop"]
_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Current counts over the lock's alphabets: `joint`, whose public values may have no records; and the unseen.

    `secret` (c,) and `blocks` (a_j,) lead from current codes to those of `joint`, -1 where rows are left out;
    `recoder` comes first where the lock made one block of several.
    """

    joint: Joint
    unseen: tuple[Unseen, ...]
    secret: IntArray
    blocks: tuple[IntArray, ...]
    recoder: Recoder | None

    @classmethod
    def known(cls, joint: Joint) -> Relabelled:
        """Counts that are in the lock's alphabets already."""
        codes = tuple(np.arange(size) for size in joint.shape)
        return cls(joint, (), codes[0], codes[1:], None)

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that are drawn for, with the lock's codes x0, x1, … (and s)."""
        names = sorted(
            (name for name in batch.schema.names if name.startswith("x")), key=lambda name: int(name[1:])
        )
        codes = [np.asarray(batch.column(name).to_numpy(), np.int64) for name in names]
        if self.recoder is not None:
            codes = [self.recoder(codes)]
        codes = [known[code] for known, code in zip(self.blocks, codes, strict=True)]
        kept = np.logical_and.reduce([code >= 0 for code in codes])
        found = {name: batch.column(name) for name in batch.schema.names if name not in names}
        if "s" in found:
            found["s"] = pa.array(self.secret[np.asarray(found["s"].to_numpy(), np.int64)])
        found |= {f"x{block}": pa.array(code) for block, code in enumerate(codes)}
        whole = pa.record_batch(found)
        return whole if kept.all() else whole.filter(pa.array(kept))


def relabel(current: Joint, blocks: Sequence[Alphabet], rules: Mapping[str, Rule]) -> Relabelled:
    """Current counts over the lock's alphabets; `rules` say for each column what becomes of unseen values.

    Where some part of a value is unknown the columns of those parts decide, else, the combination being new, all
    columns of the block: an error before a drop, a drop before `other`. Raises SourceError unseen-value.
    """
    apart = together(current) if len(blocks) < len(current.blocks) else current
    recoder = Recoder(current) if apart is not current else None
    if [one.columns for one in apart.blocks] != [one.columns for one in blocks]:
        raise InternalError("the lock's blocks are not those of the policy")
    codes, unseen = [], list[Unseen]()
    for index, (block, known) in enumerate(zip(apart.blocks, blocks, strict=True)):
        counts = apart.table(index).sum(axis=0)
        found, new = _codes(block, known, counts, rules)
        codes.append(found)
        unseen += new
    cells = np.column_stack(
        [apart.cells[:, 0], *(code[apart.cells[:, 1 + j]] for j, code in enumerate(codes))]
    )
    kept = (cells >= 0).all(axis=1)
    if not kept.any():
        raise SourceError(
            "source-empty",
            "no row has values that the lock knows",
            advice="Check the table, or make a new lock with `funnel lock --force`.",
        )
    joint, secret = _joint(apart, blocks, cells[kept], apart.counts[kept])
    if apart.finer is not None:
        pooled = {column for one in unseen if one.rule == "other" for column in one.columns}
        joint = replace(joint, finer=_as_released(_finer(apart.finer, secret, codes), joint, pooled))
    return Relabelled(joint, tuple(unseen), secret, tuple(codes), recoder)


def _finer(current: Finer, secret: IntArray, codes: Sequence[IntArray]) -> Finer:
    """What may be known of the records that are drawn for, under the lock's codes."""
    hidden, *public = current.placed.T
    placed = np.column_stack([secret[hidden], *(code[x] for code, x in zip(codes, public, strict=True))])
    return current.moved(placed, np.asarray((placed >= 0).all(axis=1)))


def _as_released(seen: Finer, joint: Joint, pooled: Set[str]) -> Finer:
    """With what is released of columns (lock's labels) some of whose values went under `other`, behind tonight's own.

    Whoever knows that the value is `other` knows a larger group than who knows which one, and may be told more.
    """
    levels, codes = list[Level](), list[IntArray]()
    last = {level.column: i for i, level in enumerate(seen.levels) if level.level in (OWN, RELEASED)}
    shown = {one: (j, one) for j, block in enumerate(joint.blocks) for one in block.columns if one in pooled}
    for place, (level, code) in enumerate(zip(seen.levels, seen.known.T, strict=True)):
        column, now = level.column, last.get(level.column) == place and level.column in shown
        levels.append(Level(column, TONIGHT, level.values) if now and level.level == RELEASED else level)
        codes.append(code)
        if now:
            values, of = joint.column(*shown[column])
            levels.append(Level(column, RELEASED, values))
            codes.append(of[seen.placed[:, 1 + shown[column][0]]])
    return finer(seen.placed, seen.counts, levels, np.column_stack(codes), seen.minimum) if shown else seen


def _codes(
    block: Alphabet, known: Alphabet, counts: IntArray, rules: Mapping[str, Rule]
) -> tuple[IntArray, list[Unseen]]:
    """The lock's code of each current value, -1 for none; and the values it does not know. Raises SourceError."""
    place = {value: code for code, value in enumerate(known.values)}
    parts = [set(part) for part in zip(*known.values, strict=True)]
    codes, unseen, refused = np.full(len(block), -1, np.int64), [], []
    for x, value in enumerate(block.values):
        if value in place:
            codes[x] = place[value]
            continue
        new = [i for i, part in enumerate(value) if part not in parts[i]] or list(range(len(value)))
        pooled, rule = _ruled(value, new, [rules[block.columns[i]] for i in new])
        if rule == "error" or (rule == "other" and pooled not in place):
            refused.append(f"{readable(value)!r} ({int(counts[x]):,})")
        else:
            unseen.append(Unseen(block.columns, value, int(counts[x]), rule))
            codes[x] = place[pooled] if rule == "other" else -1
    if refused:
        raise _refused(block, refused)
    return codes, unseen


def in_terms(value: Label, known: Alphabet, rules: Mapping[str, Rule]) -> Label:
    """A value as a lock's alphabet has it: itself, or what its unknown parts are put under; else as it is.

    `rules` are those of `relabel`; without any, what is not known stays what it is.
    """
    if not rules or value in known.values:
        return value
    parts = [set(part) for part in zip(*known.values, strict=True)]
    new = [i for i, part in enumerate(value) if part not in parts[i]] or list(range(len(value)))
    pooled, rule = _ruled(value, new, [rules[known.columns[i]] for i in new])
    return pooled if rule == "other" and pooled in known.values else value


def _ruled(value: Label, new: Sequence[int], rules: Sequence[Rule]) -> tuple[Label, Rule]:
    """What becomes of a value whose parts at `new` are ruled upon."""
    if "error" in rules:
        return value, "error"
    if "drop" in rules:
        return value, "drop"
    return tuple(OTHER if i in new else part for i, part in enumerate(value)), "other"


def _refused(block: Alphabet, values: Sequence[str]) -> SourceError:
    return SourceError(
        "unseen-value",
        f"the lock does not know {counted(len(values), 'value')} of {' + '.join(block.columns)}",
        values=some(values, _SHOWN),
        advice="Nothing was published. A new lock (`funnel lock --force`) knows tonight's values, where each has "
        "enough records; else leave such rows out of the source. Where those go that later nights bring, `unseen` "
        "says in the policy that a lock is made from: to `other`, where there is one, or (as far as the promise "
        "allows for people who are absent) `drop`.",
    )


def _joint(
    apart: Joint, blocks: Sequence[Alphabet], cells: IntArray, counts: IntArray
) -> tuple[Joint, IntArray]:
    """Counts of equal cells added up; values of S without rows are left out."""
    there = np.unique(cells[:, 0])
    secret = np.full(len(apart.secret), -1, np.int64)
    secret[there] = np.arange(len(there))
    distinct, place = np.unique(cells, axis=0, return_inverse=True)
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place.ravel(), counts)
    distinct[:, 0] = secret[distinct[:, 0]]
    named = Alphabet(apart.secret.columns, tuple(apart.secret.values[s] for s in there))
    return Joint(named, tuple(blocks), distinct, summed, complete=False), secret
