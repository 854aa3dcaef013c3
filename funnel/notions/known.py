"""LIP given what somebody may know: what it asks of a block's rows, and how much a whole release leaks then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funnel.data import AnyProtocol, Joint
from funnel.data.channel import Channel
from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import ExactArray, sent
from funnel.data.subsets import Subsets
from funnel.data.unary import UnaryProtocol
from funnel.errors import PlanError
from funnel.measure import leakage as measures
from funnel.measure.side import (
    NEAR,
    Knowledge,
    KnownGroups,
    KnownRecords,
    chances,
    changes,
    normalised,
    released_given,
    side_knowledge,
    tables_given,
)
from funnel.notions.base import Demand
from funnel.notions.tables import TableNotion

if TYPE_CHECKING:
    from funnel.optimise.cone import Cone

Flags = npt.NDArray[np.bool_]
MOST_NUMBERS = 1 << 27
"""Coefficients of all inequalities of one cone."""


def leakage_given(channel: Channel, knowledge: Knowledge) -> measures.Leakage:
    """The largest LIP given any x_J, exactly."""
    joint, protocols = channel.joint, channel.protocols
    groups = side_knowledge(joint, knowledge, any(protocol.reads_secret for protocol in protocols))
    if len(protocols) == 1 and protocols[0].uniforms == "each":
        worst = groups.each()
    else:
        likelihoods = {j: chances(protocol) for j, protocol in enumerate(protocols)}
        worst = _largest(groups, _changes(groups, groups.tables(likelihoods)))
    return measures.worst(measures.lip(released_given(joint, known, protocols)) for known in worst)


def _changes(groups: KnownGroups, tables: Iterator[tuple[IntArray, FloatArray]], outputs: int = -1) -> FloatArray:
    """About the largest change of a belief (g,) in each group; `outputs` of the last block, what else is told being
    known already, or -1 for those of all."""
    found = np.ones(len(groups))
    for part, table in tables:
        found[part] = changes(table.reshape(len(part), len(table[0]), -1 if outputs > 0 else 1, outputs))
    return found


def _largest(groups: KnownGroups, found: FloatArray) -> Iterator[KnownRecords]:
    """The groups of which one leaks the most."""
    for group in np.flatnonzero(found >= found.max(initial=1.0) * (1 - NEAR)).tolist():
        yield groups.one(group)


@dataclass(frozen=True, eq=False)
class KnownDemand(Demand):
    """LIP of block `index` given every x_J, and given every combination of what `released` blocks put out."""

    notion: TableNotion
    joint: Joint
    knowledge: Knowledge
    released: Mapping[int, AnyProtocol]
    index: int

    @cached_property
    def groups(self) -> KnownGroups:
        """What may be known."""
        return side_knowledge(self.joint, self.knowledge)

    @cached_property
    def _before(self) -> dict[int, FloatArray]:
        return {j: chances(protocol) for j, protocol in self.released.items()}

    def cone(self) -> Cone:
        """The rows that are allowed under every condition; each inequality once. Raises PlanError for too many."""
        from funnel.optimise.cone import Cone

        found, size = [np.zeros((0, len(self.joint.blocks[self.index])))], 0
        for _, table in self.groups.tables(self._before, [self.index]):
            rows = _inequalities(np.moveaxis(table, 2, -1), self.notion.ratio)
            found.append(rows)
            size += rows.size
            if size > MOST_NUMBERS:
                raise _too_many()
        return Cone(np.unique(np.concatenate(found), axis=0))

    def each_table(self) -> list[ExactArray]:
        """Every condition as a table N[s, x] (c, a), each once."""
        tables = (
            table
            for known in self.groups.each()
            for table in tables_given(self.joint, known, self.released, self.index)
        )
        return list({tuple(table.ravel().tolist()): table for table in tables}.values())

    def keeps(self, weights: IntArray) -> bool:
        """The bound holds under every condition: floats tell where that is in doubt."""
        likelihoods = self._before | {self.index: normalised(weights)}
        tables = self.groups.tables(likelihoods, last=self.index)
        found, limit = _changes(self.groups, tables, len(weights)), float(self.notion.bound)
        if (found > limit * (1 + NEAR)).any():
            return False
        doubtful = (self.groups.one(group) for group in np.flatnonzero(found >= limit * (1 - NEAR)).tolist())
        return all(
            self.notion.table_keeps(sent(table, weights))
            for known in doubtful
            for table in tables_given(self.joint, known, self.released, self.index)
        )

    def keeps_sets(self, protocol: UnaryProtocol) -> bool:
        """Every condition, seen through the sets, keeps the bound."""
        return all(
            self.notion.table_keeps(Subsets(table, protocol))
            for known in self.groups.each()
            for table in tables_given(self.joint, known, self.released, self.index)
        )


def _inequalities(table: FloatArray, ratio: float) -> FloatArray:
    """Σ v p_{x|s} <= e^ε Σ v p_x and its mirror (r, a), from T[g, s, …, x].

    Those that forbid nothing are left out, and so are those that follow from others.
    """
    table = table.reshape(*table.shape[:2], -1, table.shape[-1])
    there = table.any(axis=3)
    told = there & (there.sum(axis=1, keepdims=True) > 1)
    whole = table.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        given, prior = table / table.sum(axis=3, keepdims=True), whole / whole.sum(axis=3, keepdims=True)
        rises, falls = _asked(table.sum(axis=3), told, ratio)
        rows = np.concatenate([(given - ratio * prior)[rises], (prior / ratio - given)[falls]])
    return np.asarray(rows[(rows > 0).any(axis=1)])


def _asked(mass: FloatArray, told: Flags, ratio: float) -> tuple[Flags, Flags]:
    """Which inequalities of T[g, s, …] are asked: that a belief may rise so far, and that it may fall.

    Of two secret values one belief rises as the other falls: P(y|s) <= k P(y|other) either way, and one k is smaller.
    """
    two = told.sum(axis=1, keepdims=True) == 2
    with np.errstate(divide="ignore", invalid="ignore"):
        share = mass / mass.sum(axis=1, keepdims=True)
        rising = np.where(ratio * share < 1, ratio * (1 - share) / (1 - ratio * share), np.inf)
        rises = told & (~two | (rising <= (ratio - (1 - share)) / share))
    others = two & ((rises.sum(axis=1, keepdims=True) - rises) > 0)
    return rises, told & ~others


def _too_many() -> PlanError:
    return PlanError(
        "alphabet-too-large",
        f"what somebody may know leads to inequalities of more than {MOST_NUMBERS:,} coefficients",
        advice="Say that fewer columns may be known (`knows`), raise `estimate.minimum`, or release fewer values.",
    )
