"""The coins of unary encoding: each by its chance, apart from each other, and the same for the same record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from funnel.data import Alphabet, Joint, UnaryProtocol
from funnel.draw import tally as module
from funnel.draw.draw import CHUNK, Drawer
from funnel.draw.keys import one_time_key
from funnel.draw.tally import Tally
from funnel.errors import PlanError, SourceError
from tests.support.samples import fixed_key

ROWS = 40_000


def joint_of(counts: list[int]) -> Joint:
    """A secret that says nothing, beside these counts of x."""
    return Joint.from_table(np.array([counts, counts]))


def drawn(
    joint: Joint, protocol: UnaryProtocol, *, permanent: bool = True, key: str = "a"
) -> tuple[pa.RecordBatch, np.ndarray]:
    """One batch of all records of a joint in a fixed shuffle, and its sets."""
    x = np.repeat(joint.cells[:, 1], joint.counts)
    np.random.default_rng(5).shuffle(x)
    batch = pa.record_batch({"entity": pa.array(np.arange(len(x))), "x0": pa.array(x)})
    drawer = Drawer([protocol], fixed_key(key) if permanent else one_time_key(), permanent=permanent)
    return batch, drawer.draw(batch).column("y0").to_numpy().copy()


def tallied(protocol: UnaryProtocol, batch: pa.RecordBatch, sets: np.ndarray) -> Tally:
    tally = Tally([protocol])
    tally.add(batch, pa.record_batch({"y0": pa.array(sets)}))
    return tally


JOINT = joint_of([9000, 6000, 4000, 900, 100])
COINS = UnaryProtocol(JOINT.blocks[0], 16, 1 << 15, 9_000)


@pytest.mark.parametrize("permanent", [True, False])
def test_honest_coins_pass_and_fall_by_their_chances(permanent):
    batch, sets = drawn(JOINT, COINS, permanent=permanent)
    tally = tallied(COINS, batch, sets)
    tally.check(JOINT)
    x = batch.column("x0").to_numpy()
    for bit in range(5):
        ones = COINS.outputs.holds(sets, bit)
        for own, share in ((x == bit, 1 / 2), (x != bit, 9_000 / (1 << 16))):
            far = abs(ones[own].mean() - share) / np.sqrt(share * (1 - share) / own.sum())
            assert far < 5
        assert tally.tables[0][:, bit].sum() == ones.sum()
    assert tally.tables[0][:, 5].tolist() == JOINT.table().sum(axis=0).tolist()


def test_the_tally_counts_every_set_whatever_the_batches():
    wide = joint_of([700] * 30)
    protocol = UnaryProtocol(wide.blocks[0], 8, 128, 30)
    batch, sets = drawn(wide, protocol)
    tally = Tally([protocol])
    for start in range(0, len(sets), 5_000):
        part = pa.record_batch({"y0": pa.array(sets[start : start + 5_000])})
        tally.add(batch.slice(start, 5_000), part)
    codes, counts = tally.released
    assert (codes[:, 0].tolist(), counts.tolist()) == tuple(
        part.tolist() for part in np.unique(sets, return_counts=True)
    )
    tally.check(wide)


def test_a_record_answers_alike_whatever_stands_beside_it():
    batch, sets = drawn(JOINT, COINS)
    order = np.random.default_rng(1).permutation(len(sets))[: CHUNK + 7]
    again = Drawer([COINS], fixed_key(), permanent=True).draw(batch.take(pa.array(order)))
    assert (again.column("y0").to_numpy() == sets[order]).all()
    other = drawn(JOINT, COINS, key="b")[1]
    assert (other != sets).mean() > 0.5


def test_a_new_category_leaves_the_other_coins_as_they_were():
    values = JOINT.blocks[0].values
    more = Alphabet(("X",), (("new",), *values))
    wider = UnaryProtocol(more, 16, 1 << 15, 9_000)
    batch, sets = drawn(JOINT, COINS)
    shifted = pa.record_batch(
        {"entity": batch.column("entity"), "x0": pa.array(batch.column("x0").to_numpy() + 1)}
    )
    again = Drawer([wider], fixed_key(), permanent=True).draw(shifted).column("y0").to_numpy()
    assert (again & 0b11111 == sets).all()


def test_text_and_number_name_one_person():
    batch, sets = drawn(JOINT, COINS)
    texts = pa.record_batch({"entity": batch.column("entity").cast(pa.string()), "x0": batch.column("x0")})
    same = Drawer([COINS], fixed_key(), permanent=True).draw(texts).column("y0").to_numpy()
    assert (same == sets).all()


def test_rows_that_moved_are_the_sources_fault():
    batch, sets = drawn(JOINT, COINS)
    with pytest.raises(SourceError) as caught:
        tallied(COINS, batch.slice(1), sets[1:]).check(JOINT)
    assert caught.value.code == "source-changed"


def test_more_distinct_sets_than_can_be_audited_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_DISTINCT", 20)
    batch, sets = drawn(JOINT, COINS)
    with pytest.raises(PlanError) as caught:
        tallied(COINS, batch, sets).check(JOINT)
    assert "`groups`" in caught.value.advice
