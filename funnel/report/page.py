"""The report as one self-contained HTML page: no script, no network, everything escaped."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from funnel.report import figures, pictures

_FOLDER = Path(__file__).parent

ROWS = 60
"""Most rows of a table on the page; report.json holds them all."""

LETTERS = 120
"""Most letters of a value in a table."""


def render(content: dict[str, Any]) -> str:
    """The page of a report's content (see `compose`). The same content always gives the same bytes."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    published, step = content["published"], content["step"]
    environment.filters.update(
        belief=lambda value: figures.belief_text(value, published, step), share=figures.share_text,
        least=lambda value: figures.least_text(value, max(step, figures.FLOOR)),
        power=figures.power_text, nats=figures.nats_text, factor=figures.factor_text,
        count=figures.count_text, epsilon=figures.epsilon_text, short=_short,
    )  # fmt: skip
    style = (_FOLDER / "page.css").read_text("utf-8")
    page = environment.get_template("page.html").render(
        **content, style=style, style_hash=_hash(style), most_rows=ROWS, protocol_map=pictures.protocol_map,
        belief_map=pictures.belief_map, share_bars=pictures.share_bars,
        belief_range=pictures.belief_range,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in page.splitlines() if line.strip()) + "\n"


def _short(text: str) -> str:
    """A text of at most LETTERS characters; longer ones end in an ellipsis."""
    return text if len(text) <= LETTERS else text[: LETTERS - 1].rstrip() + "…"


def _hash(style: str) -> str:
    """The style sheet's hash for the page's content security policy, which allows no other style."""
    digest = hashlib.sha256(f"\n{style}".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
