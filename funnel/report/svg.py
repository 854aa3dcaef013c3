"""Just enough SVG: elements whose text and attributes are always escaped."""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

Attribute = str | float | int | None


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """`<name …>children</name>`; a trailing `_` in an attribute is dropped, inner ones become `-`.

    Children that are not Markup are escaped; numbers lose needless digits.
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(number(value))}"'
                      for key, value in attributes.items() if value is not None)  # fmt: skip
    inner = "".join(escape(child) for child in children)
    return Markup(f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>")  # noqa: S704


def number(value: Attribute) -> str:
    """Two decimals at most, and none that are needless."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif face of `size` pixels; wide East Asian letters count twice."""
    return sum(_em(letter) for letter in text) * size


def _em(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "iljtfr.,:;!'|()[] -":
        return 0.28
    if letter in "mwMW%@":
        return 0.85
    return 0.67 if letter.isupper() else 0.55


def shortened(text: str, size: float, most: float) -> str:
    """The text, cut with an ellipsis where it would be wider than `most` pixels."""
    if width(text, size) <= most:
        return text
    room, kept = most - size, ""
    for letter in text:
        room -= _em(letter) * size
        if room < 0:
            break
        kept += letter
    return kept.rstrip() + "…"
