"""What the sentences of a report speak of: one release as its published files state it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from funnel.cells.cells import Cells
from funnel.cells.record import opened
from funnel.data import AnyProtocol
from funnel.data.convert import protocols_of
from funnel.data.joint import FloatArray
from funnel.format import schema
from funnel.format.manifest import Manifest
from funnel.format.reported import Published
from funnel.report import figures, tongue
from funnel.text import human, label, listed


@dataclass(frozen=True, eq=False)
class Facts:
    """A manifest `m` without its files, one protocol for each block, and protocol.json's hash; `t` in templates."""

    m: Manifest
    protocols: tuple[AnyProtocol, ...]
    protocol_sha256: str | None = None
    wide: tuple[Cells, ...] = ()

    @classmethod
    def of(cls, shown: Published) -> Facts:
        """The facts of published files. Raises ValueError where they hold no protocol."""
        digest = hashlib.sha256(schema.write(shown.protocol)).hexdigest()
        wide = () if shown.cells is None else tuple(map(opened, shown.cells.blocks))
        return cls(shown.manifest.without_files(), protocols_of(shown.protocol), digest, wide)

    @property
    def step(self) -> float:
        """What the last decimal of a figure stands for."""
        return float(self.m.step)

    @property
    def grain(self) -> float:
        """A gap between a bound and what was reached, of H(X), that rounding alone explains."""
        return max(0.001, 1.5 * self.step)

    def nats(self, value: float | None) -> str:
        """A figure of the manifest, with the digits that it has."""
        return tongue.figure(figures.nats(value, self.m.decimals), self.language)

    def information(self, value: float) -> str:
        """One of information, which is rounded to the nearest: 0.0 is no exact nothing."""
        return tongue.figure(f"{value:.{self.m.decimals}f}", self.language)

    def share(self, value: float) -> str:
        """The same of a share of the information that is kept; one that was rounded is no exact nothing, or all."""
        inner = min(max(value, 1e-9), 1 - 1e-9) if self.drawn else value
        return tongue.figure(figures.share(inner, self.m.decimals), self.language)

    @property
    def language(self) -> str:
        """In which the report is written."""
        return self.m.language

    def say(self, text: str) -> str:
        """A short English text in that language."""
        return tongue.say(text, self.language)

    def listed(self, names: Sequence[str]) -> str:
        """`a, b and c` in that language."""
        return listed(names, self.say("and"))

    @property
    def epsilon(self) -> float:
        """The bound in nats; 0 for perfect privacy."""
        return float(self.m.epsilon)

    @cached_property
    def secret(self) -> str:
        """The secret columns, listed."""
        return self.listed([human(column) for column in self.m.sensitive])

    @property
    def any_value(self) -> str:
        """`any marital status`, or `any combination of` several columns."""
        said = "any {}" if len(self.m.sensitive) == 1 else "any combination of {}"
        return self.say(said).format(self.secret)

    @property
    def inside(self) -> frozenset[str]:
        """The columns that stand inside cells, by name."""
        return frozenset(column.name for one in self.wide for column in one.columns)

    @cached_property
    def released(self) -> tuple[str, ...]:
        """The columns that are released, by name."""
        inside = {one.name: tuple(column.name for column in one.columns) for one in self.wide}
        return tuple(column for block in self.m.public for name in block for column in inside.get(name, (name,)))

    @property
    def columns(self) -> int:
        """How many columns are released."""
        return len(self.released)

    @cached_property
    def public(self) -> str:
        """The released columns, listed."""
        return self.listed([human(column) for column in self.released])

    @cached_property
    def others(self) -> str:
        """The released columns without those of the secret, listed; empty if there are none."""
        return self.listed([human(column) for column in self.released if column not in self.m.sensitive])

    @cached_property
    def secret_shown(self) -> str:
        """The columns of the secret that are among the released ones, randomised like them, listed."""
        return self.listed([human(column) for column in self.m.sensitive if column in self.released])

    @cached_property
    def secret_withheld(self) -> str:
        """Those that are not, listed."""
        return self.listed([human(column) for column in self.m.sensitive if column not in self.released])

    @property
    def secret_released(self) -> bool:
        """Whether all of the secret is among the released columns."""
        return not self.secret_withheld

    @cached_property
    def key(self) -> str:
        """The key columns, listed; empty where rows have no names."""
        return self.listed([human(one.name) for one in self.m.identify])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of each block, listed."""
        return tuple(self.listed([human(column) for column in block]) for block in self.m.public)

    @cached_property
    def knows(self) -> str:
        """What the notion lets others know of a person beside, as a part of a sentence; empty where it does not say."""
        asked = self.m.parameters.knows
        if asked is None:
            return ""
        if isinstance(asked, int):
            said = "one of the released columns" if asked == 1 else "at most {} of the released columns"
            return self.say(said).format(asked)
        names = [human(column) for column in asked]
        return names[0] if len(names) == 1 else self.say("any of {}").format(self.listed(names))

    @property
    def private(self) -> bool:
        """Whether the counts behind the release are noisy ones."""
        return self.m.estimate.kind == "private"

    @cached_property
    def reads_secret(self) -> bool:
        """Whether draws depend on the secret as well as on the true public values."""
        return any(protocol.reads_secret for protocol in self.protocols)

    @cached_property
    def as_is(self) -> tuple[bool, ...]:
        """Which blocks are released as they are: every value as itself, with certainty."""
        return tuple(map(unchanged, self.protocols))

    @property
    def true_cells(self) -> tuple[str, ...]:
        """The wide blocks whose true cells are released, by name."""
        same = {name for block, own in zip(self.m.public, self.as_is, strict=True) if own for name in block}
        return tuple(one.name for one in self.wide if one.name in same)

    @property
    def constant(self) -> bool:
        """Whether the true values are all the same."""
        return all(len(protocol.inputs.values) == 1 for protocol in self.protocols)

    @cached_property
    def certain(self) -> bool:
        """Whether nothing is left to chance: every true value has one released value."""
        return all(protocol.certain for protocol in self.protocols)

    @property
    def shown_as_is(self) -> str:
        """The blocks that are released as they are, listed."""
        return self.listed([name for name, same in zip(self.names, self.as_is, strict=True) if same])

    @cached_property
    def parted(self) -> tuple[tuple[str, int], ...]:
        """Other blocks in which some totals can be counted in the table: their columns, and how many totals."""
        found = ((name, parts(protocol)) for name, protocol in zip(self.names, self.protocols, strict=True))
        return tuple(one for one, same in zip(found, self.as_is, strict=True) if one[1] > 1 and not same)

    @property
    def drawn(self) -> str:
        """The blocks that are not, listed."""
        return self.listed([name for name, same in zip(self.names, self.as_is, strict=True) if not same])

    @property
    def bits(self) -> list[int]:
        """The precisions, in bits, of the weights that are not all 0 or 1."""
        return sorted({protocol.bits for protocol in self.protocols} - {0})

    @property
    def fixed(self) -> str | None:
        """When the protocol was fixed, where a lock fixes it; a lock may keep what another one has fixed."""
        return (self.m.locked.fixed or self.m.locked.made) if self.m.locked else None

    @property
    def totals_stay(self) -> bool:
        """Whether the expected totals are those of the records at hand: not of those of a lock, nor of noisy counts."""
        return self.m.totals == "kept" and not self.m.locked and not self.private

    @cached_property
    def slopes(self) -> tuple[float, ...]:
        """By block the part of a change of the true totals that the released ones show, on average over its values."""
        return tuple(map(slope, self.protocols))

    @cached_property
    def true_chance(self) -> tuple[float, float]:
        """The least and the largest chance, over true values, that all of a record's released values are true.

        Blocks are drawn apart, but where they read the secret, for one and the same value of it.
        """
        every = [one.alike() for one in self.protocols]
        low, high = (reduce(np.multiply, [end(one, axis=1) for one in every]) for end in (np.min, np.max))
        return float(low.min()), float(high.max())


def slope(protocol: AnyProtocol) -> float:
    """(Σ_x Q(x|x) - 1) / (a - 1): the mean of Q's eigenvalues but for the one that keeps the number of records."""
    values = len(protocol.inputs)
    return float(kept(protocol).mean(axis=0).sum() - 1) / (values - 1) if values > 1 else 1.0


