"""What the values of drawn columns stand for, as short hashes: draws of several nights are put together by them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from funnel.cells.cells import Cells
from funnel.cells.record import meaning
from funnel.data.alphabet import Label, folded
from funnel.format.journal import Drawn
from funnel.format.terms import Attribute, TermsFile


def by_name(terms: TermsFile) -> dict[str, Attribute]:
    """The public columns that terms are about, by their folded names."""
    return {folded(one.name): one for block in terms.public for one in block}


def drawn(
    columns: tuple[str, ...], inputs: Sequence[Label], reads: tuple[str, ...] | None,
    known: Mapping[str, Attribute], cells: Sequence[Cells],
) -> Drawn:  # fmt: skip
    """What a ledger says of a block with these input labels, by the terms of its columns; without their versions.

    Raises KeyError for a column that is neither `known` nor a wide block.
    """
    wide = {one.name: one for one in cells}
    hashes = [
        (meaning(wide[name]),) * 2 if name in wide else _hashes(known[folded(name)], {*values})
        for name, values in zip(columns, zip(*inputs, strict=True), strict=True)
    ]
    inside = tuple(column.name for name in columns if name in wide for column in wide[name].columns)
    return Drawn(columns, tuple(one for one, _ in hashes), tuple(base for _, base in hashes), reads, inside, ())


def _hashes(one: Attribute, values: set[str | None]) -> tuple[str, str]:
    """Of what a column's values stand for, and of the same but for which values are not put under `other`.

    The same text may mean other people elsewhere: bins, rounding, clipping, groups; and where rare or unseen values
    are one, which ones are not.
    """
    told = {name: getattr(one, name) for name in ("bins", "round", "clip", "groups")} | {"trim": one.trim or None}
    base = {name: value for name, value in told.items() if value is not None}
    kept: dict[str, Any] = {name: value for name in ("top", "rare") if (value := getattr(one, name)) is not None}
    if one.top is not None or one.rare in ("other", "bin") or one.unseen == "other":
        kept["values"] = sorted(json.dumps(value) for value in values)
    return _short(base | kept), _short(base)


def _short(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
