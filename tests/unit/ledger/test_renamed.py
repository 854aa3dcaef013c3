"""A value that a new lock takes out of `other` keeps its record's history: measured exactly, by both sides."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from funnel.audit.extras.overlaps import Drawer, group_spread, law_of
from funnel.audit.extras.together import MOST_NAMINGS as AUDITED
from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import Channel
from funnel.data.convert import block_record
from funnel.data.population import Population
from funnel.format.journal import Present
from funnel.ledger.composition import MOST_NAMINGS, together
from funnel.ledger.records import DrawRecord
from funnel.measure.composition import spread
from funnel.measure.overlap import Pooling, overlap
from funnel.notions import Srlip
from tests.support.composing import NOTIONS, OF_ANOTHER, learnt

BITS = 2
OTHER = "other"


def named(values: Sequence[str], columns: list[list[int]]) -> Protocol:
    """A protocol whose weights for each value are a column."""
    inputs = Alphabet(("X",), tuple((value,) for value in values))
    outputs = Alphabet(("X",), tuple((f"y{y}",) for y in range(len(columns[0]))))
    return Protocol(inputs, outputs, BITS, np.array(columns, np.int64).T[:, None, :])


WHICH = named(["x0", "x1", "x2", OTHER], [[2, 2], [3, 1], [1, 3], [2, 2]])
"""It tells x1 and x2 apart, and neither from all others."""


@st.composite
def naming(draw: st.DrawFn, values: Sequence[str]) -> Protocol:
    """Any protocol for these values with two or three outputs."""
    outputs = draw(st.integers(2, 3))
    cuts = st.lists(st.integers(0, 1 << BITS), min_size=outputs - 1, max_size=outputs - 1).map(sorted)
    return named(values, [np.diff([0, *draw(cuts), 1 << BITS]).tolist() for _ in values])


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Protocol, str]]:
    """Protocols and their keys, tonight's last: it names every value that an earlier one named, and perhaps more."""
    values = [f"x{i}" for i in range(draw(st.integers(1, 3)))]
    found = []
    for _ in range(draw(st.integers(1, 2))):
        known = [value for value in values if draw(st.booleans())]
        found.append((draw(naming([*known, OTHER])), draw(st.sampled_from(["k", "l"]))))
    return [*found, (draw(naming([*values, OTHER])), "k")]


def label(protocol: Protocol, value: str) -> str:
    return value if (value,) in protocol.inputs.values else OTHER


def chances(history: Sequence[tuple[Protocol, str]], value: str) -> dict[tuple[int, ...], Fraction]:
    """P(answers | value) of a record whose value stays the same."""
    return along(history, [label(one, value) for one, _ in history])


def along(history: Sequence[tuple[Protocol, str]], path: Sequence[str]) -> dict[tuple[int, ...], Fraction]:
    """P(answers | names drawn for): every number that every uniform can be, tried; one for each key and name."""
    used = list(dict.fromkeys((key, name) for (_, key), name in zip(history, path, strict=True)))
    found: Counter[tuple[int, ...]] = Counter()
    for numbers in itertools.product(range(1 << BITS), repeat=len(used)):
        of = dict(zip(used, numbers, strict=True))
        answers = []
        for (one, key), name in zip(history, path, strict=True):
            ends = np.cumsum(one.weights[:, 0, one.inputs.values.index((name,))])
            answers.append(next(y for y, end in enumerate(ends) if of[key, name] < end))
        found[tuple(answers)] += 1
    return {answer: Fraction(many, 1 << BITS * len(used)) for answer, many in found.items()}


def drawn(protocol: Protocol, key: str) -> DrawRecord:
    """As a policy with `unseen: other` tells it."""
    names = "+".join(value for (value,) in protocol.inputs.values)
    return DrawRecord(("X",), (names,), ("base",), None, key, "id", protocol)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), history=histories(), notion=st.sampled_from(NOTIONS[:2]))
