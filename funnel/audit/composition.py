"""What releases leak together, measured again: exact, by the ceiling of X itself, or by a sum.

Which earlier draws are a function of this release's x, which uniforms they share and what else bounds them follows
from what the ledger says of them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from funnel.audit.evidence import Evidence
from funnel.audit.fields import Label
from funnel.audit.findings import broken
from funnel.audit.leakage import measure
from funnel.audit.logarithms import information_above, log
from funnel.audit.manifest import Manifest
from funnel.audit.overlaps import AnyBlock, Law, Pool, as_block, as_it_is, group_law, group_spread, inputs_of
from funnel.audit.own import Own
from funnel.audit.protocols import Block
from funnel.audit.unary import UnaryBlock
from funnel.errors import AuditFailure


@dataclass(frozen=True, eq=False)
class Part:
    """One block of one release, as the ledger tells of it; `block` is None where no copy of it is left.

    `base` is the meaning without which values were named and not put under `other`; None in old ledgers.
    """

    columns: tuple[str, ...]
    meaning: tuple[str, ...]
    reads: tuple[str, ...] | None
    source: str
    entity: str | None
    block: AnyBlock | None
    sha256: str
    base: tuple[str, ...] | None = None

    def tonight(self, own: Sequence[Part]) -> Part:
        """The same, told in the values of this release, where each of them says what was drawn for."""
        for mine in own:
            alike = (self.columns, self.base, self.reads) == (mine.columns, mine.base, None)
            if not alike or self.base is None or self.meaning == mine.meaning or len(self.columns) != 1:
                continue
            block, other = self.block, mine.block
            if isinstance(block, Block) and isinstance(other, Block):
                # A value under tonight's `other` could have had a name then.
                if mine.meaning != mine.base and not set(block.inputs) <= set(other.inputs):
                    continue
                pool = Pool(**vars(block)) if self.meaning != self.base else block
                return replace(self, block=pool, meaning=mine.meaning)
        return self

    def labelled(self) -> Part:
        """The same with the values named put aside: answers for one label share their number whatever was named."""
        plain = self.base is not None and isinstance(self.block, Block)
        return replace(self, meaning=self.base or self.meaning) if plain else self


class Composition:
    """The draws of a release and of those before it, sorted by what this release's x says of them."""

    def __init__(
        self, evidence: Evidence, manifest: Manifest, own: Sequence[Part], earlier: Sequence[Part]
    ) -> None:
        self.evidence, self.manifest, self.own = evidence, manifest, own
        self.labelled = [one.labelled() for one in (*earlier, *own)]
        earlier = [one.tonight(own) for one in earlier]
        self.every = [*earlier, *own]
        self.same = [[one for one in self.every if self._same(one, mine)] for mine in own]
        rest = [one for one in earlier if not any(self._same(one, mine) for mine in own)]
        here = {pair for one in own for pair in zip(one.columns, one.meaning, strict=True)}
        inside = [
            one.reads is None and here.issuperset(zip(one.columns, one.meaning, strict=True)) for one in rest
        ]
        self.within = [one for one, yes in zip(rest, inside, strict=True) if yes]
        self.beyond = [one for one, yes in zip(rest, inside, strict=True) if not yes]
        self.tangled = _tangled(self.every)

    def _same(self, one: Part, mine: Part) -> bool:
        alike = (one.columns, one.meaning) == (mine.columns, mine.meaning) and one.block is not None
        return alike and one.reads in (None, self.manifest.sensitive)

    def bounds(self, how: str) -> Iterator[Own]:
        """What the entry may state for a way; a sum may start from any bound of what x tells."""
        if how == "exact":
            if self.within or self.beyond or self.tangled:
                raise broken(
                    "ledger.jsonl",
                    "not all releases are functions of x",
                    expected="ceiling or sum",
                    found="exact",
                )
            yield self._measured(self._composed())
        elif how == "ceiling":
            yield from self._ceilings()
        else:
            yield from self._sums()

    def _ceilings(self) -> Iterator[Own]:
        """X itself; and on average H(S)."""
        if self.manifest.measure == "mutual_information":
            by_secret = self.evidence.dense().reshape(self.evidence.shape[0], -1).sum(axis=1)
            yield Own(self.manifest.measure, information_above(np.diag(by_secret)))
        reading = any(one.reads for group in self.same for one in group)
        if not self.beyond and not reading:
            yield self._measured([as_it_is(one.columns, one.values) for one in self.evidence.blocks])
        elif not self.beyond:
            yield Own(self.manifest.measure, None)

    def _sums(self) -> Iterator[Own]:
        """The usual LDP of everything, or of what is beyond x beside a bound of the rest; the last resort is none."""
        found = list(self._finite_sums())
        yield from found or [Own(self.manifest.measure, None)]

    def _finite_sums(self) -> Iterator[Own]:
        more, asked, covered = self.sum(self.beyond), self._asked(), self.sum(self.within)
        if more is None:
            return
        if asked is not None and covered is not None:
            yield _nats_of(asked + covered + more)
        if self.beyond:
            bases = [self._ceiling_of_x()]
            if not self.within and not self.tangled:
                bases.append(self._try_exact())
            for base in bases:
                nats = None if base is None else _nats(base)
                if nats is not None:
                    yield _nats_of(nats + more)

    def _ceiling_of_x(self) -> Own | None:
        if any(one.reads for group in self.same for one in group):
            return None
        return self._measured([as_it_is(one.columns, one.values) for one in self.evidence.blocks])

    def _try_exact(self) -> Own | None:
        try:
            return self._measured(self._composed())
        except AuditFailure:
            return None

    def _measured(self, blocks: Sequence[AnyBlock]) -> Own:
        return measure(self.evidence, tuple(blocks), self.manifest)[0].own

    def _composed(self) -> list[AnyBlock]:
        """One block for each, whose outputs are what all releases say of it."""
        names, secret = self.manifest.sensitive, self.evidence.secret.values
        found: list[AnyBlock] = []
        for alphabet, drawn in zip(self.evidence.blocks, self.same, strict=True):
            groups = self._groups(drawn)
            only = _distinct(groups[0])
            if len(groups) == 1 and len(only) == 1 and isinstance(only[0], UnaryBlock):
                found.append(only[0])
                continue
            laws = [group_law(_distinct(group), alphabet.values, secret) for group in groups]
            law: Law = reduce(Law.beside, laws)
            reads = any(one.reads for one in drawn)
            found.append(as_block(law, drawn[0].block or only[0], alphabet.values, secret, names, reads))
        return found

    def _groups(self, drawn: Sequence[Part]) -> list[list[Part]]:
        """Parts that share their uniforms."""
        found: dict[object, list[Part]] = {}
        for one in drawn:
            sets = isinstance(one.block, UnaryBlock)
            name = (one.source, one.columns, one.reads, sets, one.meaning, one.entity)
            found.setdefault(name, []).append(one)
        return list(found.values())

    def _asked(self) -> Fraction | None:
        """The usual LDP between the values that occur now; a release that does not know one tells it apart."""
        total = Fraction(0)
        for alphabet, drawn in zip(self.evidence.blocks, self.same, strict=True):
            known = all(self._knows(one.block, alphabet.values) for one in drawn if one.block)
            if self.tangled or (not known and self.manifest.measure != "ldp_x"):
                return None
            for group in self._groups(drawn):
                ratio = group_spread(_distinct(group), alphabet.values)
                if ratio is None:
                    return None
                total += log(ratio)
        return total

    def _knows(self, block: AnyBlock, values: Sequence[Label]) -> bool:
        """Whether a block is drawn for all records that there are now."""
        if isinstance(block, Pool):
            return True
        hidden: Sequence[Label | None] = (None,) if block.secret is None else self.evidence.secret.values
        return {(s, x) for s in hidden for x in values} <= set(inputs_of(block))

    def varying(self) -> Fraction | None:
        """The usual LDP of all that was ever drawn, label by label; None: infinite."""
        return None if _tangled(self.labelled) else self._added(self.labelled)

    def sum(self, drawn: Sequence[Part]) -> Fraction | None:
        """Σ ln of what the usual LDP lets each group tell, between all values ever drawn for; None: infinite."""
        return (Fraction(0) if not drawn else None) if self.tangled else self._added(drawn)

    def _added(self, drawn: Sequence[Part]) -> Fraction | None:
        if any(one.block is None for one in drawn):
            return Fraction(0) if not drawn else None
        known: dict[object, Fraction | None] = {}
        total = Fraction(0)
        for group in self._groups(drawn):
            name = tuple(sorted((one.sha256, one.columns) for one in group))
            if name not in known:
                ratio = group_spread(_distinct(group))
                known[name] = None if ratio is None else log(ratio)
            nats = known[name]
            if nats is None:
                return None
            total += nats
        return total


