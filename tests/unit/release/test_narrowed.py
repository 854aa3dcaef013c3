"""What published files tell of the counts, against every table there is; nothing is left out of its own range."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.data import Alphabet, Joint, Protocol
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from funnel.release import narrowed as room
from funnel.release.narrowed import DEVIATIONS, NEAR, Narrowed, narrowed, ranges
from tests.support.people import people
from tests.support.policies import write_policy

EXACT = 1e-6


def joint(table: np.ndarray[Any, Any]) -> Joint:
    names = [Alphabet((name,), tuple((f"{name}{i}",) for i in range(size)))
             for name, size in zip("sx", table.shape, strict=True)]  # fmt: skip
    cells = np.argwhere(table > 0)
    return Joint(names[0], (names[1],), cells, table[table > 0])


def solved(table: np.ndarray[Any, Any], notion: str = "lip") -> Protocol:
    """The optimum at 1 nat."""
    asked = NOTIONS[notion](notion=notion, **({} if NOTIONS[notion].exact_zero else {"epsilon": 1.0}))
    (found,) = protect(joint(table), asked, MECHANISMS["optimal"](kind="optimal"), (1.0,)).protocols
    assert isinstance(found, Protocol)
    return found


def rows_of(total: int, cells: int) -> np.ndarray[Any, Any]:
    """Every way to lay so many records into cells (k, cells)."""
    bars = np.array(list(combinations(range(total + cells - 1), cells - 1))).reshape(-1, cells - 1)
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), total + cells - 1)])
    return np.diff(ends, axis=1) - 1


def every(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """All tables of two secret values with as many records of each, (k, 2, a)."""
    one, other = (rows_of(int(total), table.shape[1]) for total in table.sum(axis=1))
    return np.stack([np.repeat(one, len(other), axis=0), np.tile(other, (len(one), 1))], axis=1)


def agree(
    tables: np.ndarray[Any, Any], table: np.ndarray[Any, Any], chances: np.ndarray[Any, Any], sums: Any = None
) -> Any:
    """Which tables (k, 2, a) a reader cannot tell from the true one, chances (b, a): the facts, without division.

    `sums` (g, b) are the totals that are compared, each by itself where there are none.
    """
    sent, mine, near = tables @ chances.T, table @ chances.T, np.exp(-NEAR)
    totals, records = sent.sum(axis=1), table.sum(axis=1)
    sums = np.eye(len(chances)) if sums is None else sums
    width = DEVIATIONS * np.sqrt(np.maximum((sums @ chances) * (1 - sums @ chances), 0) @ table.sum(axis=0))
    same = (abs((totals - mine.sum(axis=0)) @ sums.T) <= width + EXACT).all(axis=1)
    usual, own = records[:, None] * totals[:, None, :] / table.sum(), records[:, None] * mine.sum(axis=0) / table.sum()
    for high, low, mine_high, mine_low in ((sent, usual, mine, own), (usual, sent, own, mine)):
        if (mine_low == 0).any():
            continue
        most = (mine_high / mine_low).max()
        same &= (high <= most * low + EXACT).all(axis=(1, 2))
        touched = mine_high >= most * near * mine_low
        same &= (high >= most * near * low - EXACT)[:, touched].all(axis=1)
    given, true = sent / records[:, None], mine / records[:, None]
    if (true > 0).all():
        most = max((true[0] / true[1]).max(), (true[1] / true[0]).max())
        for s, other in ((0, 1), (1, 0)):
            for y in np.flatnonzero(true[s] >= most * near * true[other]):
                same &= given[:, s, y] <= most * given[:, other, y] + EXACT
                same &= given[:, s, y] >= most * near * given[:, other, y] - EXACT
    return same


@pytest.mark.parametrize("seed", range(6))
def test_ranges_are_those_of_every_table_that_agrees(seed: int) -> None:
    """Small tables, where integers count: their ends are the least and the largest there are."""
    generator = np.random.default_rng(seed)
    table = generator.integers(1, 9, (2, 3))
    weights = solved(table).probabilities()
    tables = every(table)
    tables = tables[agree(tables, table, weights[:, 0, :])]
    found = ranges(table, weights, np.ones(table.shape, bool))
    np.testing.assert_allclose(found[..., 0], tables.min(axis=0), atol=1e-4)
    np.testing.assert_allclose(found[..., 1], tables.max(axis=0), atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_totals_of_each_block_alone_narrow_counts_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two blocks of two values, one of which may stay as it is: every table, as above."""
    monkeypatch.setattr("funnel.release.narrowed._NODES", 1 << 20)
    generator = np.random.default_rng(seed)
    one, other = generator.integers(1, 4, 2) / 8
    moved = np.array([[1 - one, other], [one, 1 - other]])
    blocks = [np.eye(2) if seed % 2 else moved[::-1], moved]
    table = generator.integers(0, 5, (2, 4))
    table[:, 0] += 1
    protocols = [
        Protocol(alphabet, alphabet, 3, np.rint(8 * chances).astype(np.int64)[:, None, :])
        for alphabet, chances in zip(PAIR, blocks, strict=True)
    ]
    names = Alphabet(("s",), (("s0",), ("s1",)))
    cells = np.argwhere(table.reshape(2, 2, 2) > 0)
    found = Joint(names, PAIR, cells, table.reshape(2, 2, 2)[tuple(cells.T)])
    tables, both = every(table), np.kron(*blocks)
    each = [np.kron(np.eye(2), np.ones((1, 2))), np.kron(np.ones((1, 2)), np.eye(2))]
    tables = tables[agree(tables, table, both, np.vstack([np.eye(4), *each]))]
    spans = (tables.max(axis=0) - tables.min(axis=0))[table.sum(axis=1) >= 3]
    assert narrowed(found, protocols, 3) == Narrowed(8, int((spans < 3).sum()))


