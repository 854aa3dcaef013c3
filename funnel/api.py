"""The Python interface: what the command line does, as functions.

Each function imports the rooms that it needs when it is called: whoever checks a policy does not wait for solvers.
Where an argument itself means nothing, such as `threads=0`, it is a ValueError that is raised; where the system refuses
a path (a name too long, a folder that may not be entered), it may be its OSError.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.analyst import SECONDS
from funnel.progress import Report, silent

if TYPE_CHECKING:
    from funnel.analyst.compare import Comparison
    from funnel.analyst.diff import Difference
    from funnel.analyst.estimate import Estimates
    from funnel.analyst.relock import Agreement, Relocked
    from funnel.audit.audit import AuditReport
    from funnel.audit.history import HistoryReport
    from funnel.audit.verify.verify import Verified
    from funnel.ledger.view import LedgerView
    from funnel.plan.also import Sent
    from funnel.plan.explain import Explained
    from funnel.plan.outcome import Checked, Outcome
    from funnel.plan.rotate import Rotation
    from funnel.plan.summary import Summary
    from funnel.policy import Policy
    from funnel.release.prune import Pruned


def load(policy: Path | str) -> Policy:
    """Read a policy file. Raises PolicyError with every problem found."""
    from funnel.policy import load as read

    return read(policy)


def schema() -> dict[str, Any]:
    """The JSON Schema of the policy language."""
    from funnel.policy.schema import json_schema

    return json_schema()


def check(policy: Path | str, *, source: bool = False) -> Checked:
    """Validate a policy; and where the source is at hand, count it, and find what a run would refuse till it solves.

    A source that is not there is an error with `source` alone. A lock that lies beside its policy is found whole or
    not. Raises nothing.
    """
    from funnel.plan.outcome import checked

    return checked(Path(policy), source=source)


def explain(policy: Path | str, *, memory: str = "2GB", threads: int | None = None) -> Explained:
    """Compile a policy and count what a run would; nothing is solved. Raises FunnelError as a run does till then."""
    from funnel.plan.compiled import Limits, planned
    from funnel.plan.explain import Explained
    from funnel.plan.survey import survey

    loaded = load(policy)
    with planned(loaded, Limits(memory, threads)) as (compiled, engine, source):
        return Explained(compiled, survey(loaded, compiled, engine, source))


def run(
    policy: Path | str,
    *,
    memory: str = "2GB",
    threads: int | None = None,
    dry_run: bool = False,
    locked: bool = False,
    progress: Report = silent,
) -> Summary:
    """Make one audited release; `locked`: from the protocol that the policy's lock pins, and nothing is solved.

    Raises FunnelError, and then nothing is published.
    """
    from funnel.lock.pin import lock_of
    from funnel.plan.compiled import Limits
    from funnel.plan.run import execute

    loaded = load(policy)
    pinned = lock_of(loaded) if locked else None
    return execute(loaded, limits=Limits(memory, threads), dry_run=dry_run, lock=pinned, progress=progress)


def attempt(
    policy: Path | str,
    *,
    memory: str = "2GB",
    threads: int | None = None,
    dry_run: bool = False,
    locked: bool = False,
    progress: Report = silent,
) -> Outcome:
    """Make one audited release as `run` does, and tell what came of it; errors are told, not raised."""
    from funnel.plan.outcome import attempted

    return attempted(
        Path(policy),
        lambda: run(
            policy, memory=memory, threads=threads, dry_run=dry_run, locked=locked, progress=progress
        ),
    )


def send_newest(policy: Path | str) -> Sent:
    """Write the newest release of a policy to the database that it names, unless it is there. Raises FunnelError."""
    from funnel.plan.also import send_newest as send

    return send(load(policy))


def make_lock(
    policy: Path | str,
    *,
    room: float | None = None,
    force: bool = False,
    keep: bool = False,
    memory: str = "2GB",
    threads: int | None = None,
    progress: Report = silent,
) -> Relocked:
    """Solve once and pin the protocol in NAME.lock.yaml beside the policy, `room` of epsilon being left to drift.

    Without `room` it is 0.05; over a private estimate 0, whose noisy counts are pinned with the protocol and do not
    move. `keep`: solve nothing, and pin the protocol that is pinned under the policy's epsilon and budget of now.
    Raises FunnelError.
    """
    from funnel.analyst.relock import keep_lock, relock
    from funnel.plan.compiled import Limits

    if room is not None and not 0 <= room < 1:
        raise ValueError(f"`room` is a part of epsilon, such as 0.05, and not {room}")
    if keep:
        return keep_lock(load(policy), limits=Limits(memory, threads), progress=progress)
    return relock(load(policy), limits=Limits(memory, threads), room=room, force=force, progress=progress)


def check_lock(policy: Path | str) -> Agreement:
    """Whether a policy and its lock agree. Raises PolicyError, LockError."""
    from funnel.analyst.relock import agreement

    return agreement(load(policy))


def diff(old: Path | str, new: Path | str, private: Path | str | None = None) -> Difference:
    """What changed between two policies, locks or releases, in terms of privacy. Raises FunnelError.

    Of a release with its private folder (`private`, or that of the policy on the other side) the whole policy is
    compared, without it what release.json tells.
    """
    from funnel.analyst.diff import compare as sides
    from funnel.analyst.diff import read_sides

    return sides(*read_sides(Path(old), Path(new), None if private is None else Path(private)))


def compare(
    policy: Path | str,
    epsilons: Sequence[float] = (),
    *,
    beliefs: Sequence[float] = (),
    time_limit: float = SECONDS,
    memory: str = "2GB",
    threads: int | None = None,
    progress: Report = silent,
) -> Comparison:
    """What every mechanism that fits a policy would keep at each epsilon (nats); nothing is released.

    A private estimate that is kept is taken; where none is, one is entered in the ledger, which spends, and drawn.
    `beliefs` are steps to which beliefs are rounded outward, to see what that costs. `time_limit` is in seconds, for
    one mechanism at one epsilon. Raises FunnelError.
    """
    from funnel.analyst.compare import compare as curves
    from funnel.plan.compiled import Limits

    limits = Limits(memory, threads)
    return curves(
        load(policy), epsilons, beliefs=beliefs, seconds=time_limit, limits=limits, progress=progress
    )


def write_picture(comparison: Comparison, path: Path) -> None:
    """Write a comparison's picture: an HTML page where the name ends in .html, else SVG. Raises ReleaseError."""
    from funnel.files import creating

    text = comparison.page() if path.suffix == ".html" else comparison.svg()
    with creating("picture", path):
        path.write_text(text, encoding="utf-8")


