"""Draw records: what the ledger knows of a draw — which block, of whom, from which randomness, what its labels mean.

Where rare or unseen values are one value, `other`, what that stands for follows from the values that were named
beside it. Two draws whose labels differ in that alone can be told in each other's terms:

- The current policy names all that was named then. Then the current value says what was drawn for: itself where it
  was named, and else `other`, which has a uniform of its own (`funnel.measure.overlap.Pooling`).
- Whatever was named, answers for one label follow from one uniform. So a record's labels, as they were each night,
  say all about its answers (`by_label`).

What the values of drawn columns stand for are short hashes, by which draws of several nights are put together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from funnel.cells.cells import Cells
from funnel.cells.record import meaning
from funnel.data import AnyProtocol, Protocol
from funnel.data.alphabet import Label, folded
from funnel.format.journal import Drawn, Present
from funnel.format.terms import Attribute, TermsFile
from funnel.measure.overlap import Pooling

Known = tuple[tuple[str, ...], tuple[str, ...], frozenset[Label]]
"""A block by its columns and what their values stand for, and the labels that it draws for."""


@dataclass(frozen=True, eq=False)
class DrawRecord:
    """One block of one release.

    `meaning` tells for each column what its values stand for, `base` the same but for which values were named (equal
    to the meaning where none is put under `other`), `reads` the sensitive columns that the draw looks at. `source` is
    the fingerprint of a permanent key, or the release where draws are fresh; `entity` the column that permanent draws
    go by. `protocol` is None where it is not known any more. `inside` are the columns of wide blocks among `columns`.
    `present` says who is in its release, None where that is everybody. `since` are the versions of the columns
    (`funnel.ledger.identity`), once these are known. `asks` has all blocks of a release that left out values unknown to
    its lock: who has such a value in one of them answered in none.
    """

    columns: tuple[str, ...]
    meaning: tuple[str, ...]
    base: tuple[str, ...]
    reads: tuple[str, ...] | None
    source: str
    entity: str | None
    protocol: AnyProtocol | None
    inside: tuple[str, ...] = ()
    present: Present | None = None
    since: tuple[str, ...] = ()
    asks: tuple[Known, ...] = ()

    @classmethod
    def of(cls, told: Drawn, source: str, entity: str | None, protocol: AnyProtocol | None,
           present: Present | None) -> DrawRecord:  # fmt: skip
        """What a ledger says of a block, with its protocol, and where its uniforms come from."""
        return cls(told.columns, told.meaning, told.base, told.reads, source, entity, protocol, told.inside, present,
                   told.since)  # fmt: skip

    @property
    def pools(self) -> bool:
        """Whether values that are not named were drawn for as `other`."""
        return self.meaning != self.base

    @property
    def tells_of(self) -> set[str]:
        """The columns of the table that it tells of: its own, and those inside its wide blocks."""
        return {*self.columns, *self.inside}

    @property
    def by_value(self) -> Protocol | None:
        """The protocol where it is known and an answer is one value."""
        return self.protocol if isinstance(self.protocol, Protocol) else None

    @property
    def drawer(self) -> tuple[object, ...]:
        """What a uniform number is made of beside the label and what it means."""
        return self.source, self.columns, self.reads

    def told(self) -> Drawn:
        """What a ledger's entry says of it."""
        return Drawn(self.columns, self.meaning, self.base, self.reads, self.inside, self.since)


def versioned(one: DrawRecord, numbered: str) -> DrawRecord:
    """A draw whose meanings and entity say which version of each column and which numbering of people they are of.

    Draws by two numberings are of one source: whether a person's identifiers are two or one, nobody knows of each.
    """
    meaning, base = (
        tuple(f"{name} {since}" for name, since in zip(names, one.since, strict=True))
        for names in (one.meaning, one.base)
    )
    entity = None if one.entity is None else f"{one.entity} {numbered}"
    return replace(one, meaning=meaning, base=base, entity=entity)


def of_one_release(draws: Sequence[DrawRecord]) -> list[DrawRecord]:
    """The blocks of a release, where it left out unknown values each with what all of them draw for."""
    if not any(one.present and one.present.unseen for one in draws):
        return [*draws]
    known = [(one.columns, one.meaning, frozenset(one.protocol.inputs.values)) for one in draws if one.protocol]
    return [replace(one, asks=tuple(known)) for one in draws]


def restated(one: DrawRecord, current: Sequence[DrawRecord]) -> DrawRecord:
    """A draw in the terms of that of `current` whose values tell what it was drawn for; else as it is."""
    return next((_in_terms_of(one, mine) for mine in current if _follows_from(one, mine)), one)


