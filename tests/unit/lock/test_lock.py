"""The lock's text, tonight's records in its alphabets, and how far they have moved."""

from __future__ import annotations

import errno
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, UnaryProtocol
from funnel.data.arrange import together
from funnel.data.convert import alphabet_record, block_record, cells_of, joint_of
from funnel.errors import LockError, PolicyError, ReleaseError, SourceError
from funnel.format.sealed import SealError, sealed, unsealed
from funnel.lock.drift import drift, words
from funnel.lock.lock import Lock, parse_lock, protocols_digest, read_lock, write_lock
from funnel.lock.pinned import counts_hash, keep_counts, kept_counts
from funnel.lock.relabel import relabel
from funnel.policy import loads
from tests.support.samples import fixed_key, protocol
from tests.support.strategies import joints, many_block_joints, protocols

NAMES = st.from_regex(r"[a-z][a-z_.-]{0,9}", fullmatch=True).filter(lambda name: name != "checksum")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
FACTS = st.recursive(
    st.dictionaries(NAMES, VALUES | st.lists(VALUES, min_size=1, max_size=3).map(tuple), max_size=4),
    lambda inner: st.dictionaries(NAMES, inner.filter(bool) | VALUES, max_size=3),
    max_leaves=8,
)


def lists(value: object) -> object:
    """Tuples as the lists that are read."""
    if isinstance(value, dict):
        return {key: lists(one) for key, one in value.items()}
    return [lists(one) for one in value] if isinstance(value, list | tuple) else value


@given(FACTS.filter(bool), st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))))
def test_facts_come_back(facts, comment):
    assert unsealed(sealed(facts, comment))[0] == lists(facts)


@given(FACTS.filter(bool), st.data())
def test_any_changed_letter_breaks_the_seal(facts, data):
    text = sealed(facts, "a comment")
    place = data.draw(st.integers(0, len(text) - 2))
    letter = data.draw(st.sampled_from(["a", "0", " ", "\n"]))
    assume(text[place] != letter)
    with pytest.raises(SealError):
        unsealed(text[:place] + letter + text[place + 1 :])
    with pytest.raises(SealError):
        unsealed(text[:place])


def told(joint: Joint) -> tuple:
    """A joint distribution as plain values."""
    return joint.secret, joint.blocks, cells_of(joint).tolist()


def lock_with(*pinned, **changes) -> Lock:
    whole = Lock(
        policy="night", made="2026-11-21T00:00:00Z", funnel="1", parameters={},
        terms={"sensitive": ["s"], "public": [[{"name": "x"}]]}, mechanism="optimal", room=0.05,
        shares=(1.0,), budgets=(0.95,), rows=100,
        leakage={"lip": 0.9, "ldp": None}, utility={"normalised": 0.5}, secret=(("s1",), ("ü\n😀",)), secrets=3,
        counts=None, protocols=pinned,
    )  # fmt: skip
    return replace(whole, **changes)


@given(st.data())
def test_a_lock_comes_back_weight_by_weight(data):
    """Whatever the protocol is, reading the secret or not; the text says the same to any reader of YAML."""
    joint = data.draw(many_block_joints())
    pinned = [data.draw(protocols(joint, j)) for j in range(len(joint.blocks))]
    text = lock_with(*pinned).text()
    again = parse_lock(text)
    assert again.text() == text
    assert protocols_digest(again.protocols) == protocols_digest(pinned)
    assert [block_record(one) for one in again.protocols] == [block_record(one) for one in pinned]
    assert again.secret == (("s1",), ("ü\n😀",))
    facts = yaml.safe_load(text)
    assert facts["secret"] == [["s1"], ["ü\n😀"]]
    assert [len(facts[f"block.{j}"]["inputs"]) for j in range(len(pinned))] == list(joint.shape[1:])


def test_sets_are_pinned_too():
    pinned = UnaryProtocol(Alphabet(("x",), (("a",), (None,))), 4, 8, 3, "bits")
    assert block_record(parse_lock(lock_with(pinned).text()).protocols[0]) == block_record(pinned)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace("funnel-lock/1", "funnel-lock/2"), "checksum"),
        (lambda text: "", "checksum"),
        (lambda text: sealed({"format": "funnel-lock/2"}, ""), "format"),
        (lambda text: sealed({"format": "funnel-lock/1"}, ""), "does not hold"),
    ],
)
def test_what_is_no_lock_is_said_to_be_none(tmp_path, change, reason):
    path = tmp_path / "p.lock.yaml"
    with pytest.raises(LockError) as missing:
        read_lock(path)
    write_lock(path, change(lock_with(protocol("x", [[1, 1], [2, 0]])).text()))
    with pytest.raises(LockError, match=reason) as damaged:
        read_lock(path)
    assert (missing.value.code, damaged.value.code) == ("lock-missing", "lock-damaged")
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_that_cannot_be_written_is_not_said_to_lie_where_a_release_does(tmp_path, monkeypatch):
    """Nor is it half there, and one that its folder's owner closed to others stays closed."""
    path, text = tmp_path / "policy.lock.yaml", lock_with(protocol("x", [[1, 1], [2, 0]])).text()
    write_lock(path, text)
    path.chmod(0o600)
    write_lock(path, text)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (text, 0o600)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(ReleaseError) as caught:
        write_lock(path, text)
    assert "name another folder for the policy, since its lock lies beside it" in caught.value.advice


