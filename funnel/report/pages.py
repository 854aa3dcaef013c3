"""The report as one self-contained HTML page: no script, no network, everything escaped."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from funnel.report import pictures
from funnel.report.tongue import TEMPLATES
from funnel.report.words import template

ROWS = 60
"""Most rows of a table on the page; report.json holds them all."""


def page(content: dict[str, Any]) -> str:
    """The page of a report's content. The same content always gives the same bytes."""
    style = (TEMPLATES / "page.css").read_text("utf-8")
    given = {"style": style, "style_hash": _hash(style), "most_rows": ROWS, "pictures": pictures}
    shown = template("page.html", content["language"]).render(**content, **given)
    return "\n".join(line.rstrip() for line in shown.splitlines() if line.strip()) + "\n"


def _hash(style: str) -> str:
    """The style sheet's hash for the page's content security policy, which allows no other style."""
    digest = hashlib.sha256(f"\n{style}".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
