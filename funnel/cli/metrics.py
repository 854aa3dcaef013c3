"""The figures of a run for Prometheus: its text exposition format, as a node exporter reads it from a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

from funnel.errors import ReleaseError
from funnel.files import replace_file

Told = Mapping[str, Any]
"""What `run --json` says of one policy."""


def _leakage(told: Told) -> float | None:
    """In the measure of the policy's own notion; None where nothing was measured."""
    if "leakage" not in told:
        return None
    nats = told["leakage"][told["composed"]["measure"]]
    return inf if nats is None else nats


def _drift(told: Told) -> float | None:
    locked = told.get("locked")
    return None if locked is None else locked.get("distance")


_GAUGES: tuple[tuple[str, str, Callable[[Told], float | None]], ...] = (
    ("funnel_run_code", "Exit code: 0 released, 1 fault, 3 bug, 4 a person must decide, 5 try again.",
     lambda told: told["code"]),
    ("funnel_run_seconds", "Seconds that the run took.", lambda told: told["seconds"]),
    ("funnel_run_timestamp_seconds", "When the run began, in seconds since 1970.",
     lambda told: datetime.fromisoformat(told["started"]).timestamp()),
    ("funnel_rows", "Rows of the release.", lambda told: told.get("rows")),
    ("funnel_leakage_nats", "Leakage of the release in its own measure.", _leakage),
    ("funnel_epsilon_nats", "Leakage that the policy allows a release.", lambda told: told.get("epsilon")),
    ("funnel_budget_left_nats", "What is left of the policy's budget.", lambda told: told["left"]),
    ("funnel_drift_share", "Share of the distribution (values as drawn for) moved since the lock was made.", _drift),
)  # fmt: skip


def exposition(runs: Sequence[Told]) -> str:
    """A family of samples for each figure that some run has, labelled by the policy's path."""
    lines = []
    for name, means, figure in _GAUGES:
        found = [(one["policy"], value) for one in runs if (value := figure(one)) is not None]
        if found:
            lines += [f"# HELP {name} {means}", f"# TYPE {name} gauge"]
            lines += [f'{name}{{policy="{_escaped(policy)}"}} {_number(value)}' for policy, value in found]
    return "".join(f"{line}\n" for line in lines)


def write_metrics(path: Path, runs: Sequence[Told]) -> None:
    """Put the figures where `path` is, or a link leads: readers find the old ones or the new. Raises ReleaseError.

    A new file is for its owner and group (0640); one that is there keeps its mode, which is somebody's choice, and
    as far as this user may its owner and group. Into a
    pipe or a device they are written.
    """
    content = exposition(runs).encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            there = path.stat() if path.exists() else None
            mode = 0o640 if there is None else there.st_mode & 0o777
            owner = None if there is None else (there.st_uid, there.st_gid)
            replace_file(Path(os.path.realpath(path)), content, mode=mode, owner=owner)
    except OSError as error:
        raise ReleaseError(
            "release-write",
            f"the metrics cannot be written: {error.strerror}",
            where=str(path),
            advice="What was released stays released. Name another file, or make room and give this user the right.",
        ) from error


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "+Inf" if value == inf else repr(value)
