"""What `estimate.beliefs` asks of the rest of a policy: nothing that the protocol follows from may be a count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from funnel.mechanisms import MECHANISMS
from funnel.policy.document import Finding
from funnel.policy.mention import at, mechanism_of, named, notion_of

_PLACE = ("estimate", "beliefs")
_ADVICE = "Leave `estimate.beliefs` out, or choose another."


def rounded_beliefs(data: Any) -> Iterator[Finding]:
    """Everything that does not go with rounded beliefs."""
    if at(data, *_PLACE) is None:
        return
    if at(data, "estimate", "kind") == "private":
        said = "a private estimate is not rounded too: its noise hides every count already"
        yield Finding(_PLACE, "unsupported", said, "Leave `beliefs` out, or use `kind: counts`.", key=True)
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
        yield Finding(_PLACE, "unsupported", said, "Leave it out.", key=True)