def test_the_ledger_states_what_all_answers_tell(data, history, notion) -> None:
    """No less, and no more than its rounding: the attacker tries every uniform number."""
    *earlier, (own, key) = history
    cell = st.integers(1, 40)
    counts = data.draw(
        st.lists(st.lists(cell, min_size=len(own.inputs), max_size=len(own.inputs)), min_size=2, max_size=3)
    )
    secret = Alphabet(("S",), tuple((f"s{i}",) for i in range(len(counts))))
    table = np.array(counts)
    joint = Joint(secret, (own.inputs,), np.argwhere(table > 0), table[table > 0])
    alone = notion.leakage(Channel(joint, [own]))
    found = together(
        notion, joint, [drawn(own, key)], [drawn(*one) for one in earlier], alone, [OF_ANOTHER] * len(earlier)
    )
    seen: dict = defaultdict(Fraction)
    for s, x in np.ndindex(*table.shape):
        for answer, chance in chances(history, own.inputs.values[x][0]).items():
            seen[s, answer] += chance * int(table[s, x]) / int(table.sum())
    true = learnt(seen, notion.measure)
    assert found.how == "exact"
    if math.isinf(true):
        assert found.figure is None
    else:
        assert true - 1e-9 <= found.figure <= true + 1.001e-4


@settings(max_examples=80, deadline=None)
@given(data=st.data(), history=histories(), knows=st.sampled_from([None, 1, ("X",), ("Z",)]))
@example(
    data=[[90, 4, 24, 60], [90, 22, 4, 60]],
    history=[(named(["x0", OTHER], [[2, 2], [2, 2]]), "k"), (WHICH, "k")],
    knows=None,
)
def test_who_knows_a_column_as_some_night_had_it_learns_no_more_than_is_stated(data, history, knows) -> None:
    """Also that a value was `other`, of which several are told apart tonight, and not which of them it is."""
    *earlier, (own, key) = history
    size = len(own.inputs)
    counts = data if isinstance(data, list) else data.draw(
        st.lists(st.lists(st.integers(1, 40), min_size=size, max_size=size), min_size=2, max_size=3)
    )  # fmt: skip
    table = np.array(counts)
    secret = Alphabet(("S",), tuple((f"s{i}",) for i in range(len(table))))
    joint = Joint(secret, (own.inputs,), np.argwhere(table > 0), table[table > 0])
    notion = Srlip(notion="srlip", epsilon=9.0, knows=knows)
    found = together(notion, joint, [drawn(own, key)], [drawn(*one) for one in earlier], None, [])
    groups: dict = defaultdict(lambda: defaultdict(Fraction))
    for s, x in np.ndindex(*table.shape):
        value = own.inputs.values[x][0]
        told = {None} if knows == ("Z",) else {None, *((i, label(one, value)) for i, (one, _) in enumerate(history))}
        for answer, chance in chances(history, value).items():
            for known in told:
                groups[known][s, answer] += chance * int(table[s, x])
    real = max(learnt(scaled(seen), "srlip") for seen in groups.values())
    assert found.figure is None or real <= found.figure + 1e-9
    assert found.figure is not None or math.isinf(real) or any((one.weights == 0).any() for one, _ in history)
    if knows == ("Z",) and found.figure is not None:
        assert found.how == "exact"


@pytest.mark.parametrize(("nights", "how"), [(MOST_NAMINGS, "exact"), (MOST_NAMINGS + 1, "sum")])
def test_of_more_names_than_are_looked_at_only_the_sum_is_stated(nights: int, how: str) -> None:
    """All combinations are asked about: few more would never end. Ledger and audit stop at the same."""
    values = [f"x{i}" for i in range(nights + 2)]
    whole = named([*values, OTHER], [[3, 1], *([[2, 2]] * nights), [1, 3], [2, 2]])
    earlier = [(named([values[i], OTHER], [[2, 2], [3, 1]]), f"k{i}") for i in range(nights)]
    cells = np.array([*np.ndindex(2, len(whole.inputs))])
    joint = Joint(Alphabet(("S",), (("a",), ("b",))), (whole.inputs,), cells, np.arange(1, len(cells) + 1))
    notion, history = Srlip(notion="srlip", epsilon=9.0), [drawn(*one) for one in earlier]
    assert together(notion, joint, [drawn(whole, "k")], history, None, []).how == how
    assert MOST_NAMINGS == AUDITED


def scaled(seen: dict) -> dict:
    """To sum to one."""
    whole = sum(seen.values())
    return {key: part / whole for key, part in seen.items()}


