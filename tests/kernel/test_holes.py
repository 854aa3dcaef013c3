"""Releases that kept every rule but the one that was missing: each broke its promise once, and passed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from funnel.audit.kernel import notions
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.records import Block, _parts, answers
from funnel.audit.kernel.robust import Ball
from funnel.audit.kernel.verdict import Broken
from funnel.format.canonical import encode
from funnel.format.counts import CountsFile, Private
from funnel.format.fields import Alphabet
from funnel.format.journal import EstimateEntry, Together
from funnel.format.manifest import Parameters
from funnel.format.protocol import Sets
from funnel.format.robust import RobustFile
from funnel.format.schema import write
from tests.kernel.samples import Sample, alphabet, judged, sample
from tests.support.kernel import check


def failed(one: Sample, tmp_path) -> list[str]:
    return [finding.claim for finding in judged(*one.write(tmp_path)) if finding.status == "failed"]


def with_parameters(one: Sample, **changes) -> Sample:
    parameters = replace(one.manifest.parameters, **changes)
    one.manifest = replace(one.manifest, parameters=parameters)
    one.terms = replace(one.terms, parameters=replace(parameters, radius=None))
    return one


def test_a_secret_without_records_is_in_the_ball_and_refused():
    """The ball gives it mass: at order 2 and B = 0.01 the certificate showed K = 1.3, the truth is 3/2."""
    weights = np.array([[[3, 1]], [[1, 3]]])
    channel = Channel(
        np.array([[50, 50], [50, 50], [0, 0]]),
        (Block(0, ("x",), (("0",), ("1",)), 2, weights),),
        Parameters(order=2.0, radius=0.01),
        RobustFile("funnel-robust/1", ()),
        np.ones((3, 2), bool),
    )
    with pytest.raises(Broken, match="without records"):
        notions.rldp(channel).within(notions.rational(5.0))


@pytest.mark.parametrize("order", [Fraction(1, 4), Fraction(1), Fraction(2), Fraction(3)])
def test_a_divergence_above_zero_costs_something_however_small_it_is(order):
    """E(h) is less than one: at 100 digits 1 + 10^-300 has the logarithm zero, and the tangent there lay above E."""
    ball = Ball(np.full((2, 2), 50), np.ones((2, 2), bool), order, Fraction(1, 100))
    assert ball.left(Fraction(0)) == 1
    assert all(ball.left(Fraction(1, 10**digits)) < 1 for digits in (5, 50, 99, 101, 300))


@pytest.mark.parametrize("order", ["0.01", "0.3", "1", "1.2", "2", "100"])
def test_a_mean_of_gaps_of_whatever_size_is_not_above_the_true_one(order):
    """At the smallest order gaps in the units of the proof were powers too small to be worked out."""
    ball = Ball(np.array([[12, 7, 9]]), np.ones((1, 3), bool), Fraction(order), Fraction(1, 100000))
    r = float(ball.exponent)
    for gaps in ([9290 << 128, 62111 << 128, 415257 << 128], [1, 1, 1 << 180], [5 << 170, 5 << 170, 5 << 170]):
        logs = [math.log(n) for n in gaps]
        scale = min(logs) if r <= 0 else max(logs)
        shares = [n / 28 for n in (12, 7, 9)]
        terms = [p * math.exp(r * (one - scale)) for p, one in zip(shares, logs, strict=True)]
        true = scale + math.log(sum(terms)) / r if r else sum(p * one for p, one in zip(shares, logs, strict=True))
        assert true * (1 - 1e-12) - 1e-9 <= math.log(ball.mean(0, gaps)) <= true * (1 + 1e-12) + 1e-9


def test_a_row_whose_values_need_two_secrets_is_no_answer():
    """Each block says one thing of one secret and another of the other: each can be, but not any two together."""
    weights = np.array([[[0, 0], [4, 4]], [[4, 4], [0, 0]]])
    secret = alphabet("s", 2)
    first, second = alphabet("x", 2), alphabet("z", 2)
    blocks = (
        Block(0, first.columns, first.values, 2, weights, secret),
        Block(1, second.columns, second.values, 2, weights[::-1], secret),
    )
    honest = np.array([[0, 1, 7], [1, 0, 7]])
    assert (answers(honest, blocks) == honest).all()
    with pytest.raises(Broken, match="no input can produce"):
        answers(np.array([[0, 1, 7], [1, 1, 7]]), blocks)


def test_a_notion_of_what_is_known_names_a_column(tmp_path):
    """Of nobody who knows anything the leakage was measured, and called that notion's."""
    assert "manifest" in failed(with_parameters(sample("srlip", sizes=(3, 2)), knows=()), tmp_path)


