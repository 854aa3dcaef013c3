"""What came of one run, whatever it was: for programs that watch over many."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.errors import DONE, FunnelError, ReleaseError

if TYPE_CHECKING:
    from funnel.plan.summary import Summary


@dataclass(frozen=True, eq=False)
class Outcome:
    """The run of one policy file: when it `started` (UTC), how many seconds it took, and its summary or its error.

    `left` is what is left of the policy's budget in nats; None where it has none, or where nobody could read it.
    """

    policy: Path
    started: datetime
    seconds: float
    left: float | None
    summary: Summary | None
    error: FunnelError | None

    @property
    def code(self) -> int:
        """What a command says of it as its exit code."""
        return DONE if self.error is None else self.error.exit_code

    @property
    def release(self) -> str | None:
        """The release's folder, also of one that was published before something went wrong; None where none was."""
        if self.summary is not None:
            return self.summary.release
        return self.error.release if isinstance(self.error, ReleaseError) else None

    def as_dict(self) -> dict[str, Any]:
        """The object that `run --json` prints: what is said of every run, with the run's own figures or its error."""
        told = {
            "policy": str(self.policy),
            "started": f"{self.started:%Y-%m-%dT%H:%M:%SZ}",
            "seconds": self.seconds,
            "code": self.code,
            "release": self.release,
            "left": self.left,
        }
        if self.error is not None:
            return told | {"error": self.error.as_dict()}
        return ({} if self.summary is None else self.summary.as_dict()) | told
