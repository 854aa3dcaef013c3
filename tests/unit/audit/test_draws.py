"""Draws: biased, shared, impossible or too even ones are caught; honest ones are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.draws import FALSE_ALARM, Fit
from funnel.errors import AuditFailure
from tests.unit.audit import samples
from tests.unit.audit.forge import Block, draw, forge, keep_or_spread, pick
from tests.unit.audit.samples import detail, failures, lies

LABELS: list[list[str | None]] = [["a"], ["b"], ["c"], ["d"]]
COUNTS = np.array([[300, 600, 150, 240], [450, 180, 270, 120]])
HONEST = keep_or_spread(["x"], LABELS, 8, 128)


def records(counts: np.ndarray) -> list[tuple[int, ...]]:
    """One (s, x_1, …) for each record, in the order in which the forge lists them."""
    return [tuple(cell) for cell in np.argwhere(counts > 0).tolist() for _ in range(int(counts[tuple(cell)]))]


def drawn_by(block: Block, seed: int = 0) -> list[tuple[int, ...]]:
    """Draws that follow another protocol than the published one."""
    return draw(records(COUNTS), [block], seed)


@pytest.mark.parametrize("seed", range(12))
def test_honest_draws_pass_whatever_the_seed(seed: int, tmp_path: Path) -> None:
    for index, kind in enumerate((samples.two_blocks, samples.reads_secret, samples.three_blocks)):
        assert lies(kind(seed=seed), tmp_path / str(index)).passed


def test_draws_that_keep_the_truth_more_often_than_stated_fail(tmp_path: Path) -> None:
    truthful = keep_or_spread(["x"], LABELS, 8, 170)
    report = lies(forge(COUNTS, [HONEST], rows=drawn_by(truthful)), tmp_path)
    assert failures(report) == {"draw-fit"}
    assert "do not follow" in detail(report, "draw-fit")


def test_draws_that_answer_by_the_secret_fail(tmp_path: Path) -> None:
    told = [(x if s else (x + 1) % 4,) for s, x in records(COUNTS)]
    assert "draw-fit" in failures(lies(forge(COUNTS, [HONEST], rows=told), tmp_path))


def test_draws_from_the_rows_of_another_input_fail(tmp_path: Path) -> None:
    shifted = [(y,) for (y,) in draw([(s, (x + 1) % 4) for s, x in records(COUNTS)], [HONEST], 0)]
    assert failures(lies(forge(COUNTS, [HONEST], rows=shifted), tmp_path)) == {"draw-fit"}


def test_everything_published_as_it_is_fails(tmp_path: Path) -> None:
    truth = [(x,) for _, x in records(COUNTS)]
    assert "draw-fit" in failures(lies(forge(COUNTS, [HONEST], rows=truth), tmp_path))


def test_an_impossible_draw_fails_though_it_happened_once(tmp_path: Path) -> None:
    weights = [[8, 4, 4, 0], [8, 4, 4, 8], [0, 8, 8, 8]]
    block = Block(["x"], LABELS, LABELS[:3], 4, weights)
    rows = drawn_by(block)
    assert lies(forge(COUNTS, [block], rows=list(rows)), tmp_path / "honest").passed
    rows[0] = (2,)
    report = lies(forge(COUNTS, [block], rows=rows), tmp_path / "once")
    assert failures(report) == {"draw-support"}
    assert samples.statuses(report)["draw-fit"] == "not checked"


def test_draws_apportioned_instead_of_drawn_fail(tmp_path: Path) -> None:
    """Counts as expected to the record leave nothing to chance: the last person's answer is determined."""
    counts = np.full((2, 32), 64)
    labels: list[list[str | None]] = [[str(x)] for x in range(32)]
    outputs = [[str(y)] for y in range(3)]
    weights = [[16] * 32, [8] * 32, [8] * 32]
    block = Block(["x"], labels, outputs, 5, weights)  # type: ignore[arg-type]
    even = [(0 if place % 64 < 32 else 1 if place % 64 < 48 else 2,) for place in range(64 * 64)]
    report = lies(forge(counts, [block], rows=even), tmp_path)
    assert failures(report) == {"draw-fit"}
    assert "too even" in detail(report, "draw-fit")


def shared(people: list[tuple[int, ...]], blocks: list[Block], seed: int) -> list[tuple[int, ...]]:
    """Draws of all blocks from one and the same uniform number per record."""
    uniforms = np.random.default_rng(seed).random(len(people)).tolist()
    return [
        tuple(pick(block, s, code, uniform) for block, code in zip(blocks, x, strict=True))
        for (s, *x), uniform in zip(people, uniforms, strict=True)
    ]


@pytest.mark.parametrize("count", [2, 3])
def test_blocks_that_share_their_randomness_fail(count: int, tmp_path: Path) -> None:
    """Each block alone is as honest as can be; together they tell more than the product that was measured."""
    blocks = [keep_or_spread([name], [["0"], ["1"]], 6, 40) for name in "abc"[:count]]
    counts = np.full((2,) * (count + 1), 400)
    rows = shared(records(counts), blocks, 0)
    report = lies(forge(counts, blocks, rows=rows), tmp_path)
    assert failures(report) == {"draw-independence"}
    assert lies(forge(counts, blocks), tmp_path / "honest").passed