def unchanged(protocol: AnyProtocol) -> bool:
    """Whether every value is released as itself, with certainty."""
    return protocol.certain and bool((kept(protocol) == 1).all())


def parts(protocol: AnyProtocol) -> int:
    """How many groups of values no draw ever leaves: the totals of each, and no others, are exact in the table.

    A sum of released counts that equals one of true counts whatever is drawn is constant on each of them.
    """
    if protocol.coins is not None:
        return 1
    drawn = (protocol.telling_weights > 0).any(axis=1)
    group = np.arange(drawn.shape[1])
    while True:
        least = np.where(drawn, group, drawn.shape[1]).min(axis=1, initial=drawn.shape[1])
        joined = np.where(drawn, least[:, None], drawn.shape[1]).min(axis=0)
        if (joined == group).all():
            return len(np.unique(group))
        group = joined


def names(protocol: AnyProtocol) -> list[str]:
    """What the rows of `telling` stand for: outputs, or the values that sets hold."""
    return [label(value) for value in protocol.told.values]


def kept(protocol: AnyProtocol) -> FloatArray:
    """Q(x | s, x), (c or 1, a): the chance that a value is released as it is, or stands in the set released."""
    place, drawn = {value: y for y, value in enumerate(protocol.told.values)}, protocol.telling()
    rows = [place.get(value) for value in protocol.inputs.values]
    nothing = np.zeros(drawn.shape[1])
    return np.stack([nothing if y is None else drawn[y, :, x] for x, y in enumerate(rows)], axis=1)
