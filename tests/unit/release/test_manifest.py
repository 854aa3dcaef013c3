"""The manifest has the published form, and its figures never understate a leakage."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import ReleaseError
from funnel.files import to_json, write_json
from funnel.measure.exact import log_above
from funnel.measure.figures import leakage_figure, round_to, round_up
from funnel.release.manifest import Draws, Estimate, Manifest, Sizes, Utility, file_entry, sha256_file

MANIFEST = Manifest(
    release="20261121T112034Z-3f9a1c",
    name="census",
    description="",
    created="2026-11-21T11:20:34Z",
    sensitive=("status",),
    public=(("education",), ("age",)),
    notion="lip",
    epsilon=1.0,
    parameters={},
    mechanism="optimal",
    candidates=None,
    split=(0.5, 0.5),
    draws=Draws("permanent", "0123456789abcdef"),
    estimate=Estimate(10, "counts"),
    rows=32561,
    format_of_data="parquet",
    leakage={"lip": 0.9994, "ldp": None, "mutual_information": 0.01},
    composed={"leakage": 1.2528, "how": "exact", "releases": 2},
    utility=Utility(0.123449, 1.5, 0.08233, 0.082331),
    alphabet=Sizes(7, (16, 5), (12, 5)),
    policy_sha256="p",
    plan_sha256="q",
    versions={"funnel": "0.1.0"},
    files={"data.parquet": {"sha256": "x", "bytes": 1}},
)


KEYS = st.text() | st.integers() | st.booleans() | st.none()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda parts: (
        st.lists(parts)
        | st.lists(st.integers())
        | st.tuples(parts, parts)
        | st.dictionaries(KEYS, parts)
        | st.dictionaries(st.text(), parts)
    ),
)


@given(JSON)
def test_files_are_written_as_json_would_write_them(content: object) -> None:
    assert to_json(content) == json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def test_the_published_form() -> None:
    assert json.loads(to_json(MANIFEST.as_dict())) == {
        "format": "funnel-release/1",
        "release": "20261121T112034Z-3f9a1c",
        "name": "census",
        "description": "",
        "created": "2026-11-21T11:20:34Z",
        "sensitive": ["status"],
        "public": [["education"], ["age"]],
        "notion": "lip",
        "epsilon": 1.0,
        "parameters": {},
        "mechanism": "optimal",
        "candidates": None,
        "split": [0.5, 0.5],
        "draws": {"kind": "permanent", "key_fingerprint": "0123456789abcdef"},
        "estimate": {"minimum": 10, "kind": "counts"},
        "rows": 32561,
        "format_of_data": "parquet",
        "leakage": {"lip": 0.9994, "ldp": None, "mutual_information": 0.01},
        "composed": {"leakage": 1.2528, "how": "exact", "releases": 2},
        "utility": {
            "mutual_information": 0.1234,
            "entropy": 1.5,
            "normalised": 0.0823,
            "upper_bound": 0.0824,
        },
        "alphabet": {"sensitive": 7, "public": [16, 5], "released": [12, 5]},
        "policy_sha256": "p",
        "plan_sha256": "q",
        "versions": {"funnel": "0.1.0"},
        "files": {"data.parquet": {"sha256": "x", "bytes": 1}},
    }
    assert next(iter(MANIFEST.as_dict())) == "format"


def test_a_manifest_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        MANIFEST.rows = 1  # type: ignore[misc]


def test_a_mechanism_that_claims_no_optimum_has_no_bound() -> None:
    assert dataclasses.replace(MANIFEST.utility, upper_bound=None).as_dict()["upper_bound"] is None


@given(st.floats(0, 1e6))
def test_rounding_up_gives_an_upper_bound_within_one_unit(value: float) -> None:
    rounded = round_up(value)
    assert value <= rounded <= value + 0.0001 * (1 + 1e-9) + 1e-9
    assert round_up(rounded) == rounded
    assert abs(round_to(value) - value) <= 0.00005 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("value", "up"),
    [(0.0, 0.0), (0.1, 0.1), (0.9994, 0.9994), (0.99940000001, 0.9995), (1e-12, 0.0001), (2.0, 2.0)],
)
def test_rounding_up_reads_the_decimal_that_is_printed(value: float, up: float) -> None:
    """0.9994 is not rounded to 0.9995 for what binary adds behind the sixteenth digit."""
    assert round_up(value) == up


@given(st.fractions(1, 50), st.decimals("0.0001", 4, places=6))
def test_a_figure_bounds_the_leakage_and_keeps_to_an_epsilon_that_holds(
    ratio: Fraction, epsilon_: object
) -> None:
    epsilon = float(str(epsilon_))
    figure = leakage_figure(ratio, epsilon)
    assert figure is not None
    assert figure >= math.log(ratio) - 1e-15
    assert figure <= log_above(ratio) + 0.0001 + 1e-12
    if math.log(ratio) < epsilon - 1e-9:
        assert figure <= epsilon
    if math.log(ratio) > epsilon + 1e-9:
        assert figure > epsilon, "a bound that is passed must show"


def test_an_epsilon_between_the_decimals() -> None:
    ratio = Fraction("1.00004")
    assert leakage_figure(ratio) == 0.0001
    assert leakage_figure(ratio, 0.00005) == 0.00005
    assert leakage_figure(ratio, 0.00003) == 0.0001


def test_perfect_and_infinite() -> None:
    assert leakage_figure(Fraction(1), 0.0) == 0.0
    assert leakage_figure(None, 1.0) is None


def test_files_by_digest_and_size(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"x" * 3_000_000)
    digest = hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert file_entry(tmp_path / "data.csv") == {"sha256": digest, "bytes": 3_000_000}
    with pytest.raises(ReleaseError):
        sha256_file(tmp_path / "none")


def test_json_is_utf8_readable_and_strict(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": "Zürich", "a": [1.5, None]})
    assert (
        tmp_path / "a.json"
    ).read_bytes() == '{\n "b": "Zürich",\n "a": [\n  1.5,\n  null\n ]\n}\n'.encode()
    for value in (math.inf, math.nan):
        with pytest.raises(ValueError, match="JSON compliant"):
            write_json(tmp_path / "b.json", value)
    with pytest.raises(ReleaseError):
        write_json(tmp_path / "none" / "a.json", {})
