"""Estimates from a release: right on average, with intervals that hold as often as they say, or refused."""

from __future__ import annotations

import json
import math
import shutil
from itertools import product
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.analyst import figures
from funnel.analyst.estimate import BlockEstimates, solve
from funnel.analyst.release import weights as weights_of
from funnel.data import Alphabet, Protocol
from funnel.errors import ReleaseError
from funnel.format.canonical import encode
from funnel.measure.recovery import identifiable, inverse_of, inverted
from tests.kernel.samples import KINDS, refit, sample
from tests.support.census import census
from tests.support.policies import write_policy

RESPONSE = [[40, 8, 8, 8], [8, 40, 8, 8], [8, 8, 40, 8], [8, 8, 8, 40]]
"""Randomised response over 2^6."""
UNEVEN = [[50, 4, 30], [10, 44, 2], [4, 16, 32]]
TALL = [[40, 2], [14, 10], [8, 30], [2, 22]]
"""More outputs than values."""
MIXED = [[64, 0, 0, 0], [0, 48, 16, 32], [0, 16, 48, 32]]
"""The first value passes; the chances of the last are those of the middle two, mixed."""
TWINS = [[40, 40, 8], [24, 24, 56]]
"""The first two values have equal chances."""
REGULAR = {"response": RESPONSE, "uneven": UNEVEN, "tall": TALL}


def of_outputs(one: Protocol, released: np.ndarray, confidence: float) -> BlockEstimates:
    """The estimates from the counts of all outputs."""
    return solve(one, np.arange(len(released)), np.asarray(released), confidence)


def block(weights: list, bits: int = 6) -> Protocol:
    """A block whose values are x0, x1, … and outputs x0, x1, …; weights [y][x], or [y][s][x]."""
    grid = np.array(weights, np.int64)
    secret = None if grid.ndim == 2 else Alphabet(("s",), tuple((f"s{i}",) for i in range(grid.shape[1])))
    grid = grid[:, None, :] if grid.ndim == 2 else grid
    assert (grid.sum(axis=0) == 1 << bits).all()
    labels = [tuple((f"x{i}",) for i in range(size)) for size in (grid.shape[2], grid.shape[0])]
    return Protocol(*(Alphabet(("x",), one) for one in labels), bits, grid, secret)


def drawn(one: Protocol, counts: np.ndarray, times: int, seed: int = 1) -> np.ndarray:
    """Released counts of many independent releases, (times, b); counts (a,) or (c, a) by secret."""
    random = np.random.default_rng(seed)
    chances = one.weights.reshape(len(one.outputs), -1) / (1 << one.bits)
    each = [random.multinomial(n, q, size=times) for n, q in zip(counts.ravel(), chances.T, strict=True)]
    return sum(each)


def groups(found: BlockEstimates) -> list[tuple[str | None, ...]]:
    return [tuple(value[0] for value in one.values) for one in found.estimates]


@pytest.mark.long
@pytest.mark.parametrize("weights", [*REGULAR.values(), MIXED, TWINS], ids=[*REGULAR, "mixed", "twins"])
def test_estimates_are_right_on_average_and_so_are_their_errors(weights):
    one = block(weights)
    truth = np.array([700, 150, 400, 60])[: len(one.inputs)]
    found = [of_outputs(one, row, 0.95) for row in drawn(one, truth, 2000)]
    count = np.array([[e.count for e in each.estimates] for each in found])
    error = np.array([[e.standard_error for e in each.estimates] for each in found])
    totals = np.array([sum(truth[int(name[1:])] for name in group) for group in groups(found[0])])
    deviation = count.std(axis=0)
    assert (np.abs(count.mean(axis=0) - totals) <= 4 * deviation / np.sqrt(2000) + 1e-9).all()
    np.testing.assert_allclose(error.mean(axis=0), deviation, rtol=0.07, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("weights", REGULAR.values(), ids=REGULAR)
def test_intervals_hold_the_truth_as_often_as_they_say(weights, confidence):
    one = block(weights)
    truth = np.array([900, 300, 500, 10])[: len(one.inputs)]
    times = 1500
    hits = np.zeros(len(truth))
    for row in drawn(one, truth, times, seed=2):
        estimates = of_outputs(one, row, confidence).estimates
        hits += [e.low <= n <= e.high for e, n in zip(estimates, truth, strict=True)]
    slack = 4 * np.sqrt(confidence * (1 - confidence) / times) + 0.01
    assert (np.abs(hits / times - confidence) <= slack).all(), hits / times


def _switched(n: int, chance: float) -> np.ndarray:
    """The law of how many of n records are answered with the other value."""
    return np.array([math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)])


