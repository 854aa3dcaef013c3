"""Permanent draws repeat: whoever has the values of an earlier night is answered as then, by one key and one protocol.

What releases tell together is measured by that, where the ledger names one key. The key is not here, but counts show
where it cannot be: of those who are drawn for one value twice, as many have one answer both times. Other protocols
under the same key, and people of whom no whole list is kept, are not compared; nor are those of whom some were not
drawn for, as under a lock that leaves values out, unless the whole table is the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from funnel.audit.extras.base import Release
from funnel.audit.extras.digests import digest
from funnel.audit.extras.parts import DrawnBlock, archived, kept_file, parts_of
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, counted
from funnel.format.draws import NAME, DrawsFile
from funnel.format.fields import Label
from funnel.format.journal import ReleaseEntry
from funnel.format.protocol import ProtocolFile, Sets, Weights
from funnel.text import listed as joined
from funnel.text import some

CLAIM = "draws-repeat"
TITLE = (
    "of those drawn for as in an earlier release, by the same key and protocol, as many of each value have each answer"
)
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """No more answers of a value are new than people who have it. Raises Broken."""
    *before, entry = opened.entries
    if entry.draws != "permanent":
        return Unchecked(NOT_CLAIMED + "draws are fresh")
    found = {early.release: _repeats(opened, early) for early in before}
    alike = [one for one in found.values() if one and any(one.values())]
    lost = [name for name, one in found.items() if one is None]
    kept = f"no draws are kept, with the list that names them, of {some(lost, 3)}, by this key and protocol"
    gone = kept if lost else ""
    if not any(found.values()) and not lost:
        return Unchecked(NOT_CLAIMED + "no earlier release drew by this key and protocol")
    if not alike:
        others = some([name for name, one in found.items() if one], 3)
        what = others and f"of {others}, by this key and protocol, it is not known who was drawn for as now"
        return Unchecked("; ".join(filter(None, (what, gone))))
    missed = sorted({name for found in alike for name, compared in found.items() if not compared})
    but = f", but for {joined(missed)}" if missed else ""
    return f"as {counted(len(alike), 'earlier release')} that can be compared{but}{gone and f'; {gone}'}"


def _repeats(opened: Release, early: ReleaseEntry) -> dict[str, bool] | None:
    """Of each block that an earlier release drew alike, whether its people can be compared. Raises Broken.

    None where its draws are not kept.
    """
    try:
        protocol = archived(opened, early)
    except Broken:
        return {}  # a copy that was changed: what is told together cannot be measured, and says so
    now = dict(_parts(opened.entries[-1], opened.protocol))
    alike = [(name, one) for name, one in _parts(early, protocol) if name in now and one[1].protocol]
    if not alike:
        return {}
    raw = kept_file(opened, early, NAME)
    if raw is None:
        return None
    then = parsed(DrawsFile, NAME, raw)
    return {
        joined(one.columns): _same_answers(opened, early, now[name], (then, place)) for name, (place, one) in alike
    }


def _parts(entry: ReleaseEntry, protocol: ProtocolFile | None) -> list[tuple[object, tuple[int, DrawnBlock]]]:
    """The blocks of a release with their places, by what is equal for draws that give the same record one answer."""
    parts = enumerate(parts_of(entry, protocol))
    return [((one.drawer, one.meaning, one.entity, one.protocol), (place, one)) for place, one in parts]


def _same_answers(
    opened: Release, early: ReleaseEntry, own: tuple[int, DrawnBlock], old: tuple[DrawsFile, int]
) -> bool:
    """Whether one block can be compared; no more answers of a value are new than people who have it. Raises Broken."""
    (place, mine), (then, there) = own, old
    now, was = _answers(opened.draws, place), _answers(then, there)
    sets, size = isinstance(mine.protocol, Sets), len(mine.known or ())
    drawn = [sum(told[pair] for pair in told if not sets or pair[1] == size) for told in (now, was)]
    listed = None if _same_rows(opened.entries[-1], early) else _listed(opened, early, mine, drawn)
    if listed is None and not _same_rows(opened.entries[-1], early):
        return False
    answers = defaultdict[int, set[int]](set)
    for code, output in (*now, *was):
        answers[code].add(output)
    for code, outputs in answers.items():
        same = None if listed is None else listed[_values(mine, code)]
        for one, other in ((now, was), (was, now)):  # who came since, and who left
            people = one[code, size] if sets else sum(one[code, output] for output in outputs)
            more = [max(one[code, output] - other[code, output], 0) for output in outputs]
            may = 0 if same is None else people - same
            if (changed := max(more) if sets else sum(more)) > may:
                what = f"{', '.join(mine.columns)}: other answers than in {early.release}, by the same key and protocol"
                raise Broken(NAME, what, f"at most {may} of one value", changed)
    return True


def _answers(file: DrawsFile, place: int) -> Counter[tuple[int, int]]:
    """How often each output was drawn for each input; of sets how many held each value, and how many there were."""
    return Counter({(code, output): number for code, output, number in file.blocks[place]})


def _values(one: DrawnBlock, code: int) -> tuple[Label, ...]:
    """What an input stands for: a value of the secret, where draws look at it, and one of the block."""
    if not isinstance(one.protocol, Weights | Sets):
        return ()
    s, x = divmod(code, len(one.protocol.inputs))
    secret = one.protocol.secret if isinstance(one.protocol, Weights) else None
    return secret.values[s] if secret else (), one.protocol.inputs[x]


def _same_rows(entry: ReleaseEntry, early: ReleaseEntry) -> bool:
    """Whether the same people had the same values in all, and the same of them are in both releases.

    Two locks may leave out as many people, and others.
    """
    locked = entry.present is not None and entry.present.unseen and entry.lock != early.lock
    return not locked and (entry.identity.content, entry.present) == (early.identity.content, early.present)


def _listed(
    opened: Release, early: ReleaseEntry, one: DrawnBlock, drawn: list[int]
) -> Counter[tuple[Label, ...]] | None:
    """How many had the same values both times, where both digests list just those who were drawn for; None else.

    `drawn` says how many these were, of this release and of the earlier one: a list is of all that were counted.
    """
    if one.inside:
        return None
    found = list[dict[int, tuple[Label, ...]]]()
    nights = [(opened.folder, opened.entries[-1]), (opened.root / early.release, early)]
    for (folder, entry), people in zip(nights, drawn, strict=True):
        file = digest(folder, entry)
        if file is None or file.bits or file.entity is None or len(file.sample) != people:
            return None
        names = [*file.secret, *file.public]
        asked = [[names.index(name) for name in columns] for columns in (one.reads or (), one.columns)]
        values = {
            word: tuple(tuple(file.labels[place][codes[place]] for place in places) for places in asked)
            for word, *codes in file.sample
        }
        found.append(values)
    return Counter(values for word, values in found[0].items() if found[1].get(word) == values)
