"""What the ledger knows of a draw: which block, of whom, from which randomness, and what its labels stood for.

Where rare or unseen values are one value, `other`, what that stands for follows from the values that were named
beside it. Two draws whose labels differ in that alone can be told in each other's terms:

- Tonight names all that was named then. Then tonight's value says what was drawn for: itself where it was named, and
  else `other`, which has a uniform of its own (`model.overlap.Pooling`).
- Whatever was named, answers for one label follow from one uniform. So a record's labels, as they were each night,
  say all about its answers (`by_label`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from funnel.data import AnyProtocol, Protocol
from funnel.measure.overlap import Pooling


@dataclass(frozen=True, eq=False)
class Drawn:
    """One block of one release.

    `meaning` tells for each column what its values stand for, `reads` the sensitive columns that the draw looks at;
    `key` is the fingerprint of a permanent key, and `entity` the column that its draws go by; fresh draws have the
    release instead. `protocol` is None where it is not known any more. `base` is the meaning but for which values were
    named, the same as the meaning where none is put under `other`; None in ledgers that did not tell it.
    """

    columns: tuple[str, ...]
    meaning: tuple[str, ...]
    reads: tuple[str, ...] | None
    source: str
    entity: str | None
    protocol: AnyProtocol | None
    base: tuple[str, ...] | None = None

    @property
    def pools(self) -> bool:
        """Whether values that are not named were drawn for as `other`."""
        return self.base is not None and self.meaning != self.base


def restated(one: Drawn, tonight: Sequence[Drawn]) -> Drawn:
    """A draw in the terms of that of `tonight` whose values tell what it was drawn for; else as it is."""
    return next((_in_terms_of(one, mine) for mine in tonight if _follows_from(one, mine)), one)


def _follows_from(one: Drawn, mine: Drawn) -> bool:
    """Whether the value that `mine` was drawn for says which one `one` was: the names differ, and it has them all."""
    alike = (one.columns, one.base, one.reads) == (mine.columns, mine.base, None) and len(one.columns) == 1
    if not alike or one.base is None or one.meaning == mine.meaning:
        return False
    if not isinstance(one.protocol, Protocol) or not isinstance(mine.protocol, Protocol):
        return False
    return not mine.pools or set(one.protocol.inputs.values) <= set(mine.protocol.inputs.values)


def _in_terms_of(one: Drawn, mine: Drawn) -> Drawn:
    known = one.protocol
    if one.pools and isinstance(known, Protocol):
        known = Pooling(known.inputs, known.outputs, known.bits, known.weights, known.secret)
    return replace(one, protocol=known, meaning=mine.meaning)


def by_label(one: Drawn) -> Drawn:
    """A draw with what its labels stood for put aside, where that differs by the values named alone."""
    if one.base is None or not isinstance(one.protocol, Protocol):
        return one
    return replace(one, meaning=one.base)


def coupled(draws: Sequence[Drawn]) -> bool:
    """Whether some uniform serves labels of different meanings: then nothing is known of how these go together."""
    drawers: dict[object, dict[object, set[Any]]] = {}
    for one in draws:
        values = {None} if one.protocol is None else set(one.protocol.inputs.values)
        meanings = drawers.setdefault((one.source, one.columns, one.reads), {})
        meanings.setdefault((one.meaning, one.entity), set()).update(values)
    return any(
        None in (values | other) or bool(values & other)
        for meanings in drawers.values()
        for values, other in combinations(meanings.values(), 2)
    )
