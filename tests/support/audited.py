"""What an audit said, claim by claim."""

from __future__ import annotations

from funnel.audit.audit import AuditReport


def statuses(report: AuditReport) -> dict[str, str]:
    """Status by claim."""
    return {finding.claim: finding.status for finding in report.findings}


def failures(report: AuditReport) -> set[str]:
    """The claims that fail."""
    return {finding.claim for finding in report.of("failed")}


def missing(report: AuditReport) -> set[str]:
    """The claims that the release makes and that were not checked."""
    return {finding.claim for finding in report.unchecked}


def detail(report: AuditReport, claim: str) -> str:
    """What is said about one claim."""
    return next(finding.detail for finding in report.findings if finding.claim == claim)
