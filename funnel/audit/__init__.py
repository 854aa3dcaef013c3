"""Re-checks every claim of a release from its files, exactly; shares no code with what it checks.

The names here are imported on first use: `kernel` runs where nothing but numpy is installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funnel.audit.audit import audit_release
    from funnel.audit.findings import AuditReport, Finding
    from funnel.audit.history import HistoryReport, audit_history, holds_releases

__all__ = ["AuditReport", "Finding", "HistoryReport", "audit_history", "audit_release", "holds_releases"]

_HOMES = ("funnel.audit.findings", "funnel.audit.history", "funnel.audit.audit")


def __getattr__(name: str) -> object:
    """A name of the interface, from the module that defines it."""
    if name in __all__:
        for home in map(import_module, _HOMES):
            if name in vars(home):
                return vars(home)[name]
    raise AttributeError(f"module 'funnel.audit' has no attribute {name!r}")
