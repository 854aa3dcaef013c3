"""What the promise says in figures: how far beliefs may move, what else follows from it, and what its ε means."""

from __future__ import annotations

import math
from collections.abc import Mapping

from funnel.report import figures
from funnel.report.facts import Facts
from funnel.report.tongue import figure
from funnel.report.words import blocks, nats_in

SCALE = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
"""The ε of the table that explains ε; the release's own is added."""
AVERAGES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""The same for a notion that bounds an average, where the interesting figures are smaller."""
EXAMPLE = 0.1
"""The belief whose change the table shows."""

_HUGE = 700.0
"""Nats beyond which a change is as good as unbounded, and its factor no float."""

Notion = Mapping[str, str]
Row = dict[str, str | None]


def within(kind: str, before: float, falls: float, rises: float) -> tuple[float, float]:
    """The probabilities that a belief of probability `before` may come to, where it may fall and rise by so many nats.

    By a `factor`: P(s|y) stays within the two, and so, added up over all other values, does 1 - P(s|y). By its
    `odds`: those of s against not s do, a mixture of the other values. On `average`: anything.
    """
    if kind == "average":
        return 0.0, 1.0
    if before in (0.0, 1.0):
        return before, before
    down, up, rest = math.exp(-falls), math.exp(min(rises, _HUGE)), 1 - before
    if kind == "odds":
        return before * down / (before * down + rest), before * up / (before * up + rest)
    return max(before * down, 1 - up * rest, 0.0), min(before * up, 1 - down * rest, 1.0)


def span(falls: float, rises: float) -> str:
    """`× or ÷ 2.72`; where beliefs may fall further than they may rise, both or the one that is bounded."""
    if falls == rises:
        return f"× or ÷ {figures.factor(rises)}"
    return f"× {figures.factor(rises)}" + ("" if math.isinf(falls) else f" or ÷ {figures.factor(falls)}")


def consequences(t: Facts, notion: Notion, guess: Mapping[str, float] | None) -> list[Row]:
    """Claim, why, its implied bound and what was measured; the notion's own claim first.

    [DS] Lemmas 1 and 2, [PF] Theorem 1. `guess`: shares of records whose secret is guessed right; they need the counts.
    """
    told, said = dict(t.m.leakage), blocks("consequences.txt", t=t, guess=guess)
    if told["lip"] == 0:
        told["mutual_information"] = 0.0  # a mean of nothing, that was computed in floats and rounded up
    rows, itself = [], t.say("this is the promise")
    if notion["own"]:
        found = _found(t, told[notion["measure"]])
        rows.append(_follows(notion["own"], itself, _most(t, str(t.epsilon)), found))
    if notion["known"]:
        rows.append(
            _follows(notion["known"], notion["known_because"], _most(t, str(t.epsilon)), t.say("not measured apart"))
        )
    measures = {"belief": "lip", "odds": "ldp", "information": "mutual_information"}
    for name in sorted(measures, key=lambda name: notion[f"{name}_because"] != itself):
        found = _found(t, told[measures[name]])
        rows.append(_follows(said[name], notion[f"{name}_because"], _most(t, notion[name]), found))
    gain, most = _gains(t, told["mutual_information"])
    return [
        *rows,
        _follows(said["guess"], said["guess_because"], gain, said["guess_measured"] or None),
        _follows(said["acts"], said["acts_because"], most, t.say("depends on their costs")),
    ]


def _follows(claim: str, because: str, implied: str, measured: str | None) -> Row:
    return {"claim": claim, "because": because, "implied": implied, "measured": measured}


def _gains(t: Facts, information: figures.Figure) -> tuple[str, str]:
    """[PF] Theorem 1: gain <= 2√2·L·√I(S;Y). Right or wrong costs ±1/2, so L = 1/2; for any costs a multiple of L."""
    if information is None:
        return t.say("no bound follows"), t.say("no bound follows")
    most = math.ceil(1e4 * math.sqrt(8 * information) - 1e-9) / 1e4
    gain = figures.points(min(math.sqrt(2 * information), 1.0))
    return _at_most(t, gain), _at_most(t, f"{most:.4f}\u00a0×\u00a0L") if most else "0"


def _at_most(t: Facts, said: str) -> str:
    return t.say("at most {}").format(figure(said, t.language))


def _most(t: Facts, said: str) -> str:
    if not said:
        return t.say("no bound follows")
    bound = nats_in(said)
    return _at_most(t, figures.unit(bound)) if bound else "0"


def _found(t: Facts, nats: figures.Figure) -> str:
    """A measured figure, which was rounded up, and may be far above what was measured where that is little."""
    return t.say("at most {}").format(f"{t.nats(nats)} {t.say('nats')}") if nats else t.nats(nats)


def scale(t: Facts, notion: Notion) -> list[Row]:
    """What ε means: the factor e^ε, and how far a belief of 10 % may move; or, for an average, a gain."""
    if notion["kind"] == "average":
        return [_gain(t, epsilon) for epsilon in sorted({*AVERAGES, t.epsilon})]
    return [_reach(t, notion, epsilon) for epsilon in sorted({*SCALE, t.epsilon})]


def _gain(t: Facts, epsilon: float) -> Row:
    """[PF] Theorem 1 with L = 1/2; no belief is bounded, so none is shown."""
    gain = math.sqrt(2 * epsilon)
    factor = _at_most(t, figures.points(gain)) if gain < 1 else t.say("no limit")
    return _row(t, epsilon, factor, None, None)


def _reach(t: Facts, notion: Notion, epsilon: float) -> Row:
    """How far a belief may fall is as for this release, unless it is as far as it may rise."""
    falls, rises = nats_in(notion["falls"]), nats_in(notion["rises"])
    falls = epsilon if falls == rises else max(falls, epsilon)
    low, high = within(notion["kind"], EXAMPLE, falls, epsilon)
    ends = math.floor(1000 * low + 1e-9) / 1000, math.ceil(1000 * high - 1e-9) / 1000
    least = "below 0.1%" if 0 < low < 0.001 else figures.share(ends[0])
    told = (figure(one, t.language) for one in (least, figures.share(ends[1])))
    return _row(t, epsilon, figure(t.say("or").join(span(falls, epsilon).split("or")), t.language), *told)


def _row(t: Facts, epsilon: float, factor: str, least: str | None, most: str | None) -> Row:
    here = t.say("this release") if epsilon == t.epsilon else None
    written = figure(figures.epsilon(epsilon), t.language)
    return {"epsilon": written, "here": here, "factor": factor, "from": least, "to": most}
