"""What an analyst gets from the release, and how to work with it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from funnel.model import Protocol
from funnel.report.case import Case
from funnel.report.figures import Figure, counted, finite, nats_text, share_text
from funnel.report.wording import listed

_NAMES = 6
"""Most values named in a sentence."""


def utility(case: Case, blocks: Sequence[dict[str, Any]], untouched: float) -> dict[str, Any]:
    """The manifest's utility figures, the share of records unchanged, and sentences that explain them."""
    figures = {name: finite(value) for name, value in case.manifest["utility"].items()}
    return figures | {
        "untouched": untouched,
        "sentences": [
            _kept(figures),
            *_ceiling(figures, blocks),
            _unchanged(blocks, untouched),
            *map(_solvable, blocks, case.protocols),
            *(sentence for block in blocks if (sentence := _names_only(block))),
            "Do not read the released shares as the true ones: the draws pull them away from the truth in "
            "a known way. The command below undoes this as far as it can be undone, with confidence intervals, "
            "and says where it cannot.",
        ],
        "command": f"funnel estimate {shlex.quote(case.manifest['release'])}",
    }  # fmt: skip


def _kept(figures: dict[str, Figure]) -> str:
    normalised = figures.get("normalised")
    if normalised is None:
        return "The true values are all the same, so there is no information to keep."
    return (
        f"The true values hold H(X) = {nats_text(figures['entropy'])} nats of information per record; the "
        f"released ones keep I(X;Y) = {nats_text(figures['mutual_information'])} of it, "
        f"{share_text(normalised)}."
    )


def _ceiling(figures: dict[str, Figure], blocks: Sequence[dict[str, Any]]) -> list[str]:
    """The certified ceiling of the release, else those of its blocks."""
    together = figures.get("upper_bound")
    if together is not None:
        return [f"It is proven that no protocol with this promise can keep more than {share_text(together)}."]
    alone = [f"{block['name']}: {share_text(block['utility']['upper_bound'])}"
             for block in blocks if block["utility"]["upper_bound"] is not None]  # fmt: skip
    if alone:
        return [f"Proven ceilings for each block at its own share of the bound: {'; '.join(alone)}."]
    return ["This mechanism is not claimed to be the best: another one may keep more under the same promise."]


def _unchanged(blocks: Sequence[dict[str, Any]], untouched: float) -> str:
    if len(blocks) == 1:
        return f"In {share_text(untouched)} of records the released value is expected to be the true one."
    each = ", ".join(f"{block['name']} {share_text(block['kept'])}" for block in blocks)
    return (
        f"In {share_text(untouched)} of records all released values are expected to be the true ones; "
        f"column by column: {each}."
    )


def _names_only(block: dict[str, Any]) -> str | None:
    """Which released values are mostly not the true ones: their names are names and no more."""
    few = [one for one in block["shares"] if one["after"] and one["true"] is not None and one["true"] < 0.5]
    if not few:
        return None
    names = [f"{one['value']} ({share_text(one['true'])})" for one in few[:_NAMES]]
    more = [counted(len(few) - _NAMES, "other")] if len(few) > _NAMES else []
    return (
        f"In {block['name']}, some released values are true in fewer than half the records that show them. "
        f"Do not take these at their word: {listed(names + more)}."
    )


def _solvable(block: dict[str, Any], protocol: Protocol) -> str:
    """Whether true shares can be worked out from released ones: the rank of Q, where Q is published."""
    name, rank, values = block["name"], block["rank"], block["values"]
    if (protocol.weights != protocol.weights[:, :1]).any():
        return (
            f"For {name}, the chances depend on the secret as well as on the true value, and what they are "
            "given the true value alone is not published: the released shares do not tell the true ones."
        )
    if rank == values:
        return (
            f"For {name}, Q has full rank ({rank}): the true share of every value can be estimated from the "
            "released ones without bias."
        )
    return (
        f"For {name}, Q has rank {rank} with {counted(values, 'value')}: only "
        f"{counted(rank, 'combination')} of the true shares can be estimated, because the chances of some "
        "values are mixtures of those of others."
    )
