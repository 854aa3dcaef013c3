"""Timing several sides in turn, so that a machine whose speed drifts is fair to all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def in_turn(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every side in every round, after one round of warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def table(seconds: dict[str, list[float]], against: str) -> str:
    """Median, least and most seconds of each side, and the median ratio to one of them, round by round."""
    lines = [f"{'':<42}{'median':>10}{'min':>10}{'max':>10}{'ratio to ' + against:>28}"]
    for name, values in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(values, seconds[against], strict=True))
        lines.append(
            f"{name:<42}{statistics.median(values):>10.3f}{min(values):>10.3f}{max(values):>10.3f}{ratio:>28,.4g}"
        )
    return "\n".join(lines)
