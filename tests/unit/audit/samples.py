"""Honest releases of several shapes, which tests then damage or falsify."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from funnel.audit import AuditReport, audit_release
from tests.unit.audit.forge import Block, Figures, Forgery, Place, forge, keep_or_spread

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
    """A block whose protocol reads the secret: noise by s, and a weight more for x itself."""
    noise = [[4, 2, 3, 2], [3, 4, 2, 2]]
    weights = [[[noise[s][y] + 5 * (x == y) for x in range(4)] for s in range(2)] for y in range(4)]
    block = Block(["education"], EDUCATION, EDUCATION, 4, weights, reads_secret=True)
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


def side_knowledge(**options: Any) -> Forgery:
    """SRLIP over two blocks, one of two columns of which either may be known alone."""
    pairs: list[list[str | None]] = [["clerk", "40"], ["clerk", None], [None, "60"]]
    blocks = [
        keep_or_spread(["sex"], [["Female"], ["Male"]], 8, 150),
        keep_or_spread(["occupation", "hours"], pairs, 8, 110),
    ]
    told = {"notion": "srlip", "parameters": {"solve": "sequential"}, "minimum": 10, "epsilon": 2.0}
    return forge(TWO, blocks, **told | options)


def usual(**options: Any) -> Forgery:
    """LDP of X over two blocks, kept to the last digit: the ratios are 3 and 2."""
    blocks = [
        keep_or_spread(["sex"], [["Female"], ["Male"]], 16, 49_152),
        keep_or_spread(["occupation"], [["clerk"], ["farmer"], ["sailor"]], 16, 32_768),
    ]
    exact = 1.791759469229  # ln 6, rounded up
    return forge(TWO, blocks, **{"notion": "ldp-x", "minimum": 10, "epsilon": exact} | options)


def average(**options: Any) -> Forgery:
    """Mutual information, with the true one (taken from fractions and floats) as the evidence's bound."""
    blocks = [keep_or_spread(["education"], EDUCATION, 8, 128)]
    nats = Fraction(Figures.of(ONE, blocks).secret_information) + Fraction(1, 10**12)
    told = {"notion": "mutual-information", "own": nats, "mechanism": "randomised-response", "epsilon": 0.05}
    return forge(ONE, blocks, **told | options)


HONEST = {
    "one block": one_block,
    "awkward labels": awkward_labels,
    "two blocks": two_blocks,
    "reads the secret": reads_secret,
    "three blocks": three_blocks,
    "perfect": perfect,
    "side knowledge": side_knowledge,
    "usual": usual,
    "average": average,
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
