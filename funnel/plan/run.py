"""One run, from the first stage to the last; what is released is whole and audited, or nobody can see it."""

from __future__ import annotations

from funnel.draw.keys import Key
from funnel.errors import AuditFailure
from funnel.ledger.budget import check_promises
from funnel.lock.lock import Lock
from funnel.plan.ahead import ahead
from funnel.plan.also import send
from funnel.plan.compiled import USUAL, Limits
from funnel.plan.count import beside, count, fit
from funnel.plan.digest import take
from funnel.plan.draw import draw, names_since
from funnel.plan.estimate import LOOK, RELEASE, Taking
from funnel.plan.prepare import opened, prepare
from funnel.plan.protect import look_back, protect, with_everybody
from funnel.plan.reading import read_drawing, read_once
from funnel.plan.records import Drafted
from funnel.plan.summary import Summary
from funnel.policy import Policy
from funnel.progress import Report, silent
from funnel.release.publish import Publisher
from funnel.release.sign import SigningKey
from funnel.release.written import Each


def execute(
    policy: Policy,
    *,
    limits: Limits = USUAL,
    dry_run: bool = False,
    lock: Lock | None = None,
    key: Key | None = None,
    taking: Taking | None = None,
    judged: bool = True,
    progress: Report = silent,
) -> Summary:
    """Make one audited release of a policy; with `dry_run`, stop before any record is drawn or anything is released.

    With a lock nothing is solved: its protocol is measured at the current counts, or at the noisy ones that it pins,
    and drawn from where it keeps the bound. `key`: instead of the policy's own, whatever the last release was drawn
    with. `taking`: which private estimate will do; without, a release asks for one that stands, and a dry run for any.
    Where it is not to be `judged`, a dry run tells also of what policies of the folder would refuse.
    Raises FunnelError, and then nothing is visible in the published folder; unless the message says so, the disk having
    failed after the release was shown.
    """
    run = prepare(policy, limits, lock, key, taking or (LOOK if dry_run else RELEASE), dry=dry_run)
    plan = run.plan
    ahead(solving=lock is None)
    with opened(run) as (engine, publisher):
        read = read_once(run, engine, publisher, progress)
        if read is None:
            later = plan.draw.whose and not dry_run
            counted = count(policy, plan, engine, progress, lock=lock, taking=run.taking, people=not later)
        else:
            counted = fit(beside(read.counted(policy), plan, engine, progress), plan)
        protected = protect(plan.protect, counted, lock, progress)
        counted = with_everybody(run, counted, protected)
        read = read or read_drawing(run, engine, publisher, counted, protected, progress)
        whose = take(run, engine, progress, read)
        composed = look_back(run, counted, protected.protection, whose, progress)
        if judged:
            check_promises(policy, composed, run.release)
        if publisher is None:
            return Summary(run, counted, protected, composed)
        drawn = (
            draw(plan.draw, engine, run.source, run.key, counted, protected, publisher.scratch, progress)
            if read is None
            else read.drawn(run, protected)
        )
        protected = names_since(protected, drawn, len(plan.write.keys), publisher.private_root)
        from funnel.plan.write import write  # as `ahead` has it by now

        entry, told = write(Drafted(run, counted, protected, composed, drawn), publisher, progress, engine.each)
        improbable = audit(publisher, run.signer, progress, engine.each)
        progress(plan.publish.title)
        target = publisher.publish(entry)
        also = None
        if (database := policy.release.also) is not None:
            progress("database")
            also = send(database, target.resolve())
    # What follows from the records’ own counts is not printed where only noisy ones may be told.
    if counted.estimated is not None:
        return Summary(run, counted, protected, composed, target.resolve(), tuple(publisher.told), also=also)
    noted = (*publisher.told, *improbable)
    return Summary(run, counted, protected, composed, target.resolve(), noted, told["evidence"], also)


def audit(publisher: Publisher, signer: SigningKey | None, progress: Report, each: Each = map) -> list[str]:
    """The auditor's own word on the staged files, before anyone can see them. Raises AuditFailure.

    Files of a table that has several are looked at by `each`.

    What only chance speaks against is released, and returned in words: a law whose rarest outcomes are refused is
    another law than the one stated.
    """
    from funnel.audit.audit import audit_release
    from funnel.audit.kernel.verdict import CHANCE

    progress("audit")
    key = None if signer is None else signer.public_text
    found = audit_release(publisher.public, publisher.private, staged=True, public_key=key, each=each).of("failed")
    for one in found:
        if not one.improbable:
            raise AuditFailure(f"it is not so that {one.title}", bound=one.title, achieved=one.detail, where=one.claim)
    return [f"released, though it hardly ever happens that it is not so: {one.title} [{one.claim}]; {CHANCE}"
            for one in found]  # fmt: skip
