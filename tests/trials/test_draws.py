"""A small run of the trial of the draws, and that each of its tests sees what it looks for."""

from __future__ import annotations

import json
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from funnel.draw import draw, prf
from funnel.draw.draw import InverseTable
from funnel.draw.keys import Key
from tests.trials import draws
from tests.trials.drawing import layout, tails
from tests.trials.drawing.layout import FRESH, NUMBERS, PROTOCOLS, TEXTS, Line, Row

ERROR = 1e-9
"""An honest kernel fails one of these runs with this chance; no other chance is left in this file."""


def tried(way: str) -> draws.Trial:
    """The tests of one way of drawing, on as many draws as show what is far off."""
    trial = draws.Trial(ERROR, 0.05, layout.Secrets(None))
    draws.compare(trial, way, 60_000)
    draws.read_words(trial, way, 60_000)
    draws.judge(trial)
    return trial


def test_the_kernel_draws_by_its_weights_and_each_bias_injected_is_seen() -> None:
    trial = draws.run(600_000, 0.02, ERROR)
    assert trial.findings == []
    assert trial.compared >= 600_000
    assert set(trial.cells) == set(layout.ROWS)
    assert [(one["map"], one["rule"], one["cells"]) for one in trial.injected] == [(True, True, True)] * 5


def test_the_command_tells_every_cell(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--draws", "50000", "--bias", "0.04", "--error", str(ERROR)]
    assert draws.main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["held"]
    assert sum(1 for cell in told["cells"] if cell["weight"]) == layout.CELLS
    assert sum(cell["count"] for cell in told["cells"]) == told["draws"]
    assert draws.main(asked) == 0
    assert "all held" in capsys.readouterr().out


def test_a_label_names_the_keys() -> None:
    one, other, system = layout.Secrets("a"), layout.Secrets("b"), layout.Secrets(None)
    assert one("x") == layout.Secrets("a")("x")
    assert len({one("x"), one("y"), other("x"), system("x"), system("x")}) == 5


def kinds(trial: draws.Trial) -> set[str]:
    return {finding.split(":")[0] for finding in trial.findings}


def found(trial: draws.Trial, kind: str, *words: str) -> bool:
    return any(one.startswith(kind) and all(word in one for word in words) for one in trial.findings)


def test_an_honest_kernel_is_found_honest() -> None:
    for way in layout.WAYS:
        assert not {"rule", "rows", "pairs", "words"} & kinds(tried(way))


def test_blocks_that_share_their_word_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = prf.FreshUniforms.blocks
    monkeypatch.setattr(prf.FreshUniforms, "blocks", lambda self, first, _, *rest: original(self, first, 0, *rest))
    trial = tried(FRESH)
    assert found(trial, "pairs", "fresh, coin", "eighths")
    assert found(trial, "rule", "fresh")


@pytest.mark.parametrize("way", [NUMBERS, TEXTS])
def test_inputs_that_share_their_word_are_seen(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = prf.input_tags
    monkeypatch.setattr(prf, "input_tags", lambda *given: np.zeros_like(original(*given)))
    trial = tried(way)
    assert found(trial, "pairs", "forty, input 1 with input 2")
    assert found(trial, "rule")


@pytest.mark.parametrize("way", [NUMBERS, TEXTS])
def test_keys_that_share_their_draws_are_seen(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Key.derive
    monkeypatch.setattr(Key, "derive", lambda _, purpose: original(Key(bytes(32)), purpose))
    assert found(tried(way), "pairs", "another key")


def test_entities_that_share_their_word_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers two by two: no count of a cell shows it, the pairs and the words do."""
    original = prf.PermanentUniforms._number_blocks
    monkeypatch.setattr(
        prf.PermanentUniforms, "_number_blocks", lambda self, numbers, *rest: original(self, numbers >> 1, *rest)
    )
    trial = tried(NUMBERS)
    assert found(trial, "pairs", "the next entity")
    assert found(trial, "words", "xor")


def test_a_bit_of_the_words_that_leans_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bit, which only a sum of more than 2^62 would read."""
    original, random = prf.FreshUniforms.words, np.random.default_rng(1)

    def leaning(*given: object) -> np.ndarray:
        words = original(*given).copy()
        return words | (random.random(len(words)) < 0.1).astype(np.uint64)

    monkeypatch.setattr(prf.FreshUniforms, "words", leaning)
    trial = tried(FRESH)
    assert found(trial, "words", "a bit")
    assert "pairs" not in kinds(trial)


def test_a_table_that_is_off_by_one_uniform_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of 2^-62: no number of draws would show it."""
    original = InverseTable.__init__

    def moved(self: InverseTable, protocol: layout.Protocol) -> None:
        original(self, protocol)
        self._thresholds[2] += np.uint64(1)

    assert list(draws.table_finding(PROTOCOLS["skewed"], "skewed")) == []
    monkeypatch.setattr(InverseTable, "__init__", moved)
    assert len(list(draws.table_finding(PROTOCOLS["skewed"], "skewed"))) == 1


def test_a_drawer_that_forgets_its_rows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh draws that begin again with every batch repeat themselves, each of them by the right chances."""
    original = draw.Drawer.draw

    def forgetful(self: draw.Drawer, batch: object) -> object:
        self._rows = 0
        return original(self, batch)

    monkeypatch.setattr(draw.Drawer, "draw", forgetful)
    trial = tried(FRESH)
    assert found(trial, "pairs", "coin, input 1 with input 1")
    assert "rule" in kinds(trial)


def test_a_bias_that_the_draws_cannot_show_is_not_claimed() -> None:
    trial = draws.Trial(ERROR, 1e-4, layout.Secrets(None))
    row = Row(FRESH, Line("coin"), 0)
    trial.cells[row] = np.array([500_000, 500_000])
    trial.words["fresh, word"] = np.full((8, 256), 1000)
    draws.judge(trial)
    assert any("too few draws" in one for one in trial.findings)


def exact(count: int, trials: int, share: Fraction) -> tuple[Fraction, Fraction]:
    """P(X <= count) and P(X >= count)."""
    each = [comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(trials + 1)]
    return sum(each[: count + 1], Fraction(0)), sum(each[count:], Fraction(0))


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(3, 8), Fraction(1, 1 << 40), Fraction(999, 1000)])
@pytest.mark.parametrize("trials", [1, 40, 150])
def test_tails_are_those_of_the_binomial_distribution(trials: int, share: Fraction) -> None:
    for count in range(0, trials + 1, 7):
        low, high = exact(count, trials, share)
        assert tails.at_most(count, trials, float(share)) == pytest.approx(float(low), rel=1e-9)
        assert tails.at_least(count, trials, float(share)) == pytest.approx(float(high), rel=1e-9)


def test_tails_of_billions_agree_with_the_normal_law() -> None:
    """Where n p (1 - p) is 7.5 * 10^8, the two differ by less than a thousandth up to six deviations."""
    from scipy.special import ndtr

    draws_ = 3_000_000_000
    for far in (1.0, 3.0, 6.0):
        count = draws_ // 2 + round(far * (draws_ / 4) ** 0.5)
        normal = ndtr(-(count - 0.5 - draws_ / 2) / (draws_ / 4) ** 0.5)
        assert tails.at_least(count, draws_, 0.5) == pytest.approx(normal, rel=1e-3)
        assert tails.at_most(draws_ - count, draws_, 0.5) == pytest.approx(normal, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 1.0])
