"""Sentences, from templates: what a report says stands in `templates/`, and nowhere in the code.

A notion is a file of `templates/notions/`, a mechanism one of `templates/mechanisms/`. Templates see the release as `t`
(see `facts`), and a fact that does not exist is an error.
"""

from __future__ import annotations

import math
import re
from collections import deque
from typing import TYPE_CHECKING, Any

from funnel.errors import InternalError
from funnel.report.facts import Facts
from funnel.report.tongue import ENGLISH, TEMPLATES

if TYPE_CHECKING:
    from jinja2 import Template


def template(name: str, language: str = ENGLISH) -> Template:
    """A template of the report, in a language."""
    from funnel.report.environment import environment

    return environment(TEMPLATES, language).get_template(name)


def blocks(name: str, /, **facts: Any) -> dict[str, str]:
    """The text of every block of a template, its own before those that it inherits, each on one line.

    In the language of the release `t`.
    """
    sentences = template(name, _language(facts))
    context = sentences.new_context(facts)
    deque(sentences.root_render_func(context), maxlen=0)  # this is what makes a template inherit blocks
    return {block: _line("".join(stack[0](context))) for block, stack in context.blocks.items()}


def paragraphs(name: str, /, **facts: Any) -> list[str]:
    """The blocks of a template that say something, in their order."""
    return [said for said in blocks(name, **facts).values() if said]


def notion(t: Facts) -> dict[str, str]:
    """The words of a release's notion (see templates/notions/base.txt). Raises InternalError where it has none."""
    return blocks(_known("notions", t.m.notion), t=t)


def mechanism(t: Facts) -> dict[str, str]:
    """The words of its mechanism (see templates/mechanisms/base.txt). Raises InternalError where it has none."""
    return blocks(_known("mechanisms", t.m.mechanism), t=t)


def said(name: str, /, **facts: Any) -> str:
    """A template's text on one line."""
    return _line(template(name, _language(facts)).render(facts))


def nats_in(told: str) -> float:
    """A number of nats that a notion's template states, `inf` for no bound. Raises InternalError."""
    value = float(told)
    if math.isnan(value):
        raise InternalError("a notion's template states no number where one belongs")
    return value


def _language(facts: dict[str, Any]) -> str:
    """That of the release that is told of, or of none."""
    return str(facts["t"].language if "t" in facts else facts.get("language", ENGLISH))


def _known(room: str, name: str) -> str:
    if not (TEMPLATES / room / f"{name}.txt").is_file():
        raise InternalError(f"the report has no words for {name!r} in templates/{room}")
    return f"{room}/{name}.txt"


def _line(said: str) -> str:
    """Without line breaks; the spaces before signs, which break no line, stay."""
    return re.sub(r"[ \t\r\n]+", " ", said).strip(" ")
