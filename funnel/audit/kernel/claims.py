"""The claims about files, promises, counts, leakage and the ledger, each by its name; those about draws: `drawing`."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import NOTIONS, ldp, lip
from funnel.audit.kernel.opened import Opened, holds_only
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted, shown
from funnel.format import journal, terms
from funnel.format.attestation import NAME as ATTESTATION
from funnel.format.cells import NAME as CELLS
from funnel.format.counts import NAME as COUNTS
from funnel.format.evidence import NAME as EVIDENCE
from funnel.format.manifest import NAME as MANIFEST
from funnel.format.manifest import Composed
from funnel.format.people import NAME as PEOPLE
from funnel.format.protocol import NAME as PROTOCOL

POLICY, PLAN, SEEN = "policy.yaml", "plan.json", "published"
_ALIKE = ("policy_sha256", "name", "notion", "epsilon", "leakage")
_WAITS = Unchecked("the release is not entered in the ledger yet")


def manifest(opened: Opened) -> str:
    """release.json is whole, of a known version, and its parts fit each other.

    Figures have no more decimals than their records allow, for more would tell counts; a leakage may be epsilon itself.
    Who may know columns may know those inside cells, which are no released labels: so the promise says what is known.
    """
    one = opened.manifest
    notion, named = NOTIONS.get(one.notion), one.parameters.named
    if notion is None:
        raise Broken(MANIFEST, "nobody knows this notion here", ", ".join(NOTIONS), one.notion)
    inside = {"knows"} if CELLS in one.files else set[str]()
    required = {name for name, always in notion.parameters.items() if always or name in inside}
    figures = [rational(figure) / one.step for figure in one.figures - {one.epsilon} if figure is not None]
    agree(MANIFEST, [
        ("parameters of the notion", (required - named, named - notion.parameters.keys()), (set(), set())),
        ("figures of more decimals", [], [float(steps) for steps in figures if steps.denominator > 1]),
        ("measures of leakage", {"lip", "ldp", "mutual_information", notion.measure}, set(one.leakage)),
    ])  # fmt: skip
    columns = ", ".join(name for block in one.public for name in block)
    return f"{one.release}, {counted(one.rows, 'row')}, {shown(columns)}"


def file_list(opened: Opened) -> str:
    """The folder holds release.json, the files it lists, attestation.json if it is signed, and no other file."""
    signed = (ATTESTATION,) if opened.manifest.signed else ()
    holds_only(opened.release, {MANIFEST, *opened.manifest.files, *signed})
    return counted(len(opened.manifest.files), "listed file")


def file_hashes(opened: Opened) -> str:
    """Every listed file, whatever it says, has the size and SHA-256 that release.json states."""
    return opened.unchanged(opened.release, opened.manifest.files)


def protocol(opened: Opened) -> str:
    """protocol.json has distinct labels and whole weights that sum to 2^bits, for the columns of release.json."""
    sizes, bits = opened.manifest.alphabet, sorted({one.bits for one in opened.blocks})
    told = (f"{inputs} to {outputs}" for inputs, outputs in zip(sizes.public, sizes.released, strict=True))
    return f"{', '.join(told)} values, weights of {', '.join(map(str, bits))} bits"


def released(opened: Opened) -> str:
    """released.json holds rows that protocol.json can produce, as many as release.json states."""
    return f"{counted(len(opened.answers), 'distinct row')} for {counted(opened.manifest.rows, 'record')}"


def stated_bound(opened: Opened) -> str:
    """The leakage that release.json states, which leakage-stated compares with the counts, is at most its epsilon."""
    one, measure = opened.manifest, NOTIONS[opened.manifest.notion].measure
    figure = one.leakage[measure]
    if figure is None or Fraction(figure) > Fraction(one.epsilon):
        raise Broken(MANIFEST, f"the stated {measure} leakage is above epsilon", one.epsilon, figure)
    return f"{measure} {figure} <= {one.epsilon} nats"


def evidence(opened: Opened) -> str:
    """The private files are those that evidence.json lists for this release.json, and no other lies beside them."""
    one, stated = opened.evidence, opened.manifest
    agree(EVIDENCE, [
        ("release", stated.release, one.release),
        ("hash of the manifest", opened.entry(opened.release / MANIFEST).sha256, one.manifest_sha256),
        ("policy, terms and plan", [opened.entry(opened.folder / name).sha256 for name in (POLICY, terms.NAME, PLAN)],
         [stated.policy_sha256, stated.terms_sha256, stated.plan_sha256]),
    ])  # fmt: skip
    holds_only(opened.folder, {EVIDENCE, *one.files, *({SEEN} if (opened.folder / SEEN).exists() else ())})
    return opened.unchanged(opened.folder, one.files)


def counts(opened: Opened) -> str:
    """counts.json counts the inputs of protocol.json, for as many records as were released."""
    shape = " x ".join(map(str, opened.joint.shape))
    return f"{counted(opened.records.rows, 'record')}, {counted(len(opened.joint.cells), 'cell')} of {shape}"


def minimum(opened: Opened) -> str | Unchecked:
    """By counts.json every public value, and secret one that is named, has the promised records, or had for a lock.

    A lock's protocol says nothing of tonight's records, but of those it was made from; noisy counts are the lock's.
    """
    joint, least, reads = opened.joint, opened.manifest.estimate.minimum, any(block.reads for block in opened.blocks)
    axes = range(1 - reads, len(joint.shape))
    numbers = [joint.of_axis(axis).tolist() for axis in axes]
    if (lock := opened.manifest.locked) and not reads and opened.counts.private is None:
        if lock.fixed is not None or opened.counts.locked is None:
            return Unchecked("the counts that the protocol was made from are not kept with this release")
        numbers = [[*one] for one in opened.counts.locked]
        agree(COUNTS, [("values under the lock", joint.shape[1:], tuple(map(len, numbers)))])
    for axis, found in zip(axes, map(min, numbers), strict=True):
        if found < least:
            names = ", ".join(joint.alphabets[axis].columns)
            raise Broken(COUNTS, f"a value of {names} has too few records", least, found)
    return f"at least {min(map(min, numbers))} records each, {least} promised"


def known(opened: Opened) -> str | Unchecked:
    """known.json holds the records of counts.json, and tells of every column that is named or stands inside cells."""
    if opened.manifest.parameters.knows is None:
        return Unchecked(NOT_CLAIMED + "the notion does not say what may be known")
    return f"{counted(sum(1 for _ in opened.knowledge.sets()), 'set')} of what may be known together"


def leakage_bound(opened: Opened) -> str:
    """The leakage of protocol.json at counts.json, measured exactly as the notion is defined, is at most epsilon.

    Definitions are in `notions`; of sets of values Theorem 1, of robust notions Lemmas 1 to 3 spare a search.
    """
    one, notion, words = opened.manifest, NOTIONS[opened.manifest.notion], list[str]()
    limits = [(notion.measure, notion.leakage, one.epsilon)]
    if notion.beside and one.parameters.lower is not None:
        limits.append(("falling", notion.beside, one.parameters.lower))
    for what, leakage, limit in limits:
        found = leakage(opened.channel)
        if not found.within(rational(limit)):
            broken = f"the leakage breaks the bound of {one.notion}, {what}"
            raise Broken(PROTOCOL, broken, f"at most {limit}", found.text)
        words.append(f"{what} {found.text} <= {limit} nats")
    return ", ".join(words) + ("; only rises are bounded" if notion.beside and len(words) == 1 else "")


def leakage_stated(opened: Opened) -> str:
    """The lip, ldp and own leakage in release.json are protocol.json’s at counts.json, rounded up or (rldp) more."""
    one, own, words = opened.manifest, NOTIONS[opened.manifest.notion], []
    for measure, leakage in {"lip": lip, "ldp": ldp, own.measure: own.leakage}.items():
        figure, found = one.leakage[measure], leakage(opened.channel)
        if not found.is_stated_as(None if figure is None else rational(figure), one.step):
            raise Broken(MANIFEST, f"leakage.{measure} is not the exact one rounded up", found.text, figure)
        words.append(f"{measure} {'' if found.exact else 'at most '}{'infinite' if figure is None else figure}")
    return f"{', '.join(words)} nats"


def ledger_chain(opened: Opened) -> str | Unchecked:
    """The ledger's chain of hashes is unbroken up to the line that its head names."""
    return _WAITS if opened.staged else counted(len(opened.journal), "line")


