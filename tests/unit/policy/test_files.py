"""Files that are no policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import PolicyError, Problem
from funnel.policy import load
from funnel.policy.reader import MAX_BYTES
from tests.unit.policy.pages import GOOD


def refused(path: Path | str) -> Problem:
    """The one problem with a file."""
    with pytest.raises(PolicyError) as caught:
        load(path)
    (problem,) = caught.value.problems
    return problem


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    problem = refused(tmp_path / "none.yaml")
    assert (problem.code, problem.line, problem.column) == ("policy-unreadable", 0, 0)
    assert problem.file == str(tmp_path / "none.yaml")


def test_a_folder_and_an_impossible_name(tmp_path: Path) -> None:
    assert refused(tmp_path).code == "policy-unreadable"
    assert refused("a\0b").code == "policy-unreadable"


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (GOOD.encode("utf-16"), 1, 1),
        (GOOD.replace("Education", "Éducation").encode("latin-1"), 3, 14),
        (b"version: 1\nname: \xc3\x28", 2, 7),
        (bytes(range(128, 256)), 1, 1),
    ],
)
def test_other_encodings(tmp_path: Path, content: bytes, line: int, column: int) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(content)
    problem = refused(file)
    assert (problem.code, problem.line, problem.column) == ("policy-unreadable", line, column)


def test_binary_junk_that_happens_to_be_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(bytes(range(128)))
    assert refused(file).code == "policy-syntax"


def test_a_large_file_is_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    assert refused(file).code == "policy-too-large"


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(GOOD + "#" * (MAX_BYTES - len(GOOD)), "utf-8")
    assert load(file).name == "census-education"
    file.write_text(GOOD + "#" * (MAX_BYTES - len(GOOD) + 1), "utf-8")
    assert refused(file).code == "policy-too-large"


def test_every_ready_policy_loads() -> None:
    ready = sorted((Path(__file__).parents[3] / "policies").glob("*.yaml"))
    assert ready
    assert len({load(file).name for file in ready}) == len(ready)
