"""The files of a release: built as the records of `funnel.format`, written in their canonical bytes."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from funnel import report
from funnel.data.convert import alphabet_record, cells_of, grid, in_order, protocol_file
from funnel.data.joint import IntArray
from funnel.draw.histogram import Estimated
from funnel.draw.keys import Key
from funnel.draw.tally import Tally
from funnel.errors import InternalError
from funnel.files import sha256_file, writing
from funnel.format import counts, draws, drift, evidence, manifest, protocol, released, schema, solution
from funnel.format import robust as robust_format
from funnel.format import terms as terms_format
from funnel.format.journal import ReleaseEntry
from funnel.format.manifest import FileEntry, Manifest
from funnel.ledger.estimates import Spent
from funnel.ledger.history import Composed
from funnel.lock.pin import Pinned
from funnel.lock.summary import Measured, stated_leakage
from funnel.measure.figures import round_to, round_up
from funnel.mechanisms.product import Protection
from funnel.plan import Plan
from funnel.plan.rebuild import report_files
from funnel.plan.stages import Write
from funnel.policy import Policy
from funnel.policy.terms import terms_file
from funnel.release.export import export, released_file
from funnel.release.sign import SigningKey
from funnel.release.solution import solution_file
from funnel.version import __version__


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
    composed: Composed
    pinned: Pinned | None = None
    signer: SigningKey | None = None
    estimated: Estimated | None = None
    spent: Spent | None = None

    @property
    def rows(self) -> int:
        """Number of records released."""
        return self.protection.joint.rows if self.estimated is None else self.estimated.rows


def write_release(facts: Facts, step: Write, public: Path, private: Path) -> ReleaseEntry:
    """Write every file of a release into its two folders; returns the ledger's entry. Raises ReleaseError."""
    protocols, terms = facts.protection.protocols, terms_file(facts.policy)
    shown = protocol_file(protocols)
    table = released_file(protocols, step.columns, step.types, *facts.tally.released)
    _write(public, {protocol.NAME: schema.write(shown), released.NAME: schema.write(table)})
    data = f"data.{step.format}"
    export(protocols, table, step.format, public / data)
    tallied, counted = _draws(facts.tally), _counts(facts)
    solved, proof = solution_file(facts.protection.solved, facts.protection.budgets)
    robust = facts.protection.notion.certificate(facts.protection.channel)
    moved = None if facts.pinned is None else facts.pinned.drift_file()
    described = _manifest(facts, terms)
    _write(public, report_files(report.published(described, shown, table)))
    _write(
        private, report_files(report.full(described, shown, table, counted, tallied, solved, terms, moved))
    )
    stated = replace(described, files=_entries(public))
    _write(public, {manifest.NAME: schema.write(stated)})
    if facts.signer is not None:
        facts.signer.sign_release(public)
    _write(
        private,
        {
            counts.NAME: schema.write(counted),
            draws.NAME: schema.write(tallied),
            terms_format.NAME: schema.write(terms),
            solution.NAME: schema.write(solved),
            "policy.yaml": facts.policy.text.encode(),
            "plan.json": facts.plan.text().encode(),
        }
        | ({} if proof is None else {solution.PROOF: proof})
        | ({} if robust is None else {robust_format.NAME: schema.write(robust)})
        | ({} if facts.pinned is None else {"lock.yaml": facts.pinned.lock.text().encode()})
        | ({} if moved is None else {drift.NAME: schema.write(moved)}),
    )
    stated_sha256 = sha256_file(public / manifest.NAME)
    bound = evidence.EvidenceFile("funnel-evidence/1", facts.release, stated_sha256, _entries(private))
    _write(private, {evidence.NAME: schema.write(bound)})
    return _entry(facts, stated, stated_sha256, sha256_file(private / evidence.NAME))


def _write(folder: Path, files: dict[str, bytes]) -> None:
    with writing(folder):
        for name, content in files.items():
            (folder / name).write_bytes(content)


def _entries(folder: Path) -> dict[str, FileEntry]:
    """What is said of the files written so far. Raises ReleaseError."""
    with writing(folder):
        return {
            path.name: FileEntry(sha256_file(path), path.stat().st_size) for path in sorted(folder.iterdir())
        }


def _counts(facts: Facts) -> counts.CountsFile:
    """What the claims are about, with the noise of a private estimate and the counts that a lock was made from."""
    joint, estimated, pinned = facts.protection.joint, facts.estimated, facts.pinned
    return counts.CountsFile(
        "funnel-counts/1",
        alphabet_record(joint.secret),
        tuple(map(alphabet_record, joint.blocks)),
        grid(cells_of(joint)),
        None if estimated is None else _private(estimated, estimated.arranged(joint)),
        None if pinned is None or pinned.records is None else tuple(map(grid, pinned.records)),
    )


