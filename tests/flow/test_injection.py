"""Values of a table stay values: in the page, in a CSV file, in the database, and on the disk."""

from __future__ import annotations

import csv
import html.parser
import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import funnel
from funnel.errors import FunnelError, PolicyError, ReleaseError, SourceError
from funnel.release.formulas import is_formula
from tests.support.policies import write_policy

FORMULAS = [
    "=1+1", '=HYPERLINK("http://example.com","x")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1+1)", "\t=1", "\r=1", "\n=1",
    " =1+1", "＝1+1", "=", "@", "--1", "+x", "-x",
]  # fmt: skip
HARMLESS = [
    "",
    "-",
    "+",
    "-3",
    "+4.5",
    "-1e-3",
    "-1,000.50",
    "-5%",
    "a=1",
    "1-2",
    "'=1",
    "[-5, 0)",
    "<=50K",
    "–",
    "−3",
]
MARKUP = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><svg onload=alert(1)>", "{{ 7*7 }}",
    "javascript:alert(1)", "'); DROP TABLE source; --", '"; SELECT 1; "', "<!--", "]]>", "&lt;b&gt;", "\\u003cb\\u003e",
]  # fmt: skip


def table(folder: Path, values: list[str], column: str = "x") -> None:
    """Forty people for each value, ten of a secret and thirty of the other, or the other way round."""
    with duckdb.connect() as connection:
        name = '"' + column.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE t (id INTEGER, s VARCHAR, {name} VARCHAR)")
        rows = [
            (40 * place + i, f"s{int(i < (10 if place % 2 else 30))}", value)
            for place, value in enumerate(values)
            for i in range(40)
        ]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.execute(f"COPY t TO '{folder}/t.parquet' (FORMAT parquet)")


def release(folder: Path, **changes: object) -> Path:
    """A release of the table as CSV."""
    policy = {
        "source": {"table": "t.parquet", "entity": "id"}, "sensitive": ["s"], "public": ["x"],
        "mechanism": "randomised-response", "release__format": "csv",
    }  # fmt: skip
    return Path(funnel.run(write_policy(folder, **policy | changes)).release or "")


