"""Sentences, from templates: what a report says stands in `templates/`, and nowhere in the code.

A notion is a file of `templates/notions/`, a mechanism one of `templates/mechanisms/`. Templates see the release as `t`
(see `facts`), and a fact that does not exist is an error.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel import text
from funnel.errors import InternalError
from funnel.report import figures, svg
from funnel.report.facts import Facts

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
_FIGURES = ("nats", "unit", "share", "belief", "percent", "points", "factor", "power", "epsilon", "most")


@functools.cache
def environment() -> Environment:
    """The templates: pages escape everything, sentences nothing, for their content is escaped when it is shown."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=select_autoescape(["html", "svg"]), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.globals["counted"] = text.counted
    made.filters |= {name: getattr(figures, name) for name in _FIGURES}
    made.filters |= {"listed": text.listed, "capital": text.sentence, "label": text.label, "short": _short}
    made.filters["px"] = svg.number
    made.filters["count"] = "{:,}".format
    return made


def blocks(name: str, /, **facts: Any) -> dict[str, str]:
    """The text of every block of a template, its own before those that it inherits, each on one line."""
    template = environment().get_template(name)
    context = template.new_context(facts)
    deque(template.root_render_func(context), maxlen=0)  # this is what makes a template inherit blocks
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
    return _line(environment().get_template(name).render(facts))


def nats_in(told: str) -> float:
    """A number of nats that a notion's template states, `inf` for no bound. Raises InternalError."""
    value = float(told)
    if math.isnan(value):
        raise InternalError("a notion's template states no number where one belongs")
    return value


def _known(room: str, name: str) -> str:
    if not (TEMPLATES / room / f"{name}.txt").is_file():
        raise InternalError(f"the report has no words for {name!r} in templates/{room}")
    return f"{room}/{name}.txt"


def _line(said: str) -> str:
    return " ".join(said.split())


LETTERS = 120
"""Most letters of a value in a table."""


def _short(value: str) -> str:
    return value if len(value) <= LETTERS else value[: LETTERS - 1].rstrip() + "…"
