"""The report as one self-contained HTML page: no script, no network, everything escaped."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.report import figures, pictures

if TYPE_CHECKING:
    from jinja2 import Template

_FOLDER = Path(__file__).parent

ROWS = 60
"""Most rows of a table on the page; report.json holds them all."""

LETTERS = 120
"""Most letters of a value in a table."""


def render(content: dict[str, Any]) -> str:
    """The page of a report's content (see `compose`). The same content always gives the same bytes."""
    style = (_FOLDER / "page.css").read_text("utf-8")
    page = _template().render(
        **content, style=style, style_hash=_hash(style), most_rows=ROWS, protocol_map=pictures.protocol_map,
        belief_map=pictures.belief_map, share_bars=pictures.share_bars,
        belief_range=pictures.belief_range,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in page.splitlines() if line.strip()) + "\n"


@functools.cache
def _template() -> Template:
    """The page's template: a run renders it twice, and compiling it takes longer than rendering."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context

    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(
        belief=pass_context(_belief), share=figures.share_text, least=pass_context(_least),
        power=figures.power_text, nats=figures.nats_text, factor=figures.factor_text,
        count=figures.count_text, epsilon=figures.epsilon_text, short=_short,
    )  # fmt: skip
    return environment.get_template("page.html")


def _belief(context: Mapping[str, Any], value: Any) -> str:
    return figures.belief_text(value, context["published"], context["step"])


def _least(context: Mapping[str, Any], value: Any) -> str:
    return figures.least_text(value, max(context["step"], figures.FLOOR))


def _short(text: str) -> str:
    """A text of at most LETTERS characters; longer ones end in an ellipsis."""
    return text if len(text) <= LETTERS else text[: LETTERS - 1].rstrip() + "…"


def _hash(style: str) -> str:
    """The style sheet's hash for the page's content security policy, which allows no other style."""
    digest = hashlib.sha256(f"\n{style}".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
