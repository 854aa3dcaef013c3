"""Who is in a release is told by it: an attacker who sees who is absent learns no more than a ledger states."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import Channel
from funnel.data.population import NO_LABEL, Population
from funnel.format.journal import Present, Together
from funnel.ledger.composition import together
from funnel.ledger.records import DrawRecord
from funnel.notions import Alip, Ldp, LdpX, Lip, MutualInformation, Notion, Perfect, Pml, Rldp, Srlip
from tests.support.composing import OF_ANOTHER

BITS = 2
NOTIONS: list[Notion] = [
    Lip(notion="lip", epsilon=1.0),
    Ldp(notion="ldp", epsilon=1.0),
    Pml(notion="pml", epsilon=1.0),
    Alip(notion="alip", epsilon=1.0),
    Perfect(notion="perfect"),
    MutualInformation(notion="mutual-information", epsilon=1.0),
    LdpX(notion="ldp-x", epsilon=1.0),
    Srlip(notion="srlip", epsilon=1.0),
]
LISTED = ("lip", "ldp", "pml", "alip", "mutual_information")
"""Measures of a table of answers alone, which are exact."""


@dataclass(frozen=True, eq=False)
class Night:
    """A release: who is in it (None: everybody), what was drawn from what, with which key."""

    who: str | None
    protocol: Protocol
    key: str

    @property
    def uniform(self) -> tuple[str, bool]:
        """What a record's uniform number is made of: draws that read the secret have numbers of their own."""
        return self.key, self.protocol.reads_secret

    def record(self) -> DrawRecord:
        reads = self.protocol.secret.columns if self.protocol.secret else None
        who = None if self.who is None else Present(self.who, ("z",), (), 0, 1)
        return DrawRecord(("X",), ("m",), ("m",), reads, self.key, "id", self.protocol, present=who)

    def answer(self, s: tuple, x: tuple, number: int) -> int | None:
        """By the record's uniform number; None where the release does not know the value."""
        one = self.protocol
        if x not in one.inputs.values or (one.secret and s not in one.secret.values):
            return None
        code = one.secret.values.index(s) if one.secret else 0
        ends = np.cumsum(one.weights[:, code, one.inputs.values.index(x)])
        return next(y for y, end in enumerate(ends) if number < end)


@st.composite
def protocols(draw: st.DrawFn, inputs: Alphabet, secret: Alphabet) -> Protocol:
    outputs = draw(st.integers(1, 3))
    hidden = secret if draw(st.booleans()) else None
    width = len(inputs) * (len(hidden) if hidden else 1)
    columns = []
    for _ in range(width):
        cuts = sorted(draw(st.lists(st.integers(0, 1 << BITS), min_size=outputs - 1, max_size=outputs - 1)))
        columns.append(np.diff([0, *cuts, 1 << BITS]))
    weights = np.stack(columns, axis=1).reshape(outputs, -1, len(inputs)).astype(np.int64)
    return Protocol(inputs, Alphabet(("X",), tuple((f"y{y}",) for y in range(outputs))), BITS, weights, hidden)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Population, list[Night]]:
    """Everybody by s, x and two predicates, and one or two releases, tonight's last."""
    c, a = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    cells = [(s, x, p) for s in range(c) for x in range(a) for p in range(4)]
    counts = np.array([draw(st.integers(0, 4)) for _ in cells])
    there = counts > 0
    table = np.array(cells)[there]
    assume(there.any() and len(set(table[:, 0])) == c and len(set(table[:, 1])) == a)
    flags = (table[:, 2:] >> np.arange(2)) & 1 > 0
    secret = Alphabet(("S",), tuple((f"s{i}",) for i in range(c)))
    block = Alphabet(("X",), tuple((f"x{i}",) for i in range(a)))
    everybody = Population(secret, (block,), ("p", "q"), table[:, :2], flags, counts[there])
    names = draw(st.sampled_from([("q", "p"), ("p", "p"), (None, "p"), ("q", None), ("p",)]))
    nights = []
    for name in names:
        rows = everybody.holds(name)
        assume(rows is not None and len(set(table[rows][:, 0])) > 1)
        joint = everybody.among(rows)
        keys = st.sampled_from(["k", "k", "other"])
        nights.append(Night(name, draw(protocols(joint.blocks[0], _occurring(joint))), draw(keys)))
    return everybody, nights


def _occurring(joint: Joint) -> Alphabet:
    seen = sorted(set(joint.cells[:, 0].tolist()))
    return Alphabet(joint.secret.columns, tuple(joint.secret.values[code] for code in seen))


def stated(notion: Notion, everybody: Population, nights: list[Night]) -> Together:
    *earlier, own = nights
    rows = everybody.holds(own.who)
    assert rows is not None
    found = everybody.among(rows)
    secret = _occurring(found)
    code = {value: place for place, value in enumerate(secret.values)}
    cells = found.cells.copy()
    cells[:, 0] = [code[found.secret.values[s]] for s in cells[:, 0]]
    joint = Joint(secret, found.blocks, cells, found.counts)
    alone = notion.leakage(Channel(joint, [own.protocol]))
    return together(notion, joint, [own.record()], [one.record() for one in earlier], alone,
                    [OF_ANOTHER] * len(earlier), everybody)  # fmt: skip


