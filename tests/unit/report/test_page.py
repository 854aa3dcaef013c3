"""The page: one well-formed, self-contained file whose every figure comes from the content."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from funnel.data import Joint
from funnel.format import canonical
from funnel.report import figures, page
from funnel.text import portion
from tests.support.html import Reader
from tests.unit.report import sample

SAMPLES = {name: getattr(sample, name)() for name in ("one_block", "two_blocks", "awkward", "independent")}
ROOT = Path(__file__).parents[3]


@pytest.fixture(params=[(name, public) for name in SAMPLES for public in (True, False)], ids=str)
def made(request: pytest.FixtureRequest) -> tuple[dict[str, Any], str]:
    return _made(*request.param)


@cache
def _made(name: str, public: bool) -> tuple[dict[str, Any], str]:
    """What every test of this file reads, and none changes."""
    content = SAMPLES[name].content(public)
    return content, page(content)


def test_elements_nest_and_all_are_closed(made: tuple[dict[str, Any], str]) -> None:
    assert Reader(made[1]).open == []


def test_pictures_are_well_formed_xml(made: tuple[dict[str, Any], str]) -> None:
    pictures = re.findall(r"<svg.*?</svg>", made[1], re.DOTALL)
    assert pictures
    for picture in pictures:
        ElementTree.fromstring(picture)


@pytest.mark.long
def test_ids_are_unique_and_every_link_leads_to_one(made: tuple[dict[str, Any], str]) -> None:
    found = Reader(made[1]).attributes
    ids = [value for _, name, value in found if name == "id"]
    links = [value for _, name, value in found if name == "href"]
    assert len(ids) == len(set(ids)) == 10
    assert links == ["#scope", *(f"#{value}" for value in ids)]


def test_a_screen_reader_finds_its_way(made: tuple[dict[str, Any], str]) -> None:
    """Headings go down by one, columns have heads of their own, pictures a title, and what scrolls takes the focus."""
    shown = made[1]
    levels = [int(one) for one in re.findall(r"<h([1-6])", shown)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    assert not re.search(r"<thead>(?:(?!</thead>).)*<th(?! scope=)", shown, re.DOTALL)
    assert not re.search(r"<th[^>]*></th>", shown)
    for picture in re.findall(r"<svg[^>]*>(?:<title>)?", shown):
        assert 'aria-hidden="true"' in picture or ('role="img"' in picture and picture.endswith("<title>")), picture
    scrolling = re.findall(r'<div class="(?:scroll|row)"[^>]*>', shown)
    assert scrolling and all('tabindex="0"' in one and "aria-label=" in one for one in scrolling)


def test_every_section_folds_and_is_open_until_then(made: tuple[dict[str, Any], str]) -> None:
    assert len(re.findall(r"<details open>\n<summary><h2 id=", made[1])) == 10


def test_what_telephones_leave_out_is_the_same_column_in_every_row(made: tuple[dict[str, Any], str]) -> None:
    style = (ROOT / "funnel" / "report" / "templates" / "page.css").read_text()
    assert ".pic, th.scale { display: none; }" in style and ":empty" not in style
    for table in re.findall(r"<table.*?</table>", made[1], re.DOTALL):
        rows = [re.findall(r"<t[dh]([^>]*)>", row) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
        left = {tuple(i for i, cell in enumerate(row) if re.search('"(pic|scale)"', cell)) for row in rows}
        assert len(left) == 1 and len({len(row) for row in rows}) == 1


def test_every_picture_names_the_face_that_its_cells_are_wide_enough_for(made: tuple[dict[str, Any], str]) -> None:
    pictures = re.findall(r"<svg[^>]*>", made[1])
    assert pictures and all('font-family="Arial' in one for one in pictures)


def test_the_style_has_a_dark_form_a_printed_one_and_one_for_telephones() -> None:
    style = (ROOT / "funnel" / "report" / "templates" / "page.css").read_text("utf-8")
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 640px", "break-after: avoid"):
        assert rule in style
    shown, printed = (re.findall(r"--([a-z]+): (#[0-9a-f]+)", part) for part in style.split("@media print"))
    light, night = dict(shown[: len(printed)]), dict(shown[len(printed) :])
    assert light == dict(printed), "paper is printed on in the colours of the day"
    for colours in (light, night):
        for ink in ("ink", "soft", "quiet", "blue", "warn"):
            assert min(contrast(colours[ink], colours[ground]) for ground in ("paper", "pale", "here")) >= 4.5, ink


def contrast(one: str, other: str) -> float:
    """Of two colours, by the guidelines for accessible pages (WCAG 2.2, 1.4.3)."""
    def light(colour: str) -> float:
        full = colour if len(colour) == 7 else "#" + "".join(2 * letter for letter in colour[1:])
        parts = [int(full[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.long
def test_nothing_is_loaded_from_anywhere(made: tuple[dict[str, Any], str]) -> None:
    reader = Reader(made[1])
    assert not [
        one for one in reader.attributes if one[1] in {"src", "srcset", "data", "action", "xlink:href"}
    ]
    assert not re.search(r"https?:|//[a-z]|url\(|@import", made[1], re.IGNORECASE)


@pytest.mark.long
def test_no_script_no_handler_no_inline_style(made: tuple[dict[str, Any], str]) -> None:
    names = [name for _, name, _ in Reader(made[1]).attributes]
    assert "<script" not in made[1].lower()
    assert not [name for name in names if name.startswith("on") or name == "style"]


def test_the_security_policy_allows_this_style_sheet_and_nothing_else(
    made: tuple[dict[str, Any], str],
) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made[1])
    style = re.search(r"<style>(.*?)</style>", made[1], re.DOTALL)
    assert policy and style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert html.unescape(policy[1]) == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_the_promise_and_its_figures_lead_the_page(made: tuple[dict[str, Any], str]) -> None:
    content, text = made[0], Reader(made[1]).text
    places = [text.index(content["promise"]["sentence"])]
    places += [text.index(one["figure"], places[0]) for one in content["headline"]]
    assert places == sorted(places) and places[-1] < text.index("What is not promised")


def test_the_condition_stands_in_the_box_of_the_promise(made: tuple[dict[str, Any], str]) -> None:
    content, shown = made
    box = re.search(r'<section class="headline".*?</section>', shown, re.DOTALL)
    assert box and html.escape(content["promise"]["condition"], quote=False) in box[0].replace("&#39;", "'")


def test_a_page_says_to_machines_whether_it_is_private(made: tuple[dict[str, Any], str]) -> None:
    kind = "published" if made[0]["published"] else "private"
    assert re.findall(r'<meta name="funnel-report" content="(\w+)">', made[1]) == [kind]


def leaves(content: Any) -> Iterator[Any]:
    """Every number and text of a content."""
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from leaves(value)
    else:
        yield content


def written(number: float) -> set[str]:
    """The ways in which the page may write one number of the content."""
    ways = {f"{number:,}", f"{number:,.0f}", f"{abs(number):g}", f"{abs(number):.2f}", f"{abs(number):,.10g}"}
    ways |= {figures.nats(number), figures.share(number), portion(number), f"{100 * number:.0f}"}
    ways |= {figures.factor(abs(number)), figures.share(min(abs(number), 1))}
    return ways | ({figures.power(number)} if isinstance(number, int) else set())


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.mark.long
def test_every_figure_on_the_page_comes_from_the_content(made: tuple[dict[str, Any], str]) -> None:
    """Numbers are section numbers, the scales of pictures, ratios to the bound, or figures of the content."""
    content, shown = made
    shown = re.sub(r"<title>.*?</title>|<svg.*?</svg>", "", shown, flags=re.DOTALL)
    allowed = {str(section) for section in range(1, 11)} | {"60", "0", "95", "100"}
    bound = content["promise"]["epsilon"]
    for leaf in leaves(content):
        if isinstance(leaf, str):
            allowed.update(NUMBER.findall(leaf))
        elif leaf is not None and not isinstance(leaf, bool):
            for text in written(leaf):
                allowed.update(NUMBER.findall(text))
    for entry in content["evidence"]["secrets"] if "evidence" in content else []:
        if bound and entry["change"] is not None:
            allowed.update(NUMBER.findall(figures.share(entry["change"] / bound)))
    assert set(NUMBER.findall(Reader(shown).text)) - allowed == set()


@pytest.mark.long
def test_pages_are_the_same_whatever_the_hash_seed() -> None:
    code = (
        "import hashlib; from tests.unit.report import sample; from funnel.report import page; "
        "print(hashlib.sha256(page(sample.awkward().full()).encode()).hexdigest())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed},
                       check=True, capture_output=True, text=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {hashlib.sha256(page(SAMPLES["awkward"].full()).encode()).hexdigest() + "\n"}


def test_the_json_file_gives_the_same_page(made: tuple[dict[str, Any], str]) -> None:
    assert page(canonical.decode("report.json", canonical.encode(made[0]))) == made[1]


def test_sixteen_by_seven_stays_small() -> None:
    for public in (True, False):
        assert len(page(SAMPLES["one_block"].content(public)).encode()) < 200_000


def test_hostile_texts_are_shown_as_they_are() -> None:
    shown = page(SAMPLES["awkward"].full())
    text = Reader(shown).text
    for hostile in ("<script>alert(1)</script>", "$x^2$ & 'q' \"d\"", "a_b_c", "(empty)", "(missing)",
                    "\\u202egnp.exe\\u0000", "<img src=x onerror=alert(1)>", "{{ 7*7 }} <b>bold</b>",
                    "weird{{ 7*7 }}",
                    "only <b>one</b>", "漢字かな"):  # fmt: skip
        assert hostile in text
    assert not re.search(r"<(script|img|b|i)\b", shown)
    assert "\u202e" not in shown and "\0" not in shown


def test_long_values_are_cut_and_kept_whole_in_a_title() -> None:
    shown = page(SAMPLES["awkward"].full())
    assert "é" * 119 + "…" in shown
    assert f'title="{"é" * 300}"' in shown


def test_a_private_page_says_so_at_its_head_and_a_published_one_holds_no_counts() -> None:
    private, public = (Reader(page(SAMPLES["one_block"].content(public))).text for public in (False, True))
    assert private.index("this version holds counts of people") < private.index("Promised")
    assert "14,976" in private and "14,976" not in public
    assert "holds counts of people" not in public
    assert "Made from the release’s published files alone" in public


@pytest.mark.long
@pytest.mark.parametrize("values", [1, 2, 60])
def test_any_number_of_values_makes_a_page(values: int) -> None:
    joint = Joint.from_table([[30 + i for i in range(values)], [90 - i for i in range(values)]])
    release = sample.sample(
        joint, [sample.response(joint.blocks[0], 2.0)], "perfect" if values == 1 else "lip"
    )
    for public in (True, False):
        reader = Reader(page(release.content(public)))
        assert reader.open == []
        assert ("All records have the same value" in reader.text) == (values == 1)
        assert f"x{values}" in reader.text


def test_each_block_has_its_own_pictures_and_tables() -> None:
    text = Reader(page(SAMPLES["two_blocks"].full())).text
    assert "The released columns form 2 blocks" in text
    for name in ("workclass", "race"):
        assert f"What one released value of {name} says by itself" in text
        assert f"{name.capitalize()}: records by released value" in text


def test_an_epsilon_with_many_digits_is_told_with_all_of_them() -> None:
    """Fewer would state a smaller bound than is promised."""
    assert figures.epsilon(0.12344449) == figures.nats(0.12344449, 2) == "0.12344449"
    assert (figures.nats(0.3, 4), figures.nats(12.3, 2), figures.nats(0.04, 2)) == ("0.3000", "12.30", "0.04")
    assert (figures.nats(0.99991234), figures.epsilon(0.5), figures.epsilon(1.0)) == ("0.99991234", "0.5", "1")