@pytest.mark.parametrize(("confidence", "least"), [(0.9, 0.88), (0.95, 0.93), (0.99, 0.97)])
def test_over_all_releases_intervals_hold_the_truth_however_few_answers_are_changed(confidence, least):
    """Of 100 records, where one answer in 400 was changed, 0.95 were 0.79: one change put the truth outside."""
    chances = (0, 1, 4, 12, 25, 35, 64)
    for (u, v), out, into in product([(0, 60), (2, 58), (30, 30), (59, 1)], chances, chances):
        one = block([[1024 - out, into], [out, 1024 - into]], 10)
        law = np.convolve(_switched(u, out / 1024)[::-1], _switched(v, into / 1024))
        held = 0.0
        for seen, chance in enumerate(law):
            if chance > 1e-6:
                first, second = of_outputs(one, np.array([seen, u + v - seen]), confidence).estimates
                held += chance * (first.low - 1e-9 <= u <= first.high + 1e-9)
                assert first.high - first.low == pytest.approx(second.high - second.low, abs=1e-9)
                assert out or into or first.low == first.high == u
        assert held > least, (u, v, out, into)


def test_a_square_protocol_is_inverted_and_its_errors_are_propagated():
    one = block(UNEVEN)
    released = np.array([500, 400, 300])
    chances = np.array(UNEVEN) / 64
    inverse = np.linalg.inv(chances)
    count = inverse @ released
    assert (count > 1).all()
    covariance = sum(n * (np.diag(q) - np.outer(q, q)) for n, q in zip(count, chances.T, strict=True))
    error = np.sqrt(np.diag(inverse @ covariance @ inverse.T))
    found = of_outputs(one, released, 0.9).estimates
    np.testing.assert_allclose([e.count for e in found], count)
    np.testing.assert_allclose([e.standard_error for e in found], error)
    # one answer changes an estimate by as much as the numbers for two answers are apart; all answers are possible
    reach = NormalDist().inv_cdf(0.95) * np.hypot(error, np.ptp(inverse, axis=1))
    np.testing.assert_allclose(
        [(e.low, e.high) for e in found], np.column_stack([count - reach, count + reach])
    )


def test_with_more_outputs_than_values_no_linear_estimate_is_better_for_uniform_counts():
    chances = np.array(TALL) / 64
    uniform = np.diag(chances.sum(axis=1)) - chances @ chances.T
    weights = inverted(np.array(TALL), 6, 2).matrix.T
    np.testing.assert_allclose(weights @ chances, np.eye(2), atol=1e-12)
    own = np.diag(weights @ uniform @ weights.T)
    for other in np.random.default_rng(3).normal(size=(50, 2, 4)):
        shift = other @ (np.eye(4) - chances @ np.linalg.pinv(chances))
        rival = weights + shift
        np.testing.assert_allclose(rival @ chances, np.eye(2), atol=1e-9)
        assert (np.diag(rival @ uniform @ rival.T) >= own - 1e-9).all()