def test_counts_are_kept_apart_and_hashed_under_the_key(tmp_path):
    joint, other = Joint.from_table([[3, 4], [5, 6]]), Joint.from_table([[3, 4], [6, 5]])
    pinned = replace(protocol("X", [[1, 1], [2, 0]]), inputs=joint.blocks[0])
    lock, stranger = (parse_lock(lock_with(pinned, policy=name).text()) for name in ("one", "two"))
    keep_counts(tmp_path, lock.checksum, joint)
    kept = kept_counts(tmp_path, lock)
    assert kept is not None
    assert told(kept) == told(joint)
    assert kept_counts(tmp_path, stranger) is None
    folder = tmp_path / "locks"
    (folder / f"{stranger.checksum}.json").write_text((folder / f"{lock.checksum}.json").read_text())
    with pytest.raises(LockError, match="another lock"):
        kept_counts(tmp_path, stranger)
    hashes = {counts_hash(one, fixed_key(name)) for one in (joint, other) for name in ("a", "b")}
    assert len(hashes) == 4
    assert counts_hash(joint, fixed_key("a")) in hashes


@given(many_block_joints(), st.booleans())
def test_the_same_night_in_its_own_alphabets_is_itself(joint, as_one):
    whole = together(joint) if as_one else joint
    found = relabel(joint, whole.blocks, {f"c{j}": "error" for j in range(4)})
    assert found.unseen == ()
    assert told(found.joint) == told(whole)


@given(many_block_joints(), st.data())
def test_what_the_lock_does_not_know_is_left_out_row_by_row(joint, data):
    """Dropping is the same for the counts and for the batches that are drawn: record by record."""
    known = []
    for block in joint.blocks:
        kept = data.draw(st.lists(st.sampled_from(block.values), min_size=1, unique=True))
        known.append(Alphabet(block.columns, tuple(kept)))
    there = [
        all(
            block.values[x] in one.values for block, one, x in zip(joint.blocks, known, cell[1:], strict=True)
        )
        for cell in joint.cells
    ]
    rules = {f"c{j}": "drop" for j in range(4)}
    if not any(there):
        with pytest.raises(SourceError):
            relabel(joint, known, rules)
        return
    found = relabel(joint, known, rules)
    assert found.joint.rows == int(joint.counts[there].sum())
    records = np.repeat(joint.cells, joint.counts, axis=0)
    columns = {"s": pa.array(records[:, 0])} | {
        f"x{j}": pa.array(records[:, 1 + j]) for j in range(len(known))
    }
    drawn = found.batch(pa.record_batch(columns))
    codes = np.column_stack(
        [drawn.column(name).to_numpy() for name in ("s", *(f"x{j}" for j in range(len(known))))]
    )
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    assert cells.tolist() == found.joint.cells.tolist()
    assert counts.tolist() == found.joint.counts.tolist()


BLOCK = Alphabet(("x", "z"), (("a", "p"), ("b", "p"), ("other", "p"), ("a", "other")))


@pytest.mark.parametrize(
    ("value", "rules", "outcome"),
    [
        (("new", "p"), ("other", "error"), ("other", "p")),  # only x is new, so only x decides
        (("new", "p"), ("drop", "error"), None),
        (("new", "p"), ("error", "other"), SourceError),
        (("new", "new"), ("other", "drop"), None),  # both are new: a drop before other
        (("new", "new"), ("other", "error"), SourceError),
        (("new", "new"), ("other", "other"), SourceError),  # (other, other) is no value of the lock
        (("b", "other"), ("drop", "drop"), None),  # the combination is new: both decide
        (("b", "other"), ("drop", "error"), SourceError),
    ],
)
def test_who_decides_about_a_value_that_is_new(value, rules, outcome):
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))), (Alphabet(("x", "z"), (("a", "p"), value)),),
        np.array([[0, 0], [1, 0], [1, 1]]), np.array([5, 6, 7]),
    )  # fmt: skip
    told = dict(zip(("x", "z"), rules, strict=True))
    if outcome is SourceError:
        with pytest.raises(SourceError) as caught:
            relabel(joint, [BLOCK], told)
        assert "(7)" in (caught.value.values or "")
        return
    found = relabel(joint, [BLOCK], told)
    records = dict(zip(BLOCK.values, found.joint.table().sum(axis=0).tolist(), strict=True))
    assert records.get(outcome) == (None if outcome is None else 7)
    assert found.joint.rows == (11 if outcome is None else 18)