def seen(everybody: Population, nights: list[Night]) -> dict[tuple, Fraction]:
    """P(s, x, answers): every number that every uniform can be, tried; `absent` where somebody is not in a release."""
    found: dict[tuple, Fraction] = defaultdict(Fraction)
    keys = sorted({one.uniform for one in nights})
    whole = everybody.rows * (1 << BITS) ** len(keys)
    present = [everybody.holds(one.who) for one in nights]
    for row, (s, x) in enumerate(everybody.labels()):
        for numbers in itertools.product(range(1 << BITS), repeat=len(keys)):
            of = dict(zip(keys, numbers, strict=True))
            answers = tuple(
                one.answer(s, x, of[one.uniform]) if there[row] else "absent"
                for one, there in zip(nights, present, strict=True)
            )
            found[s, x, answers] += Fraction(int(everybody.counts[row]), whole)
    return found


def ratios(table: dict[tuple, Fraction], measure: str) -> Fraction | None:
    """The worst ratio of P(secret, y), None where it is infinite, from the definitions."""
    hidden: dict = defaultdict(Fraction)
    told: dict = defaultdict(Fraction)
    for (s, y), p in table.items():
        hidden[s] += p
        told[y] += p
    worst = Fraction(1)
    for y, anyone in told.items():
        given = [table.get((s, y), Fraction(0)) / mass for s, mass in hidden.items()]
        worst = max(worst, max(given) / anyone)
        if measure in ("pml", "alip"):
            continue
        if min(given) == 0:
            return None
        worst = max(worst, max(given) / min(given) if measure in ("ldp", "ldp_x") else anyone / min(given))
    return worst


def learnt(people: dict[tuple, Fraction], measure: str) -> float:
    """What an attacker learns who knows the distribution, in nats."""
    of_s: dict[tuple, Fraction] = defaultdict(Fraction)
    for (s, x, y), p in people.items():
        of_s[((s, x) if measure == "ldp_x" else s), y] += p
    if measure == "mutual_information":
        hidden: dict = defaultdict(Fraction)
        told: dict = defaultdict(Fraction)
        for (s, y), p in of_s.items():
            hidden[s] += p
            told[y] += p
        return sum(float(p) * math.log(p / (hidden[s] * told[y])) for (s, y), p in of_s.items() if p)
    tables = [of_s]
    if measure == "srlip":
        for known in {x for _, x, _ in people}:
            mass = sum(p for (_, x, _), p in people.items() if x == known)
            tables.append({(s, y): p / mass for (s, x, y), p in people.items() if x == known})
    found = [ratios({key: p for key, p in one.items() if p}, measure) for one in tables]
    return math.inf if None in found else max(math.log(one) for one in found if one is not None)


def among(everybody: Population, rows: np.ndarray) -> Population:
    """Some of a population, who are all that somebody thinks of."""
    return replace(everybody, cells=everybody.cells[rows], present=everybody.present[rows],
                   counts=everybody.counts[rows])  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(world=worlds(), notion=st.sampled_from(NOTIONS))
def test_no_more_is_learnt_from_absence_and_answers_than_is_stated(world, notion: Notion) -> None:
    """Neither by who knows no more than the whole source, nor by who knows of somebody that they are in a release."""
    everybody, nights = world
    found = stated(notion, everybody, nights)
    if all(one.who is None for one in nights):
        return
    readers = [everybody, *(among(everybody, everybody.holds(one.who)) for one in nights)]
    true = max(learnt(seen(one, nights), notion.measure) for one in readers)
    assert found.figure is None or true <= found.figure + 1e-9
    assert found.varying is None
    if notion.measure in LISTED:
        assert found.figure is not None or math.isinf(true)
        assert found.figure is None or found.how == "sum" or found.figure <= true + 1.001e-4, found.how


def a_world() -> tuple[Population, list[Night]]:
    """Four kinds of people; a release of those of whom `p` holds, after one of everybody."""
    secret, block = Alphabet(("S",), (("s0",), ("s1",))), Alphabet(("X",), (("x0",), ("x1",)))
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    flags = np.array([[True], [True], [True], [True], [False]])
    everybody = Population(secret, (block,), ("p",), cells, flags, np.array([6, 4, 5, 5, 2]))
    weights = np.array([[3, 1], [1, 3]], np.int64)[:, None, :]
    protocol = Protocol(block, Alphabet(("X",), (("y0",), ("y1",))), BITS, weights)
    return everybody, [Night(None, protocol, "k"), Night("p", protocol, "k")]


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda one: one.notion)
def test_who_nobody_counted_has_no_finite_bound(notion: Notion) -> None:
    everybody, nights = a_world()
    whole = stated(notion, everybody, nights)
    joint = everybody.among(everybody.holds("p"), everybody.blocks)
    alone = notion.leakage(Channel(joint, [nights[1].protocol]))
    records = [one.record() for one in nights]
    assert together(notion, joint, records[1:], records[:1], alone, [OF_ANOTHER]).figure is None
    gone = replace(records[0], present=Present("gone = 1", ("gone",), (), 0, 1))
    assert together(notion, joint, records[1:], [gone], alone, [OF_ANOTHER], everybody).figure is None
    lost = replace(everybody, cells=np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, NO_LABEL]]))
    assert together(notion, joint, records[1:], records[:1], alone, [OF_ANOTHER], lost).figure is None
    assert whole.figure is None or notion.measure in LISTED


