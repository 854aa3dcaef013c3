"""The composed leakage that a release's entry in the ledger states, checked against all protocols so far."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from funnel.audit.composition import Composition, Part
from funnel.audit.evidence import Evidence
from funnel.audit.fields import Field
from funnel.audit.files import content
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.manifest import STEP, Manifest
from funnel.audit.overlaps import AnyBlock
from funnel.audit.own import Own
from funnel.audit.protocols import Blocks, read_blocks
from funnel.audit.terms import budget_of

KEYS = ("measure", "sensitive", "figure", "measured", "how", "releases", "groups", "varying")
WAYS = ("exact", "ceiling", "sum")
_LATER = {"entity", "drawn", "kept"}
"""What no entry of the first version has either."""
_NEAR = Fraction(1, 10**8)
"""Nats by which sums of logarithms that were rounded one by one may be too large."""


@dataclass(frozen=True)
class Stated:
    """The `composed` part of an entry, in nats; None: no finite bound."""

    measure: str
    sensitive: tuple[str, ...]
    figure: Fraction | None
    measured: Fraction | None
    how: str
    releases: int
    groups: int
    varying: Fraction | None


def as_entered(
    entries: list[Field], evidence: Evidence, blocks: Blocks, manifest: Manifest, private: Path, releases: Path
) -> str | Unchecked:  # fmt: skip
    """The last entry's composed leakage is that of this release and all before it. Raises AuditFailure."""
    *before, entry = entries
    if "composed" not in entry.value:
        if any("composed" in one.value for one in before) or _LATER & set(entry.value):
            raise broken(
                entry.file, "the entry has lost its composed leakage", expected="composed", found=None
            )
        return Unchecked(NOT_CLAIMED + "the entry is of the first version, which measured no composition")
    stated = read_stated(entry["composed"])
    _counted_right(entry, stated, manifest, len(before) + 1)
    _published(stated, manifest)
    _never_less(entry, stated, before)
    own = parts(entry, blocks, manifest.files["protocol.json"][0])
    _copy(private, manifest.files["protocol.json"][0])
    if any("drawn" not in one.value for one in before):
        return Unchecked("an earlier entry is of the first version, which does not tell what was drawn")
    earlier = [part for one in _unlike(before) for part in _kept(one, private, releases)]
    _sources(entry, stated, [*earlier, *own])
    found = Composition(evidence, manifest, own, _once(earlier))
    told = _agree(found, entry["composed"], stated)
    return f"{told}, over {counted(stated.releases, 'release')}"


def within_budget(entries: list[Field], policy: bytes) -> str | Unchecked:
    """What the last entry says that all releases so far tell is within the policy's budget. Raises AuditFailure."""
    entry, budget = entries[-1], budget_of(policy)
    if budget is None:
        return Unchecked(NOT_CLAIMED + "the policy names no budget")
    if "composed" not in entry.value:
        return Unchecked(NOT_CLAIMED + "the entry is of the first version, which measured no composition")
    figure = read_stated(entry["composed"]).figure
    if figure is None or figure > budget:
        raise broken(
            entry.file,
            "all releases together tell more than the policy's budget",
            expected=f"at most {float(budget):g} nats",
            found="infinite" if figure is None else f"{float(figure):g} nats",
        )
    return f"{float(figure):g} of {float(budget):g} nats"


def read_stated(field: Field) -> Stated:
    """The composed part of an entry. Raises AuditFailure."""
    field.keys(*KEYS)
    figures = [
        None if field[key].value is None else field[key].number() for key in ("figure", "measured", "varying")
    ]
    return Stated(
        field["measure"].text(), tuple(one.text() for one in field["sensitive"].items()), figures[0], figures[1],
        field["how"].among(*WAYS), field["releases"].whole(1), field["groups"].whole(1), figures[2],
    )  # fmt: skip


def _counted_right(entry: Field, stated: Stated, manifest: Manifest, number: int) -> None:
    for name, found, expected in (
        ("measure", stated.measure, manifest.measure),
        ("sensitive", stated.sensitive, manifest.sensitive),
        ("releases", stated.releases, number),
    ):
        if found != expected:
            raise broken(
                entry.file, f"composed.{name} is not that of the release", expected=expected, found=found
            )


def _published(stated: Stated, manifest: Manifest) -> None:
    """The manifest tells the same, or nothing of the first release."""
    told = manifest.composed
    expected = None if stated.releases == 1 else (stated.figure, stated.how, stated.releases)
    if told != expected:
        raise broken(
            "release.json",
            "composed is not what the ledger says",
            expected=_shown(expected),
            found=_shown(told),
        )


def _shown(told: tuple[Fraction | None, str, int] | None) -> str:
    if told is None:
        return "null"
    return f"{'infinite' if told[0] is None else float(told[0])} ({told[1]}) over {told[2]}"


def _never_less(entry: Field, stated: Stated, before: Sequence[Field]) -> None:
    """The figure is the largest of what was measured for this release and what earlier entries state."""
    figures = [stated.measured]
    for one in before:
        if "composed" in one.value:
            other = read_stated(one["composed"])
            if (other.measure, other.sensitive) == (stated.measure, stated.sensitive):
                figures.append(other.figure)
    largest = None if None in figures else max(figure for figure in figures if figure is not None)
    if stated.figure != largest:
        raise broken(
            entry.file, "composed.figure is not the largest so far",
            expected="infinite" if largest is None else float(largest),
            found="infinite" if stated.figure is None else float(stated.figure),
        )  # fmt: skip