@pytest.mark.parametrize("changes", [{"order": None}, {"radius": None}, {"order": 0.0}])
def test_a_robust_notion_names_a_ball(changes, tmp_path):
    assert "manifest" in failed(with_parameters(sample("rldp"), **changes), tmp_path)


def test_srlip_over_cells_says_what_may_be_known(tmp_path):
    """Who may know columns may know those inside cells, and nothing of these was measured."""
    public, _ = sample("srlip", sizes=(3, 2)).write(tmp_path)
    (public / "cells.json").write_bytes(b"{}\n")
    stated = json.loads((public / "release.json").read_bytes())
    stated["files"]["cells.json"] = stated["files"]["protocol.json"]
    (public / "release.json").write_bytes(encode(stated))
    (found,) = (one for one in check(public) if one.claim == "manifest")
    assert found.status == "failed"
    assert "parameters" in found.detail


def test_a_few_cells_may_not_have_all_the_noise(tmp_path):
    """It was as much in all as it should be, and hid one cell that told too much."""
    one = sample(private=True, sizes=(8,), secret=6)
    rows = [list(row) for row in one.counts.private.cells]
    rows[0][-2] = sum(row[-2] + row[-1] for row in rows)
    rows = [(*row[:-2], *(row[-2:] if place == 0 else (0, 0))) for place, row in enumerate(rows)]
    rows[0] = (*rows[0][:-1], 0)
    used = tuple((*row[:-3], max(row[-3] + row[-2] - row[-1], 1)) for row in rows)
    one.counts = replace(one.counts, cells=used, private=replace(one.counts.private, cells=tuple(rows)))
    found = {finding.claim: finding.detail for finding in judged(*one.write(tmp_path)) if finding.status == "failed"}
    assert "not spread as stated" in found["estimate-noise"]


def test_where_no_lower_is_named_only_rises_are_bounded_and_that_is_said(tmp_path):
    found = check(*with_parameters(sample("alip"), lower=None).write(tmp_path))
    assert next(one.detail for one in found if one.claim == "leakage-bound").endswith("only rises are bounded")


def test_a_record_has_one_value_of_a_column(tmp_path):
    one = sample("rldp")
    first, *rest = one.counts.cells
    cells = ((*first[:2], first[2] - 1), (0, 5, 1), *rest)
    one.counts = replace(one.counts, cells=tuple(sorted(cells)))
    assert "counts" in failed(one, tmp_path)


def test_nor_has_it_two_in_another_block():
    hidden, other = alphabet("s", 2), alphabet("x", 2)
    shown = Alphabet(("s", "t"), (("s0", "t"), ("s1", "t")))
    file = CountsFile("funnel-counts/1", hidden, (other, shown), ((0, 1, 0, 3), (1, 0, 1, 4)), None, None)
    assert parsed(CountsFile, "counts.json", write(file)) == file
    with pytest.raises(Broken, match="one value of s"):
        parsed(CountsFile, "counts.json", write(replace(file, cells=((0, 0, 1, 3), (1, 0, 1, 4)))))
    noisy = Private("estimate", "1", ((0, 1, 0, 3, 1, 0), (0, 0, 1, 0, 0, 1), (1, 0, 1, 4, 0, 0)), (3, 0, 4))
    with pytest.raises(Broken, match="one value of s"):
        parsed(CountsFile, "counts.json", write(replace(file, private=noisy)))