def read_ledger(policy: Path | str) -> LedgerView:
    """What was released so far, what it gives away together, and what is left of the budget. Raises FunnelError."""
    from funnel.ledger.view import ledger_view

    return ledger_view(load(policy))


def audit_release(
    release: Path | str,
    private: Path | str | None = None,
    *,
    public_key: Path | str | None = None,
    table: Path | str | None = None,
) -> AuditReport:
    """Re-check every claim of a release from its files. Raises ReleaseError when there is no release to read.

    `public_key` is the line that `funnel key public` prints, or a file that holds it: a release must be signed by it.
    `table` is the source, which is counted again by the kept policy; that takes the private folder.
    """
    from funnel.audit.audit import audit_release as audited
    from funnel.plan.recount import recounting

    key = None if public_key is None else str(public_key)
    recount = None if table is None else recounting(table)
    folder = None if private is None else Path(private)
    return audited(Path(release), folder, public_key=key, recount=recount)


def audit(
    release: Path | str,
    private: Path | str | None = None,
    *,
    public_key: Path | str | None = None,
    table: Path | str | None = None,
    progress: Report = silent,
) -> AuditReport | HistoryReport:
    """Audit one release, or all in a folder of releases where the private folder is given. Raises ReleaseError."""
    from funnel.audit.history import holds_releases

    if private is not None and table is None and holds_releases(Path(release)):
        return audit_history(release, private, public_key=public_key, progress=progress)
    return audit_release(release, private, public_key=public_key, table=table)


def audit_history(
    releases: Path | str,
    private: Path | str,
    *,
    public_key: Path | str | None = None,
    progress: Report = silent,
) -> HistoryReport:
    """Re-check all releases in a folder, and that the ledger tells of just these. Raises ReleaseError."""
    from funnel.audit.history import audit_history as audited

    key = None if public_key is None else str(public_key)
    return audited(Path(releases), Path(private), progress, key)


