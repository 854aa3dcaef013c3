"""What a plan needs of a table that counts by itself: no row, and of each column no more than its statements see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from funnel.data.alphabet import folded
from funnel.engine.expressions import Use, parse, uses
from funnel.engine.sources.seen import Between, Compared, Nearest, Seen, Within
from funnel.plan.stages import Plan
from funnel.policy import Attribute, Policy

_EQUAL = (
    "COMPARE_EQUAL",
    "COMPARE_NOTEQUAL",
    "COMPARE_IN",
    "COMPARE_NOT_IN",
    "OPERATOR_IS_NULL",
    "OPERATOR_IS_NOT_NULL",
)
"""Operators that ask of a value whether it is one of several, and no more."""


def seen(policy: Policy, plan: Plan, columns: Iterable[str]) -> dict[str, Seen | None] | None:
    """How coarsely the statements of a plan see those columns that they read; None where they ask whose a row is.

    A column is seen by its bins or steps where nothing else reads it: no filter, no promise about its own values, and
    no other release of the folder; and one that the filter alone reads is seen as that compares it. No row is left out
    by the filter there: who is left out is counted, too.
    """
    if policy.source.entity is not None or policy.release.identify:
        return None
    found: dict[str, Seen | None] = dict.fromkeys(columns)
    everybody = plan.everybody
    asked = everybody is not None and (
        len(everybody.classes) > (everybody.own is not None)
        or everybody.secrets not in ((), (policy.sensitive,))
    )
    if policy.privacy.asks_own or asked:
        return found
    read = parse(policy.source.filter).columns if policy.source.filter else ()
    whole = set(map(folded, (*policy.sensitive, *read)))
    named = whole.union(map(folded, policy.columns))
    coarse = {
        folded(one.name): _seen(one)
        for block in policy.blocks
        if block.cells is None
        for one in block.attributes
        if folded(one.name) not in whole
    }
    if policy.source.filter:
        own = set(map(folded, (*policy.sensitive, *policy.columns)))
        coarse |= {name: one for name, one in _compared(policy.source.filter).items() if name not in own}
    return {name: coarse.get(folded(name)) for name in found if folded(name) in named}


def _seen(attribute: Attribute) -> Seen | None:
    """How coarsely the key of a public column sees it."""
    if attribute.bins is not None:
        return Between(attribute.bins)  # type: ignore[arg-type]  # all of one type
    if isinstance(attribute.round, float):
        return Nearest(attribute.round)
    return None if attribute.round is None else Within(attribute.round)


def _compared(predicate: str) -> dict[str, Compared]:
    """The columns of which a predicate does nothing but compare them with constants."""
    found, otherwise = dict[str, list[Use]](), set[str]()
    for use in uses(predicate):
        found.setdefault(folded(use.column), []).append(use)
        if use.constants is None:
            otherwise.add(folded(use.column))
    return {name: _constants(read) for name, read in found.items() if name not in otherwise}


def _constants(read: Sequence[Use]) -> Compared:
    told = (one for use in read for one in zip(use.constants or (), use.types, strict=True))
    order = any(use.operator not in _EQUAL for use in read)
    return Compared(tuple(dict.fromkeys((text, kind) for text, kind in told if text is not None)), order)


def words(found: dict[str, Seen | None]) -> str:
    """The same for a person."""
    how = {
        Between: "by its bins",
        Nearest: "rounded",
        Within: "rounded",
        Compared: "as the filter compares it",
    }
    told = (name if one is None else f"{name} ({how[type(one)]})" for name, one in found.items())
    return ", ".join(told)
