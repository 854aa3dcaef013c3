"""What this release and all before it in the ledger tell together, worked out again from their protocols.

Privacy with respect to S does not add up release by release (mathematics, section 4), so the channel that counts is the
composed one. Which earlier draws are functions of this release's x follows from what the ledger says of them. The entry
names a way, and the figure has to be what that way yields:
    exact    all draws are functions of x: their joint law (`overlaps`), measured by the kernel as any channel is;
    ceiling  x itself tells at least as much as anything drawn from it (data processing); on average, H(S);
    sum      of independent draws the usual LDP adds up, whatever they read, and it bounds every notion here.
Nobody can see from files that identifiers and values mean the same people and things every night.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.overlaps import Drawer, Law, TooLarge, group_law, group_spread
from funnel.audit.kernel.channel import Block, Channel, Coins
from funnel.audit.kernel.exact import exp_below, rational
from funnel.audit.kernel.files import content, sha256
from funnel.audit.kernel.information import information_above
from funnel.audit.kernel.notions import NOTIONS, STEP, Leakage
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.format.canonical import FormatError
from funnel.format.fields import Label
from funnel.format.journal import NAME, ReleaseEntry, Together
from funnel.format.protocol import NAME as PROTOCOL
from funnel.format.protocol import ProtocolFile, Sets, Weights
from funnel.format.schema import read
from funnel.measure.robust_certificate import robust_certificate

CLAIM = "ledger-composed"
TITLE = "the composed leakage stated is that of this release and all before it in the ledger"
PRIVATE = True
_NEAR = Fraction(1, 10**8)
"""Nats by which sums of logarithms that were rounded one by one may be off."""
Protocol = Weights | Sets | Drawer


def check(opened: Release) -> str | Unchecked:
    """The figures of this release's entry, and of its manifest, are those of the history. Raises Broken."""
    *before, entry = opened.entries
    stated = entry.composed
    if stated.measure != (measure := NOTIONS[opened.manifest.notion].measure):
        raise Broken(NAME, "composed is of another measure", measure, stated.measure)
    _archived(opened, entry)
    own = parts_of(entry, opened.protocol)
    earlier = _once(part for one in before for part in parts_of(one, _archived(opened, one)))
    if (groups := len({one.source for one in (*earlier, *own)})) != stated.groups:
        raise Broken(NAME, "composed.groups is wrong", groups, stated.groups)
    try:
        found = Composition(opened, own, earlier)
        found.agrees(stated)
    except TooLarge:
        return Unchecked("the releases together have too many values to be composed here")
    told = "no finite bound" if stated.measured is None else f"{stated.measured} nats"
    return f"{stated.measure} {told} ({stated.how}), over {stated.releases} releases"


