"""Wide blocks over time: the same columns of the same people are told by the same cells, release after release."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.data.alphabet import folded
from funnel.errors import LedgerError
from funnel.format.journal import Drawn, ReleaseEntry
from funnel.ledger.records import DrawRecord
from funnel.policy import Policy


def check_cells(policy: Policy, own: Sequence[DrawRecord], entries: Sequence[ReleaseEntry]) -> None:
    """No earlier release of the ledger told columns of this one's wide blocks by other cells. Raises LedgerError.

    Two partitions of the same columns tell where they overlap, which no bound on either counts.
    """
    for one in own:
        for entry in entries:
            if any(_other_cells(one, told) for told in entry.drawn):
                raise LedgerError(
                    "cells-changed",
                    f"release {entry.release} of {entry.name} told some of these columns by other cells, and two "
                    "partitions of the same people tell more together than either says",
                    where=policy.file,
                    advice="Nothing was drawn. Wide blocks are released again under the lock of their first release: "
                    "make the lock first (`funnel lock`), and run with `--locked`.",
                )


def _other_cells(one: DrawRecord, told: Drawn) -> bool:
    """Whether the two tell a column inside a wide block, and not by the same cells."""
    shared = set(map(folded, one.inside)) & set(map(folded, told.inside))
    return bool(shared) and not (set(one.meaning) & set(told.meaning))
