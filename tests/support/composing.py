"""What an observer of several releases learns, by brute force."""

from __future__ import annotations

import math
from fractions import Fraction

from funnel.notions import Ldp, Lip, MutualInformation, Notion, Srlip

NOTIONS: list[Notion] = [
    Lip(notion="lip", epsilon=1.0),
    Ldp(notion="ldp", epsilon=1.0),
    MutualInformation(notion="mutual-information", epsilon=1.0),
    Srlip(notion="srlip", epsilon=1.0),
]


OF_ANOTHER = None
"""What an earlier release states of this secret that hides one of its own: nothing."""


def learnt(seen: dict, measure: str) -> float:
    """LIP, LDP (both: also SRLIP without side knowledge) or I(S;Y) of P(s, y)."""
    secrets = sorted({s for s, _ in seen})
    prior = {s: sum(p for (one, _), p in seen.items() if one == s) for s in secrets}
    worst, average = Fraction(1), 0.0
    for y in {y for _, y in seen}:
        given_s = [seen.get((s, y), Fraction(0)) / prior[s] for s in secrets]
        whole = sum(seen.get((s, y), Fraction(0)) for s in secrets)
        if whole == 0:
            continue
        average += sum(
            float(p * prior[s]) * math.log(p / whole) for s, p in zip(secrets, given_s, strict=True) if p
        )
        if min(given_s) == 0:
            worst = None
        if worst is not None:
            ends = (
                (max(given_s) / min(given_s),)
                if measure == "ldp"
                else (max(given_s) / whole, whole / min(given_s))
            )
            worst = max(worst, *ends)
    if measure == "mutual_information":
        return average
    return math.inf if worst is None else math.log(worst)
