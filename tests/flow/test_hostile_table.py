"""Names and values of a table that mean something elsewhere, through every command: they stay names and values."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

import funnel
from funnel.cli import app as cli
from funnel.cli import console
from tests.support.policies import finished, write_policy

VALUES = [
    "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "\x1b[31mred\x1b[0m", "'; DROP TABLE source; --", "x" * 20_000,
    "\u202egnp.exe", "a\u200fb\u2066c", "nul\x00in", "\x9b2J", "\x07\x08\x7f", "line\nfeed\r\nx\u2028y\x85z",
    "[bold]m[/x]", "{{7*7}}%s%n${x}", "\ud7ff\U0010ffff\ue000", "\ufeffbom", "", "  ", "null", 'a,b"c', "\\u001b[31m",
    "../../etc/passwd",
]  # fmt: skip
NAMES = [
    ["</td><script>alert(1)</script>", "=x()", "'; DROP TABLE source; --", "x" * 300],
    ["\u202ex", "x\ny: 1\nsensitive: [", "[/bold]{{x}}"],
    ['x"\\', "🙂\u2028", "../x"],
]
"""Names that a policy can hold: control characters are refused there."""
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

COMMANDS = [
    ("check", "policy.yaml"), ("plan", "policy.yaml"), ("run", "policy.yaml"), ("lock", "policy.yaml"),
    ("run", "--locked", "policy.yaml"), ("audit", "releases/latest", "--private", "private"),
    ("estimate", "releases/latest"), ("report", "releases/latest"), ("ledger", "policy.yaml"),
    ("diff", "policy.lock.yaml", "releases/latest"), ("compare", "policy.yaml", "--epsilon", "1"),
]  # fmt: skip
"""In an order in which each has what it needs."""


class Said(NamedTuple):
    """What a command did in this process."""

    code: object
    out: str
    err: str


@pytest.fixture
def said(
    capsys: pytest.CaptureFixture[str], key: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """Run a command in this process."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def run(*arguments: str) -> Said:
        with pytest.raises(SystemExit) as caught:
            cli.main(list(arguments))
        return Said(caught.value.code, *capsys.readouterr())

    return run


