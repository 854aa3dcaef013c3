"""The form that each mechanism gives its protocols ([DS] section VII, [RLDP] section V), as far as weights show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from funnel.audit.extras.base import Release, array
from funnel.audit.kernel.verdict import Broken
from funnel.cells.record import RULE
from funnel.data.convert import rule_of
from funnel.format.cells import NAME as CELLS
from funnel.format.fields import Label
from funnel.format.manifest import Manifest
from funnel.format.protocol import NAME, Sets, Weights

CLAIM = "mechanism"
TITLE = (
    "protocol.json has the form of the mechanism named (an optimum may have any), reads the secret as that does, and"
    " says in this funnel’s words how values are drawn, as cells.json says how rows are filled in"
)
PRIVATE = False
ANY = ("optimal", "polyopt", "non-robust")
"""Mechanisms whose protocols, being optima, may have any form."""
READERS = ("conditional-reporting",)
"""Those whose protocols read a secret that is not released."""
_NEAR = 1e-3
"""Relative: how far weights on integers may lie from a formula with e^ε."""
BoolArray = npt.NDArray[np.bool_]


def check(opened: Release) -> str:
    """Every block has its mechanism's form; where several mechanisms were compared, the one named kept most.

    Raises Broken.
    """
    manifest, _, found = opened.manifest, opened.blocks, list[str]()
    if manifest.mechanism not in (*ANY, *FORMS):
        raise Broken("release.json", "this mechanism is unknown", " | ".join((*ANY, *FORMS)), manifest.mechanism)
    rule = rule_of(opened.protocol.blocks)
    if opened.protocol.rule != rule:
        raise Broken(NAME, "this is not how values are drawn", rule, opened.protocol.rule)
    if opened.partitioned and opened.cells.rule != RULE:
        raise Broken(CELLS, "this is not how rows are filled in", RULE, opened.cells.rule)
    reads = manifest.mechanism in READERS
    for block in opened.protocol.blocks:
        if (getattr(block, "secret", None) is not None) != reads:
            told = f"{manifest.mechanism} reads {'the secret' if reads else 'the public values alone'}"
            raise _wrong(block, told, "a protocol that does otherwise")
        if isinstance(block, Sets) and manifest.mechanism != "unary-encoding":
            raise _wrong(block, f"a protocol of {manifest.mechanism}", "sets")
        if manifest.mechanism in FORMS:
            found.append(FORMS[manifest.mechanism](block, manifest))
    return "; ".join(dict.fromkeys([manifest.mechanism, *found, *_best(manifest)]))


def _best(manifest: Manifest) -> Iterator[str]:
    """Of the mechanisms compared, none is said to keep more than the one used: what this shows of the others."""
    if manifest.candidates is None:
        return
    yield "what other candidates keep, or why they were passed over, is the publisher’s word"
    kept = {one.mechanism: one.normalised for one in manifest.candidates}
    own, most = kept.get(manifest.mechanism), max((one for one in kept.values() if one is not None), default=None)
    stated = manifest.utility.normalised
    if stated is None and most is None and manifest.mechanism in kept:
        return
    if own is None or own != most or stated is None or abs(own - stated) > manifest.step * (1 + _NEAR):
        what = "the mechanism used is not the one of the candidates that keeps most"
        raise Broken("release.json", what, f"{manifest.mechanism} with {stated} of H(X)", kept)


def unary_encoding(block: Weights | Sets, manifest: Manifest) -> str:
    """A true value is present with chance one half; or every value is released as it is. Raises Broken."""
    if isinstance(block, Sets):
        if 2 * block.present != 1 << block.bits:
            raise _wrong(block, "true values that are present with chance 1/2", f"{block.present} / 2^{block.bits}")
        return "coins of 1/2 for what is true"
    a = len(block.inputs)
    if block.outputs != block.inputs or (array(block)[:, 0, :] != np.eye(a, dtype=np.int64) << block.bits).any():
        raise _wrong(block, "sets, or every value as it is", "other outputs")
    return "every value as it is"


def randomised_response(block: Weights, manifest: Manifest) -> str:
    """Two weights: x itself, and any other value. Raises Broken."""
    _named_alike(block)
    same = _agree(block.outputs, block.inputs)
    keep, other = _one_weight(block, same), _one_weight(block, ~same)
    if other is not None and keep is not None and keep < other:
        raise _wrong(block, "x itself at least as likely as any other value", f"{keep} below {other}")
    return "two weights"


def conditional_reporting(block: Weights, manifest: Manifest) -> str:
    """W[y, s, x] = noise(s, y), and where y = x the same amount more for every s and x. Raises Broken."""
    _named_alike(block)
    same, kept = _agree(block.outputs, block.inputs), set[int]()
    for y, weights in enumerate(array(block) if len(block.inputs) > 1 else ()):
        noise = weights[:, ~same[y]]
        if (noise != noise[:, :1]).any():
            raise _wrong(block, "noise that does not depend on x", f"output {y} depends on it")
        kept |= set((weights[:, same[y]] - noise[:, :1]).ravel().tolist())
    if len(kept) > 1 or min(kept, default=0) < 0:
        raise _wrong(block, "one weight more where y = x", f"weights {sorted(kept)[:4]}")
    return "noise by s, and one weight more for x itself"


def secret_randomised_response(block: Weights, manifest: Manifest) -> str:
    """Three weights, e^ε : e^-ε : 1, for (s, u) unchanged, s kept, s changed; a lock has its own ε. Raises Broken."""
    own, rest = _secret_and_rest(block, manifest)
    same, kept, other = (_one_weight(block, mask) for mask in (own & rest, own & ~rest, ~own))
    pairs = [(high, low) for high, low in ((same, other), (other, kept)) if None not in (high, low)]
    steps = [math.log(high / low) if high and low else math.inf for high, low in pairs]
    # A lock leaves room to drift, and one that is kept may be so under a smaller epsilon, within which it leaks.
    most = max(steps, default=manifest.epsilon)
    epsilon = most if manifest.locked else manifest.epsilon
    larger = most > manifest.epsilon + _NEAR and not (manifest.locked and manifest.locked.fixed)
    if larger or not all(abs(step - epsilon) <= _NEAR for step in steps):  # nor where a weight is zero
        raise _wrong(block, "weights e^ε : 1 : e^-ε up to rounding", str(pairs))
    return f"three weights, e^ε : e^-ε : 1 up to rounding{', by the lock’s own ε' if manifest.locked else ''}"


def independent_reporting(block: Weights, manifest: Manifest) -> str:
    """Four weights, products of one for s and one for u; the more likely where they agree. Raises Broken."""
    own, rest = _secret_and_rest(block, manifest)
    masks = (own & rest, own & ~rest, ~own & rest, ~own & ~rest)
    found = [_one_weight(block, mask) for mask in masks]
    known = [weight for weight in found if weight is not None]
    if found[0] is not None and found[0] < max(known):
        raise _wrong(block, "the record itself at least as likely as any other", str(found))
    if len(known) == 4 and known[0] * known[3] != known[1] * known[2]:
        raise _wrong(block, "weights that are a product over s and u", str(found))
    return "a product of two randomised responses"


def greedy_funnel(block: Weights, manifest: Manifest) -> str:
    """A partition of the inputs, each part named by one of its members ([PF] Algorithm 1). Raises Broken."""
    sure = array(block)[:, 0, :] == 1 << block.bits
    if not sure.any(axis=0).all():
        raise _wrong(block, "every input sent to one output", "chances between 0 and 1")
    if not (sure & _agree(block.outputs, block.inputs)).any(axis=1).all():
        raise _wrong(block, "each output named by one of its members", "another name")
    return "a partition"


def gaussian_funnel(block: Weights, manifest: Manifest) -> str:
    """Outputs are numbers at multiples of one step from each other. Raises Broken."""
    for name, values in zip(block.columns, zip(*block.outputs, strict=True), strict=True):
        try:
            numbers = sorted({Fraction(value or "none") for value in values})
        except (ValueError, ZeroDivisionError):
            raise _wrong(block, "numbers as outputs", f"others in {name}") from None
        gaps = [after - before for before, after in pairwise(numbers)]
        if gaps and any((gap / min(gaps)).denominator != 1 for gap in gaps):
            raise _wrong(block, f"values of {name} on a grid", f"gaps from {min(gaps)} to {max(gaps)}")
    return "numbers on a grid"


def invariant(block: Weights, manifest: Manifest) -> str:
    """Every output is one of the inputs: a value is answered by itself or by another one. Raises Broken."""
    if not set(block.outputs) <= set(block.inputs):
        raise _wrong(block, "inputs as outputs", "others")
    return "true values for true values"


FORMS: dict[str, Callable[..., str]] = {
    "invariant": invariant,
    "unary-encoding": unary_encoding,
    "randomised-response": randomised_response,
    "conditional-reporting": conditional_reporting,
    "secret-randomised-response": secret_randomised_response,
    "independent-reporting": independent_reporting,
    "greedy-funnel": greedy_funnel,
    "gaussian-funnel": gaussian_funnel,
}


def _secret_and_rest(block: Weights, manifest: Manifest) -> tuple[BoolArray, BoolArray]:
    """Where output and input have the same s, and the same u; every (s, u) must be an output."""
    place = [block.columns.index(name) for name in manifest.sensitive if name in block.columns]
    if len(place) != len(manifest.sensitive):
        raise _wrong(block, f"{', '.join(manifest.sensitive)} among the columns", ", ".join(block.columns))
    rest = [index for index in range(len(block.columns)) if index not in place]
    parts = [[_part(labels, some) for labels in (block.outputs, block.inputs)] for some in (place, rest)]
    every = {(s, u) for s in parts[0][1] for u in parts[1][1]}
    if set(zip(parts[0][0], parts[1][0], strict=True)) != every:
        raise _wrong(block, "every pair of a secret value and a rest as output", f"{len(block.outputs)} outputs")
    own, others = (_agree(outputs, inputs) for outputs, inputs in parts)
    return own, others


def _part(labels: tuple[Label, ...], places: list[int]) -> tuple[Label, ...]:
    return tuple(tuple(label[place] for place in places) for label in labels)


def _agree(outputs: tuple[Label, ...], inputs: tuple[Label, ...]) -> BoolArray:
    """Where output and input are the same, (b, a)."""
    return np.array([[y == x for x in inputs] for y in outputs], bool)


def _named_alike(block: Weights) -> None:
    if set(block.outputs) != set(block.inputs):
        raise _wrong(block, "the inputs as outputs", f"{len(block.outputs)} outputs, {len(block.inputs)} inputs")


def _one_weight(block: Weights, mask: BoolArray) -> int | None:
    """The one weight of some pairs (y, x); None where there are none."""
    found = set(np.unique(array(block)[:, 0, :][mask]).tolist())
    if len(found) > 1:
        raise _wrong(block, "one weight for all pairs of a kind", f"{min(found)} to {max(found)}")
    return int(found.pop()) if found else None


def _wrong(block: Weights | Sets, expected: str, found: str) -> Broken:
    what = f"the protocol of {', '.join(block.columns)} is not of its mechanism"
    return Broken(NAME, what, expected, found)
