"""Several releases about the same records, as one channel: what their protocols give away together.

Two draws for the same record are either independent (another key, another block of columns, fresh noise) or they
share their uniform number: permanent draws of one block under one key for one value of x. With inverse distribution
functions protocol i then releases y_i where u lies in an interval of [0, 2^bits_i), so the joint law of (y_1, …, y_m)
given x is the overlap of these intervals. At most Σ b_i overlaps are not empty, and all lengths are whole numbers
once every protocol is counted in parts of 2^-max(bits). A protocol that is repeated adds nothing.

Records keep their x. What a record answers under another value of x has a uniform of its own, and so has what it
answered under the name `other` before its value was known (`overlap`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.data.alphabet import Alphabet, Label
from funnel.data.protocol import Protocol
from funnel.data.protocol import spread as widest
from funnel.data.unary import AnyProtocol, UnaryProtocol
from funnel.measure.overlap import (
    MOST_BITS,
    Input,
    Law,
    all_inputs,
    drawn_as,
    merged,
    overlap,
)

MOST_PRODUCTS = 1 << 19
"""Chances that are multiplied to join two independent parts of one block."""
_MOST_PATTERNS = 24


@dataclass(frozen=True, eq=False)
class JointAnswers(Protocol):
    """A protocol whose outputs are tuples of answers, told by number; weights may need more than 62 bits.

    Tuples that say the same about every input (proportional rows) are one output: no measure of leakage can tell them
    apart. For measuring only: nothing is drawn from it.
    """

    def __post_init__(self) -> None:
        shape = (len(self.outputs), len(self.secret) if self.secret else 1, len(self.inputs))
        if self.weights.shape != shape or (self.weights.sum(axis=0) != 1 << self.bits).any():
            raise ValueError("the weights of a composed protocol do not sum to one")


def distinct(protocols: Sequence[AnyProtocol]) -> list[AnyProtocol]:
    """Each protocol once, in order."""
    return list({one.fingerprint: one for one in protocols}.values())


def composed(
    inputs: Alphabet, secret: Alphabet, groups: Sequence[Sequence[AnyProtocol]]
) -> AnyProtocol | None:
    """What the draws of one block for `inputs` release together, as one protocol; None where that is too large.

    The protocols of one group share their uniform, and read the same: the values of `secret` or not. Groups are
    independent. A value of x that a protocol does not know draws nothing there, which is an output of its own: that
    is at least as much as is learnt from records that were in fewer releases (data processing).
    """
    reduced = [distinct(group) for group in groups]
    if len(reduced) == 1 and len(reduced[0]) == 1:
        (only,) = reduced[0]
        if only.inputs == inputs and only.secret in (None, secret):
            return only
    reads = any(group[0].reads_secret for group in reduced)
    law: Law | None = None
    known: dict[object, Law | None] = {}
    for group in reduced:
        name = tuple(one.fingerprint for one in group)
        if name not in known:
            known[name] = _widened(_law(group, inputs, secret), group[0].reads_secret, reads, len(secret))
        part = known[name]
        law = part if law is None else joined(law, part)
        if part is None or law is None:
            return None
    return None if law is None else _as_protocol(law, inputs, secret if reads else None)


def _as_protocol(law: Law, inputs: Alphabet, secret: Alphabet | None) -> JointAnswers:
    rows = law.rows.reshape(len(law.rows), len(secret) if secret else 1, len(inputs))
    names = Alphabet(inputs.columns, tuple((str(y),) * len(inputs.columns) for y in range(len(rows))))
    return JointAnswers(inputs, names, law.bits, rows, secret)


def _law(group: Sequence[AnyProtocol], inputs: Alphabet, secret: Alphabet) -> Law | None:
    """The tuples that one group releases for the current inputs."""
    hidden: Sequence[Label | None] = secret.values if group[0].reads_secret else (None,)
    asked = [(s, x) for s in hidden for x in inputs.values]
    plain = [one for one in group if isinstance(one, Protocol)]
    if len(plain) == len(group):
        law = overlap(plain, asked)
        return None if law is None else Law(merged(law.rows), law.bits)
    return _sets([one for one in group if isinstance(one, UnaryProtocol)], inputs)


def _widened(law: Law | None, reads: bool, wanted: bool, secrets: int) -> Law | None:
    """The same for every value of the secret, where other parts of the block read it."""
    if law is None or reads or not wanted:
        return law
    return Law(np.tile(law.rows, (1, secrets)), law.bits)


def joined(one: Law, other: Law | None) -> Law | None:
    """Both of two independent laws for the same inputs; None where that is too large."""
    if other is None or len(one.rows) * other.rows.size > MOST_PRODUCTS or one.bits + other.bits > MOST_BITS:
        return None
    bits = one.bits + other.bits
    kind = np.int64 if bits <= 62 else object
    rows = one.rows.astype(kind)[:, None, :] * other.rows.astype(kind)[None, :, :]
    return Law(merged(rows.reshape(-1, rows.shape[-1])), bits)


def _sets(group: Sequence[UnaryProtocol], inputs: Alphabet) -> Law | None:
    """What unary encoding releases, coin by coin: every value has a uniform of its own, shared by the group."""
    if any(one.inputs != inputs for one in group):
        return None
    coin = _coin(group)
    law = None if coin is None else Law(np.ones((1, len(inputs)), np.int64), 0)
    for x in range(len(inputs)):
        if coin is None or law is None:
            return None
        rows = np.repeat(coin.rows[:, 1:], len(inputs), axis=1)
        rows[:, x] = coin.rows[:, 0]
        law = joined(law, Law(rows, coin.bits))
    return law


def _coin(group: Sequence[UnaryProtocol]) -> Law | None:
    """One coin under all protocols of a group: (r, 2), for the true value and for another."""
    return overlap([_two_sided(one) for one in group], [(None, ("own",)), (None, ("other",))])


def _two_sided(protocol: UnaryProtocol) -> Protocol:
    """Whether a coin falls on its face, for the record's own value and for another."""
    whole = 1 << protocol.bits
    faces = [protocol.present, protocol.absent]
    weights = np.array([faces, [whole - face for face in faces]], np.int64)
    sides, told = Alphabet(("coin",), (("own",), ("other",))), Alphabet(("coin",), (("1",), ("0",)))
    return Protocol(sides, told, protocol.bits, weights[:, None, :])


