"""What `estimate` asks of the rest of a policy.

`kind: private` asks for a domain that the table has no part in; `beliefs` that nothing that the protocol follows from
is a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from funnel.data.alphabet import folded
from funnel.mechanisms import MECHANISMS
from funnel.policy.document import Finding, Path, choice, listed, shortened
from funnel.policy.mention import at, mechanism_of, members, mentions, named, notion_of

OWN = ("epsilon", "budget", "values")
_PLACE: Path = ("estimate", "values")
_BELIEFS = ("estimate", "beliefs")
_ADVICE = "Leave `estimate.beliefs` out, or choose another."


def private_estimate(data: Any) -> Iterator[Finding]:
    """Everything that is wrong about the estimate, seen beside the columns and the notion."""
    estimate = at(data, "estimate")
    if not isinstance(estimate, dict):
        return
    if estimate.get("kind", "counts") == "counts":
        for key in OWN:
            if key in estimate:
                said = f"`estimate.{key}` belongs to private estimates"
                yield Finding(
                    ("estimate", key), "wrong-value", said, "Write `kind: private`, or remove it.", key=True
                )
    elif estimate["kind"] == "private":
        yield from _budget(estimate)
        yield from _notion(data)
        yield from _domain(data, estimate.get("values"))


def _budget(estimate: Mapping[str, Any]) -> Iterator[Finding]:
    epsilon, budget = estimate.get("epsilon"), estimate.get("budget")
    if "epsilon" not in estimate:
        said = "`epsilon` is missing in `estimate`: private estimates need it"
        advice = "It says how much one record may show in the noisy counts; 0.5 is a common choice."
        yield Finding(("estimate", "epsilon"), "missing-key", said, advice, key=True)
    elif isinstance(epsilon, int | float) and isinstance(budget, int | float) and budget < epsilon:
        said = "`estimate.budget` does not allow a single estimate"
        yield Finding(("estimate", "budget"), "wrong-value", said, "It is `estimate.epsilon` or more.")


def _notion(data: Any) -> Iterator[Finding]:
    """What the notion itself does not offer over noisy counts."""
    notion = notion_of(data)
    for one in () if notion is None else notion.amiss_over_noise(data["privacy"]):
        yield Finding(("privacy", one.key), one.code, one.said, one.advice, key=one.of_key)


def _domain(data: Any, values: Any) -> Iterator[Finding]:
    """Every secret and public column takes values that are declared."""
    declared = values if isinstance(values, dict) else {}
    named = {folded(name): name for name in declared if isinstance(name, str)}
    used = {folded(one.column): one for one in mentions(data) if one.role != "entity"}
    reductions = _reductions(data)
    for column, name in named.items():
        if column not in used:
            said = f"`{shortened(name)}` is neither sensitive nor public"
            open_ = [one.column for place, one in used.items() if place not in named and place not in reductions]
            advice = choice(name, open_)
            yield Finding((*_PLACE, name), "unknown-column", said, advice, key=True)
        elif reductions.get(column) == "bins":
            said = f"the values of `{shortened(name)}` are its bins"
            yield Finding((*_PLACE, name), "wrong-value", said, "Leave it out.", key=True)
    for column, one in used.items():
        what = f"of `{shortened(one.column)}`"
        if reductions.get(column) in ("top", "rare"):
            said = f"which values {what} are the most frequent depends on the table, and shows"
            advice = f"Leave `{reductions[column]}` out, and declare the values."
            yield Finding(one.path, "wrong-value", said, advice)
        elif column not in reductions and column not in named:
            said = f"the values {what} are not declared: those found in the table would show"
            yield Finding(one.path, "missing-key", said, "List all that can occur under `estimate.values`.")
    yield from _repeated(declared)


def _repeated(declared: Mapping[Any, Any]) -> Iterator[Finding]:
    for name, items in declared.items():
        texts = [str(item) for item in items] if isinstance(items, list) else []
        twice = [text for text, times in Counter(texts).items() if times > 1]
        if twice and isinstance(name, str):
            said = f"`{shortened(name)}` lists {listed([repr(text) for text in twice[:3]])} twice"
            yield Finding((*_PLACE, name), "wrong-value", said, "Keep one of them.", key=True)


def _reductions(data: Any) -> dict[str, str]:
    """`bins`, `top` or `rare`, by column, where a public attribute has one."""
    return {
        folded(item["name"]): key
        for _, item in members(data)
        for key in ("bins", "top", "rare")
        if isinstance(item, dict) and item.get(key, "error") != "error" and isinstance(item.get("name"), str)
    }


def rounded_beliefs(data: Any) -> Iterator[Finding]:
    """Everything that does not go with rounded beliefs."""
    if at(data, *_BELIEFS) is None:
        return
    if at(data, "estimate", "kind") == "private":
        said = "a private estimate is not rounded too: its noise hides every count already"
        yield Finding(_BELIEFS, "unsupported", said, "Leave `beliefs` out, or use `kind: counts`.", key=True)
    notion, (kind, path) = notion_of(data), mechanism_of(data)
    if notion is not None and (why := notion.no_beliefs):
        said = f"`{at(data, 'privacy', 'notion')}` {why}, as `estimate.beliefs` asks"
        yield Finding(("privacy", "notion"), "unsupported", said, _ADVICE)
    if kind is not None and not MECHANISMS[kind].of_beliefs:
        fitting = ", ".join(name for name, one in MECHANISMS.items() if one.of_beliefs)
        said = f"`{kind}` follows the counts themselves, and would tell of them in spite of `estimate.beliefs`"
        yield Finding(path, "unsupported", said, f"Mechanisms that are made from rounded beliefs: {fitting}.")
    if at(data, "privacy", "split") == "optimal":
        said = "the best split is found on the counts, and would tell of them in spite of `estimate.beliefs`"
        yield Finding(("privacy", "split"), "unsupported", said, "Write the shares, or `split: equal`.")
    if (hidden := named(data, "sensitive")) and hidden <= named(data, "public"):
        said = "the secret is released too, so that beliefs about it are 0 or 1 and cannot be rounded"
        yield Finding(_BELIEFS, "unsupported", said, "Leave it out.", key=True)
