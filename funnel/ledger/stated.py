"""A leakage as entries and manifests state it."""

from __future__ import annotations

from funnel.format.manifest import DECIMALS
from funnel.measure.figures import leakage_figure, round_up
from funnel.measure.leakage import AnyLeakage, Leakage
from funnel.notions import Notion


def own_figure(own: AnyLeakage, notion: Notion, decimals: int = DECIMALS) -> float | None:
    """The leakage that epsilon bounds, in nats rounded up, and no more than the epsilon that it keeps."""
    if isinstance(own, Leakage):
        return leakage_figure(own.ratio, notion.epsilon, decimals)
    figure = round_up(own.nats, decimals)
    return min(figure, notion.epsilon) if own.within(notion.bound) else figure
