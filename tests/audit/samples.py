"""Honest releases of several shapes, which tests then damage or falsify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from funnel.audit import AuditReport, audit_release
from tests.audit.forge import Block, Forgery, Place, forge, keep_or_spread

WHOLE = "every claim that can be checked holds; 1 was not checked"
"""The verdict where only the words of the report's page are left to a reader."""

ONE = np.array([[100, 200, 50, 80], [150, 60, 90, 40]])
"""N[s, x] of one block of four values."""

TWO = np.array([[[100, 200, 50], [150, 60, 90]], [[20, 90, 30], [60, 100, 100]]])
"""N[s, x_1, x_2] of blocks of two and three values."""

EDUCATION: list[list[str | None]] = [["10th"], ["Bachelors"], ["Doctorate"], [None]]


def one_block(**options: Any) -> Forgery:
    """S of two values, one block by randomised response at 2^8."""
    return forge(ONE, [keep_or_spread(["education"], EDUCATION, 8, 128)], **{"minimum": 10} | options)


def awkward_labels(**options: Any) -> Forgery:
    """Labels that a careless reader of CSV or of texts would confuse."""
    labels: list[list[str | None]] = [['é, "q"'], ["NULL"], [""], [None]]
    return forge(ONE, [keep_or_spread(['a,b "c"'], labels, 8, 128)], **options)


def two_blocks(**options: Any) -> Forgery:
    """Two blocks at 2^16, the second of two columns."""
    pairs: list[list[str | None]] = [["clerk", "40"], ["clerk", None], [None, "60"]]
    blocks = [
        keep_or_spread(["sex"], [["Female"], ["Male"]], 16, 50_000),
        keep_or_spread(["occupation", "hours"], pairs, 16, 40_000),
    ]
    return forge(TWO, blocks, **{"minimum": 10} | options)


def reads_secret(**options: Any) -> Forgery:
    """A block whose protocol reads the secret, and has fewer outputs than inputs."""
    weights = [[[12, 9, 6, 3], [11, 8, 7, 2]], [[4, 7, 10, 13], [5, 8, 9, 14]]]
    block = Block(["education"], EDUCATION, EDUCATION[:2], 4, weights, reads_secret=True)
    return forge(ONE, [block], **options)


def three_blocks(**options: Any) -> Forgery:
    """Three blocks of two values; the secret leans on the first."""
    counts = np.arange(20, 36).reshape(2, 2, 2, 2) * 5
    names = ("a", "b", "c")
    return forge(counts, [keep_or_spread([name], [["0"], ["1"]], 6, 40) for name in names], **options)


def perfect(**options: Any) -> Forgery:
    """Outputs that do not depend on X at all."""
    block = Block(["education"], EDUCATION, EDUCATION[:2], 3, [[5] * 4, [3] * 4])
    return forge(ONE, [block], **{"notion": "perfect", "epsilon": 0.0} | options)


HONEST = {
    "one block": one_block,
    "awkward labels": awkward_labels,
    "two blocks": two_blocks,
    "reads the secret": reads_secret,
    "three blocks": three_blocks,
    "perfect": perfect,
}


def audited(place: Place) -> AuditReport:
    """The report with the private evidence."""
    return audit_release(place.folder, place.private)


def lies(forgery: Forgery, home: Path) -> AuditReport:
    """Write a forgery, consistently hashed, and audit it."""
    return audited(forgery.write(home))


def failures(report: AuditReport) -> set[str]:
    """The claims that fail."""
    return {finding.claim for finding in report.of("failed")}


def statuses(report: AuditReport) -> dict[str, str]:
    """Status by claim."""
    return {finding.claim: finding.status for finding in report.findings}


def missing(report: AuditReport) -> set[str]:
    """The claims that the release makes and that were not checked."""
    return {finding.claim for finding in report.unchecked}


def detail(report: AuditReport, claim: str) -> str:
    """What is said about one claim."""
    return next(finding.detail for finding in report.findings if finding.claim == claim)
