"""What `estimate.beliefs` asks of the rest of a policy: nothing that the protocol follows from may be a count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from funnel.data.alphabet import folded
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.policy.document import Finding, Path
from funnel.policy.mention import Mention, at

_PLACE = ("estimate", "beliefs")
_ADVICE = "Leave `estimate.beliefs` out, or choose another."


def rounded_beliefs(data: Any, mentions: Sequence[Mention]) -> Iterator[Finding]:
    """Everything that does not go with rounded beliefs."""
    if at(data, *_PLACE) is None:
        return
    if at(data, "estimate", "kind") == "private":
        said = "a private estimate is not rounded too: its noise hides every count already"
        yield Finding(_PLACE, "unsupported", said, "Leave `beliefs` out, or use `kind: counts`.", key=True)
    notion = at(data, "privacy", "notion")
    if isinstance(notion, str) and notion in NOTIONS and (why := NOTIONS[notion].no_beliefs):
        yield Finding(("privacy", "notion"), "unsupported", f"`{notion}` {why}, as `estimate.beliefs` asks", _ADVICE)
    yield from _mechanism(at(data, "mechanism"))
    if at(data, "privacy", "split") == "optimal":
        said = "the best split is found on the counts, and would tell of them in spite of `estimate.beliefs`"
        yield Finding(("privacy", "split"), "unsupported", said, "Write the shares, or `split: equal`.")
    hidden, shown = ({folded(one.column) for one in mentions if one.role == role} for role in ("sensitive", "public"))
    if hidden and hidden <= shown:
        said = "the secret is released too, so that beliefs about it are 0 or 1 and cannot be rounded"
        yield Finding(_PLACE, "unsupported", said, "Leave it out.", key=True)


def _mechanism(named: Any) -> Iterator[Finding]:
    """Mechanisms that look at more than beliefs, or choose by what counts say."""
    kind = named.get("kind") if isinstance(named, dict) else named
    if isinstance(kind, str) and kind in MECHANISMS and not MECHANISMS[kind].of_beliefs:
        path: Path = ("mechanism", "kind") if isinstance(named, dict) else ("mechanism",)
        fitting = ", ".join(name for name, one in MECHANISMS.items() if one.of_beliefs)
        said = f"`{kind}` follows the counts themselves, and would tell of them in spite of `estimate.beliefs`"
        yield Finding(path, "unsupported", said, f"Mechanisms that are made from rounded beliefs: {fitting}.")
