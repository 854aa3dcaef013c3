"""Other languages than English: a folder of `templates/` with the same sentences, and its `phrases.txt` for the rest.

English stands in the templates themselves and, where it is a word or two beside a figure, in the code; `phrases.txt`
has each of these on a line, and under it, after `= `, what it is in its language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
ENGLISH = "en"
_SAMPLE = "1,234.5%"
"""How a number is written: its phrase shows what stands between thousands, before a fraction and before the sign."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)%?")
_WORDS = ("percentage points", "unbounded", "about", "above", "below", "nats", "nat")
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b")
_PIECE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<(?:style|/style)[^<>]*>|<[^<>{]*>?|>", re.DOTALL)
_NAMED = re.compile(r'\b(aria-label|data-is)="([^"{]*)"')


@cache
def phrases(language: str) -> dict[str, str]:
    """Short texts by their English; none of English."""
    if language == ENGLISH:
        return {}
    lines = (TEMPLATES / language / "phrases.txt").read_text("utf-8").splitlines()
    return {english: told.removeprefix("= ") for english, told in pairwise(lines) if told.startswith("= ")}


def say(text: str, language: str) -> str:
    """A short text in a language."""
    return phrases(language).get(text, text)


def figure(text: str, language: str) -> str:
    """A figure with its words, as `funnel.report.figures` writes it, in a language."""
    if language == ENGLISH:
        return text
    sample = say(_SAMPLE, language)
    signs = {",": sample[1], ".": sample[5], "%": sample[7:]}
    told = _NUMBER.sub(lambda found: "".join(signs.get(letter, letter) for letter in found[0]), text)
    return _WORD.sub(lambda found: say(found[0], language), told)


@dataclass(frozen=True)
class Tongue:
    """A language, for what writes a word or a figure."""

    language: str = ENGLISH

    def __call__(self, text: str) -> str:
        """A short English text."""
        return say(text, self.language)

    def figure(self, text: str) -> str:
        """A figure with its words."""
        return figure(text, self.language)


def counted(number: int, noun: str, plural: str | None = None, *, language: str) -> str:
    """`1 value`, `16 values`, `1,200 boxes`, in a language."""
    several = plural or f"{noun}s"
    return figure(f"{number:,}", language) + f" {say(noun if number == 1 else several, language)}"


def page(source: str, language: str) -> str:
    """A page's template with the texts between its tags, and those that tags have for readers, in a language."""
    told, at = list[str](), 0
    for found in _PIECE.finditer(source):
        told += [_piece(source[at : found.start()], language), _named(found[0], language)]
        at = found.end()
    return "".join([*told, _piece(source[at:], language)])


def pieces(source: str) -> list[str]:
    """The texts between the tags of a page's template, and those that tags have for readers."""
    found = [" ".join(one.split()) for one in _PIECE.split(source)]
    named = [text for _, text in _NAMED.findall(source)]
    return [one for one in (*found, *named) if re.search(r"[A-Za-z]{2}", one) and '="' not in one and "'" not in one]


def _piece(text: str, language: str) -> str:
    plain = " ".join(text.split())
    told = say(plain, language)
    if told == plain:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    before = "" if told[:1] in ",;.:)" else before
    return f"{before}{told}{after}"


def _named(tag: str, language: str) -> str:
    return _NAMED.sub(lambda found: f'{found[1]}="{say(found[2], language)}"', tag)