@given(joints(), st.sampled_from([0.5, 1.0, 2.0, 5.0]))
def test_nothing_has_moved_on_the_same_night(joint, order):
    found = drift(lock_with(), joint, relabel(joint, joint.blocks, {"X": "error"}), "lip", 0.5, order)
    assert found.distance == 0
    assert found.divergence == pytest.approx(0, abs=1e-12)


@given(st.data(), st.sampled_from([0.5, 1.0, 2.0]))
def test_distances_are_those_of_their_definitions(data, order):
    """Total variation and Rényi divergence, cell by cell, over tables that may have cells of their own."""
    shape = (2, data.draw(st.integers(1, 3)))
    counts = st.lists(st.integers(0, 9), min_size=2 * shape[1], max_size=2 * shape[1])
    before, after = (np.array(data.draw(counts)).reshape(shape) for _ in range(2))
    assume(all(one.any(axis=0).all() and one.any(axis=1).all() for one in (before, after)))
    p, q = before / before.sum(), after / after.sum()
    then, now = Joint.from_table(before), Joint.from_table(after)
    found = drift(lock_with(), then, relabel(now, now.blocks, {"X": "error"}), "lip", math.inf, order)
    assert found.leakage_now is None
    assert found.distance == pytest.approx(np.abs(p - q).sum() / 2)
    both = (p > 0) & (q > 0)
    if (order >= 1 and (p[~both] > 0).any()) or not both.any():
        assert found.divergence is None
    elif order == 1:
        assert found.divergence == pytest.approx((p[both] * np.log(p[both] / q[both])).sum(), abs=1e-12)
    else:
        total = (p[both] ** order * q[both] ** (1 - order)).sum()
        assert found.divergence == pytest.approx(np.log(total) / (order - 1), abs=1e-12)


def test_leakage_of_tonight_is_rounded_up():
    joint = Joint.from_table([[3, 4], [5, 6]])
    found = drift(lock_with(), joint, relabel(joint, joint.blocks, {"X": "error"}), "lip", 0.86771, None)
    assert " then, 0.8678 nats now" in words(found)


def test_a_joint_is_incomplete_only_where_it_says_so():
    joint = Joint.from_table([[3, 4], [5, 6]])
    three = Alphabet(("X",), (*joint.blocks[0].values, ("x3",)))
    with pytest.raises(ValueError, match="never occurs"):
        Joint(joint.secret, (three,), joint.cells, joint.counts)
    open_ended = Joint(joint.secret, (three,), joint.cells, joint.counts, complete=False)
    assert open_ended.table().tolist() == [[3, 4, 0], [5, 6, 0]]
    assert open_ended.block(0).table().tolist() == open_ended.table().tolist()
    alphabets = [alphabet_record(one) for one in (open_ended.secret, *open_ended.blocks)]
    assert told(joint_of(alphabets[0], alphabets[1:], cells_of(open_ended))) == told(open_ended)
    with pytest.raises(ValueError, match="never occurs"):
        Joint(
            joint.secret, (three,), joint.cells + np.array([0, 2]), joint.counts, complete=False
        )  # a code beyond the alphabet


@pytest.mark.parametrize(
    ("public", "code"),
    [
        ("[{name: x, bins: [0, 5], unseen: other}]", "wrong-value"),  # numbers have no value `other`
        ("[{name: x, unseen: keep}]", "wrong-value"),
        ("[{name: s, unseen: other}, x]", "sensitive-public"),  # released as it is hidden
        ("[{name: s, unseen: drop}, {name: x, top: 3, unseen: other}]", None),
    ],
)
def test_where_unseen_values_may_go(public, code):
    text = (
        "version: 1\nname: n\nsource: {table: t.csv}\nsensitive: s\nprivacy: {notion: ldp, epsilon: 1}\n"
        f"release: {{to: r, private: p}}\npublic: {public}\n"
    )
    if code is None:
        assert [one.attributes[0].unseen for one in loads(text).blocks] == ["drop", "other"]
        return
    with pytest.raises(PolicyError) as caught:
        loads(text)
    assert [problem.code for problem in caught.value.problems] == [code]
    assert caught.value.problems[0].line == 7