@dataclass(frozen=True, eq=False)
class Part:
    """One block of one release, as the ledger tells of it; `protocol` is None where no copy of it is left.

    `source` is where its random numbers come from: the key's fingerprint, or the release where draws are fresh.
    """

    columns: tuple[str, ...]
    meaning: tuple[str, ...]
    base: tuple[str, ...]
    reads: tuple[str, ...] | None
    source: str
    entity: str | None
    protocol: Protocol | None
    name: object

    @property
    def drawer(self) -> object:
        """Parts that are alike here share their numbers, if their values mean the same."""
        return self.source, self.columns, self.reads

    @property
    def known(self) -> frozenset[Label] | None:
        """The values of x that were drawn for; None where nobody knows."""
        if self.protocol is None or isinstance(self.protocol, Drawer):
            return None if self.protocol is None else frozenset(x for _, x in self.protocol.columns)
        return frozenset(self.protocol.inputs)

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Its columns with their meanings."""
        return set(zip(self.columns, self.meaning, strict=True))

    def tonight(self, own: Sequence[Part]) -> Part:
        """The same in terms of this release, where each of its values says what was drawn for.

        The two differ in which values had a name. Where this release names all that was named then, a value without a
        name then was drawn for as `other`.
        """
        for mine in own:
            alike = (self.columns, self.base, self.reads) == (mine.columns, mine.base, None)
            single = len(self.columns) == 1 and self.meaning != mine.meaning
            if alike and single and isinstance(self.protocol, Weights) and isinstance(mine.protocol, Weights):
                if mine.meaning != mine.base and not set(self.protocol.inputs) <= set(mine.protocol.inputs):
                    continue
                drawer = Drawer.of(self.protocol, pools=self.meaning != self.base)
                return replace(self, protocol=drawer, meaning=mine.meaning)
        return self

    def labelled(self) -> Part:
        """The same with the values named put aside: answers for one label share their number whatever was named."""
        return replace(self, meaning=self.base) if isinstance(self.protocol, Weights) else self


def parts_of(entry: ReleaseEntry, protocol: ProtocolFile | None) -> list[Part]:
    """What an entry says was drawn, with its protocol. Raises Broken where the two do not fit."""
    blocks = (None,) * len(entry.drawn) if protocol is None else protocol.blocks
    told = [(one.columns, one.reads, len(one.meaning), len(one.base)) for one in entry.drawn]
    drawn = [(one.columns, _reads(one), len(one.columns), len(one.columns)) for one in blocks if one is not None]
    source = entry.key_fingerprint if entry.draws == "permanent" else entry.release
    if source is None or (entry.draws == "permanent") != (entry.entity is not None) or (drawn and told != drawn):
        raise Broken(NAME, "drawn is not what the protocol draws, or of nobody", drawn, told)
    return [
        Part(one.columns, one.meaning, one.base, one.reads, source, entry.entity, block, (entry.protocol_sha256, place))
        for place, (one, block) in enumerate(zip(entry.drawn, blocks, strict=True))
    ]


def _reads(block: Weights | Sets) -> tuple[str, ...] | None:
    return block.secret.columns if isinstance(block, Weights) and block.secret else None


def _once(parts: Iterator[Part]) -> list[Part]:
    """Permanent draws that only repeat what was said count once."""
    return list({(one.name, one.columns, one.meaning, one.source, one.entity): one for one in parts}.values())


def _archived(opened: Release, entry: ReleaseEntry) -> ProtocolFile | None:
    """An earlier release's protocol, from the archive or the release itself; None where no copy is left.

    Raises Broken where the archive's was changed.
    """
    name = f"{entry.protocol_sha256}.json"
    archived, published = opened.root / "protocols" / name, opened.release.parent / entry.release / PROTOCOL
    for path in (archived, published):
        if path.is_file():
            raw = content(path)
            if sha256(raw) == entry.protocol_sha256:
                try:
                    return read(ProtocolFile, path.name, raw)
                except FormatError as error:
                    raise Broken(name, "the archived protocol is none", error.expected, error.found) from None
            if path == archived:
                raise Broken(f"protocols/{name}", "the archived protocol was changed", name, sha256(raw))
    return None


class Composition:
    """The draws of a release and of those before it, sorted by what this release's x says of them."""

    def __init__(self, opened: Release, own: Sequence[Part], earlier: Sequence[Part]) -> None:
        self.opened, self.own = opened, own
        self.labelled = [one.labelled() for one in (*earlier, *own)]
        earlier = [one.tonight(own) for one in earlier]
        self.every = [*earlier, *own]
        self.same = [[one for one in self.every if self._same(one, mine)] for mine in own]
        rest = [one for one in earlier if not any(self._same(one, mine) for mine in own)]
        here = set[tuple[str, str]]().union(*(one.pairs for one in own))
        self.within = [one for one in rest if one.reads is None and one.pairs <= here]
        self.beyond = [one for one in rest if one not in self.within]
        self.tangled = tangled(self.every)
        self.reading = any(one.reads for group in self.same for one in group)

    def _same(self, one: Part, mine: Part) -> bool:
        """Whether this release's x, and s, are what was drawn from."""
        alike = (one.columns, one.meaning) == (mine.columns, mine.meaning) and one.protocol is not None
        return alike and one.reads in (None, self.opened.manifest.sensitive)

    def agrees(self, stated: Together) -> None:
        """The figures are those of the way that is stated. Raises Broken, TooLarge."""
        figure = None if stated.measured is None else rational(stated.measured)
        if not any(_is(leakage, more, figure) for leakage, more in self._bounds(stated.how)):
            what = f"composed.measured is not what the releases tell together ({stated.how})"
            told = sorted({_text(leakage, more) for leakage, more in self._bounds(stated.how)})
            raise Broken(NAME, what, " or ".join(told) or "another way", stated.measured)
        varying = None if tangled(self.labelled) else _finite(self._added(self.labelled))
        given = None if stated.varying is None else rational(stated.varying)
        if given is not None and not _is(None, varying, given):
            raise Broken(NAME, "composed.varying is not the usual LDP of the history", varying, stated.varying)

    def _bounds(self, how: str) -> Iterator[tuple[Leakage | None, Fraction | None]]:
        """What a way yields: a leakage, and what is added to it in nats (None: infinite)."""
        if how == "exact" and not (self.within or self.beyond or self.tangled):
            yield self._measured, Fraction(0)
        elif how == "ceiling":
            if self.opened.manifest.notion == "mutual-information":
                counts = self.opened.table
                found = information_above(np.diag(counts.reshape(len(counts), -1).sum(axis=1)))
                yield Leakage(f"{float(found):.6f}", lambda bound: found <= bound), Fraction(0)
            if not self.beyond:
                yield (None, None) if self.reading else (self._of_x(), Fraction(0))
        elif how == "sum":
            yield from self._sums()

    def _sums(self) -> Iterator[tuple[Leakage | None, Fraction | None]]:
        """The usual LDP of everything, or of what is beyond x beside a bound of the rest; the last resort is none."""
        more, found = self._sum(self.beyond), False
        if more is not None:
            asked, within = self._asked(), self._sum(self.within)
            if asked is not None and within is not None:
                found = True
                yield None, asked + within + more
            if self.beyond and not self.reading:
                found = True
                yield self._of_x(), more
            if self.beyond and not self.within and not self.tangled:
                found = True
                yield self._measured, more
        if not found or more is None:
            yield None, None

    def _sum(self, parts: Sequence[Part]) -> Fraction | None:
        """The usual LDP between all values ever drawn for; None: infinite."""
        return (None if parts else Fraction(0)) if self.tangled else _finite(self._added(parts))

    def _asked(self) -> Fraction | None:
        """The usual LDP between the values that occur now; a release that does not know one tells it apart."""
        total = 0.0
        for alphabet, parts in zip(self.opened.counts.blocks, self.same, strict=True):
            values = set(alphabet.values)
            known = all(_pools(one) or (one.known is not None and values <= one.known) for one in parts)
            if self.tangled or (not known and self.opened.manifest.notion != "ldp-x"):
                return None
            total += sum(group_spread(group, alphabet.values) for group in _groups(parts))
        return _finite(total)

    @staticmethod
    def _added(parts: Sequence[Part]) -> float:
        """Σ of what the usual LDP lets each group tell, in nats."""
        if any(one.protocol is None for one in parts):
            return math.inf
        return sum(map(group_spread, _groups(parts)))

    def _channel(self, blocks: Sequence[Block | Coins]) -> Leakage:
        """The leakage of a channel at this release's counts, by the manifest's notion."""
        channel = Channel(self.opened.table, tuple(blocks), self.opened.manifest.parameters)
        if self.opened.manifest.notion != "rldp":
            return NOTIONS[self.opened.manifest.notion].leakage(channel)
        return _certified(replace(channel, possible=self.opened.joint.possible()))

    def _of_x(self) -> Leakage:
        """X released as it is."""
        sizes = [(one.columns, one.values) for one in self.opened.counts.blocks]
        return self._channel(
            [Block(columns, values, 0, np.eye(len(values), dtype=np.int64)[:, None, :]) for columns, values in sizes]
        )

    @cached_property
    def _measured(self) -> Leakage:
        """The composed channel: one block for each, whose outputs are what all releases say of it."""
        found: list[Block | Coins] = []
        secret = self.opened.counts.secret.values
        for alphabet, parts, mine in zip(self.opened.counts.blocks, self.same, self.opened.blocks, strict=True):
            groups = _groups(parts)
            if len(groups) == 1 and len(groups[0]) == 1:
                found.append(mine)
                continue
            law = reduce(Law.beside, (group_law(group, secret, alphabet.values) for group in groups))
            rows = np.array([[part * times for part in row] for row, times in law.rows.items()], object)
            weights = rows.reshape(len(rows), len(secret), len(alphabet.values))
            reads = any(one.reads for one in parts)
            weights = (weights if reads else weights[:, :1]).astype(np.int64 if law.bits <= 62 else object)
            found.append(Block(alphabet.columns, alphabet.values, law.bits, weights))
        return self._channel(found)


