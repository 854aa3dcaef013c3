"""Blocks that are harmless one by one and leak together: the auditor measures their product."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from funnel.audit.exact import lip_ratio, released_table
from tests.unit.audit.forge import Block, Forgery, forge
from tests.unit.audit.samples import detail, failures, lies

PAIRS: list[list[str | None]] = [["0", "0"], ["0", "1"], ["1", "0"], ["1", "1"]]
BITS = 40


def parity() -> tuple[np.ndarray, list[Block]]:
    """X¹ = X² = (A, B), S = A xor B; the first block reports A, the second B (mathematics, section 4)."""
    counts = np.zeros((2, 4, 4), int)
    for x, (a, b) in enumerate(PAIRS):
        counts[int(a != b), x, x] = 100
    first = Block(["a1", "b1"], PAIRS, [PAIRS[0], PAIRS[3]], 0, [[1, 1, 0, 0], [0, 0, 1, 1]])
    second = Block(["a2", "b2"], PAIRS, [PAIRS[0], PAIRS[3]], 0, [[1, 0, 1, 0], [0, 1, 0, 1]])
    return counts, [first, second]


def two_digits() -> tuple[np.ndarray, list[Block]]:
    """The counterexample of full support: 1.168498 promised by adding up, 1.576446 realised."""
    counts = np.array([[[21, 1], [1, 14]], [[60, 1], [1, 1]]]) * 20
    bits: list[list[str | None]] = [["0"], ["1"]]

    def block(name: str, kept: list[str]) -> Block:
        row = [round(Fraction(chance) * (1 << BITS)) for chance in kept]
        return Block([name], bits, bits, BITS, [row, [(1 << BITS) - weight for weight in row]])

    return counts, [block("x1", ["0.92", "0.37"]), block("x2", ["0.94", "0.51"])]


def ratio(counts: np.ndarray, blocks: list[Block]) -> Fraction | None:
    """LIP ratio of the product."""
    weights = [np.array(block.weights, np.int64)[:, None, :] for block in blocks]
    return lip_ratio(released_table(counts, weights))


def test_either_block_alone_is_perfectly_private() -> None:
    counts, (first, second) = parity()
    assert ratio(counts.sum(axis=2), [first]) == 1
    assert ratio(counts.sum(axis=1), [second]) == 1


def test_together_they_reveal_the_secret() -> None:
    assert ratio(*parity()) is None


@pytest.mark.parametrize(("notion", "epsilon"), [("perfect", 0.0), ("lip", 1.0), ("ldp", 50.0)])
def test_a_release_that_claims_what_its_blocks_keep_fails(
    notion: str, epsilon: float, tmp_path: Path
) -> None:
    counts, blocks = parity()
    forgery = forge(counts, blocks, notion=notion, epsilon=epsilon)
    forgery.manifest["leakage"] = {"lip": 0.0, "ldp": 0.0, "mutual_information": 0.0}
    forgery.evidence["leakage"] = {"lip": "1/1", "ldp": "1/1"}
    report = lies(forgery, tmp_path)
    assert failures(report) == {"leakage-bound", "leakage-exact", "leakage-stated", "information-stated"}
    assert "infinite" in detail(report, "leakage-bound")


def test_an_infinite_leakage_honestly_stated_still_breaks_every_bound(tmp_path: Path) -> None:
    report = lies(forge(*parity(), epsilon=1e308), tmp_path)
    assert failures(report) == {"stated-bound", "leakage-bound"}


def test_the_second_counterexample_leaks_what_was_computed_by_hand() -> None:
    worst = ratio(*two_digits())
    assert worst is not None
    assert math.log(worst) == pytest.approx(1.576446, abs=1e-6)


def of_two_digits(epsilon: float) -> Forgery:
    return forge(*two_digits(), epsilon=epsilon)


def test_the_sum_of_the_blocks_budgets_is_no_bound(tmp_path: Path) -> None:
    report = lies(of_two_digits(1.168498), tmp_path)
    assert failures(report) == {"stated-bound", "leakage-bound"}
    assert "1.576446" in detail(report, "leakage-bound")


def stating(epsilon: float) -> Forgery:
    """A writer whose figure, where rounding up would pass a bound that is kept, is the bound itself."""
    forgery = of_two_digits(epsilon)
    forgery.manifest["leakage"]["lip"] = epsilon
    return forgery


def test_the_bound_that_really_holds_passes_to_the_sixth_digit(tmp_path: Path) -> None:
    assert lies(stating(1.576447), tmp_path / "above").passed
    below = lies(stating(1.576445), tmp_path / "below")
    assert failures(below) == {"leakage-bound", "leakage-stated"}


def test_a_stated_leakage_may_not_be_above_the_bound_at_all(tmp_path: Path) -> None:
    assert failures(lies(of_two_digits(1.576447), tmp_path)) == {"stated-bound"}
