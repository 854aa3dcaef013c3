"""One release as the report's rooms look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from funnel.model import Joint, Protocol
from funnel.model.channel import ExactArray, released_table
from funnel.model.joint import FloatArray, IntArray
from funnel.report import figures, wording
from funnel.report.disclosure import Mask, withheld
from funnel.report.figures import Figure, finite


@dataclass(frozen=True, eq=False)
class Case:
    """A manifest, its protocols (one per block of `joint`), and who will read the report."""

    manifest: Mapping[str, Any]
    protocols: Sequence[Protocol]
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

    @cached_property
    def as_is(self) -> tuple[bool, ...]:
        """Which blocks are released as they are: every value as itself, with certainty."""
        return tuple(map(_identity, self.protocols))

    @property
    def all_as_is(self) -> bool:
        """Whether all that is released is the truth."""
        return all(self.as_is)

    @property
    def why_as_is(self) -> str:
        """Why a release may be the truth: the promise allows all that the true values tell."""
        true = f"the true values of {self.public}"
        if not self.epsilon:
            return f"In this table {true} say nothing about {self.secret.name}, so they are released as they are."
        return (
            f"ε = {figures.epsilon_text(self.epsilon)} is as much as, or more than, {true} give away about "
            f"{self.secret.name} by themselves, so they are released as they are."
        )

    @property
    def notion(self) -> wording.Wording:
        """The words of the notion promised."""
        return wording.notion(self.manifest["notion"])

    @cached_property
    def secret(self) -> wording.Secret:
        """How sentences speak of the secret."""
        return wording.Secret.of(self.manifest["sensitive"])

    @cached_property
    def public(self) -> str:
        """All released columns, listed."""
        return wording.listed([wording.human(c) for columns in self.manifest["public"] for c in columns])

    @cached_property
    def table(self) -> ExactArray:
        """T[s, y_1, …, y_k] of the release: exact integers."""
        return released_table(self.joint, self.protocols)

    @cached_property
    def block_tables(self) -> tuple[ExactArray, ...]:
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


def _identity(protocol: Protocol) -> bool:
    """Whether Q(x|x) = 1 for every value x, in whole numbers."""
    place = {value: row for row, value in enumerate(protocol.outputs.values)}
    rows = [place.get(value) for value in protocol.inputs.values]
    sure = 1 << protocol.bits
    return all(y is not None and bool((protocol.weights[y, :, x] == sure).all()) for x, y in enumerate(rows))


def expected_records(table: ExactArray, rows: int) -> FloatArray:
    """E[s, y]: how many of `rows` records are expected at each (s, y), (c, b), outputs that occur only."""
    flat = table.reshape(len(table), -1)
    flat = flat[:, flat.sum(axis=0) > 0]
    return np.asarray(flat.astype(float) * (rows / float(flat.sum())))
