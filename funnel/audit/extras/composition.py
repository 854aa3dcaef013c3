"""What this release and all before it in the ledger tell together, worked out again from their protocols.

Privacy with respect to S does not add up release by release (mathematics, section 4), so the channel that counts is the
composed one. Which earlier draws are functions of this release's x follows from what the ledger says of them. The entry
names a way, and the figure has to be what that way yields:
    exact    all draws are functions of x: their joint law (`overlaps`), measured by the kernel as any channel is;
    unchanged  the same, where it is taken for granted that people and values are those of earlier nights (`identity`);
    ceiling  x itself tells at least as much as anything drawn from it (data processing); on average, H(S);
    sum      of independent draws the usual LDP adds up, whatever they read, and it bounds every notion here.
Nobody can see from files that identifiers and values mean the same people and things every night.
"""
from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from funnel.audit.extras.absence import Everybody, Ground, PromiseTerms, entered
from funnel.audit.extras.base import Release
from funnel.audit.extras.digests import by
from funnel.audit.extras.divided import agree_divided
from funnel.audit.extras.overlaps import TooLarge
from funnel.audit.extras.parts import DrawnBlock, archived, once, parts_of, tangled
from funnel.audit.extras.together import Composition, finite, is_figure
from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import NOTIONS
from funnel.audit.kernel.verdict import Broken, Unchecked, agree, counted
from funnel.data.alphabet import folded
from funnel.format import population
from funnel.format.journal import NAME, Promise, ReleaseEntry, Together
from funnel.ledger.whose import hidden_versions

CLAIM = "ledger-composed"
TITLE = (
    "what the entry states of every promise is what the draws that the ledger tells of tell together or, rldp, more"
)
PRIVATE = True
_MORE = ("srlip", "rldp", "ldp-x")
"""Notions that are about more than the counts of the secret and what is released."""


def check(opened: Release) -> str | Unchecked:
    """The figures of this release's entry, and of its manifest, are those of the history. Raises Broken."""
    *before, entry = opened.entries
    archived(opened, entry)
    for how in (one.together.how for one in entry.promises):
        if how in ("exact", "unchanged") and (how == "exact") == bool(entry.identity.assumes):
            raise Broken(NAME, "how it was found is not what is assumed", entry.identity.assumes, how)
    agree(NAME, [("number of releases", {len(before) + 1}, {one.together.releases for one in entry.promises})])
    own = parts_of(entry, opened.protocol)
    earlier = once(part for one in before for part in parts_of(one, archived(opened, one)))
    kept = (opened.folder / population.NAME).exists()
    if kept:
        _known_alike(opened, before)
    entered(opened, Everybody(opened, opened.population, PromiseTerms.of(opened)) if kept else None, own[0].present)
    missed = False
    for one in entry.promises:
        try:
            _agree(opened, one, own, earlier)
        except (TooLarge, OverflowError):
            missed = True
        except Broken:
            _all_there(opened, before)
            raise
    if missed:
        return Unchecked("the releases together have too many values to be composed here")
    told, others = entry.own.together, len(entry.promises) - 1
    figure = "no finite bound known" if told.figure is None else f"{told.figure} nats"
    if told.figure is not None and told.figure != told.measured:
        figure += f" as told before; now {told.measured} nats"
    also = f", and {counted(others, 'other promise')}" if others else ""
    return f"{told.measure} {figure} ({told.how}), over {counted(told.releases, 'release')}{also}"


def _all_there(opened: Release, before: Sequence[ReleaseEntry]) -> None:
    """Of every earlier release a copy of its protocol is left. Raises Broken."""
    if lost := next((one for one in before if archived(opened, one) is None), None):
        what = f"without the protocol of {lost.release} what all tell together is another figure"
        raise Broken(f"protocols/{lost.protocol_sha256}.json", what, "a copy of it", "none is left") from None


def _known_alike(opened: Release, before: Sequence[ReleaseEntry]) -> None:
    """Rows were counted as people by the column that earlier releases know people by. Raises Broken."""
    own, every = folded(opened.terms.entity or ""), {one.policy_sha256: one for one in before}.values()
    if other := next((name for one in every if (name := by(opened.root, one)) and folded(name) != own), None):
        what = "rows are counted as people whom an earlier release knows by another column"
        raise Broken(population.NAME, what, other, opened.terms.entity)


