"""What an analyst gets from the release, and how to work with it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from funnel.data import UnaryProtocol
from funnel.report.blocks import seldom_kept, seldom_true
from funnel.report.case import Case
from funnel.report.figures import (
    FLOOR,
    Figure,
    counted,
    finite,
    least_text,
    most_text,
    nats_text,
    points_text,
    share,
    share_text,
)  # fmt: skip
from funnel.report.text import listed

_LISTED, _PAIRED = 20, 2
"""Public values, or secret ones, up to which the auditor looks at all rows instead of boxes."""
_NAMES = 6
"""Most values named in a sentence."""
_OPEN = 1e-3
"""Share of H(X) between what is kept and the ceiling that rounding to integers may explain."""


def utility(
    case: Case,
    blocks: Sequence[dict[str, Any]],
    untouched: float,
    certificate: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest's utility figures, the share of records unchanged, and sentences that explain them.

    `certificate` is what the evidence keeps of the proof of the upper bound, as in solution.json.
    """
    figures = {name: finite(value) for name, value in case.manifest["utility"].items()}
    told = {
        "untouched": untouched,
        "sentences": [
            _kept(figures),
            *_sentences(case, figures, blocks, untouched, _proof(case, certificate)),
        ],
    }
    command = None if case.certain else f"funnel estimate {shlex.quote(case.manifest['release'])}"
    return figures | told | {"command": command}


def _sentences(
    case: Case, figures: dict[str, Figure], blocks: Sequence[dict[str, Any]], untouched: float, how: str
) -> list[str]:
    if case.all_as_is:
        return [case.why_as_is, "The released shares are the true ones, and there is nothing to undo."]
    names_only = [_names_only(case, index, block) for index, block in enumerate(blocks) if not block["as_is"]]
    if case.certain:
        told = [*_ceiling(case, figures, how), _unchanged(blocks, untouched), *_merged(case, blocks)]
        return [*told, *filter(None, names_only)]
    drawn = [block["name"] for block in blocks if not block["as_is"]]
    whose = "the released shares" if len(drawn) == len(blocks) else f"the released shares of {listed(drawn)}"
    return [
        *_ceiling(case, figures, how),
        _unchanged(blocks, untouched),
        *(_solvable(case, index, block) for index, block in enumerate(blocks)),
        *filter(None, names_only),
        f"Do not read {whose} as the true ones: the draws pull them away from the truth in "
        "a known way. The command below undoes this as far as it can be undone, with confidence intervals, "
        "and says where it cannot.",
    ]


def _merged(case: Case, blocks: Sequence[dict[str, Any]]) -> list[str]:
    """What merging leaves to an analyst: exact shares of groups, and nothing within a group."""
    return [
        _solvable(case, index, block)
        if block["as_is"]
        else f"In {block['name']}, {counted(block['values'], 'true value')} became "
        f"{counted(block['outputs'], 'group')}, each named after one of its values. The released share of a group is "
        "the sum of the true shares of its values, exactly; the shares within a group are not to be had."
        for index, block in enumerate(blocks)
    ]


def _kept(figures: dict[str, Figure]) -> str:
    normalised = figures.get("normalised")
    if normalised is None:
        return "The true values are all the same, so there is no information to keep."
    return (
        f"The true values hold H(X) = {nats_text(figures['entropy'])} nats of information per record; the "
        f"released ones keep I(X;Y) = {nats_text(figures['mutual_information'])} of it, "
        f"{share_text(normalised)}."
    )


def _proof(case: Case, certificate: Mapping[str, Any] | None) -> str:
    """How the ceiling was proven, and that the auditor can do so again; nothing where it cannot.

    The number of boxes depends on the counts, so only the private report gives it.
    """
    if certificate is None:
        return ""
    kept, way = certificate.get("proof"), "pricing every row that could be part of a better one"
    if kept is not None:
        many = "" if case.published else f" of {counted(kept['boxes'], 'box', 'boxes')}"
        way = f"branch and bound{many}"
    elif certificate["about"] == "public" and not _few_rows(case):
        return ""
    return f" The proof is by {way}; with the private evidence, the audit goes through it again without the solver."


