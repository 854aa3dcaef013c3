"""What came of one policy file: of checking it, or of a run; nothing is raised, for whoever watches over many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from funnel.errors import DONE, FunnelError, ReleaseError, SourceError
from funnel.failed import as_error
from funnel.format.lock import LOCKED

if TYPE_CHECKING:
    from funnel.plan.summary import Summary


@dataclass(frozen=True)
class Checked:
    """The outcome of checking one policy file; `error` is None when it is fine."""

    path: Path
    error: FunnelError | None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the policy can be run."""
        return self.error is None

    def text(self) -> str:
        """A line, or a line per problem; each names the policy, also where the fault lies in its table or folders."""
        if self.error is None:
            return f"{self.path}: ok{self.note}"
        told = self.error.text()
        return told if str(self.path) in told else f"{self.path}: {told}"

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        error = None if self.error is None else self.error.as_dict()
        note = self.note.removeprefix("; ")
        return {"policy": str(self.path), "ok": self.ok, "error": error, "note": note, "code": self.code}

    @property
    def code(self) -> int:
        """What a command says of it as its exit code."""
        return DONE if self.error is None else self.error.exit_code


def checked(path: Path, *, source: bool = False) -> Checked:
    """Validate a policy or a lock; with `source` the table has to be there. Raises nothing."""
    try:
        return Checked(path, None, _lock_note(path) if path.name.endswith(LOCKED) else _policy_note(path))
    except SourceError as error:
        # A policy is reviewed in git, where the table may be out of reach: that is not the policy's fault.
        if error.code in ("source-missing", "source-unreachable") and not source:
            return Checked(path, None, "; the source is out of reach, so it was not checked")
        return Checked(path, as_error(error))
    except (FunnelError, OSError) as error:
        return Checked(path, as_error(error))


def _lock_note(path: Path) -> str:
    """That a file is a whole lock. Raises LockError."""
    from funnel.lock.lock import read_lock

    return f"; a lock, made {read_lock(path).made}"


def _policy_note(path: Path) -> str:
    """What is worth telling of a policy that a run would not refuse. Raises FunnelError."""
    from funnel.plan.compiled import planned
    from funnel.plan.population import warning
    from funnel.plan.survey import survey
    from funnel.policy import load

    loaded = load(path)
    with planned(loaded) as (compiled, engine, source):
        found = survey(loaded, compiled, engine, source)
    return "".join(f"; but {one}" for one in (*warning(compiled.everybody), *found.noted))


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


def attempted(policy: Path, run: Callable[[], Summary]) -> Outcome:
    """What comes of a run; errors are told, not raised."""
    started, clock = datetime.now(UTC), monotonic()
    summary, error = None, None
    try:
        summary = run()
    except Exception as failed:  # noqa: BLE001  who runs many goes on with the others
        error = as_error(failed)
    return Outcome(policy, started, round(monotonic() - clock, 3), _left(policy), summary, error)


def _left(policy: Path) -> float | None:
    """What is left of a policy's budget, in nats; None where it has none, or where nobody can read it."""
    from funnel.ledger.view import ledger_view
    from funnel.policy import load

    try:
        return ledger_view(load(policy)).left
    except (FunnelError, OSError):
        return None