def _agree(opened: Release, one: Promise, own: Sequence[DrawnBlock], earlier: Sequence[DrawnBlock]) -> None:
    """The figures of a promise are those of everybody's history. Raises Broken, TooLarge, OverflowError."""
    stated, named = one.together, NOTIONS.get(one.notion)
    if named is None or stated.measure != named.measure:
        raise Broken(NAME, "promises are of another measure", named and named.measure, stated.measure)
    edited = one is opened.entries[-1].own and _edited(opened.entries)
    if edited or _as_it_is(opened.entries, stated) or unlike_twice(opened.entries):
        every = stated.measured, stated.varying, stated.how
        agree(NAME, [(f"what is told of {one.policy}, of which nothing is proven", (None, None, "sum"), every)])
        return
    whole = _usual([*earlier, *own])
    given = None if stated.varying is None else rational(stated.varying)
    if not is_figure(None, whole, given):
        raise Broken(NAME, "varying is not the usual LDP of the history", whole and float(whole), stated.varying)
    if one.notion != "ldp-x" and len(hidden_versions(one.together.sensitive, opened.entries)) > 1:
        whole, told = _unchanged(own, earlier), None if stated.measured is None else rational(stated.measured)
        if stated.how != "sum" or not is_figure(None, whole, told):
            what = f"what is told of secrets that {one.policy} calls alike is not the usual LDP of all draws"
            raise Broken(NAME, f"{what} ({stated.how})", whole and float(whole), stated.measured)
        return
    asked = PromiseTerms.of(opened) if one is opened.entries[-1].own or _alike(opened, one) else PromiseTerms.by(one)
    if not asked.own and (_unseen(opened, asked) or not _same_table(opened, one)):
        UncountedSecret(opened, one, own, earlier).agrees(stated, _unchanged(own, earlier))
        return
    people = _people(opened, asked)
    if not _absent([*earlier, *own]):
        own_secret = asked.sensitive == opened.manifest.sensitive
        ground = Ground.of(opened, asked) if people is None or own_secret else people.ground()
        Composition(ground, own, earlier).agrees(stated)
        return
    drawn, before = ({pair for part in parts for pair in part.pairs} for parts in (own, earlier))
    unknown = asked.notion == "ldp-x" and (before - drawn or any(part.inside for part in own))
    known = None if people is None or unknown else people.known(own, earlier)
    patterns = None if people is None or known is None else people.patterns(known, earlier)
    if people is None or known is None or patterns is None:
        agree(NAME, [(f"what is told of {one.policy}, where nobody knows who is absent", None, stated.measured)])
        return
    inside = [
        None if one.ground is None else Composition(one.ground, own, one.earlier, here=one.here) for one in patterns
    ]
    agree_divided(people, known, patterns, inside, stated)


def _edited(entries: Sequence[ReleaseEntry]) -> bool:
    """Whether the release's promise was about others who know something, or another set of distributions.

    That of a notion which is about one table of counts is the same whatever else its policy asks for.
    """
    *before, entry = entries
    last = next((early for early in reversed(before) if early.own.name == entry.own.name), None)
    return last is not None and entry.own.notion in _MORE and _asks(last.own) != _asks(entry.own)


def _asks(one: Promise) -> dict[str, object]:
    """What a notion was asked for beside epsilon: a radius that follows from a confidence is none of it."""
    left_out = {"solve"} | ({"radius"} if one.parameters.confidence is not None else set())
    knows = one.parameters.knows
    asked = vars(one.parameters) | {"knows": set(knows) if isinstance(knows, tuple) else knows}
    return {key: value for key, value in asked.items() if key not in left_out}


def _as_it_is(entries: Sequence[ReleaseEntry], stated: Together) -> bool:
    """Whether a key of some release is a column that others draw from, or that is hidden."""
    keys = {folded(name) for one in entries for name in one.identify}
    drawn = {folded(name) for one in entries for block in one.drawn for name in (*block.columns, *block.inside)}
    return bool(keys & (drawn | {folded(name) for name in stated.sensitive}))


def unlike_twice(entries: Sequence[ReleaseEntry]) -> bool:
    """Whether releases are unlike in more than one respect, or of noisy counts and plain ones: of those no proof is."""
    people, named, meant = set[object](), dict[object, set[str]](), dict[object, set[str]]()
    looks = {tuple(sorted({block.reads or () for block in entry.drawn})) for entry in entries}
    for entry in entries:
        one = entry.present
        people.add(None if one is None else (one.predicate, entry.identity.table))
        meant.setdefault(entry.own.together.sensitive, set()).add(entry.identity.secret)
        for block in entry.drawn:
            for place, name in enumerate(map(folded, block.columns)):
                named.setdefault(name, set()).add(block.meaning[place])
                meant.setdefault((name, block.base[place]), set()).add(block.since[place])
    unlike = [
        len(people) > 1 or any(entry.present is not None and entry.present.unseen for entry in entries),
        len({entry.identity.table for entry in entries}) > 1,
        len({folded(entry.entity) for entry in entries if entry.entity is not None}) > 1,
        len(looks) > 1,
        any(len(hashes) > 1 for hashes in named.values()),
        any(len(versions) > 1 for versions in meant.values()),
    ]
    return sum(unlike) > 1 or len({entry.noisy for entry in entries}) > 1


