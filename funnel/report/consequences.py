"""What follows from the promise, with the measured figures beside it; and what ε means at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from funnel.notions import implications
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

AVERAGES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""The same for a notion that bounds an average, where the interesting figures are smaller."""

EXAMPLE = 0.1
"""The belief whose change the table shows."""

_Row = tuple[str, str, str | None, str | None]
_OWN, _LEMMA = "this is the promise", "Lemma 1 of [DS]"


def consequences(case: Case, guess: dict[str, float] | None) -> list[dict[str, str | None]]:
    """Implied bounds: claim, why, its figure, and what was measured; the promise itself comes first.

    [DS] Lemmas 1 and 2, [PF] Theorem 1, and what averages of Q(y|x) over x inherit from it.
    """
    promised = _worst_case(case) if case.notion.worst_case else _average(case)
    rows = [*promised, _threat(case, guess), _any_cost(case)]
    return [dict(zip(("claim", "because", "implied", "measured"), row, strict=True)) for row in rows]


def _worst_case(case: Case) -> Iterator[_Row]:
    """ε-LDP gives ε-LIP; ε-LIP gives 2ε-LDP and I(S;Y) <= ε ([DS] Lemma 1); the others give one of the two."""
    own, measure, within = case.manifest["notion"], case.notion.measure, case.epsilon
    yield from _beyond(case, own)
    given = implications.bound(own, within, case.manifest.get("parameters", {}))
    lip = _OWN if measure == "lip" else _reason(own, "Lemma 2 of [DS]", _LEMMA)
    odds = _OWN if own == "ldp" else _reason(own, _LEMMA, _LEMMA)
    yield _belief(case, lip, _implied(implications.least(given, "lip")))
    yield _odds(case, odds, _implied(implications.least(given, "ldp")))
    yield _information(case, _LEMMA, _most(within))


def _implied(nats: float | None) -> str:
    return "none: a value may be ruled out" if nats is None else _most(nats)


def _reason(notion: str, side: str, otherwise: str) -> str:
    """Why a bound on beliefs or odds under the table's distribution follows."""
    return {
        "srlip": side,
        "ldp-x": "an average of Q(y | x) over x lies between its extremes, and so do ratios of averages",
        "rldp": "the counted distribution is one of the set",
        "pml": "only the rise of beliefs is bounded",
        "alip": "beliefs may rise and fall by different factors",
    }.get(notion, otherwise)


def _beyond(case: Case, notion: str) -> Iterator[_Row]:
    """What notions stronger than LIP and LDP of S promise in their own measure, and what only they give."""
    secret, within = case.terms.secret, _most(case.epsilon)
    measured = _found(case.leakage(case.notion.measure))
    known = (
        f"Change of any belief about {secret}, for someone who knows the true values of some columns (SRLIP)"
    )
    if notion == "srlip":
        yield known, _OWN, within, measured
    if notion == "ldp-x":
        yield f"Change of the odds between two true values of {case.public} (LDP)", _OWN, within, measured
    if notion == "ldp-x" and case.terms.columns > 1:
        why = "P(y | s, x_J) and P(y | x_J) are averages of the same Q(y | x), over the x that agree with x_J"
        yield known, why, within, "not measured apart"
    if notion in ("pml", "alip"):
        yield f"Rise of any belief about {secret} (PML)", _OWN, within, measured
    if notion == "rldp":
        claim = (
            f"Change of the odds between two values of {secret}, in the worst distribution of the set (RLDP)"
        )
        yield claim, _OWN, within, measured


def _average(case: Case) -> Iterator[_Row]:
    """A bound on I(S;Y) says nothing of any one released value."""
    why = "an average says nothing of single records: a rare released value may change beliefs without limit"
    yield _information(case, _OWN, _most(case.epsilon))
    yield _belief(case, why, "no bound follows")
    yield _odds(case, why, "no bound follows")


def _belief(case: Case, why: str, implied: str) -> _Row:
    return f"Change of any belief about {case.terms.secret} (LIP)", why, implied, _found(case.leakage("lip"))


def _odds(case: Case, why: str, implied: str) -> _Row:
    claim = f"Change of the odds between two values of {case.terms.secret} (LDP)"
    return claim, why, implied, _found(case.leakage("ldp"))


