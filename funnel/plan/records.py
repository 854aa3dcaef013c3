"""A release as records: what manifest, counts, draws and ledger say of the stages' results."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import numpy as np

from funnel.data.convert import alphabet_record, cells_of, grid, in_order
from funnel.data.joint import IntArray
from funnel.draw.histogram import Estimated
from funnel.errors import InternalError
from funnel.format import counts, draws, manifest, protocol
from funnel.format.fields import named_at
from funnel.format.journal import ReleaseEntry
from funnel.format.manifest import Manifest
from funnel.ledger.estimates import Spent
from funnel.ledger.history import Composed
from funnel.measure.figures import round_to
from funnel.mechanisms.product import Protection
from funnel.plan.draw import DrawnRows
from funnel.plan.protect import Settled
from funnel.policy.model import EstimateSection
from funnel.policy.terms import coarsened, leaves_out, partition, terms_file
from funnel.release.measured import stated_leakage, stated_utility
from funnel.version import __version__


@dataclass(frozen=True, eq=False)
class Drafted(Settled):
    """All that is known of a release once its data are drawn."""

    drawn: DrawnRows


def counts_file(release: Drafted) -> counts.CountsFile:
    """What the claims are about, with the noise of a private estimate and the counts that a lock was made from."""
    joint, estimated, pinned = release.joint, release.counted.estimated, release.protected.pinned
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
    rows = in_order(np.column_stack([cells, *estimated.parts, estimated.counted]))
    return counts.Private(estimated.name, str(estimated.epsilon), grid(rows[:, :-1]), grid(rows[:, -1]))


def draws_file(drawn: DrawnRows) -> draws.DrawsFile:
    """Which values were drawn for which, as often as it happened."""
    tables = (np.column_stack([np.argwhere(table), table[table > 0]]) for table in drawn.tables)
    return draws.DrawsFile("funnel-draws/1", tuple(map(grid, tables)))


def manifest_file(release: Drafted, terms_sha256: str) -> Manifest:
    """release.json, but for what it says of the other files."""
    run, joint, pinned = release.run, release.joint, release.protected.pinned
    policy, found = run.policy, release.protection
    digits = manifest.decimals(release.rows, policy.estimate.minimum)
    permanent = policy.draws.kind == "permanent"
    return Manifest(
        "funnel-release/1",
        release=run.release,
        created=_time(run.release),
        name=policy.name,
        description=policy.description,
        sensitive=policy.sensitive,
        public=tuple(block.columns for block in joint.blocks),
        notion=found.notion.notion,
        epsilon=found.notion.epsilon,
        parameters=manifest.Parameters(**found.notion.parameters()),
        mechanism=found.mechanism.kind,
        totals=found.mechanism.of_totals,
        candidates=_candidates(found, digits),
        split=found.shares,
        draws=manifest.Draws(policy.draws.kind, run.key.fingerprint if permanent else None),
        absent=leaves_out(terms_file(policy), locked=pinned is not None),
        estimate=_estimate(policy.estimate, release.counted.spent),
        rows=release.rows,
        identify=tuple(map(manifest.Key, run.plan.write.keys, run.plan.write.key_types)),
        format_of_data=policy.release.format,
        rows_of_data=policy.release.rows,
        leakage=stated_leakage(release.protected.measured, found.notion, digits),
        composed=release.composed.stated(digits),
        utility=stated_utility(release.protected.measured, digits),
        alphabet=_sizes(found),
        locked=None if pinned is None else manifest.Locked(pinned.lock.checksum, pinned.lock.made, pinned.lock.fixed),
        signed=None if run.signer is None else run.signer.stated(),
        policy_sha256=policy.sha256,
        terms_sha256=terms_sha256,
        plan_sha256=run.plan.sha256,
        versions={**_versions()} | ({} if run.source.version is None else {"source": run.source.version}),
        files={},
        partition=partition(policy),
        coarsened=coarsened(terms_file(policy)),
        metadata=None if policy.metadata is None else policy.metadata.stated(),
        language=policy.release.language,
    )


def _time(release: str) -> str:
    """The time in a release's name, as files write it."""
    return f"{named_at(release):%Y-%m-%dT%H:%M:%SZ}"


def _sizes(found: Protection) -> manifest.Sizes:
    """Number of values of S, and of each block before and after drawing."""
    inputs = tuple(len(block) for block in found.joint.blocks)
    outputs = tuple(len(protocol.outputs) for protocol in found.protocols)
    return manifest.Sizes(len(found.joint.secret), inputs, outputs)


def _estimate(asked: EstimateSection, spent: Spent | None) -> manifest.Estimate:
    """How the distribution was estimated; of a private estimate, what it and all before it spent."""
    if asked.epsilon is None:
        return manifest.Estimate(asked.minimum, asked.kind, None, None, None, asked.beliefs)
    if spent is None:
        raise InternalError("a private estimate was not charged")
    return manifest.Estimate(asked.minimum, asked.kind, asked.epsilon, spent.estimates, float(spent.epsilon))


def _candidates(protection: Protection, digits: int) -> tuple[manifest.Candidate, ...] | None:
    """What the mechanism was chosen from; shares of H(X) rounded as that of the release is, none where it has none."""
    if protection.candidates is None:
        return None
    return tuple(
        manifest.Candidate(
            one.mechanism,
            None if one.normalised is None or not digits else round_to(one.normalised, digits),
            one.reason,
        )
        for one in protection.candidates
    )


@cache
def _versions() -> Mapping[str, str]:
    """What releases are made with; whoever asks a library searches the disk for what says so."""
    return {"funnel": __version__, "python": platform.python_version()} | {
        name: version(name) for name in ("duckdb", "numpy", "pyarrow", "scipy")
    }


def release_entry(
    composed: Composed, stated: Manifest, manifest_sha256: str, evidence_sha256: str
) -> ReleaseEntry:
    """What the ledger says of the release."""
    return ReleaseEntry(
        release=stated.release,
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
        entity=composed.drawn[0].entity,
        drawn=tuple(one.told() for one in composed.drawn),
        present=composed.present,
        promises=composed.promises,
        identity=composed.identity,
        lock=None if stated.locked is None else stated.locked.checksum,
        identify=tuple(key.name for key in stated.identify),
        noisy=stated.estimate.kind == "private",
    )
