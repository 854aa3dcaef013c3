"""The stage that writes a release: every file in its canonical bytes, each hashed by the one that vouches for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from funnel import report
from funnel.cells.record import file_of
from funnel.data.convert import known_file, population_file, protocol_file
from funnel.files import sha256_file, writing
from funnel.format import (
    attestation,
    cells,
    evidence,
    groups,
    manifest,
    people,
    protocol,
    released,
    robust,
    schema,
    solution,
    terms,
)
from funnel.format.groups import GroupsFile
from funnel.format.journal import Line
from funnel.format.manifest import FileEntry
from funnel.format.released import COUNT
from funnel.format.reported import Evidence, Published, written
from funnel.ledger.journal import Journal
from funnel.ledger.people import keep_key
from funnel.plan.distances import distances_file
from funnel.plan.rebuild import report_files
from funnel.plan.records import (
    Drafted,
    counts_file,
    draws_file,
    manifest_file,
    release_entry,
)
from funnel.policy.terms import terms_file
from funnel.progress import Report
from funnel.release.export import Target, released_file
from funnel.release.formulas import check_keys
from funnel.release.publish import Publisher
from funnel.release.solution import solution_file
from funnel.release.written import Each, write_data
from funnel.report.catalogue import catalogue, notes
from funnel.report.catalogue.attested import statement


def write(
    release: Drafted, publisher: Publisher, progress: Report, each: Each
) -> tuple[Line, dict[str, Any]]:
    """Write every file of a release into its two folders; returns its line in the ledger and the full report's content.

    Files of a table that has several are made by `each`.

    Raises ReleaseError.
    """
    run, public, private = release.run, publisher.public, publisher.private
    progress(run.plan.write.title)
    asked = terms_file(run.policy)
    described = manifest_file(release, hashlib.sha256(schema.write(asked)).hexdigest())
    wide = file_of(release.counted.cells) if release.counted.cells else None
    shown = _table(release, described, wide, public, each)
    _write(public, report_files(report.published(shown)))
    _write(public, catalogue(shown, _entries(public)))
    stated = replace(described, files=_entries(public))
    _write(public, {manifest.NAME: schema.write(stated)})
    kept = _evidence(release, asked, private)
    content = report.full(shown, kept)
    _write(private, report_files(content))
    stated_sha256 = sha256_file(public / manifest.NAME)
    bound = evidence.EvidenceFile("funnel-evidence/1", run.release, stated_sha256, _entries(private))
    _write(private, {evidence.NAME: schema.write(bound)})
    entry = release_entry(release.composed, stated, stated_sha256, sha256_file(private / evidence.NAME))
    line = Journal(publisher.private_root).line(entry)
    if run.signer is not None:
        hashes = {name: one.sha256 for name, one in stated.files.items()} | {manifest.NAME: stated_sha256}
        told = statement(shown, hashes, hashlib.sha256(schema.write(line)).hexdigest())
        _write(public, {attestation.NAME: schema.write(run.signer.seal(told))})
    return line, content


def _table(
    release: Drafted, stated: manifest.Manifest, partitioned: cells.CellsFile | None, public: Path, each: Each
) -> Published:
    """The published files that are no report, and the table, an export of them and of keys where rows have names.

    Raises PlanError, SourceError, ReleaseError.
    """
    stage, protocols, drawn = release.run.plan.write, release.protection.protocols, release.drawn
    protocols_shown, wide, locked = protocol_file(protocols), release.counted.cells, stated.locked is not None
    codes, counts = drawn.codes, drawn.counts
    beside = (COUNT,) if stage.counted else stage.keys
    table = released_file(
        protocols, stage.columns, stage.types, codes, counts, beside, wide, locked=locked, form=stage.format
    )
    _write(public, {protocol.NAME: schema.write(protocols_shown), released.NAME: schema.write(table)})
    shown = Published(stated, protocols_shown, table, partitioned)
    target, named = Target(public / stated.data, stage.format, notes=notes(shown)), drawn.rows
    if named is not None and release.run.policy.release.refuses_formulas:
        check_keys(stage.keys, named.formulas)
    if partitioned is not None:
        _write(public, {cells.NAME: schema.write(partitioned)})
    write_data(shown, protocols, wide, target, None if named is None else sorted(named.parts.items()), each)
    return shown


def _evidence(release: Drafted, asked: terms.TermsFile, private: Path) -> Evidence:
    """What shows the claims, written into the private folder. Raises ReleaseError."""
    run, found, pinned = release.run, release.protection, release.protected.pinned
    solved, proof = solution_file(found.solved, found.budgets)
    certificate = found.notion.certificate(found.channel)
    moved = None if pinned is None else pinned.drift
    seen = None if release.joint.finer is None else known_file(release.joint.finer)
    everybody, stage = release.counted.populations, run.plan.everybody
    own = None if stage is None else stage.own
    kept = Evidence(counts_file(release), draws_file(release.drawn), solved, asked, moved, seen,
                    distances_file(release), population_file(own, everybody) if everybody else None)  # fmt: skip
    keep_key(run.policy.private, release.composed.whose.key)
    files = {
        people.NAME: schema.write(release.composed.whose.people),
        solution.PROOF: proof,
        robust.NAME: None if certificate is None else schema.write(certificate),
        "policy.yaml": run.policy.text.encode(),
        groups.NAME: schema.write(GroupsFile("funnel-groups/1", dict(named))) if (named := run.policy.files) else None,
        "plan.json": run.plan.text().encode(),
        "lock.yaml": None if pinned is None else pinned.lock.text().encode(),
    }
    _write(private, written(kept) | {name: content for name, content in files.items() if content is not None})
    return kept


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    with writing(folder):
        for name, content in files.items():
            (folder / name).write_bytes(content)


def _entries(folder: Path) -> dict[str, FileEntry]:
    """What is said of the files written so far. Raises ReleaseError."""
    with writing(folder):
        return {
            path.relative_to(folder).as_posix(): FileEntry(sha256_file(path), path.stat().st_size)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
