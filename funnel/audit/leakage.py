"""The figures of a release against those of the channel that was really used."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from funnel.audit import unary
from funnel.audit.evidence import Evidence
from funnel.audit.exact import (
    ExactArray,
    at_most_exp,
    largest_step,
    ldp_ratio,
    lip_ratio,
    released_table,
)
from funnel.audit.fields import IntArray
from funnel.audit.findings import Unchecked, broken, counted
from funnel.audit.information import public_entropy, public_information, secret_information
from funnel.audit.manifest import STEP, Manifest
from funnel.audit.own import Own, nats, own_leakage, ratio_text, rounded_up
from funnel.audit.protocols import Blocks
from funnel.audit.unary import UnaryBlock

MOST_CELLS = 8_000_000
"""Four times what a writer may release: beyond that nothing is measured, so nothing is proven."""

_FLOAT = 1e-9
_GRID = 1e-5
"""Nats by which a writer's bounds of a mean over sets may be wider than ours."""


@dataclass(frozen=True, eq=False)
class Channel:
    """The channel released, seen from the secret: T[s, y…], its exact worst ratios (None: infinite), the notion's own.

    Of a single block that releases sets (`sets`) the table is N[s, x]: 2^a sets are not listed.
    """

    table: ExactArray
    lip: Fraction | None
    ldp: Fraction | None
    own: Own
    sets: UnaryBlock | None = None


def measure(evidence: Evidence, blocks: Blocks, manifest: Manifest) -> tuple[Channel, str]:
    """The product of all blocks under the counts. Raises AuditFailure where it is too large to measure."""
    if len(blocks) == 1 and isinstance(blocks[0], UnaryBlock):
        return _of_sets(evidence.dense(), blocks[0], manifest)
    steps = largest_step(evidence.shape, [len(block.outputs) for block in blocks])
    if steps > MOST_CELLS:
        raise broken(
            "protocol.json",
            "the blocks together have too many values to be measured: nothing is proven",
            expected=f"at most {MOST_CELLS} combinations with the secret",
            found=steps,
        )
    table = released_table(evidence.dense(), [block.weights for block in blocks])
    own = own_leakage(evidence, blocks, table, manifest)
    channel = Channel(table, lip_ratio(table), ldp_ratio(table), own)
    told = "" if own.measure in ("lip", "ldp") else f", {own.measure} {own.nats()}"
    return (
        channel,
        f"{counted(table.size, 'cell')}; lip {nats(channel.lip)}, ldp {nats(channel.ldp)}{told} nats",
    )


def _of_sets(counts: IntArray, block: UnaryBlock, manifest: Manifest) -> tuple[Channel, str]:
    """A single block of sets; counts N[s, x]. Raises AuditFailure for a notion that is not measured over sets."""
    lip, ldp = unary.lip_ratio(counts, block), unary.ldp_ratio(counts, block)
    known = {"lip": lambda: lip, "ldp": lambda: ldp, "srlip": lambda: unary.srlip_ratio(counts, block),
             "pml": lambda: unary.pml_ratio(counts, block), "alip": lambda: unary.pml_ratio(counts, block),
             "ldp_x": lambda: unary.value_ratio(block)}  # fmt: skip
    if manifest.measure not in known:
        raise broken("release.json", "this notion is not measured over sets", expected=" | ".join(known),
                     found=manifest.notion)  # fmt: skip
    own = Own(manifest.measure, known[manifest.measure]())
    told = "" if own.measure in ("lip", "ldp") else f", {own.measure} {own.nats()}"
    what = f"sets of {counted(len(block.inputs), 'value')}; lip {nats(lip)}, ldp {nats(ldp)}{told} nats"
    return Channel(counts, lip, ldp, own, block), what


def bound_held(channel: Channel, manifest: Manifest) -> str:
    """The leakage that epsilon bounds is at most epsilon, zero for perfect privacy. Raises AuditFailure."""
    own, epsilon = channel.own, manifest.epsilon
    if not own.within(epsilon):
        raise broken(
            "protocol.json",
            f"the {own.measure} leakage of the channel released breaks the bound of {manifest.notion}",
            expected=f"at most {_limit(epsilon)}",
            found=f"{own.nats()} nats",
        )
    lower = manifest.parameters.lower
    if lower is not None and (lower < epsilon or channel.lip is None or not at_most_exp(channel.lip, lower)):
        raise broken(
            "protocol.json",
            "a belief falls further than the channel released may let it, or the bound of its fall is below epsilon",
            expected=f"lip at most {_limit(lower)}, {_limit(epsilon)} or more",
            found=f"{nats(channel.lip)} nats",
        )
    how = "certified in rationals" if own.measure in ("rldp", "mutual_information") else "in whole numbers"
    return f"{own.measure} {own.nats()} <= {_limit(epsilon)}, {how}"


