"""funnel publishes tables about people while what a record tells about a named secret stays bounded.

The names here are the whole Python interface; the command line is thin over the same functions.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funnel.analyst.release import OpenRelease, open_release
    from funnel.api import (
        attempt,
        audit_history,
        audit_release,
        check,
        check_lock,
        compare,
        diff,
        estimate_counts,
        explain,
        load,
        make_lock,
        new_key,
        new_signing_key,
        prune,
        public_key,
        read_ledger,
        rebuild_report,
        rotate_key,
        run,
        schema,
        send_newest,
        starter_policy,
        verify,
        write_key,
        write_signing_key,
    )
    from funnel.errors import (
        AuditFailure,
        DrawError,
        FunnelError,
        InternalError,
        LedgerError,
        LockError,
        PlanError,
        PolicyError,
        ReleaseError,
        SolverError,
        SourceError,
    )
    from funnel.version import __version__

__all__ = [
    "AuditFailure",
    "DrawError",
    "FunnelError",
    "InternalError",
    "LedgerError",
    "LockError",
    "OpenRelease",
    "PlanError",
    "PolicyError",
    "ReleaseError",
    "SolverError",
    "SourceError",
    "__version__",
    "attempt",
    "audit_history",
    "audit_release",
    "check",
    "check_lock",
    "compare",
    "diff",
    "estimate_counts",
    "explain",
    "load",
    "make_lock",
    "new_key",
    "new_signing_key",
    "open_release",
    "prune",
    "public_key",
    "read_ledger",
    "rebuild_report",
    "rotate_key",
    "run",
    "schema",
    "send_newest",
    "starter_policy",
    "verify",
    "write_key",
    "write_signing_key",
]

_HOMES = ("funnel.errors", "funnel.version", "funnel.analyst.release", "funnel.api")
"""Where these names are defined; the heaviest last: whoever opens a release needs neither solver nor cryptography."""


def __dir__() -> list[str]:
    """The whole interface, also before it is imported."""
    return __all__


def __getattr__(name: str) -> object:
    """Import the interface on first use, so that `import funnel` loads nothing."""
    if name in __all__:
        for home in map(import_module, _HOMES):
            if name in vars(home):
                return vars(home)[name]
    raise AttributeError(f"module 'funnel' has no attribute {name!r}")
