"""Which files lie beside a release: those of a lock, of cells, of a robust set, of what may be known, and a proof.

Reports show what lies there; so a file that a release of its kind does not have would tell of something that is not.
"""

from __future__ import annotations

from funnel.audit.extras.base import Release
from funnel.audit.extras.pinned import NAME as LOCK
from funnel.audit.extras.policy import PLAN, POLICY
from funnel.audit.kernel.verdict import Broken, agree, counted
from funnel.format import (
    counts,
    distances,
    draws,
    drift,
    evidence,
    groups,
    known,
    people,
    population,
    robust,
    solution,
)
from funnel.format import terms as terms_file
from funnel.format.manifest import REPORTS

CLAIM = "evidence-files"
TITLE = "evidence.json lists the files that a release of its kind has, and no other, as of a lock, of cells, or a proof"
PRIVATE = True
_ALWAYS = {counts.NAME, draws.NAME, people.NAME, solution.NAME, terms_file.NAME, POLICY, PLAN, *REPORTS}
_OTHERS = {population.NAME, groups.NAME}
"""What other claims ask for."""


def check(opened: Release) -> str:
    """Every one that there should be, and no other. Raises Broken."""
    one, listed, certificate = opened.manifest, {*opened.evidence.files}, opened.solution.certificate
    asked = {
        LOCK: one.locked is not None,
        drift.NAME: one.locked is not None,
        distances.NAME: bool(opened.terms.wide),
        robust.NAME: one.notion == "rldp",
        known.NAME: one.parameters.knows is not None,
        solution.PROOF: certificate is not None and certificate.proof is not None,
    }
    agree(evidence.NAME, [(f"whether {name} is listed", there, name in listed) for name, there in asked.items()])
    if wrong := (listed - {*asked} - _OTHERS) ^ _ALWAYS:
        raise Broken(evidence.NAME, "these are not the files of a release", sorted(_ALWAYS), sorted(wrong))
    return counted(len(listed), "file")
