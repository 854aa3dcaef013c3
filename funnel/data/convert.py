"""Between the nouns and what files say of them: alphabets, protocols and counts as the records of `funnel.format`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from funnel.data.alphabet import Alphabet
from funnel.data.finer import Finer
from funnel.data.joint import IntArray, Joint
from funnel.data.population import Population
from funnel.data.protocol import Protocol
from funnel.data.unary import AnyProtocol, UnaryProtocol
from funnel.format import fields
from funnel.format.known import KnownFile
from funnel.format.population import People, PopulationFile
from funnel.format.protocol import ProtocolFile, Sets, Weights

RULE = (
    "Each record is drawn on its own, and each block of columns on its own. A uniform integer u from 0 to "
    "2^bits - 1 is made for the record; the released value is the first output whose weights, added up from "
    "the first output on, exceed u. So output y has chance weights[y][x] / 2^bits where x is the record's "
    "true value; where `secret` is given, weights[y][s][x] / 2^bits."
)
RULE_OF_SETS = (
    " A block whose kind is unary releases a set of its values. Every possible value has a uniform integer u of its "
    "own, and is in the set where u is below `present` if it is the true value, else where u is below `absent`. Form "
    "`set` writes the set as a JSON list in one column, form `bits` as a 0/1 column for each value."
)


def alphabet_record(alphabet: Alphabet) -> fields.Alphabet:
    """An alphabet as files write it."""
    return fields.Alphabet(alphabet.columns, alphabet.values)


def alphabet_of(record: fields.Alphabet) -> Alphabet:
    """The alphabet in a file; ValueError where it names a value twice."""
    return Alphabet(record.columns, record.values)


def protocol_file(protocols: Iterable[AnyProtocol]) -> ProtocolFile:
    """protocol.json of a release with these protocols, one for each block."""
    blocks = tuple(map(block_record, protocols))
    return ProtocolFile("funnel-protocol/1", rule_of(blocks), blocks)


def rule_of(blocks: Iterable[Weights | Sets]) -> str:
    """How values are drawn for these blocks, in words."""
    return RULE + RULE_OF_SETS if any(isinstance(block, Sets) for block in blocks) else RULE


def protocols_of(file: ProtocolFile) -> tuple[AnyProtocol, ...]:
    """The protocols in protocol.json; ValueError where its weights are those of none."""
    return tuple(map(protocol_of, file.blocks))


def block_record(protocol: AnyProtocol) -> Weights | Sets:
    """One block of protocol.json."""
    inputs = protocol.inputs
    if isinstance(protocol, UnaryProtocol):
        odds = (protocol.bits, protocol.present, protocol.absent, protocol.form)
        return Sets("unary", inputs.columns, inputs.values, *odds)
    secret = None if protocol.secret is None else alphabet_record(protocol.secret)
    weights = protocol.weights if protocol.reads_secret else protocol.weights[:, 0, :]
    outputs = protocol.outputs.values
    return Weights("weights", inputs.columns, secret, inputs.values, outputs, protocol.bits, grid(weights))


def protocol_of(block: Weights | Sets) -> AnyProtocol:
    """Inverse of `block_record`; ValueError where the weights are those of no protocol."""
    inputs = Alphabet(block.columns, block.inputs)
    if isinstance(block, Sets):
        return UnaryProtocol(inputs, block.bits, block.present, block.absent, block.form)
    weights = np.array(block.weights, np.int64)
    secret = None if block.secret is None else alphabet_of(block.secret)
    outputs = Alphabet(block.columns, block.outputs)
    return Protocol(inputs, outputs, block.bits, weights if secret else weights[:, None, :], secret)


def cells_of(joint: Joint) -> IntArray:
    """Rows [s, x_1, …, x_k, count] (m, 2+k) of a joint distribution, in the order of their codes."""
    return in_order(np.column_stack([joint.cells, joint.counts]))


def known_file(seen: Finer) -> KnownFile:
    """known.json of records by what somebody may know of them."""
    rows = in_order(np.column_stack([seen.placed, seen.known + 1, seen.counts]))
    return KnownFile("funnel-known/1", seen.levels, grid(rows))


def finer_of(file: KnownFile, minimum: int) -> Finer:
    """Inverse of `known_file`; ValueError where the rows have another number of codes."""
    rows = np.array(file.cells, np.int64)
    cells = rows[:, :-1].copy()
    cells[:, cells.shape[1] - len(file.levels) :] -= 1
    return Finer(file.levels, cells, rows[:, -1], minimum)


def joint_of(secret: fields.Alphabet, blocks: Iterable[fields.Alphabet], cells: Any) -> Joint:
    """Inverse of `cells_of`; ValueError where the rows are no counts over these alphabets."""
    rows = np.array(cells, np.int64)
    hidden, public = alphabet_of(secret), tuple(map(alphabet_of, blocks))
    seen = [len(np.unique(codes)) for codes in rows.T[:-1]]
    complete = seen == [len(hidden), *map(len, public)]
    return Joint(hidden, public, rows[:, :-1], rows[:, -1], complete)


def population_file(own: str | None, found: Sequence[Population]) -> PopulationFile:
    """population.json of everybody by each of several secrets, one or more; `own` is the release's own predicate."""
    return PopulationFile("funnel-population/1", own, found[0].classes, tuple(map(_people, found)))


def _people(one: Population) -> People:
    bits = one.present.astype(np.int64) @ (1 << np.arange(len(one.classes), dtype=np.int64))
    rows = in_order(np.column_stack([one.cells[:, :1], one.cells[:, 1:] + 1, bits, one.counts]))
    return People(alphabet_record(one.secret), tuple(map(alphabet_record, one.blocks)), grid(rows))


def in_order(rows: IntArray) -> IntArray:
    """Rows of codes (m, k), sorted."""
    return rows[np.lexsort(rows.T[::-1])]


def grid(array: IntArray) -> tuple[Any, ...]:
    """Whole numbers of an array of any shape, as a file's nested tuples."""
    return _tuples(array.tolist())


def _tuples(items: list[Any]) -> tuple[Any, ...]:
    return tuple(map(_tuples, items) if items and isinstance(items[0], list) else items)