def _alike(opened: Release, one: Promise) -> bool:
    """Whether another promise asks what the release's own does."""
    same = one.together.asked == opened.entries[-1].own.together.asked
    return same and one.notion not in _MORE and opened.counts.private is None


def _unseen(opened: Release, asked: PromiseTerms) -> bool:
    """Whether nobody knows how a secret goes together with what was released, or that is not enough."""
    here = asked.sensitive == opened.manifest.sensitive or _people(opened, asked) is not None
    return asked.notion in _MORE or opened.counts.private is not None or not here


def _same_table(opened: Release, one: Promise) -> bool:
    """Whether a secret of another policy is a column of this release's table, as far as the tables' names show."""
    *before, entry = opened.entries
    last = next((earlier for earlier in reversed(before) if earlier.own.name == one.name), None)
    if one.together.sensitive == opened.manifest.sensitive:
        return True
    return last is not None and last.identity.table == entry.identity.table


def _people(opened: Release, asked: PromiseTerms) -> Everybody | None:
    """Everybody by a secret, where they were counted by it."""
    kept = (opened.folder / population.NAME).exists()
    counted_by = [one.secret.columns for one in opened.population.people] if kept else []
    return Everybody(opened, opened.population, asked) if asked.sensitive in counted_by else None


def _absent(parts: Sequence[DrawnBlock]) -> bool:
    """Whether some release leaves somebody out."""
    return any(one.present is not None for one in parts)


class UncountedSecret:
    """What is told of a secret of which nobody knows how it goes together with what was released."""

    def __init__(self, opened: Release, one: Promise, own: Sequence[DrawnBlock], earlier: Sequence[DrawnBlock]) -> None:
        self.promise, self.own, self.earlier = one, own, earlier
        self.before = figures_before(opened.entries[:-1], one)

    def agrees(self, stated: Together, whole: Fraction | None) -> None:
        """The usual LDP of the whole history, or of what is new and what was told before. Raises Broken, TooLarge."""
        found = [one for one in (whole, self._added()) if one is not None]
        least, given = min(found, default=None), stated.measured
        if stated.how != "sum" or not is_figure(None, least, None if given is None else rational(given)):
            what = f"what is told together of the promise of {self.promise.policy} is not what the releases tell"
            raise Broken(NAME, f"{what} ({stated.how})", least and float(least), given)

    def _added(self) -> Fraction | None:
        """What was told before, and the usual LDP of the draws that are new."""
        last = self.before[-1] if self.before else None
        names = {_name(one) for one in self.earlier}
        fresh = [one for one in self.own if one.protocol is None or _name(one) not in names]
        shared = {one.drawer for one in self.earlier} & {one.drawer for one in fresh}
        knows = self.promise.parameters.knows
        named = set(map(folded, knows)) if isinstance(knows, tuple) else set[str]()
        known = bool(named) and not any(named & one.table_columns for one in self.own)
        if last is None or shared or tangled(fresh) or (self.promise.notion == "srlip" and not known):
            return None
        added = None if _absent([*self.earlier, *self.own]) else finite(Composition.added(fresh))
        return None if added is None else rational(last) + added


def _name(one: DrawnBlock) -> object:
    """Equal for draws that give the same record the same answer."""
    return one.drawer, one.meaning, one.entity, one.protocol


def figures_before(entries: Sequence[ReleaseEntry], one: Promise) -> list[float | None]:
    """What each earlier release said that all together tell, of this promise or else one that is measured alike."""
    found = []
    for entry in entries:
        alike = [other for other in entry.promises if other.together.asked == one.together.asked]
        own = [other for other in alike if other.policy == one.policy]
        same = own or (alike if one.notion not in _MORE else [])
        found += [other.together.figure for other in same[:1]]
    return found


def _usual(parts: Sequence[DrawnBlock]) -> Fraction | None:
    """The usual LDP of a history; None: infinite, or somebody is absent, or it is not known."""
    return _of_all([one.labelled() for one in parts])


def _unchanged(own: Sequence[DrawnBlock], earlier: Sequence[DrawnBlock]) -> Fraction | None:
    """The same of records that keep their values: what was `other` and has a name tonight was drawn for twice."""
    return _of_all([*(one.tonight(own) for one in earlier), *own])


def _of_all(parts: Sequence[DrawnBlock]) -> Fraction | None:
    return None if _absent(parts) or tangled(parts) else finite(Composition.added(parts))
