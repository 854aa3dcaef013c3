"""The audit of one release: which checks there are, and what each of them rests on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from funnel.audit import (
    composed,
    draws,
    evidence,
    leakage,
    ledger,
    lock,
    manifest,
    meanings,
    minimum,
    noise,
    optimum,
    plan,
    protocols,
    published,
    reports,
    rewrite,
    shown,
    signature,
    table,
    terms,
    uncertainty,
)
from funnel.audit.evidence import Evidence
from funnel.audit.files import private_folder, release_folder
from funnel.audit.findings import NEEDS_PRIVATE, PRIVATE, AuditReport, Notebook
from funnel.audit.leakage import Channel
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Blocks


@dataclass(frozen=True)
class Read:
    """What the published files yielded: protocols and counts of released tuples, where they are sound."""

    folder: Path
    claims: Manifest
    blocks: Blocks | None
    counts: dict[tuple[int, ...], int] | None


def audit_release(
    release: Path, private: Path | None = None, *, staged: bool = False, public_key: str | None = None
) -> AuditReport:
    """Every claim of a release, re-checked from its files alone.

    `release` is a release's folder, or the folder that holds `latest`; `private` is the folder of private
    evidence, or the release's own folder inside it. `staged`: the release is not entered in the ledger yet,
    so what the ledger says stays unchecked, and the table is not written a second time to compare. `public_key`: the
    line of an Ed25519 public key, or a file that holds it, by which the release must be signed. A damaged release is
    a failed finding; ReleaseError (`release-unreadable`) is raised only where there is no release, or no private
    folder, to look at, or no such key (`key-unreadable`).
    """
    key = None if public_key is None else signature.read_public_key(public_key)
    folder, notes = release_folder(release), Notebook()
    read = _published(folder, notes, staged=staged)
    if private is None:
        for claim in PRIVATE:
            notes.leave(claim, NEEDS_PRIVATE)
        if read is not None:
            notes.check("utility-bound", optimum.plausible, read.claims)
    elif read is not None:
        kept = private_folder(private, read.claims.release)
        counts, policy = _private(kept, notes, read)
        if staged:
            _unentered(notes)
        else:
            _ledger(kept, notes, read, counts, folder.parent, policy)
    notes.check("report-page", reports.page)
    notes.check("draws-repeat", draws.repeat, read and read.claims)
    notes.check("signature", lambda one: signature.signed(folder, one.claims, key), read)
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
    return Read(folder, claims, agreed, counts)


def _private(folder: Path, notes: Notebook, read: Read) -> tuple[Evidence | None, bytes | None]:
    """What takes the counts and the draws; the counts, where they are those of the protocol's inputs; the policy."""
    claims = read.claims
    kept = notes.learn("evidence", evidence.read_evidence, folder, claims)
    notes.check("manifest-hash", evidence.same_manifest, kept, claims)
    policy = notes.learn("policy-hash", evidence.same_policy, folder, kept, claims)
    policy = notes.learn("policy-terms", terms.as_asked, policy, claims)
    notes.check("plan-hash", plan.same_plan, folder, kept, claims)
    notes.check("lock", lock.as_pinned, folder, read.folder, claims)
    whole = notes.learn("counts", evidence.counts_whole, kept, claims)
    notes.check("uncertainty", uncertainty.confident, whole, claims)
    notes.check("estimate-noise", noise.as_stated, whole, claims, policy, folder)
    notes.check("estimate-spent", noise.as_spent, folder, claims, policy)
    notes.check("minimum", minimum.enough_records, whole, read.blocks, claims)
    agreed = notes.learn("alphabets", evidence.same_alphabets, whole, read.blocks, claims)
    channel = notes.learn("channel", leakage.measure, agreed, read.blocks, claims)
    notes.check("leakage-bound", leakage.bound_held, channel, claims)
    truth, seen = _true(agreed, channel, read)
    notes.check("leakage-true", lambda kept, said: noise.at_the_truth(kept, seen, said), agreed, claims)
    notes.check("leakage-exact", leakage.as_kept, channel, agreed)
    notes.check("leakage-stated", leakage.as_published, channel, claims)
    notes.check("information-stated", leakage.secret_as_published, channel, claims)
    notes.check("utility-stated", leakage.utility_as_published, channel, agreed, read.blocks, claims)
    notes.check("report-shown", shown.as_counted, read.folder, agreed, read.blocks, channel, claims)
    notes.check("utility-bound", optimum.bounded, folder, agreed, read.blocks, channel, claims)
    notes.check("draw-inputs", draws.every_record, truth, read.blocks)
    notes.check("draw-outputs", draws.into_table, agreed, read.blocks, read.counts)
    possible = notes.learn("draw-support", draws.possible, agreed, read.blocks)
    notes.check("draw-fit", draws.fits, possible, read.blocks)
    notes.check("draw-independence", draws.independent, truth, read.blocks, seen and seen.table, read.counts)
    return agreed, policy


def _true(
    agreed: Evidence | None, channel: Channel | None, read: Read
) -> tuple[Evidence | None, Channel | None]:
    """The evidence and the channel at the counts that were drawn for."""
    if agreed is None or channel is None or read.blocks is None:
        return agreed and noise.true_counts(agreed), channel
    return noise.true_counts(agreed), noise.true_channel(agreed, channel, read.blocks, read.claims)


def _unentered(notes: Notebook) -> None:
    """What waits for the ledger."""
    for claim in (claim for claim in PRIVATE if claim.startswith("ledger-")):
        notes.leave(claim, "the release is not entered in the ledger yet")


def _ledger(
    kept: Path, notes: Notebook, read: Read, counts: Evidence | None, releases: Path, policy: bytes | None
) -> None:
    """What the ledger says, once the release is entered there."""
    folder = kept.parent
    entries = notes.learn("ledger-chain", ledger.read_ledger, folder)
    entered = notes.learn("ledger-entry", ledger.entered, entries, read.claims)
    notes.check("ledger-kept", ledger.kept_files, entered, kept)
    notes.check("ledger-drawn", meanings.as_meant, entered, read.blocks, policy)
    notes.check(
        "ledger-composed", composed.as_entered, entered, counts, read.blocks, read.claims, folder, releases
    )
    notes.check("ledger-budget", composed.within_budget, entered, policy)