def _certified(channel: Channel) -> Leakage:
    """Robust leakage of a channel of which no file holds a certificate: one is made, and the kernel checks it."""
    (block,), asked = channel.blocks, channel.parameters
    possible = np.asarray(channel.possible, bool)
    radius, order = rational(asked.radius or 0), rational(asked.order or 0)

    def within(bound: Fraction) -> bool:
        made = robust_certificate(channel.counts, block.weights, possible, radius, order, exp_below(bound))
        return NOTIONS["rldp"].leakage(replace(channel, certificate=made)).within(bound)

    return Leakage("as certified", lambda bound: within(bound + _NEAR), exact=False)


def _groups(parts: Sequence[Part]) -> list[list[Protocol]]:
    """Protocols that share their numbers, each once."""
    found: dict[object, dict[object, Protocol]] = {}
    for one in parts:
        if one.protocol is not None:
            group = found.setdefault((one.drawer, isinstance(one.protocol, Sets), one.meaning, one.entity), {})
            group.setdefault(_content(one.protocol), one.protocol)
    return [list(group.values()) for group in found.values()]


def _content(protocol: Protocol) -> object:
    """Equal for protocols that draw alike."""
    return protocol.key if isinstance(protocol, Drawer) else protocol


def _pools(part: Part) -> bool:
    return isinstance(part.protocol, Drawer) and part.protocol.pools


