"""Averages of the channel released, against sums over every (s, x, y)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from funnel.audit import information
from funnel.audit.evidence import Alphabet, Evidence
from funnel.audit.exact import released_table
from funnel.audit.information import entropy, public_entropy, public_information, secret_information
from funnel.audit.protocols import Block as AuditedBlock
from tests.unit.audit import forge, samples
from tests.unit.audit.forge import Block, Figures
from tests.unit.audit.test_exact import as_arrays, channels


def as_evidence(counts: np.ndarray) -> Evidence:
    """The counts as the auditor holds them; alphabets and hashes do not matter here."""
    cells = np.argwhere(counts > 0).astype(np.int64)
    names = [
        Alphabet((f"x{axis}",), tuple((str(i),) for i in range(size)))
        for axis, size in enumerate(counts.shape)
    ]
    return Evidence(
        "", "", "", names[0], tuple(names[1:]), cells, counts[counts > 0].astype(np.int64), (), None, None
    )


def as_blocks(blocks: list[Block]) -> tuple[AuditedBlock, ...]:
    """Protocols as the auditor holds them."""
    return tuple(as_block(block, weights) for block, weights in zip(blocks, as_arrays(blocks), strict=True))


def as_block(block: Block, weights: np.ndarray) -> AuditedBlock:
    columns, secret = (("s",), (("0",),)) if block.reads_secret else (None, None)
    inputs, outputs = tuple(map(tuple, block.inputs)), tuple(map(tuple, block.outputs))
    return AuditedBlock(tuple(block.columns), columns, secret, inputs, outputs, block.bits, weights)


@given(channels())
@settings(max_examples=100, deadline=None)
def test_information_and_entropy_are_the_sums_of_their_definitions(
    channel: tuple[np.ndarray, list[Block]],
) -> None:
    counts, blocks = channel
    evidence, table = as_evidence(counts), released_table(counts, as_arrays(blocks))
    exact = Figures.of(counts, blocks)
    assert secret_information(table) == pytest.approx(exact.secret_information, abs=1e-10)
    assert public_entropy(evidence) == pytest.approx(exact.entropy, abs=1e-10)
    assert public_information(evidence, as_blocks(blocks), table) == pytest.approx(
        exact.public_information, abs=1e-10
    )


@given(channels())
@settings(max_examples=60, deadline=None)
def test_information_obeys_its_inequalities(channel: tuple[np.ndarray, list[Block]]) -> None:
    """0 <= I(X;Y) <= H(X), and a protocol that reads only x tells no more of S than of X."""
    counts, blocks = channel
    evidence, table = as_evidence(counts), released_table(counts, as_arrays(blocks))
    kept = public_information(evidence, as_blocks(blocks), table)
    assert kept is not None
    assert 0 <= kept <= public_entropy(evidence) + 1e-10
    if not any(block.reads_secret for block in blocks):
        assert secret_information(table) <= kept + 1e-10


def test_entropy_ignores_scale_and_empty_cells() -> None:
    assert entropy(np.array([1.0, 1.0, 0.0, 2.0])) == pytest.approx(1.5 * math.log(2))
    assert entropy(np.array([7.0])) == 0


def test_integers_beyond_floats_are_divided_rightly() -> None:
    """Twenty blocks of 62 bits make masses of 1240 bits, which no float holds."""
    huge = np.array([[3, 1], [1, 3]], object) << 1240
    small = np.array([[3, 1], [1, 3]])
    assert secret_information(huge) == secret_information(small)


def test_what_would_take_too_long_is_left_unchecked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    from pathlib import Path

    monkeypatch.setattr(information, "MOST_WORK", 10)
    report = samples.lies(samples.reads_secret(), Path(str(tmp_path)))
    assert report.passed
    assert samples.statuses(report)["utility-stated"] == "not checked"
    assert "reasonable time" in samples.detail(report, "utility-stated")


def test_a_table_of_one_public_value_keeps_all_there_is(tmp_path: object) -> None:
    """H(X) = 0: the ratio is whatever the writer says a whole of nothing is, and no division fails."""
    from pathlib import Path

    lone = forge.Block(["x"], [["a"]], [["a"]], 0, [[1]])
    report = samples.lies(forge.forge(np.array([[30], [20]]), [lone]), Path(str(tmp_path)))
    assert report.verdict == samples.WHOLE
