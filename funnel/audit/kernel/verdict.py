"""What the kernel says: one finding for every claim, and never a word about a claim that was not looked at."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "not checked"]
NOT_CLAIMED = "not claimed: "
"""How the detail begins where a release does not make the claim, so that nothing is left to check."""
NEEDS_PRIVATE = "needs the private evidence"
CHANCE = "chance alone does so to an honest release once in a thousand million times; have the machine looked at"
"""What to say of a claim that failed for nothing but chance."""


@dataclass(frozen=True)
class Finding:
    """A claim by name and in words, whether it holds, the figures or reason for it, and if chance alone failed it."""

    claim: str
    title: str
    status: Status
    detail: str
    improbable: bool = False

    @property
    def claimed(self) -> bool:
        """False where the release does not make this claim: it is not checked, and nothing is missing."""
        return self.status != "not checked" or not self.detail.startswith(NOT_CLAIMED)

    def text(self) -> str:
        """One line for a terminal."""
        mark = "FAILED" if self.status == "failed" else self.status if self.claimed else "not claimed"
        return printable(f"{mark:11} {self.title} [{self.claim}]: {self.detail.removeprefix(NOT_CLAIMED)}")


@dataclass(frozen=True)
class Unchecked:
    """What a check returns where it cannot decide, with the reason; NOT_CLAIMED heads it where nothing is claimed."""

    reason: str


class Broken(Exception):  # noqa: N818 - a claim is broken; the program is not
    """A claim that does not hold: in which file, what is wrong, what was promised and what is there.

    `improbable`: what is there may be, and next to never is. Nothing is shown to be wrong, so only a person's audit
    fails: a run that refused it would draw from a law without it, and keep no promise exactly.
    """

    def __init__(self, file: str, what: str, expected: object, found: object, *, improbable: bool = False) -> None:
        super().__init__(f"{shown(file)}: {printable(what)}; expected {shown(expected)}, found {shown(found)}")
        self.file, self.improbable = file, improbable


def agree(file: str, facts: Iterable[tuple[str, object, object]]) -> None:
    """Each fact is found as it is told elsewhere: (what, expected, found). Raises Broken for the first that is not."""
    for what, expected, found in facts:
        if expected != found:
            raise Broken(file, f"{what} is not the same in both files", expected, found)


def printable(text: str) -> str:
    """Text in which nothing can steer a terminal."""
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)


def shown(value: object, longest: int = 160) -> str:
    """A value as printable text of bounded length."""
    text = printable((value if isinstance(value, str) else reprlib.repr(value))[: 2 * longest])
    return text if len(text) <= longest else text[: longest - 1] + "…"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