def spread(group: Sequence[AnyProtocol], asked: Sequence[Input] | None = None) -> Fraction | None:
    """max P(y|x)/P(y|x') over tuples y of protocols that share their uniform: e^ε of the usual LDP (None: infinite).

    x and x' are `asked` (or all that any of the protocols knows), and y is what the protocols release that know both:
    two records are compared that were in the same releases. Of independent groups the logarithms add up, and that
    sum bounds every notion here, whatever the joint distribution: P(y|s) and P(y) are means of P(y|x).
    None also where the overlap is too large to be looked at.
    """
    reduced = distinct(group)
    if any(isinstance(one, UnaryProtocol) for one in reduced):
        return _spread_of_sets([one for one in reduced if isinstance(one, UnaryProtocol)])
    plain = [one for one in reduced if isinstance(one, Protocol)]
    asked = list(dict.fromkeys(x for one in plain for x in all_inputs(one))) if asked is None else asked
    knowing = [
        {x for x, name in zip(asked, drawn_as(one, asked), strict=True) if name is not None} for one in plain
    ]
    patterns = {x: frozenset(i for i, known in enumerate(knowing) if x in known) for x in asked}
    kinds = set(patterns.values())
    if len(kinds) > _MOST_PATTERNS:
        return None
    worst = Fraction(1)
    for releases in {one & other for one in kinds for other in kinds} - {frozenset()}:
        inside = [x for x, pattern in patterns.items() if releases <= pattern]
        ratio = _widest([plain[i] for i in sorted(releases)], inside)
        if ratio is None:
            return None
        worst = max(worst, ratio)
    return worst


def _widest(group: Sequence[Protocol], asked: Sequence[Input]) -> Fraction | None:
    """The largest ratio between inputs that all of a group know; of one protocol, however large it is, by itself."""
    if len(group) == 1:
        (one,) = group
        places = {name: code for code, name in enumerate(all_inputs(one))}
        codes = [places[name] for name in drawn_as(one, asked) if name is not None]
        return widest(one.weights.reshape(len(one.weights), -1)[:, codes])
    law = overlap(group, asked)
    return None if law is None else widest(law.rows)


def _spread_of_sets(group: Sequence[UnaryProtocol]) -> Fraction | None:
    """Between x and x' only their two coins differ, one each way."""
    if all(len(one.inputs) < 2 for one in group):
        return Fraction(1)
    coin = _coin(group)
    if coin is None or (coin.rows == 0).any():
        return None
    ratios = [Fraction(int(own), int(other)) for own, other in coin.rows]
    return max(ratios) / min(ratios)


def identity(inputs: Alphabet) -> Protocol:
    """X released as it is."""
    return Protocol(inputs, inputs, 0, np.eye(len(inputs), dtype=np.int64)[:, None, :])


def silence(inputs: Alphabet) -> Protocol:
    """Nothing released of X."""
    nothing = Alphabet(inputs.columns, ((None,) * len(inputs.columns),))
    return Protocol(inputs, nothing, 0, np.ones((1, 1, len(inputs)), np.int64))


def measurable(secrets: int, public: Sequence[int], protocols: Sequence[AnyProtocol], most: int) -> bool:
    """Whether the blocks side by side take at most `most` products to be measured, of numbers that are not too long."""
    if len(protocols) == 1 and protocols[0].uniforms == "each":
        return True
    steps, before, bits = 0, secrets, 0
    for place, (one, values) in enumerate(zip(protocols, public, strict=True)):
        steps += before * len(one.outputs) * values * math.prod(public[place + 1 :])
        before *= len(one.outputs)
        bits += one.bits * (values if one.uniforms == "each" else 1)
    return steps <= most and bits <= MOST_BITS
