"""funnel publishes tables about people while a named secret stays within a proven bound.

The names here are the whole Python interface; the command line is thin over the same functions.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funnel.api import (
        audit_history,
        audit_release,
        check,
        check_lock,
        compare,
        diff,
        estimate_counts,
        ledger,
        load,
        lock,
        new_key,
        new_signing_key,
        plan,
        public_key,
        rebuild_report,
        rotate_key,
        run,
        schema,
        starter_policy,
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
    "PlanError",
    "PolicyError",
    "ReleaseError",
    "SolverError",
    "SourceError",
    "__version__",
    "audit_history",
    "audit_release",
    "check",
    "check_lock",
    "compare",
    "diff",
    "estimate_counts",
    "ledger",
    "load",
    "lock",
    "new_key",
    "new_signing_key",
    "plan",
    "public_key",
    "rebuild_report",
    "rotate_key",
    "run",
    "schema",
    "starter_policy",
    "write_key",
    "write_signing_key",
]

_HOMES = ("funnel.errors", "funnel.version", "funnel.api")
"""Where these names are defined; the heaviest last."""


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


class _Interface(ModuleType):
    """`plan`, `lock` and `ledger` are rooms too: the import of a room leaves the name to the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Interface
