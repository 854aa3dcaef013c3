"""The audit of one release: which checks there are, and what each of them rests on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from funnel.audit import (
    draws,
    evidence,
    leakage,
    ledger,
    manifest,
    protocols,
    published,
    reports,
    rewrite,
    table,
    terms,
    uncertainty,
)
from funnel.audit.files import private_folder, release_folder
from funnel.audit.findings import NEEDS_PRIVATE, PRIVATE, AuditReport, Notebook
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Blocks


@dataclass(frozen=True)
class Read:
    """What the published files yielded: protocols and counts of released tuples, where they are sound."""

    claims: Manifest
    blocks: Blocks | None
    counts: dict[tuple[int, ...], int] | None


def audit_release(release: Path, private: Path | None = None, *, staged: bool = False) -> AuditReport:
    """Every claim of a release, re-checked from its files alone.

    `release` is a release's folder, or the folder that holds `latest`; `private` is the folder of private
    evidence, or the release's own folder inside it. `staged`: the release is not entered in the ledger yet,
    so what the ledger says stays unchecked, and the table is not written a second time to compare. A damaged
    release is a failed finding; ReleaseError (`release-unreadable`) is raised only where there is no release,
    or no private folder, to look at.
    """
    folder, notes = release_folder(release), Notebook()
    read = _published(folder, notes, staged=staged)
    if private is None:
        for claim in PRIVATE:
            notes.leave(claim, NEEDS_PRIVATE)
    elif read is not None:
        kept = private_folder(private, read.claims.release)
        _private(kept, notes, read)
        _ledger(kept.parent, notes, read.claims, staged=staged)
    notes.check("report-page", reports.page)
    notes.check("utility-bound", leakage.upper_bound, read and read.claims)
    notes.check("draws-repeat", draws.repeat, read and read.claims)
    return notes.report(folder)


def _published(folder: Path, notes: Notebook, *, staged: bool) -> Read | None:
    """What the published files can tell by themselves."""
    claims = notes.learn("manifest", manifest.read_manifest, folder)
    notes.check("file-list", published.listed, folder, claims)
    notes.check("nothing-private", published.nothing_private, folder)
    blocks = notes.learn("protocol", protocols.read_protocol, folder)
    agreed = notes.learn("protocol-manifest", protocols.as_stated, blocks, claims)
    notes.check("mechanism", terms.as_named, agreed, claims)
    notes.check("report-figures", reports.as_claimed, folder, agreed, claims)
    notes.check("stated-bound", manifest.bound_kept, claims)
    if claims is None:
        return None
    wrong = published.problems(folder, claims)
    notes.check("file-hashes", published.unchanged, claims, wrong)
    path = None if claims.data in wrong else folder / claims.data
    source = notes.learn(
        "data-columns", lambda file, said: table.read_columns(file, said, agreed), path, claims
    )
    rows = notes.learn("data-rows", table.read_rows, source, claims)
    counts = notes.learn("data-values", table.encode, rows, agreed)
    notes.check("data-order", table.ordered, rows, agreed)
    if staged:
        notes.leave("data-bytes", "whoever has just written the table has no need to write it again")
    else:
        notes.check("data-bytes", rewrite.nothing_beside, source, rows, claims)
    return Read(claims, agreed, counts)


def _private(folder: Path, notes: Notebook, read: Read) -> None:
    """What takes the counts and the draws."""
    claims = read.claims
    kept = notes.learn("evidence", evidence.read_evidence, folder, claims)
    notes.check("manifest-hash", evidence.same_manifest, kept, claims)
    policy = notes.learn("policy-hash", evidence.same_policy, folder, kept, claims)
    notes.check("policy-terms", terms.as_asked, policy, claims)
    notes.check("plan-hash", evidence.same_plan, folder, kept, claims)
    whole = notes.learn("counts", evidence.counts_whole, kept, claims)
    notes.check("uncertainty", uncertainty.confident, whole, claims)
    notes.check("minimum", evidence.enough_records, whole, read.blocks, claims)
    agreed = notes.learn("alphabets", evidence.same_alphabets, whole, read.blocks, claims)
    channel = notes.learn("channel", leakage.measure, agreed, read.blocks, claims)
    notes.check("leakage-bound", leakage.bound_held, channel, claims)
    notes.check("leakage-exact", leakage.as_kept, channel, agreed)
    notes.check("leakage-stated", leakage.as_published, channel, claims)
    notes.check("information-stated", leakage.secret_as_published, channel, claims)
    notes.check("utility-stated", leakage.utility_as_published, channel, agreed, read.blocks, claims)
    notes.check("draw-inputs", draws.every_record, agreed, read.blocks)
    notes.check("draw-outputs", draws.into_table, agreed, read.blocks, read.counts)
    possible = notes.learn("draw-support", draws.possible, agreed, read.blocks)
    notes.check("draw-fit", draws.fits, possible, read.blocks)
    notes.check(
        "draw-independence", draws.independent, agreed, read.blocks, channel and channel.table, read.counts
    )


def _ledger(folder: Path, notes: Notebook, claims: Manifest, *, staged: bool) -> None:
    """What the ledger says, once the release is entered there."""
    if staged:
        for claim in ("ledger-chain", "ledger-entry"):
            notes.leave(claim, "the release is not entered in the ledger yet")
        return
    entries = notes.learn("ledger-chain", ledger.read_ledger, folder)
    notes.check("ledger-entry", ledger.entered, entries, claims)
