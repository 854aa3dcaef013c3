"""A fortnight with everything that happens in a year; and that the trial would notice what it looks for."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tests.trials.nights.attacker import Attacker, Block, Source
from tests.trials.nights.bayes import Joint
from tests.trials.nights.faults import FAULTS
from tests.trials.nights.seconds import SECONDS
from tests.trials.nights.summary import judged
from tests.trials.year import Year, simulate


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Year:
    folder: Path = tmp_path_factory.mktemp("year") / "kept"
    return simulate(folder, nights=12, seed=3, faults=4)


def test_twelve_nights_with_all_that_happens(year: Year) -> None:
    assert year.world.wrong == []
    assert len(year.found) == year.nights
    assert year.audit["passed"] is True
    happened = " ".join(why for one in year.found for why in one.why)
    for event in (
        "key rotated",
        "policy changed",
        "harbour opens",
        "airport opens",
        "did not know",
        "fault: ",
        "identifiers are given out anew",
        *(str(second.__doc__).rstrip(".") for second in SECONDS),
    ):
        assert event in happened
    assert len(year.injected) == 4
    assert min(year.changes.values()) > 0
    assert "everything held" in year.text()
    assert json.loads(json.dumps(year.as_dict(), allow_nan=False))["held"] is True


def test_the_attack_is_worth_its_name(year: Year) -> None:
    """It gains all that the ledger allows while that is one release, and more with every new key or protocol."""
    first, *_, last = year.found
    assert first.gained == pytest.approx(first.alone, abs=1e-6)
    assert last.worst > 2 * first.worst
    assert all(0 < one.gained <= one.worst for one in year.found)
    hows = {"exact", "unchanged"}
    before = [one.how for one in year.found if one.night < year.renumbering]
    assert set(before) == hows, "new locks and keys are measured, not bounded"
    assert {one.how for one in year.found[len(before) :]} <= {*hows, "ceiling"}, "new numbers may be the old ones"
    assert any(one.per_value > 1 and one.varying is not None for one in year.found)


def test_what_others_release_tells_more_than_the_year(year: Year) -> None:
    """Who has a second policy's release as well gains more than from all others; absence tells everything."""
    told = [(one, why) for one in year.found for why in one.why if "with all others" in why]
    assert len(told) == 6
    for one, why in told:
        assert float(why.partition("it tells ")[2].partition(",")[0]) > one.gained
        assert ("leaves out" not in why) or "(refused: with all others it tells inf, the ledger says no bound)" in why


@pytest.mark.parametrize("lie", ["figure", "measured", "varying"])
def test_a_ledger_that_understates_is_noticed(year: Year, lie: str) -> None:
    night = next(one for one in year.found if one.varying is not None and one.per_value > 0)
    assert judged(night, year.found, sources=4) == []
    low = replace(
        night,
        **{lie: {"figure": night.gained, "measured": night.worst, "varying": night.per_value}[lie] - 0.01},
    )
    assert judged(low, year.found, sources=4)
    assert judged(replace(night, figure=None), year.found, sources=4)


def test_there_are_ten_kinds_of_faults() -> None:
    assert len({fault.__name__ for fault in FAULTS}) == 10


def attacker(*protocols: tuple[str, dict[str, tuple[int, ...]]]) -> Attacker:
    """One who has read releases of a block x, each under its key; of another block nothing is known."""
    found = Attacker()
    for number, (key, ends) in enumerate(protocols):
        found.sources.append(Source(key, str(number), 0))
        found.blocks.append(Block(("x",), ("a", "b"), 2, ends))
    return found


@pytest.mark.parametrize("key", ["same", "another"])
def test_overlaps_are_those_of_every_uniform_number(key: str) -> None:
    """The attacker's chances, against all numbers from 0 to 3 tried; a value that was `other` has one of its own."""
    first, second = {"a": (1, 4), "other": (2, 4)}, {"a": (3, 4), "b": (1, 4), "other": (0, 4)}
    spy = attacker(("same", first), (key, second))
    for value, apart in (("a", key != "same"), ("b", True), ("other", key != "same")):
        name = value if value in first else "other"
        for answers in itertools.product((0, 1), repeat=2):
            hits = sum(
                (u >= first[name][0], v >= second[value][0]) == tuple(map(bool, answers))
                for u, v in itertools.product(range(4), repeat=2)
                if apart or u == v
            )
            expected = Fraction(hits, 16 if apart else 4)
            assert spy.chance(((0, answers[0]), (1, answers[1])), value) == expected
            assert spy._answers([0, 1], value).get(answers, 0) == expected if key == "same" else True


def test_bayes_by_hand() -> None:
    """P(s|y) from a table of 8 and 4 people; an answer that rules a secret out moves beliefs without end."""
    joint = Joint.of({i: ("s" if i < 8 else "t", ("a" if i % 4 else "b", "z")) for i in range(12)})
    one = Fraction(1)
    assert joint.worst_of([([one, one], [one])]) == 0
    assert joint.worst_of([([one, Fraction(0)], [one])]) == pytest.approx(0)
    skewed = Joint.of({i: ("s" if i < 8 else "t", ("a" if i < 6 else "b", "z")) for i in range(12)})
    assert skewed.worst_of([([one, Fraction(0)], [one])]) == float("inf")
    assert skewed.worst_of([([Fraction(0), one], [one])]) == pytest.approx(math.log(2))