def _follows_from(one: DrawRecord, mine: DrawRecord) -> bool:
    """Whether the value that `mine` was drawn for says which one `one` was: the names differ, and it has them all."""
    alike = (one.columns, one.base, one.reads) == (mine.columns, mine.base, None) and len(one.columns) == 1
    if not alike or one.meaning == mine.meaning:
        return False
    if one.by_value is None or mine.by_value is None:
        return False
    return not mine.pools or set(one.by_value.inputs.values) <= set(mine.by_value.inputs.values)


def _in_terms_of(one: DrawRecord, mine: DrawRecord) -> DrawRecord:
    known = one.by_value
    if known is None or not one.pools:
        return replace(one, meaning=mine.meaning)
    pooling = Pooling(known.inputs, known.outputs, known.bits, known.weights, known.secret)
    return replace(one, protocol=pooling, meaning=mine.meaning)


def by_label(one: DrawRecord) -> DrawRecord:
    """A draw with what its labels stood for put aside, where that differs by the values named alone."""
    return replace(one, meaning=one.base) if one.by_value else one


def coupled(draws: Sequence[DrawRecord]) -> bool:
    """Whether some uniform serves labels of different meanings: then nothing is known of how these go together."""
    drawers: dict[object, dict[object, set[Any]]] = {}
    for one in draws:
        values = {None} if one.protocol is None else set(one.protocol.inputs.values)
        meanings = drawers.setdefault(one.drawer, {})
        meanings.setdefault((one.meaning, one.entity), set()).update(values)
    return any(
        None in (values | other) or bool(values & other)
        for meanings in drawers.values()
        for values, other in combinations(meanings.values(), 2)
    )


def by_name(terms: TermsFile) -> dict[str, Attribute]:
    """The public columns that terms are about, by their folded names, those inside wide blocks among them."""
    blocks = (*terms.public, *(one.columns for one in terms.wide))
    return {folded(one.name): one for block in blocks for one in block}


def drawn(
    columns: tuple[str, ...], inputs: Sequence[Label], reads: tuple[str, ...] | None,
    known: Mapping[str, Attribute], cells: Sequence[Cells],
) -> Drawn:  # fmt: skip
    """What a ledger says of a block with these input labels, by the terms of its columns; without their versions.

    Raises KeyError for a column that is neither `known` nor a wide block.
    """
    wide = {one.name: one for one in cells}
    # A lock also puts combinations that it does not know under `other`, of values that it knows one by one.
    whole = sorted(map(json.dumps, inputs)) if len(columns) > 1 else None
    hashes = [
        (of_cells(wide[name], known),) * 2 if name in wide else _hashes(known[folded(name)], {*values}, whole)
        for name, values in zip(columns, zip(*inputs, strict=True), strict=True)
    ]
    inside = tuple(column.name for name in columns if name in wide for column in wide[name].columns)
    return Drawn(columns, tuple(one for one, _ in hashes), tuple(base for _, base in hashes), reads, inside, ())


def of_cells(cells: Cells, known: Mapping[str, Attribute]) -> str:
    """A hash of what cells.json tells of a wide block: also of what was made of its columns before they were cut.

    One text is another value where groups are others, and so one cell holds other people. Raises KeyError.
    """
    made = {column.name: told for column in cells.columns if (told := _made(known[folded(column.name)]))}
    return _short({"cells": meaning(cells), "made": made}) if made else meaning(cells)


def _made(one: Attribute) -> dict[str, Any]:
    """What is made of a column's own values, whoever has them."""
    told = {name: getattr(one, name) for name in ("bins", "round", "clip", "groups")} | {"trim": one.trim or None}
    return {name: value for name, value in told.items() if value is not None}


def _hashes(one: Attribute, values: set[str | None], whole: Sequence[str] | None) -> tuple[str, str]:
    """Of what a column's values stand for, and of the same but for which values are not put under `other`.

    The same text may mean other people elsewhere: bins, rounding, clipping, groups; and where rare or unseen values
    are one, which ones are not. A rare number becomes the nearest one that is named, so that every name bears on what
    the others stand for. `whole` are the labels of a block of several columns.
    """
    base = _made(one)
    kept: dict[str, Any] = {name: value for name in ("top", "rare") if (value := getattr(one, name)) is not None}
    if one.top is not None or one.rare in ("other", "bin") or one.unseen == "other":
        kept["values"] = sorted(json.dumps(value) for value in values)
    if one.unseen == "other" and whole is not None:
        kept["whole"] = whole
    if one.rare == "bin":
        base |= kept
    return _short(base | kept), _short(base)


def _short(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