def test_refused_counts_are_refused_and_no_others(share: float) -> None:
    level, trials = 1e-3, 400
    low, high = tails.limits(trials, share, level)
    refused = tails.two_sided(np.arange(trials + 1), trials, share) < level
    assert refused.tolist() == [count <= low or count >= high for count in range(trials + 1)]
    chance = tails.at_most(low, trials, share) + tails.at_least(high, trials, share)
    assert chance <= level


@pytest.mark.parametrize(
    ("trials", "share"), [(100_000, 0.5), (100_000, 0.01), (100_000, 0.0), (3_000, 1e-9)]
)
def test_the_smallest_bias_is_the_one_that_is_just_seen(trials: int, share: float) -> None:
    level = 1e-9
    bias = float(tails.smallest(trials, share, level))
    low, high = tails.limits(trials, share, level)
    for moved, seen in ((bias, True), (bias * 0.98, False)):
        truths = [share + moved] + ([share - moved] if moved <= share else [])
        overlooked = [tails.at_most(high - 1, trials, t) - tails.at_most(low, trials, t) for t in truths]
        assert (max(overlooked) <= tails.MISS * 1.000001) == seen


@pytest.mark.parametrize("bias", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("share", [0.5, 0.375, 0.0977, 0.0009765625, 2.0**-42])
def test_enough_draws_are_enough(share: float, bias: float) -> None:
    wanted = tails.enough(share, 1e-9, bias)
    assert tails.smallest(wanted, share, 1e-9) <= bias
    assert tails.smallest(wanted * 9 // 10, share, 1e-9) > bias


def test_a_row_as_a_whole_is_refused_no_more_often_than_stated() -> None:
    """Fisher's figure of honest rows lies above the uniform law, of rows that lean far below."""
    random, weights = np.random.default_rng(5), [40, 30, 20, 9, 1, 0]
    honest = [tails.together(random.multinomial(2_000, tails.shares(weights)), weights) for _ in range(2_000)]
    for level in (0.5, 0.1, 0.01):
        assert np.mean(np.array(honest) < level) < level + 4 * (level / 2_000) ** 0.5
    leaning = random.multinomial(200_000, tails.shares([41, 29, 20, 9, 1, 0]))
    assert tails.together(leaning, weights) < 1e-9
    assert tails.together(np.array([1, 0, 0, 0, 0, 0]), weights) <= 1


def test_the_bias_is_injected_where_it_is_said() -> None:
    for _, name in layout.INJECTED:
        source, cell = layout.tilted(name, 0, 1e-4)
        true = PROTOCOLS[name]
        moved = source.probabilities() - true.probabilities()
        flat = moved.reshape(len(moved), -1)
        assert flat[cell, 0] == pytest.approx(-1e-4, rel=1e-9)
        assert np.count_nonzero(flat) == 2
        assert moved.sum() == pytest.approx(0, abs=1e-15)