@pytest.mark.parametrize("locked", [False, True])
def test_noise_is_that_which_was_drawn_for_its_charge_and_for_nothing_else(locked, tmp_path):
    """A second release under the same charge with noise of its own: two looks at the counts, one of them paid for."""
    one = sample(private=True, locked=locked)
    public, private = one.write(tmp_path)
    assert not [finding.claim for finding in judged(public, private) if finding.status == "failed"]
    (kept,) = (private / "estimates").iterdir()
    told = json.loads(kept.read_bytes())
    for change in ({"cells": [told["cells"][0], *reversed(told["cells"][1:])]}, {"epsilon": "2"}, {"terms": "1" * 64},
                   {"cells": told["cells"][:2]}, {"name": "another"}):  # fmt: skip
        kept.write_bytes(encode(told | change))
        wrong = [finding.claim for finding in judged(public, private) if finding.status == "failed"]
        assert wrong == ["estimate-spent"]


@pytest.mark.parametrize("place", [-1, -2])
def test_no_sum_of_noise_leaves_a_word(place, tmp_path):
    one = sample(private=True)
    first, *rest = (list(row) for row in one.counts.private.cells)
    first[place] = (1 << 63) - 1
    cells = tuple(map(tuple, (first, *rest)))
    one.counts = replace(one.counts, private=replace(one.counts.private, cells=cells))
    assert "counts" in failed(one, tmp_path)


def test_sets_beside_a_block_count_all_their_bits():
    """Fifteen coins of 61 bits are 915, too many for every chance to be a float."""
    coins = _parts(0, Sets("unary", ("x",), tuple((f"x{i}",) for i in range(15)), 61, 1 << 60, 1, "set"))
    other = Block(1, ("z",), (("z0",), ("z1",)), 1, np.array([[[2, 1]], [[0, 1]]]))
    with pytest.raises(Broken, match="too many values"):
        notions.srlip(Channel(np.ones((2, 15, 2), np.int64), (*coins, other), Parameters()))


def test_every_chance_is_a_float():
    """Of 899 bits and the most records that a file may count: the least and the largest mass."""
    most = (1 << 62) - 1
    coins = _parts(0, Sets("unary", ("x",), tuple((f"x{i}",) for i in range(14)), 62, (1 << 62) - 1, 1, "set"))
    other = Block(1, ("z",), (("z0",), ("z1",)), 31, np.array([[[1 << 31, 1]], [[0, (1 << 31) - 1]]]))
    counts = np.zeros((2, 14, 2), np.int64)
    counts[0, 0, 0], counts[1, 1, 0] = most - 1, 1
    chances = Channel(counts, (*coins, other), Parameters()).view.chances
    assert np.isfinite(chances).all()
    assert (chances[chances > 0] > np.finfo(float).tiny).all()


def test_a_minimum_is_of_every_block_under_a_lock(tmp_path):
    one = sample(sizes=(3, 4), locked=True)
    one.counts = replace(one.counts, locked=one.counts.locked[:1])
    assert failed(one, tmp_path) == ["minimum"]


def test_all_releases_tell_no_less_than_the_last(tmp_path):
    one = sample()
    one.composed = Together("lip", one.manifest.sensitive, 0.1, 0.1, "exact", 1, None)
    assert failed(one, tmp_path) == ["ledger-promises"]


def test_the_ledger_speaks_of_the_notion_s_own_measure(tmp_path):
    one = sample()
    figure = one.manifest.leakage["ldp"]
    one.composed = Together("ldp", one.manifest.sensitive, figure, figure, "exact", 1, None)
    assert failed(one, tmp_path) == ["ledger-entry"]


def test_under_a_lock_a_budget_that_is_passed_by_now_is_not_called_kept(tmp_path):
    one = sample(private=True, locked=True)
    one.earlier += (EstimateEntry("another", "3/4", "0" * 64),)
    one.manifest = replace(one.manifest, estimate=replace(one.manifest.estimate, estimates=2, spent=1.25))
    assert failed(one, tmp_path) == []
    found = judged(*one.write(tmp_path))
    assert [finding.status for finding in found if finding.claim == "estimate-spent"] == ["not checked"]
