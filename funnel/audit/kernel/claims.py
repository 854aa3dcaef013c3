"""The claims about files, promises, counts, leakage and the ledger; those about draws and noise stand apart.

The first line of each function is what is claimed; what it rests on is in the modules that it asks.
"""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.files import holds_only
from funnel.audit.kernel.notions import NOTIONS, ldp, lip
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted, shown
from funnel.format import cells, counts, evidence, journal, manifest, people, protocol, terms

POLICY, PLAN, SEEN = "policy.yaml", "plan.json", "published"
_ALIKE = ("policy_sha256", "name", "notion", "epsilon", "leakage")
_WAITS = Unchecked("the release is not entered in the ledger yet")


def manifest_whole(opened: Opened) -> str:
    """release.json is whole, of a known version, and its parts fit each other.

    Figures have four decimals, for more would tell counts; a leakage may be epsilon itself.
    """
    one = opened.manifest
    notion, named = NOTIONS.get(one.notion), one.parameters.named
    if notion is None:
        raise Broken(manifest.NAME, "nobody knows this notion here", ", ".join(NOTIONS), one.notion)
    # Who may know columns may know those inside cells, which are no released labels.
    required = notion.required | ({"knows"} & notion.parameters if cells.NAME in one.files else set())
    agree(manifest.NAME, [
        ("parameters of the notion", (required - named, named - notion.parameters), (set(), set())),
        ("figures of more decimals", [], [figure for figure in one.figures - {None, one.epsilon}
                                          if (rational(figure or 0) / one.step).denominator > 1]),
        ("measures of leakage", {"lip", "ldp", "mutual_information", notion.measure}, set(one.leakage)),
    ])  # fmt: skip
    columns = ", ".join(name for block in one.public for name in block)
    return f"{one.release}, {counted(one.rows, 'row')}, {shown(columns)}"


def listed(opened: Opened) -> str:
    """The folder holds release.json, the files it lists, release.sig if it is signed, and no other file."""
    signature = (manifest.SIGNATURE,) if opened.manifest.signed else ()
    holds_only(opened.release, {manifest.NAME, *opened.manifest.files, *signature})
    return counted(len(opened.manifest.files), "listed file")


def hashed(opened: Opened) -> str:
    """Every listed file, whatever it says, has the size and SHA-256 that release.json states."""
    return opened.unchanged(opened.release, opened.manifest.files)


def protocols(opened: Opened) -> str:
    """protocol.json has distinct labels and whole weights that sum to 2^bits, for the columns of release.json."""
    bits, sizes = {one.bits for one in opened.blocks}, opened.manifest.alphabet
    told = (f"{inputs} to {outputs}" for inputs, outputs in zip(sizes.public, sizes.released, strict=True))
    return f"{', '.join(told)} values, weights of {', '.join(map(str, sorted(bits)))} bits"


def answered(opened: Opened) -> str:
    """released.json holds rows that protocol.json can produce, as many as release.json states."""
    return f"{counted(len(opened.answers), 'distinct row')} for {counted(opened.manifest.rows, 'record')}"


def promised(opened: Opened) -> str:
    """The leakage that release.json states, which leakage-stated compares with the counts, is at most its epsilon."""
    one = opened.manifest
    measure = NOTIONS[one.notion].measure
    figure = one.leakage[measure]
    if figure is None or Fraction(figure) > Fraction(one.epsilon):
        raise Broken(manifest.NAME, f"the stated {measure} leakage is above epsilon", one.epsilon, figure)
    return f"{measure} {figure} <= {one.epsilon} nats"


def belonging(opened: Opened) -> str:
    """The private files are those that evidence.json lists for this release.json, and no other lies beside them."""
    one, stated = opened.evidence, opened.manifest
    own = opened.entry(opened.release / manifest.NAME).sha256
    kept = [opened.entry(opened.folder / name).sha256 for name in (POLICY, terms.NAME, PLAN)]
    agree(evidence.NAME, [
        ("release", stated.release, one.release),
        ("hash of the manifest", own, one.manifest_sha256),
        ("policy, terms and plan", kept, [stated.policy_sha256, stated.terms_sha256, stated.plan_sha256]),
    ])  # fmt: skip
    seen = {SEEN} if (opened.folder / SEEN).exists() else set()
    holds_only(opened.folder, {evidence.NAME, *one.files, *seen})
    return opened.unchanged(opened.folder, one.files)


def counts_fit(opened: Opened) -> str:
    """counts.json counts the inputs of protocol.json, for as many records as were released."""
    shape = " x ".join(map(str, opened.joint.shape))
    return f"{counted(opened.records.rows, 'record')}, {counted(len(opened.joint.cells), 'cell')} of {shape}"


def knowing(opened: Opened) -> str | Unchecked:
    """known.json holds the records of counts.json, and tells of every column that is named or stands inside cells."""
    if opened.manifest.parameters.knows is None:
        return Unchecked(NOT_CLAIMED + "the notion does not say what may be known")
    return f"{counted(sum(1 for _ in opened.knowledge.sets()), 'set')} of what may be known together"


