"""The figures of a release against those of the channel that was really used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from funnel.audit.evidence import Evidence
from funnel.audit.exact import (
    ExactArray,
    at_most_exp,
    exp_below,
    largest_step,
    ldp_ratio,
    lip_ratio,
    released_table,
)
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.information import public_entropy, public_information, secret_information
from funnel.audit.manifest import STEP, Manifest
from funnel.audit.protocols import Blocks

MOST_CELLS = 8_000_000
"""Four times what a writer may release: beyond that nothing is measured, so nothing is proven."""

_SLACK = Fraction(1, 10**12)
_FLOAT = 1e-9


@dataclass(frozen=True, eq=False)
class Channel:
    """The channel released, seen from the secret: T[s, y…] and its exact worst ratios (None: infinite)."""

    table: ExactArray
    lip: Fraction | None
    ldp: Fraction | None


def measure(evidence: Evidence, blocks: Blocks) -> tuple[Channel, str]:
    """The product of all blocks under the counts. Raises AuditFailure where it is too large to measure."""
    steps = largest_step(evidence.shape, [len(block.outputs) for block in blocks])
    if steps > MOST_CELLS:
        raise broken(
            "protocol.json",
            "the blocks together have too many values to be measured: nothing is proven",
            expected=f"at most {MOST_CELLS} combinations with the secret",
            found=steps,
        )
    table = released_table(evidence.dense(), [block.weights for block in blocks])
    channel = Channel(table, lip_ratio(table), ldp_ratio(table))
    return channel, f"{counted(table.size, 'cell')}; lip {_nats(channel.lip)}, ldp {_nats(channel.ldp)} nats"


def bound_held(channel: Channel, manifest: Manifest) -> str:
    """The measured ratio is at most e^ε, or one for perfect privacy. Raises AuditFailure."""
    name = "ldp" if manifest.notion == "ldp" else "lip"
    ratio = channel.ldp if name == "ldp" else channel.lip
    epsilon = manifest.epsilon
    if ratio is None or not at_most_exp(ratio, epsilon):
        raise broken(
            "protocol.json",
            f"the {name} leakage of the channel released breaks the bound of {manifest.notion}",
            expected=f"at most {_limit(epsilon)}",
            found=f"{_nats(ratio)} nats",
        )
    return f"{name} {_nats(ratio)} <= {_limit(epsilon)}, in whole numbers"


def as_kept(channel: Channel, evidence: Evidence) -> str:
    """The evidence's ratios are the measured ones. Raises AuditFailure."""
    for name, expected, found in (("lip", channel.lip, evidence.lip), ("ldp", channel.ldp, evidence.ldp)):
        if expected != found:
            raise broken(
                "evidence.json",
                f"leakage.{name} is not the ratio measured",
                expected=_text(expected),
                found=_text(found),
            )
    return f"lip {_text(channel.lip)}, ldp {_text(channel.ldp)}"


def as_published(channel: Channel, manifest: Manifest) -> str:
    """The manifest's lip and ldp are the exact ones, rounded up by less than 0.0001. Raises AuditFailure."""
    stated = manifest.stated
    for name, ratio, nats in (("lip", channel.lip, stated.lip), ("ldp", channel.ldp, stated.ldp)):
        if not _rounded_up(ratio, nats):
            raise broken(
                "release.json",
                f"leakage.{name} is not the exact one rounded up",
                expected=f"{_nats(ratio)} rounded up",
                found=None if nats is None else float(nats),
            )
    return f"lip {_shown(stated.lip)}, ldp {_shown(stated.ldp)} nats"


def _rounded_up(ratio: Fraction | None, nats: Fraction | None) -> bool:
    """ln(ratio) <= nats < ln(ratio) + 0.0001 (+ 1e-12), decided without a logarithm."""
    if ratio is None or nats is None:
        return ratio is None and nats is None
    floor = nats - STEP - _SLACK
    return at_most_exp(ratio, nats) and (floor <= 0 or not _above(floor, ratio))


def _above(nats: Fraction, ratio: Fraction) -> bool:
    """Whether e^nats > ratio for certain."""
    return exp_below(min(nats, Fraction(ratio.numerator.bit_length() + 1))) > ratio


def secret_as_published(channel: Channel, manifest: Manifest) -> str:
    """I(S;Y) of the manifest. Raises AuditFailure."""
    exact, stated = secret_information(channel.table), float(manifest.stated.secret_information)
    if not exact - _FLOAT <= stated <= exact + float(STEP) + _FLOAT:
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
    kept, entropy = public_information(evidence, blocks, channel.table), public_entropy(evidence)
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
        if abs(exact - float(found)) > float(STEP) / 2 + _FLOAT:
            raise broken(
                "release.json",
                f"utility.{name} is not the true one",
                expected=f"{exact:.6f} rounded",
                found=float(found),
            )
    return f"I(X;Y) = {kept:.6f}, H(X) = {entropy:.6f} nats, ratio {share:.6f}"


def upper_bound(manifest: Manifest) -> Unchecked:
    """A stated upper bound is at least what was reached; that nothing beats it, only the solver can show."""
    bound, reached = manifest.stated.upper_bound, manifest.stated.normalised
    if bound is None:
        return Unchecked(NOT_CLAIMED + "no upper bound is stated")
    if bound < reached - STEP:
        raise broken(
            "release.json",
            "utility.upper_bound is below what the release reached",
            expected=f"at least {float(reached)}",
            found=float(bound),
        )
    return Unchecked(
        "the solver's certificate is not part of a release; it is about usefulness, not about privacy"
    )


def _nats(ratio: Fraction | None) -> str:
    """ln(ratio) for a reader."""
    if ratio is None:
        return "infinite"
    return f"{math.log(ratio.numerator) - math.log(ratio.denominator):.6f}"


def _limit(epsilon: Fraction) -> str:
    """`1 nat`, `0.5 nats`."""
    return f"{float(epsilon):.12g} {'nat' if epsilon == 1 else 'nats'}"


def _text(ratio: Fraction | None) -> str:
    return "inf" if ratio is None else f"{ratio.numerator}/{ratio.denominator}"


def _shown(nats: Fraction | None) -> str:
    return "infinite" if nats is None else str(float(nats))
