"""Between nouns and files: what is written comes back, in one spelling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, UnaryProtocol
from funnel.data.convert import (
    alphabet_record,
    block_record,
    cells_of,
    joint_of,
    protocol_file,
    protocols_of,
)
from funnel.format import schema
from funnel.format.protocol import ProtocolFile
from tests.support.strategies import many_block_joints, protocols


@given(st.data())
def test_protocols_come_back_weight_by_weight(data):
    joint = data.draw(many_block_joints())
    written = protocol_file([data.draw(protocols(joint, j)) for j in range(len(joint.blocks))])
    raw = schema.write(written)
    read = schema.read(ProtocolFile, "protocol.json", raw)
    assert read == written
    assert schema.write(protocol_file(protocols_of(read))) == raw


@pytest.mark.parametrize("form", ["set", "bits"])
def test_sets_come_back(form):
    protocol = UnaryProtocol(Alphabet(("x", "y"), (("a", None), (None, "b"))), 4, 8, 3, form)
    (again,) = protocols_of(protocol_file([protocol]))
    assert block_record(again) == block_record(protocol)


@given(many_block_joints(), st.randoms(use_true_random=False))
def test_counts_are_written_in_one_order_and_come_back(joint, chance):
    order = list(range(len(joint.counts)))
    chance.shuffle(order)
    shuffled = Joint(joint.secret, joint.blocks, joint.cells[order], joint.counts[order])
    cells = cells_of(shuffled)
    assert cells.tolist() == cells_of(joint).tolist() == sorted(cells.tolist())
    blocks = [alphabet_record(one) for one in joint.blocks]
    again = joint_of(alphabet_record(joint.secret), blocks, cells.tolist())
    assert np.array_equal(again.dense(), joint.dense())
    assert again.complete


def test_a_value_without_records_stays_one():
    secret, block = Alphabet(("s",), (("p",), ("q",))), Alphabet(("x",), (("a",), ("b",)))
    found = joint_of(alphabet_record(secret), [alphabet_record(block)], [[0, 0, 3], [1, 0, 2]])
    assert not found.complete
    assert found.table().tolist() == [[3, 0], [2, 0]]