def test_a_pair_that_shares_its_randomness_is_found_among_many_blocks(tmp_path: Path) -> None:
    """With many sparse combinations the pairs of blocks still tell."""
    labels: list[list[str | None]] = [[str(i)] for i in range(6)]
    blocks = [keep_or_spread([name], labels, 8, 120) for name in "abc"]
    counts = np.zeros((2, 6, 6, 6), int)
    counts[:, np.arange(6), np.arange(6), np.arange(6)] = 60
    people = records(counts)
    rows = draw(people, blocks, 0)
    common = shared(people, blocks, 1)
    mixed = [(one[0], one[1], own[2]) for one, own in zip(common, rows, strict=True)]
    assert failures(lies(forge(counts, blocks, rows=mixed), tmp_path)) == {"draw-independence"}


def test_where_nothing_is_left_to_chance_the_possible_is_all_there_is(tmp_path: Path) -> None:
    block = Block(["x"], LABELS, [["a or b"], ["c or d"]], 3, [[8, 8, 0, 0], [0, 0, 8, 8]])
    report = lies(forge(COUNTS, [block], epsilon=5.0), tmp_path)
    assert report.verdict == samples.WHOLE
    assert detail(report, "draw-fit") == "nothing is left to chance"


def test_where_there_are_too_few_draws_to_tell_the_fit_is_not_called_checked(tmp_path: Path) -> None:
    report = lies(forge(np.array([[2, 1, 1, 2], [1, 2, 2, 1]]), [HONEST]), tmp_path)
    assert report.passed
    assert samples.statuses(report)["draw-fit"] == "not checked"
    assert report.verdict == "every claim that can be checked holds; 2 were not checked"


def test_too_few_rows_to_tell_of_independence_are_not_called_checked(tmp_path: Path) -> None:
    blocks = [keep_or_spread([name], LABELS[:2], 8, 200) for name in "ab"]
    report = lies(forge(np.array([[[1, 2], [2, 1]], [[2, 1], [1, 1]]]), blocks, epsilon=5.0), tmp_path)
    assert report.passed
    assert samples.statuses(report)["draw-independence"] == "not checked"


# --- the test of fit itself


def fitted(groups: int, chances: np.ndarray, size: int, random: np.random.Generator) -> Fit:
    """A test over groups of honest multinomial draws."""
    fit = Fit()
    for _ in range(groups):
        fit.add(chances * size, random.multinomial(size, chances))
    return fit


SHAPES: dict[str, tuple[int, int, int]] = {
    "two cells": (1, 2, 40),
    "cells at the edge of pooling": (200, 10, 100),
    "cells below the edge": (200, 10, 60),
    "many large cells": (50, 20, 4000),
    "a hundred thousand small cells": (10_000, 11, 115),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_honest_draws_are_not_called_biased_at_any_size(shape: str) -> None:
    """A chi-square at face value would refuse large honest tables, for G exceeds it by 1/(6 E) a cell."""
    groups, cells, size = SHAPES[shape]
    random = np.random.default_rng(len(shape))
    least = 1.0
    for _ in range(20):
        chances = random.dirichlet(np.full(cells, 20.0))
        least = min(least, fitted(groups, chances, size, random).refuse("x", even=True))
    assert least > 1e-6


def test_the_share_of_small_p_values_is_what_it_should_be() -> None:
    random = np.random.default_rng(5)
    found = [fitted(5, np.full(4, 0.25), 400, random).refuse("x", even=False) for _ in range(2000)]
    assert 0.30 < np.mean(np.array(found) < 0.5) < 0.55
    assert np.mean(np.array(found) < 0.01) < 0.02


@given(st.integers(2, 30), st.integers(50, 5000), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_a_doubled_chance_is_refused_once_there_are_draws_enough(cells: int, size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    stated = np.full(cells, 1 / cells)
    true = stated.copy()
    true[0] *= 2
    true /= true.sum()
    fit = Fit()
    for _ in range(200):
        fit.add(stated * size, random.multinomial(size, true))
    if size / cells >= 20:
        with pytest.raises(AuditFailure, match="do not follow"):
            fit.refuse("x", even=False)


def test_small_cells_are_pooled_and_none_is_lost() -> None:
    fit = Fit()
    fit.add(np.array([0.0, 1.0, 2.0, 3.0, 100.0, 50.0]), np.array([0, 1, 2, 3, 100, 50]))
    assert fit.degrees == 1
    assert fit.statistic == pytest.approx(0)
    lone = Fit()
    lone.add(np.array([1.0, 2.0, 3.0]), np.array([6, 0, 0]))
    assert lone.degrees == 0
    assert lone.refuse("x", even=True) == 1.0


@pytest.mark.parametrize("even", [True, False])
def test_only_a_fit_by_input_can_be_too_good(even: bool) -> None:
    """Sums over unlike inputs vary less than a multinomial, so for them a close fit proves nothing."""
    fit = Fit()
    for _ in range(60):
        fit.add(np.array([50.0, 50.0]), np.array([50, 50]))
    check: Callable[[], float] = lambda: fit.refuse("x", even=even)  # noqa: E731
    if even:
        with pytest.raises(AuditFailure, match="too even"):
            check()
    else:
        assert check() > 1 - FALSE_ALARM
