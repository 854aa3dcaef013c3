"""The templates as the Jinja library knows them, imported where the first sentence is made."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, select_autoescape
from jinja2.bccache import Bucket
from jinja2.loaders import BaseLoader
from markupsafe import Markup, escape

from funnel import text
from funnel.measure.exact import added
from funnel.report import figures, svg, tongue

LETTERS = 120
"""Most letters of a value in a table."""
_FIGURES = (
    "nats", "leaked", "radius", "no_less", "no_more", "unit", "share", "percent", "points", "factor", "power",
    "epsilon", "most", "least", "part",
)  # fmt: skip


class _Kept(FileSystemBytecodeCache):
    """Keeps compiled templates in the user's cache: with a hash of the source, so that none is out of date, and not at
    all where that is not wished, nothing can be written, or somebody else could have written what would be run here.
    Never beside the sources: an uninstaller leaves what it did not bring, and Python imports what is left."""

    def load_bytecode(self, bucket: Bucket) -> None:
        if self._private():
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            Path(self.directory).mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._private():
                super().dump_bytecode(bucket)

    def _private(self) -> bool:
        with suppress(OSError):
            found = os.lstat(self.directory)
            return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
        return False


def _cache(language: str) -> _Kept | None:
    """The user's cache of compiled templates; none where there is no home to keep it in."""
    asked = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # The standard of desktops has it that a relative path is not heard.
        folder = Path(asked) if Path(asked).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return _Kept(str(folder / "funnel"), f"{language}_%s.cache")


class _InLanguage(FileSystemLoader):
    """Templates in a language: sentences from its own folder, pages from English with their texts exchanged."""

    def __init__(self, templates: Path, language: str) -> None:
        super().__init__([templates / language, templates])
        self._language = language

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, name, fresh = super().get_source(environment, template)
        return (tongue.page(source, self._language) if template.endswith(".html") else source), name, fresh


@cache
def environment(templates: Path, language: str = tongue.ENGLISH) -> Environment:
    """The templates of a folder: pages escape everything, sentences nothing: their content is escaped when shown."""
    plain = language == tongue.ENGLISH
    loader: BaseLoader = FileSystemLoader(templates) if plain else _InLanguage(templates, language)
    made = Environment(
        loader=loader, autoescape=select_autoescape(["html", "svg"]), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        # Unoptimised, so that no filter is applied before there are facts: what is kept then depends on sources alone.
        bytecode_cache=_cache(language), optimized=False,
    )  # fmt: skip
    made.globals |= {"counted": partial(tongue.counted, language=language), "_": tongue.Tongue(language)}
    made.filters |= {name: _told(getattr(figures, name), language) for name in _FIGURES}
    made.filters |= {name: _told(written, language) for name, written in _NUMBERS.items()}
    made.filters |= {"capital": text.sentence, "label": text.label, "short": _short, "coded": _coded}
    made.filters |= {"human": text.human, "px": svg.number, "told": _told(str, language), "added": added}
    made.filters["listed"] = partial(text.listed, last=tongue.say("and", language))
    return made


_NUMBERS: dict[str, Callable[..., str]] = {
    "count": "{:,}".format,
    "whole": "{:,.0f}".format,
    "general": "{:,.10g}".format,
    "number": text.number,
    "portion": text.portion,
    "digits": lambda value, digits: f"{value:.{digits}g}",
    "decimals": lambda value, decimals: f"{value:.{decimals}f}",
}
"""How numbers are written, beside those of `figures`."""


def _told(written: Callable[..., str], language: str) -> Callable[..., str]:
    """What writes a figure, in a language."""
    return lambda *given: tongue.figure(written(*given), language)


def _short(value: str) -> str:
    return value if len(value) <= LETTERS else value[: LETTERS - 1].rstrip() + "…"


def _coded(said: str) -> Markup:
    """A sentence for a page, with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(said))))  # noqa: S704
