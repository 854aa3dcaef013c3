"""The table: for each sentence what makes it true. One file for each group of sources, written so that people edit it.

    ## funnel/report/templates/scope.txt
    => funnel.report.facts:Facts.as_is, tests/unit/report/test_content.py::test_name
    - A sentence.
    - Another that the same makes true.
    => - what to do next
    - One without a fact, and why it has none.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from tests.sentences.extract import ROOT, printers

UNKNOWN = "?"
"""What stands where nobody has said yet what makes a sentence true."""
Rows = dict[str, dict[str, str]]
"""By file, and by sentence there: what makes it true."""
_FOLDER = Path(__file__).parent


def path_of(name: str) -> Path:
    """Where a table lies."""
    return _FOLDER / f"{name}.md"


def rows(name: str) -> Rows:
    """The rows of a table. ValueError where a line is none of it."""
    told, witness, own = Rows(), UNKNOWN, dict[str, str]()
    for number, line in enumerate(path_of(name).read_text("utf-8").splitlines(), start=1):
        kind, _, said = line.partition(" ")
        if kind == "##":
            own, witness = told.setdefault(said, {}), UNKNOWN
        elif kind == "=>":
            witness = said
        elif kind == "-":
            own[said] = witness
        elif line and kind != "#":
            raise ValueError(f"{path_of(name).name}:{number}: a line begins with #, ##, => or -")
    return told


def written(name: str, told: Mapping[str, Mapping[str, str]]) -> None:
    """Write a table."""
    lines = [f"# What makes each sentence true: see table.py. New rows: python -m tests.sentences {name}"]
    for source, own in told.items():
        lines += ["", f"## {source}"]
        last = None
        for sentence, witness in own.items():
            lines += [f"=> {witness}"] * (witness != last) + [f"- {sentence}"]
            last = witness
    path_of(name).write_text("\n".join(lines) + "\n", "utf-8")


def renewed(found: Mapping[str, Sequence[str]], told: Rows) -> Rows:
    """The rows of the sentences that there are; a new one waits for its reason, or for a look at that of a like one."""
    fresh = Rows()
    for source, sentences in found.items():
        own = told.get(source, {})
        gone = {one: own[one] for one in own if one not in sentences}
        hints = printers(source) if any(one not in own for one in sentences) else {}
        fresh[source] = {one: own[one] if one in own else _like(one, gone, hints) for one in sentences}
    return fresh


def _like(sentence: str, gone: Mapping[str, str], hints: Mapping[str, str]) -> str:
    """What made a sentence true that is like it, or the function that prints it, behind a question mark."""
    near = get_close_matches(sentence, gone, 1, 0.6)
    hint = gone[near[0]] if near else hints.get(sentence, "")
    return f"{UNKNOWN} {hint.removeprefix(UNKNOWN).strip()}".strip()


def fault(witness: str) -> str | None:
    """What is wrong with what is said to make a sentence true; None where all of it exists."""
    if witness.startswith(UNKNOWN):
        return "nobody has said what makes it true"
    if witness.startswith("- "):
        return None if witness.removeprefix("- ").strip() else "no reason is given"
    return next((f"there is no {one}" for one in witness.split(", ") if not _exists(one)), None)


@cache
def _exists(one: str) -> bool:
    """Whether there is such a test, `tests/….py::test`, or such a function or name, `funnel.module:name`."""
    path, _, name = one.partition("::" if one.startswith("tests/") else ":")
    file = ROOT / (path if one.startswith("tests/") else f"{path.replace('.', '/')}.py")
    if not file.is_file():
        file = ROOT / path.replace(".", "/") / "__init__.py"
    return bool(name) and file.is_file() and name in _names(file)


@cache
def _names(file: Path) -> frozenset[str]:
    """The functions, classes, methods and names that a module defines."""
    found = set[str]()
    bodies = [("", ast.parse(file.read_text("utf-8")).body)]
    while bodies:
        within, body = bodies.pop()
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(f"{within}{node.name}")
            if isinstance(node, ast.ClassDef):
                bodies.append((f"{within}{node.name}.", node.body))
            if isinstance(node, ast.Assign | ast.AnnAssign):
                named = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {f"{within}{one.id}" for one in named if isinstance(one, ast.Name)}
    return frozenset(found)