@st.composite
def protocols(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Any weights (b, a) over 2^8, often of low rank, and released counts (b,)."""
    a, b = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    cuts = st.lists(st.integers(0, 256), min_size=b - 1, max_size=b - 1).map(sorted)
    kinds = draw(st.lists(cuts, min_size=1, max_size=a))
    columns = [np.diff([0, *kinds[draw(st.integers(0, len(kinds) - 1))], 256]) for _ in range(a)]
    counts = draw(st.lists(st.integers(0, 10_000), min_size=b, max_size=b))
    return np.array(columns).T, np.array(counts, np.int64)


@given(protocols())
def test_the_total_is_kept_and_groups_are_estimable(case):
    weights, released = case
    released = np.where(weights.sum(axis=1) > 0, released, 0)
    a = weights.shape[1]
    rank, group = identifiable(weights, np.arange(a), a)
    assert rank == np.linalg.matrix_rank(weights)
    for member in range(group.max() + 1):
        indicator = (group == member).astype(float)
        combination = np.linalg.lstsq(weights.T / 256, indicator, rcond=1e-10)[0]
        np.testing.assert_allclose(weights.T @ combination / 256, indicator, atol=1e-6)
    for i, j in zip(*np.nonzero(np.triu(np.ones((a, a)), 1)), strict=True):
        if (weights[:, i] == weights[:, j]).all():
            assert group[i] == group[j]
    found = of_outputs(block(weights.tolist(), 8), released, 0.95)
    if found.estimates:
        assert sum(e.count for e in found.estimates) == pytest.approx(released.sum(), rel=1e-9, abs=1e-6)
        assert sorted(name for each in groups(found) for name in each) == [f"x{i}" for i in range(a)]
        assert all(e.standard_error >= 0 for e in found.estimates)


def test_answers_that_are_all_the_same_have_an_error_that_is_a_number():
    """All that is left of the variance is what floating point lost; but other answers could have been seen."""
    weights = [[0, 0, 0, 155], [5, 5, 5, 43], [251, 251, 251, 58]]
    found = of_outputs(block(weights, 8), np.array([0, 3, 0]), 0.95)
    inverse = inverted(np.array(weights, np.int64), 8, 4)
    apart = np.ptp(inverse.matrix @ inverse.members.T, axis=0)
    assert [one.standard_error for one in found.estimates] == pytest.approx(apart.tolist())


def test_what_no_record_happens_to_show_is_not_said_to_be_known():
    """One value alone is ever released as 2, once in 1,024: that nobody shows it does not say that nobody has it."""
    found = of_outputs(block([[1, 0, 0], [1023, 1024, 1024]], 10), np.array([0, 600]), 0.95)
    alone = next(one for one in found.estimates if len(one.values) == 1)
    assert (alone.count, alone.standard_error) == pytest.approx((0.0, 1024.0), abs=1e-6)
    assert alone.low < 1 < alone.high
    rest = next(one for one in found.estimates if len(one.values) == 2)
    assert (rest.count, rest.standard_error) == pytest.approx((600.0, 1024.0), abs=1e-6)
    certain = of_outputs(block([[1, 0, 0], [0, 1, 1]], 0), np.array([0, 300]), 0.95)
    assert [one.standard_error for one in certain.estimates] == [0.0, 0.0]


def test_rank_is_decided_on_integers_where_floating_point_cannot():
    big = 1 << 61
    regular = np.array([[big, big - 1], [big, big + 1]], np.int64)
    assert np.linalg.matrix_rank(regular.astype(float)) == 1
    assert identifiable(regular, np.arange(2), 2)[0] == 2
    found = of_outputs(block(regular.tolist(), 62), np.array([500, 500]), 0.95)
    assert found.rank == 2
    assert found.estimates == ()
    assert "no estimate would mean anything" in found.text()


@pytest.mark.parametrize("apart", [1 << 26, 1 << 4])
def test_a_protocol_close_to_a_lower_rank_is_solved_with_a_warning(apart):
    half = 1 << 29
    one = block([[half + apart, half - apart], [half - apart, half + apart]], 30)
    found = of_outputs(one, np.array([51, 49]), 0.95)
    # Q is symmetric with eigenvalues 1 and 2 apart / 2^30.
    assert found.condition == pytest.approx(half / apart, rel=1e-6)
    assert found.estimates[0].count - 50 == pytest.approx(half / apart)
    assert ("condition number above" in found.text()) is (apart == 1 << 4)


def test_the_identity_returns_the_counts_without_error():
    one = block([[64, 0, 0], [0, 64, 0], [0, 0, 64]])
    found = of_outputs(one, np.array([7, 0, 12]), 0.95).estimates
    assert [(e.count, e.standard_error, e.low, e.high) for e in found] == [
        (7.0, 0.0, 7.0, 7.0), (0.0, 0.0, 0.0, 0.0), (12.0, 0.0, 12.0, 12.0)
    ]  # fmt: skip


def test_an_output_of_another_name_or_that_cannot_occur_does_no_harm():
    one = block([[64, 0], [0, 64], [0, 0]])
    found = of_outputs(one, np.array([30, 70, 0]), 0.95)
    assert [(e.count, e.standard_error) for e in found.estimates] == [(30, 0), (70, 0)]
    assert "x2" in found.text()
    assert found.released == {("x0",): 30, ("x1",): 70, ("x2",): 0}


def test_without_full_rank_groups_that_can_be_told_apart_are_estimated():
    mixed = of_outputs(block(MIXED), np.array([100, 60, 40]), 0.95)
    assert mixed.rank == 3
    assert groups(mixed) == [("x0",), ("x1", "x2", "x3")]
    assert [(e.count, e.standard_error) for e in mixed.estimates] == [(pytest.approx(100), 0)] * 2
    assert "rank 3 for 4 values" in mixed.text()
    assert not mixed.as_dict()["complete"]
    twins = of_outputs(block(TWINS), np.array([60, 40]), 0.95)
    assert groups(twins) == [("x0", "x1"), ("x2",)]
    assert sum(e.count for e in twins.estimates) == pytest.approx(100)


def test_where_no_group_can_be_told_apart_the_released_counts_are_all():
    found = of_outputs(block([[40, 40, 40], [24, 24, 24]]), np.array([60, 40]), 0.95)
    assert (found.rank, found.estimates) == (1, ())
    assert "only the number of rows is certain" in found.text()
    assert found.as_dict()["released"] == [
        {"value": ("x0",), "count": 60}, {"value": ("x1",), "count": 40}
    ]  # fmt: skip
    assert groups(of_outputs(block([[40], [24]]), np.array([60, 40]), 0.95)) == [("x0",)]


def test_a_protocol_that_reads_the_secret_tells_nothing_unless_it_does_not_use_it():
    # keeps x where the randomised secret is the true one, else draws by the other secret's distribution
    noise = np.array([[12, 4], [4, 12]])
    kept = np.stack(
        [np.stack([noise[:, s] + 48 * np.eye(2, dtype=int)[:, x] for x in (0, 1)], -1) for s in (0, 1)], 1
    )
    found = of_outputs(block(kept.tolist()), np.array([60, 40]), 0.95)
    assert found.estimates == ()
    assert "reads the secret" in found.text()
    plain = np.repeat(np.array(UNEVEN)[:, None, :], 2, axis=1)
    idle, same = of_outputs(block(plain.tolist()), np.array([500, 400, 300]), 0.95), of_outputs(
        block(UNEVEN), np.array([500, 400, 300]), 0.95
    )  # fmt: skip
    assert idle.notes == ()
    np.testing.assert_allclose([e.count for e in idle.estimates], [e.count for e in same.estimates])
    np.testing.assert_allclose(
        [e.standard_error for e in idle.estimates], [e.standard_error for e in same.estimates], rtol=1e-6
    )


def test_a_secret_used_for_some_values_only_leaves_the_others_estimable():
    # x0 is always released as it is; x1 and x2 are mixed up, differently for each secret
    weights = [[[64, 0, 0]] * 2, [[0, 48, 16], [0, 40, 8]], [[0, 16, 48], [0, 24, 56]]]
    found = of_outputs(block(weights), np.array([100, 60, 40]), 0.95)
    assert groups(found) == [("x0",), ("x1", "x2")]
    assert [(e.count, e.standard_error) for e in found.estimates] == [
        (pytest.approx(100), 0), (pytest.approx(100), 0)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def released(key, tmp_path_factory):
    """Releases of the census, each made once."""
    folder, made = tmp_path_factory.mktemp("census"), {}

    def make(name: str, **changes) -> Path:
        if name not in made:
            (folder / name).mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("FUNNEL_KEY", key)
                made[name] = Path(funnel.run(write_policy(folder / name, **changes)).release)
        return made[name]

    return make


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["optimal", "randomised-response"])
def test_intervals_of_a_census_release_hold_the_true_counts(released, mechanism):
    # The key is a new one: at this confidence all intervals hold, but for once in tens of thousands of keys.
    found = funnel.estimate_counts(released(mechanism, mechanism=mechanism), 0.999999)
    (one,) = found.blocks
    joint = census("marital_status", "education")
    truth = dict(zip(joint.blocks[0].values, joint.table().sum(axis=0).tolist(), strict=True))
    assert {e.values[0] for e in one.estimates} == set(truth)
    for e in one.estimates:
        assert e.low - 1e-6 <= truth[e.values[0]] <= e.high + 1e-6, e
    assert any(not e.low <= e.released <= e.high for e in one.estimates)
    assert sum(e.count for e in one.estimates) == pytest.approx(32_561, rel=1e-12)
    assert found.rows == sum(one.released.values()) == 32_561


def test_the_secret_reading_release_of_the_census_is_not_estimated(released):
    (one,) = funnel.estimate_counts(released("reporting", mechanism="conditional-reporting")).blocks
    assert one.estimates == ()
    assert sum(one.released.values()) == 32_561


def test_blocks_csv_latest_and_json(released):
    release = released("blocks", public=["sex", {"name": "age", "bins": [0, 40]}], release__format="csv")
    found = funnel.estimate_counts(release)
    assert [block.columns for block in found.blocks] == [("sex",), ("age",)]
    told = json.loads(json.dumps(funnel.estimate_counts(release.parent, 0.95).as_dict(), allow_nan=False))
    assert told == json.loads(json.dumps(found.as_dict()))
    assert told["release"] == release.name
    assert {"values", "released", "count", "standard_error", "low", "high", "flag"} == set(
        told["blocks"][0]["estimates"][0]
    )
    for block_ in found.blocks:
        rows = duckdb.sql(
            f"SELECT \"{block_.columns[0]}\", count(*) FROM '{release}/data.csv' GROUP BY 1"
        ).fetchall()
        assert dict(rows) == {v[0]: n for v, n in block_.released.items() if n}


@pytest.mark.parametrize("kind", ["lip", "two blocks", "three blocks", "reads the secret", "sets", "perfect"])
def test_what_was_released_is_read_as_it_stands(tmp_path, kind):
    forged = sample(**KINDS[kind])
    found = funnel.estimate_counts(forged.write(tmp_path)[0])
    for axis, (one, told) in enumerate(zip(found.blocks, forged.protocol.blocks, strict=True)):
        values = getattr(told, "outputs", told.inputs)
        counted = dict.fromkeys(values, 0)
        for *codes, count in forged.released.rows:
            size = len(values)
            held = [codes[axis]] if hasattr(told, "outputs") else range(size)
            for y in held:
                counted[values[y]] += count * (hasattr(told, "outputs") or codes[axis] >> (size - 1 - y) & 1)
        assert one.released == counted
    assert all(ch.isprintable() or ch == "\n" for ch in found.text())


@pytest.mark.parametrize("name", ["release.json", "protocol.json", "released.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other"])
def test_a_damaged_release_is_refused_with_advice(released, tmp_path, name, damage):
    copy = tmp_path / "release"
    shutil.copytree(released("optimal"), copy)
    content = (copy / name).read_bytes()
    (copy / name).unlink()
    if damage != "missing":
        (copy / name).write_bytes({"empty": b"", "cut": content[:-20], "other": b"[1" + content[2:]}[damage])
    with pytest.raises(funnel.ReleaseError) as caught:
        funnel.estimate_counts(copy)
    assert caught.value.code == "release-unreadable"
    assert name in caught.value.message
    assert caught.value.advice


def _columns_off(told: dict) -> None:
    told["protocol.json"]["blocks"][0]["weights"][0][0] += 1


def _unknown_value(told: dict) -> None:
    told["released.json"]["rows"][-1][0] = 99


def _fewer_rows(told: dict) -> None:
    told["released.json"]["rows"].pop()


def _repeated_label(told: dict) -> None:
    outputs = told["protocol.json"]["blocks"][0]["outputs"]
    outputs[0] = outputs[1]


@pytest.mark.parametrize("lie", [_columns_off, _unknown_value, _fewer_rows, _repeated_label])
def test_a_release_whose_hashes_fit_but_whose_files_do_not_is_refused(tmp_path, lie):
    public, private = sample().write(tmp_path)
    told = {name: json.loads((public / name).read_bytes()) for name in ("protocol.json", "released.json")}
    lie(told)
    for name, content in told.items():
        (public / name).write_bytes(encode(content))
    refit(public, private)
    with pytest.raises(funnel.ReleaseError) as caught:
        funnel.estimate_counts(public)
    assert caught.value.code == "release-unreadable"


def test_the_three_files_that_are_read_suffice(released, tmp_path):
    for name in ("release.json", "protocol.json", "released.json"):
        shutil.copy(released("optimal") / name, tmp_path / name)
    assert funnel.estimate_counts(tmp_path).as_dict() == funnel.estimate_counts(released("optimal")).as_dict()


@pytest.mark.parametrize("confidence", [0, 1, 95, -1, float("nan")])
def test_a_confidence_is_a_share(released, confidence, capsys):
    with pytest.raises(funnel.ReleaseError, match="wrong-value"):
        funnel.estimate_counts(released("optimal"), confidence)
    from funnel.cli.app import main

    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(released("optimal")), "--confidence", str(confidence)])
    assert ended.value.code == 2


def test_the_command_prints_a_table_or_json(released, capsys, monkeypatch):
    from funnel.cli.app import main

    release = released("optimal")
    monkeypatch.chdir(release.parent)
    with pytest.raises(SystemExit) as ended:
        main(["estimate", release.name])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(release.name)
    (total,) = [line.split() for line in lines if line.startswith("  total")]
    assert total[1:3] == ["32,561", "32,561.0"]
    widths = {len(line.removesuffix("noisy").rstrip()) for line in lines if line.startswith("  ")}
    assert len(widths) == 1
    with pytest.raises(SystemExit):
        main(["estimate", str(release), "--json", "--confidence", "0.9"])
    assert json.loads(capsys.readouterr().out)["confidence"] == 0.9
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(release / "nowhere"), "--json"])
    assert ended.value.code == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "release-unreadable"


def test_rows_of_which_no_estimate_is_above_zero_have_no_weights_and_not_nan():
    """Answers that are mostly others': if all records show one value, the estimate is that all have the other."""
    one = block([[8, 56], [56, 8]])
    own = SimpleNamespace(face=None, inverse=lambda asked: inverse_of(one, asked))
    table = pa.table({"x": ["x0"] * 9})
    data = SimpleNamespace(wide=False, counted=False, protocols=[one], blocks=[own], table=table,
                           answers=np.zeros((9, 1), np.int64), times=np.ones(9, np.int64))  # fmt: skip
    with pytest.raises(ReleaseError, match="no estimate is above zero"):
        weights_of(data)


def test_a_confidence_next_to_one_has_an_interval() -> None:
    """What lies beyond it is not nothing, though one less half of it is one in floating-point numbers."""
    assert 8 < figures.reach(1.0, 0.0, 1 - 2**-53) < 9
