"""Re-checks every claim of a release from its files, exactly; shares no code with what it checks."""

from funnel.audit.audit import audit_release
from funnel.audit.findings import AuditReport, Finding

__all__ = ["AuditReport", "Finding", "audit_release"]
