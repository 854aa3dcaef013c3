"""SRLIP by [DS] Definition 3, over every set of known columns; LDP of X; and why budgets do not add up."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit import side
from funnel.audit.evidence import Alphabet, Evidence
from funnel.audit.protocols import Block as Read
from funnel.errors import AuditFailure
from tests.unit.audit import samples
from tests.unit.audit.forge import Block, forge, worst_inputs, worst_known
from tests.unit.audit.samples import detail, failures, lies
from tests.unit.audit.test_exact import cut


def as_read(counts: Any, blocks: list[Block]) -> tuple[Evidence, tuple[Read, ...]]:
    """What the auditor makes of the same release."""
    cells = np.argwhere(counts > 0)
    secret = Alphabet(("s",), tuple((f"s{i}",) for i in range(len(counts))))
    alphabets = tuple(Alphabet(tuple(b.columns), tuple(map(tuple, b.inputs))) for b in blocks)
    evidence = Evidence("", "", "", secret, alphabets, cells, counts[counts > 0], (), None, None)
    read = tuple(
        Read(
            tuple(block.columns),
            ("s",) if block.reads_secret else None,
            secret.values if block.reads_secret else None,
            tuple(map(tuple, block.inputs)),
            tuple(map(tuple, block.outputs)),
            block.bits,
            np.array(block.weights, np.int64).reshape(len(block.outputs), -1, len(block.inputs)),
        )
        for block in blocks
    )
    return evidence, read


SHAPES: list[list[list[str | None]]] = [
    [["a"], ["b"]],
    [["a", "u"], ["a", "v"], ["b", "u"]],
    [["a", "u"], ["b", "u"], ["b", None], [None, None]],
]


@st.composite
def releases(draw: st.DrawFn) -> tuple[np.ndarray, list[Block]]:
    """Counts over two secret values and one or two blocks of one or two columns; zeros among counts and weights."""
    inputs = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2))
    shape = (2, *(len(labels) for labels in inputs))
    cells = math.prod(shape)
    counts = np.array(draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells))).reshape(shape)
    counts[(0,) * len(shape)] += 1
    return counts, [draw(protocols(f"x{j}", labels)) for j, labels in enumerate(inputs)]


@st.composite
def protocols(draw: st.DrawFn, name: str, inputs: list[list[str | None]]) -> Block:
    bits, reads = draw(st.sampled_from([2, 5, 40])), draw(st.booleans())
    columns = [[cut(draw, 2, 1 << bits) for _ in inputs] for _ in range(2 if reads else 1)]
    weights = [[[part[y] for part in of] for of in columns] for y in range(2)]
    names = [f"{name}{i}" for i in range(len(inputs[0]))]
    return Block(names, inputs, inputs[:2], bits, weights if reads else [rows[0] for rows in weights], reads)


@given(releases())
@settings(max_examples=60)
def test_side_knowledge_is_that_of_the_definition(release: tuple[np.ndarray, list[Block]]) -> None:
    counts, blocks = release
    assert side.srlip_ratio(*as_read(counts, blocks)) == worst_known(counts, blocks, "srlip")


@given(releases())
@settings(max_examples=25)
def test_nothing_depends_on_how_much_is_looked_at_at_once(release: tuple[np.ndarray, list[Block]]) -> None:
    read = as_read(*release)
    whole = side.srlip_ratio(*read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side, "_AT_ONCE", 3)
        assert side.srlip_ratio(*read) == whole


@given(releases())
@settings(max_examples=50)
def test_between_public_values_an_output_that_only_some_can_make_has_no_bound(
    release: tuple[np.ndarray, list[Block]],
) -> None:
    counts, blocks = release
    blocks = [block for block in blocks if not block.reads_secret]
    rows = [row for block in blocks for row in block.weights]
    found = side.public_ratio(as_read(counts, blocks)[1] if len(blocks) == counts.ndim - 1 else ())
    if len(blocks) != counts.ndim - 1:
        assert found == 1
    elif any(min(row) == 0 < max(row) for row in rows):
        assert found is None
    else:
        kept = [
            Block(b.columns, b.inputs, b.outputs, b.bits, [r for r in b.weights if max(r)]) for b in blocks
        ]
        assert found == math.prod(map(worst_inputs, kept), start=Fraction(1))


def test_what_is_too_large_to_measure_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two secrets, and of each digit two outputs or two known values: 32 cases."""
    read = as_read(FULL, [digits("x1", (0.92, 0.37)), digits("x2", (0.94, 0.51))])
    monkeypatch.setattr(side, "MOST_CASES", 32)
    assert side.srlip_ratio(*read)
    monkeypatch.setattr(side, "MOST_CASES", 31)
    with pytest.raises(AuditFailure, match="nothing is proven"):
        side.srlip_ratio(*read)