def prune(policy: Path | str, keep: int, *, dry_run: bool = False) -> Pruned:
    """Take data and pages of a policy's releases away, but for the newest `keep` (one or more) and the `latest`.

    Raises FunnelError; what it was killed over it ends when it is called again.
    """
    from funnel.release.prune import prune as pruned

    if keep < 1:
        raise ValueError(f"`keep` is one release or more, and not {keep}")
    loaded = load(policy)
    to, private = (loaded.path(folder) for folder in (loaded.release.to, loaded.release.private))
    return pruned(to, private, loaded.name, keep, dry=dry_run)


def verify(release: Path | str, key: Path | str, feed: Path | str | None = None) -> Verified:
    """What the public key of its publisher shows of a release, or of the `latest` in a folder.

    `key` is the line that `funnel key public` prints, or a file that holds it; `feed` a releases.json that was
    kept from before, or is from elsewhere. Raises ReleaseError where there is no release to read, or no such key.
    """
    from funnel.audit.folder import release_folder
    from funnel.audit.publisher import read_public_key
    from funnel.audit.verify.verify import verify as verified

    asked, kept = Path(release), None if feed is None else Path(feed)
    return verified(release_folder(asked), read_public_key(str(key)), asked, kept)


def standalone_audit(path: Path | str) -> Path:
    """Write the audit's kernel as one file that Python runs, and return where it lies. Raises ReleaseError."""
    from funnel.audit.standalone import write_standalone
    from funnel.files import creating

    with creating("file", Path(path)):
        return write_standalone(Path(path))


def rebuild_report(
    release: Path | str, private: Path | str | None = None, to: Path | str | None = None, *, pdf: bool = False
) -> list[Path]:
    """Write report.html and report.json again, with `pdf` report.pdf too; returns their paths. Raises ReleaseError."""
    from funnel.plan.rebuild import rebuild

    folders = (None if one is None else Path(one) for one in (private, to))
    return rebuild(Path(release), *folders, pdf=pdf)


def estimate_counts(release: Path | str, confidence: float = 0.95) -> Estimates:
    """Unbiased counts of X with confidence intervals, from a release's published files. Raises ReleaseError."""
    from funnel.analyst.estimate import estimate

    return estimate(Path(release), confidence)


def starter_policy(
    table: Path | str, folder: Path | str = ".", *, names: Sequence[str] = (), trim: bool = False
) -> str:
    """A commented policy for a table, with paths relative to `folder`; `names` are the columns of a headerless CSV.

    With `trim`, blanks around public texts are left out. Raises SourceError.
    """
    from funnel.analyst.starter import starter

    return starter(Path(table), Path(folder), names=names, trim=trim)


def new_key() -> str:
    """A fresh key as one line of text, from the operating system's randomness."""
    from funnel.release import keys

    return keys.new_key()


def write_key(path: Path | str) -> str:
    """Write a fresh key to a new file that only its owner can read; returns its fingerprint. Raises DrawError."""
    from funnel.release import keys

    return keys.write_key(Path(path)).fingerprint


def new_signing_key() -> str:
    """A fresh private key for signing releases, as one line of text."""
    from funnel.release import sign

    return sign.new_signing_key()


def write_signing_key(path: Path | str) -> str:
    """Write a fresh signing key to a new file for its owner only; returns its fingerprint. Raises DrawError."""
    from funnel.release import sign

    return sign.write_signing_key(Path(path)).fingerprint


def public_key(reference: str) -> str:
    """The public half of a signing key, named by `env:NAME`, `file:PATH` or a path, as one line. Raises DrawError."""
    from funnel.release import sign

    named = reference if reference.startswith(("env:", "file:")) else f"file:{reference}"
    return sign.load_signing_key(named, Path()).public_text


def rotate_key(
    policy: Path | str,
    to: Path | str | None = None,
    *,
    accept: bool = False,
    locked: bool = False,
    memory: str = "2GB",
    threads: int | None = None,
    progress: Report = silent,
) -> Rotation:
    """What a new key costs a policy; then make it in a new file, or accept the one that the policy names now.

    `locked`: with the protocol that the policy's lock pins. Raises FunnelError.
    """
    from funnel.lock.pin import lock_of
    from funnel.plan.compiled import Limits
    from funnel.plan.rotate import rotate

    loaded = load(policy)
    return rotate(
        loaded,
        None if to is None else Path(to),
        accept=accept,
        lock=lock_of(loaded) if locked else None,
        limits=Limits(memory, threads),
        progress=progress,
    )