def _private(estimated: Estimated, cells: IntArray) -> counts.Private:
    """The noise beside the counts, for every cell in the blocks of the release."""
    noise = estimated.noisy - estimated.estimated
    parts = [estimated.estimated, np.maximum(noise, 0), np.maximum(-noise, 0)]
    rows = in_order(np.column_stack([cells, *parts, estimated.counted]))
    records = None if estimated.then is None else grid(rows[:, -1])
    return counts.Private(str(estimated.epsilon), grid(rows[:, :-1]), records)


def _draws(tally: Tally) -> draws.DrawsFile:
    """Which values were drawn for which, as often as it happened."""
    tables = (np.column_stack([np.argwhere(table), table[table > 0]]) for table in tally.tables)
    return draws.DrawsFile("funnel-draws/1", tuple(map(grid, tables)))


def _manifest(facts: Facts, terms: terms_format.TermsFile) -> Manifest:
    """release.json, but for what it says of the other files."""
    policy, joint, measured = facts.policy, facts.protection.joint, facts.measured
    notion = facts.protection.notion
    permanent = policy.draws.kind == "permanent"
    return Manifest(
        "funnel-release/1",
        release=facts.release,
        created=_time(facts.release),
        name=policy.name,
        description=policy.description,
        sensitive=policy.sensitive,
        public=tuple(block.columns for block in joint.blocks),
        notion=notion.notion,
        epsilon=notion.epsilon,
        parameters=manifest.Parameters(**notion.parameters()),
        mechanism=facts.protection.mechanism.kind,
        candidates=_candidates(facts.protection),
        split=facts.protection.shares,
        draws=manifest.Draws(policy.draws.kind, facts.key.fingerprint if permanent else None),
        estimate=_estimate(facts),
        rows=facts.rows,
        format_of_data=policy.release.format,
        leakage=stated_leakage(measured, notion),
        composed=facts.composed.stated(),
        utility=_utility(measured),
        alphabet=manifest.Sizes(
            len(joint.secret),
            _lengths(joint.blocks),
            _lengths(one.outputs for one in facts.protection.protocols),
        ),
        locked=None
        if facts.pinned is None
        else manifest.Locked(facts.pinned.lock.checksum, facts.pinned.lock.made),
        signed=None if facts.signer is None else manifest.Signed("ed25519", facts.signer.fingerprint),
        policy_sha256=policy.sha256,
        terms_sha256=hashlib.sha256(schema.write(terms)).hexdigest(),
        plan_sha256=facts.plan.sha256,
        versions=_versions(),
        files={},
    )


def _time(release: str) -> str:
    """The time in a release's name, as files write it."""
    return f"{datetime.strptime(release[:16], '%Y%m%dT%H%M%SZ').replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"


def _lengths(alphabets: Iterable[Any]) -> tuple[int, ...]:
    return tuple(map(len, alphabets))


def _utility(measured: Measured) -> manifest.Utility:
    """Figures for publication: to four decimals, the bound rounded up."""
    bound = measured.normalised_bound
    return manifest.Utility(
        round_to(measured.kept_information),
        round_to(measured.entropy),
        round_to(measured.normalised),
        None if bound is None else round_up(bound),
    )


def _estimate(facts: Facts) -> manifest.Estimate:
    """How the distribution was estimated; of a private estimate, what it and all before it spent."""
    asked, spent = facts.policy.estimate, facts.spent
    if asked.epsilon is None:
        return manifest.Estimate(asked.minimum, asked.kind, None, None, None)
    if spent is None:
        raise InternalError("a private estimate was not charged")
    return manifest.Estimate(asked.minimum, asked.kind, asked.epsilon, spent.estimates, float(spent.epsilon))


def _candidates(protection: Protection) -> tuple[manifest.Candidate, ...] | None:
    """What the mechanism was chosen from; shares of H(X) rounded as that of the release is."""
    if protection.candidates is None:
        return None
    return tuple(
        manifest.Candidate(
            one.mechanism, None if one.normalised is None else round_to(one.normalised), one.reason
        )
        for one in protection.candidates
    )


def _versions() -> dict[str, str]:
    """What the release was made with."""
    return {"funnel": __version__, "python": platform.python_version()} | {
        name: version(name) for name in ("duckdb", "numpy", "pyarrow", "scipy")
    }


def _entry(facts: Facts, stated: Manifest, manifest_sha256: str, evidence_sha256: str) -> ReleaseEntry:
    """What the ledger says of the release."""
    return ReleaseEntry(
        release=facts.release,
        name=stated.name,
        policy_sha256=stated.policy_sha256,
        manifest_sha256=manifest_sha256,
        evidence_sha256=evidence_sha256,
        protocol_sha256=stated.files[protocol.NAME].sha256,
        notion=stated.notion,
        epsilon=stated.epsilon,
        leakage=stated.leakage,
        draws=stated.draws.kind,
        key_fingerprint=stated.draws.key_fingerprint,
        entity=facts.composed.drawn[0].entity,
        drawn=tuple(one.told() for one in facts.composed.drawn),
        composed=facts.composed.together,
        lock=None if stated.locked is None else stated.locked.checksum,
    )
