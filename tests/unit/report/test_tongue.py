"""Other languages: every sentence and every short text of English is there, about the same facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from funnel.report import figures, tongue

TEMPLATES = tongue.TEMPLATES
PYTHON = [*TEMPLATES.parent.glob("*.py"), TEMPLATES.parents[1] / "cells" / "condition.py"]
LANGUAGES = [path.name for path in TEMPLATES.iterdir() if (path / "phrases.txt").is_file()]
FILES = sorted(
    path.relative_to(TEMPLATES).as_posix()
    for path in TEMPLATES.rglob("*.txt")
    if path.relative_to(TEMPLATES).parts[0] not in LANGUAGES
)
PAGES = sorted(path.name for path in TEMPLATES.glob("*.html") if path.name != "curves.html")
FACTS = ("measure", "kind", "falls", "rises", "belief", "odds", "information", "counts")
"""Blocks of notions and mechanisms that are no sentences."""
OF_GRAMMAR = {"counted", "count", "general", "digits", "decimals", "format", "listed", "capital", "_"}


def blocks(path: Path) -> dict[str, nodes.Node]:
    """The blocks of a template by name; what stands in none under an empty one."""
    tree = Environment(autoescape=False).parse(path.read_text("utf-8"))
    found: dict[str, nodes.Node] = {one.name: one for one in tree.find_all(nodes.Block)}
    return found or {"": tree}


def fields(block: nodes.Node) -> set[str]:
    """The facts that a sentence speaks of: attributes of its names, such as t.secret, and filters that show them."""
    told = {f"{one.node.name}.{one.attr}" for one in block.find_all(nodes.Getattr) if isinstance(one.node, nodes.Name)}
    told |= {f".{one.attr}" for one in block.find_all(nodes.Getattr)}
    told -= {".format", ".get"}
    return told | {one.name for one in block.find_all(nodes.Filter)} - OF_GRAMMAR


def quoted(text: str) -> Iterator[str]:
    """Short texts that the code or a page puts into the reader's language."""
    for call in re.findall(r"\b(?:say|_)\(((?:[^()]|\([^()]*\))*)\)", text):
        yield from (one for one in re.findall(r'"([^"]*)"', re.sub(r"\[[^\]]*\]", "", call)) if one)


def wanted() -> set[str]:
    """All that `phrases.txt` has to have, but for column names in provenance and figures."""
    pages = [(TEMPLATES / name).read_text("utf-8") for name in PAGES]
    found = {piece for text in pages for piece in tongue.pieces(text)}
    return found | {one for text in pages for one in quoted(text)} | {
        one for path in PYTHON for one in quoted(path.read_text("utf-8"))
    }


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", FILES)
def test_every_sentence_is_there_about_the_same_facts(language, name):
    english, told = blocks(TEMPLATES / name), blocks(TEMPLATES / language / name)
    assert list(told) == list(english)
    for block, sentence in english.items():
        assert fields(told[block]) == fields(sentence), block


def test_a_space_follows_every_sentence_that_another_may_follow():
    glued = re.compile(r"^.*[.:;]\{% endif %\}\n(?!(?:\{% end(?:if|for) %\}\n)*\{% endblock %\})", re.M)
    found = {(path.name, one[0]) for path in TEMPLATES.rglob("*.txt") for one in glued.finditer(path.read_text())}
    assert found == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_no_template_that_english_has_not(language):
    own = {path.relative_to(TEMPLATES / language).as_posix() for path in (TEMPLATES / language).rglob("*.txt")}
    assert own == {*FILES, "phrases.txt"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("room", ["notions", "mechanisms"])
def test_what_is_no_sentence_is_the_same_in_every_language(language, room):
    for path in sorted((TEMPLATES / room).glob("*.txt")):
        texts = [(folder / room / path.name).read_text("utf-8") for folder in (TEMPLATES, TEMPLATES / language)]
        english, told = ({name: _source(text, name) for name in FACTS} for text in texts)
        assert told == english, path.name


def _source(text: str, block: str) -> str | None:
    found = re.search(rf"{{% block {block} %}}(.*?){{% endblock %}}", text, re.DOTALL)
    return None if found is None else found[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_short_text_of_page_and_code_is_there(language):
    assert wanted() - set(tongue.phrases(language)) == set()
    assert len(wanted()) > 150


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_short_text_keeps_its_places(language):
    for english, told in tongue.phrases(language).items():
        assert sorted(re.findall(r"\{\w*\}", told)) == sorted(re.findall(r"\{\w*\}", english)), english


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("32,561", "32.561"),
        ("12.3%", "12,3\u00a0%"),
        ("about 12%", "etwa 12\u00a0%"),
        ("above 99.9%", "über 99,9\u00a0%"),
        ("2.1 percentage points", "2,1 Prozentpunkte"),
        ("1.5 × 10^7", "1,5 × 10^7"),
        ("0.5 nats", "0,5 Nat"),
        ("unbounded", "unbegrenzt"),
        ("−1,234,567.25", "−1.234.567,25"),
        ("2026-11-22T02:15:00Z", "2026-11-22T02:15:00Z"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_german_figures(written, told):
    assert tongue.figure(written, "de") == told
    assert tongue.figure(written, "en") == written


def test_months_and_provenance_are_told():
    told = tongue.phrases("de")
    assert {figures.date(f"2026-{month:02d}-01T00:00:00Z").split()[1] for month in range(1, 13)} <= set(told)
    source = (TEMPLATES.parent / "content.py").read_text("utf-8")
    provenance = source[source.index("def _provenance") :]
    assert {*re.findall(r'^        "([^"]+)": ', provenance, re.M)} <= set(told)
