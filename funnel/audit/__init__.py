"""Re-checks every claim of a release from its files, exactly; shares no code with what it checks."""

from funnel.audit.audit import audit_release
from funnel.audit.findings import AuditReport, Finding
from funnel.audit.history import HistoryReport, audit_history, holds_releases

__all__ = ["AuditReport", "Finding", "HistoryReport", "audit_history", "audit_release", "holds_releases"]
