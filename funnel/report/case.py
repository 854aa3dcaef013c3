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
from funnel.report import wording
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


def expected_records(table: ExactArray, rows: int) -> FloatArray:
    """E[s, y]: how many of `rows` records are expected at each (s, y), (c, b), outputs that occur only."""
    flat = table.reshape(len(table), -1)
    flat = flat[:, flat.sum(axis=0) > 0]
    return np.asarray(flat.astype(float) * (rows / float(flat.sum())))
