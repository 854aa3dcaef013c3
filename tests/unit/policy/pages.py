"""A good policy, and ways to spoil it: `‸` marks where the loader must point."""

from __future__ import annotations

from pathlib import Path

from funnel.errors import CATALOGUE, PolicyError, Problem
from funnel.policy import Policy, loads

GOOD = """\
version: 1
name: census-education
description: Education and age of adults
source:
  table: census.parquet
  filter: age >= 18
  entity: person_id
  missing: category
estimate:
  minimum: 10
  kind: counts
sensitive: [marital_status]
public:
  - education
  - name: age
    bins: [0, 25, 35.5]
  - name: country
    top: 10
  - [occupation, hours]
privacy:
  notion: lip
  epsilon: 1.0
  split: equal
mechanism: optimal
draws:
  kind: permanent
  key: env:FUNNEL_KEY
release:
  to: out/public
  private: out/private
  format: parquet
"""

DECLARED = {
    "marital_status": "[a, b]",
    "education": "[1, 2]",
    "country": "[c]",
    "occupation": "[d, e]",
    "hours": "[1]",
}


def private(more: str = "", values: str = "", leave: str = "") -> str:
    """The good policy over a private estimate; `more` keys of it, and other `values` for a column to `leave` out."""
    declared = "".join(f"    {name}: {items}\n" for name, items in DECLARED.items() if name != leave)
    estimate = f"  kind: private\n  epsilon: 0.5\n{more}  values:\n{declared}{values}"
    return GOOD.replace("  kind: counts\n", estimate).replace(
        "  - name: country\n    top: 10\n", "  - country\n"
    )


def wide(cells: str, columns: str = "[occupation, hours]") -> str:
    """The good policy with a wide block."""
    return GOOD.replace("[occupation, hours]", f"{{name: person, columns: {columns}, {cells}}}")


MARK = "‸"
Place = tuple[int, int, str]


def good(**lines: str) -> str:
    """The good policy with the first line that starts (after blanks) with each key replaced."""
    text = GOOD
    for key, line in lines.items():
        old = next(one for one in GOOD.splitlines() if one.strip().startswith(f"{key}:"))
        text = text.replace(f"{old}\n", f"{line}\n" if line else "", 1)
    return text


def problems(text: str, path: str | Path = "p.yaml") -> list[Problem]:
    """Everything the loader finds wrong: at least one problem, in words, with a code of the catalogue."""
    try:
        policy = loads(text, path)
    except PolicyError as error:
        assert error.problems
        assert all(problem.code in CATALOGUE and problem.message for problem in error.problems)
        return error.problems
    raise AssertionError(f"accepted: {policy!r}")


def places(text: str) -> list[Place]:
    """Line, column and code of every problem."""
    return [(problem.line, problem.column, problem.code) for problem in problems(text)]


def marked(text: str, *codes: str) -> tuple[str, list[Place]]:
    """The text without its marks, and the places they stand for with one code each."""
    expected = []
    for code in codes:
        before, after = text.split(MARK, 1)
        expected.append((before.count("\n") + 1, len(before) - before.rfind("\n"), code))
        text = before + after
    assert MARK not in text
    return text, expected


def accepted(text: str) -> Policy:
    """The policy in a text; a failure shows its problems."""
    return loads(text, "p.yaml")
