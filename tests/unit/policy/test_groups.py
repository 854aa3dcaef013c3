"""Groups of values: in the policy, in files, in levels; what is wrong is told at its line of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import PolicyError, Problem
from funnel.policy import Policy, load
from funnel.policy.columns import Attribute
from funnel.policy.terms import terms
from tests.unit.policy.pages import GOOD

TOWNS = "value,group,group2\nOslo,North,Europe\nBergen,North,Europe\nRome,South,Europe\nLagos,Lagos,Africa\n"


def written(folder: Path, groups: str, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    path = folder / "p.yaml"
    path.write_text(GOOD.replace("    top: 10\n", f"    groups: {groups}\n"))
    return path


def country(policy: Policy) -> Attribute:
    return next(one for block in policy.blocks for one in block.attributes if one.name == "country")


def problems(path: Path) -> list[Problem]:
    with pytest.raises(PolicyError) as caught:
        load(path)
    return caught.value.problems


def test_a_mapping_a_file_and_levels_one_by_one_say_the_same(tmp_path: Path) -> None:
    north = "{North: [Bergen, Oslo], South: [Rome]}"
    levels = f"[{north}, {{Europe: [South, North], Africa: [Lagos]}}]"
    whole = load(written(tmp_path, "towns.csv", towns=TOWNS))
    parts = load(written(tmp_path, levels))
    assert terms(whole) == terms(parts)
    assert country(whole).names("Oslo") == ("North", "Europe")
    assert country(whole).names("Lagos") == ("Lagos", "Africa")
    assert country(whole).names("Lima") == ("Lima", "Lima")
    assert country(whole).above("North") == ("Europe",)
    mixed = load(written(tmp_path, f"[{north}, up.csv]", up="value,group\nNorth,Europe\nSouth,Europe\nLagos,Africa\n"))
    assert terms(mixed) == terms(parts)


def test_what_a_file_says_is_part_of_the_terms_and_its_name_is_not(tmp_path: Path) -> None:
    first = load(written(tmp_path, "a.csv", a="value,group\nOslo,North\n"))
    renamed = load(written(tmp_path, "b.csv", b="value,group\r\nOslo,North\r\n"))
    other = load(written(tmp_path, "b.csv", b="value,group\nOslo,South\n"))
    assert terms(first) == terms(renamed) != terms(other)
    assert first.files == {"a.csv": "value,group\nOslo,North\n"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("value;group\nOslo;North\n", 1, "value,group"),
        ("value,group\n", 1, "0 values"),
        ("value,group\nOslo,North\nBergen\n", 3, "2 fields"),
        ("value,group\n\nOslo,North\nOslo,South\n", 4, "on line 3"),
        ("value,group\nOslo,North\nOslo,North\n", 3, "on line 2"),
        ("value,group,group2\nOslo,North,Europe\nBergen,North,Asia\n", 3, "`North` is in `Asia` here"),
        ("value,group,region\nOslo,North,Europe\n", 1, "group2"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_at_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    (problem,) = problems(written(tmp_path, "towns.csv", towns=text))
    assert (problem.file, problem.line) == ("towns.csv", line)
    assert words in problem.message


def test_a_file_that_cannot_be_read_is_told_at_its_place_in_the_policy(tmp_path: Path) -> None:
    path = written(tmp_path, "none.csv")
    (problem,) = problems(path)
    assert (problem.code, problem.file, problem.line) == ("policy-unreadable", str(path), 18)
    (tmp_path / "none.csv").write_bytes("Å,b\n".encode("latin-1"))
    assert "UTF-8" in problems(path)[0].message


def test_problems_of_the_policy_and_of_its_files_come_together(tmp_path: Path) -> None:
    path = written(tmp_path, "towns.csv", towns="value,group\nOslo\n")
    path.write_text(path.read_text().replace("epsilon: 1.0", "epsilon: 0"))
    assert {(one.code, Path(one.file).name) for one in problems(path)} == {
        ("epsilon", "p.yaml"),
        ("wrong-value", "towns.csv"),
    }
