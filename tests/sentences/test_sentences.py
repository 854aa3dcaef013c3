"""Every sentence with a fact in it has a row that names the code or the test that makes it true."""

from __future__ import annotations

import pytest

from tests.sentences.extract import SOURCES, found, markdown, page, printed, template
from tests.sentences.table import fault, path_of, renewed, rows, written

ADVICE = "python -m tests.sentences brings the rows up to date; then say what makes the open ones true"


@pytest.mark.parametrize("name", SOURCES)
def test_every_sentence_has_a_row_and_every_row_its_sentence(name: str) -> None:
    told, there = rows(name), found(name)
    for source in told | there:
        assert set(there.get(source, ())) == set(told.get(source, {})), f"{source}: {ADVICE}"


@pytest.mark.parametrize("name", SOURCES)
def test_what_makes_a_sentence_true_exists(name: str) -> None:
    wrong = [f"{source}: {told}: {sentence}" for source, own in rows(name).items() for sentence, witness in own.items()
             if (told := fault(witness)) is not None]  # fmt: skip
    assert not wrong, "\n".join([ADVICE, *wrong])


def test_rows_name_tests_functions_or_a_reason() -> None:
    here = "tests/sentences/test_sentences.py::test_rows_name_tests_functions_or_a_reason"
    for right in (here, "funnel.report.facts:Facts.as_is", f"funnel.report.content:full, {here}", "- advice"):
        assert fault(right) is None, right
    for wrong in ("?", "? funnel.report.content:full", "-", "- ", "", "somewhere", "funnel.report.content:nothing",
                  "funnel.none:one", f"{here}_at_all", "tests/none.py::test_one"):  # fmt: skip
        assert fault(wrong) is not None, wrong


def test_a_condition_is_shown_and_sentences_end_where_people_end_them() -> None:
    text = (
        "{# no word #}{% block one %}A person{% if t.key %} with a name{% else %}, nobody{% endif %} is\n"
        "drawn for. {{ t.secret }} is hidden from all [DS].{% endblock %}"
        "{% block two %}Another one is, e.g. This.{% endblock %}"
    )
    first = "A person ⟨ with a name |, nobody ⟩ is drawn for."
    assert list(template(text)) == [first, "{{ t.secret }} is hidden from all [DS].", "Another one is, e.g. This."]
    text = "<p>One &amp; <b>two</b> are only words. {{ x > 1 }} are three, or more.</p><code>a b c d</code>"
    told = ["One & two are only words.", "{{ x > 1 }} are three, or more.", "four or five things"]
    assert list(page(f"{text}<td>four or five things</td>")) == told
    text = "# A title of some words\n\n- One point of five words.\n- Short.\n\n```\ncode of more words here\n```"
    told = list(markdown(f"{text}\n| a cell of five words | no |\n"))
    assert told == ["One point of five words.", "a cell of five words"]
    module = '"""A docstring of five words."""\nx = f"there are {n:,} rows of it, all told"\ny = "too short"\n'
    assert list(printed(module)) == ["there are {n} rows of it, all told"]


def test_a_changed_sentence_waits_for_somebody_to_look() -> None:
    told = {"page": {"The draws are permanent, and so on.": "x:y", "Gone.": "a:b"}}
    new = renewed({"page": ["The draws are permanent, and so forth.", "One that is wholly different"]}, told)
    assert new == {"page": {"The draws are permanent, and so forth.": "? x:y", "One that is wholly different": "?"}}
    assert all(fault(witness) for witness in new["page"].values())


@pytest.mark.parametrize("name", SOURCES)
def test_a_table_is_as_the_command_writes_it(name: str, tmp_path, monkeypatch) -> None:
    before, told = path_of(name).read_text("utf-8"), rows(name)
    monkeypatch.setattr("tests.sentences.table._FOLDER", tmp_path)
    written(name, renewed(found(name), told))
    assert path_of(name).read_text("utf-8") == before, ADVICE
