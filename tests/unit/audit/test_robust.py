"""Robust LDP: no distribution of the uncertainty set leaks more than is certified, and one leaks nearly as much."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

from funnel.audit.ends import depth, lowest
from funnel.audit.robust import robust_ratio
from funnel.audit.uncertainty import Uncertainty, around
from tests.unit.audit import samples
from tests.unit.audit.forge import Block, Forgery, as_ratio, forge, within
from tests.unit.audit.samples import detail, failures, lies
from tests.unit.audit.test_side import as_read

ORDERS = [
    Fraction(2),
    Fraction(1),
    Fraction(3),
    Fraction(3, 2),
    Fraction(1, 2),
    Fraction(4, 5),
    Fraction(1, 4),
]


class _Stated:
    """As much of a manifest as names an uncertainty set."""

    def __init__(self, order: Fraction, radius: Fraction) -> None:
        self.parameters: Any = self
        self.order, self.radius = order, radius


def spread(counts: Any, order: Fraction, radius: Fraction, blocks: list[Block] | None = None) -> Uncertainty:
    """The set around N[s, x]."""
    labels: list[list[str | None]] = [[str(x)] for x in range(counts.shape[1])]
    named = blocks or [Block(["x"], labels, labels, 0, np.eye(counts.shape[1], dtype=int).tolist())]
    return around(as_read(counts, named)[0], _Stated(order, radius))  # type: ignore[arg-type]


def certified(counts: Any, weights: Any, order: Fraction, radius: Fraction) -> Fraction | None:
    """The auditor's bound of the ratio, for weights W[y, x] that need not sum to a power of two."""
    labels: list[list[str | None]] = [[str(x)] for x in range(counts.shape[1])]
    rows: list[list[str | None]] = [[str(y)] for y in range(len(weights))]
    evidence, (block,) = as_read(counts, [Block(["x"], labels, rows, 20, np.asarray(weights).tolist())])
    return robust_ratio(block, around(evidence, _Stated(order, radius)))  # type: ignore[arg-type]


def divergence(estimate: Any, truth: Any, order: float) -> float:
    """D_α(P̂ || P) of positive P, by its definition."""
    seen = estimate > 0
    if order == 1:
        return float((estimate[seen] * np.log(estimate[seen] / truth[seen])).sum())
    return math.log((estimate[seen] ** order * truth[seen] ** (1 - order)).sum()) / (order - 1)


def leaked(truth: Any, weights: Any) -> float:
    """max P(y|s)/P(y|s')."""
    given_s = truth / truth.sum(axis=1, keepdims=True) @ np.asarray(weights).T
    return float((given_s.max(axis=0) / given_s.min(axis=0)).max())


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Fraction]:
    """Counts (c, a), some zero; weights (b, a); a radius."""
    c, a, b = draw(st.integers(2, 3)), draw(st.integers(2, 4)), draw(st.integers(1, 3))
    cell = st.one_of(st.just(0), st.integers(1, 60))
    counts = np.array(draw(st.lists(cell, min_size=c * a, max_size=c * a))).reshape(c, a)
    counts[:, 0] += 1
    size = st.one_of(st.integers(1, 3), st.integers(0, 5000))
    weights = np.array(draw(st.lists(size, min_size=b * a, max_size=b * a))).reshape(b, a)
    assume((weights.sum(axis=1) > 0).all())
    return counts, weights, Fraction(draw(st.integers(1, 300)), 1000)