@settings(max_examples=60, deadline=None)
@given(history=histories())
def test_each_value_of_a_record_tells_no_more_than_is_stated(history) -> None:
    """Any two ways of having values, the same when another one has: the odds are at most k times `varying`, for k."""
    *earlier, (own, key) = history
    table = np.ones((2, len(own.inputs)), np.int64)
    joint = Joint(Alphabet(("S",), (("a",), ("b",))), (own.inputs,), np.argwhere(table > 0), table[table > 0])
    alone = NOTIONS[0].leakage(Channel(joint, [own]))
    found = together(
        NOTIONS[0],
        joint,
        [drawn(own, key)],
        [drawn(*one) for one in earlier],
        alone,
        [OF_ANOTHER] * len(earlier),
    )
    if found.varying is None:
        return
    names = [[value for (value,) in one.inputs.values] for one, _ in history]
    by_times: dict = defaultdict(list)
    for path in itertools.product(*names):
        by_times[tuple(map(path.index, path))].append(along(history, path))
    for times, laws in by_times.items():
        most = math.exp(len(set(times)) * found.varying) * (1 + 1e-12)
        for one, other in itertools.permutations(laws, 2):
            assert all(chance <= most * other.get(answer, 0) for answer, chance in one.items())


def test_of_several_columns_it_is_known_which_of_them_changed_when() -> None:
    """Who knows only when a record changed learns from an answer that stays, or does not, which of its columns did."""
    one = named(["v", "w"], [[3, 1], [1, 3]])
    blocks = tuple(Alphabet((column,), one.inputs.values) for column in "AB")
    protocols = [Protocol(inputs, one.outputs, BITS, one.weights) for inputs in blocks]
    joint = Joint(Alphabet(("S",), (("a",), ("b",))), blocks, np.argwhere(np.ones((2, 2, 2))), np.ones(8, np.int64))
    own = [DrawRecord((c,), ("m",), ("m",), None, "k", "id", p) for c, p in zip("AB", protocols, strict=True)]
    alone = NOTIONS[0].leakage(Channel(joint, protocols))
    varying = together(NOTIONS[0], joint, own, own, alone, [OF_ANOTHER]).varying
    assert varying == pytest.approx(math.log(9), abs=1e-4)
    by_columns, by_records = defaultdict(list), defaultdict(list)
    for path in itertools.product(itertools.product("vw", repeat=2), repeat=2):
        columns = [*zip(*path, strict=True)]
        laws = [along([(one, column)] * 2, values) for column, values in zip("AB", columns, strict=True)]
        law = {(y, z): p * q for (y, p), (z, q) in itertools.product(*(found.items() for found in laws))}
        times = tuple(map(path.index, path))
        by_columns[times, *(tuple(map(values.index, values)) for values in columns)].append(law)
        by_records[times].append(law)
    assert all(largest(laws) <= len(set(times)) * varying + 1e-9 for (times, *_), laws in by_columns.items())
    assert largest(by_records[0, 1]) == math.inf


def test_whether_a_value_came_back_is_known_as_well() -> None:
    """Two ways of changing at the same times, of as many values each: an answer that repeats tells which came back."""
    one = (named(["u", "v", "w"], [[3, 1], [1, 3], [2, 2]]), "k")
    came_back, stayed_away = along([one] * 4, "vwvu"), along([one] * 4, "vwuv")
    assert largest([came_back, stayed_away]) == math.inf
    assert largest([came_back, along([one] * 4, "uvuw")]) <= 3 * math.log(3) + 1e-9


def largest(laws: Sequence[dict[object, Fraction]]) -> float:
    """max ln P(answers)/P'(answers) of any two laws."""
    pairs = itertools.permutations(laws, 2)
    ratios = ((p, other.get(y, 0)) for one, other in pairs for y, p in one.items() if p)
    return max((math.log(p / q) if q else math.inf for p, q in ratios), default=0.0)


def directions(rows: Sequence[Sequence[Fraction]]) -> dict[tuple[Fraction, ...], Fraction]:
    """Proportional rows added up: the shape of each, and how much there is of it."""
    found: dict = defaultdict(Fraction)
    for row in rows:
        if any(row):
            found[tuple(Fraction(part, max(row)) for part in row)] += max(row)
    return dict(found)


