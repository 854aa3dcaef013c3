"""What may be known of the records of two nights, as far as both tell of the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from funnel.format.counts import CountsFile
from funnel.format.fields import Label
from funnel.format.journal import Drawn
from funnel.format.known import GROUPED, OWN, KnownFile

Level = tuple[str, str]
"""A column, and how much of its values is known."""
Cells = Counter[tuple[Label, ...]]
"""Records by the values of the secret, of blocks, and of levels."""


@dataclass(frozen=True)
class Column:
    """One column of a release, or a wide block, which is one as well: the block that it is in, and its place there."""

    block: Drawn
    axis: int

    @property
    def name(self) -> str:
        """What it is called."""
        return self.block.columns[self.axis]

    @property
    def meaning(self) -> str:
        """What its values mean."""
        return self.block.meaning[self.axis]

    @property
    def base(self) -> str:
        """The same, whichever of them are under `other`."""
        return self.block.base[self.axis]


def columns_of(drawn: Sequence[Drawn]) -> list[Column]:
    """The columns of all blocks."""
    return [Column(block, axis) for block in drawn for axis in range(len(block.columns))]


@dataclass(frozen=True)
class Knowable:
    """known.json of a night, with its counts; values that `minimum` records share have a name."""

    file: KnownFile
    counts: CountsFile
    minimum: int

    @property
    def places(self) -> dict[Level, int]:
        """Where each level is."""
        return {(one.column, one.level): place for place, one in enumerate(self.file.levels)}

    def texts(self, level: Level) -> frozenset[str | None]:
        """The values of a level that have a name."""
        return frozenset(self.file.levels[self.places[level]].values)

    def share(self, level: Level) -> Counter[str | None]:
        """Records by a level's values."""
        place = self.places[level]
        values, found = self.file.levels[place].values, Counter[str | None]()
        for row in self.file.cells:
            if code := row[1 + len(self.counts.blocks) + place]:
                found[values[code - 1]] += row[-1]
        return found

    def cells(self, alike: Sequence[bool], named: Sequence[tuple[Level, frozenset[str | None]]]) -> Cells:
        """Records by secret, the columns that are `alike`, and levels, of each the values that are `named`."""
        secret, blocks, levels = self.counts.secret, self.counts.blocks, self.file.levels
        at, found = self.places, Cells()
        for s, *codes, number in self.file.cells:
            texts = chain.from_iterable(one.values[code] for one, code in zip(blocks, codes, strict=False))
            labels: list[Label] = [(text,) for text, same in zip(texts, alike, strict=True) if same]
            for level, both in named:
                code = codes[len(blocks) + at[level]]
                text = levels[at[level]].values[code - 1] if code else None
                labels.append((text,) if code and text in both else ())
            found[secret.values[s], *labels] += number
        return found


def known_alike(
    pairs: Sequence[tuple[Column, Column]], told: tuple[Knowable, Knowable], alike: Sequence[bool], less: Sequence[int]
) -> tuple[Cells, Cells] | None:
    """The records of both nights by all that both tell alike; `less` rows of the other one each may not count.

    None where a value has no name that more records share than may be missing.
    """
    shared = [each for each in _comparable(pairs) if each in told[0].places and each in told[1].places]
    for place, one in enumerate(told):
        other, enough = told[1 - place], one.minimum + less[place]
        for level in shared:
            if any(n >= enough for text, n in other.share(level).items() if text not in one.texts(level)):
                return None
    named = [(each, told[0].texts(each) & told[1].texts(each)) for each in shared]
    return told[0].cells(alike, named), told[1].cells(alike, named)


def _comparable(pairs: Sequence[tuple[Column, Column]]) -> Iterator[Level]:
    """Own values are those of the table, and groups are the same where their columns are cut alike."""
    for mine, then in pairs:
        for name in (mine.name, *mine.block.inside):
            yield name, OWN
        for name in (mine.name, *mine.block.inside) if mine.base == then.base else ():
            yield name, GROUPED