def test_a_robust_promise_states_nothing_where_somebody_is_absent() -> None:
    """Its set of distributions is about those who are in the release; what absence tells under it nobody has shown."""
    everybody, (whole, own) = a_world()
    for nights in ([own], [whole, own]):  # nobody of s0 is left out: no set is around those who are
        assert stated(Rldp(notion="rldp", epsilon=1.0, radius=0.0), everybody, nights).figure is None


def test_absence_is_in_the_figure_of_the_first_release() -> None:
    """One of s1 in six is absent and nobody of s0: that alone moves no odds by a finite factor."""
    everybody, (_, own) = a_world()
    assert stated(NOTIONS[1], everybody, [own]).figure is None
    assert stated(NOTIONS[2], everybody, [own]).figure == pytest.approx(math.log(22 / 12), abs=1e-4)


def test_who_is_known_to_be_in_a_table_is_told_no_more_by_many_releases_than_is_stated() -> None:
    """Fresh releases of those of one ward, where s1 is rarer than in the source: a belief in it rises from less."""
    secret, block = Alphabet(("S",), (("s0",), ("s1",))), Alphabet(("X",), (("x0",), ("x1",)))
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [1, 1]])
    flags = np.array([[1], [1], [1], [1], [0], [0], [0], [0]]) > 0
    everybody = Population(secret, (block,), ("p",), cells, flags, np.array([72, 8, 4, 16, 20, 20, 30, 30]))
    weights = np.array([[3, 1], [1, 3]], np.int64)[:, None, :]
    protocol = Protocol(block, Alphabet(("X",), (("y0",), ("y1",))), BITS, weights)
    nights = [Night("p", protocol, key) for key in "abc"]
    for notion in NOTIONS[2:4]:
        known = learnt(seen(among(everybody, everybody.holds("p")), nights), notion.measure)
        assert learnt(seen(everybody, nights), notion.measure) < known - 0.1
        assert stated(notion, everybody, nights).figure == pytest.approx(known, abs=1e-4)


def test_how_values_inside_cells_go_with_being_absent_nobody_counted() -> None:
    """Of two values in one cell one may be absent and the other not."""
    everybody, (_, own) = a_world()
    usual = NOTIONS[6]
    joint = everybody.among(everybody.holds("p"), everybody.blocks)
    cells = np.array([[s, x] for s in range(2) for x in range(2) for _ in range(2)])
    people = replace(everybody, cells=cells, present=np.array([[True], [False]] * 4), counts=np.array([6, 2] * 4))
    alone = usual.leakage(Channel(joint, [own.protocol]))
    for inside in ((), ("a", "b")):
        record = replace(own.record(), inside=inside)
        found = together(usual, joint, [record], [], alone, [], people)
        assert (found.figure is None) == bool(inside)


def test_a_release_that_leaves_out_what_a_lock_did_not_know_tells_it_where_its_columns_are_others() -> None:
    everybody, nights = a_world()
    joint = everybody.among(everybody.holds("p"), everybody.blocks)
    own, before = nights[1].record(), replace(nights[0].record(), columns=("Z",))
    pml = NOTIONS[2]
    alone = pml.leakage(Channel(joint, [nights[1].protocol]))
    known = together(pml, joint, [own], [before], alone, [OF_ANOTHER], everybody)
    dropped = replace(before, present=Present(None, (), (), 3, 3))
    assert known.figure is not None
    assert known.how == "sum"
    assert together(pml, joint, [own], [dropped], alone, [OF_ANOTHER], everybody).figure is None


def test_who_was_left_out_by_a_lock_answers_that_in_the_usual_ldp_too() -> None:
    """Nobody with x1 was drawn for, and everybody with x0: who is absent has x1 for certain."""
    everybody, (_, own) = a_world()
    everywhere = replace(own, who=None)
    joint = everybody.among(everybody.holds(None), everybody.blocks)
    only = Alphabet(("X",), (("x0",),))
    known = replace(own.protocol, inputs=only, weights=own.protocol.weights[:, :, :1])
    before = replace(everywhere.record(), protocol=known, source="other")
    usual = LdpX(notion="ldp-x", epsilon=2.0)
    alone = usual.leakage(Channel(joint, [own.protocol]))
    dropped = replace(before, present=Present(None, (), (), 12, 12))
    for earlier, finite in ((before, True), (dropped, False)):
        found = together(usual, joint, [everywhere.record()], [earlier], alone, [OF_ANOTHER], everybody)
        assert (found.figure is not None) == finite