# --- mathematics.md, section 4: the composition theorem of SRLIP does not hold

FULL = np.array([[[21, 1], [1, 14]], [[60, 1], [1, 1]]]) * 100
WHOLE = 1 << 20


def digits(name: str, stay: tuple[float, float]) -> Block:
    """A protocol of two values: output 0 for input x with chance stay[x]."""
    zero = [round(chance * WHOLE) for chance in stay]
    return Block([name], [["0"], ["1"]], [["0"], ["1"]], 20, [zero, [WHOLE - one for one in zero]])


@pytest.mark.parametrize("solve", ["per-attribute", "sequential"])
def test_budgets_that_the_theorem_adds_up_do_not_hold(solve: str, tmp_path: Path) -> None:
    """Two digits with full support: every condition holds at shares that sum to 1.168498, and 1.576446 leaks."""
    blocks = [digits("x1", (0.92, 0.37)), digits("x2", (0.94, 0.51))]
    told = {"notion": "srlip", "parameters": {"solve": solve}}
    claimed = lies(forge(FULL, blocks, epsilon=1.1685, **told), tmp_path / "claimed")
    assert {"leakage-bound", "stated-bound"} == failures(claimed)
    assert "1.576" in detail(claimed, "leakage-bound")
    assert not failures(lies(forge(FULL, blocks, epsilon=1.58, **told), tmp_path / "real"))


def test_a_secret_that_two_harmless_reports_reveal_together_has_no_bound(tmp_path: Path) -> None:
    """A and B are fair bits and S is A xor B; one report tells A, the other B, each with an exponent of zero."""
    counts = np.zeros((2, 4, 4), int)
    for a in (0, 1):
        for b in (0, 1):
            counts[a ^ b, 2 * a + b, 2 * a + b] = 50
    labels: list[list[str | None]] = [["0", "0"], ["0", "1"], ["1", "0"], ["1", "1"]]
    tells_a = Block(["a1", "b1"], labels, [labels[0], labels[2]], 0, [[1, 1, 0, 0], [0, 0, 1, 1]])
    tells_b = Block(["a2", "b2"], labels, [labels[0], labels[1]], 0, [[1, 0, 1, 0], [0, 1, 0, 1]])
    told = {"notion": "srlip", "parameters": {"solve": "per-attribute"}, "epsilon": 5.0}
    report = lies(forge(counts, [tells_a, tells_b], **told), tmp_path)
    assert "infinite" in detail(report, "leakage-bound")
    assert "leakage-bound" in failures(report)


def test_a_small_lip_does_not_pass_for_side_knowledge(tmp_path: Path) -> None:
    """Of the sample, lip is below what the same release leaks to those who know a column."""
    forgery = samples.side_knowledge()
    ratios = {name: Fraction(text) for name, text in forgery.evidence["leakage"].items()}
    assert ratios["lip"] < ratios["srlip"]
    epsilon = round(math.log(ratios["lip"] * ratios["srlip"]) / 2, 6)
    assert "leakage-bound" in failures(lies(samples.side_knowledge(epsilon=epsilon), tmp_path / "between"))
    forgery.manifest["leakage"]["srlip"] = forgery.manifest["leakage"]["lip"]
    assert failures(lies(forgery, tmp_path / "stated")) == {"leakage-stated"}
    forgery = samples.side_knowledge()
    forgery.evidence["leakage"]["srlip"] = forgery.evidence["leakage"]["lip"]
    assert failures(lies(forgery, tmp_path / "kept")) == {"leakage-exact"}


def test_a_weight_moved_by_one_breaks_a_bound_that_is_met(tmp_path: Path) -> None:
    assert samples.audited(samples.usual().write(tmp_path / "honest")).passed
    forgery = samples.usual()
    rows = forgery.protocol["blocks"][0]["weights"]
    rows[0][0] += 1
    rows[1][0] -= 1
    assert {"leakage-bound", "leakage-exact"} <= failures(lies(forgery, tmp_path / "moved"))