PAIR = tuple(Alphabet((name,), ((f"{name}0",), (f"{name}1",))) for name in "xz")


def test_a_group_that_draws_do_not_leave_has_as_many_records_as_were_released() -> None:
    """Two pairs of values, each answered among themselves: of the rare pair there are exactly eight records."""
    table = np.array([[400, 300, 1, 3], [300, 500, 2, 2]])
    half = np.kron(np.eye(2), np.array([[3, 1], [1, 3]]))[:, None, :].astype(np.int64)
    found = joint(table)
    protocol = Protocol(found.blocks[0], found.blocks[0], 2, half)
    assert narrowed(found, [protocol], 10) == Narrowed(8, 4)


@pytest.mark.parametrize("notion", ["lip", "ldp", "pml"])
def test_the_true_counts_are_within_their_ranges(notion: str) -> None:
    generator = np.random.default_rng(5)
    for shape in ((2, 6), (3, 5), (4, 4)):
        table = generator.multinomial(3000, generator.dirichlet(np.ones(shape[0] * shape[1]))).reshape(shape) + 1
        found = ranges(table, solved(table, notion).probabilities(), np.ones(shape, bool))
        assert (found[..., 0] <= table + 1e-3).all() and (table <= found[..., 1] + 1e-3).all()


def test_an_optimum_tells_more_than_chances_that_no_count_bears_on() -> None:
    generator = np.random.default_rng(0)
    table = generator.multinomial(20_000, generator.dirichlet(np.full(30, 0.5))).reshape(5, 6) + 10
    kinds = (solved(table).probabilities(), _flat(table))
    whole, wide = (ranges(table, one, np.ones(table.shape, bool)) for one in kinds)
    spans = [np.median(one[..., 1] - one[..., 0]) for one in (whole, wide)]
    assert spans[0] < spans[1]


