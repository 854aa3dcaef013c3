"""The guide table is the inverse distribution function, for every uniform there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.draw import draw
from funnel.draw.draw import InverseTable
from tests.support.samples import protocol, random_protocol, random_weights


def plain_inverse(thresholds: np.ndarray, inputs: np.ndarray, uniform: list[int]) -> list[int]:
    """First output whose cumulative weight exceeds u, in Python's own integers."""
    cumulative = thresholds.tolist()
    return [
        next(y for y, t in enumerate(cumulative[x]) if t > u)
        for x, u in zip(inputs.tolist(), uniform, strict=True)
    ]


def words(uniform: list[int], bits: int, rng: np.random.Generator) -> np.ndarray:
    """Words whose top bits are u and whose other bits are noise, which must not matter."""
    noise = rng.integers(0, 1 << 62, len(uniform)).tolist()
    return np.array(
        [(u << (64 - bits)) | (n & ((1 << (64 - bits)) - 1)) for u, n in zip(uniform, noise, strict=True)],
        np.uint64,
    )


@pytest.mark.parametrize(
    ("inputs", "outputs", "bits"), [(1, 1, 0), (3, 1, 5), (1, 2, 1), (4, 7, 9), (16, 16, 12), (2, 300, 10)]
)
def test_every_uniform_draws_the_plain_inverse(inputs: int, outputs: int, bits: int) -> None:
    law = random_protocol(1, "x", inputs, outputs, bits, 0.3)
    codes = np.repeat(np.arange(inputs), 1 << bits)
    uniform = list(range(1 << bits)) * inputs
    found = InverseTable(law).draw(codes, words(uniform, bits, np.random.default_rng(2)))
    assert found.tolist() == plain_inverse(law.thresholds(), codes, uniform)
    # Exactness, said the other way: every output is drawn by exactly as many uniforms as it has weight.
    table = np.zeros((inputs, outputs), np.int64)
    np.add.at(table, (codes, found), 1)
    assert (table == law.weights[:, 0, :].T).all()


@pytest.mark.parametrize("buckets", [1, 4, 64])
def test_few_buckets_change_the_speed_and_nothing_else(buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law = random_protocol(3, "x", 5, 40, 11, 0.5)
    codes, uniform = np.repeat(np.arange(5), 1 << 11), list(range(1 << 11)) * 5
    drawn = words(uniform, 11, np.random.default_rng(0))
    many = InverseTable(law).draw(codes, drawn)
    monkeypatch.setattr(draw, "_SMALL", buckets)
    monkeypatch.setattr(draw, "_LARGE", buckets)
    assert (InverseTable(law).draw(codes, drawn) == many).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.integers(1, 40),
    st.integers(13, 62),
    st.sampled_from([0.02, 0.3, 5.0]),
)
def test_fine_weights_at_and_beside_every_threshold(
    seed: int, inputs: int, outputs: int, bits: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    law = protocol("x", random_weights(rng, inputs, outputs, bits, spread))
    edges = [
        (x, u) for x, row in enumerate(law.thresholds().tolist()) for t in row for u in (t - 1, t, t + 1)
    ]
    edges += [(int(rng.integers(inputs)), int(rng.integers(1 << bits))) for _ in range(50)]
    pairs = [(x, u) for x, u in edges if 0 <= u < 1 << bits]
    codes, uniform = np.array([x for x, _ in pairs]), [u for _, u in pairs]
    assert InverseTable(law).draw(codes, words(uniform, bits, rng)).tolist() == plain_inverse(
        law.thresholds(), codes, uniform
    )


def test_all_mass_in_one_bucket() -> None:
    """Five hundred outputs of weight one inside a single bucket are still told apart."""
    weights = [[1] * 500 + [(1 << 40) - 500]]
    uniform = [*range(502), (1 << 40) - 1]
    found = InverseTable(protocol("x", weights)).draw(
        np.zeros(503, np.int64), words(uniform, 40, np.random.default_rng(0))
    )
    assert found.tolist() == [*range(500), 500, 500, 500]


def test_an_output_of_weight_zero_is_never_drawn() -> None:
    law = protocol("x", [[0, 8, 0, 0, 8, 0]])
    found = InverseTable(law).draw(
        np.zeros(16, np.int64), words(list(range(16)), 4, np.random.default_rng(0))
    )
    assert found.tolist() == [1] * 8 + [4] * 8


@pytest.mark.parametrize(
    ("outputs", "name"), [(1, "uint8"), (127, "uint8"), (129, "uint8"), (256, "uint8"), (257, "uint16")]
)
def test_codes_have_the_smallest_type(outputs: int, name: str) -> None:
    weights = [[1] * (outputs - 1) + [512 - outputs + 1]]
    found = InverseTable(protocol("x", weights)).draw(
        np.zeros(512, np.int64), words(list(range(512)), 9, np.random.default_rng(0))
    )
    assert found.dtype == name
    assert sorted(set(found.tolist())) == list(range(outputs))


def test_memory_of_the_table_is_bounded() -> None:
    table = InverseTable(random_protocol(0, "x", 2000, 500, 16))
    assert table._guide.nbytes <= 40 << 20
