"""A run as events for a log: one JSON object a line on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from funnel.cli.console import emit
from funnel.cli.signals import happened

if TYPE_CHECKING:
    from funnel.plan.outcome import Outcome
    from funnel.progress import Report


def write_event(event: str, **told: Any) -> None:
    """One line on standard error."""
    emit(happened(event, **told), line=True, error=True)


class Log:
    """The events of one policy's run: each stage begun and ended with its seconds, then warnings, then the outcome."""

    interrupted: ClassVar = False
    """Whether a run was, and its events say so."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._stage: str | None = None
        self._since = 0.0

    @contextmanager
    def stages(self) -> Iterator[Report]:
        """To be told of stages; the last one ends with what is inside."""
        try:
            yield self._reach
        except KeyboardInterrupt:
            self._end()
            self._write("interrupted")
            Log.interrupted = True
            raise
        finally:
            self._end()

    def outcome(self, told: Outcome) -> None:
        """Warnings, and how it ended."""
        for warning in () if told.summary is None else told.summary.warnings:
            self._write("warning", message=warning)
        error = {} if told.error is None else {"error": told.error.as_dict()}
        figures = {"code": told.code, "seconds": told.seconds, "release": told.release, "left": told.left}
        self._write("ended", **figures, **error)

    def _reach(self, stage: str, done: int = 0, total: int | None = None) -> None:
        if stage != self._stage:
            self._end()
            self._stage, self._since = stage, monotonic()
            self._write("stage-begun", stage=stage)

    def _end(self) -> None:
        if self._stage is not None:
            self._write("stage-ended", stage=self._stage, seconds=round(monotonic() - self._since, 3))
            self._stage = None

    def _write(self, event: str, **told: Any) -> None:
        write_event(event, policy=self._policy, **told)