@pytest.fixture(autouse=True)
def _with_key(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNNEL_KEY", key)


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_would_carry_out(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_it_would_only_show(text: str) -> None:
    assert not is_formula(text)


@given(st.floats() | st.integers() | st.dates() | st.times() | st.uuids())
def test_numbers_and_dates_are_no_formulas(value: object) -> None:
    assert not is_formula(str(value)) or str(value) in {"-inf", "-nan"}


def test_formulas_are_refused_in_a_csv_file_and_nothing_is_published(tmp_path: Path) -> None:
    table(tmp_path, ["plain", "=1+1", "@SUM(A1)"])
    with pytest.raises(SourceError, match="'x' would put ") as caught:
        release(tmp_path)
    assert (caught.value.code, caught.value.values) == ("formula", "'=1+1' and 1 more")
    assert "formulas: keep" in (caught.value.advice or "")
    assert list((tmp_path / "releases").iterdir()) == []


def test_formulas_that_are_kept_are_kept_as_they_are_and_audited(tmp_path: Path) -> None:
    values = ["plain", "=1+1", '=HYPERLINK("a,b")', "\t=1", "-2+3"]
    table(tmp_path, values)
    made = release(tmp_path, release__formulas="keep")
    with (made / "data.csv").open(newline="") as file:
        assert {row[0] for row in csv.reader(file)} <= {"x", *values}
    assert funnel.audit_release(made, tmp_path / "private").passed


def test_parquet_says_what_is_a_text(tmp_path: Path) -> None:
    table(tmp_path, ["plain", "=1+1"])
    made = release(tmp_path, release__format="parquet")
    assert funnel.audit_release(made, tmp_path / "private").passed


def test_a_columns_name_is_a_cell_too(tmp_path: Path) -> None:
    table(tmp_path, ["a", "b"], column="=1+1")
    with pytest.raises(SourceError, match="formulas"):
        release(tmp_path, public=["=1+1"])


class Page(html.parser.HTMLParser):
    """Elements and attributes of a page, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        assert not any("alert" in (value or "") or "javascript:" in (value or "") for _, value in attrs), (
            attrs
        )


def test_values_are_texts_in_both_reports_and_in_the_table(tmp_path: Path) -> None:
    """Markup, templates and SQL as values: the page has the same elements as for plain values."""
    table(tmp_path, [f"v{place}" for place in range(len(MARKUP))])
    plain = release(tmp_path)
    table(tmp_path, MARKUP)
    made = release(tmp_path, accept=["unbounded"])  # of other values nothing is known
    for name in (plain, made):
        funnel.rebuild_report(name, tmp_path / "private", tmp_path / "full" / name.name)
    for folder in (tmp_path / "releases", tmp_path / "full"):
        before, after = (folder / name.name / "report.html" for name in (plain, made))
        usual, hostile = Page(before.read_text()), Page(after.read_text())
        assert hostile.tags <= usual.tags
        assert hostile.attributes <= usual.attributes
        assert "{{ 7*7 }}" in after.read_text()
    with (made / "data.csv").open(newline="") as file:
        assert {row[0] for row in csv.reader(file)} <= {"x", *MARKUP}
    assert funnel.audit_release(made, tmp_path / "private").passed


@pytest.mark.parametrize(
    "filter_",
    [
        "x IN (SELECT x FROM read_csv('/etc/passwd'))",
        "x = (SELECT content FROM read_text('/etc/passwd'))",
        "1); COPY t TO '/tmp/out' (FORMAT csv); SELECT (1",
        "getenv('FUNNEL_KEY') <> ''",
        "x = (ATTACH 'y')",
    ],
)
def test_a_filter_reaches_nothing_but_its_row(filter_: str, tmp_path: Path) -> None:
    table(tmp_path, ["a", "b"])
    with pytest.raises(FunnelError) as caught:
        release(tmp_path, source__filter=filter_)
    assert caught.value.code in {"filter", "source-unreadable"}


def test_no_setting_of_a_policy_writes_outside_its_folders(tmp_path: Path) -> None:
    """What a run leaves behind lies in the two folders named, links or not, and `..` is resolved before it is used."""
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    table(tmp_path / "work", ["a", "b"])
    before = set(tmp_path.rglob("*"))
    release(tmp_path / "work", release__to="link/../out", release__private="link/private")
    new = {path for path in tmp_path.rglob("*") if path not in before and path.name != "policy.yaml"}
    roots = (tmp_path / "out", tmp_path / "elsewhere" / "private")
    assert all(path.is_relative_to(roots[0]) or path.is_relative_to(roots[1]) for path in new), new
    assert (tmp_path / "out" / "latest" / "data.csv").is_file()


@pytest.mark.parametrize("name", ["../up", "a/b", "..", ".", "/etc", "a\0b", "a\\..\\b"])
def test_a_policys_name_is_never_a_path(name: str, tmp_path: Path) -> None:
    table(tmp_path, ["a", "b"])
    with pytest.raises(PolicyError):
        release(tmp_path, name=name)


def test_a_private_folder_that_leads_into_the_published_one_is_refused(tmp_path: Path) -> None:
    table(tmp_path, ["a", "b"])
    (tmp_path / "releases").mkdir()
    (tmp_path / "hidden").symlink_to(tmp_path / "releases" / "inside")
    with pytest.raises((PolicyError, ReleaseError)) as caught:
        release(tmp_path, release__private="hidden")
    assert caught.value.code == "release-path"


def test_no_value_steers_the_terminal_of_the_operator(command, monkeypatch, tmp_path: Path) -> None:
    """Where a rare value is named in the error that it causes, its escape codes and turned letters are numbers."""
    rare = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnihton"
    table(tmp_path, ["a", "b", rare])
    duckdb.sql(f"COPY (SELECT * FROM '{tmp_path}/t.parquet' LIMIT 83) TO '{tmp_path}/few.parquet'")
    path = write_policy(
        tmp_path, source={"table": "few.parquet", "entity": "id"}, sensitive=["s"], public=["x"]
    )
    printed = list[str]()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(Console, "print", lambda _, text, **__: printed.append(text))
    assert command("run", path, "--json", "--show-values").code == 1
    said = "".join(one for one in printed if isinstance(one, str))
    assert "below-minimum" in said and "x1b[2J" in said
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)


def test_no_text_of_a_policy_steers_the_terminal(cli, tmp_path: Path) -> None:
    path = write_policy(tmp_path, release__format="\t\u202evsc")
    check = cli("check", path)
    assert check.code == 1
    assert "\\u202e" in check.err
    assert not {"\t", "\u202e"} & set(check.err)
