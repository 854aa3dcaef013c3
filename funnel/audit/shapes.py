"""The form that each mechanism gives its protocols, as far as the published weights show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from funnel.audit.exact import at_most_exp
from funnel.audit.fields import Label
from funnel.audit.findings import broken
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Block, Blocks
from funnel.audit.unary import as_mechanism
from funnel.errors import AuditFailure

_NEAR = Fraction(1, 1000)
"""Relative: how far weights on integers may lie from a formula with e^ε."""

BoolArray = npt.NDArray[np.bool_]


def randomised_response(block: Block, manifest: Manifest) -> str:
    """Two weights: x itself, and any other value. Raises AuditFailure."""
    _named_alike(block)
    same = _agree(block.outputs, block.inputs)
    keep, other = _one_weight(block, same), _one_weight(block, ~same)
    if other is not None and keep is not None and keep < other:
        raise _wrong(block, "x itself at least as likely as any other value", f"{keep} below {other}")
    return "two weights"


def conditional_reporting(block: Block, manifest: Manifest) -> str:
    """W[y, s, x] = noise(s, y), and where y = x the same amount more for every s and x. Raises AuditFailure."""
    _named_alike(block)
    same = _agree(block.outputs, block.inputs)
    if len(block.inputs) < 2:
        return "one value"
    kept = set()
    for y, weights in enumerate(block.weights):
        noise = weights[:, ~same[y]]
        if (noise != noise[:, :1]).any():
            raise _wrong(block, "noise that does not depend on x", f"output {y} depends on it")
        kept |= set((weights[:, same[y]] - noise[:, :1]).ravel().tolist())
    if len(kept) > 1 or min(kept) < 0:
        raise _wrong(block, "one weight more where y = x", f"weights {sorted(kept)[:4]}")
    return "noise by s, and one weight more for x itself"


def secret_randomised_response(block: Block, manifest: Manifest) -> str:
    """Three weights, e^ε : e^-ε : 1, for (s, u) unchanged, s kept, s changed. Raises AuditFailure."""
    own, rest = _secret_and_rest(block, manifest)
    same, kept, other = (_one_weight(block, mask) for mask in (own & rest, own & ~rest, ~own))
    for high, low in ((same, other), (other, kept)):
        if high is not None and low is not None and not _e_to(manifest.epsilon, high, low):
            raise _wrong(block, "weights e^ε : 1 : e^-ε up to rounding", f"{high} and {low}")
    return "three weights, e^ε : e^-ε : 1 up to rounding"


def independent_reporting(block: Block, manifest: Manifest) -> str:
    """Four weights, products of one for s and one for u; the more likely where they agree. Raises AuditFailure."""
    own, rest = _secret_and_rest(block, manifest)
    both, first, second, neither = (
        _one_weight(block, mask) for mask in (own & rest, own & ~rest, ~own & rest, ~own & ~rest)
    )
    found = (both, first, second, neither)
    known = [weight for weight in found if weight is not None]
    if both is not None and both < max(known):
        raise _wrong(block, "the record itself at least as likely as any other", str(found))
    if len(known) == 4 and both * neither != first * second:  # type: ignore[operator]
        raise _wrong(block, "weights that are a product over s and u", str(found))
    return "a product of two randomised responses"


def greedy_funnel(block: Block, manifest: Manifest) -> str:
    """A partition of the inputs, each part named by one of its members. Raises AuditFailure."""
    whole = 1 << block.bits
    sure = block.weights[:, 0, :] == whole
    if not sure.any(axis=0).all():
        raise _wrong(block, "every input sent to one output", "chances between 0 and 1")
    own = _agree(block.outputs, block.inputs)
    if not (sure & own).any(axis=1).all():
        lost = int((~(sure & own).any(axis=1)).argmax())
        raise _wrong(block, "each output named by one of its members", f"{block.outputs[lost]} is not")
    return "a partition"


def gaussian_funnel(block: Block, manifest: Manifest) -> str:
    """Outputs are numbers at multiples of one step from each other. Raises AuditFailure."""
    for name, values in zip(block.columns, zip(*block.outputs, strict=True), strict=True):
        numbers = sorted({_number(block, value) for value in values})
        gaps = [after - before for before, after in pairwise(numbers)]
        if gaps and any((gap / min(gaps)).denominator != 1 for gap in gaps):
            raise _wrong(block, f"values of {name} on a grid", f"gaps from {min(gaps)} to {max(gaps)}")
    return "numbers on a grid"


SHAPES: dict[str, Callable[[Block, Manifest], str]] = {
    "randomised-response": randomised_response,
    "conditional-reporting": conditional_reporting,
    "secret-randomised-response": secret_randomised_response,
    "independent-reporting": independent_reporting,
    "greedy-funnel": greedy_funnel,
    "gaussian-funnel": gaussian_funnel,
}
"""Mechanisms whose protocols have a form; the others, being optima, may have any."""


def _secret_and_rest(block: Block, manifest: Manifest) -> tuple[BoolArray, BoolArray]:
    """Where output and input have the same s, and the same u; every (s, u) must be an output."""
    columns, hidden = block.columns, manifest.sensitive
    if not set(hidden) <= set(columns):
        raise _wrong(block, f"{', '.join(hidden)} among the columns", ", ".join(columns))
    place = [columns.index(name) for name in hidden]
    rest = [index for index in range(len(columns)) if index not in place]
    parts = [[_part(labels, places) for labels in (block.outputs, block.inputs)] for places in (place, rest)]
    everything = {(s, u) for s in parts[0][1] for u in parts[1][1]}
    if set(zip(parts[0][0], parts[1][0], strict=True)) != everything:
        raise _wrong(
            block, "every pair of a secret value and a rest as output", f"{len(block.outputs)} outputs"
        )
    own, others = (_agree(outputs, inputs) for outputs, inputs in parts)
    return own, others


def _part(labels: tuple[Label, ...], places: list[int]) -> tuple[Label, ...]:
    return tuple(tuple(label[place] for place in places) for label in labels)


def _agree(outputs: tuple[Label, ...], inputs: tuple[Label, ...]) -> BoolArray:
    """Where output and input are the same, (b, a)."""
    codes = {label: code for code, label in enumerate(dict.fromkeys((*outputs, *inputs)))}
    y, x = (np.array([codes[label] for label in labels]) for labels in (outputs, inputs))
    return np.asarray(y[:, None] == x[None, :])


def _named_alike(block: Block) -> None:
    if set(block.outputs) != set(block.inputs):
        raise _wrong(
            block, "the inputs as outputs", f"{len(block.outputs)} outputs, {len(block.inputs)} inputs"
        )


def _one_weight(block: Block, mask: BoolArray) -> int | None:
    """The one weight of some pairs (y, x); None where there are none."""
    found = set(np.unique(block.weights[:, 0, :][mask]).tolist())
    if len(found) > 1:
        raise _wrong(block, "one weight for all pairs of a kind", f"{min(found)} to {max(found)}")
    return int(found.pop()) if found else None


def _e_to(epsilon: Fraction, high: int, low: int) -> bool:
    """Whether high : low is e^ε : 1, nearly."""
    if not low:
        return False
    ratio = Fraction(high, low)
    return at_most_exp(ratio * (1 - _NEAR), epsilon) and not at_most_exp(
        max(ratio * (1 + _NEAR), Fraction(1)), epsilon
    )


def _number(block: Block, value: str | None) -> Fraction:
    try:
        return Fraction(value or "none")
    except (ValueError, ZeroDivisionError):
        raise _wrong(block, "numbers as outputs", str(value)) from None


def _wrong(block: Block, expected: str, found: str) -> AuditFailure:
    where = ", ".join(block.columns)
    return broken(
        "protocol.json", f"the protocol of {where} is not of its mechanism", expected=expected, found=found
    )


def shapes(blocks: Blocks, manifest: Manifest) -> Iterator[str]:
    """What the form of each block was found to be, nothing for mechanisms without one. Raises AuditFailure."""
    shape = SHAPES.get(manifest.mechanism)
    for block in blocks:
        if told := as_mechanism(block, manifest.mechanism):
            yield told
        elif shape is not None and isinstance(block, Block):
            yield shape(block, manifest)