def _flat(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Everything is answered alike."""
    return np.full((2, 1, table.shape[1]), 0.5)


def reported(found: Joint) -> list[Any]:
    """Conditional reporting of every block at half a nat."""
    asked, one = NOTIONS["lip"](notion="lip", epsilon=0.5), MECHANISMS["conditional-reporting"]
    shares = (1 / len(found.blocks),) * len(found.blocks)
    return list(protect(found, asked, one(kind="conditional-reporting"), shares).protocols)


def test_weights_of_conditional_reporting_tell_every_count_of_who_is_common() -> None:
    assert {name for name, one in MECHANISMS.items() if one.shows_shares} == {"conditional-reporting"}
    found = joint(np.array([[4000, 300, 200], [300, 2000, 100], [3, 2, 1]]))
    assert narrowed(found, reported(found), 10, shown=True) == Narrowed(9, 6)


def test_weights_of_conditional_reporting_tell_by_themselves_which_counts_are_none() -> None:
    """Of x ≠ y they are, up to a factor, the mean share of y among the other secrets: so are all shares had of them."""
    table = np.array([[4000, 300, 0, 200], [300, 2000, 100, 0], [900, 0, 700, 800]])
    (protocol,) = reported(joint(table))
    noise = protocol.telling_weights.min(axis=2).T.astype(float)  # (c, b): what every x may be answered with
    means = noise / noise.sum(axis=1, keepdims=True)
    shares = means.sum(axis=0) - 2 * means
    np.testing.assert_allclose(shares, table / table.sum(axis=1, keepdims=True), atol=1e-4)
    assert ((shares * table.sum(axis=1, keepdims=True) < 1) == (table == 0)).all()


def test_weights_of_several_blocks_tell_no_count_of_what_these_have_together() -> None:
    names = [Alphabet((name,), ((f"{name}0",), (f"{name}1",))) for name in "sxz"]
    table = np.array([[[600, 300], [500, 900]], [[500, 400], [800, 300]]])
    found = Joint(names[0], tuple(names[1:]), np.argwhere(table), table.ravel())
    assert narrowed(found, reported(found), 10, shown=True) == Narrowed(8, 0)


def test_coarse_weights_of_many_records_leave_counts_open() -> None:
    """As many records moved as the weights do not show."""
    one = np.array([[600_000, 500_000, 400_000], [300_000, 500_000, 700_000]])
    other = one + 20 * np.array([[1, -1, 0], [-1, 1, 0]])
    found, moved = (reported(joint(table)) for table in (one, other))
    assert (found[0].weights == moved[0].weights).all()
    told = narrowed(joint(one), found, 20, shown=True)
    assert told is not None
    assert told.narrowed <= 2


def test_programs_end_where_all_secrets_answer_alike_and_never_take_more_steps_than_they_may() -> None:
    table = np.array([[900, 40, 7, 300], [12, 2, 0, 5], [70, 3, 1, 20]])
    weights = solved(table, "perfect").probabilities()
    found = ranges(table, weights, np.ones(table.shape, bool))
    assert found is not None
    assert (found[..., 0] <= table + 1e-3).all() and (table <= found[..., 1] + 1e-3).all()
    assert ranges(table, weights, np.ones(table.shape, bool), steps=10) is None


def test_what_would_take_long_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[40, 30, 20], [30, 20, 10]])
    protocols = [solved(table)]
    assert narrowed(joint(table), protocols, 10) is not None
    monkeypatch.setattr(room, "MOST_CELLS", 5)
    assert narrowed(joint(table), protocols, 10) is None


@pytest.mark.parametrize("seed", range(4))
def test_totals_that_are_kept_narrow_counts_further(seed: int) -> None:
    """Of the tables that agree, those that the chances leave as they are on average."""
    table = np.random.default_rng(seed).integers(3, 9, (2, 3))
    (protocol,) = protect(joint(table), NOTIONS["lip"](notion="lip", epsilon=0.2),
                          MECHANISMS["invariant"](kind="invariant"), (1.0,)).protocols  # fmt: skip
    assert isinstance(protocol, Protocol)
    weights, there = protocol.probabilities(), np.ones(table.shape, bool)
    place = [protocol.inputs.values.index(value) for value in protocol.outputs.values]
    moved = weights[np.argsort(place), 0, :] - np.eye(3)
    tables = every(table)
    tables = tables[agree(tables, table, weights[:, 0, :])]
    off = abs(tables.sum(axis=1) @ moved.T) <= abs(moved @ table.sum(axis=0)) + EXACT
    same = tables[off.all(axis=1)]
    found = ranges(table, weights, there, totals=room._moved([protocol]))
    np.testing.assert_allclose(found[..., 0], same.min(axis=0), atol=1e-4)
    np.testing.assert_allclose(found[..., 1], same.max(axis=0), atol=1e-4)
    free, kept = (narrowed(joint(table), [protocol], 3, kept=one) for one in (False, True))
    assert kept.narrowed == (np.ptp(same, axis=0) < 3).sum() >= free.narrowed


def test_chances_that_keep_totals_tell_counts_which_released_totals_alone_do_not() -> None:
    table = np.array([[900, 100, 300], [200, 700, 800]])
    (protocol,) = protect(joint(table), NOTIONS["lip"](notion="lip", epsilon=0.3),
                          MECHANISMS["invariant"](kind="invariant"), (1.0,)).protocols  # fmt: skip
    assert narrowed(joint(table), [protocol], 10) == Narrowed(6, 0)
    assert narrowed(joint(table), [protocol], 10, kept=True) == Narrowed(6, 6)


def test_what_totals_narrow_goes_by_those_that_were_released() -> None:
    """Others than the expected ones leave a cell wider, or narrow it further, and never out of reach."""
    table = np.array([[2, 46, 169, 38], [10, 2, 8, 25]])
    protocol = protect(joint(table), NOTIONS["lip"](notion="lip", epsilon=1.0),
                       MECHANISMS["randomised-response"](kind="randomised-response"), (1.0,)).protocols[0]  # fmt: skip
    weights, there = protocol.probabilities(), np.ones(table.shape, bool)
    chances = weights[:, 0] @ table.sum(axis=0)
    widths = set[float]()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        seen = sum((rng.multinomial(n, weights[:, 0, x]) for x, n in enumerate(table.sum(axis=0))), np.zeros(4, int))
        if seed == 7:
            seen = np.array([0, 0, 0, 300])  # which never happens
        found = ranges(table, weights, there, seen=seen)
        assert found is not None
        assert (found[..., 0] <= table + 1e-3).all() and (found[..., 1] >= table - 1e-3).all()
        widths.add(round(float((found[..., 1] - found[..., 0])[0, 0]), 2))
        rows = np.column_stack([np.arange(4), seen])
        pinned = int((found[..., 1] - found[..., 0] < 10 - 1e-3).sum())
        assert narrowed(joint(table), [protocol], 10, released=rows) == Narrowed(8, pinned)
    assert len(widths) > 1
    assert np.allclose(ranges(table, weights, there), ranges(table, weights, there, seen=chances), atol=1e-2)


def test_who_knows_figures_as_they_are_published_is_left_with_more_and_the_run_says_who_is_not(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values as they are, which leak less than ε: nothing tells how much less but release.json, in whole nats."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    table = np.array([[7, 3, 5], [2, 2, 5]])
    people(tmp_path, table.tolist())
    made = funnel.run(write_policy(tmp_path, source={"table": "people.parquet", "entity": "id"}, sensitive=["s"],
                                   public=["x"], estimate={"minimum": 3}))  # fmt: skip
    assert (made.protection.protocols[0].probabilities()[:, 0] == np.eye(3)).all()
    assert json.loads((Path(made.release) / "release.json").read_text())["leakage"]["lip"] == 1.0
    tables = every(table)
    tables = tables[(tables.sum(axis=1) == table.sum(axis=0)).all(axis=1)]
    moved = tables * table.sum() / (table.sum(axis=1)[:, None] * table.sum(axis=0))
    tables = tables[((moved <= np.e) & (moved >= np.exp(-1.0))).all(axis=(1, 2))]
    assert made.narrowed == Narrowed(6, 6) and (np.ptp(tables, axis=0) < 3).sum() < 6
    assert "which answers move beliefs in it and odds the most, and how far" in made.text()
    told = json.loads((tmp_path / "private" / Path(made.release).name / "report.json").read_text())["evidence"]
    assert "which released values raise beliefs, lower them and move odds the most, and how far" in json.dumps(told)