def tangled(parts: Sequence[Part]) -> bool:
    """Whether one number may have served one text in two meanings: then nothing is known of how these go together."""
    meanings: dict[object, dict[object, list[frozenset[Label] | None]]] = {}
    for one in parts:
        meanings.setdefault(one.drawer, {}).setdefault((one.meaning, one.entity), []).append(one.known)
    for used in meanings.values():
        for some, others in combinations(used.values(), 2):
            if any(a is None or b is None or a & b for a in some for b in others):
                return True
    return False


def _finite(nats: float) -> Fraction | None:
    return Fraction(nats) if math.isfinite(nats) else None


def _is(leakage: Leakage | None, more: Fraction | None, figure: Fraction | None) -> bool:
    """Whether a figure is the leakage and so many nats more, rounded up; None: infinite."""
    if more is None or figure is None:
        infinite = more is None or (leakage is not None and leakage.is_stated_as(None))
        return figure is None and infinite
    rest = figure - more
    if leakage is None:
        return -_NEAR <= rest <= STEP + _NEAR
    if not more:
        return leakage.is_stated_as(figure)
    return leakage.is_stated_as(rest) or leakage.is_stated_as(rest + _NEAR) or leakage.is_stated_as(rest - _NEAR)


def _text(leakage: Leakage | None, more: Fraction | None) -> str:
    """For a reader."""
    if more is None:
        return "infinite"
    return f"{float(more):.6f}" if leakage is None else f"{leakage.text} + {float(more):.6f}"
