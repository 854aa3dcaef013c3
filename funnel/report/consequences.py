"""What follows from the promise, with the measured figures beside it; and what ε means at all."""

from __future__ import annotations

import math
from typing import Any

from funnel.report.case import Case
from funnel.report.figures import (
    Figure,
    epsilon_text,
    factor_text,
    least_text,
    nats_text,
    nats_unit,
    points_text,
    share_text,
)  # fmt: skip

SCALE = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
"""The ε of the table that explains ε; the release's own is added."""

EXAMPLE = 0.1
"""The belief whose change the table shows."""


def consequences(case: Case, guess: dict[str, float] | None) -> list[dict[str, str | None]]:
    """Implied bounds ([DS] Lemma 1, [PF] Theorem 1): claim, why, its figure, and what was measured."""
    rows = [*_lemma(case), _threat(case, guess)]
    return [dict(zip(("claim", "because", "implied", "measured"), row, strict=True)) for row in rows]


_Row = tuple[str, str, str | None, str | None]


def _lemma(case: Case) -> list[_Row]:
    """[DS] Lemma 1: ε-LDP gives ε-LIP; ε-LIP gives 2ε-LDP and I(S;Y) <= ε."""
    within = case.epsilon
    ldp = case.notion.measure == "ldp"
    odds = within if ldp else 2 * within
    own, lemma = "this is the promise", "Lemma 1 of [DS]"
    secret = case.secret.name
    return [
        (f"Change of any belief about {secret} (LIP)", lemma if ldp else own,
         _most(within), _found(case.leakage("lip"))),
        (f"Change of the odds between two values of {secret} (LDP)", own if ldp else lemma,
         _most(odds), _found(case.leakage("ldp"))),
        (f"Information on {secret} in an average record, I(S;Y)", lemma, _most(within),
         _found(case.leakage("mutual_information"))),
    ]  # fmt: skip


def _most(nats: float) -> str:
    return f"at most {nats_unit(nats)}" if nats else "0"


def _found(nats: Figure) -> str:
    return f"{nats_text(nats)} nats" if nats else nats_text(nats)


def _threat(case: Case, guess: dict[str, float] | None) -> _Row:
    """[PF] Theorem 1: gain <= 2√2·L·√I(S;Y). Right or wrong costs ±1/2, so L = 1/2."""
    information = case.leakage("mutual_information")
    bound = None if information is None else min(math.sqrt(2 * information), 1.0)
    return (
        f"Gain of someone who guesses each record’s {case.secret.name}, in the share guessed right",
        "Theorem 1 of [PF] at the measured I(S;Y): a gain is at most 2√2·L·√I(S;Y); "
        "for right or wrong L = ½, since only differences of cost matter",
        None if bound is None else f"at most {points_text(math.ceil(1000 * bound) / 1000)}",
        None
        if guess is None
        else f"{points_text(guess['after'] - guess['before'])} "
        f"(from {share_text(guess['before'])} to {share_text(guess['after'])})",
    )


def scale(case: Case) -> dict[str, Any]:
    """The table of what ε means: factor e^ε, and how far a belief of 10 % may move."""
    values = sorted({*SCALE, case.epsilon} if case.epsilon > 0 else {0.0, *SCALE})
    rows = [(epsilon, *case.notion.within(EXAMPLE, epsilon)) for epsilon in values]
    return {
        "caption": f"Someone who gives a value of {case.secret.name} a probability of {EXAMPLE:.0%} can be "
        "led to any figure between the two on the right. Smaller is more private; at epsilon 0, nothing is learnt.",
        "factor": f"{case.notion.subject(case.secret)} may change by",
        "rows": [{"epsilon": epsilon_text(epsilon), "here": epsilon == case.epsilon,
                  "factor": f"× or ÷ {factor_text(epsilon)}",
                  "from": least_text(math.floor(1000 * low + 1e-9) / 1000),
                  "to": share_text(math.ceil(1000 * high - 1e-9) / 1000)} for epsilon, low, high in rows],
    }  # fmt: skip
