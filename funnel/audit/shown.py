"""report.json's shares and beliefs, which only the counts can show to be true: measured anew, and rounded as it rounds.

Withheld figures are null, and stay unlooked at: what a report keeps to itself is no claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from funnel.audit.evidence import Evidence
from funnel.audit.fields import Field, parse
from funnel.audit.files import content
from funnel.audit.findings import broken, counted
from funnel.audit.information import entropy
from funnel.audit.leakage import Channel
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Block, Blocks
from funnel.audit.unary import UnaryBlock

FloatArray = npt.NDArray[np.float64]
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_FLOAT = 2e-6
_DECIMALS = 0.5e-4 + 1e-8
_BANDS = 5
_MOST_HELD = 10
"""Values of a block of sets up to which all sets are gone through."""
_BELIEF = "ln P(s | y) / P(s)"
Shown = tuple[Field, float, float]
"""A figure of the report, what it should be, and how far it may be from that."""


def as_counted(folder: Path, evidence: Evidence, blocks: Blocks, channel: Channel, manifest: Manifest) -> str:
    """Every share, belief and utility that the report shows is that of the counts. Raises AuditFailure."""
    root = parse("report.json", content(folder / "report.json"))
    step = next((one for one in _STEPS if one * evidence.rows >= manifest.minimum), 1.0)
    looked = 0
    if len(told := root["blocks"].items()) != len(blocks):
        what = "report.json does not tell of every block"
        raise broken("report.json", what, expected=len(blocks), found=len(told))
    if manifest.notion != "mutual-information" and (width := _member(root["measured"], "width")) is not None:
        _near(width, float(manifest.epsilon), 0.0)
    for field, true, room in _figures(root, evidence, blocks, channel, manifest, step):
        if field.value is None:
            continue
        _near(field, true, room)
        looked += 1
    return f"{counted(looked, 'figure')} measured anew, shares to steps of {step:g}"


def _near(field: Field, true: float, room: float) -> None:
    """Raises AuditFailure for a figure that is farther off."""
    if type(field.value) not in (int, float) or not abs(field.value - true) <= room + _FLOAT:
        raise broken(
            field.file, f"{field.path} is not what the counts say", expected=f"{true:.6g}", found=field.value
        )


def _figures(
    root: Field, evidence: Evidence, blocks: Blocks, channel: Channel, manifest: Manifest, step: float
) -> Iterator[Shown]:
    if "step" in root.value:
        yield root["step"], step, 0.0
    width = _member(root["measured"], "width")
    for axis, (field, block) in enumerate(zip(root["blocks"].items(), blocks, strict=True)):
        yield from _block(field, block, _table(evidence, axis), step)
        if width is not None and (told := _member(field, "beliefs")) is not None:
            yield told["bound"], float(width.number()), 0.0
    masses = _masses(evidence, channel)
    if masses is not None:
        yield from _beliefs(root["measured"], masses, step)
    if channel.sets is not None and channel.lip is not None:
        yield from _of_sets(root["blocks"].items()[0], math.log(channel.lip), manifest)
    if (told := _member(root["utility"], "untouched")) is not None:
        yield told, _untouched(evidence, blocks), step / 2


def _masses(evidence: Evidence, channel: Channel) -> FloatArray | None:
    """P(s, y) over all blocks, (c, b); None where there are too many sets."""
    if channel.sets is None:
        masses = channel.table.reshape(len(channel.table), -1).astype(object)
        return np.asarray(masses / masses.sum(), float)
    if len(channel.sets.inputs) > _MOST_HELD:
        return None
    weights = channel.sets.weights[:, 0, :]
    chances = np.asarray(weights / weights[:, :1].sum(), float)
    return np.asarray(_table(evidence, 0) @ chances.T)


def _of_sets(field: Field, lip: float, manifest: Manifest) -> Iterator[Shown]:
    """The one block there is says what the release does."""
    if (leakage := _member(field, "leakage")) is not None:
        yield leakage, lip, 0.0
    stated = manifest.stated
    known = {"mutual_information": stated.public_information, "entropy": stated.entropy}
    for key, true in (known | {"normalised": stated.normalised}).items():
        if (told := _member(field, "utility")) is not None:
            yield told[key], float(true), 0.0


def _untouched(evidence: Evidence, blocks: Blocks) -> float:
    """Share of records expected to be released exactly as they are; a set must hold no other value."""
    chance = evidence.counts.astype(float)
    for axis, block in enumerate(blocks):
        if isinstance(block, UnaryBlock):
            chance *= _alone(block)
            continue
        places = {value: y for y, value in enumerate(block.outputs)}
        kept = np.zeros(block.weights.shape[1:])
        for x, value in enumerate(block.inputs):
            if value in places:
                kept[:, x] = block.weights[places[value], :, x] / float(1 << block.bits)
        chance *= kept[evidence.cells[:, 0] if block.secret else 0, evidence.cells[:, 1 + axis]]
    return float(chance.sum() / evidence.rows)


def _table(evidence: Evidence, axis: int) -> FloatArray:
    """P(s, x) of one block."""
    table = np.zeros((len(evidence.secret.values), len(evidence.blocks[axis].values)))
    np.add.at(table, (evidence.cells[:, 0], evidence.cells[:, 1 + axis]), evidence.counts)
    return np.asarray(table / table.sum())


def _block(field: Field, block: Block | UnaryBlock, joint: FloatArray, step: float) -> Iterator[Shown]:
    prior, matrix = joint.sum(axis=0), _seen(block, joint)
    names = list(block.inputs if isinstance(block, UnaryBlock) else block.outputs)
    finest = max(step, 0.01) if block.secret else 0.001
    kept = np.zeros(len(prior))
    told = _member(field, "shares")
    for x, value in enumerate(block.inputs):
        at = names.index(value) if value in names else None
        after = 0.0 if at is None else float(matrix[at] @ prior)
        kept[x] = 0.0 if at is None else matrix[at, x]
        if told is not None:
            one = told.items()[x]
            yield one["before"], float(prior[x]), step / 2
            yield one["after"], after, step / 2
            yield one["kept"], float(kept[x]), finest / 2
            yield one["true"], float(prior[x] * kept[x] / after) if after else 0.0, step / 2
    if (overall := _member(field, "kept")) is not None:
        yield overall, _alone(block) if isinstance(block, UnaryBlock) else float(prior @ kept), step / 2
    if isinstance(block, UnaryBlock):
        return
    released = _released(block, joint)
    if (leakage := _member(field, "leakage")) is not None:
        yield leakage, _largest(released), 0.0
    yield from _useful(field, prior, matrix)
    yield from _bands(field, released)


def _alone(block: UnaryBlock) -> float:
    """The chance of the set of the true value and no other."""
    whole = 1 << block.bits
    return block.present / whole * (1 - block.absent / whole) ** (len(block.inputs) - 1)


def _member(field: Field, key: str) -> Field | None:
    """Part of an object that the first reports lack."""
    return field[key] if field.value.get(key) is not None else None


def _seen(block: Block | UnaryBlock, joint: FloatArray) -> FloatArray:
    """Q(y|x), (b, a), a mean over s where it is read; of sets, the chance that they hold y."""
    if isinstance(block, UnaryBlock):
        return block.chances.T
    chances = block.weights / float(1 << block.bits)
    if block.secret is None:
        return np.asarray(chances[:, 0, :])
    given = joint / np.maximum(joint.sum(axis=0), np.finfo(float).tiny)
    return np.asarray(np.einsum("ysx,sx->yx", chances, given))


def _released(block: Block, joint: FloatArray) -> FloatArray:
    """P(s, y) of one block."""
    chances = block.weights / float(1 << block.bits)
    every = np.broadcast_to(chances, (chances.shape[0], *joint.shape))
    return np.asarray(np.einsum("ysx,sx->sy", every, joint))


def _largest(masses: FloatArray) -> float:
    """max |ln P(s|y)/P(s)|; infinite where a belief falls to nothing."""
    there = masses[masses.sum(axis=1) > 0][:, masses.sum(axis=0) > 0]
    with np.errstate(divide="ignore"):
        moved = np.log(there / (there.sum(axis=1, keepdims=True) * there.sum(axis=0)))
    return float(np.abs(moved).max())


def _useful(field: Field, prior: FloatArray, matrix: FloatArray) -> Iterator[Shown]:
    told = _member(field, "utility")
    if told is None:
        return
    whole, after = entropy(prior), matrix @ prior
    kept = entropy(after) - sum(p * entropy(column) for p, column in zip(prior, matrix.T, strict=True))
    yield told["mutual_information"], kept, _DECIMALS
    yield told["entropy"], whole, _DECIMALS
    if whole > 0:
        yield told["normalised"], kept / whole, _DECIMALS


def _beliefs(measured: Field, masses: FloatArray, step: float) -> Iterator[Shown]:
    """P(s), the lowest and the highest P(s|y) of the secrets named, most frequent first; and the best guess."""
    prior, whole = masses.sum(axis=1), masses[:, masses.sum(axis=0) > 0]
    after, order = whole / whole.sum(axis=0), _by_number(prior)
    told = _member(measured, "secrets")
    named = [] if told is None else [one for one in told.items() if one.value.get("before") is not None]
    for one, s in zip(named, order, strict=False):
        for key, true in (("before", prior[s]), ("lowest", after[s].min()), ("highest", after[s].max())):
            yield one[key], float(true), _room(float(true), one[key].value, step)
    guess = _member(measured, "guess")
    if guess is not None:
        yield guess["before"], float(prior.max()), step / 2
        yield guess["after"], float(whole.max(axis=0).sum()), step / 2


def _by_number(prior: FloatArray) -> list[int]:
    """Secret values, most frequent first."""
    found: list[int] = np.argsort(-prior.round(12), kind="stable").tolist()
    return found


def _room(true: float, shown: object, step: float) -> float:
    """Half a step, a whole one at the ends, where beliefs are not told apart."""
    if shown in (0, 1):
        return step
    return max(step, 0.01 if 0.09 <= true <= 0.91 else 0.001) / 2


def _bands(field: Field, masses: FloatArray) -> Iterator[Shown]:
    """How each output moves each belief, in fifths of the bound; other changes than that of LIP are not measured."""
    told = _member(field, "beliefs")
    if told is None or told["quantity"].value != _BELIEF or told["unit"].value != "band":
        return
    prior, width = masses.sum(axis=1), float(told["bound"].number())
    order, whole = _by_number(prior), masses[:, masses.sum(axis=0) > 0]
    for row, s in zip(told["change"].items(), order, strict=False):
        for one, mass, total in zip(row.items(), whole[s].tolist(), whole.sum(axis=0).tolist(), strict=True):
            moved = math.log(mass / (total * prior[s])) / width if mass else -1.0
            yield one, _BANDS * min(max(moved, -1.0), 1.0), 0.5