@settings(max_examples=80, deadline=None)
@given(history=histories())
def test_the_usual_ldp_between_values_is_also_of_those_that_had_no_name(history) -> None:
    """Of releases that tonight's is not among, none may name a value: it was drawn for as `other` all the same."""
    *earlier, (own, _) = [(one, "k") for one, _ in history]
    values = [x for x in own.inputs.values if x != (OTHER,)]
    laws = [chances(earlier, value) for (value,) in values]
    audited = group_spread([Drawer.of(block_record(one), pools=True) for one, _ in earlier], values)
    assert audited == pytest.approx(largest(laws))


@pytest.mark.parametrize(("absent", "bounded"), [("a", True), ("c", False)])
def test_those_who_are_absent_now_were_drawn_for_as_other_where_their_value_had_no_name(absent, bounded) -> None:
    """Of the absent s0 has `a`, and s1 has `a` or what was `other`, which never said y1: that rules s1 out."""
    old, own = named(["a", OTHER], [[2, 2], [4, 0]]), named(["a", "c"], [[2, 2], [2, 2]])
    secret = Alphabet(("S",), (("s0",), ("s1",)))
    cells = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0, 0], [1, "ac".index(absent)]])
    here = np.array([True, True, True, True, False, False])
    everybody = Population(secret, (own.inputs,), ("p",), cells, here[:, None], np.full(6, 10))
    joint = everybody.among(here, (own.inputs,))
    now = replace(drawn(own, "k"), meaning=("base",), present=Present("p", ("z",), (), 0, 20))
    alone = NOTIONS[0].leakage(Channel(joint, [own]))
    found = together(NOTIONS[0], joint, [now], [drawn(old, "k")], alone, [OF_ANOTHER], everybody)
    assert (found.figure is not None, found.how) == (bounded, "exact")


@settings(max_examples=80, deadline=None)
@given(history=histories())
def test_both_sides_overlap_names_alike(history) -> None:
    """The planner's law and the auditor's, written apart, are that of every uniform number tried."""
    shared_key = [(one, "k") for one, _ in history]
    *earlier, own = [one for one, _ in shared_key]
    pools = [Pooling(one.inputs, one.outputs, one.bits, one.weights) for one in earlier]
    audited = [Drawer.of(block_record(one), pools=one is not own) for one in (*earlier, own)]
    asked = [(None, value) for value in own.inputs.values]
    tried = [chances(shared_key, value) for (value,) in own.inputs.values]
    answers = {answer for one in tried for answer in one}
    expected = directions([[one.get(answer, Fraction(0)) for one in tried] for answer in answers])

    ours, theirs = overlap([*pools, own], asked), law_of(audited, asked)
    assert ours is not None
    assert (
        directions([[Fraction(int(part), 1 << ours.bits) for part in row] for row in ours.rows]) == expected
    )
    assert (
        directions(
            [[Fraction(part * times, 1 << theirs.bits) for part in row] for row, times in theirs.rows.items()]
        )
        == expected
    )
    widest = spread([*pools, own])
    assert group_spread(audited) == pytest.approx(math.inf if widest is None else math.log(widest))


def test_a_name_that_was_given_up_leaves_no_bound_under_one_key() -> None:
    """Tonight's `other` may have been x0 then; what each label told is bounded all the same."""
    old = named(["x0", "x1", OTHER], [[3, 1], [1, 3], [2, 2]])
    own = named(["x1", OTHER], [[2, 2], [1, 3]])
    table = np.array([[30, 10], [10, 30]])
    joint = Joint(Alphabet(("S",), (("a",), ("b",))), (own.inputs,), np.argwhere(table > 0), table[table > 0])
    alone = NOTIONS[0].leakage(Channel(joint, [own]))
    found = together(NOTIONS[0], joint, [drawn(own, "k")], [drawn(old, "k")], alone, [OF_ANOTHER])
    assert found.figure is None
    other_key = together(NOTIONS[0], joint, [drawn(own, "k")], [drawn(old, "l")], alone, [OF_ANOTHER])
    assert other_key.how == "sum"
    assert other_key.varying == pytest.approx(math.log(3) + math.log(2), abs=2e-4)