def as_kept(channel: Channel, evidence: Evidence) -> str:
    """The evidence's figures are the measured ones: ratios exactly, certified bounds nearly. Raises AuditFailure."""
    own = channel.own
    for name, expected, found, same in (
        ("lip", channel.lip, evidence.lip, channel.lip == evidence.lip),
        ("ldp", channel.ldp, evidence.ldp, channel.ldp == evidence.ldp),
        (own.measure, own.value, evidence.own, own.agrees(evidence.own)),
    ):
        if not same:
            raise broken(
                "evidence.json",
                f"leakage.{name} is not the one measured",
                expected=ratio_text(expected),
                found=ratio_text(found),
            )
    told = "" if own.measure in ("lip", "ldp") else f", {own.measure} {own.text()}"
    return f"lip {ratio_text(channel.lip)}, ldp {ratio_text(channel.ldp)}{told}"


def as_published(channel: Channel, manifest: Manifest) -> str:
    """The manifest's leakage is the exact one, rounded up by less than 0.0001. Raises AuditFailure."""
    stated, own = manifest.stated, channel.own
    for name, told, figure, same in (
        ("lip", nats(channel.lip), stated.lip, rounded_up(channel.lip, stated.lip)),
        ("ldp", nats(channel.ldp), stated.ldp, rounded_up(channel.ldp, stated.ldp)),
        (own.measure, own.nats(), stated.own, own.rounded_up(stated.own)),
    ):
        if not same:
            raise broken(
                "release.json",
                f"leakage.{name} is not the exact one rounded up",
                expected=f"{told} rounded up",
                found=None if figure is None else float(figure),
            )
    figures = {"lip": stated.lip, "ldp": stated.ldp} | {own.measure: stated.own}
    return ", ".join(f"{name} {_shown(figure)}" for name, figure in figures.items()) + " nats"


def secret_as_published(channel: Channel, manifest: Manifest) -> str:
    """I(S;Y) of the manifest. Raises AuditFailure."""
    stated, slack = float(manifest.stated.secret_information), _FLOAT
    if channel.sets is None:
        exact = secret_information(channel.table)
    else:
        exact, most = unary.secret_information(channel.table, channel.sets)
        slack += most - exact + _GRID
    if not exact - _FLOAT <= stated <= exact + float(STEP) + slack:
        raise broken(
            "release.json",
            "leakage.mutual_information is not I(S;Y) rounded up",
            expected=f"{exact:.6f} rounded up",
            found=stated,
        )
    return f"I(S;Y) = {exact:.6f} nats, stated {stated}"


def utility_as_published(
    channel: Channel, evidence: Evidence, blocks: Blocks, manifest: Manifest
) -> str | Unchecked:
    """I(X;Y), H(X) and their ratio. Raises AuditFailure."""
    entropy, slack = public_entropy(evidence), _FLOAT
    if channel.sets is None:
        kept = public_information(evidence, blocks, channel.table)
    else:
        kept, most = unary.public_information(channel.table.sum(axis=0) / evidence.rows, channel.sets)
        slack += most - kept + _GRID
    if kept is None:
        return Unchecked(
            "the protocol reads the secret over too many combinations to average in reasonable time"
        )
    stated = manifest.stated
    share = kept / entropy if entropy > 0 else float(stated.normalised)
    for name, exact, found in (
        ("mutual_information", kept, stated.public_information),
        ("entropy", entropy, stated.entropy),
        ("normalised", share, stated.normalised),
    ):
        if abs(exact - float(found)) > float(STEP) / 2 + slack:
            raise broken(
                "release.json",
                f"utility.{name} is not the true one",
                expected=f"{exact:.6f} rounded",
                found=float(found),
            )
    return f"I(X;Y) = {kept:.6f}, H(X) = {entropy:.6f} nats, ratio {share:.6f}"


def _limit(epsilon: Fraction) -> str:
    """`1 nat`, `0.5 nats`."""
    return f"{float(epsilon):.12g} {'nat' if epsilon == 1 else 'nats'}"


def _shown(nats: Fraction | None) -> str:
    return "infinite" if nats is None else str(float(nats))
