"""A kernel that is wrong in any way that shows is refused; a right one is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from funnel.data import Joint, Protocol
from funnel.data.channel import released_table
from funnel.draw.check import check_draws, expected_released
from funnel.draw.draw import Drawer
from funnel.draw.goodness import _pool, g_test
from funnel.draw.tally import Tally
from funnel.errors import DrawError, PlanError, SourceError
from tests.support.samples import alphabet, batch, fixed_key, joint_of, protocol, random_protocol

ROWS = 60_000


class Table:
    """A table of one secret and correlated blocks, and its protocols."""

    def __init__(
        self,
        sizes: tuple[int, ...] = (5, 4),
        rows: int = ROWS,
        outputs: tuple[int, ...] = (6, 4),
        bits: int = 16,
    ) -> None:
        rng = np.random.default_rng(1)
        self.s = rng.integers(0, 3, rows)
        self.x = [
            np.concatenate([np.arange(size), (rng.integers(0, size, rows - size) + self.s[size:] % 2) % size])
            for size in sizes
        ]
        self.s[:3] = range(3)
        self.joint = joint_of(self.s, *self.x)
        self.protocols = [
            random_protocol(i, "xzvw"[i], a, b, bits)
            for i, (a, b) in enumerate(zip(sizes, outputs, strict=True))
        ]

    def draw(self) -> list[np.ndarray]:
        rows = batch(np.arange(len(self.s)), s=self.s, **{f"x{i}": x for i, x in enumerate(self.x)})
        out = Drawer(self.protocols, fixed_key(), permanent=True).draw(rows)
        return [out.column(i).to_numpy().astype(np.int64) for i in range(len(self.x))]

    def tally(self, drawn: list[np.ndarray]) -> Tally:
        tally = Tally(self.protocols)
        inputs = [
            self.s * len(p.inputs) + x if p.reads_secret else x
            for p, x in zip(self.protocols, self.x, strict=True)
        ]
        tally.count(inputs, drawn)
        return tally

    def check(self, drawn: list[np.ndarray]) -> None:
        check_draws(self.tally(drawn), self.protocols, self.joint)


@pytest.mark.parametrize(
    "table",
    [
        Table(),
        Table((7,), outputs=(3,)),
        Table((2, 2, 2), 500, (2, 2, 2)),
        Table((40, 30), 3000, (40, 30)),
        Table((1,), 50, (2,), 4),
        Table((300,), 2000, (280,)),
        Table((3,), 100, (1,)),
    ],
    ids=[
        "two blocks",
        "one block",
        "few rows",
        "mostly rare cells",
        "constant",
        "less than a row a cell",
        "one output",
    ],
)
def test_the_kernel_passes(table: Table) -> None:
    table.check(table.draw())


def test_a_protocol_that_reads_the_secret_passes_and_is_checked_by_secret() -> None:
    table = Table((4,), outputs=(5,))
    weights = np.random.default_rng(5).multinomial(1 << 12, np.full(5, 0.2), size=12)
    table.protocols = [protocol("x", weights, alphabet("s", 3))]
    drawn = table.draw()
    table.check(drawn)
    # Drawn as if everybody had the secret of the next person: right over all, wrong for each s.
    table.protocols = [protocol("x", np.roll(weights, 4, axis=0), alphabet("s", 3))]
    with pytest.raises(DrawError, match="do not follow"):
        table.check(drawn)


def biased(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """One answer in fifty is output 0, whatever the weights say."""
    return [np.where(np.arange(ROWS) % 50 == 0, 0, drawn[0]), drawn[1]]


def wrong_input(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """Each draw answers for the row before."""
    return [np.roll(drawn[0], 1), drawn[1]]


def stuck(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """The first tenth of the rows is repeated to the end: right in kind, too many of each."""
    order = np.lexsort((np.arange(ROWS), table.x[0]))
    copied = drawn[0].copy()
    for x in range(5):
        places = order[table.x[0][order] == x]
        copied[places] = drawn[0][places[np.arange(len(places)) // 500 * 500]]
    return [copied, drawn[1]]


def off_by_one(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """The next output in one case of thirty, as a kernel with wrong thresholds would."""
    return [np.where(np.arange(ROWS) % 30 == 0, (drawn[0] + 1) % 6, drawn[0]), drawn[1]]


@pytest.mark.parametrize("fault", [biased, wrong_input, stuck, off_by_one])
def test_a_faulty_kernel_is_caught(fault: Callable[[Table, list[np.ndarray]], list[np.ndarray]]) -> None:
    table = Table()
    with pytest.raises(DrawError, match=r"G = [\d.]+ with \d+ degrees of freedom.* p = ") as caught:
        table.check(fault(table, table.draw()))
    assert caught.value.code == "draw-distribution"


def test_blocks_that_share_randomness_are_caught() -> None:
    """Each block alone is perfect, so only the released combinations can tell."""
    table = Table((4, 4), outputs=(4, 4))
    uniform = np.random.default_rng(9).integers(0, 1 << 16, ROWS)
    shared = [
        (protocol_.thresholds()[x] <= uniform[:, None]).sum(axis=1)
        for protocol_, x in zip(table.protocols, table.x, strict=True)
    ]
    for block in range(2):
        fit = g_test(*_cells(table, shared, block))
        assert fit.chance > 1e-6
    with pytest.raises(DrawError, match="x with z"):
        table.check(shared)


def _cells(table: Table, drawn: list[np.ndarray], block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = table.tally(drawn).tables[block]
    expected = counts.sum(axis=1, keepdims=True) * table.protocols[block].probabilities()[:, 0, :].T
    return counts.ravel(), expected.ravel(), np.repeat(np.arange(counts.shape[0]), counts.shape[1])


def test_a_large_sparse_table_is_still_tested_as_a_whole() -> None:
    """No (input, output) cell expects even one row, but the outputs over all inputs do."""
    table = Table((300,), 2000, (280,))
    drawn = table.draw()
    halved = [np.where(np.arange(2000) % 2 == 0, drawn[0] // 2 * 2, drawn[0])]
    fixed = Table((300,), 2000, (280,))
    fixed.protocols = table.protocols
    with pytest.raises(DrawError):
        fixed.check(halved)


def test_an_output_of_weight_zero() -> None:
    table = Table((2,), 1000, (3,))
    table.protocols = [protocol("x", [[16, 0, 0], [8, 8, 0]])]
    drawn = table.draw()
    table.check(drawn)
    wrong = drawn[0].copy()
    wrong[np.flatnonzero(table.x[0] == 0)[:2]] = 1
    with pytest.raises(DrawError, match="2 rows of x hold values that their protocol never draws"):
        table.check([wrong])


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (lambda x: np.where(np.arange(len(x)) < 7, (x + 1) % 4, x), "7 rows"),
        (lambda x: x[:-3], "3 rows"),
        (lambda x: np.append(x, [1, 1]), "2 rows"),
    ],
)
def test_a_source_that_changed_between_counting_and_drawing(
    change: Callable[[np.ndarray], np.ndarray], moved: str
) -> None:
    table = Table((4,), 1000, (4,))
    table.x = [np.sort(table.x[0])]
    table.x = [change(table.x[0])]
    tally = Tally(table.protocols)
    tally.count(table.x, [np.zeros(len(table.x[0]), np.int64)])
    with pytest.raises(SourceError, match=moved) as caught:
        check_draws(tally, table.protocols, table.joint)
    assert caught.value.code == "source-changed"


def test_expected_combinations_are_the_exact_table() -> None:
    table = Table((3, 4, 2), 400, (2, 3, 4))
    exact = released_table(table.joint, table.protocols).sum(axis=0)
    assert np.allclose(
        expected_released(table.joint, table.protocols), (exact / 2**48).astype(float), rtol=1e-12
    )
    secret = alphabet("s", 3)
    weights = np.random.default_rng(1).multinomial(256, [0.5, 0.5], size=9)
    mixed: list[Protocol] = [protocol("x", weights, secret), *table.protocols[1:]]
    exact = released_table(table.joint, mixed).sum(axis=0)
    assert np.allclose(expected_released(table.joint, mixed), (exact / 2**40).astype(float), rtol=1e-12)


def test_a_product_too_large_to_measure_is_refused_not_skipped() -> None:
    rng = np.random.default_rng(0)
    joint: Joint = joint_of(*(np.append(np.arange(200), rng.integers(0, 200, 100)) for _ in range(4)))
    laws = [random_protocol(i, "xzv"[i], 200, 200, 16) for i in range(3)]
    with pytest.raises(PlanError):
        expected_released(joint, laws)


# The test itself: calibrated where it decides, which is far out in the tail.


def test_pooling_keeps_strata_apart_and_every_group_full() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        expected = rng.exponential(rng.choice([0.1, 3.0, 30.0]), size=rng.integers(1, 200))
        stratum = np.sort(rng.integers(0, 5, len(expected)))
        shuffled = rng.permutation(len(expected))
        group = _pool(expected[shuffled], stratum[shuffled], 12.0)
        for g in range(group.max() + 1):
            members = shuffled[group == g]
            whole = np.count_nonzero(stratum == stratum[members[0]]) == len(members)
            assert len(set(stratum[members].tolist())) == 1
            assert whole or expected[members].sum() > 12.0 * (1 - 1e-9)
        assert set(group.tolist()) == set(range(group.max() + 1))


def test_pooling_leaves_large_cells_alone() -> None:
    assert len(set(_pool(np.full(6, 20.0), np.zeros(6, np.int64), 12.0).tolist())) == 6


@pytest.mark.parametrize(
    ("cells", "width", "mean"), [(4, 4, 15.0), (4000, 4, 15.0), (8000, 80, 3.0), (200_000, 4, 40.0)]
)
def test_chances_are_uniform_when_the_expectation_is_right(cells: int, width: int, mean: float) -> None:
    """With many cells a bias of one part in a thousand a cell would refuse every honest release."""
    rng = np.random.default_rng(cells)
    rows = cells // width
    shares = rng.dirichlet(np.full(width, 3.0), size=rows)
    totals = np.full(rows, round(width * mean))
    stratum = np.repeat(np.arange(rows), width)
    chances = [
        g_test(rng.multinomial(totals, shares).ravel(), (totals[:, None] * shares).ravel(), stratum).chance
        for _ in range(300 if cells < 100_000 else 25)
    ]
    assert kstest(chances, "uniform").pvalue > 1e-4


def test_the_more_cells_the_fuller_they_have_to_be() -> None:
    """What Williams' factor leaves of the bias adds up cell by cell, the spread only with its root."""

    def groups(cells: int) -> int:
        expected = np.full(cells, 13.0)
        return g_test(expected.astype(np.int64), expected, np.zeros(cells, np.int64)).freedom + 1

    assert groups(1000) == 1000
    assert groups(1_000_000) <= 1_000_000 / 2


@pytest.mark.parametrize("total", [24, 30, 50, 100, 1000])
def test_the_far_tail_of_two_cells_is_not_heavier_than_claimed(total: int) -> None:
    """Exact: the chance that a binomial count is refused at 10^-9 stays within a small factor of 10^-9."""
    from scipy.stats import binom

    for share in (0.5, 13 / total):
        expected = np.array([share * total, (1 - share) * total])
        counts = np.arange(total + 1)
        refused = [
            g_test(np.array([o, total - o]), expected, np.zeros(2, np.int64)).chance < 1e-9 for o in counts
        ]
        assert binom.pmf(counts, total, share)[refused].sum() < 5e-9


def test_the_statistic_is_that_of_the_textbook_when_cells_are_large() -> None:
    observed, expected = np.array([60_200, 39_800]), np.array([60_000.0, 40_000.0])
    fit = g_test(observed, expected, np.zeros(2, np.int64))
    assert fit.freedom == 1
    assert fit.statistic == pytest.approx(2 * float((observed * np.log(observed / expected)).sum()), rel=1e-4)
    assert fit.chance == pytest.approx(chi2.sf(fit.statistic, 1))