def _tangled(every: Sequence[Part]) -> bool:
    """Whether one uniform may have served one text in two meanings."""
    for one, other in product(_meanings(every), repeat=2):
        drawer = (one.source, one.columns, one.reads) == (other.source, other.columns, other.reads)
        differ = drawer and (one.meaning, one.entity) != (other.meaning, other.entity)
        if differ and (one.block is None or other.block is None):
            return True
        if differ and one.block and other.block and set(one.block.inputs) & set(other.block.inputs):
            return True
    return False


def _meanings(every: Sequence[Part]) -> list[Part]:
    """One part for each way in which labels were used."""
    named = {
        (one.source, one.columns, one.reads, one.meaning, one.entity, one.block and one.block.inputs): one
        for one in every
    }
    return list(named.values())


def _distinct(group: Sequence[Part]) -> list[AnyBlock]:
    """Blocks that differ in what they draw."""
    return list({_content(one.block): one.block for one in group if one.block is not None}.values())


def _content(block: AnyBlock) -> object:
    if isinstance(block, UnaryBlock):
        return block.inputs, block.bits, block.present, block.absent
    return type(block), block.inputs, block.secret, block.bits, block.weights.shape, block.weights.tobytes()


def _nats(own: Own) -> Fraction | None:
    if own.value is None or own.measure == "mutual_information":
        return own.value
    return log(own.value)


def _nats_of(nats: Fraction) -> Own:
    """A number of nats; the measure only says that it is no ratio."""
    return Own("mutual_information", nats)
