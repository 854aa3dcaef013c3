"""A release in German: page, report.json and catalogues are in the language that release.json states and audited so."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

import funnel
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

ENGLISH = re.compile(r"\b(the|is|are|and|of|which|this|that|with|by|true|at most|records|values|what)\b")
QUOTED = ("funnel estimate", "Lopuhaä", "Makhdoumi")
"""What stays as it is: commands, and the titles of papers."""


@pytest.fixture
def released(tmp_path, key, monkeypatch) -> tuple[Path, Path]:
    """The release's folder and the private one."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    people(tmp_path, MONDAY)
    metadata = {"title": "Menschen", "description": "Eine Tabelle", "license": "CC-BY-4.0"}
    policy = write_policy(tmp_path, **SMALL | {"release__language": "de", "metadata": metadata})
    summary = funnel.run(policy)
    return Path(summary.release or ""), tmp_path / "private"


def lines(page: str) -> list[str]:
    """What a reader reads, without commands and titles."""
    text = re.sub(r"<style.*?</style>", "", page, flags=re.DOTALL)
    found = [" ".join(html.unescape(re.sub(r"<[^>]*>", " ", line)).split()) for line in text.splitlines()]
    return [line for line in found if line and not any(one in line for one in QUOTED)]


def test_a_german_release_has_german_pages_and_passes_its_audit(released):
    release, private = released
    assert json.loads((release / "release.json").read_text())["language"] == "de"
    for page in (release / "report.html", private / release.name / "report.html"):
        text = page.read_text()
        assert '<html lang="de">' in text
        assert [line for line in lines(text) if ENGLISH.search(line)] == []
    assert "Wer die veröffentlichten Werte eines Datensatzes sieht" in text
    assert re.search(r"\d,\d+\u00a0%", text)
    assert json.loads((release / "report.json").read_text())["language"] == "de"
    assert "Gezogen mit den Wahrscheinlichkeiten" in (release / "datapackage.json").read_text()
    assert json.loads((release / "croissant.json").read_text())["@context"]["@language"] == "de"
    assert funnel.audit_release(release, private).passed


def test_a_report_that_is_not_in_the_language_stated_fails(released):
    release, private = released
    page = release / "report.html"
    page.write_text(page.read_text().replace('lang="de"', 'lang="en"'))
    assert not funnel.audit_release(release, private).passed


def test_only_languages_that_there_are_can_be_asked_for(command, tmp_path):
    people(tmp_path, MONDAY)
    done = command("check", write_policy(tmp_path, **SMALL | {"release__language": "xx"}))
    assert done.code == 1
    assert "language" in done.err + done.out
