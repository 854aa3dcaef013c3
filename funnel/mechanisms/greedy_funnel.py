"""Values merged until little is learnt about the secret on average: a protocol without chance."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from funnel.data import Joint
from funnel.data.joint import IntArray
from funnel.errors import InternalError
from funnel.mechanisms.base import Mechanism, Solved
from funnel.mechanisms.naming import named
from funnel.notions import Demand, Notion
from funnel.text import counted

_TRIES = 8
"""Times that the bound is lowered a little where floats and exact arithmetic disagree."""


class GreedyFunnel(Mechanism):
    """The greedy privacy funnel ([PF] Algorithm 1): start with Y = X, merge until I(S;Y) <= ε.

    `search: paper` merges the pair that lowers I(S;Y) most; `best` also tries merges that cost least I(X;Y) for
    what they take off I(S;Y), moves single values afterwards, and keeps the best. Every x always becomes the same
    y, so estimates carry no noise, and repeated releases tell no more than one.
    """

    serves: ClassVar[frozenset[str]] = frozenset({"mutual-information"})

    kind: Literal["greedy-funnel"]
    search: Literal["best", "paper"] = Field(
        "best", description="best, or paper for the algorithm as printed"
    )

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """A partition of X that keeps the bound in exact arithmetic; one cluster of all at worst."""
        from funnel.optimise.partitions.merging import POWERS, finest

        if (conditions := demand.each_table()) is None:
            raise InternalError("the greedy funnel was asked to serve a notion that is not about tables")
        powers, bound = POWERS if self.search == "best" else (0.0,), float(demand.notion.bound)
        tables = [table.astype(float) for table in conditions]
        for attempt in range(_TRIES):
            weights = _merging(finest(tables, bound * (1 - attempt * 1e-9), powers=powers))
            if demand.keeps(weights[:, None, :]):
                break
        else:
            weights = np.ones((1, weights.shape[1]), np.int64)
        prior = joint.table().sum(axis=0) / joint.rows
        protocol = named(joint.blocks[0], prior, weights, 0)
        return Solved(protocol, None, f"{counted(len(weights), 'cluster')} by greedy merging")

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """A merge costs a scan of all pairs."""
        return f"greedy merging of {public:,} values"


def _merging(owner: IntArray) -> IntArray:
    """W[y, x] = 1 where x belongs to cluster y, (b, a)."""
    return np.asarray(np.arange(owner.max() + 1)[:, None] == owner[None], np.int64)