@given(cases(), st.sampled_from(ORDERS), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_no_distribution_of_the_set_leaks_more(case: Any, order: Fraction, seed: int) -> None:
    """From the estimate in random directions, those that favour one output for one secret among them, to the edge."""
    counts, weights, radius = case
    bound = certified(counts, weights, order, radius)
    assume(bound is not None)
    estimate, random = counts / counts.sum(), np.random.default_rng(seed)
    for _ in range(12):
        tilt = random.normal(size=estimate.shape) * random.choice([0.2, 1, 5])
        y, s = random.integers(len(weights)), random.integers(len(counts))
        tilt[s] += random.choice([0, 4]) * weights[y] / weights[y].max()
        target = (estimate + 1e-6 * random.random(estimate.shape)) * np.exp(tilt)
        target /= target.sum()

        def mixed(part: float, target: Any = target) -> Any:
            return (1 - part) * estimate + part * target

        far = divergence(estimate, target, float(order))
        edge = 1.0
        if far > radius:
            edge = brentq(
                lambda part: divergence(estimate, mixed(part), float(order)) - float(radius), 1e-12, 1.0
            )
        truth = mixed(edge * (1 - 1e-9))
        assert divergence(estimate, truth, float(order)) <= float(radius)
        assert leaked(truth, weights) <= float(bound) * (1 + 1e-12)


TIGHT = [
    (order, counts)
    for order in ORDERS[:-1]
    for counts in ([[40, 20, 6], [10, 30, 25]], [[0, 30, 12], [25, 9, 40]])
]


@pytest.mark.parametrize(("order", "counts"), TIGHT)
def test_some_distribution_of_the_set_leaks_as_much(order: Fraction, counts: list[list[int]]) -> None:
    """What a search over all of F finds is within 10^-6 of the certified bound."""
    table, weights, radius = np.array(counts), np.array([[900, 300, 500]]), 0.05
    bound = certified(table, weights, order, Fraction("0.05"))
    estimate, best = table / table.sum(), 1.0
    for first, second in ((0, 1), (1, 0)):

        def gain(free: Any, first: int = first, second: int = second) -> float:
            truth = as_distribution(free, estimate.shape)
            given_s = truth / truth.sum(axis=1, keepdims=True) @ weights[0]
            return -math.log(given_s[first] / given_s[second])

        def room(free: Any) -> float:
            return radius - divergence(estimate, as_distribution(free, estimate.shape), float(order))

        start = np.log(estimate + 1e-4).ravel()
        found = minimize(gain, start, constraints={"type": "ineq", "fun": room}, method="SLSQP",
                         options={"maxiter": 400, "ftol": 1e-13})  # fmt: skip
        if room(found.x) > -1e-8:
            best = max(best, math.exp(-found.fun))
    assert bound is not None
    assert best >= float(bound) * (1 - 1e-6)


def as_distribution(free: Any, shape: tuple[int, ...]) -> Any:
    positive = np.exp(free - free.max())
    return (positive / positive.sum()).reshape(shape)


@given(st.integers(1, 99), st.integers(1, 400), st.sampled_from([-1, 1]))
@settings(max_examples=25)
def test_one_chance_lies_between_the_ends_of_the_closed_form(one: int, thousandths: int, side: int) -> None:
    """[RLDP] section IV, order 2: (e^B + 2ρ - 1 ± sqrt((e^B - 1)(e^B - (2ρ - 1)²)))/2e^B, from a ball of radius B."""
    (seen,) = spread(np.array([[one, 100 - one]]), Fraction(2), Fraction(thousandths, 1000)).seen
    grown, rho = math.exp(thousandths / 1000), one / 100
    exact = (grown + 2 * rho - 1 + side * math.sqrt((grown - 1) * (grown - (2 * rho - 1) ** 2))) / (2 * grown)
    row = np.array([1, 0]) * -side
    far = depth(row[None].astype(float), seen.chances, np.array(float(seen.shrink)), 2.0)
    found = float(lowest(row, seen, float(far[0]), Fraction(2))) * -side
    assert found == pytest.approx(exact, abs=1e-11)
    assert (found - exact) * side >= -1e-12


@given(st.integers(1, 99), st.integers(1, 400), st.sampled_from(ORDERS))
@settings(max_examples=25)
def test_the_lowest_chance_is_where_the_divergence_reaches_the_radius(
    one: int, thousandths: int, order: Fraction
) -> None:
    (seen,) = spread(np.array([[one, 100 - one]]), order, Fraction(thousandths, 1000)).seen
    estimate, radius = np.array([one / 100, 1 - one / 100]), thousandths / 1000
    far = depth(np.array([[1.0, 0.0]]), seen.chances, np.array(float(seen.shrink)), float(order))
    found = float(lowest(np.array([1, 0]), seen, float(far[0]), order))
    if divergence(estimate, np.array([1e-12, 1 - 1e-12]), float(order)) < radius:
        assert found < 2e-12
    else:
        reached = divergence(estimate, np.array([found, 1 - found]), float(order))
        assert reached == pytest.approx(radius, rel=1e-6)


def test_a_radius_of_zero_leaves_the_estimate() -> None:
    counts, weights = np.array([[40, 20, 7], [10, 30, 25]]), [[900, 300, 500], [1, 2, 3]]
    assert float(certified(counts, weights, Fraction(2), Fraction(0)) or 0) == pytest.approx(
        leaked(counts / counts.sum(), weights), rel=1e-12
    )


def test_rows_that_say_nothing_and_rows_that_nobody_can_make_leak_nothing() -> None:
    counts = np.array([[40, 20, 7], [10, 30, 25]])
    assert certified(counts, [[5, 5, 5], [0, 0, 0]], Fraction(2), Fraction(1, 10)) == 1
    assert certified(counts, [[5, 5, 0], [0, 0, 5]], Fraction(1, 2), Fraction(5)) is None


# --- releases

COUNTS = np.array([[300, 200, 150, 80], [150, 260, 290, 240]])
HIDDEN = samples.keep_or_spread(["education"], samples.EDUCATION, 10, 400)
PAIRS: list[list[str | None]] = [["s0", "u"], ["s0", "v"], ["s1", "u"], ["s1", "v"]]
TOLD = np.array([[300, 200, 0, 0], [0, 0, 150, 410]])


def radius_of(confidence: float, cells: int, rows: int, order: float = 2) -> float:
    """What a confidence asks for, from the formula."""
    quantile = chi2.ppf(confidence, cells - 1)
    return float(math.log1p(quantile / rows) if order == 2 else order / 2 * quantile / rows)


def responses(epsilon: float) -> Block:
    """SRR on (s, u) of two values each at 2^20."""
    whole, grown = 1 << 20, math.exp(epsilon)
    size = grown + 1 / grown + 2
    other, kept = math.ceil(whole / size), math.ceil(whole / size / grown) + 1
    same = whole - 2 * other - kept
    rows = [[same if x == y else kept if x // 2 == y // 2 else other for x in range(4)] for y in range(4)]
    return Block(["secret", "u"], PAIRS, PAIRS, 20, rows)


def robust(counts: Any, block: Block, ratio: Fraction, **options: Any) -> Forgery:
    """A release with a known robust ratio."""
    rows = int(counts.sum())
    cells = 4 if block.columns[0] == "secret" else counts.size
    order = options.pop("order", 2.0)
    parameters = {"order": order, "confidence": 0.95, "radius": radius_of(0.95, cells, rows, order)}
    told: dict[str, Any] = {"notion": "rldp", "own": ratio, "parameters": parameters, "epsilon": 2.0}
    return forge(counts, [block], **told | options)


def searched(counts: Any, block: Block, radius: float) -> Fraction:
    """The largest ratio that a search over F finds where the secret is hidden, order 2."""
    estimate, best = counts / counts.sum(), 1.0
    for row in block.weights:
        for first, second in ((0, 1), (1, 0)):

            def gain(free: Any, row: Any = row, first: int = first, second: int = second) -> float:
                truth = as_distribution(free, counts.shape)
                given_s = truth / truth.sum(axis=1, keepdims=True) @ np.array(row)
                return -math.log(given_s[first] / given_s[second])

            def room(free: Any) -> float:
                return radius - divergence(estimate, as_distribution(free, counts.shape), 2.0)

            found = minimize(gain, np.log(estimate).ravel(), constraints={"type": "ineq", "fun": room},
                             method="SLSQP", options={"maxiter": 400, "ftol": 1e-14})  # fmt: skip
            best = max(best, math.exp(-found.fun))
    return Fraction(best)


RATIO = searched(COUNTS, HIDDEN, radius_of(0.95, 8, int(COUNTS.sum())))


def test_an_honest_release_of_a_hidden_secret_passes(tmp_path: Path) -> None:
    report = lies(robust(COUNTS, HIDDEN, RATIO), tmp_path)
    assert report.verdict == samples.WHOLE, report.text()
    assert samples.statuses(report)["uncertainty"] == "passed"


def test_an_honest_release_of_the_secret_itself_passes(tmp_path: Path) -> None:
    """SRR is robust whatever the distribution; what F alone allows is below e^ε."""
    block = responses(1.2)
    bound = pytest.approx(1.2, abs=1e-3)
    assert math.log(block.weights[0][0] / block.weights[0][2]) == bound
    forgery = robust(TOLD, block, Fraction(1), mechanism="secret-randomised-response", epsilon=1.2)
    (row,) = [
        line for line in detail(lies(forgery, tmp_path / "first"), "channel").split(", ") if "rldp" in line
    ]
    measured = Fraction(math.exp(float(row.split()[1])))
    forgery = robust(TOLD, block, measured, mechanism="secret-randomised-response", epsilon=1.2)
    report = lies(forgery, tmp_path / "second")
    assert report.verdict == samples.WHOLE, report.text()
    plain = max(
        Fraction(sum(map(int, TOLD[s] * row)), int(TOLD[s].sum()))
        / Fraction(sum(map(int, TOLD[1 - s] * row)), int(TOLD[1 - s].sum()))
        for row in np.array(block.weights)
        for s in (0, 1)
    )
    assert plain < measured < Fraction(math.exp(1.2))


def in_parameters(**changes: Any) -> Any:
    return lambda forgery: forgery.manifest["parameters"].update(changes)


def stated(name: str, ratio: Fraction) -> Any:
    def change(forgery: Forgery) -> None:
        forgery.evidence["leakage"][name] = as_ratio(ratio)
        forgery.manifest["leakage"][name] = within(ratio, None)

    return change


LIES: dict[str, tuple[set[str], Any]] = {
    "an epsilon that holds for the estimate alone": (
        {"leakage-bound", "stated-bound"},
        lambda forgery: forgery.manifest.update(epsilon=forgery.manifest["leakage"]["rldp"] - 0.002),
    ),
    "a radius too small for its confidence": ({"uncertainty"}, in_parameters(radius=0.008)),
    "the confidence of another set": ({"uncertainty"}, in_parameters(confidence=0.99)),
    "another order": ({"uncertainty"}, in_parameters(order=3.0)),
    "the leakage at the estimate": ({"leakage-exact", "leakage-stated"}, stated("rldp", Fraction(3, 2))),
    "an order of zero": ({"manifest"}, in_parameters(order=0)),
    "a certainty": ({"manifest"}, in_parameters(confidence=1)),
    "no radius": ({"manifest"}, in_parameters(radius=None)),
    "parameters of its own": ({"manifest"}, in_parameters(centre=0)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_robustness_fails(lie: str, tmp_path: Path) -> None:
    claims, change = LIES[lie]
    forgery = robust(COUNTS, HIDDEN, RATIO)
    forgery.policy = b""
    change(forgery)
    assert claims <= failures(lies(forgery, tmp_path))


def test_a_radius_may_be_named_instead_of_a_confidence(tmp_path: Path) -> None:
    forgery = robust(COUNTS, HIDDEN, RATIO)
    forgery.manifest["parameters"]["confidence"] = None
    report = lies(forgery, tmp_path)
    assert report.passed
    assert detail(report, "uncertainty").startswith("not claimed: ")


def test_a_weight_moved_by_one_breaks_a_bound_that_is_met(tmp_path: Path) -> None:
    epsilon = math.ceil(math.log(RATIO) * 1e7) / 1e7
    assert lies(robust(COUNTS, HIDDEN, RATIO, epsilon=epsilon), tmp_path / "honest").passed
    broken = set()
    for y in range(4):
        forgery = robust(COUNTS, HIDDEN, RATIO, epsilon=epsilon)
        rows = forgery.protocol["blocks"][0]["weights"]
        rows[y][y] += 1
        rows[(y + 1) % 4][y] -= 1
        broken |= failures(lies(forgery, tmp_path / str(y)))
    assert {"leakage-bound", "leakage-exact"} <= broken