def parts(entry: Field, blocks: Sequence[AnyBlock | None], sha256: str) -> list[Part]:
    """What an entry says was drawn, with its protocols. Raises AuditFailure where the two do not fit."""
    permanent = entry["draws"].among("permanent", "fresh") == "permanent"
    source = entry["key_fingerprint" if permanent else "release"].text()
    entity = None if entry["entity"].value is None else entry["entity"].text()
    drawn = entry["drawn"].items()
    found = []
    for told, block in zip(drawn, blocks or (None,) * len(drawn), strict=False):
        told.keys("columns", "meaning", "reads", optional=("base",))
        columns = told["columns"].names()
        meaning = tuple(one.text(r"[0-9a-f]{16}") for one in told["meaning"].items())
        reads = None if told["reads"].value is None else told["reads"].names()
        found.append(Part(columns, meaning, reads, source, entity, block, sha256, _base(told)))
        if block is not None and (columns, reads) != (block.columns, block.secret_columns):
            raise broken(
                entry.file, "drawn is not what the protocol draws", expected=block.columns, found=columns
            )
    if len(drawn) != len(blocks or drawn) or any(
        len(meaning) != len(one.columns)
        for one in found
        for meaning in (one.meaning, one.base or one.meaning)
    ):
        raise entry["drawn"].wrong("one part for each block, a meaning for each column")
    if permanent != (entity is not None):
        raise entry["entity"].wrong("the entity of permanent draws, null of fresh ones")
    return found


def _base(told: Field) -> tuple[str, ...] | None:
    """What a column's values stand for but for which of them were named; None in ledgers that do not tell it."""
    if told.value.get("base") is None:
        return None
    return tuple(one.text(r"[0-9a-f]{16}") for one in told["base"].items())


def _unlike(entries: Sequence[Field]) -> list[Field]:
    """Entries without those that say the same as one before: night after night the protocol of a lock, and its key.

    The first that says it stands for all.
    """
    told = ("draws", "key_fingerprint", "protocol_sha256", "entity", "drawn")
    named: dict[str, Field] = {}
    for one in entries:
        fresh = None if one.value["draws"] == "permanent" else one.value["release"]
        named.setdefault(repr([fresh, *(one.value.get(key) for key in told)]), one)
    return list(named.values())


def _kept(entry: Field, private: Path, releases: Path) -> list[Part]:
    """The parts of an earlier release, with the protocols that are left."""
    sha256 = entry["protocol_sha256"].text(r"[0-9a-f]{64}")
    raw, published = _copy(private, sha256), releases / entry["release"].text() / "protocol.json"
    if raw is None and published.is_file():
        raw = content(published)
        raw = raw if hashlib.sha256(raw).hexdigest() == sha256 else None
    return parts(entry, () if raw is None else read_blocks(f"protocols/{sha256}.json", raw), sha256)


def _copy(private: Path, sha256: str) -> bytes | None:
    """The copy of a protocol that is kept for the ledger, None where none is left. Raises AuditFailure."""
    path = private / "protocols" / f"{sha256}.json"
    if not path.is_file():
        return None
    raw = content(path)
    if (found := hashlib.sha256(raw).hexdigest()) != sha256:
        raise broken(f"protocols/{path.name}", "the kept protocol was changed", expected=sha256, found=found)
    return raw


def _once(found: Sequence[Part]) -> list[Part]:
    """Permanent draws that only repeat what was said count once."""
    named = {(one.sha256, one.columns, one.meaning, one.source, one.entity): one for one in found}
    return list(named.values())


def _sources(entry: Field, stated: Stated, every: Sequence[Part]) -> None:
    groups = len({one.source for one in every})
    if stated.groups != groups:
        raise broken(entry.file, "composed.groups is wrong", expected=groups, found=stated.groups)


def _agree(found: Composition, field: Field, stated: Stated) -> str:
    """The figures in words, once they are the true ones. Raises AuditFailure."""
    bounds = list(found.bounds(stated.how))
    if not any(_same_figure(stated.measured, bound) for bound in bounds):
        raise broken(
            field.file, f"composed.measured is not what the releases leak together ({stated.how})",
            expected=" or ".join("infinite" if one.value is None else one.nats() for one in bounds),
            found="infinite" if stated.measured is None else float(stated.measured),
        )  # fmt: skip
    if stated.varying is not None:
        varying = found.varying()
        if varying is None or not -_NEAR <= stated.varying - varying <= STEP + _NEAR:
            raise broken(
                field.file, "composed.varying is not the usual LDP of the history",
                expected="infinite" if varying is None else float(varying), found=float(stated.varying),
            )  # fmt: skip
    told = "no finite bound" if stated.measured is None else f"{float(stated.measured)} nats"
    return f"{stated.measure} {told} ({stated.how})"


def _same_figure(stated: Fraction | None, bound: Own) -> bool:
    """The bound, rounded up; an infinite one is stated as none."""
    if bound.value is None or stated is None:
        return bound.value is stated
    if bound.measure == "mutual_information":
        return -_NEAR <= stated - bound.value <= STEP + _NEAR
    return bound.rounded_up(stated)
