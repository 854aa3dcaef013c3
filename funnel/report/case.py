"""One release as the report's rooms look at it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from funnel.data import AnyProtocol, Joint, Protocol
from funnel.data.channel import released_table
from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable
from funnel.report import figures, wording
from funnel.report.disclosure import Mask, withheld
from funnel.report.figures import Figure, finite

WIDTHS = (1.25, 1.5, 2.0, 5.0, 10.0)
"""Factors that pictures of beliefs span where the notion has no bound for them."""


@dataclass(frozen=True, eq=False)
class Case:
    """A manifest, its protocols (one per block of `joint`), and who will read the report."""

    manifest: Mapping[str, Any]
    protocols: Sequence[AnyProtocol]
    joint: Joint
    published: bool

    @property
    def minimum(self) -> int:
        """Smallest group, in records, of which a published report speaks."""
        return int(self.manifest["estimate"]["minimum"])

    @property
    def epsilon(self) -> float:
        """The bound in nats; 0 for perfect privacy."""
        return float(self.manifest.get("epsilon") or 0.0)

    @property
    def step(self) -> float:
        """The step to which this report rounds shares of records."""
        return self.published_step if self.published else figures.EXACT

    @property
    def published_step(self) -> float:
        """The step of the published report: none of its shares tells `minimum` records apart."""
        return figures.step(self.minimum, self.joint.rows)

    @property
    def width(self) -> float:
        """The change of a belief, in nats, that pictures show in full: ε, or for an average what holds the largest."""
        if self.notion.worst_case:
            return self.epsilon
        worst = self.leakage("lip")
        wide = [math.log(one) for one in WIDTHS]
        return next((one for one in wide if worst is not None and one >= worst), wide[-1])

    @cached_property
    def as_is(self) -> tuple[bool, ...]:
        """Which blocks are released as they are: every value as itself, with certainty."""
        return tuple(map(_identity, self.protocols))

    @property
    def all_as_is(self) -> bool:
        """Whether all that is released is the truth."""
        return all(self.as_is)

    @cached_property
    def certain(self) -> bool:
        """Whether nothing is left to chance: every true value has one released value."""
        return all(map(_certain, self.protocols))

    @cached_property
    def secret_released(self) -> bool:
        """Whether the secret is among the released columns, randomised like them."""
        columns = {column for names in self.manifest["public"] for column in names}
        return set(self.manifest["sensitive"]) <= columns

    @property
    def why_as_is(self) -> str:
        """Why a release may be the truth: the promise allows all that the true values tell."""
        true = f"the true values of {self.public}"
        if not self.epsilon:
            return f"In this table {true} say nothing about {self.terms.secret}, so they are released as they are."
        average = "" if self.notion.worst_case else ", on average,"
        return (
            f"ε = {figures.epsilon_text(self.epsilon)} is as much as, or more than, {true}{average} give away about "
            f"{self.terms.secret} by themselves, so they are released as they are."
        )

    @property
    def notion(self) -> wording.Wording:
        """The words of the notion promised."""
        return wording.notion(self.manifest["notion"])

    @cached_property
    def terms(self) -> wording.Terms:
        """What sentences speak of."""
        return wording.Terms.of(
            self.manifest["sensitive"],
            [column for columns in self.manifest["public"] for column in columns],
            self.epsilon,
            self.manifest.get("parameters"),
            reads_secret=any(protocol.reads_secret for protocol in self.protocols),
        )

    @property
    def public(self) -> str:
        """All released columns, listed."""
        return self.terms.public

    @cached_property
    def table(self) -> ReleasedTable:
        """T[s, y_1, …, y_k] of the release: exact integers."""
        return released_table(self.joint, self.protocols)

    @cached_property
    def block_tables(self) -> tuple[ReleasedTable, ...]:
        """T[s, y_j] of each block released alone."""
        alone = [self.joint.block(index) for index in range(len(self.protocols))]
        return tuple(released_table(one, [q]) for one, q in zip(alone, self.protocols, strict=True))

    @cached_property
    def secret_counts(self) -> IntArray:
        """Records N_s of each secret value, (c,)."""
        return np.bincount(self.joint.cells[:, 0], weights=self.joint.counts).astype(np.int64)

    @cached_property
    def unnamed(self) -> Mask:
        """Secret values (c,) that a published report pools; none in a full one."""
        if not self.published:
            return np.zeros(len(self.joint.secret), bool)
        return withheld(self.secret_counts, self.minimum)

    def leakage(self, measure: str) -> Figure:
        """A measured leakage of the manifest in nats; None where it is unbounded or not measured."""
        return finite(self.manifest["leakage"].get(measure))


def _certain(protocol: AnyProtocol) -> bool:
    """Whether all chances are 0 or 1."""
    if not isinstance(protocol, Protocol):
        return False
    return bool(((protocol.weights == 0) | (protocol.weights == 1 << protocol.bits)).all())


def _identity(protocol: AnyProtocol) -> bool:
    """Whether Q(x|x) = 1 for every value x, in whole numbers."""
    if not isinstance(protocol, Protocol):
        return False
    place = {value: row for row, value in enumerate(protocol.outputs.values)}
    rows = [place.get(value) for value in protocol.inputs.values]
    sure = 1 << protocol.bits
    return all(y is not None and bool((protocol.weights[y, :, x] == sure).all()) for x, y in enumerate(rows))


def expected_records(table: ExactArray, rows: int) -> FloatArray:
    """E[s, y]: how many of `rows` records are expected at each (s, y), (c, b), outputs that occur only."""
    flat = table.reshape(len(table), -1)
    flat = flat[:, flat.sum(axis=0) > 0]
    return np.asarray(flat.astype(float) * (rows / float(flat.sum())))
