"""The leakage at the true counts, where claims are about noisy ones: a figure for the publisher alone, and no claim."""

from __future__ import annotations

from dataclasses import replace

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import NOTIONS, ldp
from funnel.audit.kernel.verdict import NOT_CLAIMED, Unchecked
from funnel.text import number

CLAIM = "leakage-true"
TITLE = "the leakage at the true counts, where the claims are about noisy ones"
PRIVATE = True
_WIDER = {"rldp": "every distribution of the uncertainty set", "ldp-x": "every distribution"}


def check(opened: Release) -> Unchecked:
    """What it is. Raises Broken where the channel cannot be measured there."""
    if opened.counts.private is None:
        return Unchecked(NOT_CLAIMED + "the counts are the table’s own")
    notion, epsilon = opened.manifest.notion, opened.manifest.epsilon
    # What holds for a set of distributions is compared with one of them.
    true = replace(opened.channel, counts=opened.records.dense())
    found = (ldp if notion == "rldp" else NOTIONS[notion].leakage)(true)
    about = _WIDER.get(notion, "the distribution as estimated")
    kept = "within" if found.within(rational(epsilon)) else "above"
    return Unchecked(
        f"{NOT_CLAIMED}the bound is about {about}; at the true counts it is {found.text}, {kept} ε = {number(epsilon)}"
        ". Keep this figure private"
    )