def ledger_entry(opened: Opened) -> str | Unchecked:
    """The ledger holds exactly one entry for this release, with its hashes and the figures of release.json."""
    if opened.staged:
        return _WAITS
    one, (*before, own) = opened.manifest, opened.entries
    promise, told, several = own.own, own.own.together, before or own.present
    figure = None if told.figure is None else float(-(-rational(told.figure) // one.step) * one.step)
    composed = Composed(figure, told.stated(one.step), told.releases, own.identity.assumes) if several else None
    agree(journal.NAME, [
        ("hash of the manifest", opened.entry(opened.release / MANIFEST).sha256, own.manifest_sha256),
        ("hash of the evidence", opened.entry(opened.folder / EVIDENCE).sha256, own.evidence_sha256),
        ("hash of the protocol", one.files[PROTOCOL].sha256, own.protocol_sha256),
        ("digest of people", opened.entry(opened.folder / PEOPLE).sha256, own.identity.people_sha256),
        *((key, getattr(one, key), getattr(own, key)) for key in _ALIKE),
        ("draws", (one.draws.kind, one.draws.key_fingerprint), (own.draws, own.key_fingerprint)),
        ("lock", one.locked and one.locked.checksum, own.lock),
        ("measure and secret", (NOTIONS[one.notion].measure, one.sensitive), (told.measure, told.sensitive)),
        ("promise", (one.name, one.notion, one.epsilon, one.parameters),
         (promise.policy, promise.notion, promise.epsilon, promise.parameters)),
        ("composed leakage", one.composed, composed),
        ("number of releases", len(before) + 1, told.releases),
        ("blocks", one.public, tuple(block.columns for block in own.drawn)),
    ])  # fmt: skip
    return f"entry {len(before) + 1} of releases, {counted(len(opened.journal), 'line')} in all"