def _information(case: Case, why: str, implied: str) -> _Row:
    claim = f"Information on {case.terms.secret} in an average record, I(S;Y)"
    return claim, why, implied, _found(case.leakage("mutual_information"))


def _most(nats: float) -> str:
    return f"at most {nats_unit(nats)}" if nats else "0"


def _found(nats: Figure) -> str:
    return f"{nats_text(nats)} nats" if nats else nats_text(nats)


def _threat(case: Case, guess: dict[str, float] | None) -> _Row:
    """[PF] Theorem 1: gain <= 2√2·L·√I(S;Y). Right or wrong costs ±1/2, so L = 1/2."""
    information = case.leakage("mutual_information")
    bound = None if information is None else min(math.sqrt(2 * information), 1.0)
    return (
        f"Gain of someone who guesses each record’s {case.terms.secret}, in the share guessed right",
        "Theorem 1 of [PF] at the measured I(S;Y): a gain is at most 2√2·L·√I(S;Y); "
        "for right or wrong L = ½, since only differences of cost matter",
        None if bound is None else f"at most {points_text(math.ceil(1000 * bound) / 1000)}",
        None
        if guess is None
        else f"{points_text(guess['after'] - guess['before'])} "
        f"(from {share_text(guess['before'])} to {share_text(guess['after'])})",
    )


def _any_cost(case: Case) -> _Row:
    """The same for any cost C(s, q) with |C| <= L; I(S;Y) is in nats, as Pinsker's inequality has it."""
    information = case.leakage("mutual_information")
    most = None if information is None else math.ceil(1e4 * math.sqrt(8 * information) - 1e-9) / 1e4
    return (
        f"Average gain of anyone who acts on what they believe about a record’s {case.terms.secret}, where no outcome "
        "costs or earns them more than L",
        "Theorem 1 of [PF]: 2√2·L·√I(S;Y), at the measured I(S;Y) in nats",
        None if most is None else f"at most {most:.4f} × L" if most else "0",
        "depends on their costs",
    )


def scale(case: Case) -> dict[str, Any]:
    """The table of what ε means: factor e^ε, and how far a belief of 10 % may move; or, for an average, a gain."""
    within = case.notion.within
    return _scale_of_averages(case) if within is None else _scale_of_beliefs(case, within)


def _scale_of_beliefs(case: Case, within: Callable[[float, float], tuple[float, float]]) -> dict[str, Any]:
    values = sorted({*SCALE, case.epsilon} if case.epsilon > 0 else {0.0, *SCALE})
    rows = [(epsilon, *within(EXAMPLE, epsilon)) for epsilon in values]
    return {
        "caption": f"Someone who gives a value of {case.terms.secret} a probability of {EXAMPLE:.0%} can be "
        "led to any figure between the two on the right. Smaller is more private; at epsilon 0, nothing is learnt.",
        "factor": f"{case.notion.subject(case.terms)} may change by",
        "rows": [{"epsilon": epsilon_text(epsilon), "here": epsilon == case.epsilon,
                  "factor": f"× or ÷ {factor_text(epsilon)}",
                  "from": least_text(math.floor(1000 * low + 1e-9) / 1000),
                  "to": share_text(math.ceil(1000 * high - 1e-9) / 1000)} for epsilon, low, high in rows],
    }  # fmt: skip


def _scale_of_averages(case: Case) -> dict[str, Any]:
    """[PF] Theorem 1 with L = 1/2; no belief is bounded, so none is shown."""
    rows = [(epsilon, min(math.sqrt(2 * epsilon), 1.0)) for epsilon in sorted({*AVERAGES, case.epsilon})]
    return {
        "caption": f"By guessing, the {case.terms.secret} of some share of the records is found. The released values "
        "cannot raise that share by more than the figure on the right (Theorem 1 of [PF]). "
        "This is a share of all records: it says nothing about which ones, nor how sure a guess can be for one of "
        "them. Smaller is more private; at epsilon 0, nothing is learnt.",
        "factor": "the share guessed right may rise by",
        "rows": [{"epsilon": epsilon_text(epsilon), "here": epsilon == case.epsilon,
                  "factor": f"at most {points_text(math.ceil(1000 * gain - 1e-9) / 1000)}" if gain < 1 else "no limit",
                  "from": None, "to": None} for epsilon, gain in rows],
    }  # fmt: skip
