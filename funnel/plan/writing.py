"""The files of a release beside its data: protocol, reports, manifest, evidence."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from funnel.draw.histogram import Estimated
from funnel.draw.keys import Key
from funnel.draw.tally import Tally
from funnel.errors import InternalError
from funnel.files import write_json, writing
from funnel.ledger.history import Outlook
from funnel.ledger.spending import Spent
from funnel.lock.drift import drift_words
from funnel.lock.pin import Pinned
from funnel.lock.summary import Measured, stated_leakage
from funnel.measure.figures import round_to
from funnel.mechanisms.product import Protection
from funnel.plan import Plan
from funnel.policy import Policy
from funnel.release.manifest import Draws, Estimate, Manifest, Sizes, Utility, file_entry, sha256_file
from funnel.release.sign import SigningKey
from funnel.release.solution import write_solution
from funnel.report.content import compose
from funnel.report.page import render
from funnel.version import __version__

PROTOCOL_FORMAT = "funnel-protocol/1"
EVIDENCE_FORMAT = "funnel-evidence/1"
RULE = (
    "Each record is drawn on its own, and each block of columns on its own. A uniform integer u from 0 to "
    "2^bits - 1 is made for the record; the released value is the first output whose weights, added up from "
    "the first output on, exceed u. So output y has chance weights[y][x] / 2^bits where x is the record's "
    "true value; where `secret` is given, weights[y][s][x] / 2^bits."
)
RULE_OF_SETS = (
    " A block whose kind is unary releases a set of its values. Every possible value has a uniform integer u of its "
    "own, and is in the set where u is below `present` if it is the true value, else where u is below `absent`. Form "
    "`set` writes the set as a JSON list in one column, form `bits` as a 0/1 column for each value."
)


@dataclass(frozen=True, eq=False)
class Facts:
    """All that is known of a release once its data are drawn."""

    release: str
    policy: Policy
    plan: Plan
    protection: Protection
    measured: Measured
    tally: Tally
    key: Key
    outlook: Outlook
    pinned: Pinned | None = None
    signer: SigningKey | None = None
    estimated: Estimated | None = None
    spent: Spent | None = None

    @property
    def rows(self) -> int:
        """Number of records released."""
        return self.protection.joint.rows if self.estimated is None else self.estimated.rows


def write_release(facts: Facts, public: Path, private: Path) -> dict[str, Any]:
    """Write everything but the data into the two folders; returns the ledger's entry. Raises ReleaseError."""
    policy, protocols = facts.policy, facts.protection.protocols
    blocks = [protocol.as_dict() for protocol in protocols]
    rule = RULE + RULE_OF_SETS if any("kind" in block for block in blocks) else RULE
    write_json(public / "protocol.json", {"format": PROTOCOL_FORMAT, "rule": rule, "blocks": blocks})
    protocol_sha256 = sha256_file(public / "protocol.json")
    described = _manifest(facts, {}).as_dict()
    bounds = [solved.bound for solved in facts.protection.solved]
    certificate = write_solution(private, facts.protection.solved, facts.protection.budgets)
    for folder, published in ((public, True), (private, False)):
        content = compose(
            described,
            protocols,
            facts.protection.joint,
            published=published,
            bounds=bounds,
            certificate=certificate,
            protocol_sha256=protocol_sha256,
        )
        if facts.pinned is not None and not published:
            content = with_drift(content, facts.pinned.evidence()["drift"])
        write_report(folder, content)
    manifest = _manifest(facts, {path.name: file_entry(path) for path in sorted(public.iterdir())}).as_dict()
    write_json(public / "release.json", manifest)
    if facts.signer is not None:
        facts.signer.sign_release(public)
    manifest_sha256 = sha256_file(public / "release.json")
    _write_evidence(facts, private, manifest_sha256)
    return {
        "release": facts.release,
        "name": policy.name,
        "policy_sha256": policy.sha256,
        "manifest_sha256": manifest_sha256,
        "protocol_sha256": protocol_sha256,
        "key_fingerprint": manifest["draws"]["key_fingerprint"],
        "draws": policy.draws.kind,
        "notion": policy.privacy.notion,
        "epsilon": policy.privacy.epsilon,
        "leakage": manifest["leakage"],
        **facts.outlook.entry(),
        **({} if facts.estimated is None else {"estimate": manifest["estimate"]}),
        **({} if facts.pinned is None else {"lock": facts.pinned.lock.checksum}),
        "kept": {path.name: sha256_file(path) for path in sorted(private.iterdir()) if path.stem != "report"},
    }


