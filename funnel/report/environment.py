"""The templates as the Jinja library knows them, imported where the first sentence is made."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, select_autoescape
from jinja2.bccache import Bucket

from funnel import text
from funnel.report import figures, svg

LETTERS = 120
"""Most letters of a value in a table."""
_FIGURES = ("nats", "unit", "share", "belief", "percent", "points", "factor", "power", "epsilon", "most")


class _Beside(FileSystemBytecodeCache):
    """Keeps compiled templates beside their sources, as Python keeps modules: with a hash of the source, so that none
    is out of date, and not at all where that is not wished or nothing can be written."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def environment(templates: Path) -> Environment:
    """The templates of a folder: pages escape everything, sentences nothing: their content is escaped when shown."""
    made = Environment(
        loader=FileSystemLoader(templates), autoescape=select_autoescape(["html", "svg"]), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        # Unoptimised, so that no filter is applied before there are facts: what is kept then depends on sources alone.
        bytecode_cache=_Beside(str(templates / "__pycache__")), optimized=False,
    )  # fmt: skip
    made.globals["counted"] = text.counted
    made.filters |= {name: getattr(figures, name) for name in _FIGURES}
    made.filters |= {"listed": text.listed, "capital": text.sentence, "label": text.label, "short": _short}
    made.filters["human"] = text.human
    made.filters["px"] = svg.number
    made.filters["count"] = "{:,}".format
    return made


def _short(value: str) -> str:
    return value if len(value) <= LETTERS else value[: LETTERS - 1].rstrip() + "…"