def table(folder: Path, names: list[str], values: list[str], secrets: tuple[str, str] = ("s0", "s1")) -> Path:
    """Sixty people for each value of the first column, and a policy that releases the columns as CSV."""
    rows = range(60 * len(values) * (len(names) + 1))
    columns = {
        name: [values[(i // 60 + place * (i // 7)) % len(values)] for i in rows]
        for place, name in enumerate(names)
    }
    secret = [secrets[(i % 60 < 20) ^ (i // 60 % 2)] for i in rows]
    pq.write_table(pa.table({"id": list(rows), "s": secret, **columns}), folder / "t.parquet")
    return write_policy(
        folder,
        source={"table": "t.parquet", "entity": "id"},
        sensitive=["s"],
        public=names,
        mechanism="randomised-response",
        release={"to": "releases", "private": "private", "format": "csv", "formulas": "keep"},
    )


def through_all(said: Callable[..., Said]) -> None:
    """Every command, as text and as JSON: it works, and nothing that it prints steers a terminal."""
    for command in COMMANDS:
        for form in ([], ["--json"])[: 1 if command[0] == "report" else 2]:
            done = said(*command, *form)
            assert done.code == 0, (command, done)
            assert not STEERING.search(done.out + done.err), (command, done)
            if form:
                json.loads(done.out)


class Page(html.parser.HTMLParser):
    """Elements and attributes of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} | {(tag, "")}

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(folder: Path) -> list[Page]:
    found = sorted(folder.glob("*/2*/report.html"))
    return [Page(path.read_text(encoding="utf-8")) for path in found]


def harmless(folder: Path) -> None:
    """The pages, the figures and the CSV file of all releases hold them as texts."""
    usual = {("a", "href")}
    for page in pages(folder):
        assert not {tag for tag, _ in page.found} & {"script", "img", "iframe", "object", "link", "form"}
        assert not {name for _, name in page.found if name.startswith("on")}
        assert not {one for one in page.found if one[1] in ("href", "src")} - usual
        assert not STEERING.search(page.text)
    assert len(pages(folder)) >= 2
    for path in folder.glob("*/2*/*.json"):
        json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.long
def test_values_that_mean_something_elsewhere(
    said: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path, ["x"], VALUES, ("\x1b[31m<script>", "=\u202ex\x00"))
    through_all(said)
    harmless(tmp_path)
    with (tmp_path / "releases" / "latest" / "data.csv").open(newline="", encoding="utf-8") as file:
        assert {row[0] for row in csv.reader(file)} <= {"x", *VALUES}
    counted = json.loads(said("estimate", "releases/latest", "--json").out)
    assert counted["blocks"][0]["values"] == len(VALUES)


@pytest.mark.long
@pytest.mark.parametrize("names", NAMES, ids=range(len(NAMES)))
def test_names_that_mean_something_elsewhere(
    names: list[str], said: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path, names, ["a", "b"])
    through_all(said)
    harmless(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert said("init", "t.parquet", "--to", "starter.yaml").code == 0
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "starter.yaml"}
    proposed = yaml.safe_load((tmp_path / "starter.yaml").read_text(encoding="utf-8"))
    public = [name for one in proposed["public"] for name in (one["columns"] if isinstance(one, dict) else [one])]
    assert {*proposed["sensitive"], *public} <= {"s", *names}
    starter = tmp_path / "starter.yaml"
    starter.write_text(finished(starter.read_text(encoding="utf-8")), encoding="utf-8")
    assert said("check", "starter.yaml").code == 0


@pytest.mark.parametrize("name", ["\x1b[31mx", "x\x00y", "\x9b2J", "a\x7f"])
def test_names_that_no_policy_can_hold_are_not_proposed(
    name: str, said: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = range(600)
    columns = {
        "id": list(rows),
        name: [i % 3 for i in rows],
        "job": [f"j{i % 4}" for i in rows],
        "s": [i % 2 for i in rows],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert said("init", "t.parquet", "--to", "starter.yaml").code == 0
    starter = tmp_path / "starter.yaml"
    starter.write_text(finished(starter.read_text(encoding="utf-8")), encoding="utf-8")
    assert said("check", "starter.yaml").code == 0
    printed = said("init", "t.parquet", "--to", "-")
    assert not STEERING.search(printed.out + printed.err)
    path = write_policy(
        tmp_path, source={"table": "t.parquet", "entity": "id"}, sensitive=["s"], public=[name]
    )
    for command in ("check", "plan", "run"):
        done = said(command, str(path))
        assert done.code == 1
        assert not STEERING.search(done.out + done.err)
    assert not (tmp_path / "releases").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "value", ["\x1b[2J\u202e<b>", "[/bold]", "nul\x00", "\ud7ff\U0010ffff", "y" * 50_000]
)
def test_values_in_errors(
    value: str, said: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rare ones, ones that a CSV file would carry out, and those of a person who is there twice."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path, ["x"], ["a", "b"])
    rows = pq.read_table(tmp_path / "t.parquet")
    rare = pa.table({"id": [1_000, 1_001], "s": ["s0", "s1"], "x": [value, value]})
    twice = rows.set_column(0, "id", pa.array([value] * rows.num_rows))
    for wrong, column in (
        (pa.concat_tables([rows, rare.cast(rows.schema)]), "x"),
        (twice, "x"),
        (rows, value),
    ):
        pq.write_table(wrong, tmp_path / "t.parquet")
        path = write_policy(
            tmp_path, source={"table": "t.parquet", "entity": "id"}, sensitive=["s"], public=[column]
        )
        for form in ([], ["--json"]):
            done = said("run", str(path), *form)
            assert done.code == 1
            assert not STEERING.search(done.out + done.err)
            assert len(done.err) < 3_000 or column == value
            if form:
                json.loads(done.out)


@pytest.mark.parametrize("name", ["[/bold]x", "[link=http://x]y", "[red]"])
def test_names_on_a_terminals_progress_bar(
    name: str, said: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being solved is told by the names of its columns, which are no markup."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path, [name], ["a", "b"])
    shown = io.StringIO()
    plain = console.console

    def terminal(*, error: bool = False) -> Console:
        return Console(file=shown, force_terminal=True, width=200, markup=False) if error else plain()

    monkeypatch.setattr(console, "console", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert said("run", "policy.yaml").code == 0
    assert "http://x\x1b" not in shown.getvalue()


def test_a_stage_that_steers_is_told_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=200, markup=False)
    monkeypatch.setattr(console, "console", lambda **_: terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with console.progress() as report:
        report("solve: \x1b]0;title\x07\u202e[/x]", 1, 2)
    assert "\\u001b]0;title\\u0007\\u202e[/x]" in shown.getvalue()


def test_json_that_is_escaped_is_the_same_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = {"a": "\x1b\x9b\u202e\u2066é🙂", "b": "caf\udce9"}
    console.emit(told)
    out = capsys.readouterr().out
    assert json.loads(out) == told
    assert not STEERING.search(out)
    assert "é🙂" in out


def test_a_folder_whose_name_no_encoding_has(
    said: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes stay bytes on disk, and become numbers in what is printed."""
    folder = tmp_path / "caf\udce9\x1b[31m"
    folder.mkdir()
    table(tmp_path, ["x"], ["a", "b"])
    for name in ("t.parquet", "policy.yaml"):
        (tmp_path / name).rename(folder / name)
    monkeypatch.chdir(folder)
    for command in ("check", "plan", "run", "init"):
        done = said(command, "t.parquet" if command == "init" else "policy.yaml")
        assert done.code == 1, (command, done)
        assert not STEERING.search(done.out + done.err)


def test_a_tables_name_adds_no_line_to_its_starter_policy(tmp_path: Path) -> None:
    table(tmp_path, ["x"], ["a", "b"])
    target = tmp_path / "t\nbudget: 9\n#.parquet"
    (tmp_path / "t.parquet").rename(target)
    text = funnel.starter_policy(target, tmp_path)
    assert "budget" not in yaml.safe_load(text)
    assert yaml.safe_load(text)["source"]["table"] == target.name


def test_values_that_read_alike_have_totals_of_their_own(tmp_path: Path) -> None:
    """A text `(missing)` beside what is missing, and pairs that are joined alike: the page counts them apart."""
    pairs = [("a, b", "c"), ("a", "b, c"), (None, "z"), ("(missing)", "z")]
    rows = [(*pairs[min(i % 7, 3)], "s" + str(i % 2)) for i in range(420)]
    names = ("u", "v", "s")
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), tmp_path / "t.parquet")
    asked = {"source": {"table": "t.parquet", "missing": "category"}, "sensitive": ["s"], "public": [["u", "v"]],
             "privacy": {"notion": "ldp-x", "epsilon": 3.0}, "mechanism": "randomised-response",
             "draws": {"kind": "fresh"}}  # fmt: skip
    release = Path(funnel.run(write_policy(tmp_path, **asked)).release)
    (block,) = json.loads((release / "report.json").read_text())["blocks"]
    told = Counter[str]()
    for row in pq.read_table(release / "data.parquet").to_pylist():
        told[", ".join("(missing)" if row[name] is None else row[name] for name in "uv")] += 1
    shown = Counter[str]()
    for one in block["totals"]["entries"]:
        shown[one["values"][0]] += one["released"]
    assert shown == told
    assert len(block["totals"]["entries"]) == len(pairs)
