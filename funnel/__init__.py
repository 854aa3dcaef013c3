"""funnel publishes tables about people while a named secret stays within a proven bound.

The names here are the whole Python interface; the command line is thin over the same functions.
"""

from typing import TYPE_CHECKING

from funnel.errors import (
    AuditFailure,
    DrawError,
    FunnelError,
    InternalError,
    LedgerError,
    PlanError,
    PolicyError,
    ReleaseError,
    SolverError,
    SourceError,
)
from funnel.version import __version__

if TYPE_CHECKING:
    from funnel.api import (
        audit_release,
        check,
        compare,
        estimate_counts,
        load,
        new_key,
        plan,
        rebuild_report,
        run,
        schema,
        starter_policy,
        write_key,
    )


def __dir__() -> list[str]:
    """The whole interface, also before it is imported."""
    return __all__


def __getattr__(name: str) -> object:
    """Import the interface on first use, so that `import funnel` costs nothing."""
    if name in __all__:
        from funnel import api

        return getattr(api, name)
    raise AttributeError(f"module 'funnel' has no attribute {name!r}")


__all__ = [
    "AuditFailure",
    "DrawError",
    "FunnelError",
    "InternalError",
    "LedgerError",
    "PlanError",
    "PolicyError",
    "ReleaseError",
    "SolverError",
    "SourceError",
    "__version__",
    "audit_release",
    "check",
    "compare",
    "estimate_counts",
    "load",
    "new_key",
    "plan",
    "rebuild_report",
    "run",
    "schema",
    "starter_policy",
    "write_key",
]