def enough(opened: Opened) -> str | Unchecked:
    """In counts.json every public value has the promised number of records, and each secret value that is named.

    A lock's protocol says nothing of tonight's records, but of those it was made from; noisy counts are the lock's.
    """
    joint, minimum = opened.joint, opened.manifest.estimate.minimum
    reads = any(block.reads for block in opened.blocks)
    numbers = {axis: joint.of_axis(axis).tolist() for axis in range(1 - reads, len(joint.shape))}
    if opened.manifest.locked and not reads and opened.counts.private is None:
        if opened.counts.locked is None:
            return Unchecked("the counts that the lock was made from are not kept with this release")
        numbers = {axis: list(one) for axis, one in enumerate(opened.counts.locked, start=1)}
        agree(counts.NAME, [("values under the lock", joint.shape[1:], tuple(map(len, numbers.values())))])
    for axis, found in numbers.items():
        if min(found) < minimum:
            names = ", ".join(joint.alphabets[axis].columns)
            raise Broken(counts.NAME, f"a value of {names} has too few records", minimum, min(found))
    return f"at least {min(map(min, numbers.values()))} records each, {minimum} promised"


def bounded(opened: Opened) -> str:
    """The leakage of protocol.json at counts.json, measured exactly as the notion is defined, is at most epsilon."""
    one, notion, words = opened.manifest, NOTIONS[opened.manifest.notion], list[str]()
    limits = [(notion.measure, notion.leakage, one.epsilon)]
    if notion.beside and one.parameters.lower is not None:
        limits.append(("falling", notion.beside, one.parameters.lower))
    for what, leakage, limit in limits:
        found = leakage(opened.channel)
        if not found.within(rational(limit)):
            broken = f"the leakage breaks the bound of {one.notion}, {what}"
            raise Broken(protocol.NAME, broken, f"at most {limit}", found.text)
        words.append(f"{what} {found.text} <= {limit:g} nats")
    return ", ".join(words) + ("; only rises are bounded" if notion.beside and len(words) == 1 else "")


def stated(opened: Opened) -> str:
    """The lip, ldp and own leakage in release.json are those of protocol.json at counts.json, rounded up."""
    one, words = opened.manifest, []
    own = NOTIONS[one.notion]
    for measure, leakage in {"lip": lip, "ldp": ldp, own.measure: own.leakage}.items():
        figure, found = one.leakage[measure], leakage(opened.channel)
        if not found.is_stated_as(None if figure is None else rational(figure), one.step):
            raise Broken(manifest.NAME, f"leakage.{measure} is not the exact one rounded up", found.text, figure)
        words.append(f"{measure} {'infinite' if figure is None else figure}")
    return f"{', '.join(words)} nats"


def unbroken(opened: Opened) -> str | Unchecked:
    """The ledger's chain of hashes is unbroken up to the line that its head names."""
    return _WAITS if opened.staged else counted(len(opened.journal), "line")


def entered(opened: Opened) -> str | Unchecked:
    """The ledger holds exactly one entry for this release, with its hashes and the figures of release.json."""
    if opened.staged:
        return _WAITS
    one, (*before, own) = opened.manifest, opened.entries
    if not own.promises:
        raise Broken(journal.NAME, "the entry promises nothing", "the policy's promise", None)
    promise = own.promises[0]
    told = promise.together
    agree(journal.NAME, [
        ("hash of the manifest", opened.entry(opened.release / manifest.NAME).sha256, own.manifest_sha256),
        ("hash of the evidence", opened.entry(opened.folder / evidence.NAME).sha256, own.evidence_sha256),
        ("hash of the protocol", one.files[protocol.NAME].sha256, own.protocol_sha256),
        *((key, getattr(one, key), getattr(own, key)) for key in _ALIKE),
        ("draws", (one.draws.kind, one.draws.key_fingerprint), (own.draws, own.key_fingerprint)),
        ("lock", one.locked and one.locked.checksum, own.lock),
        ("measure and secret", (NOTIONS[one.notion].measure, one.sensitive), (told.measure, told.sensitive)),
        ("promise", (one.name, one.notion, one.epsilon, one.parameters),
         (promise.policy, promise.notion, promise.epsilon, promise.parameters)),
        ("composed leakage", one.composed, _coarse(own, one.step) if before or own.present else None),
        ("digest of people", opened.entry(opened.folder / people.NAME).sha256, own.identity.people_sha256),
        ("number of releases", len(before) + 1, told.releases),
        ("blocks", one.public, tuple(block.columns for block in own.drawn)),
    ])  # fmt: skip
    return f"entry {len(before) + 1} of releases, {counted(len(opened.journal), 'line')} in all"


def _coarse(own: journal.ReleaseEntry, step: Fraction) -> manifest.Composed:
    """What a manifest says of the ledger's figure: rounded up to its own step."""
    told = own.promises[0].together
    figure = None if told.figure is None else float(-(-rational(told.figure) // step) * step)
    return manifest.Composed(figure, told.how, told.releases, own.identity.assumes)