def write_report(folder: Path, content: dict[str, Any]) -> list[Path]:
    """report.json and the page that shows it."""
    write_json(folder / "report.json", content)
    with writing(folder):
        (folder / "report.html").write_text(render(content), encoding="utf-8")
    return [folder / "report.html", folder / "report.json"]


def _manifest(facts: Facts, files: Mapping[str, Mapping[str, str | int]]) -> Manifest:
    """release.json, for the files written so far."""
    policy, joint, measured = facts.policy, facts.protection.joint, facts.measured
    notion = facts.protection.notion
    created = datetime.strptime(facts.release[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return Manifest(
        release=facts.release,
        name=policy.name,
        description=policy.description,
        created=f"{created:%Y-%m-%dT%H:%M:%SZ}",
        sensitive=policy.sensitive,
        public=tuple(block.columns for block in joint.blocks),
        notion=notion.notion,
        epsilon=notion.epsilon,
        parameters=notion.parameters(),
        mechanism=facts.protection.mechanism.kind,
        candidates=_candidates(facts.protection),
        split=facts.protection.shares,
        draws=Draws(policy.draws.kind, facts.key.fingerprint if policy.draws.kind == "permanent" else None),
        estimate=_estimate(facts),
        rows=facts.rows,
        format_of_data=policy.release.format,
        leakage=stated_leakage(measured, notion),
        composed=facts.outlook.stated(),
        locked=None if facts.pinned is None else facts.pinned.stated(),
        utility=Utility(
            measured.kept_information, measured.entropy, measured.normalised, measured.normalised_bound
        ),
        alphabet=Sizes(
            len(joint.secret),
            tuple(len(block) for block in joint.blocks),
            tuple(len(protocol.outputs) for protocol in facts.protection.protocols),
        ),
        policy_sha256=policy.sha256,
        plan_sha256=facts.plan.sha256,
        versions=_versions(),
        files=files,
        signed=None if facts.signer is None else facts.signer.stated(),
    )


def _estimate(facts: Facts) -> Estimate:
    """How the distribution was estimated; of a private estimate, what it and all before it spent."""
    asked, spent = facts.policy.estimate, facts.spent
    if asked.epsilon is None:
        return Estimate(asked.minimum, asked.kind)
    if spent is None:
        raise InternalError("a private estimate was not charged")
    return Estimate(asked.minimum, asked.kind, asked.epsilon, spent.estimates, float(spent.epsilon))


def _candidates(protection: Protection) -> list[dict[str, str | float | None]] | None:
    """What the mechanism was chosen from; shares of H(X) rounded as that of the release is."""
    if protection.candidates is None:
        return None
    return [
        {
            "mechanism": one.mechanism,
            "normalised": None if one.normalised is None else round_to(one.normalised),
            "reason": one.reason,
        }
        for one in protection.candidates
    ]


def _versions() -> dict[str, str]:
    """What the release was made with."""
    return {"funnel": __version__, "python": platform.python_version()} | {
        name: version(name) for name in ("duckdb", "numpy", "scipy")
    }


def _write_evidence(facts: Facts, private: Path, manifest_sha256: str) -> None:
    """Counts, draws, exact leakage, and how the protocols were found: nobody but the auditor may see them."""
    with writing(private):
        (private / "policy.yaml").write_bytes(facts.policy.text.encode())
        (private / "plan.json").write_bytes(facts.plan.text().encode())
        if facts.pinned is not None:
            (private / "lock.yaml").write_bytes(facts.pinned.lock.text().encode())
    tables = facts.tally.tables
    draws = [np.column_stack([np.argwhere(table), table[table > 0]]).tolist() for table in tables]
    write_json(
        private / "evidence.json",
        {
            "format": EVIDENCE_FORMAT,
            "release": facts.release,
            "manifest_sha256": manifest_sha256,
            "policy_sha256": facts.policy.sha256,
            "plan_sha256": facts.plan.sha256,
            "joint": facts.protection.joint.as_dict(),
            "draws": draws,
            "leakage": {"lip": facts.measured.lip.as_text(), "ldp": facts.measured.ldp.as_text()}
            | {facts.measured.measure: facts.measured.own.as_text()},
        }
        | ({} if facts.pinned is None else {"locked": facts.pinned.evidence()})
        | ({} if facts.estimated is None else {"private": facts.estimated.evidence(facts.protection.joint)}),
    )


def with_drift(content: Mapping[str, Any], drift: Mapping[str, Any]) -> dict[str, Any]:
    """The full report of a release under a lock also says how far the table has moved from it."""
    told = {"title": "Drift since the lock", "text": drift_words(drift)}
    return {**content, "drift": dict(drift), "limits": [*content["limits"], told]}
