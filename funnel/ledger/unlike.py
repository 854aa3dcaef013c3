"""Folders that no proof is about: noisy counts beside plain ones, releases unlike in two respects, published keys.

Each theorem by which releases are composed lets them differ in one respect: in who is in them (`presence`), in what
values are called (`records`), in what a column stands for (`identity`). How two of these go together nobody has proven,
so there no bound is stated, of any promise. Nor is one where some releases are of noisy counts and some are not: a
figure would be about neither. The same holds of a column that a release publishes as it is (`release.identify`) where
others draw from it or hide it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from funnel.data.alphabet import folded
from funnel.format.journal import Drawn, Identity, Present, ReleaseEntry
from funnel.text import listed

NOISY = "some are of noisy counts"


@dataclass(frozen=True)
class Frame:
    """In what a release may be unlike others of its folder."""

    sensitive: tuple[str, ...]
    identity: Identity
    entity: str | None
    present: Present | None
    noisy: bool
    drawn: tuple[Drawn, ...]
    identify: tuple[str, ...]

    @classmethod
    def of(cls, entry: ReleaseEntry) -> Frame:
        """As a ledger's entry tells it."""
        return cls(
            entry.own.together.sensitive, entry.identity, entry.entity, entry.present, entry.noisy, entry.drawn,
            entry.identify,
        )  # fmt: skip

    @property
    def who(self) -> Hashable:
        """Equal for releases that let the same records of one table in."""
        return self.present and (self.identity.table, self.present.predicate)


def unproven(frames: Sequence[Frame], sensitive: Iterable[str]) -> str | None:
    """Why nothing is proven of what releases tell together about a secret; None where something is."""
    if keys := _shown(frames, sensitive):
        return f"{listed(keys)}, drawn for or hidden, is a key that this or an earlier release publishes as it is"
    found = respects(frames)
    return no_proof(found) if len(found) > 1 or NOISY in found else None


def no_proof(found: Sequence[str]) -> str:
    """That nothing is proven of releases that are unlike in these respects."""
    return f"no proof is about releases of which {' and '.join(found)}"


def respects(frames: Sequence[Frame]) -> list[str]:
    """In which respects releases are unlike, in words."""
    columns = [
        (folded(name), *told)
        for one in frames
        for block in one.drawn
        for name, *told in zip(block.columns, block.base, block.meaning, block.since, strict=True)
    ]
    left_out = any(one.present and one.present.unseen for one in frames)
    anew: list[tuple[str, Hashable, str]] = [(name, base, since) for name, base, _, since in columns]
    anew += [("", one.sensitive, one.identity.secret) for one in frames]
    found = {
        "not all have the same people": left_out or _several(one.who for one in frames),
        "not all are of one table": _several(one.identity.table for one in frames),
        "some know people by another column": _several(folded(one.entity) for one in frames if one.entity),
        NOISY: _several(one.noisy for one in frames),
        "some look at the secret": _several(frozenset(block.reads for block in one.drawn) for one in frames),
        "some call values otherwise": len({one[0] for one in columns}) < len({(one[0], one[2]) for one in columns}),
        "some are not known to have the same column under one name": len({one[:2] for one in anew}) < len({*anew}),
    }
    return [what for what, unlike in found.items() if unlike]


def _several(told: Iterable[Hashable]) -> bool:
    return len({*told}) > 1


def _shown(frames: Sequence[Frame], sensitive: Iterable[str]) -> list[str]:
    """Which columns that are drawn from, or hidden, some release publishes as they are."""
    keys = {folded(name): name for one in frames for name in one.identify}
    drawn = {name for one in frames for block in one.drawn for name in (*block.columns, *block.inside)}
    return sorted(keys[name] for name in keys.keys() & {folded(name) for name in {*drawn, *sensitive}})