def _few_rows(case: Case) -> bool:
    """Whether all rows that could be part of a better protocol are pairs of values, or of two different entries."""
    notion = case.manifest["notion"]
    if notion == "ldp-x":
        return len(case.joint.blocks[0]) <= _LISTED
    alone = notion != "srlip" or len(case.joint.blocks[0].columns) == 1
    return len(case.joint.secret) <= _PAIRED and alone


def _ceiling(case: Case, figures: dict[str, Figure], how: str) -> list[str]:
    """The certified ceiling of a single block; for several none is proven, neither together nor one by one."""
    proven = figures.get("upper_bound")
    if len(case.protocols) > 1:
        return [
            "No ceiling is proven for several blocks: another release may keep more under the same promise."
        ]
    if proven is not None:
        return (
            [
                "It is proven that no protocol with this promise that draws from the true "
                f"{case.public} alone can keep more than {most_text(proven)}.{how}"
            ]
            if proven < 1
            else []
        ) + _gap(figures, proven)
    return ["This mechanism is not claimed to be the best: another one may keep more under the same promise."]


def _gap(figures: dict[str, Figure], proven: float) -> list[str]:
    """What lies between the share kept and the ceiling, where that is more than rounding."""
    gap = proven - (figures.get("normalised") or 0.0)
    if gap <= _OPEN:
        return []
    none = "" if proven < 1 else "No ceiling below 100% is proven. "
    return [
        f"{none}Up to {points_text(math.ceil(1000 * gap) / 1000)} more may be possible under the same promise: "
        "whether they are was not settled."
    ]


def _unchanged(blocks: Sequence[dict[str, Any]], untouched: float) -> str:
    if len(blocks) == 1:
        return f"In {share_text(untouched)} of records the released value is expected to be the true one."
    each = ", ".join(f"{block['name']} {share_text(block['kept'])}" for block in blocks)
    return (
        f"In {share_text(untouched)} of records all released values are expected to be the true ones; "
        f"column by column: {each}."
    )


def _names_only(case: Case, index: int, block: dict[str, Any]) -> str | None:
    """Which released values are mostly not the true ones: their names are names and no more."""
    few = seldom_true(case, index)
    if not few:
        return None
    return (
        f"In {block['name']}, some released values are true in fewer than half the records that show them. "
        f"Do not take these at their word: {_named(few, case.step)}."
    )


def _named(values: Sequence[tuple[str, float]], step: float) -> str:
    """The first few values with a share each, rounded as the report rounds, and how many more there are."""
    step = max(step, FLOOR)
    names = [f"{value} ({_coarse(part, step)})" for value, part in values[:_NAMES]]
    more = [counted(len(values) - _NAMES, "other")] if len(values) > _NAMES else []
    return listed(names + more)


def _coarse(part: float, step: float) -> str:
    return least_text(part if part < step else share(part, step), step) if part else share_text(0.0)


def _solvable(case: Case, index: int, block: dict[str, Any]) -> str:
    """Whether true shares can be worked out from released ones: the rank of Q, where Q is published."""
    name, rank, values = block["name"], block["rank"], block["values"]
    protocol = case.protocols[index]
    if block["as_is"]:
        return f"{name[:1].upper()}{name[1:]} is released as it is: its released shares are the true ones."
    if isinstance(protocol, UnaryProtocol):
        return (
            f"For {name}, each record shows a set of values that may hold the true one and others beside it. How many "
            "sets hold a value gives an unbiased estimate of how many records have it; a single set says little."
        )
    if (protocol.weights != protocol.weights[:, :1]).any():
        return (
            f"For {name}, the chances depend on the secret as well as on the true value, and what they are "
            "given the true value alone is not published: the released shares do not tell the true ones."
        )
    if rank == values:
        return (
            f"For {name}, Q has full rank ({rank}): the true share of every value can be estimated from the "
            f"released ones without bias.{_uncertain(case, index)}"
        )
    return (
        f"For {name}, Q has rank {rank} with {counted(values, 'value')}: only "
        f"{counted(rank, 'combination')} of the true shares can be estimated, because the chances of some "
        "values are mixtures of those of others."
    )


def _uncertain(case: Case, index: int) -> str:
    """A warning where values are hardly ever released as themselves: unbiased says nothing about the error."""
    few = seldom_kept(case, index)
    if not few:
        return ""
    return (
        " That does not make the estimates good: those of values that are hardly ever released as they are can be "
        f"very uncertain. As it is, each is released with this chance: {_named(few, FLOOR)}."
    )
