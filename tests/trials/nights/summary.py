"""What was found of the nights of a year: judged one by one, and told to a stranger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_BLOCKS = 2
_ROUNDED = 1.001e-4
"""Nats by which the ledger's figures are rounded up."""
_FLOAT = 1e-9


@dataclass
class Night:
    """What was found of one night, in nats.

    `alone` is the leakage of its release, `figure`, `measured` (by `how`) and `varying` are the ledger's; `gained` is
    what the attacker gained about real people whose values stayed the same, `worst` what any answers could give,
    `per_value` what people told whose values changed; `why` is what happened before it.
    """

    night: int
    phase: str
    rows: int
    alone: float
    figure: float | None
    measured: float | None
    how: str
    varying: float | None
    gained: float
    worst: float
    unchanged: int
    changed: int
    per_value: float
    why: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """JSON form; None: infinite."""
        return {key: None if value == math.inf else value for key, value in vars(self).items()}


def judged(one: Night, found: Sequence[Night], sources: int) -> list[str]:
    """What does not hold of a night, the last of `found`; `sources` counts the protocols so far, for each key."""
    if one.figure is None or one.measured is None:
        return ["the ledger has no finite bound"]
    claims = [
        (one.gained <= one.worst + _FLOAT, f"{one.gained} was gained, more than is possible: {one.worst}"),
        (one.gained <= one.figure + _FLOAT, f"the attacker gained {one.gained}, the ledger says {one.figure}"),
        (one.worst <= one.measured + _FLOAT, f"answers give {one.worst}, the ledger measured {one.measured}"),
        (one.measured <= one.figure, f"the ledger measured {one.measured} and says {one.figure}"),
        (one.how not in ("exact", "unchanged") or one.measured - one.worst <= _ROUNDED,
         f"the ledger measured {one.measured}, and no answers give more than {one.worst}"),
        (one.varying is None or one.per_value <= one.varying + _FLOAT,
         f"a value told {one.per_value}, the ledger says {one.varying}"),
    ]  # fmt: skip
    if sources == _BLOCKS:
        largest = max(other.alone for other in found)
        claims += [
            (0 <= one.measured - one.alone <= _ROUNDED, f"together {one.measured}, one release {one.alone}"),
            (0 <= one.figure - largest <= _ROUNDED, f"together {one.figure}, the worst release {largest}"),
        ]
    return [otherwise for so, otherwise in claims if not so]


def summary(nights: int, told: Mapping[str, Any], found: Sequence[Night]) -> str:
    """All of it, with a table of phases: nights under one lock and one key."""
    first, last, audit, cost = found[0], found[-1], told["audit"], told["cost"]
    phases = [
        [one for one in found if one.phase == name] for name in dict.fromkeys(one.phase for one in found)
    ]
    lines = [
        f"{len(found)} of {nights} nights released, {first.rows:,} people at first and {last.rows:,} at last",
        "between nights: " + ", ".join(f"{many:,} {name}" for name, many in told["changes"].items()),
        f"{len(told['faults'])} faults injected, after each of which nothing was half released and no entry forgotten",
        "", "what happened",
        *(f"  night {one.night:>3}  {why}" for one in found for why in one.why),
        "", "leakage in nats (lip) by phase, which is a lock and a key",
        *_columns([_HEAD, *(_phase(one) for one in phases)]), *_LEGEND,
        "", f"a run took {cost['first']:.2f} s of processor time at first and {cost['last']:.2f} s at the end",
        f"budget {audit['budget']} nats, of which {audit['left']} are left; {audit['entries']} entries in the ledger, "
        f"{audit['releases']} releases to be seen",
        f"funnel audit, {audit['cpu']} s of processor time: {audit['verdict']}",
        *(f"WRONG  {one}" for one in told["wrong"]),
        f"{len(told['wrong'])} things were not as they should be" if told["wrong"] else "everything held",
    ]  # fmt: skip
    return "\n".join(lines)


_HEAD = ("nights", "phase", "one release", "ledger", "attacker", "any answers", "measured", "per value", "bound",
         "same values", "changed")  # fmt: skip
_LEGEND = (
    "  one release  the most that any one release told by itself",
    "  ledger       composed leakage about people whose values stay the same, as stated, rounded up; how it was found",
    "  attacker     the most that a belief about a real person with such values moved, given all releases so far",
    "  any answers  the same over all answers that anybody could have given, on the worst night; the ledger's measure",
    "  per value    people whose values changed, at known times: what each value told; the ledger's bound at the end",
)


def _phase(nights: Sequence[Night]) -> tuple[str, ...]:
    """One line of the table."""
    last, worst = nights[-1], max(nights, key=lambda one: one.worst)
    return (
        f"{nights[0].night} to {last.night}", last.phase, _nats(max(one.alone for one in nights)),
        f"{_nats(last.figure)} {last.how}", _nats(max(one.gained for one in nights)), _nats(worst.worst),
        _nats(worst.measured), _nats(max(one.per_value for one in nights)), _nats(last.varying),
        f"{last.unchanged:,}", f"{last.changed:,}",
    )  # fmt: skip


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(size) for cell, size in zip(row, wide, strict=True)).rstrip()
        for row in rows
    ]


def _nats(figure: float | None) -> str:
    return "no bound" if figure is None else f"{figure:.4f}"
