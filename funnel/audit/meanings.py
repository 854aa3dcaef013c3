"""What a release's entry says that its values stand for, worked out again from the policy and the protocol.

Draws of several nights are put together by these hashes: a ledger that calls the same values others, or others the
same, would have the composed leakage measured on the wrong channel.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from funnel.audit.fields import Field
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.protocols import Blocks
from funnel.audit.terms import read_policy

_NUMBERS, _NUMBER, _WHOLE = ("bins", "clip"), "round", "top"
_NOTHING = ("", "~", "null", "Null", "NULL")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def as_meant(entries: list[Field], blocks: Blocks, policy: bytes) -> str | Unchecked:
    """The last entry's columns mean what the policy makes of them, of the policy's entity. Raises AuditFailure."""
    entry = entries[-1]
    if "drawn" not in entry.value:
        return Unchecked(
            NOT_CLAIMED + "the entry is of the first version, which does not tell what was drawn"
        )
    try:
        root = read_policy(policy)
        known = {str(one["name"]).translate(_LOWER): one for one in _attributes(root["public"])}
        entity = root["source"].get("entity")
        expected = [_meanings(block.columns, block.inputs, known) for block in blocks]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = "the policy does not say what its columns stand for"
        raise broken("policy.yaml", what, expected="columns", found=type(error).__name__) from None
    if entry["draws"].value == "permanent" and entry["entity"].value != entity:
        what = "the entity is not the policy's"
        raise broken(entry.file, what, expected=entity, found=entry["entity"].value)
    for told, (meaning, base) in zip(entry["drawn"].items(), expected, strict=True):
        for key, found in (("meaning", meaning), ("base", base)):
            if key in told.value and told.value[key] is not None and told.value[key] != found:
                what = f"{told.path}.{key} is not what the policy makes of these columns"
                raise broken(entry.file, what, expected=found, found=told.value[key])
    return counted(sum(len(block.columns) for block in blocks), "column")


def _attributes(public: Any) -> Iterator[Mapping[str, Any]]:
    """The columns of `public`, each as a mapping with its name."""
    for item in public:
        for part in item if isinstance(item, list) else [item]:
            yield {"name": part} if isinstance(part, str) else part


def _meanings(
    columns: tuple[str, ...], inputs: Any, known: Mapping[str, Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Hashes of what each column's values stand for, with and without which of them were named."""
    meaning, base = [], []
    for place, column in enumerate(columns):
        attribute = known[column.translate(_LOWER)]
        told = _options(attribute)
        base.append(_short({key: value for key, value in told.items() if key != _WHOLE}))
        if _WHOLE in told or attribute.get("unseen") == "other":
            told["values"] = sorted(json.dumps(value) for value in {label[place] for label in inputs})
        meaning.append(_short(told))
    return meaning, base


def _options(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """Bins, clipping, rounding and top of a column, as numbers."""
    found: dict[str, Any] = {}
    for key, value in attribute.items():
        if key in _NUMBERS and value not in _NOTHING:
            found[key] = [float(one) for one in value]
        elif key in {_NUMBER, _WHOLE} and value not in _NOTHING:
            found[key] = int(value) if key == _WHOLE else float(value)
    return found


def _short(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
